"""Poll when a number of entries is expected: the rule of the paper's EMA and Holt-Winters.

With either forecast the next poll is the one expected to bring `wanted` entries. Kept
because people ask for it, and as the measure of the others: in theory any rule of this
kind is no better than a timer, and only floor and ceiling save it in practice.
"""

from __future__ import annotations

from models.compiled import compiled
from models.intensity.state import FloatArray
from models.week import HOUR_S


@compiled
def next_by_count(
    now_s: float,
    rates_per_s: FloatArray,
    first_hour_ends_s: float,
    wanted: float,
    ceiling_s: float,
) -> float:
    """Return when `wanted` entries are expected to have come out, seconds since 1970.

    Parameters
    ----------
    now_s
        The last poll.
    rates_per_s, first_hour_ends_s
        Expected rates hour by hour, and when the hour under way ends.
    wanted
        Entries a poll should find.
    ceiling_s
        Longest wait.
    """
    expected, at, ends, hour = 0.0, now_s, first_hour_ends_s, 0
    while at < now_s + ceiling_s:
        rate = rates_per_s[min(hour, rates_per_s.shape[0] - 1)]
        length = min(ends, now_s + ceiling_s) - at
        if rate > 0.0 and expected + rate * length >= wanted:
            return float(at + (wanted - expected) / rate)
        expected += rate * length
        at += length
        ends = at + HOUR_S
        hour += 1
    return now_s + ceiling_s
