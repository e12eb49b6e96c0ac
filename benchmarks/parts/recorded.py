"""The whole product on the recorded web, with meters: what `poll` and `soak` look at."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, replace
from datetime import datetime
from typing import Any

import psutil
from rig import Cpu, Rig, say

from models.errors import NewsbeatError
from models.records import PollRules
from tasks.clock import Clock
from tasks.replay.history import RecordedWeb, write_catalogue
from tasks.replay.server import serve_in_process
from tasks.warehouse_reader import open_reader

READY_TIMEOUT_S = 300.0


@dataclass
class Scene:
    """A worker that polls a recorded web."""

    rig: Rig
    worker_pid: int
    clock: Clock

    def read_cpu(self) -> Cpu:
        """Return the processor time used so far; the web's own is not in it."""
        return self.rig.read_cpu(self.worker_pid)

    def query(self, sql: str) -> list[tuple[Any, ...]]:
        """Return the rows of a query of the warehouse."""
        with open_reader(self.rig.settings) as reader:
            return [tuple(row) for row in reader.query(sql).rows]

    def wait(
        self, seconds: float, tick_s: float = 1.0, on_tick: Callable[[], None] = lambda: None
    ) -> None:
        """Let it work for a while; a worker that dies meanwhile is an error."""
        end = time.monotonic() + seconds
        while time.monotonic() < end:
            time.sleep(min(tick_s, max(end - time.monotonic(), 0.0)))
            if not psutil.pid_exists(self.worker_pid) or self.rig.supervisor.worker_pid is None:
                raise NewsbeatError(_last_words(self.rig))
            on_tick()


@contextmanager
def living(
    web: RecordedWeb, rules: PollRules, speed: float, settings_text: str = ""
) -> Iterator[Scene]:
    """Start everything; the scene begins when the worker is ready.

    Parameters
    ----------
    web
        The sites.
    rules
        When each is polled.
    speed
        Of the product's clock.
    """
    with Rig(settings_text) as rig:
        clock = Clock.starting_at(web.start, speed)
        rig.use_clock(clock)
        with serve_in_process(web, clock) as port:
            sources = [replace(source, poll=rules) for source in web.sources(port)]
            write_catalogue(sources, rig.settings.sources_folder)
            say(f"deploying {len(sources)} sources …")
            rig.supervisor.start_worker()
            _wait_until_ready(rig)
            pid = rig.supervisor.worker_pid
            assert pid is not None
            yield Scene(rig, pid, clock)


def sql_moment(at: datetime) -> str:
    """Return a moment as SQL."""
    return f"TIMESTAMPTZ '{at.isoformat()}'"


def _wait_until_ready(rig: Rig) -> None:
    end = time.monotonic() + READY_TIMEOUT_S
    while time.monotonic() < end:
        time.sleep(0.2)
        if "worker ready" in rig.supervisor.worker_log.read_text(errors="replace"):
            return
        if rig.supervisor.worker_pid is None:
            break
    raise NewsbeatError(_last_words(rig))


def _last_words(rig: Rig) -> str:
    lines = rig.supervisor.worker_log.read_text(errors="replace").strip().splitlines()
    return f"the worker has died: {lines[-1] if lines else 'it says nothing'}"
