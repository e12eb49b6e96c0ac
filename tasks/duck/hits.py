"""Rows of ``rule_hits`` and ``stories``: what rules found in the articles of a poll."""

from __future__ import annotations

import hashlib
from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any

import duckdb

from models.records import Article, PollResult, RuleHit, StoredArticle
from models.triage.ladder import KEPT
from models.triage.scope import SPIKE_DAYS, Burst
from models.triage.stories import HEAD, Story, find_story, sketch
from tasks.duck.rows import Row, insert_rows, marks, storable

BACKLOG, QUARANTINED = "backlog", "quarantined"
"""Why nobody is told of a hit."""


@dataclass(frozen=True, slots=True)
class StoredVersion:
    """A version of an article that a poll added."""

    item: StoredArticle
    version: int
    is_backlog: bool


@dataclass(frozen=True, slots=True)
class Told:
    """The hits of one article that people are to be told of, and the story they belong to."""

    story_id: str
    item: StoredArticle
    hits: tuple[RuleHit, ...]


def digest(*parts: object) -> str:
    """Return a short name made of `parts`: the same for the same."""
    text = "\x00".join(map(str, parts))
    return hashlib.sha256(text.encode("utf-8", "surrogatepass")).hexdigest()[:16]


def store_hits(
    connection: duckdb.DuckDBPyConnection,
    result: PollResult,
    stored: Sequence[StoredVersion],
    story_span: timedelta,
) -> tuple[int, list[Told]]:
    """Write the hits of the versions a poll added.

    Returns
    -------
    tuple
        How many hits there are, and those that people are to be told of: none of the
        articles that a first look found, or that are held back.
    """
    by_article: dict[str, list[RuleHit]] = defaultdict(list)
    for hit in result.hits:
        by_article[hit.article_id].append(hit)
    rows: list[Row] = []
    told: list[Told] = []
    now = result.poll.finished_at
    for version in stored:
        hits = by_article.get(version.item.article_id, [])
        muted = _why_muted(version)
        loud = tuple(hit for hit in hits if hit.level < KEPT and muted is None)
        story_id = _story_of(connection, version.item, now, story_span) if loud else None
        if story_id is not None:
            told.append(Told(story_id, version.item, loud))
        rows += [_row(hit, version, result, story_id, muted) for hit in hits]
    insert_rows(connection, "rule_hits", rows)
    return len(rows), told


def _why_muted(version: StoredVersion) -> str | None:
    if version.is_backlog:
        return BACKLOG
    return QUARANTINED if getattr(version.item, "quarantined", False) else None


def _row(
    hit: RuleHit,
    version: StoredVersion,
    result: PollResult,
    story_id: str | None,
    muted: str | None,
) -> Row:
    return (
        digest(hit.article_id, version.version, hit.rule),
        hit.article_id,
        version.version,
        result.poll.source,
        hit.rule,
        hit.level,
        hit.matched,
        hit.start,
        hit.sentence,
        hit.explanation,
        result.poll.finished_at,
        hit.rule_level,
        hit.group,
        hit.term,
        hit.mode,
        hit.end,
        hit.n_places,
        story_id if hit.level < KEPT else None,
        muted,
    )


def _story_of(
    connection: duckdb.DuckDBPyConnection,
    item: StoredArticle,
    now: datetime,
    span: timedelta,
) -> str:
    """Return the story an article tells: its own earlier one, a recent one alike, or a new one."""
    earlier = connection.execute(
        "SELECT story_id FROM rule_hits WHERE article_id = ? AND story_id IS NOT NULL LIMIT 1",
        [item.article_id],
    ).fetchall()
    if earlier:
        return str(earlier[0][0])
    title, text = item.article.title or "", item.article.text or ""
    signature = sketch(title, text)
    recent = connection.execute(
        "SELECT story_id, title, signature FROM stories WHERE last_at >= ? AND "  # noqa: S608
        f"(list_has_any(signature[1:{HEAD}], ?) OR lower(title) = lower(?)) ORDER BY last_at DESC",
        storable([now - span, list(signature[:HEAD]), title]),
    ).fetchall()
    known = find_story(
        title, signature, (Story(key, head, tuple(sig)) for key, head, sig in recent)
    )
    if known is not None:
        connection.execute(
            "UPDATE stories SET last_at = ? WHERE story_id = ?", [now, known.story_id]
        )
        return known.story_id
    story_id = digest("story", item.article_id)
    insert_rows(connection, "stories", [(story_id, now, now, title, list(signature))])
    return story_id


def release_hits(
    connection: duckdb.DuckDBPyConnection, now: datetime, story_span: timedelta
) -> list[tuple[str, tuple[str, ...], Told]]:
    """Unmute the hits of articles that are no longer held back; return who is to be told what.

    Returns
    -------
    list
        Source, its tags, and the hits of an article. A version that was replaced meanwhile
        is passed over: its hits are no longer what the article says.
    """
    rows = connection.execute(_RELEASED, [QUARANTINED]).fetchall()
    by_article: dict[str, list[tuple[Any, ...]]] = defaultdict(list)
    for row in rows:
        by_article[row[0]].append(row)
    released = []
    for article_id, found in by_article.items():
        _, source, tags, url, title, text, version, *_ = found[0]
        item = StoredArticle(
            article_id=article_id, entry_id="", url=url, article=Article(title, text),
            published_at=None, published_basis=None, stored_at=now, page=None,
        )  # fmt: skip
        hits = tuple(RuleHit(article_id, *row[7:]) for row in found)
        loud = tuple(hit for hit in hits if hit.level < KEPT)
        story_id = _story_of(connection, item, now, story_span) if loud else None
        connection.execute(
            "UPDATE rule_hits SET muted = NULL, story_id = CASE WHEN level < ? THEN ? END "
            "WHERE article_id = ? AND version = ?",
            [KEPT, story_id, article_id, version],
        )
        if story_id is not None:
            released.append((source, tuple(tags or ()), Told(story_id, item, loud)))
    return released


_RELEASED = """
SELECT article_id, articles.source, sources.tags, articles.url, articles.title, text,
       articles.version, rule, level, rule_level, rule_group, term, mode, matched, start, stop,
       n_places, sentence, explanation
FROM rule_hits JOIN articles USING (article_id, version) LEFT JOIN sources
    ON sources.source = articles.source
WHERE muted = ? AND NOT quarantined
ORDER BY hit_at
"""


def read_bursts(
    connection: duckdb.DuckDBPyConnection, rules: Sequence[str], now: datetime
) -> Mapping[str, Burst]:
    """Return, for some rules, the hits of the last hour and of that hour of earlier days.

    Days before the first poll are not counted: nothing was watched then.
    """
    if not rules:
        return {}
    days = _days_watched(connection, now)
    rows = connection.execute(
        "SELECT rule, date_diff('second', hit_at, ?) // 86400 AS day, count(*) FROM rule_hits "  # noqa: S608
        f"WHERE rule IN ({marks(len(rules))}) AND hit_at > ? AND hit_at <= ? "
        "AND muted IS DISTINCT FROM 'backlog' "
        "AND date_diff('second', hit_at, ?) % 86400 < 3600 GROUP BY ALL",
        [now, *rules, now - timedelta(days=SPIKE_DAYS, hours=1), now, now],
    ).fetchall()
    counts: dict[str, dict[int, int]] = defaultdict(dict)
    for rule, day, count in rows:
        counts[rule][int(day)] = int(count)
    return {
        rule: Burst(
            counts[rule].get(0, 0), tuple(counts[rule].get(day, 0) for day in range(1, days + 1))
        )
        for rule in rules
    }


def _days_watched(connection: duckdb.DuckDBPyConnection, now: datetime) -> int:
    row = connection.execute("SELECT min(started_at) FROM polls").fetchone()
    if row is None or row[0] is None:
        return 0
    return min(int((now - row[0]).days), SPIKE_DAYS)
