"""Articles as feeds that other programs read: Atom and JSON Feed."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import Any
from xml.sax.saxutils import escape, quoteattr

from models.harmless import one_line, web_address

SUMMARY_CHARS = 400
"""So much of a text goes into a feed: to know what it is about, not to stand in for it."""


@dataclass(frozen=True, slots=True)
class FeedItem:
    """An article as a feed shows it."""

    article_id: str
    url: str
    title: str
    text: str = field(repr=False)
    source: str
    published_at: datetime | None
    updated_at: datetime
    authors: Sequence[str] = ()
    tags: Sequence[str] = ()

    @property
    def link(self) -> str:
        """Its address, ``""`` where that is none of the web: it may be a script."""
        return web_address(self.url)

    @property
    def summary(self) -> str:
        """The beginning of its text, in one line."""
        text = _clean(self.text)
        if len(text) <= SUMMARY_CHARS:
            return text
        return f"{text[:SUMMARY_CHARS].rpartition(' ')[0] or text[:SUMMARY_CHARS]} …"


@dataclass(frozen=True, slots=True)
class OutFeed:
    """A feed to be written.

    Attributes
    ----------
    name
        What its id is made of.
    """

    name: str
    title: str
    items: Sequence[FeedItem]
    made_at: datetime

    @property
    def updated_at(self) -> datetime:
        """When the last of its items changed."""
        return max((item.updated_at for item in self.items), default=self.made_at)


def _clean(text: str) -> str:
    """Return text in one line that XML can hold."""
    return "".join(mark for mark in one_line(text) if mark not in "\ufffe\uffff")


def _moment(at: datetime) -> str:
    return f"{at.astimezone(UTC):%Y-%m-%dT%H:%M:%SZ}"


def render_atom(feed: OutFeed) -> str:
    """Return a feed as Atom (RFC 4287); what publishers wrote is text in it, not markup."""
    lines = [
        '<?xml version="1.0" encoding="utf-8"?>',
        '<feed xmlns="http://www.w3.org/2005/Atom">',
        f"<id>urn:newsbeat:search:{escape(feed.name)}</id>",
        f"<title>{escape(_clean(feed.title))}</title>",
        f"<updated>{_moment(feed.updated_at)}</updated>",
        "<author><name>newsbeat</name></author>",
        "<generator>newsbeat</generator>",
    ]
    for item in feed.items:
        lines += _atom_entry(item)
    return "\n".join([*lines, "</feed>", ""])


def _atom_entry(item: FeedItem) -> list[str]:
    lines = [
        "<entry>",
        f"<id>urn:newsbeat:article:{escape(item.article_id)}</id>",
        f'<title type="text">{escape(_clean(item.title) or "(no title)")}</title>',
        f"<updated>{_moment(item.updated_at)}</updated>",
    ]
    if item.published_at:
        lines.append(f"<published>{_moment(item.published_at)}</published>")
    if item.link:
        lines.append(f'<link rel="alternate" href={quoteattr(_clean(item.link))}/>')
    names = [_clean(author) or item.source for author in item.authors or [item.source]]
    lines += [f"<author><name>{escape(name)}</name></author>" for name in names]
    lines += [f"<category term={quoteattr(_clean(tag))}/>" for tag in (item.source, *item.tags)]
    return [*lines, f'<summary type="text">{escape(item.summary)}</summary>', "</entry>"]


def render_json_feed(feed: OutFeed) -> str:
    """Return a feed as JSON Feed 1.1."""
    found: dict[str, Any] = {
        "version": "https://jsonfeed.org/version/1.1",
        "title": _clean(feed.title),
        "items": [_json_item(item) for item in feed.items],
    }
    return json.dumps(found, ensure_ascii=False, indent=1)


def _json_item(item: FeedItem) -> dict[str, Any]:
    found: dict[str, Any] = {
        "id": f"urn:newsbeat:article:{item.article_id}",
        "title": _clean(item.title),
        "content_text": item.summary,
        "date_modified": _moment(item.updated_at),
        "authors": [{"name": _clean(author)} for author in item.authors or [item.source]],
        "tags": [item.source, *item.tags],
    }
    if item.link:
        found["url"] = item.link
    if item.published_at:
        found["date_published"] = _moment(item.published_at)
    return found


@dataclass(frozen=True, slots=True)
class Outline:
    """A source as OPML lists it.

    Attributes
    ----------
    url
        Its address, as people copy it.
    feed_url
        The feed that other programs follow; empty where it has none.
    own
        What only newsbeat reads again: name, kind and zone.
    """

    title: str
    url: str
    feed_url: str = ""
    tags: Sequence[str] = ()
    language: str = ""
    own: Mapping[str, str] = field(default_factory=dict)


def render_opml(title: str, outlines: Sequence[Outline], made_at: datetime) -> str:
    """Return sources as OPML 2.0, which feed readers import.

    Examples
    --------
    >>> feed = Outline("A", "https://a.example/", "https://a.example/rss")
    >>> print(render_opml("Mine", [feed], datetime(2026, 3, 1, tzinfo=UTC)).splitlines()[5])
    <outline type="rss" text="A" title="A" xmlUrl="https://a.example/rss" \
htmlUrl="https://a.example/"/>
    """
    lines = [
        '<?xml version="1.0" encoding="utf-8"?>',
        '<opml version="2.0" xmlns:newsbeat="urn:newsbeat">',
        f"<head><title>{escape(_clean(title))}</title>",
        f"<dateCreated>{made_at.astimezone(UTC):%a, %d %b %Y %H:%M:%S} +0000</dateCreated></head>",
        "<body>",
    ]
    for each in outlines:
        about = {"type": "rss", "text": each.title, "title": each.title}
        if each.feed_url:
            about["xmlUrl"] = each.feed_url
            if each.url != each.feed_url:
                about["htmlUrl"] = each.url
        else:
            # Readers take "rss" for whatever they can follow; others are kept as links.
            about |= {"type": "link", "url": each.url}
        if each.tags:
            about["category"] = ",".join(each.tags)
        if each.language:
            about["language"] = each.language
        about |= {f"newsbeat:{key}": value for key, value in each.own.items()}
        words = " ".join(f"{key}={quoteattr(_clean(value))}" for key, value in about.items())
        lines.append(f"<outline {words}/>")
    return "\n".join([*lines, "</body>", "</opml>", ""])
