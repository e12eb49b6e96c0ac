"""Newsrooms to poll, and one Prefect server of ours for all tests that need it."""

from __future__ import annotations

import contextlib
import shutil
import time
from collections.abc import AsyncIterator, Callable, Iterator
from dataclasses import dataclass, replace
from datetime import datetime, timedelta
from pathlib import Path
from typing import Any

import pytest

from flows.collector import Collector
from flows.poll import poll_source
from models.records import HttpRules, PollResult, Source
from tasks.catalogue import Catalogue
from tasks.clock import Clock
from tasks.replay.history import (
    Fault,
    InventedPage,
    RecordedEntry,
    RecordedSource,
    RecordedWeb,
)
from tasks.replay.sample import SAMPLE_START
from tasks.replay.server import ServedWeb, serve_in_thread
from tasks.settings import (
    AgentSettings,
    ExtractSettings,
    FetchSettings,
    Settings,
    WorkerSettings,
)

ROOT = Path(__file__).parents[2]
START = SAMPLE_START
HOUR = timedelta(hours=1)


class SteppedClock(Clock):
    """A clock at ordinary speed that can be put forward."""

    def __init__(self, start: datetime) -> None:
        super().__init__(1.0, time.time(), start.timestamp())
        self.__dict__["ahead"] = timedelta(0)

    def step(self, ahead: timedelta) -> None:
        self.__dict__["ahead"] += ahead

    def at_wall(self, wall: float) -> datetime:
        return super().at_wall(wall) + self.__dict__["ahead"]

    def wall_of(self, at: datetime) -> float:
        return super().wall_of(at - self.__dict__["ahead"])


def recorded_source(n_entries: int = 12, **changes: Any) -> RecordedSource:
    """Return a source that publishes on the hour; four entries are out at the start."""
    fields: dict[str, Any] = {
        "source": "harbour",
        "title": "The Harbour",
        "host": "harbour.example",
        "kind": "feed",
        "window": 6,
        "latency_s": 0.0,
        "entries": tuple(
            RecordedEntry(
                START + (number - 3) * HOUR,
                f"/story-{number}",
                f"Story number {number} of the harbour",
                InventedPage(number),
            )
            for number in range(n_entries)
        ),
    }
    return RecordedSource(**(fields | changes))


@dataclass
class Newsroom:
    """A collector of our own in front of a recorded web, on one clock."""

    web: RecordedWeb
    served: ServedWeb
    settings: Settings
    catalogue: Catalogue
    collector: Collector

    @property
    def clock(self) -> Clock:
        return self.settings.clock

    def step(self, **time_ahead: float) -> None:
        assert isinstance(self.clock, SteppedClock)
        self.clock.step(timedelta(**time_ahead))

    def fault(self, kind: Any, **about: Any) -> None:
        self.served.app.faults.append(Fault(kind, **about))

    def mend(self) -> None:
        self.served.app.faults.clear()

    async def poll(self, source: str = "harbour", cycle: int | None = None) -> PollResult | None:
        return await poll_source(self.collector, self.collector.source(source), cycle)

    async def polled(self, source: str = "harbour") -> PollResult:
        result = await self.poll(source)
        assert result is not None
        return result

    def rows(self, sql: str) -> list[tuple[Any, ...]]:
        return self.collector.warehouse.query(sql)

    def urls(self, source: str = "harbour") -> list[str]:
        """Return the addresses of all stored articles, doubles and all."""
        return [url for (url,) in self.rows(f"SELECT url FROM articles WHERE source = '{source}'")]

    def listed(self, source: str = "harbour") -> set[str]:
        """Return all that the web has listed until now."""
        return self.web.listed(self.clock.now())[source]


OpenNewsroom = Callable[..., contextlib.AbstractAsyncContextManager[Newsroom]]


def newsroom_settings(home: Path, clock: Clock, **sections: Any) -> Settings:
    usual: dict[str, Any] = {
        "agent": AgentSettings(contact="tests@newsbeat.example"),
        "fetch": FetchSettings(host_gap_s=0.0, total_timeout_s=20.0),
        "extract": ExtractSettings(retry_base_s=60.0),
        "worker": WorkerSettings(query_s=0.5, pause_s=0.5, reconcile_s=1.0, artifact_s=1.0),
    }
    return Settings(home=home, clock=clock, **(usual | sections))


def read_only_catalogue(sources: list[Source], n_problems: int = 0) -> Catalogue:
    from models.errors import ConfigError

    problem = ConfigError("news.toml", "x.url", "nowhere", "it must be an address")
    return Catalogue(tuple(sources), (problem,) * n_problems)


@pytest.fixture
def make_recorded() -> Callable[..., RecordedSource]:
    """Makes a small recorded source."""
    return recorded_source


@pytest.fixture
def make_stepped() -> Callable[[], SteppedClock]:
    """Makes a clock that can be put forward."""
    return lambda: SteppedClock(START)


@pytest.fixture
def worker_settings() -> Callable[..., WorkerSettings]:
    """Makes settings of a worker that looks round often."""
    return lambda **changes: replace(
        WorkerSettings(query_s=0.5, pause_s=0.5, reconcile_s=1.0, artifact_s=1.0), **changes
    )


@pytest.fixture
def open_newsroom(tmp_path: Path) -> OpenNewsroom:
    """Opens a newsroom over recorded sources, in one home folder for the test."""

    @contextlib.asynccontextmanager
    async def open_one(
        *history: RecordedSource,
        clock: Clock | None = None,
        interval_s: float = 300.0,
        policy: str = "fixed",
        home: Path = tmp_path,
        change: Callable[[Source], Source] = lambda source: source,
        **sections: Any,
    ) -> AsyncIterator[Newsroom]:
        web = RecordedWeb(history or (recorded_source(),), START)
        clock = clock or SteppedClock(START)
        settings = newsroom_settings(home, clock, **sections)
        with serve_in_thread(web, clock) as served:
            sources = [
                change(replace(source, poll=replace(source.poll, policy=policy)))
                for source in web.sources(served.port, interval_s)
            ]
            catalogue = read_only_catalogue(sources)
            async with Collector(settings, catalogue, "test") as collector:
                await collector.sync_catalogue()
                yield Newsroom(web, served, settings, catalogue, collector)

    return open_one


BROWSER_WORDS = (
    "--headless --no-sandbox --disable-gpu --disable-quic --no-first-run --disable-sync"
    " --disable-background-networking --disable-component-update --disable-dev-shm-usage"
)
"""Without a screen, and without calls to its maker."""


@pytest.fixture
def open_press(open_newsroom: Any, site: Any) -> Callable[..., Any]:
    """Opens a newsroom whose only source lies on the test's own site."""
    source = Source(
        "harbour",
        "Press",
        "http://press.example/feed",
        kind="feed",
        http=HttpRules(allow_private=True, connect_to=f"127.0.0.1:{site.port}", min_gap_s=0.0),
    )

    def open_one(change: Callable[[Source], Source] = lambda source: source, **given: Any) -> Any:
        return open_newsroom(change=lambda _: change(source), **given)

    return open_one


@pytest.fixture(scope="module")
def browser(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Any]:
    """A real browser; where the machine has none, the test is skipped."""
    webdriver = pytest.importorskip("selenium.webdriver", reason="selenium is not installed")
    chromium = shutil.which("chromium") or shutil.which("chromium-browser")
    driver = shutil.which("chromedriver")
    if chromium is None or driver is None:
        pytest.skip("no browser here: apt install chromium chromium-driver")
    options = webdriver.ChromeOptions()
    options.binary_location = chromium
    for word in (*BROWSER_WORDS.split(), f"--user-data-dir={tmp_path_factory.mktemp('profile')}"):
        options.add_argument(word)
    options.set_capability("goog:loggingPrefs", {"browser": "ALL"})
    with webdriver.Chrome(options, webdriver.ChromeService(driver)) as opened:
        yield opened
