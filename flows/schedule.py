"""Bring Prefect's runs in line with the schedule: after a poll, and every minute for all."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable, Iterable, Sequence
from dataclasses import replace
from datetime import datetime, timedelta
from typing import Any
from uuid import UUID

from prefect.client.schemas.objects import FlowRun, StateType
from prefect.exceptions import ObjectNotFound

from flows.collector import Collector
from flows.deploy import deploy_sources
from flows.runqueue import due_wall
from models.reconciliation import (
    PAUSED_IN_PREFECT,
    Action,
    CreateRun,
    EndRun,
    Hasten,
    OpenRun,
    Pause,
    Resume,
    RunState,
    cycle_of,
    reconcile_runs,
)
from models.records import Schedule
from tasks.orchestrator import Orchestrator, is_final, was_cancelled

logger = logging.getLogger("newsbeat.schedule")

MAX_BURNT_KEYS = 5
"""Keys of ended runs passed over before giving up until the next minute."""


class Scheduler:
    """Creates, mends and ends Prefect's runs so that they follow the schedule.

    Parameters
    ----------
    collector
        Holds the schedule.
    orchestrator
        Holds the runs.
    on_created
        Called with each run created here, so that the worker need not ask for it.
    """

    def __init__(
        self,
        collector: Collector,
        orchestrator: Orchestrator,
        on_created: Callable[[FlowRun], object],
    ) -> None:
        self.collector = collector
        self.orchestrator = orchestrator
        self.paused: frozenset[str] = frozenset()
        self._on_created = on_created
        self._reconciling = asyncio.Lock()

    async def set_next_run(self, schedule: Schedule) -> FlowRun | None:
        """Create the run of `schedule`'s cycle; the schedule moves on past burnt keys.

        A key is burnt when its run has ended, completed or cancelled: the server would
        hand back the old run. The cycle moves first, then a new run is made.
        """
        if schedule.source in self.paused or schedule.source not in self.collector.sources:
            return None
        for _ in range(MAX_BURNT_KEYS):
            run = await self._create(schedule)
            if not is_final(run):
                self._on_created(run)
                return run
            due_at = self._after(run, schedule)
            moved = await self._rewrite(schedule, cycle=schedule.cycle + 1, due_at=due_at)
            if moved is None:
                return None
            schedule = moved
        return None

    async def _rewrite(self, seen: Schedule, **changes: Any) -> Schedule | None:
        """Change a schedule as it is now; None when its cycle has moved on from `seen`.

        Read and written in one go: what a poll that ends just now writes is not undone.
        """
        warehouse = self.collector.warehouse

        def rewrite() -> Schedule | None:
            latest = warehouse.read_schedule(seen.source)
            if latest is None or latest.cycle != seen.cycle:
                return None
            changed = replace(latest, **changes)
            warehouse.write_schedule(changed)
            return changed

        return await self.collector.write(rewrite)

    def _after(self, burnt: FlowRun, schedule: Schedule) -> datetime:
        """Return when to poll instead of a run that ended: a cancelled poll is skipped."""
        now = self.collector.clock.now()
        if not was_cancelled(burnt):
            return max(schedule.due_at, now)
        rules = self.collector.source(schedule.source).poll
        return max(schedule.due_at, now) + timedelta(seconds=rules.interval_s)

    async def _create(self, schedule: Schedule) -> FlowRun:
        source = self.collector.source(schedule.source)
        due_at = self.collector.clock.wall_time_of(schedule.due_at)
        try:
            return await self.orchestrator.create_run(source.source, schedule.cycle, due_at)
        except (KeyError, ObjectNotFound):
            # New in the catalogue, or a server that lost its database.
            await deploy_sources(self.orchestrator, [source])
            return await self.orchestrator.create_run(source.source, schedule.cycle, due_at)

    async def read_paused(self) -> None:
        """Refresh which sources people paused in Prefect."""
        self.paused = await self.orchestrator.read_paused()

    async def reconcile(self, running: Iterable[UUID]) -> list[Action]:
        """Compare schedule and runs once, mend every difference, and return what was done.

        Parameters
        ----------
        running
            Runs under way in this process; looked through once the server's are read, as
            one may start meanwhile.
        """
        async with self._reconciling:
            return await self._reconcile(running)

    async def _reconcile(self, running: Iterable[UUID]) -> list[Action]:
        await self.read_paused()
        runs = await self.orchestrator.read_open_runs()
        # Read last: a run that ended meanwhile has moved its schedule on already.
        schedules = await self.collector.write(self.collector.warehouse.read_schedules)
        claimed = self.collector.warehouse.claimed
        schedules = [
            # A lease that is not ours could not be taken back, as the disk was full.
            row if row.source in claimed else replace(row, lease_until=None)
            for row in schedules
            if row.source in self.collector.sources
        ]
        now = self.collector.clock.now()
        open_runs = self._open_runs(runs, set(running))
        actions = reconcile_runs(schedules, open_runs, self.paused, now, self._longest_waits())
        await self._apply(actions, {row.source: row for row in schedules}, now)
        self._queue_waiting(runs, schedules, actions)
        return actions

    def _longest_waits(self) -> dict[str, timedelta]:
        return {
            source.source: timedelta(seconds=source.poll.max_interval_s)
            for source in self.collector.sources.values()
        }

    def _queue_waiting(
        self, runs: Sequence[FlowRun], schedules: Sequence[Schedule], actions: Sequence[Action]
    ) -> None:
        """Give the runs that wait for their time to the worker.

        It would hear of them when they are due, but only while they are in its pool: they
        are not once the pool was deleted, or another one is named.
        """
        ended = {action.run_id for action in actions if isinstance(action, EndRun)}
        cycles = {row.source: row.cycle for row in schedules}
        for run in runs:
            source, cycle = run.parameters.get("source"), cycle_of(run.parameters)
            is_current = str(source) in cycles and cycle in (None, cycles[str(source)])
            if is_current and _run_state(run) == "scheduled" and str(run.id) not in ended:
                self._on_created(run)

    def _open_runs(self, runs: Sequence[FlowRun], running: set[UUID]) -> list[OpenRun]:
        return [
            OpenRun(
                run_id=str(run.id),
                source=str(run.parameters.get("source", "")),
                cycle=cycle_of(run.parameters),
                state=_run_state(run),
                due_at=self.collector.clock.at_wall(due_wall(run)),
                is_ours=run.id in running,
            )
            for run in runs
        ]

    async def _apply(
        self, actions: Sequence[Action], schedules: dict[str, Schedule], now: datetime
    ) -> None:
        for action in actions:
            try:
                await self._apply_one(action, schedules, now)
            except Exception:
                # The next minute tries again; the other sources must not wait for it.
                logger.exception("reconcile: %s", action)

    async def _apply_one(
        self, action: Action, schedules: dict[str, Schedule], now: datetime
    ) -> None:
        match action:
            case EndRun(run_id, source, state, reason):
                logger.info("reconcile: end %s of %s: %s", run_id, source, reason)
                await self.orchestrator.end_run(run_id, state, reason)
            case CreateRun(source, due_at):
                # A poll may have ended since the comparison and made its own next run.
                latest = await self.collector.write(self.collector.warehouse.read_schedule, source)
                if latest is not None and latest.cycle == schedules[source].cycle:
                    await self.set_next_run(replace(latest, due_at=due_at))
            case Pause(source):
                seen = schedules[source]
                await self._rewrite(
                    seen, state="paused", reason=PAUSED_IN_PREFECT, cycle=seen.cycle + 1
                )
            case Hasten(source):
                hastened = await self._rewrite(
                    schedules[source],
                    reason="polled now: it was due too far ahead, set by a clock that was wrong",
                    due_at=now,
                    cycle=schedules[source].cycle + 1,
                )
                if hastened is not None:
                    await self.set_next_run(hastened)
            case Resume(source):
                resumed = await self._rewrite(
                    schedules[source], state="active", reason="resumed in Prefect", due_at=now
                )
                if resumed is not None:
                    await self.set_next_run(resumed)


def _run_state(run: FlowRun) -> RunState:
    names: dict[StateType | None, RunState] = {
        StateType.SCHEDULED: "scheduled",
        StateType.PENDING: "pending",
        StateType.RUNNING: "running",
        # What runs here ends as it ends; what a dead worker left is to be ended.
        StateType.CANCELLING: "running",
    }
    return names.get(run.state.type if run.state else None, "other")
