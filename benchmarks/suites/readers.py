"""The feed parsers that are compared: each takes an answer and gives title and entries."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import Any

import feedparser
from suites.values import FEED, Item, moment_of

from models.errors import ParseError
from tasks.feeds import parse_feed

NOW = datetime(2026, 6, 1, tzinfo=UTC)


@dataclass(frozen=True, slots=True)
class Answer:
    """A feed as it was answered.

    Attributes
    ----------
    base
        Address it came from, or that its ``Content-Location`` names.
    """

    body: bytes
    base: str
    headers: dict[str, str] = field(default_factory=dict)


Read = dict[int, Item]
"""Entries by place; at `FEED` the feed itself."""

Reader = Callable[[Answer], Read]


def read_with_ours(answer: Answer) -> Read:
    """Return what `parse_feed` finds, entries without an address too."""
    try:
        listing = parse_feed(
            answer.body,
            url=answer.base,
            content_type=answer.headers.get("content-type"),
            now=NOW,
            keep_unaddressed=True,
        )
    except ParseError:
        return {}
    found: Read = {
        place: {
            "title": entry.title,
            "link": entry.url,
            "id": entry.guid,
            "date": entry.published_at or entry.updated_at,
            "author": entry.authors or None,
        }
        for place, entry in enumerate(listing.entries)
    }
    return found | {FEED: {"title": listing.title}}


def read_with_feedparser(answer: Answer) -> Read:
    """Return what feedparser finds."""
    headers = {**answer.headers, "content-location": answer.base}
    parsed = feedparser.parse(answer.body, response_headers=headers)
    found: Read = {
        place: {
            "title": entry.get("title"),
            "link": entry.get("link"),
            "id": entry.get("id"),
            "date": moment_of(entry.get("published_parsed") or entry.get("updated_parsed")),
            "author": _first_of(entry),
        }
        for place, entry in enumerate(parsed.entries)
    }
    return found | {FEED: {"title": parsed.feed.get("title")}}


def _first_of(entry: Any) -> Any:
    names = tuple(one["name"] for one in entry.get("authors", ()) if one.get("name"))
    return names or entry.get("author")


def read_with_fastfeedparser(answer: Answer) -> Read:
    """Return what fastfeedparser finds. It takes no headers and no address."""
    import fastfeedparser

    try:
        parsed = fastfeedparser.parse(answer.body)
    except Exception:  # noqa: BLE001 - it raises many kinds, and none of its own
        return {}
    found: Read = {
        place: {
            "title": entry.get("title"),
            "link": entry.get("link"),
            "id": entry.get("id"),
            "date": moment_of(entry.get("published") or entry.get("updated")),
            "author": entry.get("author"),
        }
        for place, entry in enumerate(parsed.entries)
    }
    return found | {FEED: {"title": parsed.feed.get("title")}}


def find_readers() -> dict[str, Reader]:
    """Return the parsers that are installed, by name."""
    readers: dict[str, Reader] = {"ours": read_with_ours, "feedparser": read_with_feedparser}
    with suppress(ImportError):
        import fastfeedparser  # noqa: F401

        readers["fastfeedparser"] = read_with_fastfeedparser
    return readers
