"""A helper process that is there when it is wanted, and ends when it no longer is."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable
from contextlib import suppress
from typing import ParamSpec, TypeVar

from models.errors import NewsbeatError
from tasks.background import Background

P = ParamSpec("P")
T = TypeVar("T")

LONGEST_CALL_S = 300.0
"""A call that takes longer is given up, and the process ended."""


class Workshop:
    """Does one thing after another in a process beside this one.

    Parameters
    ----------
    idle_s
        The process ends when nothing was asked of it for so long: it may hold 300 MB.
    """

    def __init__(self, idle_s: float) -> None:
        self._idle_s = idle_s
        self._one_at_a_time = asyncio.Lock()
        self._helper: Background | None = None
        self._used_at = 0.0
        self._watch: asyncio.Task[None] | None = None

    @property
    def is_busy(self) -> bool:
        """Whether something is being done."""
        return self._one_at_a_time.locked()

    async def call(self, function: Callable[P, T], *args: P.args, **kwargs: P.kwargs) -> T:
        """Return what `function`, importable by name, returns there.

        Raises
        ------
        NewsbeatError
            If the process ends instead of answering, or takes too long.
        """
        async with self._one_at_a_time:
            helper = await self._started()
            try:
                async with asyncio.timeout(LONGEST_CALL_S):
                    return await helper.call(function, *args, **kwargs)
            except TimeoutError as error:
                await self._end()
                raise NewsbeatError(f"given up after {LONGEST_CALL_S:g} s") from error
            except asyncio.CancelledError:
                await self._end()
                raise
            finally:
                self._used_at = time.monotonic()

    async def close(self) -> None:
        """End the process."""
        if self._watch is not None:
            self._watch.cancel()
            with suppress(asyncio.CancelledError):
                await self._watch
        await self._end()

    async def _started(self) -> Background:
        if self._helper is not None and not self._helper.is_running:
            await self._end()
        if self._helper is None:
            self._helper = await Background().__aenter__()
            self._used_at = time.monotonic()
            self._watch = asyncio.create_task(self._end_when_idle())
        return self._helper

    async def _end(self) -> None:
        helper, self._helper = self._helper, None
        if helper is not None:
            await helper.__aexit__(None, None, None)

    async def _end_when_idle(self) -> None:
        while self._helper is not None:
            await asyncio.sleep(max(self._used_at + self._idle_s - time.monotonic(), 1.0))
            async with self._one_at_a_time:
                if time.monotonic() - self._used_at >= self._idle_s:
                    await self._end()
                    return
