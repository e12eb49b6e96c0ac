"""When a host may be asked again: one queue per registered domain, on the product's clock."""

from __future__ import annotations

import asyncio
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from types import TracebackType
from typing import Self

from models.errors import HeldFetchError
from tasks.clock import Clock

MAX_CRAWL_DELAY_S = 30.0
"""Some sites ask for minutes between requests; at more than this, nothing of them is read."""

MAX_HOLD_S = 86_400.0
"""A host that asks to be left alone for longer is asked again after a day."""

MAX_WAIT_S = 60.0
"""Who would wait longer for a host that asked for quiet is told so instead: a poll that
sleeps takes the place of one that could work."""

_MAX_IDLE_HOSTS = 1024


@dataclass(slots=True)
class _Host:
    """One host: who is next, when, and how many are at it."""

    slots: asyncio.Semaphore
    start: asyncio.Lock = field(default_factory=asyncio.Lock)
    n_turns: int = 0
    next_at: datetime | None = None
    gap: timedelta = timedelta(0)
    not_before: datetime | None = None

    def heed_clock(self, now: datetime) -> None:
        """Shorten waits that only a clock put back can have made so long."""
        if self.next_at is not None:
            self.next_at = min(self.next_at, now + self.gap)
        if self.not_before is not None:
            self.not_before = min(self.not_before, now + timedelta(seconds=MAX_HOLD_S))

    def is_idle(self, now: datetime) -> bool:
        moments = (self.next_at, self.not_before)
        return self.n_turns == 0 and all(at is None or at <= now for at in moments)


class Turn:
    """Leave to make one request to a host. End it when the answer is in."""

    def __init__(self, host: _Host) -> None:
        self._host = host
        self._is_over = False

    def end(self) -> None:
        """Let the next one go; a second call does nothing."""
        if not self._is_over:
            self._is_over = True
            self._host.n_turns -= 1
            self._host.slots.release()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.end()


class HostPacer:
    """Keeps a gap between the starts of two requests to one host, and their number low.

    Who asks first goes first. Giving up while waiting costs the others nothing. A host
    that nobody asks for is forgotten.

    Parameters
    ----------
    clock
        The product's clock: gaps are in its seconds, so that a fast replay stays fast.
    gap_s
        Least seconds between two requests.
    connections
        Most requests at a time.
    """

    def __init__(self, clock: Clock, gap_s: float, connections: int) -> None:
        self._clock = clock
        self._gap_s = gap_s
        self._connections = connections
        self._hosts: dict[str, _Host] = {}

    async def take_turn(
        self, host: str, *, gap_s: float | None = None, crawl_delay_s: float | None = None
    ) -> Turn:
        """Wait until `host` may be asked, and return the leave to do it.

        Parameters
        ----------
        host
            Whom the pace is kept for: the registered domain, however its hosts are called.
        gap_s
            The source's own gap, in place of the general one.
        crawl_delay_s
            What the site's robots.txt asks for: it lengthens the gap, up to 30 s.

        Raises
        ------
        HeldFetchError
            If the host asked to be left alone for more than a minute from now.
        """
        state = self._state(host)
        state.n_turns += 1
        has_slot = False
        try:
            self._check_hold(host, state)
            await state.slots.acquire()
            has_slot = True
            async with state.start:
                await self._wait(host, state)
                gap = self._gap_s if gap_s is None else gap_s
                gap = max(gap, min(crawl_delay_s or 0.0, MAX_CRAWL_DELAY_S))
                state.gap = timedelta(seconds=gap)
                state.next_at = self._clock.now() + state.gap
        except BaseException:
            state.n_turns -= 1
            if has_slot:
                state.slots.release()
            raise
        return Turn(state)

    def hold(self, host: str, seconds: float) -> None:
        """Leave `host` alone for `seconds` from now, at most a day."""
        until = self._clock.now() + timedelta(seconds=min(seconds, MAX_HOLD_S))
        state = self._state(host)
        state.not_before = max(state.not_before or until, until)

    def not_before(self, host: str) -> datetime | None:
        """Return until when `host` is left alone, None where it may be asked."""
        state = self._hosts.get(host)
        if state is None or state.not_before is None or state.not_before <= self._clock.now():
            return None
        return state.not_before

    @property
    def n_hosts(self) -> int:
        """Number of hosts remembered."""
        return len(self._hosts)

    async def _wait(self, host: str, state: _Host) -> None:
        while True:
            state.heed_clock(self._clock.now())
            self._check_hold(host, state)
            moments = [at for at in (state.next_at, state.not_before) if at is not None]
            at = max(moments, default=None)
            if at is None or at <= self._clock.now():
                return
            await self._clock.sleep_until(at)

    def _check_hold(self, host: str, state: _Host) -> None:
        if state.not_before is None:
            return
        left_s = (state.not_before - self._clock.now()) / timedelta(seconds=1)
        if left_s > MAX_WAIT_S:
            raise HeldFetchError(
                host, f"{host} is left alone for {left_s:.0f} s more", None, None, left_s
            )

    def _state(self, host: str) -> _Host:
        if host not in self._hosts:
            if len(self._hosts) >= _MAX_IDLE_HOSTS:
                self._forget_idle()
            self._hosts[host] = _Host(asyncio.Semaphore(self._connections))
        return self._hosts[host]

    def _forget_idle(self) -> None:
        now = self._clock.now()
        idle = [name for name, state in self._hosts.items() if state.is_idle(now)]
        for name in idle:
            del self._hosts[name]
