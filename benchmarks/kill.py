"""Kill the worker at random moments of the demo, with SIGKILL, and count what it cost.

``python benchmarks/kill.py`` kills it ten times in two demos, about eight minutes. Moments are
drawn from the whole of the collecting, so that some fall on a worker that has just come back.
"""

from __future__ import annotations

import json
import os
import random
import shutil
import signal
import sys
import tempfile
import time
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import click

sys.path.insert(0, str(Path(__file__).parent))

from rig import markdown_table, say

from flows.commands.demonstrating import DemoOutcome, run_demo
from flows.supervisor import Supervisor


@dataclass
class Killer:
    """Kills the worker at given seconds after the first look at it."""

    moments_s: list[float]
    began: float = 0.0
    killed_s: list[float] = field(default_factory=list)
    _last_pid: int | None = None

    def meddle(self, supervisor: Supervisor) -> None:
        """Kill, if it is time and there is a worker that was not killed yet."""
        self.began = self.began or time.monotonic()
        passed_s = time.monotonic() - self.began
        pid = supervisor.worker_pid
        if self.moments_s and passed_s >= self.moments_s[0] and pid not in (None, self._last_pid):
            assert pid is not None
            os.kill(pid, signal.SIGKILL)
            self._last_pid = pid
            self.killed_s.append(passed_s)
            self.moments_s.pop(0)
            say(f"killed the worker (process {pid}) after {passed_s:.1f} s")


@click.command()
@click.option("--kills", default=10, show_default=True, help="In all.")
@click.option("--demos", default=2, show_default=True, help="They are spread over so many.")
@click.option("--minutes", default=2.0, show_default=True, help="Of collecting, in each.")
@click.option("--seed", default=0, show_default=True, help="Of the moments; 0 draws anew.")
@click.option("--data", type=click.Path(path_type=Path), help="Folder of real recordings.")
@click.option("--json", "file", type=click.Path(path_type=Path), help="Write the figures there.")
def main(
    kills: int, demos: int, minutes: float, seed: int, data: Path | None, file: Path | None
) -> None:
    """Kill the worker at random moments and print what is missing, twice or stuck."""
    seed = seed or random.SystemRandom().randrange(1, 10**6)
    rng = random.Random(seed)
    results = []
    for number in range(demos):
        n_kills = kills // demos + (number < kills % demos)
        # The last moment leaves time for one more worker to be seen at work.
        moments = sorted(rng.uniform(0.0, minutes * 60 - 5) for _ in range(n_kills))
        say(f"== demo {number + 1} of {demos}, {n_kills} kills, seed {seed}")
        results.append(_run(moments, minutes, data))
    total = _add_up(results)
    if file is not None:
        file.write_text(json.dumps({"seed": seed, **total, "demos": results}, indent=2), "utf-8")
    click.echo(_render(results, total, seed))
    sys.exit(0 if total["is_good"] else 1)


def _run(moments_s: list[float], minutes: float, data: Path | None) -> dict[str, Any]:
    home = Path(tempfile.mkdtemp(prefix="newsbeat-kill-"))
    killer = Killer(moments_s)
    outcome = run_demo(home / "demo", minutes=minutes, data=data, quiet=True, meddle=killer.meddle)
    if outcome.is_good:
        shutil.rmtree(home, ignore_errors=True)
    else:
        say(f"something is wrong; everything is kept in {home}")
    return _count(outcome, killer)


def _count(outcome: DemoOutcome, killer: Killer) -> dict[str, Any]:
    sources = outcome.sources
    return {
        "kills": len(killer.killed_s),
        "killed_after_s": [round(moment, 1) for moment in killer.killed_s],
        "restarts": outcome.worker_restarts,
        "listed": sum(count.listed for count in sources),
        "missing": sum(len(count.missing) for count in sources),
        "twice": sum(len(count.twice) for count in sources),
        "stuck": sum(not count.has_next_poll for count in sources) + len(outcome.unsettled),
        "unrecorded": len(outcome.unrecorded_runs),
        "failed_polls": sum(count.failed_polls for count in sources),
        "problems": outcome.problems,
        "is_good": outcome.is_good,
    }


COUNTED = ("kills", "restarts", "listed", "missing", "twice", "stuck", "unrecorded", "failed_polls")


def _add_up(results: list[dict[str, Any]]) -> dict[str, Any]:
    total: dict[str, Any] = {key: sum(each[key] for each in results) for key in COUNTED}
    return total | {"is_good": all(each["is_good"] for each in results)}


def _render(results: list[dict[str, Any]], total: dict[str, Any], seed: int) -> str:
    rows = [[number, *(each[key] for key in COUNTED)] for number, each in enumerate(results, 1)]
    rows.append(["all", *(f"**{total[key]}**" for key in COUNTED)])
    header = ["demo", *(key.replace("_", " ") for key in COUNTED)]
    problems = "\n".join(f"- {problem}" for each in results for problem in each["problems"])
    return "\n\n".join(filter(None, [markdown_table(header, rows), problems, f"Seed {seed}."]))


if __name__ == "__main__":
    main()
