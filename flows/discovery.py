"""Find what to poll behind an address: ``newsbeat add URL``.

Looked at, in this order: the address itself (it may be a feed already), the feeds the
page names, the sitemaps robots.txt names, and, only where those gave nothing that is
alive, a short list of usual addresses. The page itself is a candidate too, as a list.
Each is fetched and parsed by the parsers the polls use, so what is offered works.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Iterable
from dataclasses import replace
from datetime import datetime, timedelta

from flows.listing import parse_as
from models.discovery import Candidate, DiscoveredKind, judge_listing
from models.errors import FetchError, ParseError
from models.identity import url_key
from models.plaintext import absolute_url
from models.records import Fetched, Listing, ListRules
from tasks.links import PageLinks, find_feed_links, find_sitemap_lines, names_news

Fetch = Callable[[str], Awaitable[Fetched]]

MAX_FEEDS = 8
MAX_SITEMAPS = 4
"""Tries per way of finding, so that a page with hundreds of feeds costs a few requests."""

USUAL_FEEDS = ("/rss", "/rss.xml", "/feed", "/feed.xml", "/atom.xml", "/index.xml")
USUAL_SITEMAPS = ("/news-sitemap.xml", "/sitemap-news.xml")

ALIVE = timedelta(days=7)


async def discover(
    url: str, fetch: Fetch, *, now: datetime, timezone: str = "UTC"
) -> list[Candidate]:
    """Return what could be polled behind an address, the best first.

    Parameters
    ----------
    url
        A page or a feed of the publisher. ``https://`` is put in front where no scheme is.
    fetch
        Fetches one address; may raise `FetchError`.
    timezone
        Zone in which dates without one are read.

    Returns
    -------
    list of Candidate
        Empty where the site answers but lists nothing we can read.

    Raises
    ------
    FetchError
        If the address itself cannot be had.
    """
    asked = url.strip() if "://" in url else f"https://{url.strip()}"
    page = await fetch(asked)
    search = _Search(fetch, now, timezone)
    itself = search.judge(page, ("feed", "sitemap"), "the address itself")
    if itself:
        return [itself]
    links = find_feed_links(page.body, page.final_url, page.content_type)
    await search.try_all(links.feeds[:MAX_FEEDS], ("feed",), "named by the page")
    await search.try_all(search.news_children(page), ("sitemap",), "named by its index")
    await search.try_robots(page.final_url)
    if not search.has_live_one():
        await search.try_usual(page.final_url)
    listed = search.judge(page, ("list",), "the page itself")
    return search.ranked(links, listed)


class _Search:
    """One discovery under way: what was tried, and what came of it."""

    def __init__(self, fetch: Fetch, now: datetime, timezone: str) -> None:
        self.fetch = fetch
        self.now = now
        self.timezone = timezone
        self.tried: set[str] = set()
        self.found: list[Candidate] = []

    async def try_robots(self, site: str) -> None:
        robots = absolute_url("/robots.txt", site) or site
        try:
            answer = await self.fetch(robots)
        except FetchError:
            return
        sitemaps = find_sitemap_lines(answer.body, answer.final_url)[:MAX_SITEMAPS]
        await self.try_all(sitemaps, ("sitemap",), "named by robots.txt")

    async def try_usual(self, site: str) -> None:
        feeds = [link for path in USUAL_FEEDS if (link := absolute_url(path, site))]
        sitemaps = [link for path in USUAL_SITEMAPS if (link := absolute_url(path, site))]
        await self.try_all(feeds, ("feed",), "a usual address")
        if not self.has_live_one():
            await self.try_all(sitemaps, ("sitemap",), "a usual address")

    async def try_all(
        self, urls: Iterable[str], kinds: tuple[DiscoveredKind, ...], found_by: str
    ) -> None:
        fresh = {url_key(url): url for url in urls if url_key(url) not in self.tried}
        self.tried |= fresh.keys()
        await asyncio.gather(*(self._try(url, kinds, found_by) for url in fresh.values()))

    async def _try(self, url: str, kinds: tuple[DiscoveredKind, ...], found_by: str) -> None:
        try:
            page = await self.fetch(url)
        except FetchError:
            return
        candidate = self.judge(page, kinds, found_by)
        if candidate is not None:
            self.found.append(candidate)
        elif "sitemap" in kinds:
            await self.try_all(self.news_children(page), kinds, found_by)

    def news_children(self, page: Fetched) -> list[str]:
        """Return the news sitemaps an index names; an archive's hundreds are not for us."""
        listing = self._parse(page, "sitemap")
        return [child for child in listing.children if names_news(child)][:2] if listing else []

    def judge(
        self, page: Fetched, kinds: tuple[DiscoveredKind, ...], found_by: str
    ) -> Candidate | None:
        """Return the candidate a page makes as the first of `kinds` it can be read as."""
        for kind in kinds:
            listing = self._parse(page, kind)
            if listing and listing.entries:
                return judge_listing(listing, page.final_url, kind, found_by, self.now)
        return None

    def _parse(self, page: Fetched, kind: DiscoveredKind) -> Listing | None:
        try:
            return parse_as(kind, page, rules=ListRules(), timezone=self.timezone, now=self.now)
        except ParseError:
            return None

    def has_live_one(self) -> bool:
        return any(one.newest_at and self.now - one.newest_at <= ALIVE for one in self.found)

    def ranked(self, links: PageLinks, listed: Candidate | None) -> list[Candidate]:
        """Return everything found, best first, each address once."""
        best: dict[str, Candidate] = {}
        for candidate in sorted(
            [*self.found, *([listed] if listed else [])], key=lambda one: -one.score
        ):
            told = replace(candidate, title=candidate.title or links.title, language=links.language)
            best.setdefault(url_key(candidate.url), told)
        return list(best.values())
