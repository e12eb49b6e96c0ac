"""`newsbeat check`, `accept` and `reextract`: what people do about a site that changed."""

from __future__ import annotations

import asyncio
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any

from flows.commands.refitting import is_worker_running
from flows.commands.screen import Screen
from flows.mending import describe_standing_of
from models.errors import NewsbeatError
from tasks.catalogue import read_catalogue
from tasks.settings import Settings

LOOK_S = 0.5


@dataclass(frozen=True, slots=True)
class MendReport:
    """What came of a command.

    Attributes
    ----------
    is_good
        Whether the source passed, or is set right.
    facts
        The same as plain values.
    """

    is_good: bool
    words: str
    facts: dict[str, Any] = field(default_factory=dict)

    def as_json(self) -> dict[str, Any]:
        """Return it as plain values."""
        return {"is_good": self.is_good, "message": self.words, **self.facts}


def mend(
    settings: Settings,
    action: str,
    source: str,
    since: datetime | None = None,
    adopt: bool = False,
    quiet: bool = False,
) -> MendReport:
    """Check, accept or reextract a source: by the worker where one runs, else here.

    Raises
    ------
    NewsbeatError
        If there is no such source, or nothing to do about it.
    """
    if not is_worker_running(settings):
        return asyncio.run(_mend_here(settings, action, source, since, adopt))
    with Screen(quiet) as screen:
        screen.say("a worker runs here and does it …")
        parameters = {
            "source": source,
            "action": action,
            "since": since.isoformat() if since else None,
            "adopt": adopt,
        }
        return asyncio.run(mend_there(settings, parameters))


async def mend_there(settings: Settings, parameters: dict[str, Any]) -> MendReport:
    """Have the worker do it, in a flow run of its own, and wait for that."""
    from flows.duties import MEND
    from tasks.orchestrator import Orchestrator

    async with Orchestrator(settings.prefect.work_pool) as orchestrator:
        run_id = await orchestrator.start_run(MEND.deployment, parameters)
        while (outcome := await orchestrator.read_outcome(run_id)) is None:  # noqa: ASYNC110 - polled
            await asyncio.sleep(LOOK_S)
    state, words = outcome
    return MendReport(state == "completed", words, {"flow_run": str(run_id)})


async def _mend_here(
    settings: Settings, action: str, source: str, since: datetime | None, adopt: bool
) -> MendReport:
    from flows.collector import Collector

    if not settings.database.exists():
        raise NewsbeatError(f"{settings.database}: nothing was collected yet")
    async with Collector(settings, read_catalogue(settings), f"newsbeat {action}") as collector:
        mending = collector.mending
        if action == "accept":
            accepted = await mending.accept(source)
            return MendReport(True, accepted.in_one_line(), accepted.as_json())
        if action == "reextract":
            done = await mending.reextract(source, since, adopt)
            return MendReport(done.is_good, done.in_one_line(), done.as_json())
        report = await mending.check(source)
        state = await collector.watches.state(source, collector.clock.now())
    facts = {
        "outcome": report.result.outcome,
        "n_reference": report.n_reference,
        "n_test": report.n_test,
        "standing": state.standing,
        "document": str(settings.folder / report.document) if report.document else None,
        "criteria": [
            {
                "criterion": item.criterion,
                "statistic": item.statistic,
                "threshold": item.threshold,
                "fired": item.fired,
                "is_evaluated": item.is_evaluated,
            }
            for item in report.result.findings
        ],
        "cpu_s": report.result.cpu_s,
    }
    words = f"{source}: {report.in_one_line()}\nit stands: {describe_standing_of(state)}"
    if report.document:
        words += f"\nall findings: {settings.folder / report.document}"
    return MendReport(not report.is_failure, words, facts)
