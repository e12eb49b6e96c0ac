"""A set of pages put to the test: what is asked of it, and what came of it.

Plain records, so that the test can run in a process of its own.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Literal

CheckOutcome = Literal["passed", "drifted", "not evaluated"]


@dataclass(frozen=True, slots=True)
class KlCriterion:
    """A measure of a page whose histogram must stay near that of the reference.

    Attributes
    ----------
    name, column
        Such as ``F_S``, and the column of the batch it looks at.
    bins
        Edges of the inner cells; below and above them lie two open tail cells.
    weights, tail_weights
        Shares of the reference in the inner cells, and in the two tails; all > 0.
    threshold
        K for this number of pages: a larger divergence counts.
    """

    name: str
    column: str
    bins: tuple[float, ...]
    weights: tuple[float, ...]
    tail_weights: tuple[float, float]
    threshold: float


@dataclass(frozen=True, slots=True)
class ClassCriterion:
    """Totals per class whose shares must stay near those of the reference.

    Attributes
    ----------
    observed, weights
        Per class: the total over the batch, and its share in the reference, > 0.
    """

    name: str
    observed: dict[str, int]
    weights: dict[str, float]
    threshold: float


@dataclass(frozen=True, slots=True)
class WindowCriterion:
    """A measure whose values must look drawn from the reference (Kolmogorov-Smirnov).

    Attributes
    ----------
    reference
        Its values on the pages of the reference.
    least_p
        A smaller p-value counts: the level of the test, shared out among its columns.
    """

    name: str
    column: str
    reference: tuple[float, ...] = field(repr=False)
    least_p: float = 1e-3


@dataclass(frozen=True, slots=True)
class Batch:
    """Pages to be judged together, and by what.

    Attributes
    ----------
    columns
        Per measure its value on each page; None where a page has none.
    least_rows
        Fewer pages cannot be judged.
    classes, kl, windows, most
        The criteria; `most` names columns none of whose values may be larger.
    fires_at
        So many divergences that are too large make a drift; the window test needs one.
    """

    source: str
    columns: dict[str, tuple[float | None, ...]]
    n_reference: int
    least_rows: int = 1
    kl: tuple[KlCriterion, ...] = ()
    classes: tuple[ClassCriterion, ...] = ()
    windows: tuple[WindowCriterion, ...] = ()
    most: dict[str, float] = field(default_factory=dict)
    fires_at: int = 1

    @property
    def n_test(self) -> int:
        """How many pages it holds."""
        return max(map(len, self.columns.values()), default=0)


@dataclass(frozen=True, slots=True)
class Finding:
    """What one criterion says.

    Attributes
    ----------
    statistic
        None where it could not be told.
    fired
        Whether it speaks for drift.
    is_evaluated
        False where it could not be judged: that is a failure, never a pass.
    detail
        Why, in words.
    """

    criterion: str
    statistic: float | None
    threshold: float | None
    fired: bool
    is_evaluated: bool = True
    detail: str = ""


@dataclass(frozen=True, slots=True)
class BatchResult:
    """What came of a batch.

    Attributes
    ----------
    document
        The findings as one HTML page that needs nothing else.
    cpu_s
        Processor seconds it took.
    """

    outcome: CheckOutcome
    findings: tuple[Finding, ...]
    reason: str = ""
    document: str = field(default="", repr=False)
    cpu_s: float = 0.0

    @property
    def fired(self) -> tuple[Finding, ...]:
        """The findings that speak for drift."""
        return tuple(finding for finding in self.findings if finding.fired)


def conclude(findings: tuple[Finding, ...], fires_at: int, n_expected: int) -> CheckOutcome:
    """Return what findings come to: nothing that was not judged passes.

    Parameters
    ----------
    fires_at
        So many of the divergences (names that begin with ``F_``) make a drift.
    n_expected
        How many findings there must be.

    Examples
    --------
    >>> conclude((Finding("F_S", 0.1, 0.3, False),), 1, n_expected=1)
    'passed'
    >>> conclude((), 1, n_expected=1)
    'not evaluated'
    """
    n_kl = sum(finding.fired and finding.criterion.startswith("F_") for finding in findings)
    others = any(finding.fired and not finding.criterion.startswith("F_") for finding in findings)
    if others or n_kl >= fires_at:
        return "drifted"
    if len(findings) < n_expected or not all(finding.is_evaluated for finding in findings):
        return "not evaluated"
    return "passed"
