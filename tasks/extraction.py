"""Pages read in helper processes, so that none can hold up or take down the rest.

A helper is a fresh interpreter that imports the extractor and nothing of its parent: no
``__main__``, no threads, no open files. It reads one page at a time from its standard
input and answers on its standard output. One that takes too long is killed, one that asks
for too much memory is refused it by the kernel, one that crashes is replaced; each costs
one :class:`~models.errors.ParseError`, for that page. A helper ends when its parent does,
however that came: the kernel kills it, and where the kernel cannot, its input has ended.

A page is slow once its helper has worked on it for a third of a second. Its helper then leaves
the line, gives way to everything else, and one that was kept ready takes its place: whoever
waits behind a hostile page waits for that long, not for its time limit.

The pool is asyncio's own subprocesses: no threads to poll, nothing to fork, and a helper
starts in a third of a second. Library pools on ``multiprocessing`` import the parent's
``__main__`` into each child.
"""

from __future__ import annotations

import asyncio
import contextlib
import os
import pickle
import resource
import signal
import struct
import sys
import time
from collections.abc import Callable
from dataclasses import dataclass
from datetime import datetime
from functools import partial
from pathlib import Path
from types import TracebackType
from typing import Any, BinaryIO, Self, TypeVar, cast

import psutil

from models.errors import NewsbeatError, ParseError
from models.records import Article, Fetched, Source
from tasks.articles import extract_article
from tasks.memory import peak_bytes
from tasks.settings import ExtractSettings

SMALL_BYTES = 32 * 1024
"""Smaller listings may be parsed on the spot. Larger ones are for a helper: a hostile megabyte
can take a parser minutes, or gigabytes, and a helper can be ended."""

SUSPECT_PAGES = 20
"""So many pages in a row must go well before a source is trusted again whose page did not."""

SUSPECT_NICENESS = 10

PATIENCE_S = 0.3
"""Processor time after which a page counts as slow. Ordinary ones take a tenth of it."""

LARGE_BYTES = 2 * 2**20
"""Larger pages wait for one another, as those of suspect sources do: whatever is in them, they
take long, and few are any."""

SUSPECT_AFTER_S = 5.0
"""A source whose slow page took so long, though it was read in the end, is suspect too."""

MAX_SLOW = 4
"""So many slow pages at a time leave the line, each with a process of its own."""

PAGES_PER_HELPER = 500
"""Parsers leak a little on every odd page; a helper is replaced before that adds up."""

START_TIMEOUT_S = 60.0
_END_TIMEOUT_S = 5.0
_ALARM_SLACK_S = 30
_MEBIBYTE = 2**20
_LOOK_EVERY_S = 0.05
_LENGTH = struct.Struct("!Q")
_PR_SET_PDEATHSIG = 1
_LIMITED = resource.RLIMIT_DATA if sys.platform == "linux" else resource.RLIMIT_AS
_NO_START = (OSError, TimeoutError, asyncio.IncompleteReadError)
_PROGRAM = "from tasks.extraction import serve_pages; serve_pages()"


T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class _Answer:
    """What a helper made of a page, and its processor seconds."""

    value: object
    cpu_s: float


@dataclass(frozen=True, slots=True)
class _Broken:
    """A defect that a page brought to light, in words."""

    words: str


class ExtractionPool:
    """Helper processes that read pages, at most ``settings.workers`` at a time.

    A source one of whose pages took too long, too much memory or its helper's life is
    suspect: its pages wait for one another, in front of a helper of their own that gives
    way to everything else. So sixty pages of twenty seconds each hold up no other source.

    Use it as ``async with ExtractionPool(settings) as pool``, or call :meth:`start` and
    :meth:`close`. It belongs to the event loop it was started in.

    Parameters
    ----------
    settings
        Number of helpers, and the time and memory one page may take.
    keeps_spare
        Keep a helper ready to stand in for one with a slow page. For whoever reads a
        single page it is not worth its start.

    Examples
    --------
    >>> async def title_of(fetched, source, now):
    ...     async with ExtractionPool(ExtractSettings()) as pool:
    ...         return (await pool.extract(fetched, source, now)).title
    """

    def __init__(self, settings: ExtractSettings, *, keeps_spare: bool = True) -> None:
        self.settings = settings
        self._keeps_spare = keeps_spare
        self._idle: asyncio.Queue[_Helper] = asyncio.Queue()
        self._helpers = [_Helper(settings) for _ in range(max(settings.workers, 1))]
        self._aside = _Helper(settings, SUSPECT_NICENESS)
        self._aside_is_free = asyncio.Lock()
        self._spares: list[_Helper] = []
        self._starting: set[asyncio.Task[None]] = set()
        self._slow: set[_Helper] = set()
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
        self._keep_spare()

    async def _start_one(self) -> None:
        helper = await self._idle.get()
        try:
            await helper.start()
        finally:
            self._idle.put_nowait(helper)

    def _keep_spare(self) -> None:
        """Start a spare helper in the background, where none is ready or about to be."""
        is_wanted = self._keeps_spare and not self._is_closed and len(self._slow) < MAX_SLOW
        if is_wanted and not self._spares and not self._starting:
            task = asyncio.create_task(self._start_spare())
            self._starting.add(task)
            task.add_done_callback(self._starting.discard)

    async def _start_spare(self) -> None:
        spare = _Helper(self.settings)
        try:
            await spare.start()
        except _NO_START:
            # The next slow page tries again; until then pages wait as they must.
            await spare.stop()
        except BaseException:
            await spare.stop()
            raise
        else:
            self._spares.append(spare)

    async def extract(self, fetched: Fetched, source: Source, now: datetime) -> Article:
        """Return the article on a fetched page.

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
        ParseError, NewsbeatError
            As :meth:`run` does; also if the page is no article page.
        """
        work = partial(
            extract_article,
            fetched.body,
            url=fetched.final_url,
            content_type=fetched.content_type,
            rules=source.extract,
            language=source.language,
            timezone=source.timezone,
            now=now,
        )
        article, _ = await self.run(work, fetched.final_url, source.source)
        return article

    async def read(self, work: Callable[[], T], page: Fetched, source: str) -> T:
        """Return what `work` on a page makes: on the spot where it is small, else in a helper.

        Raises
        ------
        ParseError, NewsbeatError
            As :meth:`run` does.
        """
        if len(page.body) <= SMALL_BYTES:
            return work()
        found, _ = await self.run(work, page.final_url, source)
        return found

    async def run(self, work: Callable[[], T], url: str, source: str) -> tuple[T, float]:
        """Return what `work` on one page makes, done in a helper, and its processor seconds.

        Waits for a free helper as long as it takes; the time limit counts from then. A page
        that ends its helper is tried once more: something else may have ended it.

        Parameters
        ----------
        work
            A function of a module with its arguments (``functools.partial``), which can be
            pickled; what it raises must be a `ParseError`.
        url
            Address of the page, for errors.
        source
            Name of its source.

        Raises
        ------
        ParseError
            If `work` does, takes too long or too much memory, breaks, or kills its helper.
            Other pages are not affected.
        NewsbeatError
            If no helper can be had: that says nothing of the page.
        """
        job = _Job(pickle.dumps(work, pickle.HIGHEST_PROTOCOL), url, source)
        try:
            answer = await self._run_in_line(job)
        except _EndedError as error:
            self._suspects[source] = SUSPECT_PAGES
            if not error.may_be_chance:
                raise
            answer = await self._run_aside(job)
        return cast("T", answer.value), answer.cpu_s

    async def _run_in_line(self, job: _Job) -> _Answer:
        if job.source not in self._suspects and len(job.payload) <= LARGE_BYTES:
            helper = await self._idle.get()
            # It may have become suspect while it waited.
            if job.source not in self._suspects:
                return await self._run_watched(helper, job)
            self._idle.put_nowait(helper)
        return await self._run_aside(job)

    async def _run_watched(self, helper: _Helper, job: _Job) -> _Answer:
        """Have a page read in line, and its helper replaced there once it is slow."""
        watch = asyncio.create_task(self._watch(helper, job.source))
        try:
            return await self._run_by(helper, job)
        finally:
            watch.cancel()
            if helper in self._slow:
                self._trust_again(job.source, helper.worked_s())
                await self._end_slow(helper)
            else:
                self._idle.put_nowait(helper)

    async def _watch(self, helper: _Helper, source: str) -> None:
        """Take a helper out of line once its page is slow and there is one to replace it."""
        is_ready = False
        while not is_ready:  # no event tells of processor time
            await asyncio.sleep(_LOOK_EVERY_S)
            is_slow = helper.worked_s() >= PATIENCE_S
            if is_slow:
                self._keep_spare()
            is_ready = is_slow and bool(self._spares) and len(self._slow) < MAX_SLOW
        self._take_out_of_line(helper, source)

    def _take_out_of_line(self, helper: _Helper, source: str) -> None:
        self._slow.add(helper)
        # Until this page is read, the others of its source wait aside.
        self._suspects.setdefault(source, 1)
        helper.give_way()
        spare = self._spares.pop()
        self._helpers[self._helpers.index(helper)] = spare
        self._idle.put_nowait(spare)
        self._keep_spare()

    def _trust_again(self, source: str, worked_s: float) -> None:
        if worked_s >= SUSPECT_AFTER_S:
            self._suspects[source] = SUSPECT_PAGES
        elif self._suspects.get(source) == 1:
            del self._suspects[source]

    async def _end_slow(self, helper: _Helper) -> None:
        # It cannot be given back the rank it had.
        self._slow.discard(helper)
        await helper.stop()
        self._keep_spare()

    async def _run_aside(self, job: _Job) -> _Answer:
        async with self._aside_is_free:
            try:
                answer = await self._run_by(self._aside, job)
            except _EndedError:
                self._suspects[job.source] = SUSPECT_PAGES
                raise
            left = self._suspects.get(job.source, 0) - 1
            if left > 0:
                self._suspects[job.source] = left
            else:
                self._suspects.pop(job.source, None)
            return answer

    async def _run_by(self, helper: _Helper, job: _Job) -> _Answer:
        if self._is_closed:
            raise NewsbeatError("the extraction pool is closed")
        return await helper.run(job)

    async def close(self) -> None:
        """End all helpers. Pages under way fail; calling it twice does no harm."""
        self._is_closed = True
        starting = list(self._starting)
        for task in starting:
            task.cancel()
        await asyncio.gather(*starting, return_exceptions=True)
        helpers = [*self._helpers, *self._spares, *self._slow, self._aside]
        await asyncio.gather(*(helper.stop() for helper in helpers))


@dataclass(frozen=True, slots=True)
class _Job:
    """Work on one page, pickled, and what it is told apart by."""

    payload: bytes
    url: str
    source: str


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
        self._cpu_before_s: float | None = None

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

    def worked_s(self) -> float:
        """Return the processor seconds spent on the page under way."""
        if self._cpu_before_s is None:
            return 0.0
        return max(self._cpu_s() - self._cpu_before_s, 0.0)

    def _cpu_s(self) -> float:
        if self.process is None:
            return 0.0
        try:
            times = psutil.Process(self.process.pid).cpu_times()
        except psutil.Error:
            return 0.0
        return float(times.user + times.system)

    def give_way(self) -> None:
        """Let everything else on the machine go first, from now on."""
        if self.process is not None:
            with contextlib.suppress(psutil.Error, OSError):
                psutil.Process(self.process.pid).nice(SUSPECT_NICENESS)

    async def run(self, job: _Job) -> _Answer:
        is_whole, self._cpu_before_s = False, None
        try:
            await self._start_for(job.url)
            self.pages_left -= 1
            self._cpu_before_s = self._cpu_s()
            async with asyncio.timeout(self.settings.timeout_s):
                answer = await self._exchange(job)
            is_whole = not isinstance(answer.value, MemoryError)
        except TimeoutError as error:
            limit = f"{self.settings.timeout_s:g} s"
            raise _EndedError(job.url, f"reading it took longer than {limit}, ended") from error
        except (asyncio.IncompleteReadError, ConnectionError) as error:
            reason = f"the page ended its reader: {await self._end()}"
            raise _EndedError(job.url, reason, may_be_chance=True) from error
        finally:
            if not is_whole:
                await self.stop()
        self._check(answer.value, job.url)
        return answer

    async def _start_for(self, url: str) -> None:
        try:
            await self.start()
        except _NO_START as error:
            reason = f"no extraction process can be started ({type(error).__name__}: {error})"
            raise NewsbeatError(f"{url}: {reason}") from error

    def _check(self, value: object, url: str) -> None:
        """Raise what a helper answered in place of a result."""
        if isinstance(value, MemoryError):
            limit = f"{self.settings.memory_mb} MiB"
            raise _EndedError(url, f"reading it needs more memory than {limit}")
        if isinstance(value, ParseError):
            raise value
        if isinstance(value, _Broken):
            raise ParseError(url, f"its reader broke: {value.words}")

    async def _exchange(self, job: _Job) -> _Answer:
        assert self.process is not None
        assert self.process.stdin is not None
        self.process.stdin.write(_LENGTH.pack(len(job.payload)))
        self.process.stdin.write(job.payload)
        await self.process.stdin.drain()
        answer = await self._receive()
        assert isinstance(answer, _Answer)
        return answer

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
        payload = _read_payload(requests)
        if payload is None:
            return
        # Where the kernel does not tell of a parent's death, a stuck page still ends.
        signal.alarm(int(timeout_s) + _ALARM_SLACK_S)
        _send(answers, _answer(payload))
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
    with contextlib.suppress(ValueError, OSError):
        resource.setrlimit(_LIMITED, (memory_mb * _MEBIBYTE, memory_mb * _MEBIBYTE))
    with contextlib.suppress(ValueError, OSError):
        resource.setrlimit(resource.RLIMIT_CORE, (0, 0))


def _read_payload(requests: BinaryIO) -> bytes | None:
    head = requests.read(_LENGTH.size)
    if len(head) < _LENGTH.size:
        return None
    (length,) = _LENGTH.unpack(head)
    return requests.read(length)


def _answer(payload: bytes) -> _Answer:
    began = time.process_time()
    value = _result(payload)
    return _Answer(value, time.process_time() - began)


def _result(payload: bytes) -> object:
    try:
        return pickle.loads(payload)()  # noqa: S301 - our parent's own bytes
    except MemoryError:
        return MemoryError()
    except Exception as error:  # noqa: BLE001 - any page may come, and none may stop the others
        is_judgement = isinstance(error, ParseError) and error.__cause__ is None
        if not is_judgement and _was_memory_short():
            return MemoryError()
        if isinstance(error, ParseError):
            return error
        return _Broken(f"{type(error).__name__}: {error}")


def _was_memory_short() -> bool:
    """Tell whether a failure may be one of memory: parsers in C say it in words of their own."""
    limit, _ = resource.getrlimit(_LIMITED)
    return limit != resource.RLIM_INFINITY and peak_bytes() > limit / 2


def _send(answers: BinaryIO, answer: Any) -> None:
    payload = pickle.dumps(answer, pickle.HIGHEST_PROTOCOL)
    answers.write(_LENGTH.pack(len(payload)))
    answers.write(payload)
    answers.flush()
