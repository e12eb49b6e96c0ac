"""Flow runs that wait for their moment, and who goes first when places are short."""

from __future__ import annotations

import asyncio
import heapq
import itertools
import time
from collections import OrderedDict
from collections.abc import Callable
from contextlib import suppress
from typing import Any
from uuid import UUID

from prefect.client.schemas.objects import FlowRun

from models.polling.patrol import StrideQueue

REMEMBERED_RUNS = 20_000
"""Ended runs remembered, so that an answer that was under way does not start one again."""


LONGEST_LOOK_S = 1.0
"""How long the queue waits before it looks at the clock again, in wall seconds: a wait takes
no notice of a clock that is put, or of a machine that sleeps."""


class RunQueue:
    """Flow runs that wait for their moment, each taken once. Times are wall seconds since 1970.

    Where several are due at once, which happens when the worker's places are short or a
    backlog stands, they go in proportion to the importance of their sources.

    Parameters
    ----------
    weight_of
        Importance of a source, > 0.
    may_start
        Whether a source's turn may come now. While its domain is busy with others of ours
        it may not: it would wait in line for the domain, in a place that others could use.
    """

    def __init__(
        self,
        weight_of: Callable[[str], float] = lambda _source: 1.0,
        may_start: Callable[[str], bool] = lambda _source: True,
    ) -> None:
        self._weight_of = weight_of
        self._may_start = may_start
        self._waiting: list[tuple[float, int, FlowRun]] = []
        self._due: list[tuple[float, FlowRun]] = []
        self._seen: OrderedDict[UUID, None] = OrderedDict()
        self._order = itertools.count()
        self._changed = asyncio.Event()
        self._turns = StrideQueue()

    def add(self, run: FlowRun) -> bool:
        """Queue a run; False when it was queued before."""
        if run.id in self._seen:
            return False
        self._seen[run.id] = None
        while len(self._seen) > REMEMBERED_RUNS:
            self._seen.popitem(last=False)
        heapq.heappush(self._waiting, (due_wall(run), next(self._order), run))
        self._changed.set()
        return True

    def forget(self, run_id: UUID) -> None:
        """Let a run that was given out be queued again: it could not be started."""
        self._seen.pop(run_id, None)

    async def next_due(self) -> tuple[FlowRun, float]:
        """Wait for a run to be due; return it and how late it is, in wall seconds."""
        while True:
            self._changed.clear()
            self._collect_due()
            place = self._choose()
            if place is not None:
                due, run = self._due.pop(place)
                return run, time.time() - due
            wait_s = self._waiting[0][0] - time.time() if self._waiting else LONGEST_LOOK_S
            # Not wait_for: it swallows a cancellation that comes in the moment of a change,
            # and the worker would never stop.
            with suppress(TimeoutError):
                async with asyncio.timeout(min(wait_s, LONGEST_LOOK_S)):
                    await self._changed.wait()

    def _collect_due(self) -> None:
        now = time.time()
        while self._waiting and self._waiting[0][0] <= now:
            due, _, run = heapq.heappop(self._waiting)
            self._due.append((due, run))

    def look_again(self) -> None:
        """Look at once whose turn it is: a poll has ended, and its domain may be free."""
        self._changed.set()

    def _choose(self) -> int | None:
        """Return the place in line of the first run of the source whose turn it is."""
        sources = [source_of(run) for _, run in self._due]
        ready = [source for source in dict.fromkeys(sources) if self._may_start(source)]
        if not ready:
            return None
        turn = self._turns.take({source: self._weight_of(source) for source in ready})
        return sources.index(turn)

    def __len__(self) -> int:
        return len(self._waiting) + len(self._due)


def source_of(run: FlowRun) -> str:
    """Return the source a run is for; another flow counts under its own name."""
    return str(run.parameters.get("source") or run.name)


def due_wall(run: FlowRun) -> float:
    """Return when a run is due, in wall seconds since 1970."""
    at: Any = run.next_scheduled_start_time or run.expected_start_time
    return float(at.timestamp()) if at is not None else time.time()
