"""The refit of a warehouse: read beside the writer, fitted in a process, written back."""

from __future__ import annotations

import asyncio
import contextlib
import json
import time
from dataclasses import replace
from datetime import UTC, datetime, timedelta

import numpy as np
import psutil
import pytest
from click.testing import CliRunner

from flows.cli import main
from flows.commands.refitting import is_worker_running, refit_there
from flows.duties import REFIT, deploy_duty
from flows.refitting import Refit
from flows.worker import Worker
from models.records import Decision, Entry, NewEntry, Poll, PollResult, Schedule, Source
from models.refit_report import describe_refit
from tasks.clock import Clock
from tasks.orchestrator import Orchestrator
from tasks.settings import RefitSettings, Settings
from tasks.warehouse import Warehouse

START = datetime(2026, 3, 2, tzinfo=UTC)
N_DAYS = 28
NOW = START + timedelta(days=N_DAYS, minutes=20)


def source_named(name: str) -> Source:
    return Source(name, name.title(), f"https://{name}.example/feed", timezone="Europe/Berlin")


def store_history(warehouse: Warehouse, name: str, per_hour: float) -> None:
    """Poll a source every six hours for four weeks; it is busy by day."""
    rng = np.random.default_rng(len(name))
    since = START
    for cycle in range(1, N_DAYS * 4 + 1):
        at = START + timedelta(hours=6 * cycle)
        n_found = rng.poisson(6 * per_hour * (1.5 if at.hour in (12, 18) else 0.2))
        minutes = np.sort(rng.uniform(0, 360, n_found))
        stamps = [since + timedelta(minutes=float(minute)) for minute in minutes]
        warehouse.store_poll(poll_of(name, cycle, at, stamps))
        since = at


def poll_of(name: str, cycle: int, at: datetime, stamps: list[datetime]) -> PollResult:
    entries = tuple(
        NewEntry(
            f"{name}-{cycle}-{place}",
            Entry(f"https://{name}.example/{cycle}/{place}", "T", None, stamp, "instant"),
            "f",
        )
        for place, stamp in enumerate(stamps)
    )
    decision = Decision(at + timedelta(hours=6), "every 6 h", "fixed", {})
    poll = Poll(
        f"{name}#{cycle}", name, cycle, at, at, at, "new" if entries else "empty", 200, "",
        30, len(entries), 0, True, False, 1000, 0, 0.01, decision,
    )  # fmt: skip
    schedule = Schedule(name, decision.due_at, "", cycle=cycle + 1, last_success_at=at)
    return PollResult(poll=poll, schedule=schedule, entries=entries)


@pytest.fixture(scope="module")
def sources() -> list[Source]:
    return [source_named(name) for name in ("daily", "echo", "never")]


@pytest.fixture(scope="module")
def warehouse(tmp_path_factory, sources):
    settings = Settings(home=tmp_path_factory.mktemp("home"), refit=RefitSettings(threads=1))
    with Warehouse.open(settings, "test") as opened:
        opened.sync_sources(sources, START)
        store_history(opened, "daily", 3.0)
        store_history(opened, "echo", 1.0)
        opened.serve()
        yield opened


@pytest.fixture
def make_refit(warehouse, sources):
    def make(now: datetime = NOW, **changes: object) -> Refit:
        parts = {"sources": sources, "write": asyncio.to_thread, **changes}
        return Refit(warehouse.settings, warehouse=warehouse, now=now, **parts)

    return make


async def ignore(_done: int, _total: int) -> None:
    return


async def test_a_refit_writes_models_and_forecasts_and_twice_is_as_once(make_refit, warehouse):
    seen: list[tuple[int, int]] = []

    async def note(done: int, total: int) -> None:
        seen.append((done, total))

    report, picture = await make_refit().run(note)
    assert seen == [(0, 3), (3, 3)]
    models = {model.source: model for model in warehouse.read_intensity_models()}
    assert set(models) == {"daily", "echo"}
    assert models["daily"].fitted_at == NOW
    assert models["daily"].score is not None
    rows = warehouse.query(
        "SELECT source, count(*), min(hour_at), sum(expected_entries) / 7 FROM forecasts "
        "GROUP BY source ORDER BY source"
    )
    assert [row[:3] for row in rows] == [
        ("daily", 168, NOW.replace(minute=0) + timedelta(hours=1)),
        ("echo", 168, NOW.replace(minute=0) + timedelta(hours=1)),
    ]
    assert rows[0][3] == pytest.approx(24 * 3.0 * (1.5 + 0.2) / 2, rel=0.25)
    assert picture is not None
    assert picture.startswith(b"\x89PNG")
    assert describe_refit(report).startswith("2 sources refitted in ")
    assert "1 not polled yet" in describe_refit(report)
    await make_refit().run(ignore)
    assert warehouse.query("SELECT count(*) FROM forecasts") == [(2 * 168,)]
    assert warehouse.query("SELECT count(*) FROM intensity_models") == [(2,)]
    assert {model.source: model for model in warehouse.read_intensity_models()} == models


async def test_forecasts_are_compared_with_what_came(make_refit, warehouse):
    before = NOW - timedelta(days=7)
    await make_refit(before).run(ignore)
    rows = warehouse.query(
        "SELECT source, count(*), avg(is_within::INTEGER), sum(actual_entries), "
        "sum(expected_entries) FROM forecast_vs_actual GROUP BY source ORDER BY source"
    )
    for _, n_hours, within, actual, expected in rows:
        assert n_hours == 167
        assert within > 0.8
        assert expected == pytest.approx(actual, rel=0.25)


async def test_a_refit_given_up_leaves_no_process_behind(make_refit):
    refit = make_refit()
    started = asyncio.Event()

    async def note(_done: int, _total: int) -> None:
        started.set()

    task = asyncio.create_task(refit.run(note))
    await started.wait()
    await asyncio.sleep(0.5)
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task
    names = [child.name() for child in psutil.Process().children()]
    assert not any("background" in name for name in names)


POOL = "newsbeat-refit-tests"


@pytest.fixture
def open_worker(prefect_server, open_newsroom, make_recorded, new_name, worker_settings):
    """Opens a worker at work, whose source has four weeks of history, and its orchestrator."""

    @contextlib.asynccontextmanager
    async def open_one():
        name = new_name("refitted")
        recorded = make_recorded(source=name, host=f"{name}.example")
        sections = {"worker": worker_settings(), "refit": RefitSettings(threads=1)}
        async with (
            open_newsroom(recorded, clock=Clock.starting_at(NOW, 1.0), **sections) as room,
            Orchestrator(POOL) as orchestrator,
        ):
            store_history(room.collector.warehouse, name, 2.0)
            room.collector.warehouse.serve()
            worker = Worker(room.settings, room.collector, orchestrator)
            await worker.prepare()
            task = asyncio.create_task(worker.run())
            try:
                yield worker, name
            finally:
                task.cancel()
                with contextlib.suppress(asyncio.CancelledError):
                    await task

    return open_one


async def read_artifacts(orchestrator, run_id):
    body = {"artifacts": {"flow_run_id": {"any_": [str(run_id)]}}}
    rows = (await orchestrator.client.request("POST", "/artifacts/filter", json=body)).json()
    return {row["key"] or row["type"]: row for row in rows}


async def until_ended(orchestrator, run_id, seconds=90):
    async with asyncio.timeout(seconds):
        while (outcome := await orchestrator.read_outcome(run_id)) is None:
            await asyncio.sleep(0.2)
    return outcome


@pytest.mark.server
async def test_the_worker_refits_beside_its_polls_and_shows_what_came_of_it(open_worker):
    async with open_worker() as (worker, name):
        orchestrator = worker.orchestrator
        run_id = await orchestrator.start_run(REFIT.deployment)
        state, words = await until_ended(orchestrator, run_id)
        assert (state, words.split(" in ")[0]) == ("completed", "1 source refitted")
        habits = worker.collector.intensities.habits(name)
        assert habits.fitted is not None
        assert habits.fitted.source == name
        found = await read_artifacts(orchestrator, run_id)
        assert f"| {name} |" in found["refit"]["data"]
        assert found["refit-picture"]["type"] == "image"
        assert found["refit-picture"]["data"].startswith("data:image/png;base64,")
        assert found["progress"]["data"] == 100.0
        assert await orchestrator.read_progress(run_id) == 1.0


@pytest.mark.server
async def test_the_refit_is_deployed_for_every_night_and_twice_is_as_once(prefect_server):
    async with Orchestrator(POOL) as orchestrator:
        await orchestrator.ensure_work_pool()
        first = await deploy_duty(orchestrator, REFIT, "03:10")
        found = await orchestrator.client.read_deployment(first)
        assert [item.schedule.cron for item in found.schedules] == ["10 3 * * *"]
        await orchestrator.client.pause_deployment(first)
        assert await deploy_duty(orchestrator, REFIT, "03:10") == first
        assert (await orchestrator.client.read_deployment(first)).paused
        await orchestrator.client.resume_deployment(first)
        assert await deploy_duty(orchestrator, REFIT, "") == first
        assert (await orchestrator.client.read_deployment(first)).schedules == []
        # It is no source's: nobody takes it for one that left the catalogue.
        assert first not in {
            item.deployment_id for item in (await orchestrator.read_deployments()).values()
        }


@pytest.mark.server
async def test_a_run_that_a_dead_worker_left_is_ended(prefect_server):
    from prefect.states import Running

    async with Orchestrator(POOL) as orchestrator:
        await orchestrator.ensure_work_pool()
        deployment_id = await deploy_duty(orchestrator, REFIT, "03:10")
        run_id = await orchestrator.start_run(REFIT.deployment)
        await orchestrator.client.set_flow_run_state(run_id, Running(), force=True)
        assert await orchestrator.read_outcome(run_id) is None
        await orchestrator.end_running(deployment_id, "the worker that ran it is gone")
        assert await orchestrator.read_outcome(run_id) == (
            "crashed",
            "the worker that ran it is gone",
        )


@pytest.mark.server
async def test_the_command_has_the_worker_do_it_where_one_runs(open_worker):
    async with open_worker() as (worker, _):
        settings = replace(
            worker.settings, prefect=replace(worker.settings.prefect, work_pool=POOL)
        )
        assert not is_worker_running(settings)  # it is a test that holds this warehouse
        found = await asyncio.to_thread(refit_there, settings, quiet=True)
        assert found["state"] == "completed"
        assert found["message"].startswith("1 source refitted")


def test_the_command_refits_in_the_foreground_where_no_worker_runs(warehouse, sources):
    home = warehouse.settings.home
    warehouse.close()
    catalogue = "".join(
        f'[[source]]\nsource = "{source.source}"\ntitle = "T"\nurl = "{source.url}"\n'
        f'timezone = "{source.timezone}"\n\n'
        for source in sources
    )
    (home / "data" / "sources").mkdir(parents=True)
    (home / "data" / "sources" / "mine.toml").write_text(catalogue)
    spelt = f"1:{time.time()}:{NOW.timestamp()}"
    result = CliRunner().invoke(
        main, ["refit", "--home", str(home), "--json"], env={"NEWSBEAT_CLOCK": spelt}
    )
    assert result.exit_code == 0, result.output
    found = json.loads(result.stdout)
    assert [row["source"] for row in found["models"]] == ["daily", "echo"]


def test_the_command_says_that_there_is_nothing_to_learn_from_yet(tmp_path):
    result = CliRunner().invoke(main, ["refit", "--home", str(tmp_path)])
    assert result.exit_code == 1
    assert "nothing was collected yet" in result.stderr
