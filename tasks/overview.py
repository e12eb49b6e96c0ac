"""Read what the status page shows: a few questions, each about the last hours or days."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from datetime import UTC, datetime, timedelta
from typing import Any, TypeVar

from models.overview import (
    DAYS_SHOWN,
    HOURS_SHOWN,
    Drift,
    DriftCheck,
    ForecastHour,
    HabitModel,
    Held,
    Hit,
    KnownArticle,
    LagHour,
    LagOfSource,
    LevelDay,
    Loss,
    Notice,
    Overview,
    PollHour,
    SourceFacts,
    SuspiciousPage,
    VerdictDay,
)
from models.records import BudgetReport, RecentPoll
from tasks.duck.database import literal
from tasks.warehouse_reader import WarehouseReader

T = TypeVar("T")

POLLS_SHOWN, ARTICLES_SHOWN, HITS_SHOWN = 30, 20, 60
MOST_NOTICES, MOST_LOSSES = 200, 200


def read_overview(reader: WarehouseReader, now: datetime) -> Overview:
    """Return what the first page shows at `now`."""
    ask = _Asking(reader, now)
    return Overview(
        now=now,
        lag_hours=ask(_LAG_HOURS, LagHour),
        poll_hours=ask(_POLL_HOURS, PollHour),
        forecast_hours=ask(_FORECAST_HOURS, ForecastHour),
        lags=ask(_LAGS, LagOfSource),
        budgets=ask(_BUDGETS, BudgetReport),
        losses=ask(_LOSSES, Loss),
        drifts=ask(_DRIFTS, Drift),
        checks=ask(_CHECKS, DriftCheck),
        verdict_days=ask(_VERDICT_DAYS, VerdictDay),
        held=ask(_HELD, Held),
        level_days=ask(_LEVEL_DAYS, LevelDay),
        hits=ask(_HITS, Hit),
        notices=ask(_NOTICES, Notice),
    )


def read_source_facts(reader: WarehouseReader, source: str, now: datetime) -> SourceFacts:
    """Return what the page of a source shows at `now`; nothing of one that is not known."""
    ask = _Asking(reader, now, source)
    polls = ask(_POLLS, lambda *row: row)
    models = ask(_MODEL, HabitModel)
    return SourceFacts(
        polls=tuple(RecentPoll(*row[:-1]) for row in polls),
        decisions=tuple(row[-1] for row in polls),
        lag_hours=ask(_LAG_HOURS, LagHour),
        forecast_hours=ask(_FORECAST_HOURS, ForecastHour),
        articles=ask(_ARTICLES, KnownArticle),
        losses=ask(_LOSSES, Loss),
        drifts=ask(_DRIFTS, Drift),
        checks=ask(_ALL_CHECKS, DriftCheck),
        suspicious=ask(_SUSPICIOUS, SuspiciousPage),
        verdict_days=ask(_VERDICT_DAYS, VerdictDay),
        hits=ask(_HITS, Hit),
        notices=ask(_NOTICES, Notice),
        model=models[0] if models else None,
    )


class _Asking:
    """Asks questions about one moment, of one source or of all.

    In a question ``@now``, ``@hours`` and ``@days`` are that moment and the beginnings of
    what is shown; ``@ours`` is true for the rows of the source.
    """

    def __init__(self, reader: WarehouseReader, now: datetime, source: str | None = None) -> None:
        self._reader = reader
        hour_at = now.replace(minute=0, second=0, microsecond=0)
        day_at = hour_at.replace(hour=0)
        self._words = {
            "@ours": "true" if source is None else f"source = {literal(source)}",
            "@now": _moment(now),
            "@hours": _moment(hour_at - timedelta(hours=HOURS_SHOWN - 1)),
            "@days": _moment(day_at - timedelta(days=DAYS_SHOWN - 1)),
            "@ahead": _moment(hour_at + timedelta(hours=12 if source else 6)),
        }

    def __call__(self, sql: str, record: Callable[..., T]) -> tuple[T, ...]:
        for word, value in self._words.items():
            sql = sql.replace(word, value)
        rows: Sequence[Sequence[Any]] = self._reader.query(sql).rows
        return tuple(record(*row) for row in rows)


def _moment(at: datetime) -> str:
    return f"TIMESTAMPTZ '{at.astimezone(UTC).isoformat()}'"


_LAG_HOURS = """
SELECT date_trunc('hour', stored_at) AS hour_at, count(*), median(publication_lag_s),
       quantile_cont(publication_lag_s, 0.95)
FROM articles
WHERE stored_at >= @hours AND stored_at <= @now AND NOT is_backlog AND @ours
GROUP BY hour_at ORDER BY hour_at
"""

_POLL_HOURS = """
SELECT date_trunc('hour', started_at) AS hour_at, count(*),
       count(*) FILTER (outcome IN ('failed', 'refused')),
       (sum(index_bytes + article_bytes) / 1e6)::DOUBLE
FROM polls
WHERE started_at >= @hours AND started_at <= @now AND @ours
GROUP BY hour_at ORDER BY hour_at
"""

# An hour counts for a source from its first poll on; of several forecasts of an hour the
# last one made before it began counts, as in the view forecast_vs_actual.
_FORECAST_HOURS = """
WITH told AS (
    SELECT source, hour_at, expected_entries, low, high
    FROM forecasts
    WHERE hour_at >= @hours AND hour_at <= @ahead AND made_at <= hour_at AND @ours
    QUALIFY row_number() OVER (PARTITION BY source, hour_at ORDER BY made_at DESC) = 1
),
came AS (
    SELECT source, date_trunc('hour', coalesce(published_at, first_seen_at)) AS hour_at,
           count(*) AS n
    FROM entries
    WHERE first_seen_at >= @hours AND coalesce(published_at, first_seen_at) >= @hours
    GROUP BY ALL
),
seen AS (SELECT source, min(started_at) AS from_at FROM polls GROUP BY source)
SELECT told.hour_at, sum(expected_entries),
       greatest(sum(expected_entries) - sqrt(sum(pow(expected_entries - low, 2))), 0),
       sum(expected_entries) + sqrt(sum(pow(high - expected_entries, 2))),
       CASE WHEN told.hour_at + INTERVAL 1 HOUR <= @now THEN sum(coalesce(n, 0))::BIGINT END,
       count(*) FILTER (coalesce(n, 0) BETWEEN low AND high), count(*)
FROM told
JOIN seen ON seen.source = told.source AND told.hour_at >= seen.from_at
LEFT JOIN came ON came.source = told.source AND came.hour_at = told.hour_at
GROUP BY told.hour_at ORDER BY told.hour_at
"""

_LAGS = """
SELECT source, count(*), median(publication_lag_s), quantile_cont(publication_lag_s, 0.95),
       avg(publication_lag_s)
FROM articles
WHERE stored_at > @now - INTERVAL 24 HOUR AND NOT is_backlog AND publication_lag_s IS NOT NULL
GROUP BY source ORDER BY source
"""

_BUDGETS = """
FROM budget WHERE reckoned_at >= @hours AND reckoned_at <= @now
QUALIFY row_number() OVER (
    PARTITION BY date_trunc('hour', reckoned_at) ORDER BY reckoned_at DESC
) = 1
ORDER BY reckoned_at
"""

_LOSSES = f"""
SELECT source, started_at,
       (SELECT max(finished_at) FROM polls AS earlier
        WHERE earlier.source = polls.source AND earlier.started_at < polls.started_at
            AND earlier.outcome NOT IN ('failed', 'refused')),
       entries_listed, entries_new
FROM polls
WHERE possible_loss AND started_at >= @days AND started_at <= @now AND @ours
ORDER BY started_at DESC LIMIT {MOST_LOSSES}
"""  # noqa: S608 - a number of ours

_DRIFTS = """
SELECT source, standing, since_at, reason FROM drift_states
WHERE standing IN ('layout', 'text') AND @ours ORDER BY standing DESC, since_at DESC
"""

_ALL_CHECKS = """
SELECT source, checked_at, any_value(n_reference), any_value(n_test), count(*),
       coalesce(string_agg(criterion, ', ' ORDER BY criterion) FILTER (fired), ''),
       bool_or(drifted)
FROM drift_checks
WHERE checked_at >= @days AND checked_at <= @now AND @ours
GROUP BY check_id, source, checked_at
ORDER BY checked_at DESC LIMIT 50
"""

_CHECKS = _ALL_CHECKS.replace(
    "ORDER BY checked_at DESC LIMIT 50",
    "QUALIFY row_number() OVER (PARTITION BY source ORDER BY checked_at DESC) = 1"
    " ORDER BY bool_or(drifted) DESC, checked_at DESC",
)

_VERDICT_DAYS = """
SELECT date_trunc('day', judged_at) AS day_at, count(*), count(*) FILTER (suspicious)
FROM page_verdicts
WHERE judged_at >= @days AND judged_at <= @now AND @ours
GROUP BY day_at ORDER BY day_at
"""

_HELD = """
SELECT source, count(*) AS n, max(changed_at) FROM articles WHERE quarantined
GROUP BY source ORDER BY n DESC, source
"""

_LEVEL_DAYS = """
SELECT date_trunc('day', hit_at) AS day_at, level, count(*) FROM rule_hits
WHERE hit_at >= @days AND hit_at <= @now
GROUP BY day_at, level ORDER BY day_at, level
"""

_HITS = f"""
WITH latest AS (
    FROM rule_hits
    WHERE level <= 2 AND muted IS NULL AND hit_at >= @days AND hit_at <= @now AND @ours
    ORDER BY hit_at DESC LIMIT {HITS_SHOWN}
)
SELECT hit_at, level, rule, latest.source, coalesce(title, ''), coalesce(url, ''), matched,
       coalesce(sentence, ''), coalesce(explanation, '')
FROM latest LEFT JOIN articles USING (article_id)
ORDER BY level, hit_at DESC
"""  # noqa: S608 - a number of ours

_NOTICES = f"""
SELECT notice_id, kind, subject, source, level, channel, raised_at, sent_at,
       coalesce(closed_at, acknowledged_at) AS over_at, error
FROM notices
WHERE (over_at IS NULL OR raised_at >= @now - INTERVAL 7 DAY) AND @ours
ORDER BY over_at IS NOT NULL, level, raised_at DESC LIMIT {MOST_NOTICES}
"""  # noqa: S608 - a number of ours

_POLLS = f"""
SELECT poll_id, started_at, finished_at, outcome, http_status, reason, entries_listed, entries_new,
       articles_stored, possible_loss, index_bytes, article_bytes, mean_lag_s, next_due_at,
       next_reason, decision::VARCHAR
FROM polls WHERE @ours ORDER BY started_at DESC LIMIT {POLLS_SHOWN}
"""  # noqa: S608 - a number of ours

_ARTICLES = f"""
SELECT published_at, stored_at, coalesce(title, ''), url, publication_lag_s, version, quarantined
FROM articles WHERE @ours ORDER BY stored_at DESC LIMIT {ARTICLES_SHOWN}
"""  # noqa: S608 - a number of ours

_SUSPICIOUS = """
SELECT judged_at, coalesce(url, ''), score, reason
FROM (FROM page_verdicts WHERE suspicious AND @ours ORDER BY judged_at DESC LIMIT 20) AS verdicts
LEFT JOIN pages USING (page_id)
ORDER BY judged_at DESC
"""

_MODEL = """
SELECT fitted_at, kind, policy, score, note FROM intensity_models
WHERE @ours ORDER BY fitted_at DESC LIMIT 1
"""
