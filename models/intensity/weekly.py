"""The Gamma-Poisson week: a rate for each hour of the week, shrunk towards its like.

Entries of hour-of-week *b* are Poisson with an unknown rate. Its prior is the same hour
pooled over workdays (or weekend days); the prior of that is the pooled hour together
with its neighbours; and the prior of that is the overall rate, or, on weekends, the
workday's hour scaled to how busy weekends are. A week of history then is enough: raw bins
would need ten. Priors are worth a number of *entries*, since chance is measured in
entries: a slow source leans on its like for months, a busy one stands on its own in days.
A *level* with a short memory follows days that are busier or quieter than the week says.
"""

from __future__ import annotations

import numpy as np

from models.compiled import compiled
from models.intensity.state import FloatArray, State
from models.week import HOUR_S, HOURS_PER_WEEK, hour_of_week, next_hour, offset_at

GUESS_H = 6.0
"""Hours of watching that the first guess at the rate is worth."""

NEIGHBOUR = 0.5
"""Weight of the hours before and after, where an hour is smoothed."""

SMOOTH_PRIOR = 1.0
"""Entries that the prior is worth against an hour smoothed over its neighbours."""

HOUR_PRIOR = 4.0
"""Entries that the smoothed hour is worth against the hour of the day itself."""

BIN_PRIOR = 20.0
"""Entries that the hour of the day is worth against one hour of the week: hardly any
source has a Tuesday morning of its own."""

WEEKEND_PRIOR = 5.0
"""Entries that "as on workdays" is worth against how busy weekends have been."""

WORKDAYS, WEEKEND = (0, 5), (5, 7)
"""First day, and the day after the last."""

PROFILE_HALF_LIFE_S = 8.0 * 7 * 86_400.0
"""The profile forgets half in eight weeks: habits change with seasons and staff."""

LEVEL_HALF_LIFE_S = 86_400.0
"""The level forgets half in a day: a doubling, or the end of a silence, is soon followed."""

LEVEL_PRIOR = 9.0
"""Entries that "as usual" is worth against what was seen lately."""

FEW_HOURS = 12
"""Up to so many hours ahead, each is reckoned alone; of more, the whole week at once."""

WEIGHT_LIMIT = 1e4
"""Newer observations weigh more; past this all are scaled down, to keep single precision."""


@compiled
def _total(values: FloatArray, first: int, last: int) -> float:
    """Return a sum over hours, a multiple of four: four sums do not wait for each other."""
    one = two = three = four = 0.0
    for at in range(first, last, 4):
        one += values[at]
        two += values[at + 1]
        three += values[at + 2]
        four += values[at + 3]
    return (one + two) + (three + four)


@compiled
def overall_per_hour(state: State) -> float:
    """Return the source's rate over all hours, entries per hour."""
    seen = _total(state.counts, 0, HOURS_PER_WEEK)
    watched_h = _total(state.exposure_h, 0, HOURS_PER_WEEK)
    guess_h = GUESS_H * state.weight
    return float((seen + guess_h * state.prior_per_hour) / (watched_h + guess_h))


@compiled
def profile_per_hour(state: State, hour: int, overall: float) -> float:
    """Return the usual rate in one hour of the week, entries per hour, without the level."""
    usual = _hour_of_day_rate(state, hour % 24, WORKDAYS, overall)
    if hour >= 24 * WEEKEND[0]:
        usual *= _weekend_share(state, overall)
        usual = _hour_of_day_rate(state, hour % 24, WEEKEND, usual)
    return _bin_rate(state, hour, usual)


@compiled
def fill_profile(state: State, overall: float, per_hour: FloatArray) -> None:
    """Write `profile_per_hour` of all hours of the week. Shape ``(168,)``."""
    share = _weekend_share(state, overall)
    for hour_of_day in range(24):
        usual = _hour_of_day_rate(state, hour_of_day, WORKDAYS, overall)
        for day in range(WORKDAYS[0], WORKDAYS[1]):
            hour = 24 * day + hour_of_day
            per_hour[hour] = _bin_rate(state, hour, usual)
        usual = _hour_of_day_rate(state, hour_of_day, WEEKEND, usual * share)
        for day in range(WEEKEND[0], WEEKEND[1]):
            hour = 24 * day + hour_of_day
            per_hour[hour] = _bin_rate(state, hour, usual)


@compiled
def _bin_rate(state: State, hour: int, usual: float) -> float:
    prior = BIN_PRIOR * state.weight
    return float((state.counts[hour] + prior) / (state.exposure_h[hour] + prior / usual))


@compiled
def _hour_of_day_rate(state: State, hour: int, days: tuple[int, int], usual: float) -> float:
    """Return the rate of an hour of the day over some days of the week."""
    seen = watched_h = near_seen = near_watched_h = 0.0
    before, after = (hour + 23) % 24, (hour + 1) % 24
    for day in range(days[0], days[1]):
        seen += state.counts[24 * day + hour]
        watched_h += state.exposure_h[24 * day + hour]
        near_seen += state.counts[24 * day + before] + state.counts[24 * day + after]
        near_watched_h += state.exposure_h[24 * day + before] + state.exposure_h[24 * day + after]
    prior = SMOOTH_PRIOR * state.weight
    smooth = (seen + NEIGHBOUR * near_seen + prior) / (
        watched_h + NEIGHBOUR * near_watched_h + prior / usual
    )
    prior = HOUR_PRIOR * state.weight
    return float((seen + prior) / (watched_h + prior / smooth))


@compiled
def _weekend_share(state: State, overall: float) -> float:
    """Return how busy an hour of a weekend is over one of a workday."""
    first, last = 24 * WEEKEND[0], HOURS_PER_WEEK
    seen, watched_h = _total(state.counts, 0, first), _total(state.exposure_h, 0, first)
    weekend_seen = _total(state.counts, first, last)
    weekend_watched_h = _total(state.exposure_h, first, last)
    prior = WEEKEND_PRIOR * state.weight
    on_workdays = (seen + prior) / (watched_h + prior / overall)
    return float((weekend_seen + prior) / (weekend_watched_h * on_workdays + prior))


@compiled
def level_of(state: State) -> float:
    """Return how busy the source is lately, 1 = as the profile says."""
    return float((state.level_seen + LEVEL_PRIOR) / (state.level_expected + LEVEL_PRIOR))


@compiled
def observe_weekly(
    state: State, since_s: float, until_s: float, zone: FloatArray, stamps: FloatArray
) -> None:
    """Learn from one gap that polls covered: the hours watched, and the entries in them.

    A long gap is taken hour by hour: what it says of the profile must not be held
    against the profile of before as if it were all of it today's level.

    Parameters
    ----------
    since_s, until_s
        The gap, seconds since 1970.
    zone
        As `models.week.zone_table` returns it.
    stamps
        When the entries of the gap were published, rising, seconds since 1970.
    """
    at, since = 0, since_s
    while since < until_s:
        until = min(since + HOUR_S, until_s)
        begin = at
        while at < stamps.shape[0] and (stamps[at] <= until or until == until_s):
            at += 1
        _learn(state, since, until, zone, stamps[begin:at])
        since = until


@compiled
def _learn(
    state: State, since_s: float, until_s: float, zone: FloatArray, stamps: FloatArray
) -> None:
    lasted_s = until_s - since_s
    state.weight *= 2.0 ** (lasted_s / PROFILE_HALF_LIFE_S)
    if state.weight > WEIGHT_LIMIT:
        for b in range(HOURS_PER_WEEK):
            state.counts[b] /= state.weight
            state.exposure_h[b] /= state.weight
        state.weight = 1.0
    overall, expected = overall_per_hour(state), 0.0
    at = since_s
    while at < until_s:
        local = at + offset_at(zone, at)
        hour, end = hour_of_week(local), min(at + next_hour(local) - local, until_s)
        watched_h = (end - at) / HOUR_S
        expected += profile_per_hour(state, hour, overall) * watched_h
        state.exposure_h[hour] += watched_h * state.weight
        at = end
    for stamp in stamps:
        state.counts[hour_of_week(stamp + offset_at(zone, stamp))] += state.weight
    kept = 0.5 ** (lasted_s / LEVEL_HALF_LIFE_S)
    state.level_seen = state.level_seen * kept + len(stamps)
    state.level_expected = state.level_expected * kept + expected


@compiled
def fill_weekly(state: State, now_s: float, zone: FloatArray, rates_per_s: FloatArray) -> None:
    """Write the expected rates of the hour under way and those after it, entries per second."""
    level, overall = level_of(state), overall_per_hour(state)
    is_whole = rates_per_s.shape[0] > FEW_HOURS
    per_hour = np.empty(HOURS_PER_WEEK if is_whole else 0)
    if is_whole:
        fill_profile(state, overall, per_hour)
    local = now_s + offset_at(zone, now_s)
    start = next_hour(local) - HOUR_S - (local - now_s)
    for ahead in range(rates_per_s.shape[0]):
        at = start + ahead * HOUR_S
        hour = hour_of_week(at + offset_at(zone, max(at, now_s)))
        usual = per_hour[hour] if is_whole else profile_per_hour(state, hour, overall)
        rates_per_s[ahead] = level * usual / HOUR_S
