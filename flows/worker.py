"""The newsbeat worker: one process, one event loop, every source's flow runs.

Prefect's process worker starts an interpreter per run, seven seconds of processor time.
Here runs share this process: due ones are asked for ahead of time, wait in a queue of
ours, and start at their moment.
"""

from __future__ import annotations

import asyncio
import contextlib
import logging
import time
from collections import Counter, deque
from collections.abc import Awaitable, Callable
from datetime import UTC, datetime
from functools import partial
from importlib import import_module
from typing import Any
from uuid import UUID

from prefect.client.schemas.objects import FlowRun
from prefect.exceptions import Abort, Pause
from prefect.flows import Flow

from flows.alerting import Alerter
from flows.collect import collect_source
from flows.collector import Collector, set_current, worker_name
from flows.deploy import deploy_sources, pause_missing
from flows.duties import deploy_duties
from flows.engine import run_short, run_stock
from flows.incidents import domain_of
from flows.intensity import warm_up
from flows.publish import Publisher
from flows.runqueue import LONGEST_LOOK_S, RunQueue, due_wall, source_of
from flows.schedule import Scheduler
from models.budget import MOST_LATE_SHARE
from models.errors import NewsbeatError, WarehouseError
from models.harmless import one_line
from models.reconciliation import cycle_of
from models.records import PollResult, Source
from tasks.catalogue import Catalogue, catalogue_stamp, read_catalogue
from tasks.disk import find_shortage
from tasks.memory import limit_memory
from tasks.orchestrator import SERVER_TROUBLE, Orchestrator
from tasks.settings import Settings

logger = logging.getLogger("newsbeat.worker")

OUR_FLOWS = "flows"
"""The package whose flows the worker runs."""

RETRY_S = 5.0
"""When a run that the server did not let start is tried again, in wall seconds."""

TROUBLE_REST_S = 30.0
"""How long no poll is started after one that could not be stored, in wall seconds: what it
fetched is lost, and its publisher is asked again."""

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
        self.queue = RunQueue(self._weight_of, self._may_start)
        self._busy: Counter[str] = Counter()
        self.scheduler = Scheduler(collector, orchestrator, self.queue.add)
        self.publisher = Publisher(collector, orchestrator)
        self.alerter = Alerter(collector, orchestrator.emit_event)
        self.running: dict[UUID, asyncio.Task[None]] = {}
        # Of the polls that began since the price was last brought in line.
        self.lateness_s: deque[float] = deque(maxlen=10_000)
        self.name = worker_name()
        self._places = asyncio.Semaphore(settings.worker.concurrency)
        self._flows: dict[UUID, Flow[..., Any]] = {}
        self._engine = run_stock if settings.worker.stock_engine else run_short
        self._began: dict[str, float] = {}
        self._is_pool_paused = False
        self._shortage: str | None = None
        self._stamp = catalogue_stamp(settings)
        self._new_stamp = self._stamp

    async def prepare(
        self, on_deployed: Callable[[Source, bool], None] = lambda _source, _changed: None
    ) -> None:
        """Make pool, deployments and schedule ready; everything here may be repeated.

        The next runs of all sources are made by the first reconcile of :meth:`run`: some
        hundreds take half a minute, and those made first are due by then.
        """
        await self.orchestrator.ensure_work_pool()
        await self._deploy(on_deployed)
        for deployment_id in await deploy_duties(self.orchestrator, self.settings):
            await self.orchestrator.end_running(deployment_id, "the worker that ran it is gone")
        # Last: a new source's first poll is set from now on, not from before its deployment.
        await asyncio.to_thread(warm_up)
        await self.collector.sync_catalogue()
        self.collector.after_poll = self._after_poll
        set_current(self.collector)
        await self._beat()

    async def _deploy(
        self, on_deployed: Callable[[Source, bool], None] = lambda _source, _changed: None
    ) -> None:
        sources = list(self.collector.sources.values())
        await deploy_sources(self.orchestrator, sources, on_deployed)
        if not self.collector.catalogue.problems:
            await pause_missing(self.orchestrator, sources)

    async def run(self) -> None:
        """Work until cancelled; then let the polls under way end.

        Raises
        ------
        WarehouseError
            If the database was given up after a write that failed half way, or a query goes
            on for ever: only a new process helps.
        """
        worker = self.settings.worker
        try:
            await self._look_at_disk()
            async with asyncio.TaskGroup() as group:
                group.create_task(self._dispatch())
                group.create_task(self.alerter.run())
                group.create_task(self._end_with_the_warehouse())
                group.create_task(self._end_with_a_query())
                group.create_task(self._every(DISK_S, self._look_at_disk))
                group.create_task(self._every(CATALOGUE_S, self._reread_catalogue))
                group.create_task(self._every(CATALOGUE_S, self.collector.triage.reload))
                group.create_task(self._every(worker.query_s, self._ask_for_due_runs))
                group.create_task(self._every(worker.reconcile_s, self._reconcile))
                group.create_task(self._every(worker.pause_s, self._heed_pauses))
                group.create_task(self._every(HEARTBEAT_S, self._beat))
                group.create_task(self._every(PUBLISH_S, self.publisher.publish))
                group.create_task(self._every(RETENTION_S, self._forget_old_pages))
                price_s = max(PRICE_S / self.collector.clock.speed, LEAST_PRICE_S)
                group.create_task(self._every(price_s, self._update_price))
        except ExceptionGroup as trouble:
            raise trouble.exceptions[0] from trouble
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
        is_pool_paused = await self.orchestrator.is_pool_paused()
        if is_pool_paused is None:
            logger.warning("the work pool was deleted; it is made again")
            await self.orchestrator.ensure_work_pool()
            await self._deploy()
            await deploy_duties(self.orchestrator, self.settings)
        self._is_pool_paused = bool(is_pool_paused)
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

    async def _end_with_the_warehouse(self) -> None:
        """End the work, in order, when DuckDB has given the database up."""
        while not self.collector.warehouse.has_failed:  # noqa: ASYNC110 - it tells nobody
            await asyncio.sleep(WAREHOUSE_S)
        raise self.collector.trouble or WarehouseError(
            str(self.settings.database), "DuckDB gave the database up", "Start newsbeat again"
        )

    async def _end_with_a_query(self) -> None:
        """End the work, in order, when a live query has run for too long.

        DuckDB offers no way to end it, and it would not end with its client: it would take
        processor and memory from the polls until the worker ends.
        """
        limit_s = self.settings.warehouse.query_limit_s
        while True:
            await asyncio.sleep(QUERIES_S)
            taken_s, query = await self.collector.write(self.collector.warehouse.longest_query)
            if taken_s > limit_s:
                raise WarehouseError(
                    str(self.settings.database),
                    f"a query has run for more than {limit_s:g} s: {one_line(query)[:200]}",
                    "The worker is started again to end it; warehouse.query_limit_s allows more",
                )

    async def _look_at_disk(self) -> None:
        self._shortage = await asyncio.to_thread(find_shortage, self.settings)

    async def _reread_catalogue(self) -> None:
        """Take in what people changed in the catalogue, once they have stopped writing."""
        stamp = await asyncio.to_thread(catalogue_stamp, self.settings)
        is_settled, self._new_stamp = stamp == self._new_stamp, stamp
        if stamp == self._stamp or not is_settled:
            return
        self._stamp = stamp
        catalogue = await asyncio.to_thread(read_catalogue, self.settings)
        for problem in catalogue.problems:
            logger.warning("left out: %s", problem)
        if not catalogue.sources or catalogue.is_packaged != self.collector.catalogue.is_packaged:
            logger.warning("%s: no catalogue to go over to; the sources stay", catalogue.folder)
            return
        await self.collector.take_catalogue(catalogue)
        await self._deploy()
        await self._reconcile()
        logger.info("catalogue read anew: %d sources", len(catalogue.sources))

    def _why_to_rest(self) -> str | None:
        """Return why no poll is to be started now."""
        if self._is_pool_paused:
            return "the work pool is paused in Prefect"
        if self._shortage:
            return self._shortage
        trouble = self.collector.trouble
        if trouble and time.monotonic() - self.collector.trouble_at_s < TROUBLE_REST_S:
            return str(trouble)
        return None

    async def _rest(self) -> None:
        """Wait until polls may be started; they stay in the queue, and late ones are one."""
        is_resting = False
        while (reason := self._why_to_rest()) is not None:
            if not is_resting:
                logger.warning("no poll is started: %s", reason)
            is_resting = True
            await asyncio.sleep(LONGEST_LOOK_S)
        if is_resting:
            logger.warning("polls are started again")

    async def _dispatch(self) -> None:
        while True:
            # A place first: who takes it is decided when it is free, not before.
            await self._places.acquire()
            await self._rest()
            run, late_s = await self.queue.next_due()
            await self._rest()
            self.lateness_s.append(late_s)
            domain = self._domain_of(source_of(run))
            self._busy[domain] += 1
            task = asyncio.create_task(self._execute(run), name=run.name)
            self.running[run.id] = task
            task.add_done_callback(partial(self._done, run.id, domain))

    async def _update_price(self) -> None:
        """Bring the price in line; polls that began late say that too many are due."""
        n_late = sum(late_s > LATE_S for late_s in self.lateness_s)
        late_share = n_late / max(len(self.lateness_s), 1)
        self.lateness_s.clear()
        report = await self.collector.update_price(late_share)
        if late_share > MOST_LATE_SHARE:
            logger.warning(
                "%.0f %% of the polls began late: a poll costs %.1f times as much for a while",
                100 * late_share,
                report.overload,
            )

    def _weight_of(self, source: str) -> float:
        known = self.collector.sources.get(source)
        return known.weight if known else 1.0

    def _domain_of(self, source: str) -> str:
        """Return the domain that a source's polls ask; empty for what is no source."""
        known = self.collector.sources.get(source)
        return domain_of(known.url) if known else ""

    def _may_start(self, source: str) -> bool:
        domain = self._domain_of(source)
        return not domain or self._busy[domain] < self.settings.fetch.host_connections

    def _done(self, run_id: UUID, domain: str, _task: asyncio.Task[None]) -> None:
        self.running.pop(run_id, None)
        self._busy[domain] -= 1
        if not self._busy[domain]:
            del self._busy[domain]
        self._places.release()
        self.queue.look_again()

    async def _execute(self, run: FlowRun) -> None:
        """Run one flow run. What it comes to is in its state; nothing escapes from here."""
        try:
            await self._execute_unless_stopped(run)
        except (Abort, Pause) as signal:
            # The server did not let it start.
            logger.info("%s: not run: %s", run.name, signal)
        except SERVER_TROUBLE as error:
            # Where it did not start it still waits, and nobody else would ever start it.
            logger.warning("%s: Prefect's server does not answer: %r", run.name, error)
            asyncio.get_running_loop().call_later(RETRY_S, self.queue.forget, run.id)
        except ForeignFlowError as error:
            logger.warning("%s: not run: %s", run.name, error)
            await self._give_up(run, str(error))
        except Exception as error:
            logger.exception("%s", run.name)
            await self._give_up(run, f"the worker could not run it: {error!r}")

    async def _give_up(self, run: FlowRun, reason: str) -> None:
        """End a run that cannot be run here: it must not wait, or seem to run, for ever."""
        try:
            await self.orchestrator.end_run(run.id, "crashed", one_line(reason))
        except SERVER_TROUBLE:
            self.queue.forget(run.id)

    async def _execute_unless_stopped(self, run: FlowRun) -> None:
        flow = await self._flow_of(run)
        # Other flows are given a source too: what is true of its polls is not of mending it.
        source = source_of(run) if flow is collect_source else None
        if source in self.scheduler.paused:
            await self.orchestrator.end_run(run.id, "cancelled", "the source is paused")
        elif not await self.orchestrator.is_waiting(run.id):
            # Prefect would start it: from Cancelled to Running is how it retries.
            logger.info("%s: not run: it was cancelled while it waited", run.name)
        elif source is not None and self._is_answered(run, source):
            # Many clicks are one wish, and the publisher is asked once.
            reason = "polled since this was asked for"
            await self.orchestrator.end_run(run.id, "cancelled", reason)
        else:
            state = await self._engine(flow, run)
            logger.info("%s: %s: %s", run.name, state.name, state.message)

    def _is_answered(self, run: FlowRun, source: str) -> bool:
        """Return whether a run by hand came to nothing as its source was polled since.

        Looks and notes with no wait between: runs of one source come side by side.
        """
        if cycle_of(run.parameters) is None and due_wall(run) < self._began.get(source, 0.0):
            return True
        self._began[source] = time.time()
        return False

    async def _flow_of(self, run: FlowRun) -> Flow[..., Any]:
        """Return the flow a run is of; most are ``collect``.

        Raises
        ------
        ForeignFlowError
            If it is none of newsbeat's: what anyone may name on the server is not run in
            the process that holds the warehouse.
        """
        deployment_id = run.deployment_id
        if deployment_id is None or deployment_id in self.orchestrator.deployment_ids.values():
            return collect_source
        if deployment_id not in self._flows:
            entrypoint = await self.orchestrator.read_entrypoint(deployment_id)
            self._flows[deployment_id] = _load_flow(entrypoint)
        return self._flows[deployment_id]

    async def _after_poll(self, result: PollResult, run_id: UUID | None) -> None:
        if result.hits:
            self.alerter.wake()
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

WAREHOUSE_S = 1.0
QUERIES_S = 10.0
DISK_S = 5.0
CATALOGUE_S = 10.0

PRICE_S, LEAST_PRICE_S = 600.0, 5.0
LATE_S = 30.0
"""A poll that begins later than that, in wall seconds, found no place in time."""

"""The price is renewed every ten minutes of the product's time; at least 5 s apart."""


class ForeignFlowError(NewsbeatError):
    """A run in our pool is of a flow that is not ours."""


def _load_flow(entrypoint: str) -> Flow[..., Any]:
    module, _, name = entrypoint.rpartition(".")
    found = None
    if module == OUR_FLOWS or module.startswith(f"{OUR_FLOWS}."):
        with contextlib.suppress(ImportError):
            found = getattr(import_module(module), name, None)
    if not isinstance(found, Flow):
        raise ForeignFlowError(
            f"{entrypoint or 'its deployment'} is no flow of newsbeat's, and its worker runs no"
            " others; give that deployment a work pool of its own"
        )
    return found


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
        limit_memory(settings)
        on_ready(worker)
        await worker.run()
