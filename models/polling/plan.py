"""The ``plan`` policy: the price, and an eye on the clock.

Where editors publish on round minutes the intensity is spiky, and a rule that only
looks at what has accumulated polls right before the spike. This policy lays a grid over
the next few gaps and finds the cheapest series of polls by dynamic programming, waiting
plus price for each poll, then takes its first poll and plans anew after it.

References
----------
The lot-sizing recursion of H. M. Wagner and T. M. Whitin, "Dynamic Version of the
Economic Lot Size Model", Management Science 5(1), 1958, over a receding horizon.
"""

from __future__ import annotations

import math

import numpy as np
import numpy.typing as npt

from models.compiled import compiled
from models.intensity.state import FloatArray
from models.polling.price import next_by_price
from models.week import HOUR_S

HORIZON_GAPS = 3.2
"""How far ahead is planned, in gaps: the first poll hardly depends on the fourth."""

LONGEST_GAP = 2.2
"""Longest gap considered, in gaps of the price rule."""

FLAT = 1e-3
"""Where no minute stands out there is nothing to aim at, and the price rule is exact."""

GRID_S = (10.0, 20.0, 30.0, 60.0, 120.0, 300.0)
MOST_STEPS, MOST_STEPS_WITH_304S = 120.0, 40.0
"""The finest grid with at most this many steps a gap is taken."""


@compiled
def next_by_plan(
    now_s: float,
    rates_per_s: FloatArray,
    first_hour_ends_s: float,
    excess_per_s: float,
    branching: float,
    decay_s: float,
    price: float,
    empty_share: float,
    most_entries: float,
    ceiling_s: float,
    minutes: FloatArray,
    seconds: FloatArray,
    offset_s: float,
    lag_s: float,
) -> tuple[float, float, float]:
    """Return when to poll next, and the entries and the waiting expected by then.

    Parameters
    ----------
    now_s to ceiling_s
        As `models.polling.price.next_by_price`.
    minutes, seconds
        Shapes within the hour (60) and the minute (6), both of mean 1.
    offset_s
        The source's offset from UTC.
    lag_s
        Seconds between an entry's stamp and its appearance.
    """
    by_price, entries, waiting = next_by_price(
        now_s, rates_per_s, first_hour_ends_s, excess_per_s, branching, decay_s,
        price, empty_share, most_entries, ceiling_s,
    )  # fmt: skip
    gap_s = by_price - now_s
    is_flat = minutes.max() - minutes.min() < FLAT and seconds.max() - seconds.min() < FLAT
    if is_flat or gap_s >= 0.99 * ceiling_s or gap_s <= 2.0 * GRID_S[0] or entries >= most_entries:
        return by_price, entries, waiting
    most_steps = MOST_STEPS if empty_share >= 1.0 else MOST_STEPS_WITH_304S
    step_s = GRID_S[len(GRID_S) - 1]
    for grid in range(len(GRID_S) - 1, -1, -1):
        if gap_s / GRID_S[grid] <= most_steps:
            step_s = GRID_S[grid]
    n = int(HORIZON_GAPS * gap_s / step_s) + 2
    longest = int(LONGEST_GAP * gap_s / step_s) + 1
    # Grid points lie a lag behind round times: that is when what is due then shows.
    start_s = math.floor((now_s - lag_s) / step_s) * step_s + lag_s
    seen, moment = np.empty(n + 1), np.empty(n + 1)
    _accumulate(
        seen, moment, now_s, start_s, step_s, rates_per_s, first_hour_ends_s, excess_per_s,
        branching, decay_s, minutes, seconds, offset_s, lag_s,
    )  # fmt: skip
    if empty_share < 1.0:
        best = _first_poll_with_304s(
            seen, moment, start_s - now_s, step_s, longest, gap_s, price, empty_share
        )
    else:
        best = _first_poll(seen, moment, start_s - now_s, step_s, gap_s, price)
    while best > 1 and seen[best] > most_entries:
        best -= 1
    at = start_s - now_s + best * step_s
    return min(now_s + at, now_s + ceiling_s), seen[best], at * seen[best] - moment[best]


@compiled
def _accumulate(
    seen: FloatArray,
    moment: FloatArray,
    now_s: float,
    start_s: float,
    step_s: float,
    rates_per_s: FloatArray,
    first_hour_ends_s: float,
    excess_per_s: float,
    branching: float,
    decay_s: float,
    minutes: FloatArray,
    seconds: FloatArray,
    offset_s: float,
    lag_s: float,
) -> None:
    """Fill the integrals of the intensity, and of time times intensity, up to each point."""
    decay = (1.0 - branching) / decay_s
    cell_s = 10.0 if step_s < 60.0 else 60.0
    seen[0] = moment[0] = 0.0
    before = now_s
    for point in range(1, seen.shape[0]):
        at = start_s + point * step_s
        middle = 0.5 * (before + at)
        hour = 0 if middle < first_hour_ends_s else int((middle - first_hour_ends_s) / HOUR_S) + 1
        rate = rates_per_s[min(hour, rates_per_s.shape[0] - 1)]
        if branching > 0.0:
            rate += (excess_per_s - branching * rate) * math.exp(-decay * (middle - now_s))
        since = before - lag_s + offset_s
        found = rate * _shape(since, since + (at - before), minutes, seconds, cell_s)
        seen[point] = seen[point - 1] + found
        moment[point] = moment[point - 1] + found * (middle - now_s)
        before = at


@compiled
def _shape(
    since_s: float, until_s: float, minutes: FloatArray, seconds: FloatArray, cell_s: float
) -> float:
    """Return the integral of the shape within the hour over a stretch of local time.

    Cells of a minute leave the seconds out: their mean is 1.
    """
    total, at = 0.0, since_s
    while at < until_s - 1e-9:
        part = math.floor(at / cell_s + 1e-9)
        end = min((part + 1.0) * cell_s, until_s)
        if cell_s < 60.0:
            total += (end - at) * minutes[int(part // 6.0) % 60] * seconds[int(part) % 6]
        else:
            total += (end - at) * minutes[int(part) % 60]
        at = end
    return total


@compiled
def _first_poll(
    seen: FloatArray, moment: FloatArray, first_s: float, step_s: float, gap_s: float, price: float
) -> int:
    """Return the grid point of the first poll of the cheapest series over the horizon.

    The cost of going from point *i* to point *j* is a line in ``seen[i]`` whose slope
    falls with the time of *j*, so the best *j* for every *i* is read off the lower
    envelope of lines, each looked at once: the whole plan costs O(n).
    """
    last = seen.shape[0] - 1
    slope, height, target = np.empty(last), np.empty(last), np.empty(last, dtype=np.int64)
    head = tail = 0
    cost_after = 0.0
    choice = last
    end_s = first_s + last * step_s
    for point in range(last - 1, -1, -1):
        begun_s = first_s + point * step_s if point else 0.0
        if point + 1 < last:
            at_s = first_s + (point + 1) * step_s
            line = at_s * seen[point + 1] - moment[point + 1] + price + cost_after
            tail = _push(slope, height, target, head, tail, -at_s, line, point + 1)
        while head + 1 < tail and (
            height[head + 1] + slope[head + 1] * seen[point]
            <= height[head] + slope[head] * seen[point]
        ):
            head += 1
        # The last gap is cut off by the horizon: it is charged its part of a poll.
        part = min(1.0, (end_s - begun_s) / gap_s)
        lowest = end_s * (seen[last] - seen[point]) - moment[last] + price * part
        choice = last
        if head < tail and height[head] + slope[head] * seen[point] < lowest:
            lowest = height[head] + slope[head] * seen[point]
            choice = target[head]
        cost_after = lowest + moment[point]
    return int(choice)


@compiled
def _push(
    slope: FloatArray,
    height: FloatArray,
    target: npt.NDArray[np.int64],
    head: int,
    tail: int,
    new_slope: float,
    new_height: float,
    point: int,
) -> int:
    """Add a line, steeper than none before it, to the envelope; return its new end."""
    while tail - head >= 2:
        one, two = tail - 2, tail - 1
        left = (height[two] - height[one]) * (slope[one] - new_slope)
        right = (new_height - height[one]) * (slope[one] - slope[two])
        if right < left:
            break
        tail -= 1
    slope[tail], height[tail], target[tail] = new_slope, new_height, point
    return tail + 1


@compiled
def _first_poll_with_304s(
    seen: FloatArray,
    moment: FloatArray,
    first_s: float,
    step_s: float,
    longest: int,
    gap_s: float,
    price: float,
    empty_share: float,
) -> int:
    """Return the same where an empty poll is cheap: its price is no line, all are tried."""
    last = seen.shape[0] - 1
    cost = np.zeros(last + 1)
    choice = last
    for point in range(last - 1, -1, -1):
        lowest = math.inf
        begun_s = first_s + point * step_s if point else 0.0
        furthest = min(point + longest, last)
        for other in range(point + 1, furthest + 1):
            at_s = first_s + other * step_s
            found = seen[other] - seen[point]
            share = empty_share + (1.0 - empty_share) * (1.0 - math.exp(-found))
            if other == last:
                share *= min(1.0, (at_s - begun_s) / gap_s)
            waited = at_s * found - (moment[other] - moment[point])
            total = waited + price * share + cost[other]
            if total < lowest:
                lowest, choice = total, other
        cost[point] = lowest
    return int(choice)
