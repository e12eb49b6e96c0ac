"""Additive Holt-Winters on hourly counts, with a daily and a weekly season and a trend.

Formula (8) of the loading paper, made whole: one step ahead ``y = a + b + D + W``;

- ``a <- alpha (y - D - W) + (1 - alpha) (a + b)``
- ``b <- beta (a - a_before) + (1 - beta) b``
- ``D <- gamma (y - a - W) + (1 - gamma) D``
- ``W <- omega (y - a - D) + (1 - omega) W``, with the new ``D``

Hours are hours of the week in the source's zone. The seasons keep a mean near zero
because the level takes what they share; forecasts are clipped at zero.

References
----------
A. V. Ovsyannikov and A. A. Smirnov, Izvestiya TulGU, Technical Sciences, 2022 no. 2;
J. W. Taylor, "Short-term electricity demand forecasting using double seasonal
exponential smoothing", JORS 54, 2003 (multiplicative; ours is additive).
"""

from __future__ import annotations

import numpy as np

from models.compiled import compiled
from models.intensity.state import FloatArray, State
from models.week import HOUR_S, HOURS_PER_WEEK, hour_of_week, next_hour, offset_at


@compiled
def learn_hour_holtwinters(state: State, hour: int, count: float) -> None:
    """Take the count of one completed hour of the week into level, trend and seasons."""
    day_hour = hour % 24
    level, trend = state.hw_level, state.hw_trend
    day, week = state.hw_day[day_hour], state.hw_week[hour]
    new_level = state.hw_alpha * (count - day - week) + (1.0 - state.hw_alpha) * (level + trend)
    state.hw_trend = state.hw_beta * (new_level - level) + (1.0 - state.hw_beta) * trend
    new_day = state.hw_gamma * (count - new_level - week) + (1.0 - state.hw_gamma) * day
    state.hw_week[hour] = (
        state.hw_omega * (count - new_level - new_day) + (1.0 - state.hw_omega) * week
    )
    state.hw_day[day_hour] = new_day
    state.hw_level = new_level


def begin_holtwinters(state: State, counts: FloatArray, first_hour: int) -> None:
    """Set level and seasons from the hourly counts of the first whole weeks.

    Parameters
    ----------
    counts
        One per hour, whole weeks.
    first_hour
        Hour of the week of the first of them.
    """
    level = counts.mean()
    weeks = np.roll(counts.reshape(-1, HOURS_PER_WEEK).mean(axis=0), first_hour)
    day = weeks.reshape(7, 24).mean(axis=0) - level
    state["hw_level"], state["hw_trend"] = level, 0.0
    state["hw_day"], state["hw_week"] = day, weeks - level - np.tile(day, 7)


@compiled
def fill_holtwinters(state: State, now_s: float, zone: FloatArray, rates_per_s: FloatArray) -> None:
    """Write the expected rates of the hour under way and those after it, entries per second."""
    local = now_s + offset_at(zone, now_s)
    start = next_hour(local) - HOUR_S - (local - now_s)
    for ahead in range(rates_per_s.shape[0]):
        at = start + ahead * HOUR_S
        hour = hour_of_week(at + offset_at(zone, max(at, now_s)))
        per_hour = (
            state.hw_level
            + (ahead + 1) * state.hw_trend
            + state.hw_day[hour % 24]
            + state.hw_week[hour]
        )
        rates_per_s[ahead] = max(per_hour, 0.0) / HOUR_S
