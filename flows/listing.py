"""A fetched page read as what it is to be: a feed, a sitemap or a list page."""

from __future__ import annotations

from datetime import datetime
from typing import Literal

import ada_url

from models.errors import ParseError, UnlistedError
from models.kinds import kind_of, tells_whole
from models.plaintext import absolute_url
from models.posts import as_posts
from models.records import Fetched, Kind, Listing, ListRules, Source
from tasks.feeds import parse_feed
from tasks.lists import parse_list
from tasks.sitemaps import parse_sitemap
from tasks.telegram import parse_telegram

ListingKind = Literal["feed", "sitemap", "list", "telegram"]

TRIED: dict[Kind, tuple[ListingKind, ...]] = {
    "auto": ("feed", "sitemap", "list"),
    "sitemap": ("sitemap",),
    "list": ("list",),
    "telegram": ("telegram",),
}
"""What a page of each kind is read as, first what tells itself apart best. The rest are feeds."""


def parse_as(
    kind: ListingKind,
    page: Fetched,
    *,
    rules: ListRules,
    timezone: str,
    language: str | None = None,
    now: datetime,
) -> Listing:
    """Return what `page` lists, read as `kind`.

    Raises
    ------
    ParseError
        If it is no such thing.
    """
    body, url, type_ = page.body, page.final_url, page.content_type
    if kind == "feed":
        base = _stated_base(page)
        return parse_feed(
            body, url=base, content_type=type_, timezone=timezone, language=language, now=now
        )
    if kind == "sitemap":
        return parse_sitemap(body, url=url, content_type=type_, timezone=timezone, now=now)
    if kind == "telegram":
        return parse_telegram(body, url=url, content_type=type_, timezone=timezone, now=now)
    return parse_list(
        body,
        url=url,
        content_type=type_,
        rules=rules,
        timezone=timezone,
        language=language,
        now=now,
    )


def _stated_base(page: Fetched) -> str:
    """Return what a feed's relative links are relative to: its ``Content-Location``, if any.

    One that leads to another host is passed over: servers behind a proxy name themselves.
    """
    url = page.final_url
    stated = next((value for name, value in page.headers if name.lower() == "content-location"), "")
    base = absolute_url(stated, url) if stated else None
    return base if base and ada_url.URL(base).host == ada_url.URL(url).host else url


def parse_listing(page: Fetched, source: Source, now: datetime) -> Listing:
    """Return what `page`, fetched from `source`, lists.

    Posts come with their whole text as summary.

    Raises
    ------
    ParseError
        If it is none of what the source's kind allows; the reasons are joined.
    """
    kind, reasons = kind_of(source), []
    for reading in TRIED.get(kind, ("feed",)):
        try:
            listing = parse_as(
                reading,
                page,
                rules=source.list,
                timezone=source.timezone,
                language=source.language,
                now=now,
            )
            return as_posts(listing, kind) if tells_whole(source) else listing
        except UnlistedError:
            raise
        except ParseError as error:
            reasons.append(error.reason)
    raise ParseError(page.final_url, "; ".join(dict.fromkeys(reasons)))
