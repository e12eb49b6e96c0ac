"""Publication lag: how long an article was out before we had it."""

from __future__ import annotations

from datetime import datetime, timedelta

from models.records import Precision

# Clocks of publishers run a little fast; an hour ahead is a time zone mistaken for another.
CLOCK_ERROR = timedelta(minutes=5)


def publication_lag_s(
    published_at: datetime | None, stored_at: datetime, precision: Precision | None = None
) -> float | None:
    """Return the publication lag in seconds, None where it cannot be told.

    It cannot be told of an undated article, of one dated to the day only, and of one
    dated more than five minutes ahead of the moment we had it: such a date is wrong, by
    how much nobody knows. A date less far ahead is a clock running fast, and counts as 0.

    Parameters
    ----------
    published_at
        Declared publication time.
    stored_at
        When the article was stored.
    precision
        How exact `published_at` is; None counts as exact.

    Examples
    --------
    >>> from datetime import UTC
    >>> at = datetime(2026, 3, 1, 12, 0, tzinfo=UTC)
    >>> publication_lag_s(at, at + timedelta(minutes=7))
    420.0
    >>> publication_lag_s(at, at - timedelta(seconds=20))
    0.0
    >>> publication_lag_s(at, at - timedelta(hours=1)) is None
    True
    >>> publication_lag_s(at, at + timedelta(hours=9), "day") is None
    True
    """
    if published_at is None or precision == "day" or published_at > stored_at + CLOCK_ERROR:
        return None
    return max((stored_at - published_at).total_seconds(), 0.0)
