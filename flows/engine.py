"""A flow-run engine for many short runs in one process.

Prefect's own async engine costs per run a suspension observer (a thread, an event
loop, a websocket), a heartbeat thread, signal handlers and one more call to the
server. A poll lasts a second and is repeated if it dies, so it needs none of them.
It also reads the run once more before the flow begins; the worker has just done so.
What is given up: "Suspend" of a running poll in the UI.

This leans on private parts of Prefect 3.9.1 (pinned). ``tests/flows/test_engine.py``
states what it relies on; set ``NEWSBEAT_WORKER_STOCK_ENGINE=true`` to use Prefect's own.
"""

from __future__ import annotations

from collections.abc import AsyncGenerator, Generator
from contextlib import asynccontextmanager, contextmanager
from dataclasses import dataclass
from typing import Any
from uuid import UUID

from prefect._flow_run_suspension import register_flow_run_suspension_request
from prefect.client.orchestration import PrefectClient
from prefect.client.schemas.objects import FlowRun, State
from prefect.context import AsyncClientContext
from prefect.exceptions import Abort, Pause
from prefect.flow_engine import AsyncFlowRunEngine, run_flow
from prefect.flows import Flow


@dataclass
class ShortRunEngine(AsyncFlowRunEngine[Any, Any]):
    """Prefect's async engine without what only long runs need."""

    @property
    def heartbeat_seconds(self) -> int | None:
        """No heartbeats: our own lease tells a dead run from a living one."""
        return None

    @contextmanager
    def setup_flow_run_suspension_request(self) -> Generator[Any, None, None]:
        """Register the request, which other parts look up, but open no observer for it."""
        assert self.flow_run is not None
        request = self._get_flow_run_suspension_request()
        with register_flow_run_suspension_request(self.flow_run.id, request):
            yield request

    @asynccontextmanager
    async def setup_run_context(
        self, client: PrefectClient | None = None
    ) -> AsyncGenerator[Any, None]:
        """Enter the run's context with the run as it is known, not read anew."""
        assert self.flow_run is not None
        knowing = _KnowingClient(client or self.client, self.flow_run)
        async with super().setup_run_context(knowing) as context:
            yield context

    @asynccontextmanager
    async def initialize_run(self) -> AsyncGenerator[ShortRunEngine, None]:
        """Take the client of the process, and report a run that dies as crashed.

        Prefect's own also installs signal handlers, which runs side by side in one
        process would restore in the wrong order.
        """
        async with AsyncClientContext.get_or_create() as context:
            self._client = context.client
            self._is_started = True
            try:
                yield self
            except (Exception, GeneratorExit):
                raise
            except (Abort, Pause) as signal:
                if state := getattr(signal, "state", None):
                    assert self.flow_run is not None
                    self.flow_run.state = state
                raise
            except BaseException as error:
                if not self.state.is_final():
                    await self.handle_crash(error)
                raise
            finally:
                self._is_started = False
                self._client = None


class _KnowingClient(PrefectClient):
    """The client it is made of, but one that knows a run and need not ask for it."""

    def __init__(self, client: PrefectClient, flow_run: FlowRun) -> None:
        # Not super().__init__(): it would open connections of its own.
        self.__dict__.update(client.__dict__)
        self._flow_run = flow_run

    async def read_flow_run(self, flow_run_id: UUID) -> FlowRun:
        if flow_run_id == self._flow_run.id:
            return self._flow_run
        return await super().read_flow_run(flow_run_id)


async def run_short(flow: Flow[..., Any], flow_run: FlowRun) -> State[Any]:
    """Run one flow run to its end and return its final state.

    Parameters
    ----------
    flow
        An async flow.
    flow_run
        The run as the server gave it; its parameters are handed to the flow.
    """
    engine = ShortRunEngine(flow=flow, parameters=dict(flow_run.parameters), flow_run=flow_run)
    async with engine.start():
        while engine.is_running():
            async with engine.run_context():
                _ = await engine.call_flow_fn()
    return engine.state


async def run_stock(flow: Flow[..., Any], flow_run: FlowRun) -> State[Any]:
    """Run one flow run with Prefect's own engine: slower, and free of private parts."""
    result = run_flow(flow=flow, flow_run=flow_run, return_type="state")
    state: State[Any] = await result  # type: ignore[misc]
    return state
