"""One row per source for ``newsbeat status``, by whichever connection there is."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from datetime import UTC, datetime
from importlib.resources import files
from typing import Any

from models.records import SourceStatus


def read_status(
    query: Callable[[str], Sequence[Sequence[Any]]], now: datetime
) -> list[SourceStatus]:
    """Return the status of every source at `now`.

    Parameters
    ----------
    query
        Runs an SQL text and returns its rows, times in UTC.
    """
    text = (files("data") / "schema" / "status.sql").read_text(encoding="utf-8")
    moment = f"TIMESTAMPTZ '{now.astimezone(UTC).isoformat()}'"
    return [SourceStatus(*row) for row in query(text.replace("@now AS", f"{moment} AS"))]
