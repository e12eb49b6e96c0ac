"""The worker between a recorded web and a real Prefect server."""

from __future__ import annotations

import asyncio
import contextlib
import re
import time
from collections.abc import AsyncIterator, Awaitable, Callable
from dataclasses import dataclass, replace
from datetime import UTC, datetime, timedelta
from typing import Any
from uuid import UUID

import httpx
import pytest
from prefect.client.schemas.objects import FlowRun
from prefect.states import Running, Scheduled

from flows.collector import Collector, current
from flows.deploy import deploy_sources, pause_missing
from flows.duties import MEND
from flows.runqueue import RunQueue
from flows.schedule import Scheduler
from flows.worker import Worker, run_worker
from flows.worker_type import NewsbeatWorker
from models.errors import ConfigError, NewsbeatError, WarehouseError
from models.reconciliation import CreateRun, EndRun
from models.records import Schedule
from tasks.catalogue import catalogue_stamp, read_catalogue
from tasks.clock import Clock
from tasks.orchestrator import Orchestrator
from tasks.replay.history import write_catalogue
from tasks.settings import WarehouseSettings

pytestmark = pytest.mark.server

POOL = "newsbeat-tests"
SPEED = 600.0
"""A source polled every 300 s is polled twice a second."""


@dataclass
class Desk:
    """A newsroom with its worker's parts connected to the server, for one source."""

    room: Any
    orchestrator: Orchestrator
    worker: Worker
    source: str

    @property
    def scheduler(self) -> Scheduler:
        return self.worker.scheduler

    async def reconcile(self) -> list[Any]:
        return await self.scheduler.reconcile(self.worker.running)

    def schedule(self) -> Schedule:
        found = self.room.collector.warehouse.read_schedule(self.source)
        assert found is not None
        return found

    async def runs(self, state: str | None = None) -> list[FlowRun]:
        """Return the source's runs, the oldest cycle first."""
        rows = (
            await self.orchestrator.client.request(
                "POST",
                "/flow_runs/filter",
                json={
                    "flow_runs": {"tags": {"all_": ["newsbeat"]}},
                    "deployments": {"name": {"any_": [self.source]}},
                    "sort": "ID_DESC",
                },
            )
        ).json()
        runs = [FlowRun.model_validate(row) for row in rows]
        runs.sort(key=lambda run: run.parameters.get("cycle") or 0)
        return [run for run in runs if state in (None, type_of(run))]

    async def waiting(self) -> list[int | None]:
        """Return the cycles that wait to be polled."""
        return [run.parameters.get("cycle") for run in await self.runs("SCHEDULED")]

    async def run_by_hand(self) -> FlowRun:
        """Do what "Quick run" in the UI does."""
        return await self.orchestrator.client.create_flow_run_from_deployment(
            self.orchestrator.deployment_ids[self.source]
        )

    @contextlib.asynccontextmanager
    async def working(self) -> AsyncIterator[None]:
        task = asyncio.create_task(self.worker.run())
        try:
            yield
        finally:
            task.cancel()
            with contextlib.suppress(asyncio.CancelledError):
                await task

    async def until(
        self, condition: Callable[[], bool | Awaitable[bool]], seconds: float = 15
    ) -> None:
        end = time.monotonic() + seconds
        while time.monotonic() < end:
            met = condition()
            if met if isinstance(met, bool) else await met:
                return
            await asyncio.sleep(0.05)
        runs = [(run.name, type_of(run)) for run in await self.runs()]
        raise AssertionError(f"not within {seconds} s; {self.schedule()}; {runs}")

    async def until_polled(self, times: int = 1, seconds: float = 15) -> None:
        """Wait for so many more polls."""
        wanted = self.n_polls() + times
        await self.until(lambda: self.n_polls() >= wanted, seconds)

    def n_polls(self) -> int:
        rows = self.room.rows(f"SELECT count(*) FROM polls WHERE source = '{self.source}'")
        return int(rows[0][0])


def type_of(run: FlowRun) -> str:
    assert run.state is not None
    return str(run.state.type.value)


@pytest.fixture
def open_desk(
    prefect_server: str,
    open_newsroom: Any,
    make_recorded: Any,
    new_name: Callable[[str], str],
    worker_settings: Any,
) -> Any:
    """Opens a newsroom with one source of a name of its own, prepared to work."""

    @contextlib.asynccontextmanager
    async def open_one(
        source: str = "", prepared: bool = True, speed: float = SPEED, **given: Any
    ) -> AsyncIterator[Desk]:
        name = source or new_name("desk")
        recorded = make_recorded(source=name, host=f"{name}.example", n_entries=200)
        clock = given.pop("clock", None) or Clock.starting_at(
            recorded.entries[3].published_at, speed
        )
        given.setdefault("worker", worker_settings())
        async with (
            open_newsroom(recorded, clock=clock, **given) as room,
            Orchestrator(POOL) as orchestrator,
        ):
            worker = Worker(room.settings, room.collector, orchestrator)
            if prepared:
                await worker.prepare()
                await worker.scheduler.reconcile(worker.running)
            yield Desk(room, orchestrator, worker, name)

    return open_one


async def test_each_run_sets_the_next_one(open_desk: Any) -> None:
    async with open_desk() as desk, desk.working():
        await desk.until_polled(4)
        await desk.until(lambda: is_settled(desk))
        done = await desk.runs("COMPLETED")
        assert [run.parameters["cycle"] for run in done[:3]] == [1, 2, 3]
        assert done[0].name == f"{desk.source} #1"
        assert done[0].state is not None
        said = r"(\d) new of \1 listed, \1 articles stored; next in .* min: every 5 min"
        assert re.fullmatch(said, done[0].state.message or "")
        for run in done:
            assert run.idempotency_key == f"{desk.source}:{run.parameters['cycle']}"
        assert sorted(desk.room.urls(desk.source)) == sorted(set(desk.room.urls(desk.source)))


async def is_settled(desk: Desk) -> bool:
    """Return whether exactly the poll that the schedule says comes next waits."""
    waiting = await desk.waiting()
    return waiting == [desk.schedule().cycle]


async def has_runs(desk: Desk, state: str) -> bool:
    return bool(await desk.runs(state))


async def test_a_run_started_by_hand_polls_now_and_the_beat_goes_on(open_desk: Any) -> None:
    async with open_desk(interval_s=86_400.0, speed=1.0) as desk, desk.working():
        await desk.until_polled(1)
        run = await desk.run_by_hand()
        await desk.until_polled(1)

        async def is_over() -> bool:
            return type_of(await desk.orchestrator.client.read_flow_run(run.id)) == "COMPLETED"

        await desk.until(is_over)
        assert desk.room.rows("SELECT cycle FROM polls ORDER BY 1") == [(1,), (2,)]
        await desk.until(lambda: is_settled(desk))
        assert await desk.waiting() == [3]


async def test_a_pause_is_honoured_and_a_resumed_source_polled_at_once(open_desk: Any) -> None:
    async with open_desk() as desk, desk.working():
        await desk.until_polled(2)
        await desk.orchestrator.set_paused(desk.source, True)
        await desk.until(lambda: desk.schedule().state == "paused", seconds=3)
        assert desk.schedule().reason == "paused in Prefect"
        await desk.until(lambda: not desk.worker.running)
        before = desk.n_polls()
        await asyncio.sleep(1.5)
        assert desk.n_polls() == before
        assert await desk.waiting() == []
        await desk.orchestrator.set_paused(desk.source, False)
        await desk.until_polled(1, seconds=4)
        assert desk.schedule().state == "active"


async def test_a_run_by_hand_on_a_paused_source_says_why_it_did_not_run(open_desk: Any) -> None:
    async with open_desk() as desk, desk.working():
        await desk.until_polled(1)
        await desk.orchestrator.set_paused(desk.source, True)
        await desk.until(lambda: desk.schedule().state == "paused")
        run = await desk.run_by_hand()

        async def is_over() -> bool:
            return type_of(await desk.orchestrator.client.read_flow_run(run.id)) == "CANCELLED"

        await desk.until(is_over)
        state = (await desk.orchestrator.client.read_flow_run(run.id)).state
        assert state is not None
        assert state.message == "the source is paused"


async def test_a_cancelled_poll_is_skipped_and_the_source_goes_on(open_desk: Any) -> None:
    async with open_desk(speed=1.0) as desk:
        (run,) = await desk.runs("SCHEDULED")
        await desk.orchestrator.client.set_flow_run_state(run.id, cancelled())
        async with desk.working():
            await desk.until(lambda: is_settled(desk))
            assert desk.n_polls() == 0, "it ran although people cancelled it"
        assert desk.schedule().cycle == 2
        ahead = desk.schedule().due_at - desk.room.clock.now()
        assert ahead > timedelta(minutes=4), "a skipped poll waits for its next turn"


def cancelled() -> Any:
    from prefect.states import Cancelled

    return Cancelled(message="by hand")


@pytest.mark.report("PrefectHQ/prefect#16746")
async def test_a_run_that_a_dead_worker_left_becomes_crashed_and_the_source_goes_on(
    open_desk: Any,
) -> None:
    async with open_desk(speed=1.0) as desk:
        (left,) = await desk.runs("SCHEDULED")
        await desk.orchestrator.client.set_flow_run_state(left.id, Running(), force=True)
        await desk.reconcile()
        (crashed,) = await desk.runs("CRASHED")
        assert crashed.id == left.id
        assert crashed.state is not None
        assert crashed.state.message == "its worker is gone: lease ran out"
        assert await desk.waiting() == [desk.schedule().cycle] == [2]
        assert await desk.reconcile() == []


async def test_a_run_whose_lease_holds_is_left_alone(open_desk: Any) -> None:
    async with open_desk(speed=1.0) as desk:
        (run,) = await desk.runs("SCHEDULED")
        await desk.orchestrator.client.set_flow_run_state(run.id, Running(), force=True)
        now = desk.room.clock.now()
        claimed = desk.room.collector.warehouse.claim_cycle(
            desk.source, 1, now, now + timedelta(minutes=5)
        )
        assert claimed is not None
        assert await desk.reconcile() == []
        assert len(await desk.runs("RUNNING")) == 1


async def test_a_run_that_ended_since_the_server_was_asked_is_not_ended_again(
    open_desk: Any,
) -> None:
    """Reconcile's picture of the runs is a moment old when it acts."""
    async with open_desk(speed=1.0) as desk:
        (run,) = await desk.runs("SCHEDULED")
        seen = await desk.orchestrator.read_open_runs()
        assert run.id in {other.id for other in seen}
        await desk.worker._execute(run)
        assert type_of((await desk.runs())[0]) == "COMPLETED"
        for state in ("crashed", "cancelled"):
            stale = [EndRun(str(run.id), desk.source, state, "as it looked a moment ago")]
            await desk.scheduler._apply(stale, {}, desk.room.clock.now())
        assert type_of((await desk.runs())[0]) == "COMPLETED"


@pytest.mark.report("PrefectHQ/prefect#17764")
async def test_a_deployment_the_server_forgot_is_made_again(open_desk: Any) -> None:
    async with open_desk(speed=1.0) as desk:
        forgotten = desk.orchestrator.deployment_ids[desk.source]
        await desk.orchestrator.client.delete_deployment(forgotten)
        assert await desk.runs() == []
        actions = await desk.reconcile()
        assert [type(action) for action in actions] == [CreateRun]
        assert desk.orchestrator.deployment_ids[desk.source] != forgotten
        assert await desk.waiting() == [1]
        assert await desk.reconcile() == []


@pytest.mark.report("PrefectHQ/prefect#7381")
async def test_two_runs_of_one_cycle_collapse_into_one(open_desk: Any) -> None:
    async with open_desk(speed=1.0) as desk:
        twin = await desk.orchestrator.client.create_flow_run_from_deployment(
            desk.orchestrator.deployment_ids[desk.source],
            parameters={"source": desk.source, "cycle": 1},
            tags=["newsbeat"],
        )
        assert await desk.waiting() == [1, 1]
        (action,) = await desk.reconcile()
        assert isinstance(action, EndRun)
        assert action.reason == "twice: another run has this cycle"
        assert await desk.waiting() == [1]
        assert twin.name != f"{desk.source} #1"


async def test_a_run_of_a_cycle_that_is_over_is_cancelled(open_desk: Any) -> None:
    async with open_desk(speed=1.0) as desk:
        await desk.room.polled(desk.source)
        actions = await desk.reconcile()
        assert [type(action) for action in actions] == [EndRun, CreateRun]
        assert await desk.waiting() == [2]


@pytest.mark.report("PrefectHQ/prefect#18894")
async def test_two_runs_that_start_together_make_one_poll(open_desk: Any) -> None:
    async with open_desk(speed=1.0) as desk:
        (run,) = await desk.runs("SCHEDULED")
        by_hand = await desk.run_by_hand()
        await asyncio.gather(desk.worker._execute(run), desk.worker._execute(by_hand))
        assert desk.n_polls() == 1
        assert sorted(type_of(run) for run in await desk.runs()) == [
            "CANCELLED",
            "COMPLETED",
            "SCHEDULED",
        ]


@pytest.mark.report("vstorm-co/agenticos#309")
async def test_polls_missed_while_nothing_ran_collapse_into_one(open_desk: Any) -> None:
    async with open_desk() as desk:
        async with desk.working():
            await desk.until_polled(1)
            await desk.until(lambda: is_settled(desk))
        missed_from = desk.schedule().cycle
        await asyncio.sleep(2.0)
        await desk.worker.prepare()
        async with desk.working():
            await desk.until_polled(2)
        (late, after, *_) = desk.room.rows(
            "SELECT cycle, due_at, started_at, next_due_at FROM polls"
            f" WHERE cycle >= {missed_from} ORDER BY cycle"
        )
        interval = timedelta(seconds=300)
        assert late[2] - late[1] > 2 * interval, "it was not late"
        assert late[2] < late[3] < late[2] + 1.5 * interval, "back on its beat, no burst"
        assert after[1] == late[3]
        assert sorted(desk.room.urls(desk.source)) == sorted(desk.room.listed(desk.source))


async def test_a_source_that_left_the_catalogue_is_paused_and_its_history_kept(
    open_desk: Any,
) -> None:
    async with open_desk(speed=1.0) as desk:
        (run,) = await desk.runs("SCHEDULED")
        await desk.worker._execute(run)
        source = desk.room.collector.source(desk.source)
        stranger = replace(source, source=f"{desk.source}-other")
        await with_catalogue(desk, (stranger,))
        assert desk.schedule().state == "paused"
        assert desk.schedule().reason == "no longer in the catalogue"
        assert desk.source in await desk.orchestrator.read_paused()
        assert await desk.waiting() == []
        assert len(await desk.runs("COMPLETED")) == 1
        assert len(desk.room.urls(desk.source)) == 4

        await with_catalogue(desk, (source, stranger))
        assert desk.source not in await desk.orchestrator.read_paused()
        assert desk.schedule().state == "active"
        assert len(await desk.waiting()) == 1


async def with_catalogue(desk: Desk, sources: tuple[Any, ...], n_problems: int = 0) -> None:
    """Start the worker anew, as after an edit of the catalogue."""
    problem = ConfigError("news.toml", "x.url", "nowhere", "it must be an address")
    collector: Collector = desk.room.collector
    collector.catalogue = replace(
        collector.catalogue, sources=sources, problems=(problem,) * n_problems
    )
    collector.sources = {source.source: source for source in sources}
    await desk.worker.prepare()
    await desk.reconcile()


async def test_a_pause_by_people_outlives_a_renewal_of_the_catalogue(open_desk: Any) -> None:
    async with open_desk(speed=1.0) as desk:
        source = desk.room.collector.source(desk.source)
        await desk.orchestrator.set_paused(desk.source, True)
        await deploy_sources(desk.orchestrator, [replace(source, title="Another Title")])
        assert desk.source in await desk.orchestrator.read_paused()


async def test_a_catalogue_with_a_broken_entry_pauses_nobody(open_desk: Any) -> None:
    async with open_desk(speed=1.0) as desk:
        source = desk.room.collector.source(desk.source)
        stranger = replace(source, source=f"{desk.source}-other")
        await with_catalogue(desk, (stranger,), n_problems=1)
        assert desk.schedule().state == "active"
        assert desk.source not in await desk.orchestrator.read_paused()


async def test_a_source_that_the_server_chokes_on_does_not_keep_the_others_from_it(
    open_desk: Any, new_name: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    async with open_desk() as desk:
        (mine,) = desk.room.catalogue.sources
        odd = replace(mine, source=new_name("odd"))
        good = replace(mine, source=new_name("good"), title="half \ud83d and nul \x00")
        client = desk.orchestrator.client
        whole = client.create_deployment

        async def choke(*, name: str, **about: Any) -> UUID:
            if name == odd.source:
                request = httpx.Request("POST", "http://prefect.example/api/deployments")
                raise httpx.HTTPStatusError("500", request=request, response=httpx.Response(500))
            return await whole(name=name, **about)

        monkeypatch.setattr(client, "create_deployment", choke)
        await deploy_sources(desk.orchestrator, [odd, good])
        known = await desk.orchestrator.read_deployments()
        assert good.source in known
        assert odd.source not in known


async def test_deploying_twice_changes_nothing(open_desk: Any) -> None:
    async with open_desk(speed=1.0) as desk:
        sources = list(desk.room.collector.sources.values())
        assert await deploy_sources(desk.orchestrator, sources) == 0
        changed = [replace(source, title="Another Title") for source in sources]
        assert await deploy_sources(desk.orchestrator, changed) == 1
        deployment = (await desk.orchestrator.read_deployments())[desk.source]
        assert deployment.tags == {"newsbeat", f"source:{desk.source}", "kind:feed", "recorded"} | {
            "language:en"
        }
        assert "Another Title" in deployment.description
        assert await pause_missing(desk.orchestrator, sources) == []


async def test_a_source_that_fails_is_a_failed_run_and_goes_on(open_desk: Any) -> None:
    async with open_desk() as desk:
        desk.room.fault("status", where="index", status=500)
        async with desk.working():
            await desk.until(lambda: has_runs(desk, "FAILED"))
            (failed, *_) = await desk.runs("FAILED")
            assert failed.state is not None
            assert (failed.state.message or "").startswith("failed: HTTP 500")
            desk.room.mend()
            await desk.until(lambda: len(desk.room.urls(desk.source)) >= 4)


async def test_the_source_has_a_page_in_the_ui(open_desk: Any) -> None:
    async with open_desk(speed=1.0) as desk:
        (run,) = await desk.runs("SCHEDULED")
        await desk.worker._execute(run)
        await desk.worker.publisher.publish()
        artifact = await artifact_of(desk)
        assert artifact["flow_run_id"] == str(run.id)
        assert artifact["data"].startswith("# The Harbour")

        # Renewed in its place, and made again by a server that lost it.
        result = await desk.room.polled(desk.source)
        await asyncio.sleep(1.1)
        desk.worker.publisher.note(result, None)
        await desk.worker.publisher.publish()
        renewed = await artifact_of(desk)
        assert renewed["latest_id"] == artifact["latest_id"]
        assert renewed["data"] != artifact["data"]
        await desk.orchestrator.client.delete_artifact(UUID(artifact["latest_id"]))
        await asyncio.sleep(1.1)
        desk.worker.publisher.note(result, None)
        await desk.worker.publisher.publish()
        assert (await artifact_of(desk))["latest_id"] != artifact["latest_id"]


async def artifact_of(desk: Desk) -> dict[str, Any]:
    body = {"artifacts": {"key": {"any_": [f"source-{desk.source}"]}}}
    answer = await desk.orchestrator.client.request("POST", "/artifacts/latest/filter", json=body)
    rows = answer.json()
    assert len(rows) == 1
    return dict(rows[0])


async def test_the_stock_engine_does_the_same(open_desk: Any, worker_settings: Any) -> None:
    async with open_desk(worker=worker_settings(stock_engine=True), speed=60.0) as desk:
        async with desk.working():
            await desk.until_polled(1)
            await desk.until(lambda: is_settled(desk))
        assert [type_of(run) for run in await desk.runs()][:2] == ["COMPLETED", "SCHEDULED"]


async def test_a_run_that_the_server_did_not_let_start_is_tried_again(
    open_desk: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The server restarts just then: the run still waits there, and nobody else starts it."""
    monkeypatch.setattr("flows.worker.RETRY_S", 0.2)
    async with open_desk() as desk:
        whole = desk.worker._engine
        refused = []

        async def away(flow: Any, run: FlowRun) -> Any:
            if len(refused) < 3:
                refused.append(run.id)
                raise ConnectionRefusedError("nobody listens there")
            return await whole(flow, run)

        desk.worker._engine = away
        async with desk.working():
            await desk.until_polled(2)
        assert len(refused) == 3


async def test_a_run_that_is_no_run_of_ours_is_ended_and_not_run(open_desk: Any) -> None:
    async with open_desk(speed=1.0) as desk, desk.working():
        client = desk.orchestrator.client
        flow_id = await client.create_flow_from_name("stranger")
        runs = []
        for entrypoint in ("os.system", "flows.cli.main", "stranger.py:run", "flows.nobody.run"):
            deployment_id = await client.create_deployment(
                flow_id, entrypoint, entrypoint=entrypoint, work_pool_name=POOL
            )
            runs.append(await client.create_flow_run_from_deployment(deployment_id))

        async def are_ended() -> bool:
            found = [(await client.read_flow_run(run.id)).state for run in runs]
            return all(state is not None and state.is_crashed() for state in found)

        await desk.until(are_ended)
        state = (await client.read_flow_run(runs[0].id)).state
        assert state is not None
        assert (state.message or "").startswith("os.system is no flow of newsbeat's")


@pytest.mark.report("PrefectHQ/prefect#17628")
async def test_the_only_place_is_given_back_however_a_run_ends(
    open_desk: Any, worker_settings: Any
) -> None:
    one = worker_settings(concurrency=1)
    async with open_desk(speed=1.0, worker=one) as desk, desk.working():
        client = desk.orchestrator.client
        flow_id = await client.create_flow_from_name("stranger")
        deployment_id = await client.create_deployment(
            flow_id, "broken", entrypoint="flows.nobody.run", work_pool_name=POOL
        )
        runs = [await client.create_flow_run_from_deployment(deployment_id) for _ in range(3)]

        async def are_ended() -> bool:
            found = [(await client.read_flow_run(run.id)).state for run in runs]
            return all(state is not None and state.is_crashed() for state in found)

        await desk.until(are_ended)
        await desk.run_by_hand()
        await desk.until_polled(1)


async def test_many_runs_by_hand_are_one_wish(open_desk: Any) -> None:
    async with open_desk(interval_s=86_400.0, speed=1.0) as desk:
        for _ in range(30):
            await desk.run_by_hand()
        async with desk.working():
            await desk.until(lambda: is_settled(desk), 30)
        # The one that was due anyway, and one by hand at most.
        assert desk.n_polls() <= 2
        reasons = {
            run.state.message for run in await desk.runs("CANCELLED") if run.state is not None
        }
        assert "polled since this was asked for" in reasons


async def test_what_is_asked_of_a_source_is_done_though_it_was_polled_since_or_is_paused(
    open_desk: Any,
) -> None:
    async with open_desk() as desk:
        client = desk.orchestrator.client
        mending = await client.read_deployment_by_name(MEND.deployment)
        asked = await client.create_flow_run_from_deployment(
            mending.id,
            parameters={"source": desk.source, "action": "accept"},
            state=Scheduled(scheduled_time=datetime.now(UTC) + timedelta(seconds=1)),
        )
        await desk.orchestrator.set_paused(desk.source, True)
        # As though a poll had begun later than the run was due.
        desk.worker._began[desk.source] = time.time() + 60.0

        async def is_over() -> bool:
            return type_of(await client.read_flow_run(asked.id)) in ("COMPLETED", "FAILED")

        async with desk.working():
            await desk.until(is_over)
        state = (await client.read_flow_run(asked.id)).state
        assert state is not None
        assert desk.source in (state.message or "")


async def test_a_paused_work_pool_holds_every_poll(open_desk: Any) -> None:
    async with open_desk() as desk, desk.working():
        await desk.until_polled(1)
        await set_pool(desk, is_paused=True)
        await desk.until(lambda: desk.worker._is_pool_paused)
        await desk.until(lambda: not desk.worker.running)
        before = desk.n_polls()
        await asyncio.sleep(2.0)
        assert desk.n_polls() == before
        await set_pool(desk, is_paused=False)
        await desk.until_polled(2)


async def set_pool(desk: Desk, is_paused: bool) -> None:
    await desk.orchestrator.client.request(
        "PATCH", f"/work_pools/{POOL}", json={"is_paused": is_paused}
    )


async def test_a_deleted_work_pool_is_made_again_and_every_deployment_joins_it(
    open_desk: Any,
) -> None:
    async with open_desk() as desk, desk.working():
        await desk.until_polled(1)
        await desk.orchestrator.client.delete_work_pool(POOL)
        await desk.until_polled(3)

        async def has_joined() -> bool:
            found = (await desk.orchestrator.read_deployments()).get(desk.source)
            return found is not None and found.work_pool == POOL

        await desk.until(has_joined)
        await desk.run_by_hand()
        await desk.until_polled(2)


async def test_a_source_due_years_ahead_is_polled_now(open_desk: Any) -> None:
    """The machine's clock was wrong when the schedule was written."""
    async with open_desk(prepared=False, speed=1.0) as desk:
        wrong = replace(desk.schedule(), due_at=desk.room.clock.now() + timedelta(days=4000))
        desk.room.collector.warehouse.write_schedule(wrong)
        await desk.worker.prepare()
        await desk.reconcile()
        assert await desk.reconcile() == []
        assert desk.schedule().due_at <= desk.room.clock.now()
        async with desk.working():
            await desk.until_polled(1)


async def test_nothing_is_started_while_the_disk_is_nearly_full(
    open_desk: Any, caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("flows.worker.DISK_S", 0.2)
    async with open_desk(warehouse=WarehouseSettings(min_free_mb=1e9)) as desk, desk.working():
        await desk.until(lambda: "to stay free (warehouse.min_free_mb)" in caplog.text)
        await asyncio.sleep(1.0)
        assert desk.n_polls() == 0
        desk.worker.settings = replace(desk.worker.settings, warehouse=WarehouseSettings())
        await desk.until_polled(2)


async def test_polls_rest_after_one_that_could_not_be_stored(
    open_desk: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    async with open_desk() as desk:
        whole = desk.room.collector.warehouse.store_poll
        tried = []

        def refuse(*_: Any) -> None:
            tried.append(time.monotonic())
            raise WarehouseError("newsbeat.duckdb", "the disk is full", "Free some space")

        desk.room.collector.warehouse.store_poll = refuse
        async with desk.working():
            await desk.until(lambda: len(tried) > 0)
            await asyncio.sleep(3.0)
            assert len(tried) == 1
            desk.room.collector.warehouse.store_poll = whole
            monkeypatch.setattr("flows.worker.TROUBLE_REST_S", 0.1)
            await desk.until_polled(2)


async def test_the_worker_ends_with_a_database_that_was_given_up(open_desk: Any) -> None:
    async with open_desk() as desk:
        task = asyncio.create_task(desk.worker.run())
        await desk.until_polled(1)
        desk.room.collector.warehouse._has_failed = True
        with pytest.raises(WarehouseError, match="gave the database up"):
            await asyncio.wait_for(task, 20)


async def test_the_worker_ends_for_a_query_that_does_not_end(
    open_desk: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("flows.worker.QUERIES_S", 0.2)
    limits = WarehouseSettings(query_limit_s=60.0)
    async with open_desk(warehouse=limits) as desk:
        task = asyncio.create_task(desk.worker.run())
        await desk.until_polled(1)
        desk.room.collector.warehouse.longest_query = lambda: (61.0, "SELECT 1\nFROM everywhere")
        with pytest.raises(WarehouseError, match="run for more than 60 s: SELECT 1 FROM every"):
            await asyncio.wait_for(task, 20)


async def test_a_catalogue_that_changes_is_read_anew(
    open_desk: Any, new_name: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("flows.worker.CATALOGUE_S", 0.2)
    async with open_desk() as desk:
        folder = desk.room.settings.sources_folder
        (mine,) = desk.room.catalogue.sources
        second = new_name("second")
        write_catalogue([mine], folder)
        desk.room.collector.catalogue = read_catalogue(folder)
        desk.worker._stamp = desk.worker._new_stamp = catalogue_stamp(desk.room.settings)

        def state_of(source: str) -> str | None:
            row = desk.room.collector.warehouse.read_schedule(source)
            return row.state if row else None

        async with desk.working():
            await desk.until_polled(1)
            write_catalogue([replace(mine, title="Anew"), replace(mine, source=second)], folder)
            await desk.until(lambda: state_of(second) == "active")
            await desk.until(lambda: bool(desk.room.urls(second)))
            # A slip in one entry takes nobody out of the collection.
            (slip,) = [file for file in folder.iterdir() if second in file.read_text()]
            text = slip.read_text()
            slip.write_text(text.replace(f'source = "{second}"', 'source = "No Name!"'))
            await desk.until(lambda: bool(desk.room.collector.catalogue.problems))
            assert second in desk.room.collector.sources
            write_catalogue([mine], folder)
            await desk.until(lambda: state_of(second) == "paused")
            await desk.until_polled(2)
        assert state_of(desk.source) == "active"


async def test_a_worker_that_is_stopped_lets_polls_under_way_end(open_desk: Any) -> None:
    async with open_desk(speed=1.0) as desk:
        desk.room.fault("slow", where="article", wait_s=1.0)
        async with desk.working():
            await desk.until(lambda: bool(desk.worker.running))
            await asyncio.sleep(0.3)
        assert desk.n_polls() == 1
        assert not desk.worker.running
        assert type_of((await desk.runs())[0]) == "COMPLETED"


async def test_the_whole_worker_opens_works_and_closes(
    prefect_server: str, open_newsroom: Any, make_recorded: Any, new_name: Any, tmp_path: Any
) -> None:
    name = new_name("whole")
    recorded = make_recorded(source=name, host=f"{name}.example")
    async with open_newsroom(recorded, home=tmp_path) as room:
        settings = replace(room.settings, home=tmp_path / "own")
        settings.home.mkdir()
        ready: asyncio.Future[Worker] = asyncio.get_running_loop().create_future()
        task = asyncio.create_task(run_worker(settings, room.catalogue, on_ready=ready.set_result))
        worker = await asyncio.wait_for(ready, 20)
        assert current() is worker.collector
        while not worker.lateness_s:
            await asyncio.sleep(0.05)
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task
        with pytest.raises(NewsbeatError, match="this flow runs inside a newsbeat worker"):
            current()
        assert not (settings.folder / "endpoint.json").exists()


def test_prefect_knows_our_worker_type() -> None:
    from prefect.workers.base import BaseWorker

    assert BaseWorker.get_worker_class_from_type("newsbeat") is NewsbeatWorker


def queued(due_in_s: float) -> FlowRun:
    return FlowRun(
        flow_id=UUID(int=1), expected_start_time=datetime.now(UTC) + timedelta(seconds=due_in_s)
    )


async def test_the_queue_gives_each_run_once_in_the_order_they_are_due() -> None:
    queue = RunQueue()
    late, soon, now = queued(0.4), queued(0.2), queued(-1.0)
    assert all(queue.add(run) for run in (late, soon, now))
    assert not queue.add(now)
    given = [await queue.next_due() for _ in range(3)]
    assert [run.id for run, _ in given] == [now.id, soon.id, late.id]
    assert given[0][1] > 0.9
    assert all(0 <= lateness < 0.3 for _, lateness in given[1:])
    assert not queue.add(now), "an answer that was under way must not start it again"


async def test_a_run_that_is_due_sooner_is_not_kept_waiting_by_a_later_one() -> None:
    queue = RunQueue()
    queue.add(queued(60.0))
    waiting = asyncio.create_task(queue.next_due())
    await asyncio.sleep(0.05)
    soon = queued(0.1)
    queue.add(soon)
    run, _ = await asyncio.wait_for(waiting, 5)
    assert run.id == soon.id


async def test_a_run_is_given_out_on_time_when_the_clock_is_put_forward(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """As it is after a laptop slept: the wait that was set before has not run down."""
    queue = RunQueue()
    queue.add(queued(600.0))
    waiting = asyncio.create_task(queue.next_due())
    await asyncio.sleep(0.05)
    real = time.time
    monkeypatch.setattr("flows.runqueue.time.time", lambda: real() + 3600.0)
    _, late_s = await asyncio.wait_for(waiting, 5)
    assert late_s > 2900.0


async def test_a_domain_that_is_busy_takes_no_place_that_others_could_use() -> None:
    busy = {"a"}
    queue = RunQueue(may_start=lambda source: source not in busy)
    for name, due_in_s in (("a", -9.0), ("b", -1.0)):
        run = queued(due_in_s)
        run.parameters["source"] = name
        queue.add(run)
    first, _ = await asyncio.wait_for(queue.next_due(), 5)
    assert first.parameters["source"] == "b"
    waiting = asyncio.create_task(queue.next_due())
    await asyncio.sleep(0.05)
    assert not waiting.done()
    busy.clear()
    queue.look_again()
    then, _ = await asyncio.wait_for(waiting, 0.5)
    assert then.parameters["source"] == "a"


def test_a_run_that_was_forgotten_may_be_queued_again() -> None:
    queue = RunQueue()
    run = queued(-1.0)
    assert queue.add(run)
    queue.forget(run.id)
    assert queue.add(run)


@pytest.mark.parametrize("n_turns", range(5))
async def test_a_queue_that_is_stopped_stops_though_a_run_comes_in_the_same_moment(
    n_turns: int,
) -> None:
    queue = RunQueue()
    waiting = asyncio.create_task(queue.next_due())
    await asyncio.sleep(0.05)
    queue.add(queued(60.0))
    for _ in range(n_turns):
        await asyncio.sleep(0)
    waiting.cancel()
    done, _ = await asyncio.wait([waiting], timeout=3)
    assert waiting in done
    assert waiting.cancelled()
