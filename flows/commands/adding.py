"""`newsbeat add URL`: find what to poll behind an address, and add it to the catalogue."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterable
from dataclasses import asdict, dataclass, replace
from datetime import datetime, timedelta
from typing import Any

import click
from rich.console import Console, ConsoleOptions, RenderResult
from rich.table import Table
from rich.text import Text

from flows.commands.saying import echo
from flows.commands.screen import Column, fit_table, make_console, spell_command
from flows.discovery import discover, fetch_with, read_with
from flows.importing import address_key
from flows.polite import PoliteFetcher
from flows.supervisor import running_supervisor
from models.discovery import Candidate, Discovery, make_source, spell_hours
from models.errors import ConfigError, NewsbeatError, ParseError, RefusedFetchError
from models.harmless import one_line
from models.records import HttpRules, Source
from tasks.catalogue import Catalogue, check_name, check_timezone, read_catalogue, write_source
from tasks.extraction import ExtractionPool
from tasks.settings import Settings

HOUR = timedelta(hours=1)
MISSES_SHOWN = 8
SHOWN = 5


def add_source(
    settings: Settings,
    url: str,
    *,
    name: str | None = None,
    timezone: str | None = None,
    allow_private: bool = False,
    take_best: bool = False,
    quiet: bool = False,
) -> dict[str, Any]:
    """Find feed, sitemap or list behind `url`, and write the chosen one to the catalogue.

    Parameters
    ----------
    name
        Name of the source; made from the address where None.
    timezone
        Zone that dates without one are read in; UTC where None.
    allow_private
        Allow addresses inside the user's own network, for this source alone.
    take_best
        Take the best find without asking.
    quiet
        Print nothing.

    Raises
    ------
    FetchError
        If the address cannot be had.
    ParseError
        If nothing there can be polled.
    ConfigError
        If the name is taken, it or the zone is not allowed, or the address is watched.
    """
    check_timezone(timezone)
    _check_name(settings, name)
    say: Callable[[str], None] = (lambda _line: None) if quiet else echo
    say(f"looking at {url} …")
    probe = Source("probe", "probe", url, http=HttpRules(allow_private=allow_private))
    try:
        discovery = asyncio.run(_discover(settings, probe, timezone or "UTC"))
    except RefusedFetchError as error:
        if allow_private or "address" not in error.reason:
            raise
        reason = f"{error.reason}; where it is a site of yours, say --allow-private"
        raise RefusedFetchError(error.url, reason, error.status, error.final_url) from error
    if not quiet:
        make_console().print(DiscoveryView(discovery, settings.clock.now()))
    if not discovery.found:
        raise ParseError(url, _why_nothing(discovery))
    chosen = discovery.found[0] if take_best else _ask_which(discovery.found)
    before = read_catalogue(settings)
    # A first source of one's own makes a folder of one's own: what ships is out of play.
    known = () if before.is_packaged else before.sources
    made = make_source(chosen, {source.source for source in known})
    source = replace(
        made, source=name or made.source, timezone=timezone or made.timezone, http=probe.http
    )
    _check_new(source, known)
    path = write_source(settings.sources_folder, source)
    say(f"added {source.source} ({source.kind}, {source.url}) to {path}")
    if before.is_packaged:
        say(describe_first(settings, before))
    say(f"try it      {spell_command(settings.home, 'poll', source.source)}")
    say(describe_start(settings, before.is_packaged))
    return {
        "source": source.source,
        "file": str(path),
        "candidates": [asdict(candidate) for candidate in discovery.found],
        "misses": [asdict(miss) for miss in discovery.misses],
    }


def _why_nothing(discovery: Discovery) -> str:
    reason = "no feed, news sitemap or list of articles there"
    named = next((miss for miss in discovery.misses if miss.found_by.startswith("named")), None)
    if named is not None:
        return f"{reason}; it names {named.url}, but: {named.reason}"
    return f"{reason}; try the page that lists the news"


def describe_first(settings: Settings, before: Catalogue) -> str:
    """Return what it means that the first source of one's own was written."""
    return (
        f"From now on newsbeat collects what stands in {settings.sources_folder}, and the"
        f" {len(before.sources)} sources that come with it no longer; copy the files you want"
        f" from {before.folder}"
    )


def describe_start(settings: Settings, is_first: bool) -> str:
    """Return what there is to do until new sources are collected."""
    if running_supervisor(settings) is None:
        return f"collect it  {spell_command(settings.home, 'up')}"
    if is_first:
        return "newsbeat is up: stop it and start it again, and it goes over to sources of yours"
    return "newsbeat is up: it collects what is new from now on"


def _check_name(settings: Settings, name: str | None) -> None:
    """Check a wanted name before anything is fetched for it.

    Raises
    ------
    ConfigError
        If it is no name, or somebody has it.
    """
    if name is None:
        return
    check_name(name)
    known = read_catalogue(settings)
    if not known.is_packaged and name in {source.source for source in known.sources}:
        raise ConfigError("--name", "", None, f"a source called {name!r} is there already")


def _check_new(source: Source, known: Iterable[Source]) -> None:
    """Check that nobody watches the address already.

    Raises
    ------
    ConfigError
        If somebody does.
    """
    for one in known:
        if address_key(one) == address_key(source):
            allowed = f"{one.source} ({one.file}) watches it already"
            raise ConfigError("data/sources", "url", source.url, allowed)


async def _discover(settings: Settings, probe: Source, timezone: str) -> Discovery:
    async with (
        PoliteFetcher(settings) as fetcher,
        ExtractionPool(settings.extract, keeps_spare=False) as pool,
    ):
        return await discover(
            probe.url,
            fetch_with(fetcher, probe),
            now=settings.clock.now(),
            timezone=timezone,
            read=read_with(pool),
        )


@dataclass(frozen=True, slots=True)
class DiscoveryView:
    """What was found behind an address, as a table: the best first, and why it is."""

    discovery: Discovery
    now: datetime

    def __rich_console__(self, console: Console, options: ConsoleOptions) -> RenderResult:
        """Show the finds, and below them what was tried in vain."""
        if self.discovery.found:
            yield self._table(options.max_width)
        for miss in self.discovery.misses[:MISSES_SHOWN]:
            yield Text(f"not {miss.url} ({miss.found_by}): {one_line(miss.reason)}", style="dim")
        if len(self.discovery.misses) > MISSES_SHOWN:
            yield Text(f"… and {len(self.discovery.misses) - MISSES_SHOWN} more", style="dim")

    def _table(self, width: int) -> Table:
        found = self.discovery.found[:SHOWN]
        return fit_table(
            [
                Column("", [str(number) for number, _ in enumerate(found, 1)]),
                Column("kind", [one.kind for one in found]),
                Column("entries", [str(one.n_entries) for one in found], True, worth=5),
                Column("dated", [f"{one.n_dated / one.n_entries:.0%}" for one in found], True, 2),
                Column("newest", [self._age(one) for one in found], True, worth=6),
                Column("reaches back", [_reach(one) for one in found], True, worth=4),
                Column("text", [f"{one.text_chars:,}" for one in found], True, worth=3),
                Column("found", [one.found_by for one in found], worth=1),
                Column("address", [one_line(one.url) for one in found]),
            ],
            width,
        )

    def _age(self, one: Candidate) -> str:
        return f"{spell_hours((self.now - one.newest_at) / HOUR)} ago" if one.newest_at else "–"


def _reach(one: Candidate) -> str:
    return spell_hours(one.window_h) if one.n_dated else "–"


def _ask_which(found: list[Candidate]) -> Candidate:
    n_shown = min(len(found), SHOWN)
    if n_shown == 1:
        return found[0]
    try:
        chosen = click.prompt("which one", type=click.IntRange(1, n_shown), default=1)
    except click.Abort:
        click.echo(err=True)
        raise NewsbeatError("nothing was chosen, nothing added; --yes takes the first") from None
    return found[chosen - 1]
