"""The product's clock: every moment and every wait comes from here.

A clock runs from an *anchor*: at wall time ``anchor_wall`` it showed
``anchor_at``, and since then it runs ``speed`` times as fast as the wall clock.
Speed 1 with no anchor is ordinary time; a replay runs a recorded day in
minutes. Processes agree on the time by sharing the anchor (``Clock.spell`` and
``Clock.read_spelling``).
"""

from __future__ import annotations

import asyncio
import time
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta

FASTEST = 1e6
LATEST_S = 221_845_392_000.0
"""Seconds from 1970 to 9000: what follows is no time for the standard library."""


@dataclass(frozen=True, slots=True)
class Clock:
    """Now, and sleep until.

    Parameters
    ----------
    speed
        Seconds of the product's time per second of the wall's, > 0.
    anchor_wall
        Wall time of the anchor, seconds since 1970.
    anchor_at
        What the clock showed then, seconds since 1970.

    Examples
    --------
    >>> clock = Clock(speed=60.0, anchor_wall=1000.0, anchor_at=5000.0)
    >>> clock.at_wall(1001.0).timestamp()
    5060.0
    >>> clock.wall_of(clock.at_wall(1001.0))
    1001.0
    >>> Clock.read_spelling(clock.spell()) == clock
    True
    """

    speed: float = 1.0
    anchor_wall: float = 0.0
    anchor_at: float = 0.0

    @classmethod
    def starting_at(cls, at: datetime, speed: float) -> Clock:
        """Return a clock that shows `at` now and runs `speed` times as fast as the wall."""
        return cls(speed=speed, anchor_wall=time.time(), anchor_at=at.timestamp())

    @classmethod
    def read_spelling(cls, text: str) -> Clock:
        """Return the clock that :meth:`spell` wrote.

        Raises
        ------
        ValueError
            If the text is not three numbers joined by ``:`` with a speed above 0, or what it
            shows now is no date.
        """
        speed, wall, at = (float(part) for part in text.split(":"))
        if not 0.0 < speed <= FASTEST:
            raise ValueError(f"clock speed must be above 0 and at most {FASTEST:g}, not {speed}")
        shows_s = at + (time.time() - wall) * speed
        if not 0.0 <= shows_s <= LATEST_S:
            raise ValueError("what it shows now would be no date")
        return cls(speed, wall, at)

    def spell(self) -> str:
        """Return the clock as text that another process can read."""
        return f"{self.speed!r}:{self.anchor_wall!r}:{self.anchor_at!r}"

    def at_wall(self, wall: float) -> datetime:
        """Return what the clock shows at wall time `wall` (seconds since 1970)."""
        return datetime.fromtimestamp(self.anchor_at + (wall - self.anchor_wall) * self.speed, UTC)

    def wall_of(self, at: datetime) -> float:
        """Return the wall time, in seconds since 1970, at which the clock shows `at`."""
        return self.anchor_wall + (at.timestamp() - self.anchor_at) / self.speed

    def wall_time_of(self, at: datetime) -> datetime:
        """Return :meth:`wall_of` as an aware time: what Prefect's schedule is told."""
        return datetime.fromtimestamp(self.wall_of(at), UTC)

    def now(self) -> datetime:
        """Return the present moment, aware UTC."""
        return self.at_wall(time.time())

    async def sleep(self, seconds: float) -> None:
        """Wait `seconds` of the product's time."""
        await asyncio.sleep(max(seconds, 0.0) / self.speed)

    async def sleep_until(self, at: datetime) -> None:
        """Wait until the clock shows `at`; a moment in the past returns at once."""
        await self.sleep((at - self.now()) / timedelta(seconds=1))
