"""Build every source's reference anew: pages read here, models fitted beside, or on Dask.

The same steps whoever takes them: the worker in its nightly flow run, or a test. Only pages
older than the last window found clean are learnt from; a source that has drifted keeps the
reference it has, and one whose pages look wrong keeps it too, with the reason noted.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import TYPE_CHECKING

from flows.drift_work import Learnt, Lesson, learn_all
from models.drift.reference import MAX_PAGES, MAX_WINDOW, MIN_PAGES
from models.records import DriftState, ReferenceModel
from models.reference_report import ReferenceReport, ReferenceRow
from models.standing import AFTER_ALL
from tasks.background import Background
from tasks.spreading import map_on_dask

if TYPE_CHECKING:
    from flows.collector import Collector

PART = 100
"""Sources read at a time: the pages of so many are in memory at once."""

CHUNK = 25
"""Sources sent to Dask at a time."""

Progress = Callable[[int, int], Awaitable[None]]
"""Told how many sources are done, and of how many."""


@dataclass(slots=True)
class ReferenceRefit:
    """One refit of all references.

    Parameters
    ----------
    collector
        The open engine room.
    """

    collector: Collector

    async def run(self, on_progress: Progress) -> ReferenceReport:
        """Build, check and write everything; return what came of each source."""
        begun, now = time.monotonic(), self.collector.clock.now()
        warehouse, write = self.collector.warehouse, self.collector.write
        states = {state.source: state for state in await write(warehouse.read_drift_states)}
        models = {model.source: model for model in await write(warehouse.read_references)}
        sources = [name for name in self.collector.sources if name in states]
        rows: list[ReferenceRow] = []
        await on_progress(0, len(sources))
        async with Background() as helper:
            for start in range(0, len(sources), PART):
                part = sources[start : start + PART]
                lessons = [
                    lesson
                    for name in part
                    if (lesson := await self._lesson(states[name], models.get(name)))
                ]
                for learnt in await self._learn(helper, lessons):
                    row = await self._take(learnt, models.get(learnt.source))
                    rows.append(row)
                await on_progress(start + len(part), len(sources))
        n_kept = len(sources) - len(rows)
        return ReferenceReport(now, len(sources), n_kept, time.monotonic() - begun, tuple(rows))

    async def _lesson(self, state: DriftState, known: ReferenceModel | None) -> Lesson | None:
        """Return what a source is to learn from; None where its reference stays as it is."""
        if state.has_drifted:
            return None
        # Without a reference yet, nothing can have been found clean: the first pages count.
        until = state.clean_before if known else AFTER_ALL
        pages = await self.collector.write(
            self.collector.warehouse.read_profiles, state.source, state.learn_from, until
        )
        profiles = tuple(page.profile for page in pages if page.profile is not None)
        if len(profiles) < MIN_PAGES or (known and len(profiles) <= known.n_pages < MAX_PAGES):
            return None
        return Lesson(state.source, profiles[-MAX_WINDOW:], "built anew at night")

    async def _learn(self, helper: Background, lessons: Sequence[Lesson]) -> list[Learnt]:
        refit, now = self.collector.settings.refit, self.collector.clock.now()
        if not refit.dask:
            return await helper.call(learn_all, lessons, now)
        chunks = [lessons[start : start + CHUNK] for start in range(0, len(lessons), CHUNK)]
        spread = partial(map_on_dask, address=refit.dask, workers=refit.threads)
        parts = await asyncio.to_thread(spread, partial(learn_all, now=now), chunks)
        return [learnt for part in parts for learnt in part]

    async def _take(self, learnt: Learnt, known: ReferenceModel | None) -> ReferenceRow:
        now = self.collector.clock.now()
        # Read anew: what a poll found meanwhile stands.
        state = await self.collector.watches.state(learnt.source, now)
        if state.has_drifted:
            return ReferenceRow(learnt.source, known.n_pages if known else 0, None, "it drifted")
        if learnt.model is not None:
            is_first = state.standing == "learning"
            changes = {"standing": "watching", "reason": ""} if is_first else {}
            await self.collector.care.take(learnt.source, learnt.model, **changes)
            return ReferenceRow(learnt.source, learnt.model.n_pages, learnt.model.score, "")
        if known is not None:
            kept = replace(known, note=f"a newer one was refused: {learnt.refusal}")
            await self.collector.write(self.collector.warehouse.write_references, [kept])
        n_pages, score = (known.n_pages, known.score) if known else (0, None)
        return ReferenceRow(learnt.source, n_pages, score, learnt.refusal)
