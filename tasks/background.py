"""A process that computes beside this one, and gives way to it.

Threads that work in Python hold up the event loop by milliseconds at a time; a process
of low priority does not. It is started anew (not forked: threads and locks of this one
have no place in it), answers one call after another, and ends with whoever started it.
"""

from __future__ import annotations

import asyncio
import multiprocessing
import os
from collections.abc import Callable
from contextlib import suppress
from multiprocessing.connection import Connection
from types import TracebackType
from typing import Any, ParamSpec, Self, TypeVar

from models.errors import NewsbeatError

P = ParamSpec("P")
T = TypeVar("T")

NICENESS = 10
"""How far it stands back: it runs when nothing more urgent wants the processor."""

PATIENCE_S, LEAVING_S = 5.0, 1.0


class Background:
    """A helper process. Use as an async context manager; leaving it ends the process.

    Parameters
    ----------
    begin
        Called once in the process before any call, with `arguments`. Like everything
        called there it must be importable by name.

    Examples
    --------
    >>> async def two_and_two():
    ...     async with Background() as helper:
    ...         return await helper.call(int.__add__, 2, 2)
    """

    def __init__(self, begin: Callable[..., object] | None = None, *arguments: Any) -> None:
        context = multiprocessing.get_context("spawn")
        self._connection, theirs = context.Pipe()
        self._process = context.Process(
            target=_serve, args=(theirs, begin, arguments), name="newsbeat background", daemon=True
        )
        self._theirs = theirs
        self._is_busy = False

    async def __aenter__(self) -> Self:
        await asyncio.to_thread(self._process.start)
        self._theirs.close()
        return self

    async def __aexit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        await asyncio.to_thread(self._end)

    @property
    def pid(self) -> int | None:
        """Number of the process."""
        return self._process.pid

    @property
    def is_running(self) -> bool:
        """Whether it is there to answer."""
        return self._process.is_alive()

    async def call(self, function: Callable[P, T], *args: P.args, **kwargs: P.kwargs) -> T:
        """Return what `function` returns there; what it raises is raised here.

        Raises
        ------
        NewsbeatError
            If the process ends instead of answering.
        """
        if self._is_busy:
            raise RuntimeError("one call at a time")
        self._is_busy = True
        try:
            await asyncio.to_thread(self._connection.send, (function, args, kwargs))
            is_good, answer = await self._receive()
        except (EOFError, OSError) as error:
            await asyncio.to_thread(self._process.join, PATIENCE_S)
            raise NewsbeatError(
                f"the background process ended (exit {self._process.exitcode})"
            ) from error
        finally:
            self._is_busy = False
        if not is_good:
            raise answer
        result: T = answer
        return result

    async def _receive(self) -> tuple[bool, Any]:
        try:
            answer: tuple[bool, Any] = await asyncio.to_thread(self._connection.recv)
        except asyncio.CancelledError:
            # The thread that waits would wait on; with the process gone it does not.
            self._process.kill()
            raise
        return answer

    def _end(self) -> None:
        was_busy = self._is_busy
        self._connection.close()
        if self._process.pid is not None:
            if not was_busy:
                # With nobody to ask it ends by itself, and tidies up.
                self._process.join(LEAVING_S)
            self._process.terminate()
            self._process.join(PATIENCE_S)
            if self._process.is_alive():
                self._process.kill()
                self._process.join()


def _serve(
    connection: Connection, begin: Callable[..., object] | None, arguments: tuple[Any, ...]
) -> None:
    """Answer calls until whoever asks is gone."""
    os.nice(NICENESS)
    is_begun, failure = _answer(begin, arguments, {}) if begin else (True, None)
    # Both ends of the pipe close with the one who asks.
    with suppress(EOFError, OSError, KeyboardInterrupt):
        while True:
            function, args, kwargs = connection.recv()
            answer = _answer(function, args, kwargs) if is_begun else (False, failure)
            connection.send(answer)


def _answer(
    function: Callable[..., object], args: tuple[Any, ...], kwargs: dict[str, Any]
) -> tuple[bool, Any]:
    """Return whether a call went well, and what it returned or raised."""
    try:
        return True, function(*args, **kwargs)
    except Exception as error:  # noqa: BLE001 - it is raised where it was asked
        return False, error
