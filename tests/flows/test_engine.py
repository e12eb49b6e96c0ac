"""What flows/engine.py relies on in Prefect, part by part, and what it makes of it."""

from __future__ import annotations

import asyncio
import dataclasses
import hashlib
import inspect
import os
import shutil
import signal
import tempfile
import threading
import tomllib
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import prefect
import pytest
from prefect import _flow_run_suspension as suspension
from prefect import flow
from prefect import flow_engine as stock
from prefect.client.orchestration import get_client
from prefect.client.schemas.objects import FlowRun, State
from prefect.context import FlowRunContext
from prefect.flows import Flow
from prefect.states import Cancelled, Completed, Failed, Running, Scheduled

from flows.engine import ShortRunEngine, run_short, run_stock
from tasks.orchestrator import Orchestrator

ROOT = Path(__file__).parents[2]
Run = Callable[[Flow[..., Any], FlowRun], Awaitable[State[Any]]]
ENGINES = pytest.mark.parametrize("run", [run_short, run_stock], ids=["short", "stock"])

RESULTS = Path(tempfile.gettempdir()) / f"newsbeat-engine-tests-{os.getpid()}"
OPTIONS: dict[str, Any] = {"persist_result": False, "result_storage": RESULTS}

# Prefect's parts that ours replace, call, or must not miss a change of. A new digest
# means: read what changed, then decide what to change in flows/engine.py.
PARTS = {
    "heartbeat_seconds": "7fdfd552091f",
    "initialize_run": "3279d7989699",
    "setup_flow_run_suspension_request": "91afa9cbdc07",
    "_get_flow_run_suspension_request": "1e7c669e5b4e",
    "start": "fb40c564eddf",
    "begin_run": "bfcfbedbd61e",
    "set_state": "f1a7c604f48f",
    "setup_run_context": "ea28d9ae0c9b",
    "run_context": "22382cee005b",
    "call_flow_fn": "a6d355b53ec9",
    "handle_success": "c7a6ae92ed9c",
    "handle_exception": "84f80b10e1b4",
    "handle_crash": "aa0463246a0e",
    "is_running": "2901e403977c",
    "state": "de8eae77b755",
}


def test_prefect_is_the_version_whose_inner_parts_we_know():
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))
    assert f"prefect=={prefect.__version__}" in project["project"]["dependencies"]


@pytest.mark.parametrize("name", PARTS)
def test_parts_of_the_stock_engine_are_as_we_read_them(name):
    part = inspect.getattr_static(stock.AsyncFlowRunEngine, name)
    plain = inspect.unwrap(part.fget if isinstance(part, property) else part)
    digest = hashlib.sha256(inspect.getsource(plain).encode()).hexdigest()[:12]
    assert digest == PARTS[name]


def test_fields_and_signatures_are_what_we_use():
    fields = {item.name for item in dataclasses.fields(stock.AsyncFlowRunEngine)}
    assert {"flow", "parameters", "flow_run", "_client", "_is_started"} <= fields
    own = {name for name in vars(ShortRunEngine) if not name.startswith("__")}
    own -= {"heartbeat_seconds", "setup_flow_run_suspension_request", "initialize_run"}
    own -= {"setup_run_context"}
    assert own == set()
    crash = inspect.signature(stock.AsyncFlowRunEngine.handle_crash)
    assert list(crash.parameters) == ["self", "exc"]
    register = inspect.signature(suspension.register_flow_run_suspension_request)
    assert list(register.parameters) == ["flow_run_id", "suspension_request"]
    run_flow = inspect.signature(stock.run_flow)
    assert {"flow", "flow_run", "return_type"} <= set(run_flow.parameters)


@flow(name="engine-test", **OPTIONS)
async def does_well(source: str, cycle: int) -> State[Any]:
    return Completed(message=f"{cycle} found at {source}")


@flow(name="engine-test", **OPTIONS)
async def finds_nothing_there(source: str, cycle: int) -> State[Any]:
    return Failed(message="failed: name not found; next in 10 min")


@flow(name="engine-test", **OPTIONS)
async def comes_second(source: str, cycle: int) -> State[Any]:
    return Cancelled(message="cycle 1 was already taken by another run")


@flow(name="engine-test", **OPTIONS)
async def is_broken(source: str, cycle: int) -> State[Any]:
    raise LookupError("no such thing")


class Bench:
    """Makes runs on the server, and reads back what became of them."""

    def __init__(self, orchestrator: Orchestrator, source: str) -> None:
        self.orchestrator = orchestrator
        self.source = source
        self._cycle = 0

    async def new_run(self) -> FlowRun:
        self._cycle += 1
        return await self.orchestrator.create_run(self.source, self._cycle, datetime.now(UTC))

    async def state_of(self, run: FlowRun) -> tuple[str, str | None]:
        found = (await self.orchestrator.client.read_flow_run(run.id)).state
        assert found is not None
        return found.type.value, found.message


@pytest.fixture(scope="module", autouse=True)
def _no_results_left() -> Iterator[None]:
    """Prefect writes down an exception that a flow raises, whatever it is told."""
    yield
    shutil.rmtree(RESULTS, ignore_errors=True)


@pytest.fixture
async def bench(prefect_server: str, new_name: Callable[[str], str]) -> AsyncIterator[Bench]:
    source = new_name("engine")
    async with Orchestrator("engine-tests") as orchestrator:
        await orchestrator.ensure_work_pool()
        await orchestrator.deploy(
            await orchestrator.ensure_flow("engine-test"),
            source,
            entrypoint="none",
            tags=[],
            description="",
            version="1",
            parameter_schema={},
        )
        yield Bench(orchestrator, source)


@pytest.mark.server
@ENGINES
@pytest.mark.parametrize(
    ("body", "kind", "message"),
    [
        (does_well, "COMPLETED", "1 found at engine-"),
        (finds_nothing_there, "FAILED", "failed: name not found; next in 10 min"),
        (comes_second, "CANCELLED", "cycle 1 was already taken by another run"),
        (is_broken, "FAILED", "Flow run encountered an exception: LookupError: no such thing"),
    ],
    ids=["completed", "failed", "cancelled", "raised"],
)
async def test_both_engines_end_a_run_in_the_same_state(
    bench: Bench, run: Run, body: Any, kind: str, message: str
) -> None:
    flow_run = await bench.new_run()
    state = await run(body, flow_run)
    on_server = await bench.state_of(flow_run)
    assert state.type.value == on_server[0] == kind
    assert state.message == on_server[1]
    assert (state.message or "").startswith(message)


@pytest.mark.server
async def test_a_run_is_given_its_own_parameters_and_context(bench: Bench) -> None:
    seen: list[tuple[Any, ...]] = []

    @flow(name="engine-test", **OPTIONS)
    async def looks_round(source: str, cycle: int | None = None) -> State[Any]:
        context = FlowRunContext.get()
        assert context is not None
        assert context.flow_run is not None
        seen.append((source, cycle, context.flow_run.id))
        return Completed(message="")

    flow_run = await bench.new_run()
    await run_short(looks_round, flow_run)
    assert seen == [(bench.source, 1, flow_run.id)]


@pytest.mark.server
async def test_a_run_that_is_cancelled_under_way_is_reported_crashed(bench: Bench) -> None:
    started = asyncio.Event()

    @flow(name="engine-test", **OPTIONS)
    async def waits(source: str, cycle: int) -> State[Any]:
        started.set()
        await asyncio.sleep(60)
        return Completed(message="")

    flow_run = await bench.new_run()
    task = asyncio.create_task(run_short(waits, flow_run))
    await asyncio.wait_for(started.wait(), 10)
    assert (await bench.state_of(flow_run))[0] == "RUNNING"
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task
    assert (await bench.state_of(flow_run))[0] == "CRASHED"


@pytest.mark.server
@ENGINES
@pytest.mark.parametrize("stopped", [Cancelled(), Running()], ids=["cancelled", "started twice"])
async def test_prefect_would_start_a_run_that_no_longer_waits(
    bench: Bench, run: Run, stopped: State[Any]
) -> None:
    """Why the worker asks first: from Cancelled to Running is how Prefect retries."""
    flow_run = await bench.new_run()
    assert await bench.orchestrator.is_waiting(flow_run.id)
    await bench.orchestrator.client.set_flow_run_state(flow_run.id, stopped, force=True)
    assert not await bench.orchestrator.is_waiting(flow_run.id)
    assert (await run(does_well, flow_run)).is_completed()


@pytest.mark.server
async def test_a_run_that_was_deleted_does_not_wait(bench: Bench) -> None:
    flow_run = await bench.new_run()
    await bench.orchestrator.client.delete_flow_run(flow_run.id)
    assert not await bench.orchestrator.is_waiting(flow_run.id)
    await bench.orchestrator.end_run(flow_run.id, "cancelled", "no matter")


@pytest.mark.server
async def test_a_run_that_has_ended_is_not_ended_again(bench: Bench) -> None:
    flow_run = await bench.new_run()
    await run_short(does_well, flow_run)
    for state in ("cancelled", "crashed"):
        await bench.orchestrator.end_run(flow_run.id, state, "too late")
    assert (await bench.state_of(flow_run))[0] == "COMPLETED"


@pytest.mark.server
async def test_a_run_starts_no_earlier_than_it_is_due(bench: Bench) -> None:
    flow_run = await bench.new_run()
    due = datetime.now(UTC).timestamp() + 1.0
    await bench.orchestrator.client.set_flow_run_state(
        flow_run.id, Scheduled(scheduled_time=datetime.fromtimestamp(due, UTC))
    )
    await run_short(does_well, flow_run)
    assert datetime.now(UTC).timestamp() >= due


@pytest.mark.server
async def test_runs_go_on_side_by_side_and_leave_signals_alone(bench: Bench) -> None:
    """Ten runs meet in the middle: none ends before all have begun."""
    n_runs = 10
    inside, all_here = 0, asyncio.Event()
    before = {number: signal.getsignal(number) for number in (signal.SIGTERM, signal.SIGINT)}
    threads = threading.active_count()

    @flow(name="engine-test", **OPTIONS)
    async def meets_the_others(source: str, cycle: int) -> State[Any]:
        nonlocal inside
        inside += 1
        if inside == n_runs:
            all_here.set()
        await asyncio.wait_for(all_here.wait(), 20)
        assert {number: signal.getsignal(number) for number in before} == before
        assert threading.active_count() - threads < n_runs, "a thread per run"
        return Completed(message=f"number {cycle}")

    runs = [await bench.new_run() for _ in range(n_runs)]
    states = await asyncio.gather(*(run_short(meets_the_others, run) for run in runs))
    assert [state.message for state in states] == [f"number {n + 1}" for n in range(n_runs)]
    assert {number: signal.getsignal(number) for number in before} == before


@pytest.mark.server
async def test_a_run_registers_for_suspension_and_opens_no_observer(bench: Bench) -> None:
    registered = suspension._active_flow_run_suspension_requests
    seen: list[bool] = []
    flow_run = await bench.new_run()
    before = set(threading.enumerate())

    @flow(name="engine-test", **OPTIONS)
    async def looks_it_up(source: str, cycle: int) -> State[Any]:
        seen.append(flow_run.id in registered)
        new = {thread.name for thread in set(threading.enumerate()) - before}
        assert not {name for name in new if "suspension" in name or "heartbeat" in name}, new
        return Completed(message="")

    await run_short(looks_it_up, flow_run)
    assert seen == [True]
    assert flow_run.id not in registered


@pytest.mark.server
async def test_runs_share_the_blocking_client_too(bench: Bench) -> None:
    """A run that finds none makes one: 20 ms on the event loop, nearly all for TLS."""
    assert get_client(sync_client=True) is get_client(sync_client=True)


@pytest.mark.server
async def test_a_run_talks_to_the_server_twice(bench: Bench) -> None:
    """Its start and its end; it is not read anew. Each call costs the server about 10 ms."""
    asked: list[str] = []

    async def note(request: Any) -> None:
        asked.append(f"{request.method} {request.url.path.rpartition('/')[2]}")

    flow_run = await bench.new_run()
    client = bench.orchestrator.client._client
    client.event_hooks["request"].append(note)
    await run_short(does_well, flow_run)
    assert asked == ["POST set_state", "POST set_state"]
