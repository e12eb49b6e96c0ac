"""A small web server that answers with the bytes a test gives it, and a Prefect server of ours."""

from __future__ import annotations

import asyncio
import contextlib
import itertools
import os
import shutil
import ssl
import tempfile
from collections.abc import AsyncIterator, Callable, Iterator, Mapping
from dataclasses import dataclass, field
from datetime import UTC, datetime
from pathlib import Path

import pytest

from tasks.postgres import start_postgres
from tasks.prefect_server import PrefectServer, client_environment, find_free_port
from tasks.settings import PrefectSettings, Settings
from tasks.warehouse import Warehouse

Step = bytes | float
"""What to send, or how many seconds to wait first."""


@dataclass
class Request:
    path: str
    headers: dict[str, str]


@dataclass
class Site:
    """Answers by path; the path ``*`` answers all others.

    An answer is a list of steps, or a function of the request that returns one. A list
    that ends with ``b""`` closes the connection.
    """

    answers: dict[str, list[Step] | Callable[[Request], list[Step]]] = field(default_factory=dict)
    requests: list[Request] = field(default_factory=list)
    n_connections: int = 0
    port: int = 0
    scheme: str = "http"
    _stopping: asyncio.Event = field(default_factory=asyncio.Event)
    _tasks: set[asyncio.Task[None]] = field(default_factory=set)
    _writers: set[asyncio.StreamWriter] = field(default_factory=set)

    def url(self, path: str = "/", host: str = "127.0.0.1") -> str:
        return f"{self.scheme}://{host}:{self.port}{path}"

    @property
    def paths(self) -> list[str]:
        return [request.path for request in self.requests]

    def add(
        self,
        path: str,
        body: bytes = b"",
        status: str = "200 OK",
        kind: str | None = "text/html",
        **headers: str,
    ) -> None:
        """Answer `path` properly."""
        lines = [f"HTTP/1.1 {status}", f"Content-Length: {len(body)}"]
        lines += [f"Content-Type: {kind}"] if kind is not None else []
        lines += [f"{name.replace('_', '-')}: {value}" for name, value in headers.items()]
        self.answers[path] = ["\r\n".join([*lines, "", ""]).encode() + body]

    async def serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        task = asyncio.current_task()
        assert task is not None
        self._tasks.add(task)
        self._writers.add(writer)
        self.n_connections += 1
        with contextlib.suppress(OSError, asyncio.IncompleteReadError):
            while await self._answer(reader, writer):
                pass
        writer.close()
        self._writers.discard(writer)
        self._tasks.discard(task)

    async def _answer(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> bool:
        head = (await reader.readuntil(b"\r\n\r\n")).decode("latin-1").split("\r\n")
        pairs = (line.split(": ", 1) for line in head[1:] if line)
        request = Request(head[0].split()[1], {name.lower(): value for name, value in pairs})
        self.requests.append(request)
        answer = self.answers.get(request.path) or self.answers.get("*") or [NOT_FOUND]
        for step in answer(request) if callable(answer) else answer:
            if isinstance(step, float):
                with contextlib.suppress(TimeoutError):
                    await asyncio.wait_for(self._stopping.wait(), step)
            elif step == b"":
                return False
            else:
                writer.write(step)
                await writer.drain()
        return True

    async def stop(self) -> None:
        self._stopping.set()
        for writer in list(self._writers):
            writer.transport.abort()
        if self._tasks:
            await asyncio.wait(self._tasks, timeout=5)


NOT_FOUND = b"HTTP/1.1 404 Not Found\r\nContent-Length: 0\r\n\r\n"

StartSite = Callable[..., "contextlib.AbstractAsyncContextManager[Site]"]


@contextlib.asynccontextmanager
async def start_site(tls: ssl.SSLContext | None = None) -> AsyncIterator[Site]:
    site = Site(scheme="https" if tls else "http")
    server = await asyncio.start_server(site.serve, "127.0.0.1", 0, ssl=tls)
    site.port = server.sockets[0].getsockname()[1]
    try:
        yield site
    finally:
        server.close()
        await site.stop()
        await server.wait_closed()


@pytest.fixture
async def site() -> AsyncIterator[Site]:
    """A web server on loopback."""
    async with start_site() as running:
        yield running


@pytest.fixture
async def other_site() -> AsyncIterator[Site]:
    """Another one."""
    async with start_site() as running:
        yield running


@pytest.fixture
def make_site() -> StartSite:
    """Starts further ones, with TLS where a context is given."""
    return start_site


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Where tests run side by side, all that need the server share one process and one server."""
    for item in items:
        if item.get_closest_marker("server"):
            item.add_marker(pytest.mark.xdist_group("server"))


@pytest.fixture(scope="session")
def new_name() -> Callable[[str], str]:
    """Makes names no other test has: the tests share one server, and it forgets nothing."""
    numbers = itertools.count(1)
    return lambda word: f"{word}-{next(numbers)}"


FORTNIGHT = Path(__file__).parent / "samples" / "fortnight.sql"


@pytest.fixture(scope="session")
def fortnight(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The warehouse's folder of a small invented press: two weeks of it, up to now."""
    settings = Settings(home=tmp_path_factory.mktemp("press"))
    now = f"TIMESTAMPTZ '{datetime.now(UTC).isoformat()}'"
    with Warehouse.open(settings, "test") as warehouse:
        for statement in FORTNIGHT.read_text(encoding="utf-8").split(";\n"):
            if statement.strip():
                warehouse.query(statement.replace("@now", now))
    return settings.folder


@pytest.fixture(scope="session")
def reachable_folder() -> Iterator[Path]:
    """A folder that PostgreSQL's own user can reach, where the tests run as root."""
    folder = Path(tempfile.mkdtemp(prefix="newsbeat-tests-"))
    folder.chmod(0o755)
    yield folder
    shutil.rmtree(folder, ignore_errors=True)


@pytest.fixture(scope="session")
def prefect_server(reachable_folder: Path) -> Iterator[str]:
    """One Prefect server of ours, on a PostgreSQL of ours; gives its API's address.

    This process becomes its client, whether or not Prefect was imported before.
    """
    settings = Settings(reachable_folder / "server", prefect=PrefectSettings(port=find_free_port()))
    settings.folder.mkdir(parents=True)
    with contextlib.ExitStack() as stack:
        postgres = start_postgres(settings.folder / "postgres")
        stack.callback(postgres.stop)
        server = PrefectServer(settings, postgres.database_url)
        stack.callback(server.stop)
        api_url = server.start().api_url
        environment = client_environment(settings, api_url)
        # Log lines still on their way at the end would wait a minute for a server that is gone.
        environment["PREFECT_LOGGING_TO_API_ENABLED"] = "false"
        _set_up_prefect(environment)
        stack.callback(_set_up_prefect, {})
        yield api_url


def _set_up_prefect(environment: Mapping[str, str]) -> None:
    """Have Prefect read its settings anew; what else looks at the environment sees no change."""
    from prefect.context import refresh_global_settings_context

    before = dict(os.environ)
    os.environ.update(environment)
    try:
        refresh_global_settings_context()
    finally:
        os.environ.clear()
        os.environ.update(before)
