"""Find what to poll behind an address: ``newsbeat add URL``.

A channel, profile or board of a known service is looked at where its posts are public. Of
all others, in this order: the address itself (it may be a feed already), the feeds the
page names, those its forum software is known to have, the sitemaps robots.txt names, and,
only where those gave nothing that is alive, a short list of usual addresses. The page
itself is a candidate too, as a list.
Each is fetched and parsed by the parsers the polls use, so what is offered works.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Iterable
from dataclasses import replace
from datetime import datetime, timedelta
from functools import partial
from typing import Protocol, TypeVar

from flows.listing import parse_listing
from flows.polite import PoliteFetcher
from models.boards import BOARD_FEEDS
from models.discovery import Candidate, Discovery, Miss, judge_listing
from models.errors import FetchError, ParseError, TransientFetchError
from models.identity import url_key
from models.kinds import as_polled, public_address, recognise
from models.plaintext import absolute_url
from models.records import Fetched, Kind, Listing, Source
from tasks.extraction import ExtractionPool
from tasks.links import PageLinks, find_feed_links, find_sitemap_lines, names_news

Fetch = Callable[[str], Awaitable[Fetched]]
T = TypeVar("T")


class Read(Protocol):
    """Returns what some work on a page makes, wherever it is done; may raise `ParseError`."""

    async def __call__(self, work: Callable[[], T], page: Fetched) -> T:
        """Do it."""
        ...


async def read_here(work: Callable[[], T], page: Fetched) -> T:  # noqa: ARG001 - as `Read` is
    """Return what `work` makes, done on the spot: for pages of no stranger."""
    return work()


MAX_FEEDS = 8
MAX_SITEMAPS = 4
"""Tries per way of finding, so that a page with hundreds of feeds costs a few requests."""

USUAL_FEEDS = ("/rss", "/rss.xml", "/feed", "/feed.xml", "/atom.xml", "/index.xml")
USUAL_SITEMAPS = ("/news-sitemap.xml", "/sitemap-news.xml")

ALIVE = timedelta(days=7)


async def discover(
    url: str, fetch: Fetch, *, now: datetime, timezone: str = "UTC", read: Read = read_here
) -> Discovery:
    """Return what could be polled behind an address, the best first, and what was in vain.

    Parameters
    ----------
    url
        A page or a feed of the publisher. ``https://`` is put in front where no scheme is.
    fetch
        Fetches one address; may raise `FetchError`.
    timezone
        Zone in which dates without one are read.
    read
        Does the parsing: in a helper process that can be ended, for pages of strangers.

    Raises
    ------
    FetchError
        If the address itself cannot be had.
    UnlistedError
        If it is a channel that shows nothing on the web.
    """
    asked = url.strip() if "://" in url else f"https://{url.strip()}"
    search = _Search(fetch, now, timezone, read)
    service = recognise(asked)
    if service and public_address(service, asked):
        return await search.look_at_service(service, asked)
    page = await fetch(asked)
    itself = await search.judge(page, ("feed", "sitemap"), "the address itself")
    if itself:
        return Discovery([itself], [])
    links = await search.links_of(page)
    search.board = links.board
    await search.try_all(links.feeds[:MAX_FEEDS], ("feed",), "named by the page")
    if links.board and not search.has_live_one():
        await search.try_board(links)
    await search.try_all(await search.news_children(page), ("sitemap",), "named by its index")
    await search.try_robots(page.final_url)
    if not search.has_live_one():
        await search.try_usual(page.final_url)
    listed = await search.judge(page, ("list",), "the page itself")
    return Discovery(search.ranked(links, listed), search.misses)


def fetch_with(fetcher: PoliteFetcher, source: Source) -> Fetch:
    """Return what fetches listings politely, on behalf of `source`."""

    async def fetch(url: str) -> Fetched:
        answer = await fetcher.fetch(url, replace(source, url=url), accept="listing")
        if not isinstance(answer, Fetched):
            raise TransientFetchError(url, "answered 304 to a first request", 304)
        return answer

    return fetch


def read_with(pool: ExtractionPool) -> Read:
    """Return what reads pages in the helpers of `pool`, each page as a source of its own."""

    async def read(work: Callable[[], T], page: Fetched) -> T:
        return await pool.read(work, page, page.final_url)

    return read


class _Search:
    """One discovery under way: what was tried, and what came of it."""

    def __init__(self, fetch: Fetch, now: datetime, timezone: str, read: Read) -> None:
        self.fetch = fetch
        self.read = read
        self.now = now
        self.timezone = timezone
        self.board: str | None = None
        self.tried: set[str] = set()
        self.found: list[Candidate] = []
        self.misses: list[Miss] = []

    async def look_at_service(self, kind: Kind, asked: str) -> Discovery:
        """Return a channel, profile or board of a known service, at its human address."""
        source = Source("probe", "", asked, kind=kind, timezone=self.timezone)
        page = await self.fetch(as_polled(source).url)
        listing = await self.read(partial(parse_listing, page, source, self.now), page)
        found_by = f"the public posts of {kind}"
        return Discovery([judge_listing(listing, asked, kind, found_by, self.now)], [])

    async def try_robots(self, site: str) -> None:
        robots = absolute_url("/robots.txt", site) or site
        try:
            answer = await self.fetch(robots)
        except FetchError:
            return
        sitemaps = find_sitemap_lines(answer.body, answer.final_url)[:MAX_SITEMAPS]
        await self.try_all(sitemaps, ("sitemap",), "named by robots.txt")

    async def try_board(self, links: PageLinks) -> None:
        paths = BOARD_FEEDS.get(links.board or "", ())
        feeds = [link for path in paths if (link := absolute_url(path, links.base))]
        await self.try_all(feeds, ("feed",), f"where {links.board} has it")

    async def try_usual(self, site: str) -> None:
        feeds = [link for path in USUAL_FEEDS if (link := absolute_url(path, site))]
        sitemaps = [link for path in USUAL_SITEMAPS if (link := absolute_url(path, site))]
        await self.try_all(feeds, ("feed",), "a usual address")
        if not self.has_live_one():
            await self.try_all(sitemaps, ("sitemap",), "a usual address")

    async def try_all(self, urls: Iterable[str], kinds: tuple[Kind, ...], found_by: str) -> None:
        fresh = {url_key(url): url for url in urls if url_key(url) not in self.tried}
        self.tried |= fresh.keys()
        await asyncio.gather(*(self._try(url, kinds, found_by) for url in fresh.values()))

    async def _try(self, url: str, kinds: tuple[Kind, ...], found_by: str) -> None:
        service = recognise(url)
        if service and public_address(service, url) == url:
            kinds = (service,)
        try:
            page = await self.fetch(url)
        except FetchError as error:
            self.misses.append(Miss(url, found_by, error.reason))
            return
        candidate = await self.judge(page, kinds, found_by)
        if candidate is not None:
            self.found.append(candidate)
        elif "sitemap" in kinds:
            await self.try_all(await self.news_children(page), kinds, found_by)

    async def links_of(self, page: Fetched) -> PageLinks:
        """Return where a page says its feeds are; nowhere where that cannot be read."""
        work = partial(find_feed_links, page.body, page.final_url, page.content_type)
        try:
            return await self.read(work, page)
        except ParseError as error:
            self.misses.append(Miss(page.final_url, "the page's links", error.reason))
            return PageLinks((), base=page.final_url)

    async def news_children(self, page: Fetched) -> list[str]:
        """Return the news sitemaps an index names; an archive's hundreds are not for us."""
        listing = await self._parse(page, "sitemap")
        return [child for child in listing.children if names_news(child)][:2] if listing else []

    async def judge(
        self, page: Fetched, kinds: tuple[Kind, ...], found_by: str
    ) -> Candidate | None:
        """Return the candidate a page makes as the first of `kinds` it can be read as."""
        reason = "it lists nothing"
        for kind in kinds:
            try:
                listing = await self._read(page, kind)
            except ParseError as error:
                reason = error.reason
                continue
            reason = listing.warnings[-1] if listing.warnings else reason
            if listing.entries:
                return judge_listing(listing, page.final_url, kind, found_by, self.now, self.board)
        if found_by != "the address itself":
            self.misses.append(Miss(page.final_url, found_by, reason))
        return None

    async def _read(self, page: Fetched, kind: Kind) -> Listing:
        source = Source("probe", "", page.final_url, kind=kind, timezone=self.timezone)
        return await self.read(partial(parse_listing, page, source, self.now), page)

    async def _parse(self, page: Fetched, kind: Kind) -> Listing | None:
        try:
            return await self._read(page, kind)
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
