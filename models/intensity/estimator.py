"""All estimators behind two calls: learn from a gap, and forecast.

Every estimator learns from every gap, whichever one drives the policy: it costs
microseconds, and lets the choice change at any time without a cold start.
"""

from __future__ import annotations

import numpy as np

from models.compiled import compiled
from models.intensity.burst import observe_burst
from models.intensity.ema import fill_ema, learn_hour_ema
from models.intensity.holtwinters import fill_holtwinters, learn_hour_holtwinters
from models.intensity.phase import observe_phase
from models.intensity.state import FloatArray, State
from models.intensity.weekly import fill_weekly, observe_weekly
from models.week import HOUR_S, hour_of_week, offset_at

WEEKLY, EMA, HOLT_WINTERS = 0, 1, 2
ESTIMATORS = {"weekly": WEEKLY, "ema": EMA, "holt-winters": HOLT_WINTERS}

UNWATCHED_S = 60.0
"""A gap that begins so much later than the one before it ended leaves a hole between them."""


@compiled
def observe(
    state: State, since_s: float, until_s: float, zone: FloatArray, stamps: FloatArray
) -> None:
    """Let every estimator learn from one gap that polls covered.

    Parameters
    ----------
    state
        Changed in place.
    since_s, until_s
        The gap, seconds since 1970.
    zone
        As `models.week.zone_table` returns it.
    stamps
        When its entries were published, rising (see `models.intensity.stamps`).
    """
    observe_weekly(state, since_s, until_s, zone, stamps)
    observe_burst(state, stamps)
    observe_phase(state, zone, stamps)
    _observe_hours(state, since_s, until_s, zone, stamps)
    state.updated_at = until_s


@compiled
def _observe_hours(
    state: State, since_s: float, until_s: float, zone: FloatArray, stamps: FloatArray
) -> None:
    """Hand each hour that is over to the estimators that count by whole hours.

    Hours that nobody watched whole are not handed on: they were not silent, but unseen.
    """
    at = 0
    if since_s > state.updated_at + UNWATCHED_S:
        state.hour_at = np.ceil(since_s / HOUR_S) * HOUR_S
        state.hour_count = 0.0
        while at < stamps.shape[0] and stamps[at] < state.hour_at:
            at += 1
    while state.hour_at + HOUR_S <= until_s:
        end = state.hour_at + HOUR_S
        while at < stamps.shape[0] and stamps[at] < end:
            state.hour_count += 1.0
            at += 1
        hour = hour_of_week(state.hour_at + offset_at(zone, state.hour_at))
        learn_hour_ema(state, state.hour_count)
        learn_hour_holtwinters(state, hour, state.hour_count)
        state.hour_at = end
        state.hour_count = 0.0
    state.hour_count += stamps.shape[0] - at


@compiled
def fill_rates(
    estimator: int, state: State, now_s: float, zone: FloatArray, rates_per_s: FloatArray
) -> None:
    """Write an estimator's expected rates for the hour under way and those after it.

    Parameters
    ----------
    estimator
        One of `ESTIMATORS`.
    rates_per_s
        Filled with entries per second, hour by hour in the source's zone.
    """
    if estimator == EMA:
        fill_ema(state, rates_per_s)
    elif estimator == HOLT_WINTERS:
        fill_holtwinters(state, now_s, zone, rates_per_s)
    else:
        fill_weekly(state, now_s, zone, rates_per_s)
