"""The flow of one source: poll it, then set its own next run."""

from __future__ import annotations

from typing import Any

from prefect import flow
from prefect.client.schemas.objects import State
from prefect.context import FlowRunContext
from prefect.settings import PREFECT_HOME
from prefect.states import Cancelled, Completed, Failed

from flows.collector import current
from flows.poll import poll_source
from flows.wording import describe_poll
from models.harmless import one_line
from models.records import PollResult


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
    return final_state(result)


def final_state(result: PollResult) -> State[Any]:
    """Return the state a flow run ends in, with a message that says all in one line."""
    poll = result.poll
    message = one_line(f"{describe_poll(result)}; {poll.decision.reason}")
    if poll.outcome in ("failed", "refused"):
        return Failed(message=message)
    return Completed(message=message)
