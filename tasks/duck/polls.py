"""Store a poll: everything it found, in one transaction, once."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, field
from datetime import datetime
from typing import Any

import duckdb

from models.lag import publication_lag_s
from models.likeness import Likenesses
from models.records import NewEntry, PollResult, Precision, StoredArticle, StoredCounts
from tasks.duck.drift import store_drift
from tasks.duck.hits import StoredVersion, store_hits
from tasks.duck.incidents import store_incidents
from tasks.duck.likenesses import store_likenesses
from tasks.duck.notices import FAILURE, close_state, raise_notices, raise_state
from tasks.duck.rows import Row, insert_rows, marks, select_by_ids, storable
from tasks.settings import Settings


@dataclass(frozen=True, slots=True)
class ArticleHead:
    """Which version of an article is current: a row of ``article_heads``."""

    version: int
    changed_at: datetime
    is_article: bool
    content_sha256: str


@dataclass(frozen=True, slots=True)
class Listed:
    """What an article takes over from its entry."""

    is_backlog: bool
    precision: Precision | None


@dataclass(slots=True)
class ArticleRows:
    """Rows to be written for the articles of one poll."""

    articles: list[Row] = field(default_factory=list)
    versions: list[Row] = field(default_factory=list)
    new_heads: list[Row] = field(default_factory=list)
    changed: list[tuple[StoredArticle, ArticleHead]] = field(default_factory=list)
    lags: list[float] = field(default_factory=list)
    stored: list[StoredVersion] = field(default_factory=list)


def store_poll(
    connection: duckdb.DuckDBPyConnection,
    result: PollResult,
    settings: Settings,
    likenesses: Likenesses,
) -> StoredCounts:
    """Write a poll and all it found. The caller opens and ends the transaction.

    A poll that was stored before changes nothing: its row is the proof that everything
    else was written with it.
    """
    poll = result.poll
    if select_by_ids(connection, "poll_id", "polls", "poll_id", [poll.poll_id]):
        return StoredCounts(is_repeat=True)
    is_backlog = _is_first_look(connection, poll.source)
    n_entries = _store_entries(connection, result, is_backlog)
    _store_changes(connection, result)
    _store_pages(connection, result)
    rows = _sort_articles(connection, result, is_backlog)
    _store_articles(connection, result, rows)
    _store_pending(connection, result)
    source, now = result.poll.source, result.poll.finished_at
    stories = store_likenesses(connection, likenesses, source, rows.stored, now)
    n_hits = _store_hits(connection, result, rows.stored, stories, settings)
    _tell_failure(connection, result, settings)
    store_incidents(connection, result, settings)
    store_drift(connection, result, settings)
    mean_lag_s = sum(rows.lags) / len(rows.lags) if rows.lags else None
    # What was fetched again and is as before does not count as stored.
    n_stored = len(rows.articles) + len(rows.changed)
    insert_rows(connection, "polls", [_poll_row(result, n_stored, mean_lag_s)])
    return StoredCounts(
        entries=n_entries,
        pages=len(result.pages),
        articles=len(rows.articles),
        versions=len(rows.changed),
        hits=n_hits,
    )


def _store_hits(
    connection: duckdb.DuckDBPyConnection,
    result: PollResult,
    stored: list[StoredVersion],
    stories: Mapping[str, str],
    settings: Settings,
) -> int:
    """Write what keyword rules found, and whom it is to be told; return how much there is."""
    source, now = result.poll.source, result.poll.finished_at
    n_hits, told = store_hits(connection, source, result.hits, stored, stories, now)
    channels, pace = settings.open_channels.values(), settings.alerts.pace
    raise_notices(connection, told, source, result.labels, channels, pace, now)
    return n_hits


def _tell_failure(
    connection: duckdb.DuckDBPyConnection, result: PollResult, settings: Settings
) -> None:
    """Tell that a source fails time and again, or that it is well: silence is news too."""
    poll, schedule = result.poll, result.schedule
    if schedule.state in ("failing", "gone"):
        is_gone = schedule.conduct.n_gone > 0
        n_failures = schedule.consecutive_failures
        raise_state(
            connection,
            FAILURE,
            poll.source,
            f"{poll.source} says that it is gone for good"
            if is_gone
            else f"{poll.source} could not be read {n_failures} times in a row",
            poll.reason,
            settings.alerts.failing_level,
            result.labels,
            settings,
            poll.finished_at,
        )
    elif not poll.is_failure:
        close_state(connection, FAILURE, poll.source, poll.finished_at)


def _is_first_look(connection: duckdb.DuckDBPyConnection, source: str) -> bool:
    """Return whether no poll of the source has succeeded yet."""
    rows = connection.execute(
        "SELECT 1 FROM schedule WHERE source = ? AND last_success_at IS NOT NULL", [source]
    ).fetchall()
    return not rows


def _store_entries(
    connection: duckdb.DuckDBPyConnection, result: PollResult, is_backlog: bool
) -> int:
    """Write entries that are not there yet, and return how many were not."""
    entries = {item.entry_id: item for item in result.entries}
    known = _ids(select_by_ids(connection, "entry_id", "entries", "entry_id", entries))
    rows = [
        _entry_row(item, result, is_backlog) for key, item in entries.items() if key not in known
    ]
    insert_rows(connection, "entries", rows)
    return len(rows)


def _entry_row(item: NewEntry, result: PollResult, is_backlog: bool) -> Row:
    entry, poll = item.entry, result.poll
    return (
        item.entry_id,
        poll.source,
        entry.url,
        entry.guid,
        entry.title,
        entry.summary,
        list(entry.authors),
        entry.published_at,
        entry.published_precision,
        entry.published_basis,
        entry.updated_at,
        poll.finished_at,
        poll.poll_id,
        is_backlog,
        item.fingerprint,
        list(entry.media),
        entry.published_note,
    )


def _store_changes(connection: duckdb.DuckDBPyConnection, result: PollResult) -> None:
    """Write how the listing of known entries changed, and note how each is listed now."""
    relisted = {item.entry_id: item for item in result.relisted}
    rows = select_by_ids(
        connection, "entry_id, change, fingerprint", "entry_heads", "entry_id", relisted
    )
    heads = {key: (change, fingerprint) for key, change, fingerprint in rows}
    changes, new_heads = [], []
    for key, item in relisted.items():
        change, fingerprint = heads.get(key, (0, None))
        if fingerprint == item.fingerprint:
            continue
        changes.append(_change_row(item, change + 1, result))
        if fingerprint is None:
            new_heads.append((key, 1, item.fingerprint))
        else:
            connection.execute(
                "UPDATE entry_heads SET change = ?, fingerprint = ? WHERE entry_id = ?",
                [change + 1, item.fingerprint, key],
            )
    insert_rows(connection, "entry_changes", changes)
    insert_rows(connection, "entry_heads", new_heads)


def _change_row(item: NewEntry, change: int, result: PollResult) -> Row:
    entry, poll = item.entry, result.poll
    return (
        item.entry_id,
        change,
        poll.source,
        poll.finished_at,
        poll.poll_id,
        entry.url,
        entry.title,
        entry.summary,
        entry.published_at,
        entry.updated_at,
        item.fingerprint,
    )


def _store_pages(connection: duckdb.DuckDBPyConnection, result: PollResult) -> None:
    rows = [
        (
            page.page_id,
            page.source,
            page.url,
            page.fetched_at,
            page.status,
            page.bytes,
            page.sha256,
            page.warc_file,
            page.warc_offset,
            result.poll.poll_id,
            asdict(page.measures) if page.measures else None,
            page.profile,
        )
        for page in result.pages
    ]
    insert_rows(connection, "pages", rows)


def _sort_articles(
    connection: duckdb.DuckDBPyConnection, result: PollResult, is_backlog: bool
) -> ArticleRows:
    """Tell new articles, new versions and what we have already apart."""
    articles = {item.article_id: item for item in result.articles}
    heads = _read_heads(connection, articles)
    listed = _read_listed(connection, result, is_backlog)
    rows = ArticleRows()
    for key, item in articles.items():
        head = heads.get(key)
        if head is None:
            found = listed.get(item.entry_id, Listed(is_backlog, None))
            _add_new(rows, item, result, found)
            rows.stored.append(StoredVersion(item, 1, found.is_backlog))
        elif _is_new_version(item, head):
            was_backlog = item.entry_id in listed and listed[item.entry_id].is_backlog
            rows.stored.append(StoredVersion(item, head.version + 1, was_backlog))
            rows.changed.append((item, head))
            rows.versions.append(_version_row(item, head.version + 1, result))
    return rows


def _read_heads(
    connection: duckdb.DuckDBPyConnection, articles: dict[str, StoredArticle]
) -> dict[str, ArticleHead]:
    columns = "article_id, version, changed_at, is_article, content_sha256"
    rows = select_by_ids(connection, columns, "article_heads", "article_id", articles)
    return {key: ArticleHead(*head) for key, *head in rows}


def _read_listed(
    connection: duckdb.DuckDBPyConnection, result: PollResult, is_backlog: bool
) -> dict[str, Listed]:
    """Return what articles take over from their entries: this poll's, and older ones."""
    listed = {
        item.entry_id: Listed(is_backlog, item.entry.published_precision) for item in result.entries
    }
    older = {item.entry_id for item in result.articles} - listed.keys()
    rows = select_by_ids(
        connection, "entry_id, is_backlog, published_precision", "entries", "entry_id", older
    )
    return listed | {key: Listed(*rest) for key, *rest in rows}


def _is_new_version(item: StoredArticle, head: ArticleHead) -> bool:
    """Return whether an article changed. A listing's stand-in never replaces a text we have."""
    if head.is_article and item.article.kind != "article":
        return False
    return content_sha256(item) != head.content_sha256


def content_sha256(item: StoredArticle) -> str:
    """Return a digest of title and text: a change of either is a new version."""
    return text_sha256(f"{item.article.title or ''}\x00{item.article.text or ''}")


def text_sha256(text: str) -> str:
    """Return the SHA-256 of `text`, as hex digits."""
    return hashlib.sha256(text.encode("utf-8", "surrogatepass")).hexdigest()


def _add_new(rows: ArticleRows, item: StoredArticle, result: PollResult, listed: Listed) -> None:
    article = item.article
    is_listed = item.published_basis == "listing"
    precision = listed.precision if is_listed else article.published_precision
    lag_s = publication_lag_s(item.published_at, item.stored_at, precision)
    if lag_s is not None and not listed.is_backlog:
        rows.lags.append(lag_s)
    rows.articles.append(
        (
            item.article_id,
            item.entry_id,
            result.poll.source,
            item.url,
            article.canonical_url,
            article.title,
            article.text,
            list(article.authors),
            article.language,
            item.published_at,
            precision,
            item.published_basis,
            item.stored_at,
            lag_s,
            listed.is_backlog,
            1,
            item.stored_at,
            result.poll.poll_id,
            item.page.page_id if item.page else None,
            article.extraction,
            article.kind,
            list(article.warnings),
            text_sha256(article.text or ""),
            item.quarantined,
        )
    )
    if article.text:
        # What a page without a text stands for is no version of it.
        rows.versions.append(_version_row(item, 1, result))
    rows.new_heads.append(
        (item.article_id, 1, item.stored_at, article.kind == "article", content_sha256(item))
    )


def _version_row(item: StoredArticle, version: int, result: PollResult) -> Row:
    return (
        item.article_id,
        version,
        result.poll.source,
        item.stored_at,
        item.article.title,
        item.article.text,
        text_sha256(item.article.text or ""),
        item.page.page_id if item.page else None,
        result.poll.poll_id,
    )


def _store_articles(
    connection: duckdb.DuckDBPyConnection, result: PollResult, rows: ArticleRows
) -> None:
    insert_rows(connection, "articles", rows.articles)
    insert_rows(connection, "article_versions", rows.versions)
    insert_rows(connection, "article_heads", rows.new_heads)
    for item, head in rows.changed:
        _replace_article(connection, item, head, result)


def _replace_article(
    connection: duckdb.DuckDBPyConnection,
    item: StoredArticle,
    head: ArticleHead,
    result: PollResult,
) -> None:
    """Put a new version in the place of the current one.

    Setting ``authors``, a list, makes DuckDB delete the row and append it anew. That is
    wanted: an update in place would make the next checkpoint write the texts of all its
    122,880 neighbours again. ``changed_at`` lets it find the row in one row group.
    """
    article = item.article
    connection.execute(
        "UPDATE articles SET title = ?, text = ?, authors = ?, language = ?, canonical_url = ?, "
        "version = ?, changed_at = ?, poll_id = ?, page_id = ?, extraction = ?, kind = ?, "
        "warnings = ?, text_sha256 = ?, quarantined = ? WHERE article_id = ? AND changed_at = ?",
        storable(
            [
                article.title,
                article.text,
                list(article.authors),
                article.language,
                article.canonical_url,
                head.version + 1,
                item.stored_at,
                result.poll.poll_id,
                item.page.page_id if item.page else None,
                article.extraction,
                article.kind,
                list(article.warnings),
                text_sha256(article.text or ""),
                item.quarantined,
                item.article_id,
                head.changed_at,
            ]
        ),
    )
    connection.execute(
        "UPDATE article_heads SET version = ?, changed_at = ?, is_article = ?, content_sha256 = ? "
        "WHERE article_id = ?",
        [
            head.version + 1,
            item.stored_at,
            article.kind == "article",
            content_sha256(item),
            item.article_id,
        ],
    )


def _store_pending(connection: duckdb.DuckDBPyConnection, result: PollResult) -> None:
    """Replace what is owed: the new debts go in, the settled ones out."""
    pending = {item.entry_id: item for item in result.pending}
    gone = [*pending, *(key for key in result.settled if key not in pending)]
    if gone:
        connection.execute(
            f"DELETE FROM pending_articles WHERE entry_id IN ({marks(len(gone))})",  # noqa: S608
            gone,
        )
    rows = [
        (
            item.entry_id,
            result.poll.source,
            item.url,
            item.title,
            item.summary,
            item.published_at,
            item.attempts,
            item.next_try_at,
            item.reason,
        )
        for item in pending.values()
    ]
    insert_rows(connection, "pending_articles", rows)


def _poll_row(result: PollResult, n_stored: int, mean_lag_s: float | None) -> Row:
    poll = result.poll
    return (
        poll.poll_id,
        poll.source,
        poll.cycle,
        poll.due_at,
        poll.started_at,
        poll.finished_at,
        poll.outcome,
        poll.http_status,
        poll.reason,
        poll.entries_listed,
        poll.entries_new,
        n_stored,
        mean_lag_s,
        poll.overlap,
        poll.possible_loss,
        poll.index_bytes,
        poll.article_bytes,
        poll.cpu_s,
        poll.decision.policy,
        poll.decision.due_at,
        poll.decision.reason,
        json.dumps(poll.decision.inputs, ensure_ascii=False, sort_keys=True),
    )


def _ids(rows: Sequence[tuple[Any, ...]]) -> set[str]:
    return {row[0] for row in rows}
