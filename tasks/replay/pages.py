"""Listings and article pages as bytes, from the templates in ``data/sample``."""

from __future__ import annotations

import functools
import re
import tomllib
from dataclasses import dataclass
from datetime import UTC, datetime
from email.utils import format_datetime
from importlib.resources import files
from typing import Any
from zoneinfo import ZoneInfo

import jinja2

from models.invented import InventedArticle, Phrasebook, invent_article, parse_phrasebook
from tasks.replay.history import InventedPage, RecordedEntry, RecordedSource, StoredPage

N_RELATED = 5
N_REMARKS = 5
_SAMPLE = files("data") / "sample"


@dataclass(frozen=True, slots=True)
class PageBytes:
    """A body and the ``Content-Type`` it is sent with."""

    body: bytes
    content_type: str


@functools.cache
def read_phrasebook(language: str) -> Phrasebook:
    """Return the phrasebook of a language, the English one where there is none of its own."""
    phrases = _SAMPLE / "phrases" / f"{language}.toml"
    if not phrases.is_file():
        return read_phrasebook("en")
    return parse_phrasebook(language, tomllib.loads(phrases.read_text(encoding="utf-8")))


def article_of(source: RecordedSource, page: InventedPage) -> InventedArticle:
    """Return the true title, author and text of an invented page."""
    return invent_article(read_phrasebook(source.language), page.seed, source.topics)


def make_article_page(source: RecordedSource, number: int, layout: str) -> PageBytes:
    """Return the page of entry `number` in `layout`; a page kept as found stays as it is."""
    entry = source.entries[number]
    if isinstance(entry.page, StoredPage):
        return PageBytes(entry.page.body, entry.page.content_type)
    phrasebook, article = read_phrasebook(source.language), article_of(source, entry.page)
    turn = entry.page.seed % len(phrasebook.remarks)
    text = _template(f"layouts/{layout}.html", source.timezone).render(
        source=source,
        labels=phrasebook.labels,
        sections=phrasebook.sections,
        remarks=(phrasebook.remarks[turn:] + phrasebook.remarks[:turn])[:N_REMARKS],
        title=article.title,
        author=article.author,
        paragraphs=article.paragraphs,
        published_at=entry.published_at,
        url=source.url_of(entry),
        related=_listed(source, range(max(0, number - N_RELATED), number)),
    )
    return _encoded(text, source.encoding, "text/html")


def make_feed(source: RecordedSource, window: range) -> PageBytes:
    """Return the source's RSS or Atom feed."""
    text = _listing(f"feeds/{source.feed_format}.xml", source, window)
    return _encoded(text, source.encoding, source.feed_type)


def make_sitemap(source: RecordedSource, window: range) -> PageBytes:
    """Return the source's news sitemap."""
    return _encoded(_listing("feeds/sitemap.xml", source, window), "utf-8", "application/xml")


def make_front(source: RecordedSource, window: range, front: str) -> PageBytes:
    """Return the source's front page, a list of links."""
    return _encoded(_listing(f"fronts/{front}.html", source, window), source.encoding, "text/html")


def make_robots(source: RecordedSource) -> PageBytes:
    """Return the source's robots.txt."""
    lines = ["User-agent: *", "Disallow: /search", "Disallow: /login", "Disallow: /letter"]
    lines += ["", f"Sitemap: {source.base_url}/news-sitemap.xml", ""]
    return PageBytes("\n".join(lines).encode(), "text/plain")


def layout_names() -> list[str]:
    """Return the names of the article layouts there are."""
    return sorted(
        name.removesuffix(".html")
        for name in (each.name for each in (_SAMPLE / "layouts").iterdir())
        if name.endswith(".html")
    )


def _listing(template: str, source: RecordedSource, window: range) -> str:
    phrasebook = read_phrasebook(source.language)
    entries = _listed(source, window)
    return _template(template, source.timezone).render(
        source=source,
        labels=phrasebook.labels,
        sections=phrasebook.sections,
        entries=entries,
        updated_at=entries[0]["published_at"] if entries else datetime(2000, 1, 1, tzinfo=UTC),
    )


def _listed(source: RecordedSource, window: range) -> list[dict[str, Any]]:
    """Return what templates show of each entry, newest first."""
    return [_shown(source, source.entries[number]) for number in reversed(window)]


def _shown(source: RecordedSource, entry: RecordedEntry) -> dict[str, Any]:
    return {
        "title": entry.title,
        "path": entry.path,
        "url": source.url_of(entry),
        "summary": entry.summary,
        "published_at": entry.published_at,
    }


@functools.cache
def _template(name: str, timezone: str) -> jinja2.Template:
    return _environment(timezone).get_template(name)


@functools.cache
def _environment(timezone: str) -> jinja2.Environment:
    """Return templates whose dates are written in `timezone`."""
    zone = ZoneInfo(timezone)
    environment = jinja2.Environment(
        loader=jinja2.FunctionLoader(_read_template),
        autoescape=True,
        trim_blocks=True,
        lstrip_blocks=True,
        undefined=jinja2.StrictUndefined,
    )
    environment.filters["iso"] = lambda at: at.astimezone(zone).isoformat()
    environment.filters["rfc822"] = lambda at: format_datetime(at.astimezone(zone))
    environment.filters["local"] = lambda at, form: at.astimezone(zone).strftime(form)
    return environment


def _read_template(name: str) -> str:
    return (_SAMPLE / name).read_text(encoding="utf-8")


# What XML 1.0 cannot hold, not even escaped: headlines found in recordings have it.
_NOT_XML = re.compile("[\x00-\x08\x0b\x0c\x0e-\x1f\ud800-\udfff\ufffe\uffff]")


def _encoded(text: str, encoding: str, media_type: str) -> PageBytes:
    """Return `text` in `encoding`; what that cannot hold becomes a character reference."""
    body = _NOT_XML.sub("", text).encode(encoding, "xmlcharrefreplace")
    return PageBytes(body, f"{media_type}; charset={encoding}")
