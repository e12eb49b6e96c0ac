"""Rows of ``article_likenesses``: what the versions of a poll's articles are like."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import datetime

import duckdb

from models.likeness import MOST_KEPT, Likenesses, Signed, sign_text
from tasks.duck.hits import StoredVersion
from tasks.duck.rows import insert_rows, utc_row


def store_likenesses(
    connection: duckdb.DuckDBPyConnection,
    likenesses: Likenesses,
    source: str,
    stored: Sequence[StoredVersion],
    now: datetime,
) -> Mapping[str, str]:
    """Write what versions that were added, or released, are like; return article and story.

    Those that are held back are left out: consent pages would all tell one story.
    """
    trusted = [version for version in stored if not version.item.quarantined]
    signed = [_sign(connection, likenesses, source, version, now) for version in trusted]
    rows = [
        (
            one.article_id,
            version.version,
            source,
            now,
            one.story_id,
            one.resembles,
            one.similarity,
            one.signature,
        )
        for version, one in zip(trusted, signed, strict=True)
    ]
    insert_rows(connection, "article_likenesses", rows)
    return {one.article_id: one.story_id for one in signed}


def _sign(
    connection: duckdb.DuckDBPyConnection,
    likenesses: Likenesses,
    source: str,
    version: StoredVersion,
    now: datetime,
) -> Signed:
    item, article = version.item, version.item.article
    # The pages' own were signed where they were extracted; posts and stand-ins are short.
    signature = article.signature or sign_text(article.title, article.text)
    earlier = _story_of(connection, item.article_id) if version.version > 1 else None
    return likenesses.add(item.article_id, source, article.title or "", signature, now, earlier)


def _story_of(connection: duckdb.DuckDBPyConnection, article_id: str) -> str | None:
    """Return the story of an article that was signed before, however long ago."""
    rows = connection.execute(
        "SELECT story_id FROM article_likenesses WHERE article_id = ? LIMIT 1", [article_id]
    ).fetchall()
    return str(rows[0][0]) if rows else None


def read_signed(connection: duckdb.DuckDBPyConnection, since: datetime) -> list[Signed]:
    """Return the articles signed since a moment, the oldest first; the newest where many are."""
    rows = connection.execute(
        "SELECT article_id, l.source, seen_at, story_id, resembles, similarity, signature, "
        "coalesce(title, '') FROM article_likenesses AS l LEFT JOIN articles USING (article_id) "
        "WHERE seen_at >= ? ORDER BY seen_at DESC LIMIT ?",
        [since, MOST_KEPT],
    ).fetchall()
    return [Signed(*utc_row(row)) for row in reversed(rows)]
