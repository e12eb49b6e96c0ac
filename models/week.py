"""Hours of the week in a publisher's own zone, clock changes included.

Editors live by local time: the morning rush moves by an hour against UTC when clocks
change. A zone enters the compiled loops as a short table of ``(from, offset)`` rows.
"""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from functools import lru_cache
from zoneinfo import ZoneInfo

import numpy as np
import numpy.typing as npt

from models.compiled import compiled

HOURS_PER_WEEK = 168
HOUR_S = 3600.0
WEEK_S = HOURS_PER_WEEK * HOUR_S

EPOCH_HOUR = 72
"""1970-01-01 was a Thursday: its first hour is hour 72 of a week that begins on Monday."""

FloatArray = npt.NDArray[np.float64]


@lru_cache(maxsize=4096)
def zone_table(timezone: str, first_year: int, last_year: int) -> FloatArray:
    """Return a zone's offsets from UTC as rows ``(from_s, offset_s)``, times rising.

    Parameters
    ----------
    timezone
        IANA name.
    first_year, last_year
        Years the table must cover.

    Returns
    -------
    ndarray
        Shape ``(n_changes + 1, 2)``. The first row holds from the beginning of time.

    Examples
    --------
    >>> zone_table("Asia/Kolkata", 2026, 2026)[:, 1].tolist()
    [19800.0]
    >>> len(zone_table("Europe/Berlin", 2026, 2026))
    3
    """
    zone = ZoneInfo(timezone)
    at, end = datetime(first_year, 1, 1, tzinfo=UTC), datetime(last_year + 1, 1, 1, tzinfo=UTC)
    rows = [(-np.inf, _offset_s(zone, at))]
    while at < end:
        following = at + timedelta(days=1)
        if _offset_s(zone, following) != rows[-1][1]:
            change = _find_change(zone, at, following)
            rows.append((change.timestamp(), _offset_s(zone, change)))
        at = following
    table = np.array(rows, dtype=np.float64)
    table.setflags(write=False)
    return table


def _offset_s(zone: ZoneInfo, at: datetime) -> float:
    offset = at.astimezone(zone).utcoffset()
    assert offset is not None
    return offset.total_seconds()


def _find_change(zone: ZoneInfo, before: datetime, after: datetime) -> datetime:
    """Return the first whole minute in ``(before, after]`` with the new offset."""
    low, high = 0, int((after - before) / timedelta(minutes=1))
    old = _offset_s(zone, before)
    while high - low > 1:
        middle = (low + high) // 2
        if _offset_s(zone, before + timedelta(minutes=middle)) == old:
            low = middle
        else:
            high = middle
    return before + timedelta(minutes=high)


@compiled
def offset_at(zone: FloatArray, at_s: float) -> float:
    """Return the zone's offset from UTC at `at_s`, in seconds."""
    row = zone.shape[0] - 1
    while row > 0 and zone[row, 0] > at_s:
        row -= 1
    return float(zone[row, 1])


@compiled
def hour_of_week(local_s: float) -> int:
    """Return the hour of the week, 0 = Monday 00:00, of a local time in seconds since 1970."""
    return int(local_s // HOUR_S + EPOCH_HOUR) % HOURS_PER_WEEK


@compiled
def next_hour(local_s: float) -> float:
    """Return the start of the next local hour, in local seconds."""
    return float((local_s // HOUR_S + 1.0) * HOUR_S)
