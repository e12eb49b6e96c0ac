"""What the warehouse holds, counted: the figures of a demo or a benchmark."""

from __future__ import annotations

from collections import defaultdict
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime

from tasks.warehouse_reader import WarehouseReader


@dataclass(frozen=True, slots=True)
class SourceTally:
    """The polls and articles of one source.

    Attributes
    ----------
    first_look_at
        When its list was first had. What left the list before that nobody could find.
    empty_polls
        Polls that found nothing new, 304s included.
    mean_lag_s
        Mean publication lag of what came out after the first look, in seconds.
    stored
        How often each article address is there.
    """

    first_look_at: datetime
    polls: int
    empty_polls: int
    failed_polls: int
    megabytes: float
    possible_losses: int
    mean_lag_s: float | None = None
    stored: dict[str, int] = field(default_factory=dict)


def read_tallies(reader: WarehouseReader) -> dict[str, SourceTally]:
    """Return the tally of every source that was polled."""
    stored: dict[str, dict[str, int]] = defaultdict(dict)
    for source, url, times in reader.query(
        "SELECT source, url, count(*) FROM articles GROUP BY ALL"
    ).rows:
        stored[source][url] = times
    lags = dict(reader.query(_LAGS).rows)
    return {
        source: replace(SourceTally(*figures), mean_lag_s=lags.get(source), stored=stored[source])
        for source, *figures in reader.query(_POLLS).rows
    }


def read_poll_ids(reader: WarehouseReader) -> set[str]:
    """Return the id of every poll on record."""
    return {poll_id for (poll_id,) in reader.query("SELECT poll_id FROM polls").rows}


def read_settled(reader: WarehouseReader, since: datetime) -> set[str]:
    """Return the sources that were polled well since `since` and owe no article."""
    moment = f"TIMESTAMPTZ '{since.astimezone(UTC).isoformat()}'"
    return {source for (source,) in reader.query(_SETTLED.replace("@since", moment)).rows}


_POLLS = """
SELECT source, coalesce(min(fetched_at), min(started_at)), count(*),
       count(*) FILTER (outcome IN ('empty', 'not_modified')),
       count(*) FILTER (outcome IN ('failed', 'refused')),
       (sum(index_bytes + article_bytes) / 1e6)::DOUBLE, count(*) FILTER (possible_loss)
FROM polls
LEFT JOIN (SELECT source, min(fetched_at) AS fetched_at FROM pages GROUP BY source) USING (source)
GROUP BY source
"""

_LAGS = """
SELECT articles.source, avg(publication_lag_s)
FROM articles
JOIN (SELECT source, min(started_at) AS first_at FROM polls GROUP BY source) AS firsts
    ON firsts.source = articles.source AND published_at >= first_at
GROUP BY articles.source
"""

_SETTLED = """
SELECT DISTINCT source FROM polls
WHERE outcome NOT IN ('failed', 'refused') AND started_at >= @since
    AND source NOT IN (SELECT source FROM pending_articles)
"""
