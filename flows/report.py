"""The nightly flow: write yesterday's report, and show it in Prefect."""

from __future__ import annotations

from datetime import date
from typing import Any

from prefect import flow
from prefect.artifacts import acreate_markdown_artifact
from prefect.client.schemas.objects import State
from prefect.settings import PREFECT_HOME
from prefect.states import Completed, Failed

from flows.collector import current
from flows.daily import write_day_report
from models.errors import NewsbeatError
from models.report import render_markdown
from tasks.background import Background
from tasks.compilation import keep_compiled_code

PAGE_KEY = "report"
"""Key of the artifact, under which people find the reports of all days."""


@flow(
    name="report",
    description="Write the report of a day: what mattered, who was first, what was not covered.",
    persist_result=False,
    result_storage=PREFECT_HOME.value() / "results",
    validate_parameters=False,
    retries=0,
    log_prints=False,
)
async def report_day(day: str = "") -> State[Any]:
    """Write the report of a day beside the polls, in a process that gives way to them.

    Parameters
    ----------
    day
        ``YYYY-MM-DD``; empty for yesterday.

    Returns
    -------
    State
        Completed with the first line of the report and its folder; Failed with the reason
        where it could not be made or written.
    """
    collector = current()
    try:
        wanted = date.fromisoformat(day) if day else None
    except ValueError:
        return Failed(message=f"{day!r} is no day: write it as 2026-03-01, or leave it empty")
    try:
        async with Background(keep_compiled_code) as helper:
            written = await helper.call(write_day_report, collector.settings, wanted)
    except NewsbeatError as error:
        return Failed(message=str(error))
    report = written.report
    words = " ".join(report.lines)
    await acreate_markdown_artifact(
        render_markdown(report), key=PAGE_KEY, description=f"{report.title}: {words}"
    )
    return Completed(message=f"{report.title}: {report.lines[0]} {written.folder}")
