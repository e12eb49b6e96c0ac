"""Dispatch delay of our worker at rising rates: empty flows that set their own next run.

Everything is the product's (worker, scheduler, engine, schedule in the warehouse) but the
look at the source. Due times keep their beat however late a run is, so that the rate that
is offered does not give way.
"""

from __future__ import annotations

import asyncio
import os
from dataclasses import asdict
from datetime import timedelta
from typing import Any

from rig import Cpu, Rig, markdown_table, quantile, say

from models.records import PollRules, Source
from tasks.catalogue import Catalogue

RATES_PER_S = (1.0, 2.0, 4.0, 6.0, 8.0, 10.0, 12.0)
STEP_S = 25.0
INTERVAL_S = 10.0
"""Of each source; their number makes the rate."""

HELD_S = 5.0
"""A rate is held while the 99th percentile of the delay stays below."""

MADE_PER_S = 10.0
"""First runs are made at least this fast; nothing is due before they are."""

DRAIN_S = 60.0

# Pages for people are left out: in so short a time, every one would be new.
WORKER = "\n[worker]\nartifact_s = 86400.0\n"


def measure() -> dict[str, Any]:
    """Offer one rate after the other until one is not held; return the figures of each."""
    sources = [_source(number) for number in range(round(max(RATES_PER_S) * INTERVAL_S))]
    with Rig(WORKER) as rig:
        steps = asyncio.run(_climb(rig, sources))
    held = [step["rate"] for step in steps if step["is_held"]]
    return {"steps": steps, "highest_held": max(held, default=0.0)}


def render(result: dict[str, Any]) -> str:
    """Return the figures as Markdown."""
    rows = [
        [
            f"{step['rate']:g}",
            step["n"],
            *(f"{step[key]:.2f}" for key in ("p50_s", "p99_s", "max_s")),
            *(f"{1000 * step[key]:.0f}" for key in ("client", "server", "postgres", "engine")),
            f"{step['cores']:.2f}",
        ]
        for step in result["steps"]
    ]
    header = ["runs/s offered", "runs", "delay p50 s", "p99 s", "max s"]
    header += ["client ms/run", "server ms", "PostgreSQL ms", "all ms", "cores busy"]
    held = f"Held with p99 under {HELD_S:g} s: **{result['highest_held']:g} runs/s**."
    return f"{markdown_table(header, rows)}\n\n{held}"


def _source(number: int) -> Source:
    return Source(
        source=f"beat-{number}",
        title=f"Beat {number}",
        url=f"http://beat-{number}.example/",
        kind="feed",
        poll=PollRules(interval_s=INTERVAL_S, min_interval_s=1.0),
    )


async def _climb(rig: Rig, sources: list[Source]) -> list[dict[str, Any]]:
    # Prefect reads its settings on import: only now does it know the server.
    from beating import BeatingWorker

    from flows.collector import Collector
    from tasks.orchestrator import Orchestrator

    async with (
        Collector(rig.settings, Catalogue(tuple(sources), ()), "benchmark") as collector,
        Orchestrator(rig.settings.prefect.work_pool) as orchestrator,
    ):
        worker = BeatingWorker(rig.settings, collector, orchestrator)
        say(f"deploying {len(sources)} sources …")
        await worker.prepare_quietly()
        task = asyncio.create_task(worker.run())
        try:
            return await _climb_with(rig, worker, sources)
        finally:
            task.cancel()
            await asyncio.gather(task, return_exceptions=True)


async def _climb_with(rig: Rig, worker: Any, sources: list[Source]) -> list[dict[str, Any]]:
    steps = []
    for rate in RATES_PER_S:
        steps.append(await _offer(rig, worker, sources[: round(rate * INTERVAL_S)], rate))
        say(f"{rate:g} runs/s: p99 {steps[-1]['p99_s']:.2f} s")
        if not steps[-1]["is_held"]:
            break
    return steps


async def _offer(rig: Rig, worker: Any, sources: list[Source], rate: float) -> dict[str, Any]:
    from beating import Step

    clock = rig.settings.clock
    begins_at = clock.now() + timedelta(seconds=2 + len(sources) / MADE_PER_S)
    worker.step = step = Step(ends_at=begins_at + timedelta(seconds=STEP_S))
    await worker.begin(sources, begins_at, INTERVAL_S)
    await clock.sleep_until(begins_at)
    before = rig.read_cpu(os.getpid())
    await clock.sleep_until(step.ends_at)
    give_up_at = step.ends_at + timedelta(seconds=DRAIN_S)
    while len(step.delays_s) < len(step.due) and clock.now() < give_up_at:
        await clock.sleep(0.2)
    took_s = (clock.now() - begins_at).total_seconds()
    used = rig.read_cpu(os.getpid()).since(before)
    # A run that never began is as late as it is by now.
    delays = [
        step.delays_s.get(key, (clock.now() - due_at).total_seconds())
        for key, due_at in step.due.items()
    ]
    return _figures(rate, delays, took_s, used)


def _figures(rate: float, delays: list[float], took_s: float, used: Cpu) -> dict[str, Any]:
    p99 = quantile(delays, 0.99)
    each = used.per(len(delays))
    return {
        "rate": rate,
        "n": len(delays),
        "p50_s": quantile(delays, 0.5),
        "p99_s": p99,
        "max_s": max(delays, default=float("nan")),
        "is_held": p99 < HELD_S,
        "cores": used.engine / took_s,
        **asdict(each),
        "engine": each.engine,
    }
