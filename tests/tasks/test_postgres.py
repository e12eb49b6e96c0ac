"""The embedded PostgreSQL: whatever its folder is called, and whatever was killed before."""

from __future__ import annotations

import asyncio
import os
import shutil
import signal
import tempfile
from collections.abc import Iterator
from pathlib import Path

import asyncpg
import pytest
import sqlalchemy

from models.errors import ServerError
from tasks.postgres import EmbeddedPostgres, start_postgres

NAMES = {
    "letters of any script, spaces": "новости & more, täglich",
    "what a shell would run": "a'b\"c$HOME`id`",
    "longer than a socket's path": "x" * 90 + "/" + "y" * 90,
}


@pytest.fixture
def place() -> Iterator[Path]:
    """A folder that PostgreSQL's own user can reach, where the tests run as root."""
    folder = Path(tempfile.mkdtemp(prefix="newsbeat-tests-"))
    folder.chmod(0o755)
    yield folder
    shutil.rmtree(folder, ignore_errors=True)


async def ask(server: EmbeddedPostgres) -> int:
    """Return the answer to a question, asked the way Prefect's server asks."""
    url = sqlalchemy.make_url(server.database_url)
    connection = await asyncpg.connect(
        user=url.username,
        database=url.database,
        host=url.query["host"],
        port=int(str(url.query["port"])),
    )
    try:
        return int(await connection.fetchval("SELECT 7"))
    finally:
        await connection.close()


@pytest.mark.parametrize("name", NAMES.values(), ids=NAMES)
async def test_it_starts_and_answers_whatever_its_folder_is_called(place: Path, name: str) -> None:
    server = start_postgres(place / name / "postgres")
    try:
        assert await ask(server) == 7
    finally:
        server.stop()
    assert not server.is_running()


async def test_what_a_killed_first_start_left_is_made_anew(place: Path) -> None:
    half_made = place / "postgres.new"
    half_made.mkdir()
    (half_made / "PG_VERSION").write_text("18\n")
    server = start_postgres(place / "postgres")
    try:
        assert await ask(server) == 7
    finally:
        server.stop()


async def test_it_starts_again_after_a_kill(place: Path) -> None:
    server = start_postgres(place / "postgres")
    assert server.pid is not None
    os.kill(server.pid, signal.SIGKILL)
    while server.is_running():
        await asyncio.sleep(0.02)
    server = start_postgres(place / "postgres")
    try:
        assert await ask(server) == 7
    finally:
        server.stop()


def test_a_folder_that_somebody_else_put_in_the_way_is_refused(place: Path) -> None:
    elsewhere = place / "elsewhere"
    elsewhere.mkdir()
    (place / "postgres.new").symlink_to(elsewhere)
    with pytest.raises(ServerError, match="it does not start"):
        start_postgres(place / "postgres")
    assert elsewhere.stat().st_mode & 0o777 == 0o755


def test_why_it_does_not_start_is_said_in_its_own_words(place: Path) -> None:
    server = start_postgres(place / "postgres")
    server.stop()
    with (server.folder / "postgresql.conf").open("a") as file:
        file.write("shared_buffers = lots\n")
    with pytest.raises(ServerError, match=r"configuration file .* contains errors"):
        server.start()
