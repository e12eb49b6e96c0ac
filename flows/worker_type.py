"""The ``newsbeat`` worker type, so that Prefect knows the pool and its own CLI can start it."""

from __future__ import annotations

import os
from collections.abc import Callable
from typing import Any

import anyio.abc
from prefect.client.schemas.objects import FlowRun
from prefect.flow_engine import run_flow
from prefect.flows import load_flow_from_flow_run
from prefect.workers.base import BaseJobConfiguration, BaseWorker, BaseWorkerResult


class NewsbeatWorker(BaseWorker[BaseJobConfiguration, Any, BaseWorkerResult]):
    """Runs a newsroom's worth of polls in one process.

    ``prefect worker start --pool newsbeat --type newsbeat`` does what ``newsbeat worker``
    does, for the folder in ``NEWSBEAT_HOME`` (the current one where it is not set).
    """

    type = "newsbeat"
    job_configuration = BaseJobConfiguration
    _description = "Runs newsbeat's source flows in one process, next to the warehouse."
    _display_name = "newsbeat"

    async def start(
        self,
        run_once: bool = False,  # noqa: ARG002 - Prefect's signature
        with_healthcheck: bool = False,  # noqa: ARG002
        printer: Callable[..., None] = print,
    ) -> None:
        """Work until stopped; ``run_once`` and the health check are Prefect's, not ours."""
        from tasks.compilation import keep_compiled_code

        keep_compiled_code()
        from flows.worker import run_worker
        from tasks.catalogue import read_catalogue
        from tasks.settings import read_settings

        settings = read_settings(os.environ.get("NEWSBEAT_HOME", "."))
        catalogue = read_catalogue(settings)
        for problem in catalogue.problems:
            printer(f"left out: {problem}")
        await run_worker(
            settings,
            catalogue,
            on_ready=lambda worker: printer(f"Worker {worker.name!r} started!"),
        )

    async def run(
        self,
        flow_run: FlowRun,
        configuration: BaseJobConfiguration,  # noqa: ARG002 - Prefect's signature
        task_status: anyio.abc.TaskStatus[int] | None = None,
    ) -> BaseWorkerResult:
        """Run one flow run here, with Prefect's own engine."""
        if task_status is not None:
            task_status.started(os.getpid())
        flow = await load_flow_from_flow_run(flow_run)
        await run_flow(flow=flow, flow_run=flow_run, return_type="state")  # type: ignore[misc]
        return BaseWorkerResult(identifier=str(os.getpid()), status_code=0)
