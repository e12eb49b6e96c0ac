"""The Gamma-Poisson week: a rate for each hour of the week, shrunk towards its like.

Entries of hour-of-week *b* are Poisson with an unknown rate. Its prior is the same hour
pooled over weekdays (or weekend days), whose prior is the overall rate, whose prior is
a guess. A week of history then is enough: raw bins would need ten. A *level* with a
short memory follows days that are busier or quieter than the week says.
"""

from __future__ import annotations

from models.compiled import compiled
from models.intensity.state import FloatArray, State
from models.week import HOUR_S, HOURS_PER_WEEK, hour_of_week, next_hour, offset_at

GUESS_H = 6.0
"""Hours of watching that the first guess at the rate is worth."""

DAY_PRIOR_H = 8.0
"""Hours that the overall rate is worth against a pooled hour of the day."""

BIN_PRIOR_H = 4.0
"""Hours (that is: weeks) that the pooled hour is worth against its hour of the week."""

PROFILE_HALF_LIFE_S = 8.0 * 7 * 86_400.0
"""The profile forgets half in eight weeks: habits change with seasons and staff."""

LEVEL_HALF_LIFE_S = 1.5 * 86_400.0
"""The level forgets half in a day and a half: a doubling is followed within the day."""

LEVEL_PRIOR = 6.0
"""Entries that "as usual" is worth against what was seen lately."""

WEIGHT_LIMIT = 1e4
"""Newer observations weigh more; past this all are scaled down, to keep single precision."""


@compiled
def overall_per_hour(state: State) -> float:
    """Return the source's rate over all hours, entries per hour."""
    seen, watched_h = 0.0, 0.0
    for b in range(HOURS_PER_WEEK):
        seen += state.counts[b]
        watched_h += state.exposure_h[b]
    guess_h = GUESS_H * state.weight
    return float((seen + guess_h * state.prior_per_hour) / (watched_h + guess_h))


@compiled
def profile_per_hour(state: State, hour: int, overall: float) -> float:
    """Return the usual rate in one hour of the week, entries per hour, without the level."""
    hour_of_day, day = hour % 24, hour // 24
    first, last = (0, 5) if day < 5 else (5, 7)
    seen, watched_h = 0.0, 0.0
    for d in range(first, last):
        seen += state.counts[d * 24 + hour_of_day]
        watched_h += state.exposure_h[d * 24 + hour_of_day]
    weight = state.weight
    pooled = (seen + DAY_PRIOR_H * weight * overall) / (watched_h + DAY_PRIOR_H * weight)
    prior_h = BIN_PRIOR_H * weight
    return float((state.counts[hour] + prior_h * pooled) / (state.exposure_h[hour] + prior_h))


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
    overall, level = overall_per_hour(state), level_of(state)
    local = now_s + offset_at(zone, now_s)
    start = next_hour(local) - HOUR_S - (local - now_s)
    for ahead in range(rates_per_s.shape[0]):
        at = start + ahead * HOUR_S
        hour = hour_of_week(at + offset_at(zone, max(at, now_s)))
        rates_per_s[ahead] = level * profile_per_hour(state, hour, overall) / HOUR_S
