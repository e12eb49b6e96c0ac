"""Read the articles that a saved search finds."""

from __future__ import annotations

from collections.abc import Iterable
from datetime import UTC, datetime, timedelta

from models.search import SavedSearch, pattern_of
from models.syndication import FeedItem
from tasks.duck.database import literal
from tasks.warehouse_reader import WarehouseReader

KEPT_CHARS = 2000
"""So much of a text is read: a feed shows its beginning."""


def read_clippings(reader: WarehouseReader, search: SavedSearch, now: datetime) -> list[FeedItem]:
    """Return the newest articles that a search finds; none that is held back."""
    since = (now - timedelta(days=search.days)).astimezone(UTC).isoformat()
    conditions = [f"stored_at >= TIMESTAMPTZ '{since}'", "NOT quarantined"]
    conditions += _conditions(search)
    sql = f"""
        SELECT article_id, articles.url, coalesce(articles.title, ''),
               left(coalesce(text, ''), {KEPT_CHARS}), source, published_at, changed_at,
               coalesce(authors, []), coalesce(tags, [])
        FROM articles LEFT JOIN sources USING (source)
        WHERE {" AND ".join(conditions)}
        ORDER BY stored_at DESC LIMIT {search.limit}
    """  # noqa: S608 - numbers and literals
    return [FeedItem(*row) for row in reader.query(sql).rows]


def _conditions(search: SavedSearch) -> Iterable[str]:
    if search.any:
        yield _found_one(search.any)
    for term in search.all:
        yield _found_one([term])
    if search.none:
        yield f"NOT {_found_one(search.none)}"
    if search.sources:
        yield f"source IN {_list(search.sources)}"
    if search.languages:
        yield f"articles.language IN {_list(search.languages)}"
    if search.tags:
        yield f"list_has_any(tags, [{', '.join(map(literal, search.tags))}])"
    if search.rules or search.level:
        level = f"level <= {search.level}" if search.level else "true"
        rules = f"rule IN {_list(search.rules)}" if search.rules else "true"
        yield (
            "article_id IN (SELECT article_id FROM rule_hits"  # noqa: S608 - literals
            f" WHERE {level} AND {rules} AND muted IS NULL)"
        )


def _list(words: Iterable[str]) -> str:
    return f"({', '.join(map(literal, words))})"


def _found_one(terms: Iterable[str]) -> str:
    pattern = "|".join(f"(?:{pattern_of(term)})" for term in terms)
    return f"regexp_matches(concat_ws(' ', articles.title, text), {literal(pattern)})"
