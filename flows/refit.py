"""The nightly flow: fit every source's forecast anew, and show what came of it."""

from __future__ import annotations

import base64
from typing import Any
from uuid import UUID

from prefect import flow
from prefect.artifacts import (
    acreate_image_artifact,
    acreate_markdown_artifact,
    acreate_progress_artifact,
    aupdate_progress_artifact,
)
from prefect.client.schemas.objects import State
from prefect.settings import PREFECT_HOME
from prefect.states import Completed, Failed

from flows.collector import current
from flows.refitting import Refit
from models.errors import NewsbeatError
from models.refit_report import RefitReport, describe_refit, render_refit_page

PAGE_KEY, PICTURE_KEY = "refit", "refit-picture"
"""Keys of the artifacts, under which people find them."""


@flow(
    name="refit",
    description="Fit every source's forecast anew to its last half year.",
    persist_result=False,
    result_storage=PREFECT_HOME.value() / "results",
    validate_parameters=False,
    retries=0,
    log_prints=False,
)
async def refit_all() -> State[Any]:
    """Refit all sources of the catalogue beside the polls, and take what was learnt into use.

    Returns
    -------
    State
        Completed with what was chosen for how many sources; Failed with the reason when
        the warehouse could not be read or written.
    """
    collector = current()
    refit = Refit(
        collector.settings,
        list(collector.sources.values()),
        collector.warehouse,
        collector.write,
        collector.clock.now(),
    )
    try:
        report, picture = await refit.run(RunProgress().show)
        await collector.load_habits()
    except NewsbeatError as error:
        return Failed(message=str(error))
    await _publish(report, picture, collector.clock.speed)
    return Completed(message=describe_refit(report))


class RunProgress:
    """A bar on the run's page."""

    def __init__(self) -> None:
        self._artifact_id: UUID | None = None

    async def show(self, done: int, total: int) -> None:
        """Show how many sources are done."""
        share = 100.0 * done / total if total else 100.0
        words = f"{done:,} of {total:,} sources"
        if self._artifact_id is None:
            self._artifact_id = await acreate_progress_artifact(share, description=words)
        else:
            await aupdate_progress_artifact(self._artifact_id, share, description=words)


async def _publish(report: RefitReport, picture: bytes | None, speed: float) -> None:
    words = describe_refit(report)
    page = render_refit_page(report, speed)
    await acreate_markdown_artifact(page, key=PAGE_KEY, description=words)
    if picture is not None:
        image = base64.b64encode(picture).decode()
        words = "the busiest sources: forecast against what came, and their usual week"
        url = f"data:image/png;base64,{image}"
        await acreate_image_artifact(url, key=PICTURE_KEY, description=words)
