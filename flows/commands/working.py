"""`newsbeat worker` and `newsbeat deploy`."""

from __future__ import annotations

import asyncio
import logging
import os
import signal

from flows.commands.saying import echo
from flows.deploy import deploy_sources, pause_missing
from flows.duties import deploy_duties
from flows.supervisor import WORKER_DEPLOYED, WORKER_READY
from flows.worker import Worker, run_worker
from models.records import Source
from tasks.catalogue import Catalogue, read_catalogue
from tasks.orchestrator import Orchestrator
from tasks.settings import Settings

PARENT_CHECK_S = 1.0
DEPLOYED_STEP = 10


def work(settings: Settings, parent: int | None = None) -> None:
    """Run polls until SIGTERM or SIGINT, or until `parent` is gone.

    Raises
    ------
    WarehouseError, ServerError
        As `flows.worker.run_worker` does.
    """
    logging.basicConfig(
        level=logging.WARNING, format="%(asctime)s %(levelname)s %(name)s: %(message)s"
    )
    logging.getLogger("newsbeat").setLevel(logging.INFO)
    catalogue = read_catalogue(settings)
    _warn(catalogue)
    try:
        asyncio.run(_work(settings, catalogue, parent))
    except asyncio.CancelledError:
        print("worker stopped", flush=True)


async def _work(settings: Settings, catalogue: Catalogue, parent: int | None) -> None:
    task = asyncio.current_task()
    assert task is not None
    loop = asyncio.get_running_loop()
    for number in (signal.SIGTERM, signal.SIGINT):
        loop.add_signal_handler(number, task.cancel)
    watch = asyncio.create_task(_watch_parent(parent, task))
    try:
        progress = _Progress(len(catalogue.sources))
        await run_worker(settings, catalogue, on_ready=_say_ready, on_deployed=progress.note)
    finally:
        watch.cancel()


def _say_ready(worker: Worker) -> None:
    print(f"{WORKER_READY}: {len(worker.collector.sources)} sources", flush=True)


class _Progress:
    """Says now and then how many deployments are made."""

    def __init__(self, total: int) -> None:
        self._total = total
        self._done = 0

    def note(self, _source: Source, _changed: bool) -> None:
        """Count one more."""
        self._done += 1
        if self._done % DEPLOYED_STEP == 0 or self._done == self._total:
            print(f"{WORKER_DEPLOYED} {self._done} of {self._total}", flush=True)


async def _watch_parent(parent: int | None, task: asyncio.Task[None]) -> None:
    """End the work when the supervisor is gone: a killed `up` must not leave us behind."""
    if parent is None:
        return
    while os.getppid() == parent:  # noqa: ASYNC110 - the system tells nobody of it
        await asyncio.sleep(PARENT_CHECK_S)
    task.cancel()


def deploy_catalogue(settings: Settings) -> None:
    """Make or renew a deployment for every source, with progress.

    Raises
    ------
    ServerError
        If the server does not answer.
    """
    catalogue = read_catalogue(settings)
    _warn(catalogue)
    asyncio.run(_deploy(settings, catalogue))


async def _deploy(settings: Settings, catalogue: Catalogue) -> None:
    total = len(catalogue.sources)
    done = 0

    def report(source: Source, changed: bool) -> None:
        nonlocal done
        done += 1
        if changed or done == total:
            print(f"{done}/{total} {source.source}{' (renewed)' if changed else ''}", flush=True)

    async with Orchestrator(settings.prefect.work_pool) as orchestrator:
        await orchestrator.ensure_work_pool()
        changed = await deploy_sources(orchestrator, catalogue.sources, report)
        await deploy_duties(orchestrator, settings)
        gone = []
        if not catalogue.problems:
            gone = await pause_missing(orchestrator, catalogue.sources)
    print(f"{changed} deployments made or renewed, {total - changed} as they were", flush=True)
    for source in gone:
        print(f"{source}: no longer in the catalogue, its deployment is paused", flush=True)


def _warn(catalogue: Catalogue) -> None:
    for problem in catalogue.problems:
        echo(f"left out: {problem}", err=True)
