"""A flow-run engine for many short runs in one process.

Prefect's own async engine costs per run a suspension observer (a thread, an event
loop, a websocket), a heartbeat thread, signal handlers and one more call to the
server. A poll lasts a second and is repeated if it dies, so it needs none of them.
What is given up: "Suspend" of a running poll in the UI.

This leans on private parts of Prefect 3.9.1 (pinned). ``tests/flows/test_engine.py``
states what it relies on; set ``NEWSBEAT_WORKER_STOCK_ENGINE=true`` to use Prefect's own.
"""

from __future__ import annotations

from collections.abc import AsyncGenerator, Generator
from contextlib import asynccontextmanager, contextmanager
from dataclasses import dataclass
from typing import Any

from prefect._flow_run_suspension import register_flow_run_suspension_request
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
