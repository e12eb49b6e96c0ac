"""Processor time of a whole poll on the recorded web, by part.

Sources are fewer and their clock is faster than in the soak, so that as many polls a second
are made as 450 sources make at a poll each per ten minutes. What goes by the wall clock and
belongs to a source (its page in the UI) is made as much faster.
"""

from __future__ import annotations

import os
from dataclasses import asdict
from typing import Any

from parts.recorded import Scene, living, sql_moment
from rig import Cpu, markdown_table, say

from models.records import PollRules
from tasks.replay.sample import sample_web

POLLS_PER_S = 0.75
INTERVAL_S = 600.0
N_SOURCES = 120
SPEED = POLLS_PER_S * INTERVAL_S / N_SOURCES
ARTIFACT_S = 300.0 / SPEED

TARGET_S = 0.150
"""A poll's share of worker, server and database together, extraction apart."""


def measure(policy: str = "fixed") -> dict[str, Any]:
    """Poll every source once to begin with, then measure for as long as all take once more."""
    seconds = INTERVAL_S / SPEED
    text = f"\n[worker]\nartifact_s = {ARTIFACT_S}\n"
    warm_up_s = seconds * 1.1
    hours = (warm_up_s + seconds + 120.0) * SPEED / 3600.0
    say(f"inventing {N_SOURCES} sites …")
    web = sample_web(hours=hours, n_sources=N_SOURCES)
    with living(web, PollRules(policy=policy, interval_s=INTERVAL_S), SPEED, text) as scene:
        say(f"first polls, {warm_up_s:.0f} s …")
        scene.wait(warm_up_s)
        say(f"measuring, {seconds:.0f} s …")
        began_at, before = scene.clock.now(), scene.read_cpu()
        scene.wait(seconds, tick_s=5.0)
        used, ended_at = scene.read_cpu().since(before), scene.clock.now()
        counts = _count(scene, sql_moment(began_at), sql_moment(ended_at))
    return {"policy": policy, **_figures(used, counts, seconds)}


def render(result: dict[str, Any]) -> str:
    """Return the figures as Markdown."""
    rows = [
        [name, f"{1000 * result[key]:.0f}"]
        for name, key in (
            ("worker", "client"),
            ("Prefect's server", "server"),
            ("PostgreSQL", "postgres"),
            (f"**together** (target {1000 * TARGET_S:.0f})", "engine"),
            ("article extraction, beside", "extraction"),
        )
    ]
    verdict = (
        f"Policy {result['policy']}: {result['n_polls']} polls ({result['polls_per_s']:.2f}/s),"
        f" of them {result['n_new']} found something; {result['articles']} articles,"
        f" {result['failed']} failed. Extraction is"
        f" {1000 * result['extraction_per_article']:.0f} ms an article."
    )
    return f"{markdown_table(['part', 'CPU ms per poll'], rows)}\n\n{verdict}"


def _count(scene: Scene, since: str, until: str) -> tuple[int, ...]:
    where = f"finished_at BETWEEN {since} AND {until}"
    return scene.query(
        "SELECT count(*), count(*) FILTER (outcome = 'new'),"
        " coalesce(sum(articles_stored), 0)::INT,"
        f" count(*) FILTER (outcome IN ('failed', 'refused')) FROM polls WHERE {where}"
    )[0]


def _figures(used: Cpu, counts: tuple[int, ...], seconds: float) -> dict[str, Any]:
    n_polls, n_new, articles, failed = counts
    each = used.per(n_polls)
    return {
        "n_polls": n_polls,
        "polls_per_s": n_polls / seconds,
        "n_new": n_new,
        "articles": articles,
        "failed": failed,
        **asdict(each),
        "engine": each.engine,
        "extraction_per_article": used.extraction / max(articles, 1),
        "is_met": each.engine <= TARGET_S,
        "cores": os.cpu_count(),
    }
