"""How other programs choose the next poll, written from their published rules.

They are measures to compare with, nothing else. Each function returns an interval in
seconds. What they see is the list a poll finds: the newest `window` entries.
"""

from __future__ import annotations

import math

from models.compiled import compiled
from models.intensity.state import FloatArray

DAY_S = 86_400.0
WEEK_S = 7 * DAY_S


@compiled
def nutch_interval(
    memory: FloatArray,
    found: int,
    now_s: float,
    up: float,
    down: float,
    sync: float,
    floor_s: float,
    ceiling_s: float,
) -> float:
    """Return the interval of Apache Nutch's adaptive fetch schedule.

    Unchanged pages wait longer by `up`, changed ones shorter by `down`; with a `sync`
    rate the next fetch is moved towards the moment the page last changed.

    Parameters
    ----------
    memory
        ``memory[0]`` the interval, ``memory[1]`` the last time the page was modified
        (the fetch that found it so). Changed in place.
    """
    interval = memory[0]
    if found > 0:
        interval *= 1.0 - down
        memory[1] = now_s
    else:
        interval *= 1.0 + up
    delta = now_s - memory[1]
    reference = now_s
    if sync > 0.0:
        interval = max(interval, delta)
        reference = now_s - sync * delta
    interval = min(max(interval, floor_s), ceiling_s)
    memory[0] = interval
    return float(reference + interval - now_s)


@compiled
def miniflux_interval(
    listed: FloatArray, now_s: float, factor: float, floor_s: float, ceiling_s: float
) -> float:
    """Return the interval of Miniflux's entry frequency: a week over the week's entries.

    The week's count is a week divided by the mean gap of the entries of the last week.
    """
    first = 0
    while first < listed.shape[0] and listed[first] < now_s - WEEK_S:
        first += 1
    recent = listed[first:]
    if recent.shape[0] < 2:
        return ceiling_s
    mean_gap = (recent[-1] - recent[0]) / (recent.shape[0] - 1)
    weekly = math.ceil(WEEK_S / mean_gap) if mean_gap > 0.0 else 10_080.0
    minutes = round(10_080.0 / (weekly * factor))
    return min(max(minutes * 60.0, floor_s), ceiling_s)


@compiled
def commafeed_interval(
    listed: FloatArray, now_s: float, factor: float, floor_s: float, ceiling_s: float
) -> float:
    """Return CommaFeed's empirical interval: half the mean gap of the listed entries.

    Sources silent for 7, 14 or 30 days get a quarter, half or all of the ceiling.
    """
    if listed.shape[0] < 2:
        return ceiling_s
    silent = now_s - listed[-1]
    if silent >= 30 * DAY_S:
        return ceiling_s
    if silent >= 14 * DAY_S:
        return ceiling_s / 2.0
    if silent >= 7 * DAY_S:
        return ceiling_s / 4.0
    mean_gap = (listed[-1] - listed[0]) / (listed.shape[0] - 1)
    return float(min(max(mean_gap * factor, floor_s), ceiling_s / 4.0))


@compiled
def mavsync_interval(
    listed: FloatArray, now_s: float, factor: float, floor_s: float, ceiling_s: float
) -> float:
    """Return Palladian's MAVSync: one mean gap after the newest entry, where that is ahead.

    Otherwise the mean gap reckoned up to now.
    """
    n = listed.shape[0]
    if n < 2:
        return ceiling_s
    gap = (listed[-1] - listed[0]) / (n - 1) * factor
    wait = listed[-1] + gap - now_s
    if floor_s <= wait <= ceiling_s:
        return float(wait)
    return float(min(max((now_s - listed[0]) / n * factor, floor_s), ceiling_s))
