"""The nightly flow of the drift detectors: every source's reference built anew."""

from __future__ import annotations

from typing import Any

from prefect import flow
from prefect.artifacts import acreate_markdown_artifact
from prefect.client.schemas.objects import State
from prefect.settings import PREFECT_HOME
from prefect.states import Completed, Failed

from flows.collector import current
from flows.referencing import ReferenceRefit
from flows.refit import RunProgress
from models.errors import NewsbeatError
from models.reference_report import describe_references, render_references

PAGE_KEY = "refit-references"


@flow(
    name="refit-references",
    description="Build what correct pages of each source look like anew.",
    persist_result=False,
    result_storage=PREFECT_HOME.value() / "results",
    validate_parameters=False,
    retries=0,
    log_prints=False,
)
async def refit_references() -> State[Any]:
    """Build the references of all sources anew beside the polls, and take them into use.

    Returns
    -------
    State
        Completed with how many were built, kept and refused; Failed where the warehouse
        could not be read or written.
    """
    try:
        report = await ReferenceRefit(current()).run(RunProgress().show)
    except NewsbeatError as error:
        return Failed(message=str(error))
    words = describe_references(report)
    await acreate_markdown_artifact(render_references(report), key=PAGE_KEY, description=words)
    return Completed(message=words)
