"""The deferred stage of a source: learn a reference, check sets of pages, look for repairs.

It follows polls in the source's own flow, after all is stored and the next poll is set.
What takes long is done in a process beside; a poll that finds it busy leaves the work to
the next one, unless a change was just found.
"""

from __future__ import annotations

import logging
from dataclasses import dataclass, field, replace
from datetime import datetime
from typing import TYPE_CHECKING, Any, cast

from flows.drift_work import (
    Lesson,
    SetToCheck,
    SickSource,
    Tried,
    check_set,
    learn,
    repair_id_of,
    try_ways,
)
from models.batches import BatchResult
from models.drift.deferred import ThresholdRule
from models.drift.reference import MAX_WINDOW, MIN_PAGES
from models.errors import NewsbeatError
from models.records import (
    DriftAlarm,
    DriftState,
    Page,
    PollResult,
    ReferenceModel,
    Repair,
    Source,
)
from models.standing import (
    AFTER_ALL,
    describe_drift,
    describe_fired,
    describe_repair,
    find_set_alarm,
    is_relearnt,
)
from tasks.checks import write_document

if TYPE_CHECKING:
    from flows.collector import Collector

logger = logging.getLogger("newsbeat.caring")

MOST_CHECKED = 120
"""Pages of one check at most: the newest."""

GROWTH = 1.5
"""Where no reference could be learnt, it is tried again with so many times as many pages."""


@dataclass(frozen=True, slots=True)
class CheckReport:
    """A check of a set of pages.

    Attributes
    ----------
    document
        File of the findings, relative to the warehouse's folder; None where there is none.
    alarm
        The change it revealed that no page had.
    """

    check_id: str
    source: str
    checked_at: datetime
    n_reference: int
    n_test: int
    result: BatchResult
    document: str | None = None
    alarm: DriftAlarm | None = None

    @property
    def is_failure(self) -> bool:
        """Whether it found drift, or could not be judged."""
        return self.result.outcome != "passed"

    def in_one_line(self) -> str:
        """Return such as ``check of 40 pages: drifted (F_S, text size)``."""
        fired = describe_fired(self.result.fired)
        why = fired or self.result.reason
        return f"check of {self.n_test} pages: {self.result.outcome}" + (f" ({why})" if why else "")


@dataclass(slots=True)
class CareReport:
    """What the deferred stage did after a poll.

    Attributes
    ----------
    failure
        Why the flow run fails; empty where it does not.
    notes
        What else people are told, a sentence each.
    """

    failure: str = ""
    notes: list[str] = field(default_factory=list)
    check: CheckReport | None = None
    repair: Repair | None = None
    state: DriftState | None = None


class Care:
    """Looks after the references of all sources.

    Parameters
    ----------
    collector
        The open engine room.
    """

    def __init__(self, collector: Collector) -> None:
        self._collector = collector
        self._warehouse = collector.warehouse
        self._write = collector.write
        self._owed: set[str] | None = None

    async def after_poll(self, result: PollResult) -> CareReport | None:
        """Do what is due after a poll; None where nothing is.

        Nothing that goes wrong here undoes the poll: it is reported as a failure.
        """
        report = CareReport()
        try:
            is_owed = await self._is_owed(result.poll.source)
            if result.drift is None and not is_owed:
                return None
            await self._look_after(result, report, is_news=is_owed or result.alarm is not None)
            if report.failure:
                await self.note_told(result.poll.source)
        except NewsbeatError as error:
            logger.warning("%s: %s", result.poll.source, error)
            report.failure = report.failure or f"it could not be checked: {error}"
        except Exception as error:
            logger.exception("%s", result.poll.source)
            report.failure = report.failure or f"it could not be checked: {error!r}"
        is_needed = report.failure or report.notes or report.check
        return report if is_needed else None

    async def _is_owed(self, source: str) -> bool:
        """Return, once, whether a worker died that had found a change and not yet said so."""
        if self._owed is None:
            owed = set(await self._write(self._warehouse.read_untold))
            # Others may have asked and been answered meanwhile.
            self._owed = owed if self._owed is None else self._owed
        is_owed = source in self._owed
        self._owed.discard(source)
        return is_owed

    async def note_told(self, source: str) -> None:
        """Note that a run fails for what was found, so that no other does."""
        watches, now = self._collector.watches, self._collector.clock.now()
        async with watches.held(source):
            state = await watches.state(source, now)
            if state.is_untold:
                told = replace(state, updated_at=now, is_untold=False)
                await self._write(self._warehouse.write_references, [], [told])
                watches.keep(told)

    async def _look_after(self, result: PollResult, report: CareReport, *, is_news: bool) -> None:
        source, now = self._collector.source(result.poll.source), self._collector.clock.now()
        state = report.state = await self._collector.watches.state(source.source, now)
        if is_news and state.has_drifted:
            _, report.failure = describe_drift(state)
        elif self._collector.workshop.is_busy and state.standing != "learning":
            return
        if state.standing == "learning":
            if _is_worth_trying(state, result):
                await self._learn_first(state, report)
            return
        if report.failure or state.n_unchecked >= self._limit:
            await self._check(state, report)
        state = report.state
        if state.standing == "text" and report.failure:
            await self._repair(source, state, report)
        elif state.standing == "layout" and not report.failure:
            await self._take_layout(state, report)

    @property
    def _limit(self) -> int:
        return self._collector.settings.drift.check_pages

    # --- learn -----------------------------------------------------------------------

    async def _learn_first(self, state: DriftState, report: CareReport) -> None:
        pages = await self._pages(state.source, since=state.learn_from)
        note = f"the first {len(pages)} pages" if not state.learn_from else "a new layout"
        model, refusal = await self.learn(state.source, pages, note)
        after = await self.take(
            state.source,
            model,
            standing="watching" if model else "learning",
            monitor=None,
            reason=refusal,
            n_unchecked=0,
        )
        report.notes.append(
            f"reference learnt from {model.n_pages} pages" if model else f"no reference: {refusal}"
        )
        report.state = after

    async def learn(
        self, source: str, pages: list[Page], note: str, must_be_fit: bool = True
    ) -> tuple[ReferenceModel | None, str]:
        """Return a reference of some pages, or None and why there is none."""
        profiles = tuple(page.profile for page in pages if page.profile is not None)
        if len(profiles) < MIN_PAGES:
            return None, f"{len(profiles)} pages, {MIN_PAGES} needed"
        lesson = Lesson(source, profiles[-MAX_WINDOW:], note, must_be_fit)
        now = self._collector.clock.now()
        learnt = await self._collector.workshop.call(learn, lesson, now)
        return learnt.model, learnt.refusal

    async def take(self, source: str, model: ReferenceModel | None, **changes: Any) -> DriftState:
        """Write a reference and how its source stands with it, and take both into use."""
        watches, now = self._collector.watches, self._collector.clock.now()
        async with watches.held(source):
            after = replace(await watches.state(source, now), updated_at=now, **changes)
            models = [model] if model else []
            await self._write(self._warehouse.write_references, models, [after])
            watches.forget(source)
        return after

    async def _pages(self, source: str, since: str = "", until: str = AFTER_ALL) -> list[Page]:
        return await self._write(self._warehouse.read_profiles, source, since, until)

    # --- check -----------------------------------------------------------------------

    async def _check(self, state: DriftState, report: CareReport) -> None:
        check = report.check = await self.check(state.source)
        state = report.state = await self._collector.watches.state(
            state.source, self._collector.clock.now()
        )
        report.notes.append(check.in_one_line())
        if check.alarm is not None:
            # It says more than what the pages one by one had said.
            report.failure = check.alarm.text
        elif check.result.outcome == "not evaluated":
            report.failure = report.failure or (
                f"its pages could not be judged, which is no pass: {check.result.reason}"
            )
        elif check.result.outcome == "passed" and not report.failure:
            await self._extend(state, report)

    async def check(self, source: str, least_pages: int = 1) -> CheckReport:
        """Check the pages since the last check, or since the first suspect one, as a set.

        Raises
        ------
        NewsbeatError
            If the source has no reference yet.
        """
        now = self._collector.clock.now()
        state = await self._collector.watches.state(source, now)
        references = await self._write(self._warehouse.read_references, source)
        if not references:
            why = state.reason or f"{state.n_pages} article pages, {MIN_PAGES} needed"
            raise NewsbeatError(f"{source} has no reference to be compared with yet: {why}")
        pages = await self._set_of(state, max(state.n_unchecked, least_pages))
        result = await self._judge(source, references[0], pages)
        check_id = f"{source}@{now:%Y%m%dT%H%M%S}"
        document = None
        if result.document:
            drifted = result.outcome == "drifted"
            document = write_document(
                self._collector.settings, source, result.document, drifted=drifted
            )
        sizes = (references[0].n_pages, len(pages))
        first = pages[0].page_id if pages else ""
        async with self._collector.watches.held(source):
            # Read anew: a poll may have ended meanwhile.
            state = await self._collector.watches.state(source, now)
            alarm = find_set_alarm(state, result, first, len(pages), now) if pages else None
            is_clean = result.outcome == "passed" and not state.has_drifted
            after = replace(
                alarm.state if alarm else state,
                updated_at=now,
                n_unchecked=max(state.n_unchecked - len(pages), 0),
                clean_before=first if is_clean else state.clean_before,
            )
            alarm = replace(alarm, state=after) if alarm else None
            await self._write(
                self._warehouse.write_check, check_id, sizes, result, after, document, alarm
            )
            self._collector.watches.keep(after)
        return CheckReport(check_id, source, now, *sizes, result, document, alarm)

    async def _set_of(self, state: DriftState, n_pages: int) -> list[Page]:
        since = (state.since_page or "") if state.has_drifted else state.learn_from
        pages = await self._pages(state.source, since)
        return pages[-MOST_CHECKED:] if state.has_drifted else pages[-min(n_pages, MOST_CHECKED) :]

    async def _judge(
        self, source: str, reference: ReferenceModel, pages: list[Page]
    ) -> BatchResult:
        evidence: dict[str, float] = {}
        if pages:
            first = pages[0].page_id
            evidence = await self._write(self._warehouse.read_evidence, source, first)
        asked = SetToCheck(
            source,
            reference.state,
            tuple(page.profile for page in pages if page.profile is not None),
            tuple(evidence.get(page.page_id) for page in pages),
            cast("ThresholdRule", self._collector.settings.drift.thresholds),
        )
        try:
            return await self._collector.workshop.call(check_set, asked)
        except NewsbeatError as error:
            return BatchResult("not evaluated", (), str(error))

    async def _extend(self, state: DriftState, report: CareReport) -> None:
        """Learn from the pages older than the window just found clean, where they are many."""
        references = await self._write(self._warehouse.read_references, state.source)
        pages = await self._pages(state.source, state.learn_from, state.clean_before)
        if not references or not is_relearnt(references[0].n_pages, len(pages)):
            return
        model, refusal = await self.learn(state.source, pages, "more pages were found clean")
        if model is not None:
            await self.take(state.source, model)
            report.notes.append(f"reference extended to {model.n_pages} pages")
        else:
            report.notes.append(f"reference not extended: {refusal}")

    async def _take_layout(self, state: DriftState, report: CareReport) -> None:
        """Take a new layout as the reference once its text stayed right for long enough."""
        enough = self._collector.settings.drift.accept_layout_after
        if not enough or state.n_pages < enough:
            return
        await self._collector.mending.accept(state.source)
        report.notes.append(f"the new layout is the reference now: its text was right on {enough}")

    # --- repair ----------------------------------------------------------------------

    async def _repair(self, source: Source, state: DriftState, report: CareReport) -> None:
        repair = report.repair = await self.find_repair(source, state)
        if repair is None:
            report.notes.append("no other way to the text was found that does better")
            return
        report.notes.append(describe_repair(repair))
        if repair.is_clear and self._collector.settings.drift.adopt_repairs:
            mended = await self._collector.mending.reextract(source.source, repair=repair)
            report.notes.append(f"adopted by itself, as it is clear: {mended.in_one_line()}")

    async def find_repair(self, source: Source, state: DriftState) -> Repair | None:
        """Return the best other way to the text, written as proposed; None where none is better."""
        tried = await self.try_ways(source, state)
        present, *others = tried
        best = others[0] if others else None
        if best is None or not _is_better(best, present):
            return None
        now = self._collector.clock.now()
        repair = Repair(
            repair_id=repair_id_of(source.source, now, best),
            source=source.source,
            proposed_at=now,
            way=best.way,
            selector=best.selector,
            state="proposed",
            settled_at=None,
            n_pages=best.n_pages,
            n_fitting=best.n_fitting,
            n_fitting_now=present.n_fitting,
            is_clear=best.is_clear,
            evidence=[item.as_json() for item in tried],
            basis=source.extract,
        )
        await self._write(self._warehouse.write_repair, repair)
        return repair

    async def try_ways(self, source: Source, state: DriftState) -> list[Tried]:
        """Return every way to the text of a drifted source, the present one first."""
        since, name = state.since_page or "", source.source
        references = await self._write(self._warehouse.read_references, name)
        if not references:
            raise NewsbeatError(f"{name} has no reference to score other ways by")
        read = self._warehouse.read_stored_pages
        suspect = await self._write(read, name, since, limit=40)
        good = await self._write(read, name, until=since, limit=40)
        sick = SickSource(
            source=self._collector.rules_of(source),
            warc_folder=self._collector.settings.warc_folder,
            reference=references[0].state,
            good=tuple(good),
            suspect=tuple(suspect),
            now=self._collector.clock.now(),
        )
        return await self._collector.workshop.call(try_ways, sick)


def _is_better(best: Tried, present: Tried) -> bool:
    if best.n_fitting != present.n_fitting:
        return best.n_fitting > present.n_fitting
    return best.evidence < present.evidence - 1.0


def _is_worth_trying(state: DriftState, result: PollResult) -> bool:
    """Return whether these pages brought enough to learn from, for the first time or anew."""
    n_new = sum(verdict.gate is None for verdict in result.verdicts)
    wanted = float(MIN_PAGES)
    while wanted <= state.n_pages:
        if state.n_pages - n_new < wanted:
            return True
        wanted *= GROWTH
    return False
