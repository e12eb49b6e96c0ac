"""Refit all sources: read and fit in a process beside this one, write in this one.

The same steps whoever takes them: the worker in its nightly flow run, or
`newsbeat refit` where no worker runs.
"""

from __future__ import annotations

import time
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass, field
from datetime import datetime, timedelta

from flows.refit_work import draw, open_bench, refit_part
from models.records import Source
from models.refit_report import RefitReport, RefitRow, busiest
from models.refitting import Refitted
from tasks.background import Background
from tasks.compilation import keep_compiled_code
from tasks.settings import Settings
from tasks.warehouse import Warehouse

PART = 500
"""Sources read and fitted at a time: so many histories are in memory at once."""

STORED = 100
"""Sources written in one transaction: polls wait for no more than that."""

N_PICTURED = 4
"""Sources in the picture: the busiest."""

Write = Callable[..., Awaitable[object]]
"""Runs a blocking call of the warehouse, between those of the polls."""

Progress = Callable[[int, int], Awaitable[None]]
"""Told how many sources are done, and of how many."""


@dataclass(slots=True)
class Refit:
    """One refit.

    Parameters
    ----------
    settings
        All settings.
    sources
        The catalogue.
    warehouse
        Open for writing, and served for the process that reads.
    write
        Runs a blocking call of the warehouse.
    now
        The moment of the refit, on the product's clock.
    """

    settings: Settings
    sources: Sequence[Source]
    warehouse: Warehouse
    write: Write
    now: datetime
    _shown: list[Refitted] = field(default_factory=list)

    async def run(self, on_progress: Progress) -> tuple[RefitReport, bytes | None]:
        """Fit and write everything; return the report, and a picture where there is one to draw.

        Sources written before a failure keep their new models: the next refit goes over
        all of them again.
        """
        begun = time.monotonic()
        total = len(self.sources)
        rows: list[RefitRow] = []
        async with Background(keep_compiled_code) as helper:
            await on_progress(0, total)
            await helper.call(open_bench, self.settings, self.now, total)
            for start in range(0, total, PART):
                part = self.sources[start : start + PART]
                names = [(source.source, source.timezone) for source in part]
                done = await helper.call(refit_part, names)
                await self._store(done)
                rows += map(RefitRow.of, done)
                self._shown = busiest([*self._shown, *done], N_PICTURED)
                await on_progress(start + len(part), total)
            picture = await helper.call(draw, self._shown) if self._shown else None
        report = RefitReport(self.now, total, time.monotonic() - begun, tuple(rows))
        return report, picture

    async def _store(self, done: Sequence[Refitted]) -> None:
        keep_from = self.now - timedelta(weeks=self.settings.refit.weeks)
        for start in range(0, len(done), STORED):
            part = done[start : start + STORED]
            models = [item.model for item in part]
            await self.write(self.warehouse.write_intensity_models, models, self.now)
            forecasts = [item.forecast for item in part]
            await self.write(self.warehouse.write_forecasts, forecasts, keep_from)
