"""What a poll has found so far, on its way to being stored."""

from __future__ import annotations

import asyncio
import contextlib
import time
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field, replace
from datetime import datetime
from typing import TYPE_CHECKING

from flows.watching import Judged, ReadPage
from models.records import (
    FAILURES,
    Conduct,
    Fetched,
    Hop,
    Incident,
    IncidentKind,
    NewEntry,
    Outcome,
    Page,
    PendingArticle,
    Schedule,
    Source,
    StoredArticle,
    Validators,
)

if TYPE_CHECKING:
    from flows.collector import Collector

REASON_CHARS = 500
"""A reason is read by people in one line; a server's own words may be longer."""

LARGE_BYTES = 2**20
"""Larger pages are packed in a thread: 20 MB take a second."""


@dataclass
class Findings:
    """What a poll has found so far; becomes a :class:`PollResult` when it ends."""

    source: Source
    schedule: Schedule
    started_at: datetime
    listed_at: datetime | None = None
    outcome: Outcome = "empty"
    http_status: int | None = None
    reason: str = ""
    retry_after_s: float | None = None
    hint_s: float | None = None
    validators: Validators = field(default_factory=Validators)
    body_sha256: str | None = None
    entries_listed: int = 0
    overlap: bool | None = None
    possible_loss: bool = False
    is_unlisted: bool = False
    index_bytes: int = 0
    article_bytes: int = 0
    cpu_s: float = 0.0
    entries: list[NewEntry] = field(default_factory=list)
    relisted: list[NewEntry] = field(default_factory=list)
    first_urls: dict[str, str] = field(default_factory=dict)
    pages: list[Page] = field(default_factory=list)
    read: list[ReadPage] = field(default_factory=list)
    judged: Judged | None = None
    has_drifted: bool = False
    articles: list[StoredArticle] = field(default_factory=list)
    pending: list[PendingArticle] = field(default_factory=list)
    settled: list[str] = field(default_factory=list)
    conduct: Conduct = field(default_factory=Conduct)
    hops: tuple[Hop, ...] = ()
    doubt: str = ""
    is_silent: bool = False
    is_held: bool = False
    begun: list[Incident] = field(default_factory=list)
    ended: list[tuple[IncidentKind, str]] = field(default_factory=list)

    @property
    def is_failure(self) -> bool:
        """Whether the source could not be read."""
        return self.outcome in FAILURES

    @property
    def address(self) -> str:
        """Where the source is polled: the catalogue's address, or the one it moved to."""
        return self.conduct.address or self.source.url

    def wanted(self, item: NewEntry, owed: PendingArticle | None = None) -> PendingArticle:
        """Return the article of an entry as one to fetch; tries before count, however listed."""
        entry = item.entry
        return PendingArticle(
            item.entry_id,
            entry.url,
            entry.title,
            entry.summary,
            entry.published_at,
            attempts=owed.attempts if owed else 0,
            first_url=self.first_urls.get(item.entry_id),
        )

    def owe(self, items: Iterable[PendingArticle], try_at: datetime, reason: str) -> None:
        """Note those of `items` as owed that are neither settled nor owed already."""
        done = {*self.settled, *(item.entry_id for item in self.pending)}
        self.pending += [
            replace(item, next_try_at=try_at, reason=reason)
            for item in items
            if item.entry_id not in done
        ]

    @contextlib.contextmanager
    def timing_cpu(self) -> Iterator[None]:
        """Add the processor time of the enclosed (blocking) work to the poll's."""
        before = time.thread_time()
        try:
            yield
        finally:
            self.cpu_s += time.thread_time() - before


async def keep_page(collector: Collector, findings: Findings, answer: Fetched) -> Page:
    """Return where a page was kept; packing a large one must not hold up all other polls."""

    def store() -> Page:
        with findings.timing_cpu():
            return collector.pages.store(answer, findings.source.source)

    return await asyncio.to_thread(store) if len(answer.body) > LARGE_BYTES else store()
