"""All estimators behind two calls: learn from a gap, and forecast.

Every estimator learns from every gap, whichever one drives the policy: it costs
microseconds, and lets the choice change at any time without a cold start.
"""

from __future__ import annotations

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
    _observe_hours(state, until_s, zone, stamps)
    state.updated_at = until_s


@compiled
def _observe_hours(state: State, until_s: float, zone: FloatArray, stamps: FloatArray) -> None:
    """Hand each hour that is over to the estimators that count by whole hours."""
    at = 0
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
