"""Prefect's server as a process of ours."""

from __future__ import annotations

import http.server
import json
import os
import socket
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from models.errors import ServerError
from tasks.prefect_server import (
    PrefectServer,
    client_environment,
    configured_api_url,
    find_free_port,
    is_healthy,
    is_port_free,
    logs_folder,
    read_runs,
    server_environment,
    stop_process,
    without_prefect,
)
from tasks.settings import PrefectSettings, Settings


@pytest.fixture
def own(tmp_path: Path) -> Settings:
    return Settings(tmp_path, prefect=PrefectSettings(port=find_free_port()))


class Stranger(http.server.BaseHTTPRequestHandler):
    """Another program at our port, that says yes to everything."""

    def do_GET(self) -> None:
        self.send_response(200)
        self.end_headers()

    def log_message(self, *_: Any) -> None:
        return


@pytest.fixture
def listen_at() -> Iterator[Any]:
    """Starts a stranger at a port."""
    servers = []

    def start(port: int) -> None:
        server = http.server.ThreadingHTTPServer(("127.0.0.1", port), Stranger)
        threading.Thread(target=server.serve_forever, daemon=True).start()
        servers.append(server)

    yield start
    for server in servers:
        server.shutdown()
        server.server_close()


def test_a_taken_port_is_named_with_the_way_out(own: Settings, listen_at: Any) -> None:
    listen_at(own.prefect.port)
    with pytest.raises(ServerError, match=r"taken by another program.*prefect\.port"):
        PrefectServer(own, "").start()
    assert not is_port_free("127.0.0.1", own.prefect.port)


@pytest.mark.slow
def test_a_stranger_that_takes_the_port_while_ours_starts_is_not_taken_for_ours(
    own: Settings, listen_at: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PREFECT_SERVER_DATABASE_MIGRATE_ON_START", "false")
    monkeypatch.setenv("PREFECT_API_BLOCKS_REGISTER_ON_START", "false")
    server = PrefectServer(own, f"sqlite+aiosqlite:///{own.home}/prefect.db")
    failures: list[ServerError] = []

    def start() -> None:
        try:
            server.start()
        except ServerError as error:
            failures.append(error)

    starting = threading.Thread(target=start)
    starting.start()
    while server._process is None:
        time.sleep(0.01)
    listen_at(own.prefect.port)
    starting.join(100)
    assert "taken by another program" in str(failures[0])
    assert not server.stop()


@pytest.mark.slow
def test_a_server_that_cannot_start_says_where_to_look(own: Settings) -> None:
    server = PrefectServer(own, "postgresql+asyncpg://postgres@/postgres?host=/nowhere")
    with pytest.raises(ServerError) as caught:
        server.start()
    assert caught.value.reason == "Prefect's server did not start"
    assert str(server.log) in caught.value.way_out
    assert server.log.stat().st_size > 0
    assert is_port_free("127.0.0.1", own.prefect.port)


def test_a_server_that_a_killed_supervisor_left_is_ended_but_no_other(own: Settings) -> None:
    sleep = [sys.executable, "-c", "import time; time.sleep(60)"]
    homes = [str(own.folder / "prefect"), str(own.folder / "another")]
    left, other = (subprocess.Popen(sleep, env={"PREFECT_HOME": home}) for home in homes)
    note = own.folder / "prefect" / "server.json"
    note.parent.mkdir(parents=True)
    try:
        for process, is_ours in ((other, False), (left, True)):
            note.write_text(json.dumps({"pid": process.pid}))
            assert PrefectServer(own, "").stop() == is_ours
        assert left.poll() is not None
        assert other.poll() is None
    finally:
        for process in (left, other):
            process.kill()
            process.wait()


def test_variables_about_another_server_do_not_reach_ours() -> None:
    environ = {"PREFECT_LOGGING_LEVEL": "nonsense", "PREFECT_PROFILE": "work", "PATH": "/bin"}
    assert without_prefect(environ) == {"PATH": "/bin"}


def test_a_note_of_a_process_that_is_something_else_by_now_is_not_believed(own: Settings) -> None:
    other = subprocess.Popen([sys.executable, "-c", "import time; time.sleep(60)"])
    try:
        note = own.folder / "prefect" / "server.json"
        note.parent.mkdir(parents=True)
        for text in (json.dumps({"pid": other.pid}), "{}", "not json", '{"pid": 999999999}'):
            note.write_text(text)
            assert not PrefectServer(own, "").stop()
            assert not note.exists()
        assert other.poll() is None
    finally:
        other.kill()
        other.wait()


@pytest.mark.server
def test_the_runs_of_a_server_can_be_read_page_by_page(prefect_server: str) -> None:
    runs = read_runs(prefect_server, page=3)
    assert [run.name for run in runs] == [run.name for run in read_runs(prefect_server)]
    assert all(run.poll_id is None or "#" in run.poll_id for run in runs)


def test_nobody_there_is_not_healthy_and_cannot_be_read() -> None:
    api_url = f"http://127.0.0.1:{find_free_port()}/api"
    assert not is_healthy(api_url)
    assert not is_healthy("no address at all")
    with pytest.raises(ServerError, match="does not answer"):
        read_runs(api_url)


def test_a_server_of_your_own_goes_before_ours(tmp_path: Path) -> None:
    own = Settings(tmp_path, prefect=PrefectSettings(api_url="http://a.example/api"))
    environ = {"PREFECT_API_URL": "http://b.example/api"}
    assert configured_api_url(own, environ) == "http://a.example/api"
    assert configured_api_url(Settings(tmp_path), environ) == "http://b.example/api"
    assert configured_api_url(Settings(tmp_path), {}) == ""


def test_nothing_is_reported_to_anyone_and_history_has_an_end(own: Settings) -> None:
    server, client = server_environment(own, "postgresql://x"), client_environment(own, "http://x")
    for environment in (server, client):
        assert environment["PREFECT_SERVER_ANALYTICS_ENABLED"] == "false"
        assert environment["DO_NOT_TRACK"] == "1"
        assert environment["PREFECT_HOME"].startswith(str(own.folder))
    assert server["PREFECT_SERVER_DATABASE_CONNECTION_URL"] == "postgresql://x"
    assert server["PREFECT_SERVER_SERVICES_DB_VACUUM_RETENTION_PERIOD"] == str(7 * 86_400)
    assert client["PREFECT_API_URL"] == client["NEWSBEAT_PREFECT_API_URL"] == "http://x"


def test_every_variable_we_set_is_one_that_prefect_knows(
    own: Settings, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A misspelt one would be ignored without a word."""
    from prefect.logging.configuration import DEFAULT_LOGGING_SETTINGS_PATH, load_logging_config
    from prefect.settings.legacy import _get_settings_fields
    from prefect.settings.models.root import Settings as PrefectsOwn

    ours = {**server_environment(own, "postgresql://x"), **client_environment(own, "http://x")}
    named = {name for name in ours if name.startswith("PREFECT_")}
    unknown = named - set(_get_settings_fields(PrefectsOwn)) - {"PREFECT_PROFILES_PATH"}
    levels = {f"PREFECT_LOGGING_HANDLERS_{name}_LEVEL" for name in ("API", "WORKER_API")}
    assert unknown == levels
    for name in levels:
        monkeypatch.setenv(name, ours[name])
    handlers = load_logging_config(DEFAULT_LOGGING_SETTINGS_PATH)["handlers"]
    assert handlers["api"]["level"] == handlers["worker_api"]["level"] == "WARNING"


def test_a_process_is_asked_to_end_and_made_to_if_it_will_not() -> None:
    code = (
        "import signal, time; signal.signal(signal.SIGTERM, signal.SIG_IGN);"
        " print(1, flush=True); time.sleep(60)"
    )
    with subprocess.Popen(
        [sys.executable, "-c", code], stdout=subprocess.PIPE, text=True
    ) as stubborn:
        assert stubborn.stdout is not None
        stubborn.stdout.readline()
        stop_process(stubborn.pid, patience_s=0.3)
        stubborn.wait(5)
    stop_process(stubborn.pid)


def test_a_free_port_is_free(own: Settings) -> None:
    port = find_free_port()
    assert is_port_free("127.0.0.1", port)
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", port))
        taken.listen()
        assert not is_port_free("127.0.0.1", port)
    assert logs_folder(own).is_dir()


@pytest.mark.skipif(os.geteuid() == 0, reason="root may end any process")
def test_a_process_of_somebody_else_is_not_ours_to_end() -> None:
    with pytest.raises(ServerError, match="belongs to another user"):
        stop_process(1)
