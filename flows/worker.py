"""The newsbeat worker: one process, one event loop, every source's flow runs.

Prefect's process worker starts an interpreter per run, seven seconds of processor time.
Here runs share this process: due ones are asked for ahead of time, wait in a queue of
ours, and start at their moment.
"""

from __future__ import annotations

import asyncio
import logging
import time
from collections import deque
from collections.abc import Awaitable, Callable
from datetime import UTC, datetime
from functools import partial
from importlib import import_module
from typing import Any
from uuid import UUID

from prefect.client.schemas.objects import FlowRun
from prefect.exceptions import Abort, Pause
from prefect.flows import Flow

from flows.collect import collect_source
from flows.collector import Collector, set_current, worker_name
from flows.deploy import deploy_sources, pause_missing
from flows.engine import run_short, run_stock
from flows.publish import Publisher
from flows.runqueue import RunQueue
from flows.schedule import Scheduler
from models.records import PollResult, Source
from tasks.catalogue import Catalogue
from tasks.orchestrator import SERVER_TROUBLE, Orchestrator
from tasks.settings import Settings

logger = logging.getLogger("newsbeat.worker")

STOP_PATIENCE_S = 10.0
"""How long polls under way may take to end once the worker is asked to stop."""


class Worker:
    """Runs due flow runs in this process and keeps the server in line with the schedule.

    Parameters
    ----------
    settings
        All settings.
    collector, orchestrator
        Both entered.
    """

    def __init__(
        self, settings: Settings, collector: Collector, orchestrator: Orchestrator
    ) -> None:
        self.settings = settings
        self.collector = collector
        self.orchestrator = orchestrator
        self.queue = RunQueue(self._weight_of)
        self.scheduler = Scheduler(collector, orchestrator, self.queue.add)
        self.publisher = Publisher(collector, orchestrator)
        self.running: dict[UUID, asyncio.Task[None]] = {}
        self.lateness_s: deque[float] = deque(maxlen=10_000)
        self.name = worker_name()
        self._places = asyncio.Semaphore(settings.worker.concurrency)
        self._flows: dict[UUID, Flow[..., Any]] = {}
        self._engine = run_stock if settings.worker.stock_engine else run_short

    async def prepare(
        self, on_deployed: Callable[[Source, bool], None] = lambda _source, _changed: None
    ) -> None:
        """Make pool, deployments and schedule ready; everything here may be repeated."""
        collector = self.collector
        sources = list(collector.sources.values())
        await collector.sync_catalogue()
        await self.orchestrator.ensure_work_pool()
        await deploy_sources(self.orchestrator, sources, on_deployed)
        if not collector.catalogue.problems:
            await pause_missing(self.orchestrator, sources)
        collector.after_poll = self._after_poll
        set_current(collector)
        await self._beat()
        await self.scheduler.reconcile(self.running)

    async def run(self) -> None:
        """Work until cancelled; then let the polls under way end."""
        worker = self.settings.worker
        try:
            async with asyncio.TaskGroup() as group:
                group.create_task(self._dispatch())
                group.create_task(self._every(worker.query_s, self._ask_for_due_runs))
                group.create_task(self._every(worker.reconcile_s, self._reconcile))
                group.create_task(self._every(worker.pause_s, self._heed_pauses))
                group.create_task(self._every(HEARTBEAT_S, self._beat))
                group.create_task(self._every(PUBLISH_S, self.publisher.publish))
                group.create_task(self._every(RETENTION_S, self._forget_old_pages))
                price_s = max(PRICE_S / self.collector.clock.speed, LEAST_PRICE_S)
                group.create_task(self._every(price_s, self.collector.update_price))
        finally:
            await self._drain()
            set_current(None)

    async def _every(self, seconds: float, step: Callable[[], Awaitable[object]]) -> None:
        """Repeat `step`; a server that is away is waited for, and nothing else stops."""
        trouble = 0
        while True:
            try:
                await step()
                trouble = 0
            except SERVER_TROUBLE as error:
                trouble += 1
                if trouble in (1, 10, 100):
                    logger.warning("Prefect's server does not answer: %r", error)
            except Exception:
                logger.exception("worker loop")
            await asyncio.sleep(seconds)

    async def _ask_for_due_runs(self) -> None:
        before = datetime.fromtimestamp(time.time() + self.settings.worker.prefetch_s, UTC)
        for run in await self.orchestrator.read_due_runs(before):
            self.queue.add(run)

    async def _reconcile(self) -> None:
        actions = await self.scheduler.reconcile(self.running)
        for action in actions:
            logger.info("mended: %s", action)

    async def _heed_pauses(self) -> None:
        """Take a pause or its end into the schedule at once: who resumes wants news now."""
        before = self.scheduler.paused
        await self.scheduler.read_paused()
        if self.scheduler.paused != before:
            await self._reconcile()

    async def _beat(self) -> None:
        await self.orchestrator.heartbeat(self.name, HEARTBEAT_S)

    async def _forget_old_pages(self) -> None:
        now = self.collector.clock.now()
        for name in await asyncio.to_thread(self.collector.pages.delete_old, now):
            logger.info("raw pages past retention deleted: %s", name)

    async def _dispatch(self) -> None:
        while True:
            # A place first: who takes it is decided when it is free, not before.
            await self._places.acquire()
            run, late_s = await self.queue.next_due()
            self.lateness_s.append(late_s)
            task = asyncio.create_task(self._execute(run), name=run.name)
            self.running[run.id] = task
            task.add_done_callback(partial(self._done, run.id))

    def _weight_of(self, source: str) -> float:
        known = self.collector.sources.get(source)
        return known.weight if known else 1.0

    def _done(self, run_id: UUID, _task: asyncio.Task[None]) -> None:
        self.running.pop(run_id, None)
        self._places.release()

    async def _execute(self, run: FlowRun) -> None:
        """Run one flow run. What it comes to is in its state; nothing escapes from here."""
        try:
            await self._execute_unless_stopped(run)
        except (Abort, Pause) as signal:
            # The server did not let it start.
            logger.info("%s: not run: %s", run.name, signal)
        except SERVER_TROUBLE as error:
            logger.warning("%s: Prefect's server does not answer: %r", run.name, error)
        except Exception:
            logger.exception("%s", run.name)

    async def _execute_unless_stopped(self, run: FlowRun) -> None:
        if str(run.parameters.get("source", "")) in self.scheduler.paused:
            await self.orchestrator.end_run(run.id, "cancelled", "the source is paused")
        elif not await self.orchestrator.is_waiting(run.id):
            # Prefect would start it: from Cancelled to Running is how it retries.
            logger.info("%s: not run: it was cancelled while it waited", run.name)
        else:
            state = await self._engine(await self._flow_of(run), run)
            logger.info("%s: %s: %s", run.name, state.name, state.message)

    async def _flow_of(self, run: FlowRun) -> Flow[..., Any]:
        """Return the flow a run is of; most are ``collect``."""
        deployment_id = run.deployment_id
        if deployment_id is None or deployment_id in self.orchestrator.deployment_ids.values():
            return collect_source
        if deployment_id not in self._flows:
            deployment = await self.orchestrator.client.read_deployment(deployment_id)
            module, _, name = (deployment.entrypoint or "").rpartition(".")
            self._flows[deployment_id] = getattr(import_module(module), name)
        return self._flows[deployment_id]

    async def _after_poll(self, result: PollResult, run_id: UUID | None) -> None:
        try:
            await self.scheduler.set_next_run(result.schedule)
        except SERVER_TROUBLE as error:
            # The poll is stored and the schedule knows what is next; reconcile makes the run.
            logger.warning("%s: next run not made yet: %r", result.poll.source, error)
        self.publisher.note(result, run_id)

    async def _drain(self) -> None:
        tasks = list(self.running.values())
        if not tasks:
            return
        _, late = await asyncio.wait(tasks, timeout=STOP_PATIENCE_S)
        for task in late:
            task.cancel()
        await asyncio.gather(*late, return_exceptions=True)


HEARTBEAT_S = 30.0
PUBLISH_S = 5.0
RETENTION_S = 3600.0

PRICE_S, LEAST_PRICE_S = 600.0, 5.0
"""The price is renewed every ten minutes of the product's time; at least 5 s apart."""


async def run_worker(
    settings: Settings,
    catalogue: Catalogue,
    on_ready: Callable[[Worker], None] = lambda _worker: None,
    on_deployed: Callable[[Source, bool], None] = lambda _source, _changed: None,
) -> None:
    """Open everything, and work until cancelled.

    Raises
    ------
    WarehouseError
        If another process is the writer, or the warehouse cannot be used.
    ServerError
        If Prefect's server does not answer.
    """
    async with (
        Collector(settings, catalogue, "newsbeat worker") as collector,
        Orchestrator(settings.prefect.work_pool) as orchestrator,
    ):
        await collector.write(collector.warehouse.serve)
        worker = Worker(settings, collector, orchestrator)
        await worker.prepare(on_deployed)
        on_ready(worker)
        await worker.run()
