"""Rows of the drift detectors: verdicts, states, references, checks, repairs, quarantine."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable, Sequence
from dataclasses import asdict
from datetime import datetime
from typing import Any

import duckdb

from models.batches import BatchResult
from models.records import (
    Article,
    DriftAlarm,
    DriftState,
    ExtractRules,
    Page,
    PageVerdict,
    PollResult,
    ReferenceModel,
    Repair,
    StoredPage,
)
from models.standing import AFTER_ALL
from tasks.duck.notices import close_state, raise_state
from tasks.duck.rows import Row, insert_rows, marks, storable
from tasks.settings import Settings

DRIFT = "drift"
"""Kind of the notices."""

Query = Callable[[str], Sequence[Row]]
"""Runs an SQL text and returns its rows, times in UTC."""


def store_drift(
    connection: duckdb.DuckDBPyConnection, result: PollResult, settings: Settings
) -> None:
    """Write what the detector made of a poll's pages; with an alarm, quarantine and notice."""
    insert_rows(connection, "page_verdicts", [_verdict_row(item) for item in result.verdicts])
    if result.drift is not None:
        write_state(connection, result.drift)
    if result.alarm is not None:
        store_alarm(connection, result.alarm, settings)


def store_alarm(
    connection: duckdb.DuckDBPyConnection, alarm: DriftAlarm, settings: Settings
) -> None:
    """Write what follows from a change that was found: quarantine, schedule, notice."""
    state = alarm.state
    if state.standing == "text" and state.since_page is not None:
        quarantine(connection, state.source, state.since_page)
    set_drifted(connection, state.source, is_drifted=True)
    # A layout that was told of has turned out to be worse: that is news.
    close_state(connection, DRIFT, state.source, state.updated_at)
    raise_state(
        connection,
        DRIFT,
        state.source,
        alarm.subject,
        alarm.text,
        settings.alerts.failing_level,
        _labels(connection, state.source),
        settings,
        state.updated_at,
    )


def _labels(connection: duckdb.DuckDBPyConnection, source: str) -> list[str]:
    rows = connection.execute("SELECT tags FROM sources WHERE source = ?", [source]).fetchall()
    return list(rows[0][0] or []) if rows else []


def _verdict_row(verdict: PageVerdict) -> Row:
    return (
        verdict.page_id,
        verdict.source,
        verdict.judged_at,
        verdict.score,
        verdict.suspicious,
        verdict.reason,
        verdict.evidence,
        verdict.gate,
    )


# --- states --------------------------------------------------------------------------

_STATE = (
    "source, updated_at, standing, monitor, learn_from, clean_before, since_page, since_at, "
    "channel, place_before, place_after, reason, n_pages, n_unchecked, is_untold"
)


def write_state(connection: duckdb.DuckDBPyConnection, state: DriftState) -> None:
    """Write how a source stands, in place of how it stood."""
    connection.execute("DELETE FROM drift_states WHERE source = ?", [state.source])
    row = (
        state.source,
        state.updated_at,
        state.standing,
        state.monitor,
        state.learn_from,
        state.clean_before,
        state.since_page,
        state.since_at,
        state.channel,
        state.place_before,
        state.place_after,
        state.reason,
        state.n_pages,
        state.n_unchecked,
        state.is_untold,
    )
    insert_rows(connection, "drift_states", [row])


def read_states(query: Query, source: str | None = None) -> list[DriftState]:
    """Return how every source stands, or one."""
    which = f"WHERE source = '{_quoted(source)}'" if source is not None else ""
    return [DriftState(*row) for row in query(f"SELECT {_STATE} FROM drift_states {which}")]  # noqa: S608


def read_untold(query: Query) -> list[str]:
    """Return the sources with a change for which no flow run has failed yet."""
    return [source for (source,) in query("SELECT source FROM drift_states WHERE is_untold")]


# --- references ----------------------------------------------------------------------

_REFERENCE = "source, built_at, n_pages, kind, parameters, state, score, note"


def write_references(
    connection: duckdb.DuckDBPyConnection, models: Sequence[ReferenceModel]
) -> None:
    """Write references, in place of those their sources had."""
    latest = {model.source: model for model in models}
    if not latest:
        return
    connection.execute(
        f"DELETE FROM reference_models WHERE source IN ({marks(len(latest))})",  # noqa: S608
        list(latest),
    )
    rows = [
        (
            model.source,
            model.built_at,
            model.n_pages,
            model.kind,
            json.dumps(model.parameters, ensure_ascii=False, sort_keys=True),
            model.state,
            model.score,
            model.note,
        )
        for model in latest.values()
    ]
    insert_rows(connection, "reference_models", rows)


def forget_reference(connection: duckdb.DuckDBPyConnection, source: str) -> None:
    """Delete the reference of a source: it is learnt anew."""
    connection.execute("DELETE FROM reference_models WHERE source = ?", [source])


def read_references(query: Query, source: str | None = None) -> list[ReferenceModel]:
    """Return the reference of every source that has one, or of one source."""
    which = f"AND source = '{_quoted(source)}'" if source is not None else ""
    rows = query(
        f"SELECT {_REFERENCE} FROM reference_models WHERE state IS NOT NULL {which} ORDER BY source"  # noqa: S608
    )
    return [
        ReferenceModel(name, built_at, n_pages, kind, bytes(state), score, note or "",
                       json.loads(parameters))
        for name, built_at, n_pages, kind, parameters, state, score, note in rows
    ]  # fmt: skip


# --- stored article pages ------------------------------------------------------------

_PAGES = """
SELECT pages.page_id, pages.source, pages.url, pages.fetched_at, pages.status, pages.bytes,
       pages.sha256, pages.warc_file, pages.warc_offset, NULL, pages.profile
FROM pages
WHERE pages.source = '{source}' AND pages.profile IS NOT NULL
    AND pages.page_id >= '{since}' AND pages.page_id < '{until}'
    AND NOT EXISTS (
        SELECT 1 FROM page_verdicts
        WHERE page_verdicts.page_id = pages.page_id AND page_verdicts.gate IS NOT NULL
    )
ORDER BY pages.page_id DESC LIMIT {limit}
"""


def read_profiles(
    query: Query, source: str, since: str = "", until: str = AFTER_ALL, limit: int = 400
) -> list[Page]:
    """Return the last article pages of a source that passed the gates, oldest first.

    Parameters
    ----------
    since, until
        Ids of pages; from the first on, and before the second.
    """
    sql = _PAGES.format(
        source=_quoted(source), since=_quoted(since), until=_quoted(until), limit=limit
    )
    return [Page(*row) for row in reversed(query(sql))]


def read_evidence(query: Query, source: str, since: str) -> dict[str, float]:
    """Return the evidence after each judged page of a source, from a page on."""
    rows = query(
        "SELECT page_id, evidence FROM page_verdicts WHERE evidence IS NOT NULL "  # noqa: S608
        f"AND source = '{_quoted(source)}' AND page_id >= '{_quoted(since)}'"
    )
    return {page_id: float(evidence) for page_id, evidence in rows}


_STORED = """
SELECT articles.article_id, articles.changed_at, articles.version, articles.kind,
       articles.title, articles.text, articles.quarantined, entries.title,
       pages.page_id, pages.source, pages.url, pages.fetched_at, pages.status, pages.bytes,
       pages.sha256, pages.warc_file, pages.warc_offset
FROM articles
JOIN pages ON pages.page_id = articles.page_id
LEFT JOIN entries ON entries.entry_id = articles.entry_id
WHERE articles.source = '{source}' AND pages.source = '{source}' AND {condition}
ORDER BY pages.page_id DESC LIMIT {limit}
"""


def read_stored_pages(
    query: Query,
    source: str,
    since: str = "",
    until: str = AFTER_ALL,
    only_quarantined: bool = False,
    limit: int = 1_000_000,
) -> list[StoredPage]:
    """Return the last articles of a source with the pages they were made from, oldest first."""
    condition = f"pages.page_id >= '{_quoted(since)}' AND pages.page_id < '{_quoted(until)}'"
    if only_quarantined:
        condition += " AND articles.quarantined"
    sql = _STORED.format(source=_quoted(source), condition=condition, limit=limit)
    return [_stored_page(*row) for row in reversed(query(sql))]


def _stored_page(
    article_id: str,
    changed_at: datetime,
    version: int,
    kind: str,
    title: str | None,
    text: str | None,
    quarantined: bool,
    listed_title: str | None,
    *page: Any,
) -> StoredPage:
    return StoredPage(
        article_id, changed_at, version, kind, title, text, quarantined, listed_title, Page(*page)
    )


# --- quarantine ----------------------------------------------------------------------


def quarantine(connection: duckdb.DuckDBPyConnection, source: str, since_page: str) -> int:
    """Hold back the articles made from pages at or after one; return how many."""
    rows = connection.execute(
        "UPDATE articles SET quarantined = true "
        "WHERE source = ? AND page_id >= ? AND NOT quarantined",
        [source, since_page],
    ).fetchall()
    return int(rows[0][0])


def release(connection: duckdb.DuckDBPyConnection, source: str) -> int:
    """Show the articles of a source again; return how many were held back.

    Those stay whose own page came with an error or is none; where it was a wall or empty
    the listing stands in.
    """
    rows = connection.execute(
        "UPDATE articles SET quarantined = false WHERE source = ? AND quarantined "
        "AND NOT EXISTS (SELECT 1 FROM page_verdicts "
        "WHERE page_verdicts.page_id = articles.page_id "
        "AND page_verdicts.gate IN ('status', 'type'))",
        [source],
    ).fetchall()
    return int(rows[0][0])


def replace_texts(
    connection: duckdb.DuckDBPyConnection,
    articles: Sequence[tuple[StoredPage, Article]],
    poll_id: str,
    now: datetime,
) -> int:
    """Put newly extracted texts in place of the current versions; return how many differed.

    Parameters
    ----------
    articles
        What is stored, and the article extracted anew from the same page.
    poll_id
        What the new versions are said to come from.
    """
    n_changed = 0
    for stored, article in articles:
        _write_profile(connection, stored.page.page_id, article)
        if (article.title, article.text) == (stored.title, stored.text):
            continue
        n_changed += 1
        _replace_text(connection, stored, article, poll_id, now)
    return n_changed


def _write_profile(connection: duckdb.DuckDBPyConnection, page_id: str, article: Article) -> None:
    connection.execute("UPDATE pages SET profile = ? WHERE page_id = ?", [article.profile, page_id])


def _replace_text(
    connection: duckdb.DuckDBPyConnection,
    stored: StoredPage,
    article: Article,
    poll_id: str,
    now: datetime,
) -> None:
    digest = hashlib.sha256((article.text or "").encode("utf-8", "surrogatepass")).hexdigest()
    content = f"{article.title or ''}\x00{article.text or ''}".encode("utf-8", "surrogatepass")
    version, source = stored.version + 1, stored.page.source
    row = (
        stored.article_id, version, source, now, article.title, article.text, digest,
        stored.page.page_id, poll_id,
    )  # fmt: skip
    insert_rows(connection, "article_versions", [row])
    connection.execute(
        # The list makes DuckDB append the row anew instead of writing its neighbours again.
        "UPDATE articles SET title = ?, text = ?, authors = ?, version = ?, changed_at = ?, "
        "extraction = ?, kind = ?, warnings = ?, text_sha256 = ? "
        "WHERE article_id = ? AND changed_at = ?",
        storable(
            [
                article.title, article.text, list(article.authors), version, now,
                article.extraction, article.kind, list(article.warnings), digest,
                stored.article_id, stored.changed_at,
            ]
        ),
    )  # fmt: skip
    connection.execute(
        "UPDATE article_heads SET version = ?, changed_at = ?, is_article = ?, "
        "content_sha256 = ? WHERE article_id = ?",
        [
            version, now, article.kind == "article", hashlib.sha256(content).hexdigest(),
            stored.article_id,
        ],
    )  # fmt: skip


# --- checks and repairs --------------------------------------------------------------


def write_check(
    connection: duckdb.DuckDBPyConnection,
    check_id: str,
    source: str,
    now: datetime,
    sizes: tuple[int, int],
    result: BatchResult,
    document: str | None,
) -> None:
    """Write what a check of a set of pages came to: a row per criterion, at least one.

    Parameters
    ----------
    sizes
        Pages of the reference, and pages compared with it.
    """
    drifted = result.outcome == "drifted"
    found: list[tuple[str, float | None, float | None, bool, str]] = [
        (item.criterion, item.statistic, item.threshold, item.fired, item.detail)
        for item in result.findings
    ] or [("check", None, None, True, result.reason)]
    rows = [
        (
            check_id, source, now, *sizes, criterion, statistic, threshold, fired, drifted,
            result.outcome, detail, document, result.cpu_s,
        )
        for criterion, statistic, threshold, fired, detail in found
    ]  # fmt: skip
    insert_rows(connection, "drift_checks", rows)


_REPAIR = (
    "repair_id, source, proposed_at, way, selector, state, settled_at, n_pages, n_fitting, "
    "n_fitting_now, is_clear, evidence, basis"
)


def write_repair(connection: duckdb.DuckDBPyConnection, repair: Repair) -> None:
    """Write a repair; it takes the place of the source's earlier ones of the same state."""
    connection.execute(
        "UPDATE repairs SET state = 'dropped', settled_at = ? WHERE source = ? AND state = ?",
        [repair.proposed_at, repair.source, repair.state],
    )
    row = (
        repair.repair_id, repair.source, repair.proposed_at, repair.way, repair.selector,
        repair.state, repair.settled_at, repair.n_pages, repair.n_fitting, repair.n_fitting_now,
        repair.is_clear, json.dumps(repair.evidence, ensure_ascii=False, sort_keys=True),
        json.dumps(asdict(repair.basis), ensure_ascii=False, sort_keys=True),
    )  # fmt: skip
    insert_rows(connection, "repairs", [row])


def settle_repair(
    connection: duckdb.DuckDBPyConnection, repair_id: str, state: str, now: datetime
) -> None:
    """Note that a repair was adopted or dropped."""
    connection.execute(
        "UPDATE repairs SET state = ?, settled_at = ? WHERE repair_id = ?", [state, now, repair_id]
    )


def read_repairs(query: Query, state: str, source: str | None = None) -> list[Repair]:
    """Return the repairs of a state, of every source or of one."""
    which = f"AND source = '{_quoted(source)}'" if source is not None else ""
    rows = query(f"SELECT {_REPAIR} FROM repairs WHERE state = '{_quoted(state)}' {which}")  # noqa: S608
    found = [dict(zip(_REPAIR.split(", "), row, strict=True)) for row in rows]
    return [
        Repair(
            **{
                **row,
                "evidence": json.loads(row["evidence"]),
                "basis": ExtractRules(**json.loads(row["basis"])),
            }
        )
        for row in found
    ]


def set_drifted(connection: duckdb.DuckDBPyConnection, source: str, is_drifted: bool) -> None:
    """Put the schedule of a source into the state `drifted`, or out of it; a pause stays."""
    before, after = ("active", "drifted") if is_drifted else ("drifted", "active")
    connection.execute(
        "UPDATE schedule SET state = ? WHERE source = ? AND state = ?", [after, source, before]
    )


def _quoted(text: str | None) -> str:
    return (text or "").replace("'", "''")
