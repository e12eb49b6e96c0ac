"""What hostile sources cost their neighbours: the same good source, alone and beside attackers.

``python benchmarks/hostile.py [--polls N] [--at-once N] [--json]``

One collector, one event loop. The good source is polled twice a second: first alone, then while
some hostile ones are polled without a pause beside it, then alone again, beside the next ones,
and so on through each attack of ``parts/attacks.py`` and its pages that hang whoever reads them.
A poll's delay is how much later it was over than it should have begun. Printed are the delays,
how long the loop itself was held up, and beside whom the slowest poll was; the target is that no
poll comes a second later for its neighbours.
"""

from __future__ import annotations

import asyncio
import contextlib
import json
import ssl
import sys
import tempfile
import time
from collections import Counter
from dataclasses import dataclass, field
from pathlib import Path
from statistics import mean, median, quantiles
from typing import Any
from urllib.parse import quote

import click

sys.path.insert(0, str(Path(__file__).parent))

from parts.attacks import ATTACKS, H2_ATTACKS, PAGES, run_server
from parts.certificates import make_certificate
from rig import markdown_table, say

from flows.collector import Collector
from flows.polite import PoliteFetcher
from flows.poll import poll_source
from models.records import HttpRules, PollRules, Source
from tasks.catalogue import Catalogue
from tasks.clock import Clock
from tasks.fetch import Fetcher
from tasks.replay.sample import SAMPLE_START, sample_web
from tasks.replay.server import serve_in_process
from tasks.settings import AgentSettings, ExtractSettings, FetchSettings, Settings

MAX_ADDED_S = 1.0
"""A good source's poll may come so much later for its neighbours."""

SPEED = 1800.0
"""Seconds of the good source's time in one of the wall's: it always has something new."""

WARM_UP_POLLS = 4

LEFT_OUT = ("redirect to the cloud's keeper", "redirect to multicast", "redirect to nowhere")
"""They lead nowhere here: all hosts are the one hostile server."""

EVERY_S = 0.5
"""Between two polls of the good source."""


@dataclass(frozen=True)
class Plan:
    """What is run.

    Attributes
    ----------
    n_polls
        Of the good source, alone and beside each group of attackers.
    at_once
        Attackers in a group.
    step
        Only every so many-th attack.
    """

    n_polls: int
    at_once: int
    step: int = 1


@dataclass
class Run:
    """What a run came to.

    Attributes
    ----------
    delays_s
        Of each good poll, from when it should have begun to when it was stored.
    held_up_s
        The longest that the loop did nothing else, during each good poll.
    """

    delays_s: list[float] = field(default_factory=list)
    held_up_s: list[float] = field(default_factory=list)
    n_articles: int = 0
    n_hostile: int = 0
    slowest_beside: str = ""
    outcomes: Counter[str] = field(default_factory=Counter)


def host_of(number: int) -> str:
    """Return an attacker's own host: none is left alone for what another did."""
    return f"www.hostile-{number}.example"


def hostile_sources(port: int, h2_port: int) -> list[Source]:
    """Return a source for every attack."""
    found = [("http", port, name) for name in (*ATTACKS, *PAGES) if name not in LEFT_OUT]
    found += [("https", h2_port, name) for name in H2_ATTACKS]
    return [
        Source(
            source=f"hostile-{number}",
            title=name,
            url=f"{scheme}://{host_of(number)}/{quote(name)}",
            kind="auto",
            http=HttpRules(allow_private=True, connect_to=f"127.0.0.1:{at}", min_gap_s=0.0),
            poll=PollRules(policy="fixed", interval_s=60.0),
        )
        for number, (scheme, at, name) in enumerate(found)
    ]


async def watch_loop(run: Run) -> None:
    """Note for how long the loop is held up at a time."""
    before = time.monotonic()
    while True:
        await asyncio.sleep(0.01)
        now = time.monotonic()
        run.held_up_s.append(max(now - before - 0.01, 0.0))
        before = now


async def poll_evenly(collector: Collector, source: Source, n_polls: int, run: Run) -> None:
    """Poll the good source twice a second, and note how late each poll was over."""
    began = time.monotonic()
    for number in range(n_polls):
        due = began + EVERY_S * number
        await asyncio.sleep(max(due - time.monotonic(), 0.0))
        result = await poll_source(collector, source)
        assert result is not None
        run.n_articles += len(result.articles)
        run.delays_s.append(time.monotonic() - due)
        # A late one does not make the next late too: each is looked at by itself.
        began = max(began, time.monotonic() - EVERY_S * (number + 1))


async def poll_forever(collector: Collector, source: Source, run: Run) -> None:
    """Poll a hostile source again and again."""
    while True:
        result = await poll_source(collector, source)
        if result is not None:
            run.n_hostile += 1
            run.outcomes[f"{source.title}: {result.poll.outcome}, {result.poll.reason[:60]}"] += 1
        await asyncio.sleep(0.05)


async def poll_beside(
    collector: Collector, good: Source, hostile: list[Source], n_polls: int, run: Run
) -> None:
    """Poll the good source with hostile ones beside it, and note who made it slowest."""
    beside = [asyncio.create_task(poll_forever(collector, each, run)) for each in hostile]
    beside.append(asyncio.create_task(watch_loop(run)))
    before = max(run.delays_s, default=0.0)
    try:
        await poll_evenly(collector, good, n_polls, run)
    finally:
        for task in beside:
            task.cancel()
        await asyncio.gather(*beside, return_exceptions=True)
    if max(run.delays_s) > before:
        run.slowest_beside = ", ".join(each.title for each in hostile)


def make_settings(home: Path) -> Settings:
    """Return settings for a loop that waits for no host, and gives up sooner than usual."""
    return Settings(
        home=home,
        clock=Clock.starting_at(SAMPLE_START, SPEED),
        agent=AgentSettings(contact="benchmark@newsbeat.example"),
        fetch=FetchSettings(host_gap_s=0.0, host_connections=99, total_timeout_s=10.0),
        extract=ExtractSettings(timeout_s=8.0),
    )


async def run_both(
    settings: Settings, good: Source, hostile: list[Source], plan: Plan, tls: ssl.SSLContext
) -> tuple[Run, Run]:
    """Poll the good source alone and beside attackers by turns, on one loop."""
    alone, beside = Run(), Run()
    async with Collector(settings, Catalogue((good, *hostile), ()), "benchmark") as collector:
        await collector.sync_catalogue()
        fetcher = PoliteFetcher(settings, fetcher=Fetcher(settings, tls=tls))
        collector.fetcher = await collector._stack.enter_async_context(fetcher)
        await poll_evenly(collector, good, WARM_UP_POLLS, Run())
        for at in range(0, len(hostile), plan.at_once):
            await poll_beside(collector, good, [], plan.n_polls, alone)
            group = hostile[at : at + plan.at_once]
            await poll_beside(collector, good, group, plan.n_polls, beside)
            slowest = max(beside.delays_s[-plan.n_polls :])
            say(f"{slowest:6.2f} s  beside {', '.join(each.title for each in group)}")
    return alone, beside


def compare(folder: Path, plan: Plan) -> tuple[Run, Run]:
    """Return the good source's polls alone, and those beside attackers."""
    web = sample_web(n_sources=1)
    settings = make_settings(folder / "home")
    names = [host_of(number) for number in range(len(ATTACKS) + len(PAGES) + len(H2_ATTACKS))]
    _, certificate = make_certificate(folder, names=names)
    tls = ssl.create_default_context(cafile=str(certificate))
    with contextlib.ExitStack() as stack:
        port = stack.enter_context(run_server())
        words = ("--tls", str(certificate), str(folder / "key.pem"))
        h2_port = stack.enter_context(run_server(*words))
        good_port = stack.enter_context(serve_in_process(web, settings.clock))
        (good,) = web.sources(good_port)
        hostile = hostile_sources(port, h2_port)[:: plan.step]
        return asyncio.run(run_both(settings, good, hostile, plan, tls))


def added_s(alone: Run, beside: Run) -> float:
    """Return by how much the slowest poll came later for its neighbours."""
    return max(beside.delays_s) - max(alone.delays_s)


def figures_of(run: Run) -> dict[str, Any]:
    """Return a run's figures."""
    return {
        "polls": len(run.delays_s),
        "articles": run.n_articles,
        "mean_delay_s": round(mean(run.delays_s), 3),
        "median_delay_s": round(median(run.delays_s), 3),
        "p95_delay_s": round(quantiles(run.delays_s, n=20)[-1], 3),
        "longest_delay_s": round(max(run.delays_s), 3),
        "loop_held_up_s": round(max(run.held_up_s), 3),
        "hostile_polls": run.n_hostile,
    }


@click.command()
@click.option("--polls", default=3, show_default=True, help="Of the good source, beside a group.")
@click.option("--at-once", default=3, show_default=True, help="Attackers in a group.")
@click.option("--step", default=1, help="Only every so many-th attack.")
@click.option("--show", is_flag=True, help="Show how the hostile polls ended.")
@click.option("--json", "as_json", is_flag=True, help="Answer as JSON.")
def main(polls: int, at_once: int, step: int, show: bool, as_json: bool) -> None:
    """Measure what hostile sources cost a good one."""
    with tempfile.TemporaryDirectory(prefix="newsbeat-hostile-") as folder:
        alone, beside = compare(Path(folder), Plan(polls, at_once, step))
    added = added_s(alone, beside)
    if as_json:
        runs = {"alone": figures_of(alone), "beside": figures_of(beside)}
        click.echo(json.dumps(runs | {"added_s": round(added, 3)}))
    else:
        rows = [
            [name, *map(str, figures_of(run).values())]
            for name, run in (("alone", alone), ("beside attackers", beside))
        ]
        click.echo(markdown_table(["good source", *figures_of(alone)], rows))
        click.echo(f"\nslowest poll later by {added:.2f} s, at most {MAX_ADDED_S:g} s")
        click.echo(f"it was beside {beside.slowest_beside}")
        for words, count in sorted(beside.outcomes.items()) if show else ():
            click.echo(f"{count:5}  {words}")
    sys.exit(added > MAX_ADDED_S)


if __name__ == "__main__":
    main()
