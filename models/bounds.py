"""What no policy can beat: by knowing the rates, and by knowing every publication.

Two yardsticks for any trace. The *rate bound* is what perfect knowledge of the intensity
gives, relative to a timer at equal polls; only knowledge finer than the hour (habits
within it, bursts, signals) goes below. The *clairvoyant* knows all publications in
advance and polls right at some of them: the rest is chance, and no forecast enters it.
"""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from models.compiled import compiled
from models.errors import InsufficientDataError
from models.intensity.state import FloatArray, new_state
from models.intensity.weekly import fill_profile, overall_per_hour
from models.week import HOUR_S, HOURS_PER_WEEK, hour_of_week, offset_at


def rate_bound(rates: FloatArray) -> float:
    """Return the least mean lag over a timer's at equal polls, knowing only the rates.

    ``(sum sqrt(rate))^2 / (cells * sum rate)`` over all sources and hours: the optimum
    polls with a density proportional to the square root of the intensity. At most 1, by
    Cauchy and Schwarz, and the same at every budget.

    Parameters
    ----------
    rates
        Entries per hour, >= 0; a row per source, a column per stretch of equal length.

    Raises
    ------
    InsufficientDataError
        If no rate is above zero.

    Examples
    --------
    >>> rate_bound(np.array([[2.0, 2.0]])), round(rate_bound(np.array([[1.0], [9.0]])), 3)
    (1.0, 0.8)
    """
    total = float(rates.sum())
    if total <= 0.0:
        raise InsufficientDataError(1, 0)
    return min(float(np.sqrt(rates).sum() ** 2 / (rates.size * total)), 1.0)


def week_profile(
    stamps_s: FloatArray, start_s: float, end_s: float, zone: FloatArray, *, is_raw: bool = False
) -> FloatArray:
    """Return the rate of each hour of the week over a stretch, entries per hour.

    A raw profile takes chance for habit: with few weeks its bound is too low. So each
    hour is shrunk as the estimator does it (`models.intensity.weekly`), but without
    forgetting.

    Parameters
    ----------
    stamps_s
        Publication times, rising; those outside the stretch are left out.
    zone
        As `models.week.zone_table` returns it.
    is_raw
        Do not shrink.

    Returns
    -------
    ndarray
        Shape ``(168,)``, Monday 00:00 local time first.
    """
    begin, end = np.searchsorted(stamps_s, [start_s, end_s])
    stamps = np.ascontiguousarray(stamps_s[begin:end])
    state = new_state(start_s, prior_per_hour=len(stamps) * HOUR_S / (end_s - start_s))
    state["counts"] = _count_by_hour(stamps, zone)
    minutes = np.arange(start_s + 30.0, end_s, 60.0)
    state["exposure_h"] = np.maximum(_count_by_hour(minutes, zone) / 60.0, 1e-6)
    if is_raw:
        return np.asarray(state["counts"] / state["exposure_h"], dtype=np.float64)
    profile = np.empty(HOURS_PER_WEEK)
    fill_profile(state, overall_per_hour(state), profile)
    return profile


def spread_profile(
    profile: FloatArray, start_s: float, end_s: float, zone: FloatArray
) -> FloatArray:
    """Return a week's profile laid over a stretch: entries per second, hour by hour in UTC."""
    hours = np.arange(start_s // HOUR_S, end_s // HOUR_S + 1) * HOUR_S + HOUR_S / 2
    return np.asarray(profile[_hours_of_week(hours, zone)] / HOUR_S, dtype=np.float64)


@compiled
def _hours_of_week(stamps: FloatArray, zone: FloatArray) -> npt.NDArray[np.int64]:
    hours = np.empty(stamps.shape[0], dtype=np.int64)
    for at in range(stamps.shape[0]):
        hours[at] = hour_of_week(stamps[at] + offset_at(zone, stamps[at]))
    return hours


def _count_by_hour(stamps: FloatArray, zone: FloatArray) -> npt.NDArray[np.int64]:
    return np.bincount(_hours_of_week(stamps, zone), minlength=HOURS_PER_WEEK)


def clairvoyant_lags(stamps_s: FloatArray, price: float) -> tuple[int, FloatArray]:
    """Return the polls and the lags of whoever knows all publications in advance.

    The cheapest grouping of entries, each group fetched at its last entry: waiting plus
    `price` for each poll. With as many polls as distinct moments of publication nobody
    waits at all, so this bounds only budgets below that.

    Parameters
    ----------
    stamps_s
        Publication times, rising.
    price
        Entry-seconds that a poll must save.

    Returns
    -------
    tuple
        The number of polls, and a lag per entry in seconds.

    Notes
    -----
    Takes O(n): for the last entry *j* of a group, the best first one is read off the
    lower envelope of lines in the time of *j*.

    Examples
    --------
    >>> polls, lags = clairvoyant_lags(np.array([0.0, 10.0, 500.0]), price=100.0)
    >>> polls, lags.tolist()
    (2, [10.0, 0.0, 0.0])
    """
    if len(stamps_s) == 0:
        return 0, np.empty(0)
    starts = _group(np.ascontiguousarray(stamps_s - stamps_s[0]), price)
    ends = np.append(starts[1:], len(stamps_s)) - 1
    return len(starts), np.repeat(stamps_s[ends], ends - starts + 1) - stamps_s


@compiled
def _group(times: FloatArray, price: float) -> npt.NDArray[np.int64]:
    """Return the first entry of each group of the cheapest grouping."""
    n = times.shape[0]
    # Line i: cost of all before entry i, plus the price, for a group of entries i to j
    # whose waiting at time t of j is (j + 1 - i) t minus the sum of its times.
    cost, summed = np.zeros(n + 1), np.zeros(n + 1)
    slope, height = np.empty(n), np.empty(n)
    first, best_first = np.empty(n, dtype=np.int64), np.empty(n + 1, dtype=np.int64)
    head = tail = 0
    for j in range(n):
        summed[j + 1] = summed[j] + times[j]
        new_slope, new_height = -float(j), cost[j] + summed[j] + price
        while tail - head >= 2:
            one, two = tail - 2, tail - 1
            left = (height[two] - height[one]) * (slope[one] - new_slope)
            if (new_height - height[one]) * (slope[one] - slope[two]) > left:
                break
            tail -= 1
        slope[tail], height[tail], first[tail] = new_slope, new_height, j
        tail += 1
        while tail - head >= 2 and (
            height[head + 1] + slope[head + 1] * times[j] <= height[head] + slope[head] * times[j]
        ):
            head += 1
        lowest = height[head] + slope[head] * times[j]
        cost[j + 1] = (j + 1) * times[j] - summed[j + 1] + lowest
        best_first[j + 1] = first[head]
    starts, at = np.empty(n, dtype=np.int64), n
    n_groups = 0
    while at > 0:
        at = best_first[at]
        starts[n_groups] = at
        n_groups += 1
    return starts[:n_groups][::-1]
