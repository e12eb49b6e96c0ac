"""Our worker with flows that look at nothing, and set their own next run."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from datetime import datetime, timedelta
from pathlib import Path
from typing import Any, ClassVar

from prefect import flow
from prefect.client.schemas.objects import FlowRun
from prefect.flows import Flow

from flows.deploy import deploy_sources
from flows.worker import Worker
from models.records import Source

NOT_NOW = "not in this step"


@dataclass
class Step:
    """One rate: which runs were due in it, and how late each began, by source and cycle."""

    ends_at: datetime
    due: dict[tuple[str, int], datetime] = field(default_factory=dict)
    delays_s: dict[tuple[str, int], float] = field(default_factory=dict)


class BeatingWorker(Worker):
    """All of the worker but the look at a source."""

    beating: ClassVar[BeatingWorker]
    step: Step

    async def prepare_quietly(self) -> None:
        """Deploy every source, and let none begin."""
        sources = list(self.collector.sources.values())
        await self.collector.sync_catalogue()
        await self.orchestrator.ensure_work_pool()
        await deploy_sources(self.orchestrator, sources)
        for schedule in await self.collector.write(self.collector.warehouse.read_schedules):
            await self._write(replace(schedule, state="paused", reason=NOT_NOW))
        BeatingWorker.beating = self

    async def begin(self, sources: list[Source], begins_at: datetime, interval_s: float) -> None:
        """Create the first run of each source, spread evenly over one interval."""
        rows = await self.collector.write(self.collector.warehouse.read_schedules)
        schedules = {row.source: row for row in rows}
        for number, source in enumerate(sources):
            due_at = begins_at + timedelta(seconds=interval_s * number / len(sources))
            before = schedules[source.source]
            await self._set_next(
                replace(before, state="active", reason="", due_at=due_at, cycle=before.cycle + 1)
            )

    async def beat(self, source: str, cycle: int) -> None:
        """Do what a poll does to the schedule: claim, move on, make the next run."""
        now = self.collector.clock.now()
        schedule = await self.collector.write(
            self.collector.warehouse.claim_cycle, source, cycle, now, now + timedelta(minutes=10)
        )
        if schedule is None:
            return
        self.step.delays_s[source, cycle] = (now - schedule.due_at).total_seconds()
        interval = timedelta(seconds=self.collector.source(source).poll.interval_s)
        await self._set_next(
            replace(schedule, due_at=schedule.due_at + interval, cycle=cycle + 1, lease_until=None)
        )

    async def _set_next(self, schedule: Any) -> None:
        if schedule.due_at >= self.step.ends_at:
            await self._write(replace(schedule, state="paused", reason=NOT_NOW))
            return
        self.step.due[schedule.source, schedule.cycle] = schedule.due_at
        await self._write(schedule)
        await self.scheduler.set_next_run(schedule)

    async def _write(self, schedule: Any) -> None:
        await self.collector.write(self.collector.warehouse.write_schedule, schedule)

    async def _flow_of(self, run: FlowRun) -> Flow[..., Any]:
        return beat


@flow(
    name="collect",
    persist_result=False,
    result_storage=Path("results"),
    validate_parameters=False,
    retries=0,
    log_prints=False,
)
async def beat(source: str, cycle: int) -> None:
    """Look at nothing."""
    await BeatingWorker.beating.beat(source, cycle)
