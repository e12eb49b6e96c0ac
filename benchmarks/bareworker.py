"""Our worker as a process of its own, with an empty flow in place of the polls."""

from __future__ import annotations

import asyncio
import os
import signal
from typing import Any

from emptyrun import look
from prefect.client.schemas.objects import FlowRun
from prefect.flows import Flow

from flows.collector import Collector
from flows.worker import Worker
from tasks.catalogue import Catalogue
from tasks.orchestrator import Orchestrator
from tasks.settings import read_settings


class BareWorker(Worker):
    """All of the worker but what it works at."""

    async def _flow_of(self, run: FlowRun) -> Flow[..., Any]:
        return look


async def main() -> None:
    """Work in the folder that ``NEWSBEAT_HOME`` names, until told to stop."""
    settings = read_settings(os.environ["NEWSBEAT_HOME"])
    async with (
        Collector(settings, Catalogue((), ()), "benchmark") as collector,
        Orchestrator(settings.prefect.work_pool) as orchestrator,
    ):
        worker = BareWorker(settings, collector, orchestrator)
        await worker.prepare()
        task = asyncio.create_task(worker.run())
        asyncio.get_running_loop().add_signal_handler(signal.SIGTERM, task.cancel)
        await asyncio.wait([task])


if __name__ == "__main__":
    asyncio.run(main())
