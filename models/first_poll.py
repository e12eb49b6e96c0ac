"""When a source that is new to the warehouse is polled first."""

from __future__ import annotations

import hashlib
from datetime import datetime, timedelta

# One server shows about 6 polls a second at most: a new source every two seconds leaves
# room for those already being watched.
SECONDS_PER_SOURCE = 2.0


def choose_first_poll(source: str, n_new: int, interval_s: float, now: datetime) -> datetime:
    """Return the time of a new source's first poll.

    New sources are spread over a span of two seconds each, but no longer than the
    source's own interval: one new source is polled at once, an import of hundreds does
    not start as a burst. The place in the span follows from the source's name alone.

    Parameters
    ----------
    source
        Short name of the source.
    n_new
        How many sources are new at the same time, >= 1.
    interval_s
        The interval the catalogue asks for, in seconds.
    now
        The moment they were added.

    Examples
    --------
    >>> from datetime import UTC
    >>> now = datetime(2026, 3, 1, tzinfo=UTC)
    >>> first = choose_first_poll("daily", 1, 600.0, now)
    >>> now <= first < now + timedelta(seconds=2)
    True
    >>> last = max(choose_first_poll(f"s{i}", 450, 600.0, now) for i in range(450))
    >>> timedelta(minutes=9) < last - now < timedelta(minutes=10)
    True
    """
    span_s = min(SECONDS_PER_SOURCE * n_new, interval_s)
    digest = hashlib.sha256(source.encode()).digest()
    share = int.from_bytes(digest[:8], "big") / 2**64
    return now + timedelta(seconds=share * span_s)
