"""The flow of one source: poll it, then set its own next run."""

from __future__ import annotations

from typing import Any

from prefect import flow
from prefect.artifacts import acreate_markdown_artifact
from prefect.client.schemas.objects import State
from prefect.context import FlowRunContext
from prefect.settings import PREFECT_HOME
from prefect.states import Cancelled, Completed, Failed

from flows.caring import CareReport, CheckReport
from flows.collector import current
from flows.poll import poll_source
from flows.wording import describe_poll
from models.drift_page import DriftPage, render_drift_page
from models.harmless import one_line
from models.records import DriftState, PollResult, Repair
from tasks.checks import document_address
from tasks.settings import Settings


@flow(
    name="collect",
    description="Look at one source, store what is new in DuckDB, and set the next look.",
    persist_result=False,
    # A path spares each run a question to the server about its storage.
    result_storage=PREFECT_HOME.value() / "results",
    validate_parameters=False,
    retries=0,
    log_prints=False,
)
async def collect_source(source: str, cycle: int | None = None) -> State[Any]:
    """Poll `source` once and create the run that polls it next.

    Parameters
    ----------
    source
        Name in the catalogue.
    cycle
        Number of the poll this run is for. Leave it empty to poll now by hand: the
        run takes whichever cycle is next.

    Returns
    -------
    State
        Completed with what was found and when the next poll is; Failed with the reason
        when the source could not be read; Cancelled when another run had the cycle.
    """
    collector = current()
    result = await poll_source(collector, collector.source(source), cycle)
    if result is None:
        return Cancelled(message=f"cycle {cycle} of {source} was already taken by another run")
    if collector.after_poll is not None:
        context = FlowRunContext.get()
        run_id = context.flow_run.id if context and context.flow_run else None
        await collector.after_poll(result, run_id)
    # The poll is stored, and the next one set: what follows holds up neither.
    report = await collector.care.after_poll(result)
    if report is not None and report.check is not None:
        await publish_check(report.check, report.state, report.repair, collector.settings)
    return final_state(result, report)


def final_state(result: PollResult, report: CareReport | None = None) -> State[Any]:
    """Return the state a flow run ends in, with a message that says all in one line."""
    poll = result.poll
    message = f"{describe_poll(result)}; {poll.decision.reason}"
    if report is not None:
        message = "; ".join([*filter(None, [report.failure]), *report.notes, message])
    if poll.is_failure or (report is not None and report.failure):
        return Failed(message=one_line(message))
    return Completed(message=one_line(message))


async def publish_check(
    check: CheckReport, state: DriftState | None, repair: Repair | None, settings: Settings
) -> None:
    """Publish what a check found as an artifact of the run, with a link to its document."""
    page = DriftPage(
        source=check.source,
        checked_at=check.checked_at,
        n_reference=check.n_reference,
        n_test=check.n_test,
        result=check.result,
        state=state or DriftState(check.source, check.checked_at),
        repair=repair,
        document=document_address(settings, check.document) if check.document else "",
    )
    await acreate_markdown_artifact(
        render_drift_page(page), key=drift_key(check.source), description=check.in_one_line()
    )


def drift_key(source: str) -> str:
    """Return the key of the artifact that shows a source's last check."""
    return f"drift-{source}"
