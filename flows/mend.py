"""The flow people start by hand: check a source, accept it, or extract it again."""

from __future__ import annotations

from datetime import datetime
from typing import Any, Literal

from prefect import flow
from prefect.client.schemas.objects import State
from prefect.settings import PREFECT_HOME
from prefect.states import Completed, Failed

from flows.collect import publish_check
from flows.collector import Collector, current
from models.errors import NewsbeatError
from models.harmless import one_line

Action = Literal["check", "accept", "reextract"]


@flow(
    name="mend",
    description="Check a source now, accept its new layout, or extract its articles again.",
    persist_result=False,
    result_storage=PREFECT_HOME.value() / "results",
    validate_parameters=False,
    retries=0,
    log_prints=False,
)
async def mend_source(
    source: str, action: Action = "check", since: str | None = None, adopt: bool = False
) -> State[Any]:
    """Do what a person asks for about a source that changed.

    Parameters
    ----------
    source
        Name in the catalogue.
    action
        ``check`` its last pages, ``accept`` it as it is, ``reextract`` its articles.
    since
        For ``reextract``: from pages fetched at or after this moment (ISO, UTC without a
        zone); from the first suspect page on where left out.
    adopt
        For ``reextract``: look for the best other way to the text first, and take it.

    Returns
    -------
    State
        Completed with what was done; Failed where the source did not pass, or why not.
    """
    try:
        is_good, words = await _mend(current(), source, action, since, adopt)
    except (NewsbeatError, ValueError) as error:
        return Failed(message=one_line(str(error)))
    message = one_line(words)
    return Completed(message=message) if is_good else Failed(message=message)


async def _mend(
    collector: Collector, source: str, action: Action, since: str | None, adopt: bool
) -> tuple[bool, str]:
    if action == "accept":
        return True, (await collector.mending.accept(source)).in_one_line()
    if action == "reextract":
        moment = datetime.fromisoformat(since) if since else None
        done = await collector.mending.reextract(source, moment, adopt)
        return done.is_good, done.in_one_line()
    report = await collector.mending.check(source)
    state = await collector.watches.state(source, collector.clock.now())
    await publish_check(report, state, None, collector.settings)
    return not report.is_failure, f"{source}: {report.in_one_line()}"
