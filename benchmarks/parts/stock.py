"""Our worker against Prefect's process worker: the same empty flow, the same server."""

from __future__ import annotations

import asyncio
import contextlib
import os
import subprocess
import sys
import time
from collections.abc import Iterator
from dataclasses import asdict
from pathlib import Path
from typing import Any
from uuid import UUID

import psutil
from rig import Cpu, Rig, markdown_table, say

from tasks.prefect_server import client_environment, stop_process

ENTRYPOINT = "emptyrun.look"
FOLDER = Path(__file__).parents[1]
LIMIT = 4
QUERY_S = 2.0
"""Both workers ask for due runs this often: at the stock worker's ten seconds, a free place
would wait for most of that, which is no cost of a run."""

OUR_POOL, STOCK_POOL = "newsbeat", "stock"
STOCK = [sys.executable, "-m", "prefect", "worker", "start", "--type", "process"]
STOCK += ["--pool", STOCK_POOL, "--limit", str(LIMIT), "--name", "stock"]


def measure(n_ours: int = 200, n_stock: int = 12) -> dict[str, Any]:
    """Run both and return their figures."""
    with Rig(f"\n[worker]\nquery_s = {QUERY_S}\n") as rig:
        with _process(rig, [sys.executable, str(FOLDER / "bareworker.py")]) as pid:
            say(f"our worker: {n_ours} empty runs …")
            ours = asyncio.run(_measure(rig, OUR_POOL, pid, n_ours))
        with _process(rig, STOCK) as pid:
            say(f"process worker, limit {LIMIT}: {n_stock} empty runs …")
            stock = asyncio.run(_measure(rig, STOCK_POOL, pid, n_stock))
    both = {"ours": ours, "stock": stock}
    both["ratio"] = {
        "client_cpu": stock["client"] / ours["client"],
        "engine_cpu": stock["engine"] / ours["engine"],
        "runs_per_s": ours["runs_per_s"] / stock["runs_per_s"],
    }
    return both


def render(result: dict[str, Any]) -> str:
    """Return the figures as Markdown."""
    rows = [
        [
            name,
            figures["n"],
            f"{figures['runs_per_s']:.2f}",
            f"{figures['client']:.3f}",
            f"{figures['server']:.3f}",
            f"{figures['postgres']:.3f}",
            f"{figures['engine']:.3f}",
        ]
        for name, figures in (
            ("newsbeat worker", result["ours"]),
            ("process worker", result["stock"]),
        )
    ]
    ratio = result["ratio"]
    rows.append(
        [
            "**ratio**",
            "",
            f"**{ratio['runs_per_s']:.0f}x**",
            f"**{ratio['client_cpu']:.0f}x**",
            "",
            "",
            f"**{ratio['engine_cpu']:.0f}x**",
        ]
    )
    header = ["worker", "runs", "runs/s", "client CPU-s", "server", "PostgreSQL", "all, per run"]
    return markdown_table(header, rows)


@contextlib.contextmanager
def _process(rig: Rig, command: list[str]) -> Iterator[int]:
    """Run a worker, and end it and what it started."""
    environment = {
        **os.environ,
        **client_environment(rig.settings, rig.api_url),
        "NEWSBEAT_HOME": str(rig.home),
        "PREFECT_WORKER_QUERY_SECONDS": str(QUERY_S),
        "PYTHONPATH": os.pathsep.join([str(FOLDER), str(FOLDER.parent)]),
    }
    with (rig.home / "worker.log").open("ab") as log:
        process = subprocess.Popen(
            command, env=environment, stdin=subprocess.DEVNULL, stdout=log, stderr=log, cwd=rig.home
        )
    try:
        yield process.pid
    finally:
        with contextlib.suppress(psutil.NoSuchProcess):
            children = psutil.Process(process.pid).children(recursive=True)
            for pid in (process.pid, *(child.pid for child in children)):
                stop_process(pid)
        process.wait()


async def _measure(rig: Rig, pool: str, pid: int, n: int) -> dict[str, Any]:
    """Let the pool's worker have `n` due runs at once; return cost and speed."""
    from prefect.client.orchestration import get_client

    async with get_client() as client:
        await _wait_for_pool(client, pool)
        deployment = await client.create_deployment(
            flow_id=await client.create_flow_from_name("look"),
            name=f"empty-{pool}",
            entrypoint=ENTRYPOINT,
            parameters={"source": "nobody"},
            work_pool_name=pool,
            pull_steps=[],
            enforce_parameter_schema=False,
        )
        # A first run imports what it needs.
        await _run_through(client, rig, pool, deployment, pid, 1)
        return await _run_through(client, rig, pool, deployment, pid, n)


async def _wait_for_pool(client: Any, pool: str) -> None:
    from prefect.exceptions import ObjectNotFound

    for _ in range(120):
        with contextlib.suppress(ObjectNotFound):
            await client.read_work_pool(pool)
            if await client.read_workers_for_work_pool(pool):
                return
        await asyncio.sleep(0.5)
    raise click_error(f"no worker came to the pool {pool}")


def click_error(text: str) -> Exception:
    """Return an error that ends the program with one line."""
    import click

    return click.ClickException(text)


async def _run_through(
    client: Any, rig: Rig, pool: str, deployment: UUID, pid: int, n: int
) -> dict[str, Any]:
    from prefect.client.schemas.actions import WorkPoolUpdate
    from prefect.states import Scheduled

    # A paused pool hands out nothing: making the runs is not measured.
    await client.update_work_pool(pool, WorkPoolUpdate(is_paused=True))
    for cycle in range(n):
        await client.create_flow_run_from_deployment(
            deployment, state=Scheduled(), parameters={"cycle": cycle}
        )
    done_before = await _n_done(client, deployment)
    await asyncio.sleep(2 * QUERY_S)
    before = rig.read_cpu(pid, whole_tree=True)
    await client.update_work_pool(pool, WorkPoolUpdate(is_paused=False))
    began = time.time()
    while await _n_done(client, deployment) < done_before + n:
        await asyncio.sleep(1.0)
        if time.time() - began > 600:
            raise click_error(f"the runs of pool {pool} do not end")
    await asyncio.sleep(3.0)  # a stock run's process ends after its state
    used = rig.read_cpu(pid, whole_tree=True).since(before).per(n)
    ended = await _last_end(client, deployment)
    return _figures(n, ended - began, used)


def _figures(n: int, took_s: float, used: Cpu) -> dict[str, Any]:
    return {"n": n, "runs_per_s": n / took_s, **asdict(used), "engine": used.engine}


async def _n_done(client: Any, deployment: UUID) -> int:
    body = {
        "deployments": {"id": {"any_": [str(deployment)]}},
        "flow_runs": {"state": {"type": {"any_": ["COMPLETED", "FAILED", "CRASHED"]}}},
    }
    return int((await client.request("POST", "/flow_runs/count", json=body)).json())


async def _last_end(client: Any, deployment: UUID) -> float:
    from prefect.types._datetime import parse_datetime

    body = {
        "deployments": {"id": {"any_": [str(deployment)]}},
        "sort": "END_TIME_DESC",
        "limit": 1,
    }
    row = (await client.request("POST", "/flow_runs/filter", json=body)).json()[0]
    assert row["state_type"] == "COMPLETED", row["state"]
    return float(parse_datetime(row["end_time"]).timestamp())
