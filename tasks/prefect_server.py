"""Prefect's server as a process of ours: its settings, its start, its health.

Nothing here imports Prefect (two seconds of processor time): the server is another
process, and what it is told goes through environment variables.
"""

from __future__ import annotations

import json
import os
import socket
import subprocess
import sys
import time
import urllib.error
import urllib.request
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import psutil

from models.errors import ServerError
from tasks.settings import Settings

START_TIMEOUT_S = 120.0
"""A first start makes the tables: half a minute on a busy machine."""


@dataclass(frozen=True, slots=True)
class RunningServer:
    """A Prefect server that answers.

    Attributes
    ----------
    api_url
        Address for programs, such as ``http://127.0.0.1:4200/api``.
    pid
        Its process where it is ours, None where the address was configured.
    """

    api_url: str
    pid: int | None = None

    @property
    def ui_url(self) -> str:
        """Address for people."""
        return self.api_url.removesuffix("/api")


def configured_api_url(settings: Settings, environ: Mapping[str, str] = os.environ) -> str:
    """Return the address of the user's own Prefect server, ``""`` when there is none."""
    return settings.prefect.api_url or environ.get("PREFECT_API_URL", "")


def quiet_environment(settings: Settings) -> dict[str, str]:
    """Return the variables that both server and worker get: no telemetry, a home of our own."""
    return {
        "DO_NOT_TRACK": "1",
        "PREFECT_SERVER_ANALYTICS_ENABLED": "false",
        "PREFECT_HOME": str(settings.folder / "prefect"),
        "PREFECT_PROFILES_PATH": str(settings.folder / "prefect" / "profiles.toml"),
    }


def client_environment(settings: Settings, api_url: str) -> dict[str, str]:
    """Return the variables a worker process needs before it imports Prefect.

    Logs go to the API from WARNING up: a log line costs as much as a third of a run.
    """
    return {
        **quiet_environment(settings),
        "PREFECT_API_URL": api_url,
        "PREFECT_LOGGING_LEVEL": "WARNING",
        "PREFECT_LOGGING_HANDLERS_API_LEVEL": "WARNING",
        "PREFECT_LOGGING_HANDLERS_WORKER_API_LEVEL": "WARNING",
        "PREFECT_CLIENT_CSRF_SUPPORT_ENABLED": "false",
        "PREFECT_CLIENT_SERVER_VERSION_CHECK_ENABLED": "false",
        "PREFECT_CLIENT_METRICS_ENABLED": "false",
        "PREFECT_RESULTS_PERSIST_BY_DEFAULT": "false",
        "NEWSBEAT_PREFECT_API_URL": api_url,
    }


def server_environment(settings: Settings, database_url: str) -> dict[str, str]:
    """Return the variables the server is started with (measured choices, see docs/engine.md)."""
    history_s = str(int(settings.prefect.history_days * 86_400))
    return {
        **quiet_environment(settings),
        "PREFECT_API_URL": f"http://{settings.prefect.host}:{settings.prefect.port}/api",
        "PREFECT_SERVER_DATABASE_CONNECTION_URL": database_url,
        "PREFECT_SERVER_LOGGING_LEVEL": "WARNING",
        "PREFECT_SERVER_SERVICES_TASK_RUN_RECORDER_BATCH_SIZE": "50",
        "PREFECT_SERVER_SERVICES_TASK_RUN_RECORDER_READ_BATCH_SIZE": "50",
        "PREFECT_SERVER_SERVICES_TASK_RUN_RECORDER_FLUSH_INTERVAL": "1",
        # Loops over what we have none of (leases, pauses, cleanup messages) or seldom change.
        "PREFECT_SERVER_SERVICES_CANCELLATION_CLEANUP_LOOP_SECONDS": "60",
        "PREFECT_SERVER_SERVICES_CLEANUP_RECONCILER_LOOP_SECONDS": "60",
        "PREFECT_SERVER_SERVICES_LATE_RUNS_LOOP_SECONDS": "15",
        "PREFECT_SERVER_SERVICES_PAUSE_EXPIRATIONS_LOOP_SECONDS": "60",
        "PREFECT_SERVER_SERVICES_REPOSSESSOR_LOOP_SECONDS": "60",
        "PREFECT_SERVER_SERVICES_SCHEDULER_RECENT_DEPLOYMENTS_LOOP_SECONDS": "15",
        "PREFECT_SERVER_SERVICES_DB_VACUUM_ENABLED": "events,flow_runs,orphans",
        "PREFECT_SERVER_SERVICES_DB_VACUUM_RETENTION_PERIOD": history_s,
        "PREFECT_SERVER_EVENTS_RETENTION_PERIOD": f"PT{history_s}S",
        "PREFECT_SERVER_UI_SHOW_PROMOTIONAL_CONTENT": "false",
    }


class PrefectServer:
    """A Prefect server that runs as a child of ours.

    Parameters
    ----------
    settings
        Where it listens and keeps its files.
    database_url
        Its PostgreSQL.
    environ
        Environment it starts from. Prefect's own variables in it are left out: they are
        about another server, and a wrong one would keep this one from starting.
    """

    def __init__(
        self, settings: Settings, database_url: str, environ: Mapping[str, str] = os.environ
    ) -> None:
        self.settings = settings
        self.database_url = database_url
        self._environ = environ
        self.log = settings.folder / "logs" / "prefect-server.log"
        self._state_file = settings.folder / "prefect" / "server.json"
        self._process: subprocess.Popen[bytes] | None = None

    def start(self) -> RunningServer:
        """Start the server; one that a killed supervisor left behind is ended first.

        Raises
        ------
        ServerError
            If its port is taken by something else, or it does not answer in time.
        """
        self.stop()
        host, port = self.settings.prefect.host, self.settings.prefect.port
        self._refuse_taken_port()
        self.log.parent.mkdir(parents=True, exist_ok=True)
        self._state_file.parent.mkdir(parents=True, exist_ok=True)
        command = [sys.executable, "-P", "-m", "uvicorn", "--factory"]
        command += ["prefect.server.api.server:create_app", "--host", host, "--port", str(port)]
        command += ["--timeout-keep-alive", "60", "--log-level", "warning"]
        with self.log.open("ab") as log:
            self._process = subprocess.Popen(  # noqa: S603
                command,
                env={
                    **without_prefect(self._environ),
                    **server_environment(self.settings, self.database_url),
                },
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=log,
                process_group=0,
            )
        server = RunningServer(f"http://{host}:{port}/api", self._process.pid)
        # Before it answers: who is killed while it starts must leave a trace of it.
        self._state_file.write_text(json.dumps({"pid": server.pid}), encoding="utf-8")
        self._wait(server)
        return server

    def stop(self) -> bool:
        """End the server, also one that a killed supervisor left; return whether one ran."""
        pid = self._process.pid if self._process else self._left_behind_pid()
        if pid is not None:
            stop_process(pid)
        if self._process is not None:
            self._process.wait()
        self._process = None
        self._state_file.unlink(missing_ok=True)
        return pid is not None

    def _wait(self, server: RunningServer) -> None:
        assert self._process is not None
        end = time.monotonic() + START_TIMEOUT_S
        while time.monotonic() < end:
            # A stranger that took the port just now answers too.
            if is_healthy(server.api_url) and self._listens():
                return
            if self._process.poll() is not None:
                break
            time.sleep(0.2)
        stop_process(self._process.pid)
        self._process.wait()
        self._process = None
        self._refuse_taken_port()
        raise ServerError(
            server.api_url, "Prefect's server did not start", f"See {self.log} for its own words"
        )

    def _listens(self) -> bool:
        """Return whether our process is the one that listens at the port."""
        assert self._process is not None
        try:
            connections = psutil.Process(self._process.pid).net_connections("tcp")
        except psutil.Error:
            return False
        port = self.settings.prefect.port
        return any(
            each.status == psutil.CONN_LISTEN and each.laddr.port == port for each in connections
        )

    def _refuse_taken_port(self) -> None:
        host, port = self.settings.prefect.host, self.settings.prefect.port
        if not is_port_free(host, port):
            raise ServerError(
                f"{host}:{port}",
                "the port is taken by another program",
                "Choose another with prefect.port in newsbeat.toml or NEWSBEAT_PREFECT_PORT",
            )

    def _left_behind_pid(self) -> int | None:
        try:
            pid = int(json.loads(self._state_file.read_text(encoding="utf-8"))["pid"])
            # The number may be another program's by now, or another home's server.
            home = psutil.Process(pid).environ().get("PREFECT_HOME")
        except (OSError, ValueError, KeyError, TypeError, psutil.Error):
            return None
        return pid if home == quiet_environment(self.settings)["PREFECT_HOME"] else None


def without_prefect(environ: Mapping[str, str]) -> dict[str, str]:
    """Return an environment without Prefect's variables."""
    return {name: value for name, value in environ.items() if not name.startswith("PREFECT_")}


def is_healthy(api_url: str, timeout_s: float = 10.0) -> bool:
    """Return whether a Prefect server answers at `api_url`."""
    try:
        with urllib.request.urlopen(f"{api_url}/health", timeout=timeout_s) as answer:  # noqa: S310
            return bool(answer.status == 200)
    except (OSError, urllib.error.URLError, ValueError):
        return False


@dataclass(frozen=True, slots=True)
class RunNote:
    """A flow run of ours, as the demo's count needs it.

    Attributes
    ----------
    poll_id
        The poll it stands for, ``source#cycle``; None for a run started by hand.
    is_over
        Whether it has ended.
    is_done
        Whether it ended by running to its end, well or not.
    failure
        What it said where it failed; empty where it did not.
    """

    name: str
    source: str
    poll_id: str | None
    is_over: bool
    is_done: bool
    failure: str = ""


def read_runs(api_url: str, page: int = 200) -> list[RunNote]:
    """Return all flow runs of ours that the server at `api_url` knows.

    Raises
    ------
    ServerError
        If it does not answer.
    """
    runs: list[RunNote] = []
    while True:
        body = {"flow_runs": {"tags": {"all_": ["newsbeat"]}}, "sort": "ID_DESC"}
        rows = _post(f"{api_url}/flow_runs/filter", {**body, "limit": page, "offset": len(runs)})
        runs += [_note(row) for row in rows]
        if len(rows) < page:
            return runs


def start_runs(api_url: str, page: int = 200) -> int:
    """Start a run of every deployment of ours now, as *Quick run* in the UI does.

    Returns
    -------
    int
        How many were started.

    Raises
    ------
    ServerError
        If the server does not answer.
    """
    started = 0
    while True:
        body = {"deployments": {"tags": {"all_": ["newsbeat"]}}, "limit": page, "offset": started}
        rows = _post(f"{api_url}/deployments/filter", body)
        for row in rows:
            _post(f"{api_url}/deployments/{row['id']}/create_flow_run", {})
        started += len(rows)
        if len(rows) < page:
            return started


def start_run(api_url: str, deployment: str, parameters: dict[str, Any]) -> str:
    """Start a run of a deployment (``flow/name``) now, and return its id.

    Raises
    ------
    ServerError
        If the server does not answer, or knows no such deployment.
    """
    found = _ask(f"{api_url}/deployments/name/{deployment}")
    run = _post(f"{api_url}/deployments/{found['id']}/create_flow_run", {"parameters": parameters})
    return str(run["id"])


def read_outcome(api_url: str, run_id: str) -> tuple[str, str] | None:
    """Return the state a run ended in and its message; None while it has not.

    Raises
    ------
    ServerError
        If the server does not answer.
    """
    state = _ask(f"{api_url}/flow_runs/{run_id}")["state"]
    is_over = state["type"] in _ENDS
    return (state["type"].lower(), state["message"] or "") if is_over else None


_ENDS = ("COMPLETED", "FAILED", "CANCELLED", "CRASHED")


def _note(row: dict[str, Any]) -> RunNote:
    source, cycle = row["parameters"].get("source", ""), row["parameters"].get("cycle")
    return RunNote(
        name=row["name"],
        source=source,
        poll_id=f"{source}#{cycle}" if cycle is not None else None,
        is_over=row["state_type"] in _ENDS,
        is_done=row["state_type"] in ("COMPLETED", "FAILED"),
        failure=(row["state"] or {}).get("message") or "" if row["state_type"] == "FAILED" else "",
    )


def _post(url: str, body: dict[str, Any]) -> Any:
    return _ask(url, json.dumps(body).encode())


def _ask(url: str, body: bytes | None = None) -> Any:
    request = urllib.request.Request(url, body, {"Content-Type": "application/json"})  # noqa: S310
    try:
        with urllib.request.urlopen(request, timeout=30) as answer:  # noqa: S310
            return json.load(answer)
    except (OSError, ValueError) as error:
        raise ServerError(
            url, f"Prefect's server does not answer ({error})", "See its log"
        ) from error


def is_port_free(host: str, port: int) -> bool:
    """Return whether we could listen at `host`:`port`."""
    with socket.socket() as trial:
        trial.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            trial.bind((host, port))
        except OSError:
            return False
    return True


def find_free_port(host: str = "127.0.0.1") -> int:
    """Return a port nobody listens at now."""
    with socket.socket() as trial:
        trial.bind((host, 0))
        return int(trial.getsockname()[1])


def stop_process(pid: int, patience_s: float = 15.0) -> None:
    """Ask a process to end, and make it end after `patience_s`.

    Raises
    ------
    ServerError
        If it belongs to somebody else.
    """
    try:
        process = psutil.Process(pid)
        process.terminate()
        process.wait(patience_s)
    except psutil.NoSuchProcess:
        return
    except psutil.TimeoutExpired:
        process.kill()
    except psutil.AccessDenied as error:
        raise ServerError(
            f"process {pid}", "it belongs to another user", "Stop it as that user"
        ) from error


def logs_folder(settings: Settings) -> Path:
    """Return the folder of the processes' logs, made if missing."""
    folder = settings.folder / "logs"
    folder.mkdir(parents=True, exist_ok=True)
    return folder
