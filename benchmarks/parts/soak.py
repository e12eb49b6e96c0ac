"""Hundreds of sources at a poll each per ten minutes, on ordinary time."""

from __future__ import annotations

import math
import os
import time
from dataclasses import asdict, dataclass, field
from typing import Any

from parts.recorded import Scene, living, sql_moment
from rig import markdown_table, quantile, say, slope_per_hour

from models.records import PollRules
from tasks.replay.sample import sample_web

INTERVAL_S = 600.0
SETTLED_MIN = 5.0
"""Memory must not grow after this many minutes."""

LATE_S = 30.0
PARTS = ("worker", "extraction", "server", "postgres")


@dataclass
class Memory:
    """Megabytes in use, once a minute."""

    minutes: list[float] = field(default_factory=list)
    samples: list[dict[str, float]] = field(default_factory=list)

    def add(self, minute: float, sample: dict[str, float]) -> None:
        """Keep one sample."""
        self.minutes.append(minute)
        self.samples.append(sample)

    def of(self, part: str, since_min: float = 0.0) -> tuple[list[float], list[float]]:
        """Return minutes and megabytes of one part."""
        pairs = [
            (minute, sample[part])
            for minute, sample in zip(self.minutes, self.samples, strict=True)
            if minute >= since_min
        ]
        return [minute for minute, _ in pairs], [value for _, value in pairs]


def measure(minutes: float = 15.0, n_sources: int = 450) -> dict[str, Any]:
    """Let it run for `minutes`, and return lateness, memory and failures."""
    memory, rules = Memory(), PollRules(policy="fixed", interval_s=INTERVAL_S)
    say(f"inventing {n_sources} sites …")
    with living(sample_web(hours=minutes / 60 + 0.2, n_sources=n_sources), rules, 1.0) as scene:
        began, began_at, before = time.monotonic(), scene.clock.now(), scene.read_cpu()
        for minute in range(math.ceil(minutes)):
            end = began + 60 * min(minute + 1, minutes)
            scene.wait(max(end - time.monotonic(), 0.0))
            sample = scene.rig.read_memory(scene.worker_pid)
            memory.add((time.monotonic() - began) / 60, sample)
            say(f"{minute + 1} min: " + ", ".join(f"{k} {v:.0f} MB" for k, v in sample.items()))
        ended_at, used = scene.clock.now(), scene.read_cpu().since(before)
        lateness = _read_lateness(scene, sql_moment(ended_at))
        counts = _read_counts(scene, sql_moment(began_at))
    figures = _figures(memory, lateness, counts)
    figures["cpu"] = asdict(used.per(counts["polls"])) | {
        "cores_busy": (used.engine + used.extraction) / (60 * minutes)
    }
    return {"minutes": minutes, "n_sources": n_sources, **figures}


def render(result: dict[str, Any]) -> str:
    """Return the figures as Markdown."""
    counts, late, cpu = result["counts"], result["lateness_s"], result["cpu"]
    rows = [
        [
            part,
            *(f"{result['memory'][part][key]:.0f}" for key in ("settled_mb", "last_mb", "most_mb")),
            f"{result['memory'][part]['slope_mb_per_h']:+.0f}",
        ]
        for part in (*PARTS, "all")
    ]
    table = markdown_table(["memory, MB", f"at {SETTLED_MIN:g} min", "end", "most", "MB/h"], rows)
    return (
        f"{result['n_sources']} sources, {result['minutes']:g} min: {counts['polls']} polls,"
        f" {counts['failed']} failed, {counts['articles']} articles, {counts['owed']} owed,"
        f" {counts['without_next']} sources without a next poll.\n\n"
        f"Late by p50 {late['p50']:.2f} s, p99 {late['p99']:.2f} s, at most **{late['max']:.2f} s**"
        f" (limit {LATE_S:g} s); {late['n_over']} over it; overdue at the end: {late['n_overdue']}."
        f"\n\n{table}\n\n"
        f"CPU ms per poll: worker {1000 * cpu['client']:.0f}, server {1000 * cpu['server']:.0f},"
        f" PostgreSQL {1000 * cpu['postgres']:.0f}, extraction {1000 * cpu['extraction']:.0f};"
        f" {cpu['cores_busy']:.2f} cores busy on average."
    )


def _read_lateness(scene: Scene, now: str) -> dict[str, float]:
    rows = scene.query("SELECT epoch(started_at) - epoch(due_at) FROM polls")
    overdue = scene.query(
        f"SELECT epoch({now}) - epoch(due_at) FROM schedule"
        f" WHERE lease_until IS NULL AND due_at < {now}"
    )
    late = [row[0] for row in rows]
    # What has not begun is at least as late as it is now.
    late += [row[0] for row in overdue]
    return {
        "p50": quantile(late, 0.5),
        "p99": quantile(late, 0.99),
        "max": max(late, default=float("nan")),
        "n_over": sum(seconds > LATE_S for seconds in late),
        "n_overdue": len(overdue),
    }


def _read_counts(scene: Scene, since: str) -> dict[str, int]:
    from tasks.prefect_server import read_runs

    polls, failed, articles = scene.query(
        "SELECT count(*), count(*) FILTER (outcome IN ('failed', 'refused')),"
        f" coalesce(sum(articles_stored), 0)::INT FROM polls WHERE finished_at >= {since}"
    )[0]
    owed = scene.query("SELECT count(*) FROM pending_articles")[0][0]
    sources = {row[0] for row in scene.query("SELECT source FROM schedule")}
    waiting = {run.source for run in read_runs(scene.rig.api_url) if not run.is_over}
    return {
        "polls": polls,
        "failed": failed,
        "articles": articles,
        "owed": owed,
        "without_next": len(sources - waiting),
    }


def _figures(memory: Memory, late: dict[str, float], counts: dict[str, int]) -> dict[str, Any]:
    for sample in memory.samples:
        sample["all"] = sum(sample[part] for part in PARTS)
    figures = {}
    for part in (*PARTS, "all"):
        minutes, values = memory.of(part, SETTLED_MIN - 0.1)
        every = memory.of(part)[1]
        figures[part] = {
            "settled_mb": values[0] if values else float("nan"),
            "last_mb": every[-1],
            "most_mb": max(every),
            "slope_mb_per_h": slope_per_hour(minutes, values),
            "each_minute_mb": every,
        }
    return {
        "memory": figures,
        "lateness_s": late,
        "counts": counts,
        "cores": os.cpu_count(),
        "is_met": late["n_over"] == 0,
    }
