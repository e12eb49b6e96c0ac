"""A set of pages against the reference: the slides' five divergences, and the window test.

The slides compare histograms of page size, text size, number of paragraphs, their variance,
and the totals of five classes of tags, by Kullback-Leibler divergence. All arrays of each
comparison are kept, so that it can be recorded and computed again elsewhere. Beside it
stands the test that decides by default: Kolmogorov-Smirnov on every number of a page, at a
level divided by their count.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Literal

import numpy as np
from scipy.stats import chi2, ks_2samp

from models.drift.features import NUMBERS, FloatArray, PageFeatures
from models.drift.pagescan import TAG_CLASSES
from models.errors import InsufficientDataError

CRITERIA = ("P", "S", "N", "V")
"""Criteria that are histograms; ``"T"``, the totals by class of tag, is the fifth."""

ThresholdRule = Literal["none", "simple", "universal", "bootstrap"]

LEVEL = 0.01
"""Chance that any of the five criteria fires on a correct set."""

WINDOW_PAGES = 40
WINDOW_LEVEL = 0.001
N_DRAWS = 300
UNIVERSAL = (0.02, 0.36, 1.33)
"""Coefficients a, b, c of K/(m-1) = a + b/n + c/N, by least squares on sets of one site."""

_SMOOTHING = 0.5
_MEASURES: dict[str, Callable[[PageFeatures], float]] = {
    "P": lambda page: page.page_bytes,
    "S": lambda page: page.text_bytes,
    "N": lambda page: page.n_paragraphs,
    "V": lambda page: math.sqrt(page.paragraph_variance),
}


@dataclass(frozen=True, slots=True, eq=False)
class WindowReference:
    """Distributions of the reference pages.

    Attributes
    ----------
    values
        P, S, N and V on a logarithmic scale, see :func:`criterion_values`; ``(n_pages, 4)``.
    tags
        Elements by class; shape ``(n_pages, 5)``.
    numbers
        The pages' numbers; shape ``(n_pages, 27)``.
    """

    values: FloatArray
    tags: FloatArray
    numbers: FloatArray

    @classmethod
    def of(cls, pages: Sequence[PageFeatures]) -> WindowReference:
        """Return the distributions of a set of pages, at least two."""
        return cls(
            values=np.stack([criterion_values(pages, name) for name in CRITERIA], axis=1),
            tags=np.array([page.tag_counts for page in pages], np.float64),
            numbers=np.array([page.numbers for page in pages]),
        )

    @property
    def n_pages(self) -> int:
        """Number of pages."""
        return len(self.values)


def criterion_values(pages: Sequence[PageFeatures], name: str) -> FloatArray:
    """Return one of :data:`CRITERIA` for each page: ``ln(1 + size)``, for V of its root.

    To seven digits, as they are stored.

    Examples
    --------
    >>> from models.drift.features import describe_page
    >>> criterion_values([describe_page("<p>Rain.</p>", "Rain.")], "N").round(3)
    array([0.693])
    """
    values = np.log1p(np.array([_MEASURES[name](page) for page in pages], np.float64))
    kept: FloatArray = values.astype(np.float32).astype(np.float64)
    return kept


@dataclass(frozen=True, slots=True, eq=False)
class Criterion:
    """One divergence, with everything needed to compute it again.

    Attributes
    ----------
    name
        ``"P"``, ``"S"``, ``"N"``, ``"V"`` or ``"T"``.
    edges
        Edges of the bins, rising; for T the classes of tags stand in `classes` instead.
    classes
        Names of the categories, for T.
    reference_weights
        Smoothed share of each bin, all > 0. With `tail_weights` they sum to 1.
    tail_weights
        Smoothed share below the first and above the last edge; zeros for T.
    test_weights
        Share of the test pages in each bin; with `test_tails` they sum to 1.
    test_tails
        Shares of the test pages outside the edges.
    statistic
        F = Σ p ln(p/q), test against reference, natural logarithm; >= 0, finite.
    threshold
        K for these two sizes of sample.
    """

    name: str
    edges: FloatArray
    classes: tuple[str, ...]
    reference_weights: FloatArray
    tail_weights: tuple[float, float]
    test_weights: FloatArray
    test_tails: tuple[float, float]
    statistic: float
    threshold: float

    @property
    def fired(self) -> bool:
        """Whether the divergence is beyond its threshold."""
        return bool(self.statistic > self.threshold)


@dataclass(frozen=True, slots=True, eq=False)
class WindowCheck:
    """A set of pages compared with the reference.

    Attributes
    ----------
    n_pages, n_reference
        Sizes of the two.
    criteria
        The slides' five, in the order P, S, N, V, T.
    rule
        How their thresholds were found.
    columns, p_values
        Numbers of a page and the p-value of each in the window test.
    level
        Level of the window test as a whole.
    """

    n_pages: int
    n_reference: int
    criteria: tuple[Criterion, ...]
    rule: ThresholdRule
    columns: tuple[str, ...]
    p_values: FloatArray
    level: float

    @property
    def n_fired(self) -> int:
        """N_F: how many of the five criteria fired."""
        return sum(criterion.fired for criterion in self.criteria)

    @property
    def is_drift(self) -> bool:
        """Whether any column departs, at the level divided by their number."""
        return bool(len(self.p_values)) and bool(
            self.p_values.min() * len(self.p_values) < self.level
        )

    @property
    def leading_column(self) -> str:
        """The column that departs most; ``""`` where none could be compared."""
        return self.columns[int(self.p_values.argmin())] if len(self.p_values) else ""


def check_window(
    reference: WindowReference,
    pages: Sequence[PageFeatures],
    *,
    rule: ThresholdRule = "bootstrap",
    level: float = WINDOW_LEVEL,
) -> WindowCheck:
    """Compare a set of pages with the reference.

    Parameters
    ----------
    reference
        The site's reference.
    pages
        The set to check, at least one page; :data:`WINDOW_PAGES` is what the levels were
        measured for.
    rule
        Where the thresholds of the five criteria come from.
    level
        Chance of a false alarm of the window test.

    Raises
    ------
    InsufficientDataError
        If there is no page: an empty set passes no test.
    """
    if not pages:
        raise InsufficientDataError(1, 0)
    test = WindowReference.of(pages)
    columns, p_values = _compare_numbers(reference.numbers, test.numbers)
    return WindowCheck(
        n_pages=len(pages),
        n_reference=reference.n_pages,
        criteria=compare_criteria(
            reference, test, choose_thresholds(reference, test.n_pages, rule)
        ),
        rule=rule,
        columns=columns,
        p_values=p_values,
        level=level,
    )


def _compare_numbers(reference: FloatArray, test: FloatArray) -> tuple[tuple[str, ...], FloatArray]:
    columns, p_values = [], []
    for column, name in enumerate(NUMBERS):
        ours = reference[:, column][~np.isnan(reference[:, column])]
        theirs = test[:, column][~np.isnan(test[:, column])]
        if len(ours) < 2 or not len(theirs):
            continue
        columns.append(name)
        p_values.append(float(ks_2samp(ours, theirs, method="asymp").pvalue))
    return tuple(columns), np.array(p_values)


def compare_criteria(
    reference: WindowReference, test: WindowReference, thresholds: FloatArray
) -> tuple[Criterion, ...]:
    """Return the slides' five criteria of a test set, see :func:`choose_thresholds`."""
    found = [
        _histogram_criterion(name, reference.values[:, at], test.values[:, at], thresholds[at])
        for at, name in enumerate(CRITERIA)
    ]
    return (*found, _tag_criterion(reference.tags, test.tags, thresholds[4]))


def sturges_bins(n: int) -> int:
    """Return Sturges' number of bins, ``1 + ⌊log2 n⌋``.

    Examples
    --------
    >>> [sturges_bins(n) for n in (1, 9, 200)]
    [1, 4, 8]
    """
    return 1 + int(math.log2(max(n, 1)))


def sturges_edges(values: FloatArray) -> FloatArray:
    """Return equal bins over the range of the values; one of width 1 where all are equal."""
    low, high = float(values.min()), float(values.max())
    if high - low < 1e-9:
        return np.array([low - 0.5, low + 0.5])
    return np.linspace(low, high, sturges_bins(len(values)) + 1)


def _counts(values: FloatArray, edges: FloatArray) -> FloatArray:
    """Return the counts in the tails and bins: below, the bins, above. The last bin is closed."""
    inside, _ = np.histogram(values, edges)
    below = np.count_nonzero(values < edges[0])
    above = np.count_nonzero(values > edges[-1])
    return np.concatenate([[below], inside, [above]]).astype(np.float64)


def divergence(test: FloatArray, reference: FloatArray) -> float:
    """Return Σ p ln(p/q) of two sets of shares; cells without test pages add nothing."""
    some = test > 0
    return max(float((test[some] * np.log(test[some] / reference[some])).sum()), 0.0)


def _smoothed(counts: FloatArray) -> FloatArray:
    shares: FloatArray = (counts + _SMOOTHING) / (counts.sum() + _SMOOTHING * len(counts))
    return shares


def _histogram_criterion(
    name: str, reference: FloatArray, test: FloatArray, threshold: float
) -> Criterion:
    edges = sturges_edges(reference)
    q = _smoothed(_counts(reference, edges))
    p = _counts(test, edges) / len(test)
    return Criterion(
        name=name,
        edges=edges,
        classes=(),
        reference_weights=q[1:-1],
        tail_weights=(float(q[0]), float(q[-1])),
        test_weights=p[1:-1],
        test_tails=(float(p[0]), float(p[-1])),
        statistic=divergence(p, q),
        threshold=threshold,
    )


def _tag_criterion(reference: FloatArray, test: FloatArray, threshold: float) -> Criterion:
    q = _smoothed(reference.sum(axis=0))
    totals = test.sum(axis=0)
    p = totals / totals.sum() if totals.sum() else q
    return Criterion(
        name="T",
        edges=np.array([]),
        classes=TAG_CLASSES,
        reference_weights=q,
        tail_weights=(0.0, 0.0),
        test_weights=p,
        test_tails=(0.0, 0.0),
        statistic=divergence(p, q),
        threshold=threshold,
    )


def choose_thresholds(
    reference: WindowReference, n_test: int, rule: ThresholdRule, level: float = LEVEL
) -> FloatArray:
    """Return K for each of the five criteria.

    Parameters
    ----------
    reference
        The site's reference.
    n_test
        Size of the test set.
    rule
        ``"simple"``: the χ² quantile; ``"universal"``: :data:`UNIVERSAL`; ``"bootstrap"``:
        quantiles over random splits of the reference; ``"none"``: no criterion fires. For T
        the first two take the third: the tags of one page come together, and χ² says
        nothing about them.
    level
        Chance that any of the five fires; each gets a fifth of it.
    """
    if rule == "none":
        return np.full(5, np.inf)
    drawn = _bootstrap(reference, n_test, level)
    if rule == "bootstrap":
        return drawn
    rates = 1.0 / n_test + 1.0 / reference.n_pages
    for at in range(len(CRITERIA)):
        freedom = len(sturges_edges(reference.values[:, at])) + 1 - 1
        if rule == "simple":
            drawn[at] = chi2.ppf(1.0 - level / 5, freedom) / 2 * rates
        else:
            a, b, c = UNIVERSAL
            drawn[at] = freedom * (a + b / n_test + c / reference.n_pages)
    return drawn


def fit_universal(
    n_test: FloatArray, n_reference: FloatArray, freedom: FloatArray, thresholds: FloatArray
) -> tuple[float, float, float]:
    """Return a, b, c of K/(m-1) = a + b/n + c/N by least squares, see :data:`UNIVERSAL`.

    Parameters
    ----------
    n_test, n_reference
        n and N: pages of the two sets.
    freedom
        m-1: cells of the histogram less one.
    thresholds
        K as found for each, such as by bootstrap. All of the same shape ``(n_cases,)``.

    Examples
    --------
    >>> n, big_n = np.array([5.0, 10.0, 20.0, 40.0]), np.array([50.0, 200.0, 100.0, 400.0])
    >>> known = 9.0 * (0.02 + 0.4 / n + 1.5 / big_n)
    >>> [round(value, 6) for value in fit_universal(n, big_n, np.full(4, 9.0), known)]
    [0.02, 0.4, 1.5]
    """
    terms = np.stack([np.ones_like(n_test), 1.0 / n_test, 1.0 / n_reference], axis=1)
    a, b, c = np.linalg.lstsq(terms, thresholds / freedom, rcond=None)[0].tolist()
    return a, b, c


def _bootstrap(reference: WindowReference, n_test: int, level: float) -> FloatArray:
    """Return quantiles of the divergence between random parts of the reference.

    The part that plays the test set has at most a third of the pages; where more are to be
    tested than that, pages are drawn with repetition.
    """
    rng = np.random.default_rng(reference.n_pages * 1_000 + n_test)
    n_held = max(min(n_test, reference.n_pages // 3), 1)
    found = np.zeros((N_DRAWS, 5))
    for draw in range(N_DRAWS):
        order = rng.permutation(reference.n_pages)
        held, kept = order[:n_held], order[n_held:]
        picked = held if n_held == n_test else rng.choice(held, n_test)
        for at in range(len(CRITERIA)):
            values = reference.values[:, at]
            edges = sturges_edges(values[kept])
            q = _smoothed(_counts(values[kept], edges))
            found[draw, at] = divergence(_counts(values[picked], edges) / n_test, q)
        q = _smoothed(reference.tags[kept].sum(axis=0))
        totals = reference.tags[picked].sum(axis=0)
        found[draw, 4] = divergence(totals / totals.sum(), q) if totals.sum() else 0.0
    quantiles: FloatArray = np.quantile(found, 1.0 - level / 5, axis=0)
    return quantiles
