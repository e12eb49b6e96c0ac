"""`newsbeat add URL`: find what to poll behind an address, and add it to the catalogue."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from dataclasses import asdict, replace
from typing import Any

import click

from flows.commands.screen import spell_command
from flows.discovery import discover
from flows.polite import PoliteFetcher
from flows.supervisor import running_supervisor
from models.discovery import Candidate, make_source
from models.errors import NewsbeatError, ParseError, RefusedFetchError
from models.records import Fetched, HttpRules, Source
from tasks.catalogue import read_catalogue, write_source
from tasks.settings import Settings

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
        If the name is taken, or it or the zone is not allowed.
    """
    say: Callable[[str], None] = (lambda _line: None) if quiet else click.echo
    say(f"looking at {url} …")
    probe = Source("probe", "probe", url, http=HttpRules(allow_private=allow_private))
    try:
        found = asyncio.run(_discover(settings, probe))
    except RefusedFetchError as error:
        if allow_private or "address" not in error.reason:
            raise
        reason = f"{error.reason}; where it is a site of yours, say --allow-private"
        raise RefusedFetchError(error.url, reason, error.status, error.final_url) from error
    if not found:
        raise ParseError(
            url, "no feed, news sitemap or list of articles there; try the page that lists the news"
        )
    chosen = found[0] if take_best else _ask_which(found)
    before = read_catalogue(settings)
    # A first source of one's own makes a folder of one's own: what ships is out of play.
    taken = set() if before.is_packaged else {source.source for source in before.sources}
    made = make_source(chosen, taken)
    source = replace(
        made, source=name or made.source, timezone=timezone or made.timezone, http=probe.http
    )
    path = write_source(settings.sources_folder, source)
    say(f"added {source.source} ({source.kind}, {source.url}) to {path}")
    if before.is_packaged:
        say(
            f"From now on newsbeat collects what stands in {settings.sources_folder}, and the"
            f" {len(before.sources)} sources that come with it no longer; copy the files you want"
            f" from {before.folder}"
        )
    say(f"try it      {spell_command(settings.home, 'poll', source.source)}")
    if running_supervisor(settings) is None:
        say(f"collect it  {spell_command(settings.home, 'up')}")
    else:
        say("newsbeat is up: stop it and start it again, and it collects the new source too")
    return {"source": source.source, "file": str(path), "candidates": [asdict(c) for c in found]}


async def _discover(settings: Settings, probe: Source) -> list[Candidate]:
    async with PoliteFetcher(settings) as fetcher:

        async def fetch(url: str) -> Fetched:
            answer = await fetcher.fetch(url, replace(probe, url=url), accept="listing")
            if not isinstance(answer, Fetched):
                raise NewsbeatError(f"{url}: answered 304 to a first request")
            return answer

        return await discover(probe.url, fetch, now=settings.clock.now())


def _ask_which(found: list[Candidate]) -> Candidate:
    shown = found[:SHOWN]
    for number, candidate in enumerate(shown, 1):
        click.echo(f"{number}. {candidate.kind:8} {candidate.url}")
        click.echo(f"   {candidate.evidence}")
    if len(shown) == 1:
        return shown[0]
    chosen = click.prompt("which one", type=click.IntRange(1, len(shown)), default=1)
    return shown[chosen - 1]
