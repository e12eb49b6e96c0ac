"""The exponential moving average of hourly counts (formula 7 of the loading paper).

``EMA_t = alpha * y_t + (1 - alpha) * EMA_{t-1}`` over whole hours. It knows no time of
day: it follows the morning rise hours late, and no smoothing constant cures that.

References
----------
A. V. Ovsyannikov and A. A. Smirnov, Izvestiya TulGU, Technical Sciences, 2022 no. 2.
"""

from __future__ import annotations

from models.compiled import compiled
from models.intensity.state import FloatArray, State
from models.week import HOUR_S


@compiled
def learn_hour_ema(state: State, count: float) -> None:
    """Take one completed hour into the average."""
    state.ema_per_hour = state.ema_alpha * count + (1.0 - state.ema_alpha) * state.ema_per_hour


def begin_ema(state: State, counts: FloatArray) -> None:
    """Set the average from the counts of the first hours."""
    state["ema_per_hour"] = counts.mean()


@compiled
def fill_ema(state: State, rates_per_s: FloatArray) -> None:
    """Write the same rate for all hours ahead, entries per second."""
    for ahead in range(rates_per_s.shape[0]):
        rates_per_s[ahead] = max(state.ema_per_hour, 0.0) / HOUR_S
