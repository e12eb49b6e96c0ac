"""Articles extracted in helper processes, so that no page can hold up or take down the rest.

A helper is a fresh interpreter that imports the extractor and nothing of its parent: no
``__main__``, no threads, no open files. It reads one page at a time from its standard
input and answers on its standard output. One that takes too long is killed, one that asks
for too much memory is refused it by the kernel, one that crashes is replaced; each costs
one :class:`~models.errors.ParseError`, for that page. A helper ends when its parent does,
however that came: the kernel kills it, and where the kernel cannot, its input has ended.

The pool is asyncio's own subprocesses: no threads to poll, nothing to fork, and a helper
starts in a third of a second. Library pools on ``multiprocessing`` import the parent's
``__main__`` into each child.
"""

from __future__ import annotations

import asyncio
import contextlib
import os
import pickle
import signal
import struct
import sys
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path
from types import TracebackType
from typing import Any, BinaryIO, Self

from models.errors import NewsbeatError, ParseError
from models.records import Article, ExtractRules, Fetched, Source
from tasks.articles import extract_article
from tasks.settings import ExtractSettings

SUSPECT_PAGES = 20
"""So many pages in a row must go well before a source is trusted again whose page did not."""

SUSPECT_NICENESS = 10

PAGES_PER_HELPER = 500
"""Parsers leak a little on every odd page; a helper is replaced before that adds up."""

START_TIMEOUT_S = 60.0
_END_TIMEOUT_S = 5.0
_ALARM_SLACK_S = 30
_MEBIBYTE = 2**20
_LENGTH = struct.Struct("!Q")
_PR_SET_PDEATHSIG = 1
_PROGRAM = "from tasks.extraction import serve_pages; serve_pages()"


@dataclass(frozen=True, slots=True)
class PageJob:
    """One page to extract, as a helper is given it."""

    body: bytes
    url: str
    content_type: str | None
    rules: ExtractRules
    language: str | None
    timezone: str
    now: datetime


class ExtractionPool:
    """Helper processes that extract articles, at most ``settings.workers`` at a time.

    A source one of whose pages took too long, too much memory or its helper's life is
    suspect: its pages wait for one another, in front of a helper of their own that gives
    way to everything else. So sixty pages of twenty seconds each hold up no other source.

    Use it as ``async with ExtractionPool(settings) as pool``, or call :meth:`start` and
    :meth:`close`. It belongs to the event loop it was started in.

    Parameters
    ----------
    settings
        Number of helpers, and the time and memory one page may take.

    Examples
    --------
    >>> async def title_of(fetched, source, now):
    ...     async with ExtractionPool(ExtractSettings()) as pool:
    ...         return (await pool.extract(fetched, source, now)).title
    """

    def __init__(self, settings: ExtractSettings) -> None:
        self.settings = settings
        self._idle: asyncio.Queue[_Helper] = asyncio.Queue()
        self._helpers = [_Helper(settings) for _ in range(max(settings.workers, 1))]
        self._aside = _Helper(settings, SUSPECT_NICENESS)
        self._aside_is_free = asyncio.Lock()
        self._suspects: dict[str, int] = {}
        self._is_closed = False
        for helper in self._helpers:
            self._idle.put_nowait(helper)

    async def __aenter__(self) -> Self:
        await self.start()
        return self

    async def __aexit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        await self.close()

    async def start(self) -> None:
        """Start the helpers, so that the first page need not wait for one."""
        await asyncio.gather(*(self._start_one() for _ in self._helpers))

    async def _start_one(self) -> None:
        helper = await self._idle.get()
        try:
            await helper.start()
        finally:
            self._idle.put_nowait(helper)

    async def extract(self, fetched: Fetched, source: Source, now: datetime) -> Article:
        """Return the article on a fetched page.

        Waits for a free helper as long as it takes; the time limit counts from then. A page
        that ends its helper is tried once more: something else may have ended it.

        Parameters
        ----------
        fetched
            The page.
        source
            Its source: rules, language and zone.
        now
            The present.

        Raises
        ------
        ParseError
            If the page is no article page, takes too long or too much memory, or kills
            its helper. Other pages are not affected.
        NewsbeatError
            If no helper can be had: that says nothing of the page.
        """
        job = PageJob(
            fetched.body,
            fetched.final_url,
            fetched.content_type,
            source.extract,
            source.language,
            source.timezone,
            now,
        )
        try:
            return await self._extract_in_line(job, source.source)
        except _EndedError as error:
            self._suspects[source.source] = SUSPECT_PAGES
            if not error.may_be_chance:
                raise
        return await self._extract_aside(job, source.source)

    async def _extract_in_line(self, job: PageJob, source: str) -> Article:
        if source not in self._suspects:
            helper = await self._idle.get()
            try:
                # It may have become suspect while it waited.
                if source not in self._suspects:
                    return await self._extract_by(helper, job)
            finally:
                self._idle.put_nowait(helper)
        return await self._extract_aside(job, source)

    async def _extract_aside(self, job: PageJob, source: str) -> Article:
        async with self._aside_is_free:
            try:
                article = await self._extract_by(self._aside, job)
            except _EndedError:
                self._suspects[source] = SUSPECT_PAGES
                raise
            left = self._suspects.get(source, 0) - 1
            if left > 0:
                self._suspects[source] = left
            else:
                self._suspects.pop(source, None)
            return article

    async def _extract_by(self, helper: _Helper, job: PageJob) -> Article:
        if self._is_closed:
            raise NewsbeatError("the extraction pool is closed")
        return await helper.extract(job)

    async def close(self) -> None:
        """End all helpers. Pages under way fail; calling it twice does no harm."""
        self._is_closed = True
        await asyncio.gather(*(helper.stop() for helper in [*self._helpers, self._aside]))


class _EndedError(ParseError):
    """A page whose helper had to be ended, or ended itself."""

    def __init__(self, url: str, reason: str, may_be_chance: bool = False) -> None:
        super().__init__(url, reason)
        self.may_be_chance = may_be_chance


class _Helper:
    """One place for a helper process; the process behind it changes."""

    def __init__(self, settings: ExtractSettings, niceness: int = 0) -> None:
        self.settings = settings
        self.niceness = niceness
        self.process: asyncio.subprocess.Process | None = None
        self.pages_left = 0

    async def start(self) -> None:
        if self.process is not None and self.process.returncode is None and self.pages_left > 0:
            return
        await self.stop()
        self.process = await asyncio.create_subprocess_exec(
            sys.executable,
            "-P",
            "-c",
            _PROGRAM,
            str(self.settings.memory_mb),
            str(self.settings.timeout_s),
            str(os.getpid()),
            str(self.niceness),
            stdin=asyncio.subprocess.PIPE,
            stdout=asyncio.subprocess.PIPE,
            stderr=asyncio.subprocess.DEVNULL,
            env=_environment(),
            start_new_session=True,
        )
        self.pages_left = PAGES_PER_HELPER
        # Not wait_for, here and below: it swallows a cancellation that comes with an answer.
        async with asyncio.timeout(START_TIMEOUT_S):
            await self._receive()

    async def extract(self, job: PageJob) -> Article:
        is_whole = False
        try:
            await self._start_for(job.url)
            self.pages_left -= 1
            async with asyncio.timeout(self.settings.timeout_s):
                answer = await self._exchange(job)
            is_whole = not isinstance(answer, MemoryError)
        except TimeoutError as error:
            limit = f"{self.settings.timeout_s:g} s"
            raise _EndedError(job.url, f"extraction took longer than {limit}, ended") from error
        except (asyncio.IncompleteReadError, ConnectionError) as error:
            reason = f"the page ended its extractor: {await self._end()}"
            raise _EndedError(job.url, reason, may_be_chance=True) from error
        finally:
            if not is_whole:
                await self.stop()
        return self._article_of(job.url, answer)

    async def _start_for(self, url: str) -> None:
        try:
            await self.start()
        except (OSError, TimeoutError, asyncio.IncompleteReadError) as error:
            reason = f"no extraction process can be started ({type(error).__name__}: {error})"
            raise NewsbeatError(f"{url}: {reason}") from error

    def _article_of(self, url: str, answer: object) -> Article:
        if isinstance(answer, MemoryError):
            limit = f"{self.settings.memory_mb} MiB"
            raise _EndedError(url, f"extraction needs more memory than {limit}")
        if isinstance(answer, ParseError):
            raise answer
        if not isinstance(answer, Article):
            raise ParseError(url, f"the extractor broke: {answer}")
        return answer

    async def _exchange(self, job: PageJob) -> object:
        assert self.process is not None
        assert self.process.stdin is not None
        payload = pickle.dumps(job, pickle.HIGHEST_PROTOCOL)
        self.process.stdin.write(_LENGTH.pack(len(payload)))
        self.process.stdin.write(payload)
        await self.process.stdin.drain()
        return await self._receive()

    async def _receive(self) -> object:
        assert self.process is not None
        assert self.process.stdout is not None
        (length,) = _LENGTH.unpack(await self.process.stdout.readexactly(_LENGTH.size))
        # The bytes come from our own helper, which pickles records and errors of ours only.
        return pickle.loads(await self.process.stdout.readexactly(length))  # noqa: S301

    async def _end(self) -> str:
        """Return how the process ended, in words."""
        process = self.process
        if process is None:
            return "the pool was closed"
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(_END_TIMEOUT_S):
                await process.wait()
        code = process.returncode
        return signal.Signals(-code).name if code is not None and code < 0 else f"exit code {code}"

    async def stop(self) -> None:
        process, self.process = self.process, None
        if process is None:
            return
        if process.returncode is None:
            with contextlib.suppress(ProcessLookupError):
                process.kill()
        await process.wait()
        if process.stdin is not None:
            process.stdin.close()


def _environment() -> dict[str, str]:
    """Return the parent's environment, with this package importable and threads kept few."""
    root = str(Path(__file__).resolve().parents[1])
    path = os.pathsep.join(part for part in (root, os.environ.get("PYTHONPATH", "")) if part)
    return {
        **os.environ,
        "PYTHONPATH": path,
        "OMP_NUM_THREADS": "1",
        "OPENBLAS_NUM_THREADS": "1",
        "PYTHONUTF8": "1",
    }


# --- inside the helper ---------------------------------------------------------------


def serve_pages() -> None:
    """Extract pages from standard input until it ends: the whole life of a helper.

    Arguments of the process: memory limit in MiB, time limit in seconds, parent's id, and
    how much it gives way to others.
    """
    memory_mb, timeout_s, parent = int(sys.argv[1]), float(sys.argv[2]), int(sys.argv[3])
    _die_with(parent)
    os.nice(int(sys.argv[4]))
    requests, answers = _private_streams()
    _limit_memory(memory_mb)
    _send(answers, "ready")
    while True:
        job = _read_job(requests)
        if job is None:
            return
        # Where the kernel does not tell of a parent's death, a stuck page still ends.
        signal.alarm(int(timeout_s) + _ALARM_SLACK_S)
        _send(answers, _answer(job))
        signal.alarm(0)


def _die_with(parent: int) -> None:
    """Ask the kernel to kill this process when its parent ends."""
    if sys.platform == "linux":
        import ctypes

        ctypes.CDLL(None).prctl(_PR_SET_PDEATHSIG, signal.SIGKILL)
    if os.getppid() != parent:
        sys.exit("the parent is gone")


def _private_streams() -> tuple[BinaryIO, BinaryIO]:
    """Take the streams for ourselves: what a library prints must not mix with answers."""
    requests, answers = os.fdopen(os.dup(0), "rb"), os.fdopen(os.dup(1), "wb")
    nothing = os.open(os.devnull, os.O_RDWR)
    os.dup2(nothing, 0)
    os.dup2(nothing, 1)
    return requests, answers


def _limit_memory(memory_mb: int) -> None:
    import resource

    kind = resource.RLIMIT_DATA if sys.platform == "linux" else resource.RLIMIT_AS
    with contextlib.suppress(ValueError, OSError):
        resource.setrlimit(kind, (memory_mb * _MEBIBYTE, memory_mb * _MEBIBYTE))
    with contextlib.suppress(ValueError, OSError):
        resource.setrlimit(resource.RLIMIT_CORE, (0, 0))


def _read_job(requests: BinaryIO) -> PageJob | None:
    head = requests.read(_LENGTH.size)
    if len(head) < _LENGTH.size:
        return None
    (length,) = _LENGTH.unpack(head)
    job = pickle.loads(requests.read(length))  # noqa: S301 - our parent's own bytes
    return job if isinstance(job, PageJob) else None


def _answer(job: PageJob) -> object:
    try:
        return extract_article(
            job.body,
            url=job.url,
            content_type=job.content_type,
            rules=job.rules,
            language=job.language,
            timezone=job.timezone,
            now=job.now,
        )
    except ParseError as error:
        return ParseError(error.url, error.reason)
    except MemoryError:
        return MemoryError()


def _send(answers: BinaryIO, answer: Any) -> None:
    payload = pickle.dumps(answer, pickle.HIGHEST_PROTOCOL)
    answers.write(_LENGTH.pack(len(payload)))
    answers.write(payload)
    answers.flush()
