"""Rows of ``rule_hits``: what rules found in the articles of a poll."""

from __future__ import annotations

import hashlib
from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta

import duckdb

from models.records import Article, RuleHit, StoredArticle
from models.triage.ladder import KEPT
from models.triage.scope import SPIKE_DAYS, Burst
from tasks.duck.rows import Row, insert_rows, marks

BACKLOG = "backlog"
"""Why nobody is told of a hit."""

MOST_RELEASED = 100
"""Released articles that are matched at a time."""


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
    source: str,
    hits: Sequence[RuleHit],
    stored: Sequence[StoredVersion],
    stories: Mapping[str, str],
    now: datetime,
) -> tuple[int, list[Told]]:
    """Write the hits of versions that were added, or released.

    Parameters
    ----------
    stories
        The story each article tells, of those that are not held back.

    Returns
    -------
    tuple
        How many hits there are, and those that people are to be told of: none of the
        articles that a first look found. Those that are held back are noted, to be matched
        once they are released: their text is not to be trusted, and may be mended first.
    """
    by_article: dict[str, list[RuleHit]] = defaultdict(list)
    for hit in hits:
        by_article[hit.article_id].append(hit)
    rows: list[Row] = []
    told: list[Told] = []
    held: list[Row] = []
    for version in stored:
        if version.item.quarantined:
            held.append((version.item.article_id, now))
            continue
        found = by_article.get(version.item.article_id, [])
        loud = tuple(hit for hit in found if hit.level < KEPT and not version.is_backlog)
        story_id = stories[version.item.article_id] if loud else None
        if story_id is not None:
            told.append(Told(story_id, version.item, loud))
        rows += [_row(hit, version, source, story_id, now) for hit in found]
    insert_rows(connection, "rule_hits", rows)
    insert_rows(connection, "untriaged", held)
    return len(rows), told


def _row(
    hit: RuleHit,
    version: StoredVersion,
    source: str,
    story_id: str | None,
    now: datetime,
) -> Row:
    return (
        digest(hit.article_id, version.version, hit.rule),
        hit.article_id,
        version.version,
        source,
        hit.rule,
        hit.level,
        hit.matched,
        hit.start,
        hit.sentence,
        hit.explanation,
        now,
        hit.rule_level,
        hit.group,
        hit.term,
        hit.mode,
        hit.end,
        hit.n_places,
        story_id if hit.level < KEPT else None,
        BACKLOG if version.is_backlog else None,
    )


def read_released(connection: duckdb.DuckDBPyConnection) -> list[tuple[str, StoredVersion]]:
    """Return articles that were held back and no longer are, as they read now, with their source.

    They may have been mended meanwhile, by extracting them anew.
    """
    rows = connection.execute(_RELEASED, [MOST_RELEASED]).fetchall()
    return [
        (
            source,
            StoredVersion(
                StoredArticle(
                    article_id=article_id,
                    entry_id=entry_id,
                    url=url,
                    article=Article(title, text, language=language),
                    published_at=None,
                    published_basis=None,
                    stored_at=stored_at,
                    page=None,
                ),
                version,
                is_backlog,
            ),
        )
        for source, article_id, entry_id, url, title, text, language, stored_at, version, is_backlog
        in rows
    ]  # fmt: skip


_RELEASED = """
SELECT source, article_id, entry_id, url, title, text, language, stored_at, version, is_backlog
FROM untriaged JOIN articles USING (article_id)
WHERE NOT quarantined
ORDER BY held_at LIMIT ?
"""


def forget_released(connection: duckdb.DuckDBPyConnection, stored: Sequence[StoredVersion]) -> None:
    """Note that rules were matched on released articles."""
    ids = [version.item.article_id for version in stored]
    connection.execute(
        f"DELETE FROM untriaged WHERE article_id IN ({marks(len(ids))})",  # noqa: S608
        ids,
    )


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
