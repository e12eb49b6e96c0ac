"""What a source is expected to publish in the hours ahead, and how sure that is.

The range of an hour holds nine of ten outcomes of a negative binomial count. Its
variance is a multiple of its mean, the *dispersion*, measured on held-out weeks: it
holds what makes an hour differ from what is expected of it, chance and ignorance alike.
"""

from __future__ import annotations

import math

import numpy as np

from models.compiled import compiled
from models.intensity.estimator import ESTIMATORS, fill_rates
from models.intensity.fitting import FittedState
from models.intensity.state import FloatArray, State
from models.week import HOUR_S, HOURS_PER_WEEK, offset_at
from models.window import MOST_DISPERSION, USUAL_DISPERSION

LOW_SHARE, HIGH_SHARE = 0.05, 0.95
"""The range leaves out one outcome in twenty on either side."""

LARGE_MEAN = 200.0
"""From here on the count is as good as normal, and its steps are too many to go through."""

NORMAL_QUANTILE = 1.6449
"""Standard deviations to either side that leave out one in twenty."""


def expected_hours(
    state: State, estimator: str, from_s: float, zone: FloatArray, hours: int = HOURS_PER_WEEK
) -> FloatArray:
    """Return the entries expected in each of the hours from a whole hour on.

    Hours are UTC's; an estimator's are those of the source's zone, which may begin at
    half past.

    Parameters
    ----------
    estimator
        One of `models.intensity.estimator.ESTIMATORS`.
    from_s
        Start of the first hour, seconds since 1970.
    zone
        As `models.week.zone_table` returns it.
    """
    rates = np.empty(hours + 1)
    fill_rates(ESTIMATORS[estimator], state, from_s, zone, rates)
    begun = (from_s + offset_at(zone, from_s)) % HOUR_S / HOUR_S
    return np.asarray(((1.0 - begun) * rates[:-1] + begun * rates[1:]) * HOUR_S)


def fit_dispersion(fit: FittedState, estimator: str, zone: FloatArray) -> float:
    """Return the variance of an hour's count over its mean, as held-out hours show it.

    The larger of two: of forecasts one hour ahead, and of those that were made for a
    whole week when the held-out weeks began.
    """
    if fit.held_out is None:
        return USUAL_DISPERSION
    held = fit.held_out
    week = min(HOURS_PER_WEEK, len(held.counts))
    ahead = expected_hours(held.state, estimator, held.start_s, zone, week)
    near = held.forecasts[:, ESTIMATORS[estimator]]
    spread = max(_spread(held.counts[:week], ahead), _spread(held.counts, near))
    return min(max(spread, 1.0), MOST_DISPERSION)


def _spread(counts: FloatArray, expected: FloatArray) -> float:
    is_watched = ~np.isnan(counts)
    mean = float(expected[is_watched].sum())
    squares = float(((counts - expected)[is_watched] ** 2).sum())
    # A few entries more, to be on the safe side where little was seen.
    return (squares + USUAL_DISPERSION * PRIOR_ENTRIES) / (mean + PRIOR_ENTRIES)


PRIOR_ENTRIES = 10.0
"""Entries that the usual dispersion is worth against what was measured."""


def hourly_range(expected: FloatArray, dispersion: float) -> tuple[FloatArray, FloatArray]:
    """Return the counts between which nine in ten hours will lie.

    Parameters
    ----------
    expected
        Expected entries of each hour, >= 0.
    dispersion
        Variance over mean, >= 1; at 1 the count is Poisson.

    Examples
    --------
    >>> low, high = hourly_range(np.array([0.0, 4.0, 400.0]), dispersion=2.0)
    >>> low.tolist(), high.tolist()
    ([0.0, 0.0, 353.0], [0.0, 9.0, 447.0])
    """
    low, high = np.empty(len(expected)), np.empty(len(expected))
    _fill_range(np.ascontiguousarray(expected, dtype=np.float64), dispersion, low, high)
    return low, high


@compiled
def _fill_range(expected: FloatArray, dispersion: float, low: FloatArray, high: FloatArray) -> None:
    for at in range(expected.shape[0]):
        mean = expected[at]
        if mean > LARGE_MEAN:
            spread = NORMAL_QUANTILE * math.sqrt(mean * dispersion)
            low[at], high[at] = max(math.floor(mean - spread), 0.0), math.ceil(mean + spread)
            continue
        excess = max(dispersion - 1.0, 1e-9)
        # Of k entries: a product of these factors, which for no excess is Poisson's.
        chance = math.exp(-mean / excess * math.log1p(excess))
        total, count = chance, 0
        low[at] = 0.0 if total >= LOW_SHARE else -1.0
        while total < HIGH_SHARE:
            chance *= (mean + count * excess) / ((count + 1) * (1.0 + excess))
            count += 1
            total += chance
            if low[at] < 0.0 and total >= LOW_SHARE:
                low[at] = count
        high[at] = count
