"""`newsbeat refit`: all forecasts fitted anew, now."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from typing import Any
from uuid import UUID

from rich.progress import BarColumn, Progress, TextColumn, TimeElapsedColumn

from flows.commands.screen import Column, Screen, fit_table
from flows.refitting import Refit
from models.errors import NewsbeatError
from models.records import Source
from models.refit_report import RefitReport, describe_refit
from tasks.catalogue import read_catalogue
from tasks.settings import Settings
from tasks.warehouse import Warehouse, find_writer

HOLDER = "newsbeat refit"
WORKER = "newsbeat worker"
"""What holds the warehouse where a worker runs."""

LOOK_S = 1.0
MOST_SHOWN = 30
"""Sources in the table on the screen: the busiest."""


def is_worker_running(settings: Settings) -> bool:
    """Return whether a worker holds the warehouse: then it is the one that refits."""
    return find_writer(settings) == WORKER


def refit_here(settings: Settings, quiet: bool = False) -> RefitReport:
    """Refit all sources in the foreground, where no worker runs.

    Raises
    ------
    WarehouseError
        If another process holds the warehouse, or it cannot be used.
    NewsbeatError
        If nothing was collected yet.
    """
    if not settings.database.exists():
        raise NewsbeatError(
            f"{settings.database}: nothing was collected yet, so there is nothing to learn from;"
            " start with `newsbeat up`"
        )
    sources = read_catalogue(settings).sources
    with Screen(quiet) as screen:
        report = asyncio.run(_refit_here(settings, sources, screen))
        _show(report, screen)
    return report


async def _refit_here(settings: Settings, sources: Sequence[Source], screen: Screen) -> RefitReport:
    bar = _Bar(screen)
    with Warehouse.open(settings, HOLDER) as warehouse:
        warehouse.serve()
        now = settings.clock.now()
        refit = Refit(settings, sources, warehouse, asyncio.to_thread, now)
        report, _ = await refit.run(bar.show)
    return report


def refit_there(settings: Settings, quiet: bool = False) -> dict[str, Any]:
    """Have the worker that runs refit all sources, and wait for it.

    Raises
    ------
    ServerError
        If Prefect's server does not answer.
    NewsbeatError
        If the run failed.
    """
    with Screen(quiet) as screen:
        screen.say("a worker runs here and does it …")
        state, words, run_id = asyncio.run(_refit_there(settings, _Bar(screen)))
        if state != "completed":
            raise NewsbeatError(f"the refit run {state}: {words}")
        screen.say(words)
        screen.say("its report and picture: Prefect's pages, Artifacts, refit")
    return {"flow_run": str(run_id), "state": state, "message": words}


async def _refit_there(settings: Settings, bar: _Bar) -> tuple[str, str, UUID]:
    from flows.duties import REFIT
    from tasks.orchestrator import Orchestrator

    async with Orchestrator(settings.prefect.work_pool) as orchestrator:
        run_id = await orchestrator.start_run(REFIT.deployment)
        while (outcome := await orchestrator.read_outcome(run_id)) is None:
            share = await orchestrator.read_progress(run_id)
            await bar.show(round(100 * (share or 0.0)), 100)
            await asyncio.sleep(LOOK_S)
    return (*outcome, run_id)


class _Bar:
    """A bar in a terminal; nothing elsewhere."""

    def __init__(self, screen: Screen) -> None:
        self._screen = screen
        self._progress = Progress(
            TextColumn("refit"), BarColumn(), TextColumn("{task.percentage:.0f} %"),
            TimeElapsedColumn(), auto_refresh=False,
        )  # fmt: skip
        self._task = self._progress.add_task("refit", total=100)

    async def show(self, done: int, total: int) -> None:
        """Show how much is done."""
        self._progress.update(self._task, completed=100.0 * done / max(total, 1))
        self._screen.move(self._progress)


def _show(report: RefitReport, screen: Screen) -> None:
    rows = sorted(report.rows, key=lambda row: -row.per_day)[:MOST_SHOWN]
    columns = [
        Column("source", [row.source for row in rows]),
        Column("a day", [f"{row.per_day:.1f}" for row in rows], is_number=True),
        Column("forecast", [row.estimator for row in rows], worth=3),
        Column("policy", [row.policy for row in rows], worth=4),
        Column("explained", [_percent(row.score) for row in rows], is_number=True, worth=2),
        Column("why", [row.note for row in rows], worth=1),
    ]
    if rows:
        screen.keep(fit_table(columns, screen.console.width))
    screen.say(describe_refit(report))


def _percent(share: float | None) -> str:
    return "" if share is None else f"{100 * share:.0f} %"
