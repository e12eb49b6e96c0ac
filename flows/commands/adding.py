"""`newsbeat add URL`: find what to poll behind an address, and add it to the catalogue."""

from __future__ import annotations

import asyncio
from dataclasses import asdict, replace
from typing import Any

import click

from flows.discovery import discover
from flows.polite import PoliteFetcher
from models.discovery import Candidate, make_source
from models.errors import NewsbeatError, ParseError
from models.records import Fetched, HttpRules, Source
from tasks.catalogue import read_catalogue, write_source
from tasks.settings import Settings

SHOWN = 5


def add_source(
    settings: Settings,
    url: str,
    *,
    name: str | None = None,
    allow_private: bool = False,
    take_best: bool = False,
) -> dict[str, Any]:
    """Find feed, sitemap or list behind `url`, and write the chosen one to the catalogue.

    Parameters
    ----------
    name
        Name of the source; made from the address where None.
    allow_private
        Allow addresses inside the user's own network, for this source alone.
    take_best
        Take the best find without asking.

    Raises
    ------
    FetchError
        If the address cannot be had.
    ParseError
        If nothing there can be polled.
    ConfigError
        If the name is taken or not allowed.
    """
    probe = Source("probe", "probe", url, http=HttpRules(allow_private=allow_private))
    found = asyncio.run(_discover(settings, probe))
    if not found:
        raise ParseError(
            url, "no feed, news sitemap or list of articles there; try the page that lists the news"
        )
    chosen = found[0] if take_best else _ask_which(found)
    taken = {source.source for source in read_catalogue(settings).sources}
    made = make_source(chosen, taken)
    source = replace(made, source=name or made.source, http=probe.http)
    path = write_source(settings.sources_folder, source)
    if not take_best:
        click.echo(f"added {source.source} to {path}")
        click.echo(f"try it:      newsbeat poll {source.source}")
        click.echo("collect it:  newsbeat up")
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
