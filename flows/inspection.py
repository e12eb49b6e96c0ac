"""What our parsers make of one page, as JSON: the answer of ``newsbeat inspect``."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import asdict, dataclass
from datetime import datetime
from typing import Any

from models.errors import ParseError
from models.identity import entry_id, repeated_guids
from models.records import Article, Entry, Listing, Source
from tasks.articles import extract_article
from tasks.feeds import parse_feed
from tasks.lists import parse_list
from tasks.robots import parse_robots
from tasks.sitemaps import parse_sitemap
from tasks.telegram import parse_telegram

KINDS = ("feed", "sitemap", "list", "article", "robots", "telegram")


@dataclass(frozen=True, slots=True)
class _Page:
    """A page, and what is known beside it."""

    body: bytes
    url: str
    content_type: str | None
    source: Source
    now: datetime
    agent: str
    asked_url: str
    status: int


def inspect_bytes(
    body: bytes,
    *,
    kind: str,
    base_url: str,
    now: datetime,
    content_type: str | None = None,
    source: Source | None = None,
    agent: str = "newsbeat",
    url: str | None = None,
    status: int = 200,
) -> dict[str, Any]:
    """Return what the parser of `kind` makes of `body`, ready for JSON.

    Parameters
    ----------
    body
        The page as it came.
    kind
        One of :data:`KINDS`.
    base_url
        Address the page stands for.
    now
        The present.
    content_type
        HTTP header of the page.
    source
        Source it belongs to: its rules, language and zone hold. None for a page of nobody.
    agent, url
        For robots: who asks, and for which address.
    status
        For robots: HTTP status the file came with.

    Returns
    -------
    dict
        ``feed``: format, encoding, title, warnings, entries. ``sitemap``: the same and the
        child sitemaps. ``telegram``: the same and the address of the page before.
        ``list``: the same, entries under ``links``. ``article``: title,
        text, dates, authors, language, canonical_url, class, features, warnings.
        ``robots``: allowed, rule, crawl_delay.

    Raises
    ------
    ParseError
        If the page is not what `kind` says.
    """
    if kind not in _READERS:
        raise ParseError(base_url, f"no parser for kind {kind!r}; kinds are {', '.join(KINDS)}")
    source = source or Source("inspected", "", base_url)
    page = _Page(body, base_url, content_type, source, now, agent, url or base_url, status)
    return _READERS[kind](page)


def _inspect_feed(page: _Page) -> dict[str, Any]:
    listing = parse_feed(
        page.body,
        url=page.url,
        content_type=page.content_type,
        timezone=page.source.timezone,
        language=page.source.language,
        now=page.now,
    )
    return {
        **_listing(listing),
        "ttl_s": listing.ttl_s,
        "entries": _entries(listing, page.source),
    }


def _inspect_sitemap(page: _Page) -> dict[str, Any]:
    listing = parse_sitemap(
        page.body,
        url=page.url,
        content_type=page.content_type,
        timezone=page.source.timezone,
        now=page.now,
    )
    entries = _entries(listing, page.source)
    return {**_listing(listing), "entries": entries, "children": list(listing.children)}


def _inspect_list(page: _Page) -> dict[str, Any]:
    listing = parse_list(
        page.body,
        url=page.url,
        content_type=page.content_type,
        rules=page.source.list,
        timezone=page.source.timezone,
        language=page.source.language,
        now=page.now,
    )
    return {**_listing(listing), "links": _entries(listing, page.source)}


def _inspect_article(page: _Page) -> dict[str, Any]:
    article = extract_article(
        page.body,
        url=page.url,
        content_type=page.content_type,
        rules=page.source.extract,
        language=page.source.language,
        timezone=page.source.timezone,
        now=page.now,
    )
    return _article(article)


def _inspect_robots(page: _Page) -> dict[str, Any]:
    verdict = parse_robots(page.body, page.status).explain(page.asked_url, page.agent)
    return {
        "allowed": verdict.allowed,
        "rule": verdict.rule,
        "crawl_delay": verdict.crawl_delay,
    }


def _inspect_telegram(page: _Page) -> dict[str, Any]:
    listing = parse_telegram(page.body, url=page.url, content_type=page.content_type, now=page.now)
    entries = _entries(listing, page.source)
    return {**_listing(listing), "entries": entries, "older": listing.older}


_READERS: dict[str, Callable[[_Page], dict[str, Any]]] = {
    "feed": _inspect_feed,
    "sitemap": _inspect_sitemap,
    "list": _inspect_list,
    "article": _inspect_article,
    "robots": _inspect_robots,
    "telegram": _inspect_telegram,
}


def _listing(listing: Listing) -> dict[str, Any]:
    return {
        "format": listing.format,
        "encoding": listing.encoding,
        "title": listing.title,
        "warnings": list(listing.warnings),
    }


def _entries(listing: Listing, source: Source) -> list[dict[str, Any]]:
    repeated = repeated_guids(listing.entries)
    return [
        {
            "id": entry.guid or entry.url,
            "entry_id": entry_id(source.source, entry, repeated, source.identity),
            **_entry(entry),
        }
        for entry in listing.entries
    ]


def _entry(entry: Entry) -> dict[str, Any]:
    return {
        "url": entry.url,
        "title": entry.title,
        "published_at": _stamp(entry.published_at),
        "published_precision": entry.published_precision,
        "published_basis": entry.published_basis,
        "published_note": entry.published_note,
        "updated_at": _stamp(entry.updated_at),
        "summary": entry.summary,
        "authors": list(entry.authors),
        "media": list(entry.media),
        "note": entry.note,
    }


def _article(article: Article) -> dict[str, Any]:
    return {
        "title": article.title,
        "text": article.text,
        "published_at": _stamp(article.published_at),
        "published_precision": article.published_precision,
        "published_basis": article.published_basis,
        "authors": list(article.authors),
        "language": article.language,
        "canonical_url": article.canonical_url,
        "class": article.kind,
        "extraction": article.extraction,
        "features": asdict(article.measures) if article.measures else {},
        "warnings": list(article.warnings),
        "cpu_s": round(article.cpu_s, 4),
    }


def _stamp(at: datetime | None) -> str | None:
    return at.isoformat().replace("+00:00", "Z") if at else None
