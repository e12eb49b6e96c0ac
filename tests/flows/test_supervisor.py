"""`newsbeat up` when what it started is killed, or it is killed itself."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import psutil
import pytest

from flows.supervisor import (
    UP_FILE,
    Supervisor,
    _Revival,
    running_supervisor,
    stop_everything,
)
from models.errors import NewsbeatError
from tasks.duck.lease import Lease
from tasks.postgres import EmbeddedPostgres
from tasks.prefect_server import find_free_port
from tasks.replay.history import RecordedWeb, write_catalogue
from tasks.replay.server import serve_in_thread
from tasks.settings import Settings, read_settings

ROOT = Path(__file__).parents[2]


def silent(_line: str) -> None:
    """Say nothing."""


# One at a time


def test_there_is_one_up_in_a_folder(tmp_path: Path) -> None:
    settings = Settings(tmp_path)
    assert running_supervisor(settings) is None
    settings.folder.mkdir(parents=True)
    lease = Lease(settings.folder, "newsbeat up", UP_FILE)
    assert running_supervisor(settings) == os.getpid()
    with pytest.raises(NewsbeatError, match=rf"already up in .*{os.getpid()}.*newsbeat down"):
        Supervisor(settings, silent).start_server()
    lease.release()
    assert running_supervisor(settings) is None


def test_a_note_that_a_killed_up_left_is_nobody(tmp_path: Path) -> None:
    """Its number may belong to any program by now, which `down` must not end."""
    settings = Settings(tmp_path)
    settings.folder.mkdir(parents=True)
    (settings.folder / UP_FILE).write_text(
        f'{{"holder": "newsbeat up", "pid": {os.getppid()}, "host": "h", "since": "s"}}'
    )
    assert running_supervisor(settings) is None
    assert not stop_everything(settings, silent)


# What dies is started again


def test_what_dies_at_once_is_started_later_and_later(monkeypatch: pytest.MonkeyPatch) -> None:
    now = [0.0]
    monkeypatch.setattr("flows.supervisor.time.monotonic", lambda: now[0])
    revival, rests = _Revival(), []
    assert revival.is_time
    for _ in range(8):
        revival.note_death(lived_s=1.0)
        began = now[0]
        while not revival.is_time:
            now[0] += 0.5
        rests.append(now[0] - began)
    assert rests == [2, 4, 8, 16, 32, 60, 60, 60]
    revival.note_death(lived_s=3600.0)
    assert revival.is_time
    revival.note_death(lived_s=1.0, is_own_fault=False)
    assert revival.quick_deaths == 0


def test_large_logs_are_put_aside(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("flows.supervisor.LOG_BYTES", 100)
    supervisor = Supervisor(Settings(tmp_path), silent)
    log = supervisor.worker_log
    with log.open("ab", buffering=0) as writing:
        writing.write(b"x" * 101)
        supervisor._trim_logs()
        writing.write(b"worker ready: 3 sources\n")
    assert log.with_suffix(".log.1").read_bytes() == b"x" * 101
    assert supervisor.is_worker_ready


@pytest.fixture
def home(
    reachable_folder: Path, new_name: Callable[[str], str], make_recorded: Any
) -> Iterator[Path]:
    """The home of one source that can be polled."""
    folder = reachable_folder / new_name("killed")
    folder.mkdir()
    recorded = make_recorded()
    from tasks.clock import Clock

    clock = Clock.starting_at(recorded.entries[3].published_at, 60.0)
    (folder / "newsbeat.toml").write_text(
        f'clock = "{clock.spell()}"\n[prefect]\nport = {find_free_port()}\n'
        "[worker]\nreconcile_s = 2.0\nquery_s = 1.0\npause_s = 2.0\n"
    )
    with serve_in_thread(RecordedWeb((recorded,), recorded.entries[3].published_at), clock) as web:
        sources = RecordedWeb((recorded,), recorded.entries[3].published_at).sources(
            web.port, 120.0
        )
        write_catalogue(sources, folder / "data" / "sources")
        yield folder


def processes_of(home: Path) -> list[psutil.Process]:
    """Return every process that belongs to a home, PostgreSQL's among them."""
    postgres = EmbeddedPostgres(read_settings(home).folder / "postgres")
    found = []
    for process in psutil.process_iter():
        try:
            environ = process.environ()
            ours = environ.get("NEWSBEAT_HOME") == str(home) or environ.get(
                "PREFECT_HOME", ""
            ).startswith(str(home))
            if ours or Path(process.cwd()) == postgres.folder:
                found.append(process)
        except psutil.Error:
            continue
    return found


def n_polls(settings: Settings) -> int:
    from tasks.warehouse_reader import open_reader

    try:
        with open_reader(settings) as reader:
            return int(reader.query("SELECT count(*) FROM polls").rows[0][0])
    except NewsbeatError:
        return 0


def until(condition: Callable[[], bool], seconds: float, step: Callable[[], Any]) -> None:
    end = time.monotonic() + seconds
    while not condition():
        assert time.monotonic() < end, f"not within {seconds:g} s"
        step()
        time.sleep(0.3)


@pytest.mark.slow
@pytest.mark.timeout(400)
def test_it_goes_on_when_the_database_the_server_or_the_worker_is_killed(
    home: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    # What is set for another Prefect must confuse neither server nor worker.
    monkeypatch.setenv("PREFECT_SERVER_EPHEMERAL_STARTUP_TIMEOUT_SECONDS", "nonsense")
    monkeypatch.setenv("PREFECT_LOGGING_LEVEL", "nonsense")
    settings = read_settings(home)
    supervisor = Supervisor(settings, silent)
    try:
        server = supervisor.start_server()
        supervisor.start_worker()
        until(lambda: n_polls(settings) > 0, 90, supervisor.watch)
        assert supervisor._postgres is not None
        assert supervisor._postgres.pid is not None
        assert server.pid is not None
        for pid in (supervisor._postgres.pid, server.pid, supervisor.worker_pid):
            before = n_polls(settings)
            os.kill(pid or 0, signal.SIGKILL)
            until(lambda seen=before: n_polls(settings) > seen + 1, 90, supervisor.watch)
    finally:
        supervisor.stop()
    assert processes_of(home) == []
    assert running_supervisor(settings) is None


@pytest.mark.slow
@pytest.mark.timeout(400)
def test_what_a_killed_up_leaves_is_cleaned_by_down_or_by_the_next_up(home: Path) -> None:
    settings = read_settings(home)

    def kill_up_once_it(is_far_enough: Callable[[], bool]) -> None:
        command = [sys.executable, "-P", "-m", "flows.cli", "up", "--home", str(home)]
        environ = {**os.environ, "PYTHONPATH": str(ROOT)}
        up = subprocess.Popen(command, stdout=subprocess.DEVNULL, env=environ)
        try:
            until(is_far_enough, 120, lambda: None)
        finally:
            up.kill()
            up.wait()

    note = settings.folder / "prefect" / "server.json"
    kill_up_once_it(note.exists)
    assert stop_everything(settings, silent)
    assert processes_of(home) == []
    kill_up_once_it(lambda: n_polls(settings) > 0)
    before = n_polls(settings)
    kill_up_once_it(lambda: n_polls(settings) > before)
    stop_everything(settings, silent)
    until(lambda: processes_of(home) == [], 30, lambda: None)
    assert not stop_everything(settings, silent)
