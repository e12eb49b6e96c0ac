"""The engine room: everything a poll needs, opened once per process."""

from __future__ import annotations

import asyncio
import os
import socket
import time
from collections.abc import Awaitable, Callable, Iterable, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import AsyncExitStack
from dataclasses import replace
from datetime import timedelta
from types import TracebackType
from typing import ParamSpec, Self, TypeVar, cast
from uuid import UUID

from flows.caring import Care
from flows.incidents import Incidents
from flows.intensity import Intensities
from flows.mending import Mending
from flows.polite import PoliteFetcher
from flows.pricing import Pricing
from flows.triage import Triage, rules_of
from flows.watching import Watches
from flows.workshop import Workshop
from models.errors import ConfigError, NewsbeatError, WarehouseError
from models.records import BudgetReport, Method, PollResult, Repair, RuleHit, Source, StoredArticle
from tasks.catalogue import Catalogue
from tasks.clock import Clock
from tasks.extraction import ExtractionPool
from tasks.pages import PageStore
from tasks.settings import Settings
from tasks.warehouse import Warehouse

RELIVED = timedelta(weeks=4)
"""Without a nightly fit, habits are learnt from no more than this."""

SPENDING_LOOKED_AT, LEAST_LOOKED_AT = timedelta(hours=24), timedelta(hours=2)
"""Stretch of spending the price is corrected by, and the least that says anything."""

P = ParamSpec("P")
T = TypeVar("T")

AfterPoll = Callable[[PollResult, UUID | None], Awaitable[None]]
"""What a worker does once a poll is stored: set the next run, publish the source's page."""


class Collector:
    """Warehouse, fetcher, extraction processes and raw-page store of one process.

    Use as an async context manager: it takes the writer's lease on entering, and hands
    it back when left. Blocking calls on the warehouse go through :meth:`write`, one at a
    time, off the event loop.

    Parameters
    ----------
    settings
        All settings.
    catalogue
        The sources to watch.
    holder
        What holds the lease, for messages: ``"newsbeat worker"``.

    Raises
    ------
    WarehouseError
        On entering, if another process is the writer, or the file cannot be used.
    """

    def __init__(self, settings: Settings, catalogue: Catalogue, holder: str) -> None:
        self.settings = settings
        self.holder = holder
        self.after_poll: AfterPoll | None = None
        self.catalogue = catalogue
        self.sources = {source.source: source for source in catalogue.sources}
        self.intensities = Intensities(self.sources, settings.clock.now())
        self.pricing = Pricing(settings.budget, catalogue.sources, self.intensities)
        self.triage = Triage(settings)
        self.incidents = Incidents(self.sources)
        self.repairs: dict[str, Repair] = {}
        self.trouble: WarehouseError | None = None
        self.trouble_at_s = 0.0
        self._stack = AsyncExitStack()
        self._writer = ThreadPoolExecutor(1, thread_name_prefix="warehouse")

    @property
    def clock(self) -> Clock:
        """The product's clock."""
        return self.settings.clock

    async def __aenter__(self) -> Self:
        async with AsyncExitStack() as stack:
            self.warehouse: Warehouse = await self.write(Warehouse.open, self.settings, self.holder)
            stack.push_async_callback(self._close_warehouse)
            self.watches = Watches(self.warehouse, self.write, self.settings.drift.detector)
            self.workshop = Workshop(self.settings.drift.idle_s)
            stack.push_async_callback(self.workshop.close)
            self.care, self.mending = Care(self), Mending(self)
            await self.load_repairs()
            self.pages = PageStore(self.settings, self.holder)
            stack.callback(self.pages.close)
            self.fetcher = await stack.enter_async_context(PoliteFetcher(self.settings))
            self.extraction = await stack.enter_async_context(ExtractionPool(self.settings.extract))
            await self.triage.load()
            self._stack = stack.pop_all()
        return self

    async def __aexit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        await self._stack.__aexit__(kind, error, trace)

    async def write(self, call: Callable[P, T], *args: P.args, **kwargs: P.kwargs) -> T:
        """Run a blocking call on the one thread that talks to the warehouse."""
        loop = asyncio.get_running_loop()
        return await loop.run_in_executor(self._writer, lambda: call(*args, **kwargs))

    async def match_rules(
        self, source: Source, articles: Sequence[StoredArticle]
    ) -> tuple[RuleHit, ...]:
        """Return what keyword rules find in articles of a source, as urgent as it is now."""
        matches = await self.triage.match(source, articles)
        if not matches:
            return ()
        bursts = await self.write(self.warehouse.read_bursts, rules_of(matches), self.clock.now())
        return self.triage.judge(source, matches, bursts)

    def source(self, name: str) -> Source:
        """Return the catalogue entry called `name`.

        Raises
        ------
        ConfigError
            If there is none; the message names near misses.
        """
        try:
            return self.sources[name]
        except KeyError:
            raise unknown_source(name, self.sources) from None

    def rules_of(self, source: Source) -> Source:
        """Return a source with the repair of its text that was adopted, where one was.

        Once people have changed its rules, these hold.
        """
        repair = self.repairs.get(source.source)
        holds = repair is not None and repair.basis == source.extract
        return repaired(source, repair) if repair and holds else source

    async def load_repairs(self) -> None:
        """Learn which repairs were adopted."""
        adopted = await self.write(self.warehouse.read_repairs, "adopted")
        self.repairs = {repair.source: repair for repair in adopted}

    def note_trouble(self, error: WarehouseError) -> None:
        """Remember that a poll could not be stored, and when (monotonic seconds)."""
        self.trouble, self.trouble_at_s = error, time.monotonic()

    async def take_catalogue(self, catalogue: Catalogue) -> None:
        """Go over to another catalogue while polls are under way; they end as they began.

        Where some of it cannot be read, what is missing stays as it was.
        """
        self.catalogue = catalogue
        if not catalogue.problems:
            self.sources.clear()
        self.sources.update({source.source: source for source in catalogue.sources})
        self.pricing.take_sources(self.sources.values())
        await self._sync()
        await self.update_price()

    async def sync_catalogue(self) -> None:
        """Bring the warehouse up to the catalogue, as the only writer there is.

        Leases that a killed process left are void. Where entries of the catalogue could not
        be read, nobody is taken for having left it: a slip of the pen must not stop a source.
        """
        await self.write(self.warehouse.release_leases)
        await self._sync()
        await self.load_habits()
        await self.load_incidents()

    async def load_incidents(self) -> None:
        """Learn what stands, and which hosts asked to be left alone for longer than we were off."""
        self.incidents.load(await self.write(self.warehouse.read_incidents))
        now = self.clock.now()
        for schedule in await self.write(self.warehouse.read_schedules):
            until, source = schedule.host_not_before, self.sources.get(schedule.source)
            if source is not None and until is not None and until > now:
                url = schedule.conduct.address or source.url
                self.fetcher.hold(url, (until - now).total_seconds(), schedule.reason)

    async def _sync(self) -> None:
        await self.write(
            self.warehouse.sync_sources,
            self.catalogue.sources,
            self.clock.now(),
            is_complete=not self.catalogue.problems,
        )

    async def load_habits(self) -> None:
        """Learn every source's habits from the warehouse: the nightly fits, and what came since."""
        models = await self.write(self.warehouse.read_intensity_models)
        since = self.clock.now() - RELIVED
        observed = await self.write(self.warehouse.read_observed, since)
        self.intensities.load(models, observed)
        await self.update_price()

    async def update_price(self, late_share: float = 0.0) -> BudgetReport:
        """Bring the price in line with the budget, with what was spent and what came late.

        Parameters
        ----------
        late_share
            Share of the polls since the last update that began late.
        """
        now = self.clock.now()
        polls, megabytes, first_at = await self.write(
            self.warehouse.read_spending, now - SPENDING_LOOKED_AT
        )
        spent = megabytes if self.pricing.counts_bytes else float(polls)
        lasted = now - first_at if first_at else timedelta(0)
        per_day = spent * (timedelta(days=1) / lasted) if lasted > LEAST_LOOKED_AT else None
        report = self.pricing.update(now, per_day, late_share)
        await self.write(self.warehouse.write_budget, report)
        return report

    async def _close_warehouse(self) -> None:
        await self.write(self.warehouse.close)
        self._writer.shutdown()


def repaired(source: Source, repair: Repair) -> Source:
    """Return a source that gets its text as a repair says."""
    method: Method = "auto" if repair.selector else cast("Method", repair.way)
    rules = replace(source.extract, text=repair.selector, method=method)
    return replace(source, extract=rules)


def unknown_source(
    name: str, known: Iterable[str], left_out: Sequence[ConfigError] = ()
) -> ConfigError:
    """Return the error for a source that is not in the catalogue, with near misses.

    Where entries were left out as wrong it may be one of them: the first is named.
    """
    import difflib

    near = difflib.get_close_matches(name, list(known), n=3)
    hint = f"did you mean {' or '.join(near)}?" if near else "its names are in data/sources"
    if left_out:
        hint += f"; what is wrong there was left out (`newsbeat doctor` has it all): {left_out[0]}"
    return ConfigError("catalogue", "", None, f"there is no source {name!r}; {hint}")


_current: Collector | None = None


def set_current(collector: Collector | None) -> None:
    """Name the collector that flow runs of this process use."""
    global _current  # noqa: PLW0603 - one process, one writer: the lease sees to it
    _current = collector


def current() -> Collector:
    """Return the collector of this process.

    Raises
    ------
    NewsbeatError
        If none is open: the flow runs outside a newsbeat worker.
    """
    if _current is None:
        raise NewsbeatError(
            "this flow runs inside a newsbeat worker; start one with `newsbeat worker`,"
            " or poll in the foreground with `newsbeat poll SOURCE`"
        )
    return _current


def worker_name() -> str:
    """Return a name for this process that people recognise in the UI."""
    return f"newsbeat {socket.gethostname()} {os.getpid()}"
