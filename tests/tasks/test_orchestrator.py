"""All talk with Prefect's server, against a real one."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable
from datetime import UTC, datetime, timedelta
from typing import Any
from uuid import uuid4

import pytest

from models.errors import ServerError
from tasks import orchestrator as module
from tasks.orchestrator import Orchestrator
from tasks.prefect_server import find_free_port

pytestmark = pytest.mark.server


@pytest.fixture
async def connected(prefect_server: str) -> AsyncIterator[Orchestrator]:
    async with Orchestrator("orchestrator-tests") as orchestrator:
        await orchestrator.ensure_work_pool()
        yield orchestrator


@pytest.fixture
def deploy(connected: Orchestrator, new_name: Callable[[str], str]) -> Callable[..., Any]:
    """Makes a deployment of a source no other test has, and returns the source."""

    async def deploy_one(source: str = "", version: str = "1") -> str:
        source = source or new_name("talk")
        await connected.deploy(
            await connected.ensure_flow(),
            source,
            entrypoint="flows.collect.collect_source",
            tags=["kind:feed"],
            description=f"About {source}",
            version=version,
            parameter_schema={"type": "object", "properties": {}},
        )
        return source

    return deploy_one


def soon() -> datetime:
    return datetime.now(UTC) + timedelta(hours=1)


async def test_without_a_connection_nothing_is_asked() -> None:
    with pytest.raises(ServerError, match="not connected"):
        _ = Orchestrator("any").client


async def test_a_server_that_is_away_is_named_with_the_way_out(prefect_server: str) -> None:
    from prefect.settings import PREFECT_API_URL, temporary_settings

    address = f"http://127.0.0.1:{find_free_port()}/api"
    with temporary_settings({PREFECT_API_URL: address}), pytest.raises(ServerError) as caught:
        async with Orchestrator("any"):
            pass
    assert caught.value.address == address
    assert "newsbeat up" in caught.value.way_out


async def test_a_work_pool_may_be_asked_for_twice(connected: Orchestrator) -> None:
    await connected.ensure_work_pool()
    await connected.heartbeat("a worker", 30.0)


async def test_a_deployment_is_made_once_and_renewed(connected: Orchestrator, deploy: Any) -> None:
    source = await deploy()
    first = (await connected.read_deployments())[source]
    assert (first.description, first.version, first.is_paused) == (f"About {source}", "1", False)
    assert first.tags == {"newsbeat", "kind:feed"}
    await deploy(source, version="2")
    second = (await connected.read_deployments())[source]
    assert (second.deployment_id, second.version) == (first.deployment_id, "2")


async def test_a_renewal_leaves_a_pause_as_it_is(connected: Orchestrator, deploy: Any) -> None:
    source = await deploy()
    await connected.set_paused(source, True)
    await deploy(source, version="2")
    assert source in await connected.read_paused()
    await connected.set_paused(source, False)
    assert source not in await connected.read_paused()


async def test_a_retired_deployment_is_paused_and_known_as_ours_to_resume(
    connected: Orchestrator, deploy: Any
) -> None:
    source = await deploy()
    await connected.retire(source)
    retired = (await connected.read_deployments())[source]
    assert (retired.is_paused, retired.is_retired) == (True, True)


@pytest.mark.report("PrefectHQ/prefect#7381")
async def test_a_key_is_burnt_for_good(connected: Orchestrator, deploy: Any) -> None:
    """Why the cycle moves on before a run is made anew."""
    source = await deploy()
    first = await connected.create_run(source, 1, soon())
    assert (first.name, first.parameters) == (f"{source} #1", {"source": source, "cycle": 1})
    await connected.end_run(first.id, "cancelled", "by hand")
    again = await connected.create_run(source, 1, soon() + timedelta(hours=1))
    assert again.id == first.id
    assert module.is_final(again)
    assert module.was_cancelled(again)
    other = await connected.create_run(source, 2, soon())
    assert other.id != first.id
    assert not module.is_final(other)
    await connected.end_run(other.id, "cancelled", "the test is over")


async def test_a_run_of_a_deployment_that_is_gone_is_told_apart(
    connected: Orchestrator, deploy: Any
) -> None:
    from prefect.exceptions import ObjectNotFound

    source = await deploy()
    await connected.client.delete_deployment(connected.deployment_ids[source])
    with pytest.raises(ObjectNotFound):
        await connected.create_run(source, 1, soon())
    with pytest.raises(KeyError):
        await connected.create_run(f"{source}-unknown", 1, soon())


async def test_due_runs_are_those_of_our_pool_until_a_moment(
    connected: Orchestrator, deploy: Any
) -> None:
    source = await deploy()
    now = datetime.now(UTC)
    due = await connected.create_run(source, 1, now)
    later = await connected.create_run(source, 2, now + timedelta(minutes=5))
    found = {run.id for run in await connected.read_due_runs(now + timedelta(seconds=15))}
    assert due.id in found
    assert later.id not in found
    open_runs = {run.id for run in await connected.read_open_runs()}
    assert {due.id, later.id} <= open_runs
    for run in (due, later):
        await connected.end_run(run.id, "cancelled", "the test is over")
    assert not {due.id, later.id} & {run.id for run in await connected.read_open_runs()}


async def test_long_answers_are_read_page_by_page(
    connected: Orchestrator, deploy: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    sources = [await deploy() for _ in range(3)]
    runs = [await connected.create_run(source, 1, soon()) for source in sources]
    for source in sources:
        await connected.set_paused(source, True)
    monkeypatch.setattr(module, "PAGE", 2)
    assert set(sources) <= set(await connected.read_deployments())
    assert set(sources) <= await connected.read_paused()
    assert {run.id for run in runs} <= {run.id for run in await connected.read_open_runs()}
    for run in runs:
        await connected.end_run(run.id, "cancelled", "the test is over")


async def test_a_page_that_is_gone_is_not_renewed(
    connected: Orchestrator, new_name: Callable[[str], str]
) -> None:
    artifact = await connected.publish_markdown(new_name("talk"), "# One", "first", None)
    assert await connected.update_markdown(artifact, "# Two", "second")
    answer = await connected.client.request("GET", f"/artifacts/{artifact}")
    assert (answer.json()["data"], answer.json()["description"]) == ("# Two", "second")
    assert not await connected.update_markdown(uuid4(), "# Three", "third")


async def test_an_event_reaches_the_server_with_what_it_tells(connected, new_name):
    about = new_name("notice")
    await connected.emit_event("newsbeat.notice.level-1", {"title": about})
    body = {"filter": {"event": {"name": ["newsbeat.notice.level-1"]}}, "limit": 50}
    for _ in range(60):
        answer = await connected.client.request("POST", "/events/filter", json=body)
        found = [event for event in answer.json()["events"] if event["payload"]["title"] == about]
        if found:
            break
        await asyncio.sleep(0.25)
    assert found[0]["resource"]["prefect.resource.id"] == "newsbeat.notices"
