"""What people do about a source that changed: check it, accept it, extract it again."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from dataclasses import dataclass, replace
from datetime import datetime
from typing import TYPE_CHECKING, Any

from flows.caring import CheckReport
from flows.drift_work import Comparison, compare_texts
from models.drift.reference import MIN_PAGES
from models.errors import NewsbeatError
from models.records import (
    Article,
    DriftState,
    Fetched,
    Page,
    ReferenceModel,
    Repair,
    Source,
    StoredPage,
)
from models.standing import describe_change
from tasks.pages import read_page

if TYPE_CHECKING:
    from flows.collector import Collector

LEAST_CHECKED = 20
"""Pages that a check by hand looks at where fewer are new."""

STORED_AT_A_TIME = 50
"""Texts written in one transaction: polls wait for no more than that."""


@dataclass(frozen=True, slots=True)
class Accepted:
    """A layout that was taken as right.

    Attributes
    ----------
    n_pages
        Pages the new reference was learnt from; 0 where it is learnt from the next ones.
    """

    source: str
    n_pages: int
    n_released: int

    def in_one_line(self) -> str:
        """Return what was done."""
        learnt = (
            f"new reference from {self.n_pages} pages"
            if self.n_pages
            else f"a new reference is learnt from its next {MIN_PAGES} pages"
        )
        return f"{self.source} accepted as it is: {learnt}, {self.n_released} articles released"

    def as_json(self) -> dict[str, Any]:
        """Return it as plain values."""
        return {"source": self.source, "n_pages": self.n_pages, "n_released": self.n_released}


@dataclass(frozen=True, slots=True)
class Reextracted:
    """Articles extracted again from their stored pages.

    Attributes
    ----------
    n_pages, n_lost
        Pages read again, and those whose raw bytes are no longer kept.
    n_changed
        Texts that came out otherwise than they were stored.
    n_released
        Articles that are no longer held back.
    comparison
        How the new texts compare with the reference; None where there is none.
    is_released
        Whether the drift ended.
    """

    source: str
    n_pages: int
    n_lost: int
    n_changed: int
    n_released: int
    chars_before: int
    chars_after: int
    comparison: Comparison | None
    is_released: bool
    repair: Repair | None = None
    was_drifted: bool = True

    @property
    def is_good(self) -> bool:
        """Whether nothing is left to be done."""
        return self.is_released or not self.was_drifted

    def in_one_line(self) -> str:
        """Return what was done, and what was not."""
        words = (
            f"{self.source}: {self.n_pages} pages extracted again, {self.n_changed} texts changed"
            f" ({self.chars_before:,} characters before, {self.chars_after:,} now)"
        )
        if self.n_lost:
            words += f", {self.n_lost} pages are no longer kept"
        if self.is_released:
            return f"{words}; they look like the reference: {self.n_released} articles released"
        if not self.was_drifted:
            return words
        fit = self.comparison
        said = f"only {fit.n_fitting} of {fit.n_pages} look like the reference" if fit else ""
        return f"{words}; nothing was stored or released: {said}"

    def as_json(self) -> dict[str, Any]:
        """Return it as plain values."""
        fit = self.comparison
        return {
            "source": self.source,
            "n_pages": self.n_pages,
            "n_lost": self.n_lost,
            "n_changed": self.n_changed,
            "n_released": self.n_released,
            "chars_before": self.chars_before,
            "chars_after": self.chars_after,
            "n_fitting": fit.n_fitting if fit else None,
            "is_released": self.is_released,
            "way": self.repair.way if self.repair else None,
            "selector": self.repair.selector if self.repair else None,
        }


class Mending:
    """Check, accept, reextract: the same steps for commands and for flow runs.

    Parameters
    ----------
    collector
        The open engine room.
    """

    def __init__(self, collector: Collector) -> None:
        self._collector = collector
        self._warehouse = collector.warehouse
        self._write = collector.write

    async def check(self, source: str) -> CheckReport:
        """Check the last pages of a source now.

        Raises
        ------
        NewsbeatError
            If there is nothing to compare them with.
        """
        state = await self._state(source)
        if state.standing == "learning":
            await self._learn_now(state)
        report = await self._collector.care.check(source, LEAST_CHECKED)
        if report.is_failure:
            await self._collector.care.note_told(source)
        return report

    async def _learn_now(self, state: DriftState) -> None:
        care = self._collector.care
        pages = await self._write(
            self._warehouse.read_profiles, state.source, since=state.learn_from
        )
        model, refusal = await care.learn(state.source, pages, "learnt for a check by hand")
        if model is None:
            raise NewsbeatError(f"{state.source} has no reference to be compared with: {refusal}")
        await care.take(state.source, model, standing="watching", reason="")

    async def accept(self, source: str) -> Accepted:
        """Take the pages since the first suspect one as right: new reference, all released.

        Raises
        ------
        NewsbeatError
            If nothing is held against the source.
        """
        state = await self._state(source)
        refused = state.standing == "learning" and state.reason
        if not state.has_drifted and not refused:
            raise NewsbeatError(f"{source} has not changed: there is nothing to accept")
        since = state.since_page or state.learn_from
        pages: list[Page] = await self._write(self._warehouse.read_profiles, source, since=since)
        n_pages, n_released = await self._begin_anew(state, since, pages, by_a_person=True)
        return Accepted(source, n_pages, n_released)

    async def _begin_anew(
        self, state: DriftState, since: str, pages: Sequence[Page], *, by_a_person: bool
    ) -> tuple[int, int]:
        """Release a source, with a reference of `pages` or, where they are few, of the next."""
        model, _ = await self._collector.care.learn(
            state.source, list(pages), "a new layout", must_be_fit=not by_a_person
        )
        after = DriftState(
            source=state.source,
            updated_at=self._collector.clock.now(),
            standing="watching" if model else "learning",
            learn_from=since,
            n_pages=len(pages),
        )
        n_released = await self._end(after, model)
        return (model.n_pages if model else 0), n_released

    async def _end(self, after: DriftState, model: ReferenceModel | None) -> int:
        """End a drift, and return how many articles were released."""
        watches = self._collector.watches
        async with watches.held(after.source):
            n_released = await self._write(self._warehouse.end_drift, after, model)
            watches.forget(after.source)
        return n_released

    async def reextract(
        self,
        source: str,
        since: datetime | None = None,
        adopt: bool = False,
        repair: Repair | None = None,
    ) -> Reextracted:
        """Extract articles again from their stored pages; where they are right, release them.

        Parameters
        ----------
        since
            From pages fetched at or after it; from the first suspect page on where None.
        adopt
            Look for the best other way to the text first, and take it.
        repair
            Take this way.

        Raises
        ------
        NewsbeatError
            If there is nothing to extract again, or no way to adopt.
        """
        state = await self._state(source)
        entry = self._collector.source(source)
        if adopt and repair is None:
            repair = await self._find_repair(entry, state)
        if since is None and not state.has_drifted:
            raise NewsbeatError(
                f"{source} has not drifted; name a moment to extract again from with --since"
            )
        stored = await self._write(
            self._warehouse.read_stored_pages, source, _page_of(since) or state.since_page or ""
        )
        rules = repaired_source(self._collector, entry, repair)
        texts, n_lost = await self._extract_all(rules, stored)
        if not texts:
            raise NewsbeatError(f"{source}: no page to extract again is kept ({n_lost} are not)")
        return await self._conclude(state, texts, n_lost, repair)

    async def _find_repair(self, source: Source, state: DriftState) -> Repair:
        if state.standing != "text":
            raise NewsbeatError(f"the text of {source.source} is not wrong: nothing to repair")
        repair = await self._collector.care.find_repair(source, state)
        if repair is None:
            raise NewsbeatError(
                f"{source.source}: no other way to the text does better; give it a selector"
                " in [extract] of the catalogue"
            )
        return repair

    async def _extract_all(
        self, source: Source, stored: Sequence[StoredPage]
    ) -> tuple[list[tuple[StoredPage, Article]], int]:
        texts, n_lost = [], 0
        for item in stored:
            try:
                body = await asyncio.to_thread(
                    read_page, self._collector.settings.warc_folder, item.page
                )
                fetched = _fetched(item.page, body)
                article = await self._collector.extraction.extract(
                    fetched, source, self._collector.clock.now()
                )
            except NewsbeatError:
                n_lost += 1
                continue
            if article.text:
                texts.append((item, article))
        return texts, n_lost

    async def _conclude(
        self,
        state: DriftState,
        texts: list[tuple[StoredPage, Article]],
        n_lost: int,
        repair: Repair | None,
    ) -> Reextracted:
        source, now = state.source, self._collector.clock.now()
        comparison = await self._compare(source, texts)
        may_store = comparison is None or comparison.is_clean or not state.has_drifted
        n_changed, n_released = 0, 0
        if may_store:
            for start in range(0, len(texts), STORED_AT_A_TIME):
                part = texts[start : start + STORED_AT_A_TIME]
                n_changed += await self._write(self._warehouse.replace_texts, source, part, now)
        if may_store and state.has_drifted:
            n_released = await self._end_drift(state, texts, comparison)
        if may_store and repair is not None:
            await self._write(self._warehouse.settle_repair, repair.repair_id, "adopted", now)
            await self._collector.load_repairs()
        return Reextracted(
            source=source,
            n_pages=len(texts),
            n_lost=n_lost,
            n_changed=n_changed,
            n_released=n_released,
            chars_before=sum(len(stored.text or "") for stored, _ in texts),
            chars_after=sum(len(article.text or "") for _, article in texts),
            comparison=comparison,
            is_released=may_store and state.has_drifted,
            repair=repair,
            was_drifted=state.has_drifted,
        )

    async def _compare(
        self, source: str, texts: Sequence[tuple[StoredPage, Article]]
    ) -> Comparison | None:
        references = await self._write(self._warehouse.read_references, source)
        profiles = [article.profile for _, article in texts if article.profile is not None]
        if not references or not profiles:
            return None
        return await asyncio.to_thread(compare_texts, references[0].state, profiles)

    async def _end_drift(
        self,
        state: DriftState,
        texts: Sequence[tuple[StoredPage, Article]],
        comparison: Comparison | None,
    ) -> int:
        """Release the source. Where only its text had gone wrong, the reference stays."""
        since = state.since_page or ""
        if comparison is not None and comparison.fits_reference:
            references = await self._write(self._warehouse.read_references, state.source)
            after = DriftState(
                source=state.source,
                updated_at=self._collector.clock.now(),
                standing="watching",
                learn_from=state.learn_from,
                clean_before=state.clean_before,
                n_pages=state.n_pages,
            )
            return await self._end(after, references[0])
        pages = [
            replace(stored.page, profile=article.profile)
            for stored, article in texts
            if stored.page.page_id >= since
        ]
        _, n_released = await self._begin_anew(state, since, pages, by_a_person=False)
        return n_released

    async def _state(self, source: str) -> DriftState:
        self._collector.source(source)  # names near misses where there is no such source
        return await self._collector.watches.state(source, self._collector.clock.now())


def repaired_source(collector: Collector, source: Source, repair: Repair | None) -> Source:
    """Return a source as its text is to be got: by a repair, or as it is now."""
    from flows.collector import repaired

    return repaired(source, repair) if repair else collector.rules_of(source)


def _page_of(since: datetime | None) -> str:
    """Return what sorts before every page fetched at or after a moment."""
    return f"{int(since.timestamp() * 1000):012x}" if since else ""


def _fetched(page: Page, body: bytes) -> Fetched:
    return Fetched(
        url=page.url,
        final_url=page.url,
        status=page.status,
        headers=(),
        body=body,
        fetched_at=page.fetched_at,
        elapsed_s=0.0,
        wire_bytes=0,
    )


def describe_standing_of(state: DriftState) -> str:
    """Return how a source stands, in one line for people."""
    if state.has_drifted:
        what = "its text is wrong" if state.standing == "text" else "its layout changed"
        return f"{what} since {state.since_at:%Y-%m-%d %H:%M} UTC: {describe_change(state)}"
    if state.standing == "learning":
        return state.reason or f"learning: {state.n_pages} of {MIN_PAGES} pages to compare with"
    return f"as it was ({state.n_pages} article pages)"
