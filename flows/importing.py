"""Lists of sources in: ``newsbeat import FILE``.

Each line is taken or refused by itself. Without the network a line is refused where it is
no source, or one that is there already; with ``--check`` each address is asked for once,
politely, and what stands behind a home page is looked for, as ``newsbeat add`` does.
"""

from __future__ import annotations

import asyncio
import itertools
import typing
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field, replace
from datetime import datetime
from functools import partial
from typing import Literal

from flows.discovery import Read, discover, fetch_with, read_with
from flows.listing import parse_listing
from flows.polite import PoliteFetcher
from models.discovery import free_name, suggest_name
from models.errors import ConfigError, FetchError, ParseError, UnlistedError
from models.identity import url_key
from models.kinds import POSTS, as_polled, public_address, recognise
from models.records import Fetched, Kind, Source
from models.subscriptions import Wish, Wishes
from tasks.catalogue import is_name, source_from_texts
from tasks.extraction import ExtractionPool
from tasks.settings import Settings

Fate = Literal["imported", "there", "twice", "bad", "failed"]

AT_ONCE = 16
"""Addresses tried side by side; each host's own pace holds among them."""

_PERMANENT_MOVES = frozenset({301, 308})
OF_ONES_OWN_NETWORK = frozenset({"http.allow_private", "http.connect_to"})
"""What a list from elsewhere must not set: it would open the network newsbeat runs in."""

Tell = Callable[[int, int], None]


@dataclass(frozen=True, slots=True)
class Line:
    """What became of one line of a list.

    Attributes
    ----------
    fate
        ``imported``; ``there``: watched already; ``twice``: named before in the same list;
        ``bad``: no source; ``failed``: tried, and nothing to poll was found.
    words
        Its address, and the reason where it was not imported.
    final_url
        Where its address led when it was tried.
    """

    number: int
    fate: Fate
    words: str
    source: Source | None = None
    final_url: str = ""


@dataclass(slots=True)
class Plan:
    """What becomes of the lines of a list, beside the sources that are watched already."""

    known: Sequence[Source]
    lines: list[Line] = field(default_factory=list)
    watched: frozenset[str] = field(init=False)
    by_address: dict[str, str] = field(init=False)
    names: set[str] = field(init=False)

    def __post_init__(self) -> None:
        """Start from what is watched."""
        self.by_address = {address_key(source): source.source for source in self.known}
        self.watched = frozenset(source.source for source in self.known)
        self.names = set(self.watched)

    @property
    def sources(self) -> list[Source]:
        """The sources to be imported, in the order of the list."""
        return [line.source for line in self.lines if line.source is not None]

    def admit(self, number: int, source: Source, final_url: str = "") -> Line:
        """Return the line of a source, refused where its address or its name is taken."""
        keys = {address_key(source), url_key(final_url or as_polled(source).url)}
        holder = next((self.by_address[key] for key in keys if key in self.by_address), None)
        if holder is not None:
            fate: Fate = "there" if holder in self.watched else "twice"
            return Line(number, fate, f"{source.url}: the address of {holder}")
        if source.source in self.names:
            reason = f"the name {source.source!r} is taken; give it another one"
            return Line(number, "bad", f"{source.url}: {reason}")
        self.by_address.update(dict.fromkeys(keys, source.source))
        self.names.add(source.source)
        return Line(number, "imported", source.url, source)


def address_key(source: Source) -> str:
    """Return what two sources that ask for the same listing have in common."""
    return url_key(as_polled(source).url)


def plan_import(
    wishes: Wishes,
    known: Sequence[Source],
    *,
    tags: Iterable[str] = (),
    timezone: str | None = None,
    allow_private: bool = False,
) -> Plan:
    """Return what becomes of each line of a list, without the network.

    Parameters
    ----------
    known
        Sources that are watched already: they stay as they are.
    tags
        Put on every source.
    timezone
        Of sources whose line names none.
    allow_private
        Let lines open addresses inside one's own network, which they do not by default.
    """
    plan = Plan(known)
    plan.lines = [
        Line(slip.line, "bad", f"{slip.text[:80] or '(empty)'}: {slip.reason}")
        for slip in wishes.slips
    ]
    given = {wish.values["source"] for wish in wishes.wanted if wish.values.get("source")}
    for wish in wishes.wanted:
        texts = _completed(wish, timezone, allow_private)
        _give_name(texts, wish.url, plan.names | given)
        all_tags = list(dict.fromkeys([*wish.tags, *tags]))
        try:
            source = source_from_texts(texts, all_tags, f"line {wish.line}")
            plan.lines.append(plan.admit(wish.line, source))
        except ConfigError as error:
            reason = f"{error.key} {error.value!r}: {error.allowed}"
            plan.lines.append(Line(wish.line, "bad", f"{wish.url}: {reason}"))
    plan.lines.sort(key=lambda line: line.number)
    return plan


def _completed(wish: Wish, timezone: str | None, allow_private: bool) -> dict[str, str]:
    """Return the keys of a line with what is known without it, less what it must not say."""
    texts = {
        key: value
        for key, value in wish.values.items()
        if allow_private or key not in OF_ONES_OWN_NETWORK
    }
    service = recognise(wish.url)
    if texts.get("kind", "feed") == "feed" and service and public_address(service, wish.url):
        texts["kind"] = service
    if timezone:
        texts.setdefault("timezone", timezone)
    return texts


def _give_name(texts: dict[str, str], url: str, taken: set[str]) -> None:
    """Make a name where a line gives none; a column "source" may hold a title instead."""
    given = texts.get("source", "")
    if not given:
        kind = typing.cast("Kind", texts.get("kind", "auto"))
        texts["source"] = suggest_name(url, taken, kind)
    elif not is_name(given):
        texts.setdefault("title", given)
        texts["source"] = free_name(given, taken)


async def check_plan(settings: Settings, plan: Plan, tell: Tell) -> Plan:
    """Return a plan after each of its addresses was tried; what cannot be polled has failed.

    What moved for good is taken at its new address; where that is watched already, or
    another line led there too, the line is refused as a double.

    Parameters
    ----------
    tell
        Told how many addresses are done, and of how many.
    """
    wanted = [line for line in plan.lines if line.source is not None]
    n_done = 0
    gate = asyncio.Semaphore(AT_ONCE)
    async with (
        PoliteFetcher(settings) as fetcher,
        ExtractionPool(settings.extract) as pool,
    ):
        finder = _Finder(fetcher, read_with(pool), settings.clock.now())

        async def check(line: Line) -> Line:
            nonlocal n_done
            async with gate:
                checked = await _check_line(finder, line)
            n_done += 1
            tell(n_done, len(wanted))
            return checked

        checked = await asyncio.gather(*(check(line) for line in wanted))
    tried = {id(before): after for before, after in zip(wanted, checked, strict=True)}
    after = Plan(plan.known)
    for line in plan.lines:
        found = tried.get(id(line), line)
        if found.source is not None:
            found = after.admit(line.number, found.source, found.final_url)
        after.lines.append(found)
    return after


@dataclass(frozen=True, slots=True)
class _Finder:
    """What addresses are tried with."""

    fetcher: PoliteFetcher
    read: Read
    now: datetime


async def _check_line(finder: _Finder, line: Line) -> Line:
    assert line.source is not None
    try:
        source, final_url = await _find(finder, line.source)
    except (FetchError, ParseError) as error:
        return replace(line, fate="failed", words=str(error), source=None)
    return replace(line, words=source.url, source=source, final_url=final_url)


async def _find(finder: _Finder, source: Source) -> tuple[Source, str]:
    """Return a source as it can be polled, and where its address led.

    Raises
    ------
    FetchError, ParseError
        If it cannot.
    """
    polled = as_polled(source)
    fetch = fetch_with(finder.fetcher, source)
    if polled.kind == "auto":
        return await _discover(finder, source)
    answer = await fetch(polled.url)
    try:
        listing = await finder.read(partial(parse_listing, answer, polled, finder.now), answer)
    except UnlistedError:
        raise
    except ParseError:
        if polled.kind in POSTS:
            raise
        return await _discover(finder, source)
    found = _named(source, listing.title)
    if polled.kind not in POSTS:
        found = replace(found, url=_settled_address(answer))
    return found, answer.final_url


async def _discover(finder: _Finder, source: Source) -> tuple[Source, str]:
    fetch = fetch_with(finder.fetcher, source)
    discovery = await discover(
        source.url, fetch, now=finder.now, timezone=source.timezone, read=finder.read
    )
    candidates = discovery.found
    if not candidates:
        raise ParseError(source.url, "no feed, news sitemap or list of articles there")
    best = candidates[0]
    language = source.language or best.language
    found = replace(_named(source, best.title), url=best.url, kind=best.kind, language=language)
    return found, as_polled(found).url


def _named(source: Source, title: str | None) -> Source:
    """Return a source under the title of its listing, where nobody gave it one."""
    told = " ".join((title or "").split())[:200]
    return replace(source, title=told) if told and source.title == source.source else source


def _settled_address(answer: Fetched) -> str:
    """Return the address an answer came from, as far as it moved there for good."""
    address = answer.url
    for hop, following in itertools.pairwise(answer.hops):
        if hop.status not in _PERMANENT_MOVES:
            break
        address = following.url
    return address
