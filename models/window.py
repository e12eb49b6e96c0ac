"""The window guard: poll before an entry can scroll off the list.

A list shows the newest W entries. If more than W come out between two polls, the rest
is lost for good, so the gap must be short enough whatever a poll costs. Entries come in
clumps: the count of a gap is taken as negative binomial, its variance a multiple of its
mean.
"""

from __future__ import annotations

from functools import lru_cache

from scipy.optimize import brentq
from scipy.stats import nbinom, poisson

LOSS_PROBABILITY = 1e-4
"""Largest chance that a gap brings more entries than the list holds."""

USUAL_DISPERSION = 2.0
"""Variance of a gap's count over its mean, where nothing is known: posts come in pairs."""

MOST_DISPERSION = 12.0

SMALL_WINDOW = 10
"""A list shorter than this is taken for all a young site has, not for a window."""

LEAST_SAFE_ENTRIES = 0.5
"""Polling sooner than for half an entry would find nothing nearly always."""


@lru_cache(maxsize=4096)
def safe_entries(window: int, dispersion: float = USUAL_DISPERSION) -> float:
    """Return the expected entries up to which a gap is safe.

    Parameters
    ----------
    window
        Entries the list holds, W >= 1.
    dispersion
        Variance over mean of the count, >= 1; rounded to one decimal by the caller.

    Returns
    -------
    float
        The mean at which more than `window` entries have probability 1e-4; at least
        `LEAST_SAFE_ENTRIES`, and without bound for a list under `SMALL_WINDOW`.

    Examples
    --------
    >>> round(safe_entries(30, 1.0), 1), round(safe_entries(30, 2.0), 1)
    (14.4, 8.6)
    """
    if window < SMALL_WINDOW:
        return float("inf")
    dispersion = min(max(dispersion, 1.0), MOST_DISPERSION)

    def excess(mean: float) -> float:
        if dispersion <= 1.0 + 1e-9:
            tail = poisson.sf(window, mean)
        else:
            size = mean / (dispersion - 1.0)
            tail = nbinom.sf(window, size, 1.0 / dispersion)
        return float(tail) - LOSS_PROBABILITY

    return max(float(brentq(excess, 1e-9, float(window + 1), xtol=1e-6)), LEAST_SAFE_ENTRIES)


def dispersion_of(branching: float) -> float:
    """Return the dispersion of counts that a burst term implies: ``1 / (1 - n)^2``."""
    spread = 1.0 / (1.0 - min(branching, 0.9)) ** 2
    return round(min(max(spread, USUAL_DISPERSION), MOST_DISPERSION), 1)
