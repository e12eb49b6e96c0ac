"""Whose articles a rule is for, and when a hit is more urgent than its rule says."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace

from models.triage.hits import RuleMatch
from models.triage.ladder import Raising
from models.triage.rules import Scope


@dataclass(frozen=True, slots=True)
class Origin:
    """Where a passage comes from; what is unknown excludes nothing.

    Attributes
    ----------
    language
        Of the text, two-letter code.
    weight
        The source's importance.
    """

    source: str = ""
    tags: tuple[str, ...] = ()
    language: str | None = None
    country: str | None = None
    reach: str | None = None
    weight: float = 1.0


def is_in_scope(scope: Scope, origin: Origin) -> bool:
    """Return whether a rule holds for what comes from `origin`.

    Examples
    --------
    >>> local = Scope(reach=("local",), languages=("ru",))
    >>> is_in_scope(local, Origin("a", reach="local", language="ru-RU"))
    True
    >>> is_in_scope(local, Origin("b", reach="wide", language="ru"))
    False
    """
    language = (origin.language or "").partition("-")[0].lower()
    return (
        _holds(scope.sources, origin.source)
        and (not scope.tags or not set(scope.tags).isdisjoint(origin.tags))
        and _holds(scope.languages, language)
        and _holds(scope.countries, origin.country)
        and _holds(scope.reach, origin.reach)
    )


def _holds(wanted: tuple[str, ...], given: str | None) -> bool:
    return not wanted or not given or given in wanted


SPIKE_DAYS = 14
"""Days whose same hour is the baseline."""


@dataclass(frozen=True, slots=True)
class Burst:
    """Hits of a rule in the last hour, this one included, and in that hour of earlier days."""

    last_hour: int
    earlier: tuple[int, ...]


def is_spike(burst: Burst, raising: Raising) -> bool:
    """Return whether the last hour has many more hits than that hour usually has.

    The count of an hour is taken for Poisson, its mean that of the same hour of the days
    before. One hit is added to it, so that a rule that never hit needs more than one day's
    chance; days when nothing was watched are not in `earlier`.

    Examples
    --------
    >>> is_spike(Burst(9, (0, 1, 0, 2, 0, 0, 1)), Raising())
    True
    >>> is_spike(Burst(9, (7, 9, 8, 6, 10, 7, 9)), Raising()), is_spike(Burst(4, (0,)), Raising())
    (False, False)
    """
    if burst.last_hour < raising.spike_hits or not burst.earlier:
        return False
    mean = (sum(burst.earlier) + 1) / (len(burst.earlier) + 1)
    return _tail(burst.last_hour, mean) < raising.spike_chance


def _tail(count: int, mean: float) -> float:
    """Return how likely a Poisson count of that mean is `count` or more."""
    below = math.fsum(
        math.exp(k * math.log(mean) - mean - math.lgamma(k + 1)) for k in range(count)
    )
    return max(0.0, 1.0 - below)


def raise_levels(
    matches: Sequence[RuleMatch],
    weight: float,
    bursts: dict[str, Burst],
    raising: Raising,
) -> list[RuleMatch]:
    """Return the matches of one article with their levels raised, the most urgent first.

    Parameters
    ----------
    matches
        Of one article, each with its rule's own level.
    weight
        Of its source.
    bursts
        By rule, where the past is known.
    raising
        What raises.
    """
    levels = [match.level for match in matches]
    raised = []
    for match in matches:
        reasons = []
        if raising.weight and weight >= raising.weight:
            reasons.append(f"the source has weight {weight:g}")
        n_alike = levels.count(match.level)
        if raising.together and n_alike >= raising.together:
            reasons.append(f"{n_alike} rules of level {match.level} hit together")
        burst = bursts.get(match.rule.rule)
        if burst is not None and is_spike(burst, raising):
            usual = sum(burst.earlier) / len(burst.earlier)
            reasons.append(
                f"{burst.last_hour} hits in the last hour, where {usual:.1f} are usual at this hour"
            )
        raised.append(_raised(match, reasons))
    return sorted(raised, key=lambda match: match.level)


def _raised(match: RuleMatch, reasons: list[str]) -> RuleMatch:
    level = max(match.level - len(reasons), min(match.level, match.rule.raise_to))
    if level == match.level:
        return match
    why = f"raised from level {match.level} to {level}: {', '.join(reasons)}"
    return replace(match, level=level, why=f"{match.why}; {why}" if match.why else why)
