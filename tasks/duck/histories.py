"""The past of some sources, as columns: what the nightly refit learns from.

A source of 26 weeks has thousands of entries, so rows become arrays in DuckDB and never
Python objects, and the polls that overlapped are not read at all: of them only the first
and the last matter, and the few between which something may have been lost.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable, Mapping, Sequence
from datetime import UTC, datetime

import numpy as np

from models.intensity.history import History, make_history
from models.intensity.state import FloatArray
from tasks.duck.database import literal

Columns = Mapping[str, FloatArray]

Query = Callable[[str], Columns]
"""Runs an SQL text and returns its columns, numbers all."""


def read_histories(
    query: Query, sources: Sequence[tuple[str, str]], since: datetime, until: datetime
) -> list[History]:
    """Return the history of each source that was polled, in the order asked for.

    Parameters
    ----------
    sources
        Names and IANA zones.
    since, until
        Polls before and after do not count, nor do their entries.
    """
    if not sources:
        return []
    columns = query(_statement([name for name, _ in sources], since, until))
    rows = _by_source(columns, len(sources))
    return [
        _history(name, timezone, found)
        for (name, timezone), found in zip(sources, rows, strict=True)
        if len(found)
    ]


def _by_source(columns: Columns, n_sources: int) -> list[FloatArray]:
    """Return the rows of each source, by kind and then by poll."""
    order = np.lexsort((columns["seen_s"], columns["kind"], columns["place"]))
    place = np.asarray(columns["place"])[order]
    edges = np.searchsorted(place, np.arange(n_sources + 1))
    names = ("kind", "stamp", "before_s", "seen_s")
    rows = np.column_stack([np.asarray(columns[name], dtype=np.float64)[order] for name in names])
    return [rows[first:last] for first, last in itertools.pairwise(edges)]


def _history(name: str, timezone: str, rows: FloatArray) -> History:
    def of_kind(kind: int) -> FloatArray:
        return rows[rows[:, 0] == kind, 1:]

    polled = of_kind(POLLED)
    return make_history(
        name,
        timezone,
        polled_s=(float(polled[0, 1]), float(polled[0, 2])),
        breaks_s=of_kind(BREAK)[:, 1:],
        entries_s=of_kind(ENTRY),
    )


POLLED, BREAK, ENTRY = 0, 1, 2
"""Kinds of rows: the first and last poll, polls that may have missed something, entries."""


def _statement(names: Sequence[str], since: datetime, until: datetime) -> str:
    """Return one statement for all that is needed, so that the polls are gone through once."""
    wanted = ", ".join(f"({at}, {literal(name)})" for at, name in enumerate(names))
    return f"""
WITH wanted (place, source) AS (VALUES {wanted}),
looks AS MATERIALIZED (
    SELECT place, poll_id, possible_loss, epoch(started_at) AS seen_s,
        lag(epoch(started_at)) OVER (PARTITION BY place ORDER BY started_at) AS before_s
    FROM polls JOIN wanted USING (source)
    WHERE outcome NOT IN ('failed', 'refused')
        AND started_at >= {_moment(since)} AND started_at <= {_moment(until)}
),
told AS (
    SELECT {POLLED} AS kind, place, NULL AS stamp, min(seen_s) AS before_s, max(seen_s) AS seen_s
    FROM looks GROUP BY place
    UNION ALL
    SELECT {BREAK}, place, NULL, before_s, seen_s
    FROM looks WHERE before_s IS NULL OR possible_loss
    UNION ALL
    SELECT {ENTRY}, place,
        CASE WHEN published_precision IS DISTINCT FROM 'day' THEN epoch(published_at) END,
        before_s, seen_s
    FROM looks JOIN entries USING (poll_id)
)
SELECT kind, place, coalesce(stamp, 'nan'::DOUBLE) AS stamp,
    coalesce(before_s, 'nan'::DOUBLE) AS before_s, seen_s
FROM told
"""  # noqa: S608 - names are quoted


def _moment(at: datetime) -> str:
    return f"TIMESTAMPTZ '{at.astimezone(UTC).isoformat()}'"
