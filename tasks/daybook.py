"""Read what the report of a day is made from.

Each question reads the day and the days it is compared with, and no more: rows of facts
lie in the order in which they were stored, so DuckDB skips all others.
"""

from __future__ import annotations

from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from typing import Any, TypeVar

from models.daybook import (
    Coverage,
    DayCount,
    DayFacts,
    Down,
    HeldArticle,
    HourCount,
    LevelCount,
    OutletCount,
    RuleCount,
    Silent,
    Span,
    TagCount,
    Unsent,
)
from models.novelty import Title
from models.overview import DriftCheck, Hit, Loss
from models.stories import Headline
from tasks.duck.database import literal
from tasks.warehouse_reader import WarehouseReader

T = TypeVar("T")

MOST_TITLES = 500_000
"""Headlines that words are counted in: those of the day first."""


def read_day(reader: WarehouseReader, span: Span) -> DayFacts:
    """Return what is known of a day."""
    usual_days = _read_usual_days(reader, span)
    ask = _Asking(reader, span, max(usual_days, 1.0))
    return DayFacts(
        span,
        usual_days,
        days=ask(_DAYS, DayCount),
        levels=ask(_LEVELS, LevelCount),
        rules=ask(_RULES, RuleCount),
        tags=ask(_TAGS, TagCount),
        outlets=ask(_OUTLETS, OutletCount),
        hits=ask(_HITS, Hit),
        headlines=ask(_HEADLINES, Headline),
        titles=ask(_TITLES, Title),
        hours=ask(_HOURS, HourCount),
        coverage=ask(_COVERAGE, Coverage),
        losses=ask(_LOSSES, Loss),
        down=ask(_DOWN, Down),
        silent=ask(_SILENT, Silent),
        held=ask(_HELD, HeldArticle),
        checks=ask(_CHECKS, DriftCheck),
        unsent=ask(_UNSENT, Unsent),
    )


def _read_usual_days(reader: WarehouseReader, span: Span) -> float:
    """Return how many of the days before were watched: a young warehouse has few."""
    question = f"""
        SELECT min(started_at) FROM polls
        WHERE started_at >= {_moment(span.before)} AND started_at < {_moment(span.since)}
    """  # noqa: S608 - moments
    first_at: datetime | None = reader.query(question).rows[0][0]
    return (span.since - first_at) / timedelta(days=1) if first_at else 0.0


def read_bounds(reader: WarehouseReader) -> tuple[datetime, datetime] | None:
    """Return the moments of the first poll and the last, None where there was none."""
    first_at, last_at = reader.query("SELECT min(started_at), max(started_at) FROM polls").rows[0]
    return (first_at, last_at) if first_at else None


class _Asking:
    """Asks questions about one span.

    In a question ``@since`` and ``@until`` bound the day, ``@before`` begins the days it
    is compared with, ``@n`` of which were watched; ``@zone`` is its time zone.
    """

    def __init__(self, reader: WarehouseReader, span: Span, usual_days: float) -> None:
        self._reader = reader
        self._words = {
            "@since": _moment(span.since),
            "@until": _moment(span.until),
            "@before": _moment(span.before),
            "@early": _moment(span.before - timedelta(days=1)),
            "@n": str(usual_days),
            "@zone": literal(span.timezone),
        }

    def __call__(self, sql: str, record: Callable[..., T]) -> tuple[T, ...]:
        for word, value in self._words.items():
            sql = sql.replace(word, value)
        rows: Any = self._reader.query(sql).rows
        return tuple(record(*row) for row in rows)


def _moment(at: datetime) -> str:
    return f"TIMESTAMPTZ '{at.astimezone(UTC).isoformat()}'"


_DAYS = """
WITH stored AS (
    SELECT CAST(stored_at AT TIME ZONE @zone AS DATE) AS day, count(*) AS n_articles,
           count(DISTINCT source) AS n_sources,
           median(publication_lag_s) FILTER (NOT is_backlog) AS median_lag_s,
           quantile_cont(publication_lag_s, 0.95) FILTER (NOT is_backlog) AS p95_lag_s
    FROM articles WHERE stored_at >= @before AND stored_at < @until GROUP BY day
),
polled AS (
    SELECT CAST(started_at AT TIME ZONE @zone AS DATE) AS day, count(*) AS n_polls,
           count(*) FILTER (outcome IN ('failed', 'refused')) AS n_failed,
           (sum(index_bytes + article_bytes) / 1e6)::DOUBLE AS megabytes,
           count(*) FILTER (possible_loss) AS n_possible_losses
    FROM polls WHERE started_at >= @before AND started_at < @until GROUP BY day
)
SELECT day, coalesce(n_articles, 0), coalesce(n_sources, 0), median_lag_s, p95_lag_s,
       coalesce(n_polls, 0), coalesce(n_failed, 0), coalesce(megabytes, 0.0),
       coalesce(n_possible_losses, 0)
FROM polled FULL JOIN stored USING (day) ORDER BY day
"""

_LEVELS = """
SELECT level, count(*) FILTER (hit_at >= @since) AS n,
       count(DISTINCT article_id) FILTER (hit_at >= @since),
       count(DISTINCT source) FILTER (hit_at >= @since),
       count(*) FILTER (hit_at < @since) / @n
FROM rule_hits WHERE hit_at >= @before AND hit_at < @until AND muted IS DISTINCT FROM 'backlog'
GROUP BY level ORDER BY level
"""

_RULES = """
SELECT rule, min(level) AS urgency, count(*) FILTER (hit_at >= @since) AS n,
       count(DISTINCT source) FILTER (hit_at >= @since),
       count(*) FILTER (hit_at < @since) / @n
FROM rule_hits WHERE hit_at >= @before AND hit_at < @until AND muted IS DISTINCT FROM 'backlog'
GROUP BY rule HAVING n > 0 ORDER BY urgency, n DESC, rule
"""

_TAGS = """
WITH tagged AS (SELECT source, unnest(tags) AS tag FROM sources),
stored AS (
    SELECT tag, count(*) FILTER (stored_at >= @since) AS n,
           count(DISTINCT source) FILTER (stored_at >= @since) AS n_sources,
           count(*) FILTER (stored_at < @since) / @n AS usual,
           median(publication_lag_s) FILTER (stored_at >= @since AND NOT is_backlog) AS lag_s
    FROM articles JOIN tagged USING (source)
    WHERE stored_at >= @before AND stored_at < @until GROUP BY tag
),
hit AS (
    SELECT tag, count(*) AS n_hits FROM rule_hits JOIN tagged USING (source)
    WHERE hit_at >= @since AND hit_at < @until GROUP BY tag
)
SELECT tag, n, n_sources, usual, lag_s, coalesce(n_hits, 0)
FROM stored LEFT JOIN hit USING (tag) ORDER BY n DESC, tag
"""

_OUTLETS = """
WITH stored AS (
    SELECT source, count(*) FILTER (stored_at >= @since) AS n,
           count(*) FILTER (stored_at < @since) / @n AS usual,
           median(publication_lag_s) FILTER (stored_at >= @since AND NOT is_backlog) AS lag_s,
           quantile_cont(publication_lag_s, 0.95)
               FILTER (stored_at >= @since AND NOT is_backlog) AS p95_s
    FROM articles WHERE stored_at >= @before AND stored_at < @until GROUP BY source
),
hit AS (
    SELECT source, count(*) AS n_hits FROM rule_hits
    WHERE hit_at >= @since AND hit_at < @until GROUP BY source
),
edited AS (
    SELECT source, count(DISTINCT article_id) AS n_edited FROM article_versions
    WHERE version > 1 AND seen_at >= @since AND seen_at < @until GROUP BY source
)
SELECT source, coalesce(title, source), n, usual, lag_s, p95_s, coalesce(n_hits, 0),
       coalesce(n_edited, 0)
FROM stored LEFT JOIN sources USING (source) LEFT JOIN hit USING (source)
    LEFT JOIN edited USING (source)
ORDER BY n DESC, source
"""

_HITS = """
SELECT hit_at, level, rule, hits.source, coalesce(title, ''), coalesce(url, ''), matched,
       coalesce(sentence, ''), coalesce(explanation, '')
FROM (FROM rule_hits
      WHERE level <= 3 AND muted IS NULL AND hit_at >= @since AND hit_at < @until
      ORDER BY level, hit_at LIMIT 2000) AS hits
LEFT JOIN articles USING (article_id)
ORDER BY level, hit_at
"""

# What was listed before anybody looked says nothing of who was first.
_HEADLINES = """
SELECT source, title,
       CASE WHEN published_precision IN ('instant', 'minute')
                AND published_at BETWEEN first_seen_at - INTERVAL 2 DAY AND first_seen_at
            THEN published_at ELSE first_seen_at END,
       url
FROM entries
WHERE first_seen_at >= @since AND first_seen_at < @until AND NOT is_backlog AND title IS NOT NULL
"""

_TITLES = f"""
SELECT coalesce(entries.title, ''), entries.source, coalesce(language, ''), first_seen_at >= @since
FROM entries LEFT JOIN sources USING (source)
WHERE first_seen_at >= @before AND first_seen_at < @until AND NOT is_backlog
    AND entries.title IS NOT NULL
ORDER BY first_seen_at DESC LIMIT {MOST_TITLES}
"""  # noqa: S608 - a number of ours

_HOURS = """
WITH came AS (
    SELECT source, date_trunc('hour', first_seen_at) AS hour_at, count(*) AS n
    FROM entries
    WHERE first_seen_at >= @early AND first_seen_at < @until AND NOT is_backlog
    GROUP BY ALL
),
ours AS (FROM came WHERE hour_at >= @since AND n >= 3)
SELECT source, ours.hour_at, ours.n,
       coalesce(sum(came.n) FILTER (
           came.hour_at < @since AND hour(came.hour_at) = hour(ours.hour_at)), 0) / @n,
       coalesce(sum(came.n) FILTER (
           came.hour_at < ours.hour_at AND came.hour_at >= ours.hour_at - INTERVAL 24 HOUR), 0) / 24
FROM ours JOIN came USING (source)
GROUP BY source, ours.hour_at, ours.n
ORDER BY ours.hour_at, source
"""

_COVERAGE = """
SELECT entries.source, count(*) AS n_listed, count(article_id),
       count(*) FILTER (extraction = 'listing'), count(*) FILTER (quarantined),
       count(*) FILTER (article_id IS NULL AND attempts IS NOT NULL),
       count(*) FILTER (article_id IS NULL AND attempts IS NULL)
FROM entries
LEFT JOIN (SELECT entry_id, any_value(article_id) AS article_id,
                  any_value(extraction) AS extraction, bool_or(quarantined) AS quarantined
           FROM articles WHERE stored_at >= @since GROUP BY entry_id) USING (entry_id)
LEFT JOIN (SELECT entry_id, attempts FROM pending_articles) USING (entry_id)
WHERE first_seen_at >= @since AND first_seen_at < @until
GROUP BY entries.source ORDER BY n_listed DESC, entries.source
"""

_LOSSES = """
SELECT source, started_at,
       (SELECT max(finished_at) FROM polls AS earlier
        WHERE earlier.source = polls.source AND earlier.started_at < polls.started_at
            AND earlier.outcome NOT IN ('failed', 'refused')),
       entries_listed, entries_new
FROM polls WHERE possible_loss AND started_at >= @since AND started_at < @until
ORDER BY started_at
"""

_DOWN = """
WITH ours AS (
    SELECT source, started_at, outcome, reason FROM polls
    WHERE started_at >= @since AND started_at < @until
),
breaks AS (
    SELECT source,
           epoch(started_at) - epoch(coalesce(lag(started_at) OVER gaps, @since)) AS gap_s
    FROM ours WHERE outcome NOT IN ('failed', 'refused')
    WINDOW gaps AS (PARTITION BY source ORDER BY started_at)
    UNION ALL
    SELECT source,
           epoch(max(started_at)) - epoch(coalesce(
               max(started_at) FILTER (outcome NOT IN ('failed', 'refused')), @since))
    FROM ours GROUP BY source
),
longest AS (SELECT source, max(gap_s) AS longest_s FROM breaks GROUP BY source),
failed AS (
    SELECT source, count(*) AS n_polls,
           count(*) FILTER (outcome IN ('failed', 'refused')) AS n_failed,
           arg_max(reason, started_at) FILTER (outcome IN ('failed', 'refused')) AS last_reason
    FROM ours GROUP BY source
)
SELECT source, n_polls, n_failed, coalesce(longest_s, 0)::DOUBLE, coalesce(last_reason, ''),
       coalesce(state, '')
FROM failed LEFT JOIN longest USING (source) LEFT JOIN schedule USING (source)
WHERE n_failed > 0 ORDER BY n_failed / n_polls DESC, n_failed DESC, source
"""

_SILENT = """
SELECT source, count(*) FILTER (first_seen_at < @since) / @n AS usual, max(first_seen_at)
FROM entries WHERE first_seen_at >= @before AND first_seen_at < @until AND NOT is_backlog
GROUP BY source
HAVING count(*) FILTER (first_seen_at >= @since) = 0 AND usual >= 1
ORDER BY usual DESC, source
"""

_HELD = """
SELECT articles.source, coalesce(title, ''), url, stored_at, coalesce(reason, '')
FROM articles LEFT JOIN (
    SELECT page_id, arg_max(reason, judged_at) AS reason FROM page_verdicts
    WHERE judged_at >= @since GROUP BY page_id
) USING (page_id)
WHERE quarantined AND stored_at >= @since AND stored_at < @until
ORDER BY articles.source, stored_at LIMIT 5000
"""

_CHECKS = """
SELECT source, checked_at, any_value(n_reference), any_value(n_test), count(*),
       coalesce(string_agg(criterion, ', ' ORDER BY criterion) FILTER (fired), ''),
       bool_or(drifted)
FROM drift_checks WHERE checked_at >= @since AND checked_at < @until
GROUP BY check_id, source, checked_at
ORDER BY bool_or(drifted) DESC, checked_at
"""

_UNSENT = """
SELECT subject, level, channel, raised_at, error FROM notices
WHERE raised_at >= @since AND raised_at < @until AND sent_at IS NULL AND error IS NOT NULL
ORDER BY level, raised_at
"""
