"""Polls to store: a small invented publisher's listings and articles."""

from __future__ import annotations

import hashlib
import subprocess
import sys
from dataclasses import dataclass, replace
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest

from models.records import (
    Article,
    Decision,
    Entry,
    NewEntry,
    Page,
    PendingArticle,
    Poll,
    PollResult,
    Schedule,
    Source,
    StoredArticle,
)
from tasks.settings import Settings
from tasks.warehouse import Warehouse

START = datetime(2026, 3, 1, 12, 0, tzinfo=UTC)
ROOT = Path(__file__).parents[2]


@dataclass(frozen=True)
class Press:
    """Makes records of polls; everything follows from the names it is given."""

    start: datetime = START

    def at(self, minutes: float) -> datetime:
        return self.start + timedelta(minutes=minutes)

    def source(self, name: str = "daily", **changes: object) -> Source:
        source = Source(name, name.title(), f"https://{name}.example/feed", kind="feed")
        return replace(source, **changes)

    def entry(self, name: str, minutes: float = 0, **changes: object) -> NewEntry:
        entry = Entry(
            f"https://daily.example/{name}",
            title=f"Title of {name}",
            published_at=self.at(minutes),
            published_precision="instant",
            published_basis="pubDate",
            summary=f"Summary of {name}",
            authors=("A. Writer",),
        )
        entry = replace(entry, **changes)
        return NewEntry(f"entry-{name}", entry, fingerprint=f"{entry.title}|{entry.summary}")

    def page(self, name: str, minutes: float = 0) -> Page:
        body = name.encode()
        return Page(
            page_id=f"page-{name}-{minutes:g}",
            source="daily",
            url=f"https://daily.example/{name}",
            fetched_at=self.at(minutes),
            status=200,
            bytes=len(body),
            sha256=hashlib.sha256(body).hexdigest(),
            warc_file="2026-03-01/x.warc.gz",
            warc_offset=10,
        )

    def article(
        self, name: str, minutes: float = 10, text: str = "", **changes: object
    ) -> StoredArticle:
        article = Article(
            title=f"Title of {name}",
            text=text or f"Text of {name}. " * 20,
            authors=("A. Writer", "Б. Автор"),
            language="en",
        )
        stored = StoredArticle(
            article_id=f"article-{name}",
            entry_id=f"entry-{name}",
            url=f"https://daily.example/{name}",
            article=article,
            published_at=self.at(0),
            published_basis="listing",
            stored_at=self.at(minutes),
            page=self.page(name, minutes),
        )
        return replace(stored, **changes)

    def pending(self, name: str, minutes: float = 5, attempts: int = 1) -> PendingArticle:
        return PendingArticle(
            f"entry-{name}",
            f"https://daily.example/{name}",
            f"Title of {name}",
            f"Summary of {name}",
            self.at(0),
            attempts,
            self.at(minutes),
            "no answer within 10 s",
        )

    def result(self, cycle: int = 1, minutes: float = 10, **parts: object) -> PollResult:
        """Return a poll of ``daily`` that began at `minutes` and took one second."""
        source = str(parts.pop("source", "daily"))
        poll_changes = {
            name: parts.pop(name)
            for name in ("outcome", "possible_loss", "overlap", "reason", "entries_listed")
            if name in parts
        }
        articles = tuple(parts.get("articles", ()))
        started_at = self.at(minutes)
        decision = Decision(
            started_at + timedelta(minutes=10), "every 10 min", "fixed", {"interval_s": 600.0}
        )
        poll = Poll(
            poll_id=f"{source}#{cycle}",
            source=source,
            cycle=cycle,
            due_at=started_at,
            started_at=started_at,
            finished_at=started_at + timedelta(seconds=1),
            outcome="new" if parts.get("entries") else "empty",
            http_status=200,
            reason="",
            entries_listed=30,
            entries_new=len(tuple(parts.get("entries", ()))),
            articles_stored=len(articles),
            overlap=True,
            possible_loss=False,
            index_bytes=20_000,
            article_bytes=100_000 * len(articles),
            cpu_s=0.05,
            decision=decision,
        )
        schedule = Schedule(
            source,
            decision.due_at,
            decision.reason,
            cycle=cycle + 1,
            last_success_at=poll.finished_at,
        )
        pages = tuple(article.page for article in articles if article.page)
        return PollResult(
            poll=replace(poll, **poll_changes),
            schedule=parts.pop("schedule", schedule),
            pages=tuple(parts.pop("pages", pages)),
            **{name: tuple(value) for name, value in parts.items()},
        )


@pytest.fixture
def press() -> Press:
    return Press()


@pytest.fixture
def settings(tmp_path) -> Settings:
    return Settings(home=tmp_path)


@pytest.fixture
def warehouse(settings, press):
    with Warehouse.open(settings, "test") as opened:
        opened.sync_sources([press.source()], press.start)
        yield opened


@dataclass
class Other:
    """Another process of ours, that says on its standard output what it has done."""

    process: subprocess.Popen[str]

    def said(self) -> str:
        return self.process.stdout.readline().strip()

    def go_on(self) -> None:
        """Let it get past an ``input()``."""
        self.process.stdin.write("\n")
        self.process.stdin.flush()

    def kill(self) -> None:
        self.process.kill()
        self.process.wait(10)


@pytest.fixture(scope="session")
def launch():
    """Start another process with ``Warehouse``, the records and the given settings at hand."""
    started = []

    def start(settings: Settings, code: str) -> Other:
        head = (
            "import sys, time, os\n"
            "from pathlib import Path\n"
            "from datetime import UTC, datetime, timedelta\n"
            "from models.records import *\n"
            "from tasks.settings import Settings\n"
            "from tasks.warehouse import Warehouse\n"
            f"settings = Settings(home=Path({str(settings.home)!r}))\n"
        )
        process = subprocess.Popen(
            [sys.executable, "-W", "error", "-c", head + code],
            stdout=subprocess.PIPE,
            stdin=subprocess.PIPE,
            text=True,
            cwd=ROOT,
        )
        started.append(Other(process))
        return started[-1]

    yield start
    for item in started:
        item.kill()
        item.process.stdout.close()
        item.process.stdin.close()


@pytest.fixture
def other(launch, settings):
    """Start another process on this test's warehouse; it ends with the test."""
    started = []

    def start(code: str) -> Other:
        started.append(launch(settings, code))
        return started[-1]

    yield start
    for item in started:
        item.kill()
