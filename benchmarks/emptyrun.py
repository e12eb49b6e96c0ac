"""An empty flow with the signature of `flows.collect.collect_source`: all cost is the engine's."""

from __future__ import annotations

from pathlib import Path

from prefect import flow


@flow(
    name="look",
    persist_result=False,
    result_storage=Path("results"),
    validate_parameters=False,
    retries=0,
    log_prints=False,
)
async def look(source: str, cycle: int | None = None) -> None:
    """Do nothing."""
