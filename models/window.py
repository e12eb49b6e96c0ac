"""The window guard: poll before an entry can scroll off the list.

A list shows the newest W entries. If more than W come out between two polls, the rest
is lost for good, so the gap must be short enough whatever a poll costs. Entries come in
clumps: the count of a gap is taken as negative binomial, its variance a multiple of its
mean.
"""

from __future__ import annotations

import math
from functools import lru_cache

import numpy as np
from scipy.stats import nbinom, poisson

from models.compiled import compiled
from models.week import FloatArray

LOSS_PROBABILITY = 1e-4
"""Largest chance that a gap brings more entries than the list holds."""

USUAL_DISPERSION = 2.0
"""Variance of a gap's count over its mean, where nothing is known: posts come in pairs."""

MOST_DISPERSION = 12.0

ROUNDS = 6
"""Steps in which number and gap come together; each halves what is left."""

SMALL_WINDOW = 10
"""A list shorter than this is taken for all a young site has, not for a window."""

LEAST_SAFE_ENTRIES = 0.5
"""Polling sooner than for half an entry would find nothing nearly always."""


HALVINGS = 40
"""Of the stretch a safe number is sought in: to a billionth of it."""


def safe_entries(window: int, dispersion: float = USUAL_DISPERSION) -> float:
    """Return the expected entries up to which a gap is safe.

    Parameters
    ----------
    window
        Entries the list holds, W >= 1.
    dispersion
        Variance over mean of the count, >= 1.

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
    return float(_safe_means(window, np.array([dispersion]))[0])


@lru_cache(maxsize=4096)
def safe_table(window: int) -> FloatArray:
    """Return `safe_entries` for dispersions 1.0, 1.1, … up to the largest.

    Computed once for a list, so that the compiled loops can look it up.
    """
    table = _safe_means(window, np.round(np.arange(1.0, MOST_DISPERSION + 0.05, 0.1), 1))
    table.setflags(write=False)
    return table


def _safe_means(window: int, dispersions: FloatArray) -> FloatArray:
    """Halve the stretch that the means lie in, all at once."""
    if window < SMALL_WINDOW:
        return np.full(len(dispersions), np.inf)
    extra = np.clip(dispersions, 1.0 + 1e-9, MOST_DISPERSION) - 1.0
    least, most = np.zeros(len(extra)), np.full(len(extra), window + 1.0)
    for _ in range(HALVINGS):
        mean = (least + most) / 2.0
        tail = np.where(
            extra > 1e-6,
            nbinom.sf(window, mean / extra, 1.0 / (1.0 + extra)),
            poisson.sf(window, mean),
        )
        least, most = np.where(tail <= LOSS_PROBABILITY, (mean, most), (least, mean))
    return np.maximum(least, LEAST_SAFE_ENTRIES)


@compiled
def dispersion_in(gap_s: float, branching: float, decay_s: float) -> float:
    """Return variance over mean of the entries of a gap that a burst term implies.

    From 1 in a short gap, where nothing has time to breed, to ``1 / (1 - n)^2``.

    Examples
    --------
    >>> dispersion_in(1e9, 0.5, 600.0), round(dispersion_in(600.0, 0.5, 600.0), 2)
    (3.9999964, 1.64)
    """
    if branching <= 0.0:
        return 1.0
    most = 1.0 / (1.0 - branching) ** 2
    k = (1.0 - branching) / decay_s * gap_s
    return float(most - (most - 1.0) * (1.0 - math.exp(-k)) / k)


@compiled
def most_entries(safe: FloatArray, branching: float, decay_s: float, per_s: float) -> float:
    """Return the expected entries up to which the next gap of a source is safe.

    The more entries, the longer the gap; the longer the gap, the more they clump: the
    number and the gap that brings it are found together.

    Parameters
    ----------
    safe
        `safe_table` of its list.
    branching, decay_s
        Of the burst term.
    per_s
        Expected entries per second.
    """
    most = safe[0]
    for _ in range(ROUNDS):
        spread = dispersion_in(most / max(per_s, 1e-9), branching, decay_s)
        place = int((max(spread, USUAL_DISPERSION) - 1.0) * 10.0) + 1
        most = 0.5 * (most + safe[min(place, safe.shape[0] - 1)])
    return float(most)
