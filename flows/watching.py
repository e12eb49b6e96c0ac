"""The operational stage: every article page judged before its article is stored.

A source's watch is kept in memory while it is polled, and its state is written with each
poll: after a restart it goes on exactly where it stood.
"""

from __future__ import annotations

import asyncio
import logging
import math
from collections import OrderedDict
from collections.abc import AsyncIterator, Awaitable, Callable, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass, replace
from datetime import datetime
from typing import TYPE_CHECKING, Any, cast

from models.drift.features import PageFeatures
from models.drift.reference import MIN_PAGES, Reference
from models.drift.watch import PageWatch, Watch
from models.errors import ParseError
from models.gates import Gate, find_gate
from models.records import (
    Article,
    DriftAlarm,
    DriftState,
    Page,
    PageVerdict,
    ReferenceModel,
)
from models.standing import find_alarm
from tasks.warehouse import Warehouse

if TYPE_CHECKING:
    from models.drift.slides import Surface
    from models.drift.slides_watch import SlidesWatch

logger = logging.getLogger("newsbeat.watching")

EVIDENCE = "evidence"
"""The detector by default; any other is a surface of the slides."""

SLIDES_MIN_PAGES = 20

KEPT_IN_MEMORY = 300
"""Watches of the sources polled last; the others are read again when they are wanted."""

Write = Callable[..., Awaitable[Any]]
"""Runs a blocking call of the warehouse, between those of the polls."""


@dataclass(frozen=True, slots=True)
class ReadPage:
    """An article page of a poll, and what was extracted from it; None where that failed."""

    page: Page
    article: Article | None
    content_type: str | None = None

    @property
    def gate(self) -> Gate | None:
        """The hard gate that stops it."""
        return find_gate(self.page.status, self.content_type, self.article)


@dataclass(frozen=True, slots=True)
class Judged:
    """What became of the article pages of a poll.

    Attributes
    ----------
    held_back
        Pages whose articles are quarantined.
    """

    verdicts: tuple[PageVerdict, ...]
    state: DriftState
    alarm: DriftAlarm | None = None
    held_back: frozenset[str] = frozenset()


@dataclass(slots=True)
class _Post:
    """One source's place: how it stands, and the watch where there is a reference."""

    state: DriftState
    watch: PageWatch | None = None


class Watches:
    """The watches of all sources.

    Parameters
    ----------
    warehouse
        Holds references and states.
    write
        Runs a blocking call of the warehouse.
    detector
        What judges the pages: :data:`EVIDENCE`, or a surface of the slides.
    """

    def __init__(self, warehouse: Warehouse, write: Write, detector: str = EVIDENCE) -> None:
        self._detector = detector
        self._warehouse = warehouse
        self._write = write
        self._posts: OrderedDict[str, _Post] = OrderedDict()
        self._locks: dict[str, asyncio.Lock] = {}

    @asynccontextmanager
    async def held(self, source: str) -> AsyncIterator[None]:
        """Keep how a source stands from being changed by others, from reading it to writing it.

        A poll and what follows from the one before it may come at the same time.
        """
        async with self._locks.setdefault(source, asyncio.Lock()):
            yield

    async def state(self, source: str, now: datetime) -> DriftState:
        """Return how a source stands."""
        return (await self._post(source, now)).state

    async def judge(self, source: str, pages: Sequence[ReadPage], now: datetime) -> Judged:
        """Judge the article pages of a poll, in the order they were fetched in.

        Call it, and store the result, while the source is :meth:`held`. The watch moves on:
        where the result cannot be stored, call :meth:`forget`.
        """
        post = await self._post(source, now)
        verdicts: list[PageVerdict] = []
        watch = post.watch
        for read in sorted(pages, key=lambda read: read.page.page_id):
            verdicts.append(_judge_page(watch, read, post.state.n_pages + len(verdicts), now))
        n_new = sum(verdict.gate is None for verdict in verdicts)
        state = replace(
            post.state,
            updated_at=now,
            monitor=watch.to_bytes() if watch else None,
            n_pages=post.state.n_pages + n_new,
            n_unchecked=post.state.n_unchecked + n_new,
        )
        alarm = find_alarm(state, watch.verdict() if watch else None, now)
        post.state = state = alarm.state if alarm else state
        return Judged(tuple(verdicts), state, alarm, _held_back(verdicts, state))

    def keep(self, state: DriftState) -> None:
        """Take over how a source stands after it was written elsewhere."""
        if state.source in self._posts:
            self._posts[state.source].state = state

    def forget(self, source: str) -> None:
        """Read a source's watch again before it is next used."""
        self._posts.pop(source, None)

    async def _post(self, source: str, now: datetime) -> _Post:
        if source not in self._posts:
            self._posts[source] = await self._write(self._read, source, now)
            while len(self._posts) > KEPT_IN_MEMORY:
                self._posts.popitem(last=False)
        self._posts.move_to_end(source)
        return self._posts[source]

    def _read(self, source: str, now: datetime) -> _Post:
        states = self._warehouse.read_drift_states(source)
        state = states[0] if states else DriftState(source, now)
        references = self._warehouse.read_references(source)
        if not references:
            return _Post(state)
        return _Post(state, open_watch(references[0], state.monitor, self._detector))


def open_watch(
    model: ReferenceModel, monitor: bytes | None, detector: str = EVIDENCE
) -> PageWatch | None:
    """Return the watch over a reference, with the evidence it had gathered.

    None where another version packed the reference: it is built anew at night. A surface
    of the slides needs twenty pages; with fewer, evidence is gathered.
    """
    try:
        reference = Reference.from_bytes(model.state)
    except ParseError as error:
        logger.warning("%s: %s; it is not watched until its reference is renewed",
                       model.source, error)  # fmt: skip
        return None
    fresh = _set_to_work(reference, detector)
    if monitor is None:
        return fresh
    try:
        return type(fresh).from_bytes(monitor, reference)
    except ParseError as error:
        logger.warning("%s: %s; its evidence starts anew", model.source, error)
        return fresh


def _set_to_work(reference: Reference, detector: str) -> Watch | SlidesWatch:
    if detector == EVIDENCE or reference.n_pages < SLIDES_MIN_PAGES:
        return Watch(reference)
    # scikit-learn takes a second to load, and most do without.
    from models.drift.slides_watch import SlidesWatch

    return SlidesWatch(reference, cast("Surface", detector))


def _judge_page(
    watch: PageWatch | None, read: ReadPage, n_before: int, now: datetime
) -> PageVerdict:
    page, gate = read.page, read.gate
    profile = read.article.profile if read.article else None
    score, suspicious, evidence = 0.0, gate is not None, 0.0
    reason = gate.reason if gate else ""
    if watch is None:
        n = min(n_before + 1, MIN_PAGES)
        reason = reason or f"nothing to compare with yet: page {n} of {MIN_PAGES} to learn from"
    elif profile is not None:
        try:
            found = watch.judge(PageFeatures.from_bytes(profile), page.page_id)
        except Exception as error:
            # A defect met on one page must not keep it, and all others, from being stored.
            logger.exception("judging %s", page.url)
            suspicious = True
            reason = reason or f"it could not be judged: {type(error).__name__}: {error}"
        else:
            score, evidence = -math.log10(max(found.score, 1e-12)), found.evidence
            suspicious = suspicious or bool(found.suspicious)
            reason = reason or found.reason
    return PageVerdict(
        page_id=page.page_id,
        source=page.source,
        judged_at=now,
        score=score,
        suspicious=suspicious,
        reason=reason,
        evidence=evidence,
        gate=gate.kind if gate else None,
    )


def _held_back(verdicts: Sequence[PageVerdict], state: DriftState) -> frozenset[str]:
    """Return the pages whose articles are quarantined.

    Where a page was a wall, a list or empty the listing stands in, and that is shown.
    """
    is_wrong = state.standing == "text"
    return frozenset(
        verdict.page_id
        for verdict in verdicts
        if verdict.gate in ("status", "type")
        or (is_wrong and verdict.page_id >= (state.since_page or ""))
    )
