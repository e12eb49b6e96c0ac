"""What `newsbeat up` keeps running: PostgreSQL, Prefect's server, the worker.

The supervisor itself does no work and holds no data, so that whatever dies can be
started again: the worker after a crash, the server after an out-of-memory kill.
"""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Mapping
from pathlib import Path

import psutil

from models.errors import NewsbeatError, ServerError
from tasks.postgres import EmbeddedPostgres, start_postgres
from tasks.prefect_server import (
    PrefectServer,
    RunningServer,
    client_environment,
    configured_api_url,
    is_healthy,
    logs_folder,
    stop_process,
)
from tasks.settings import Settings

WORKER_READY = "worker ready"
WORKER_DEPLOYED = "deployed"
"""Words the worker's lines begin with, for the supervisor to find."""

QUICK_DEATH_S = 20.0
"""A worker that dies sooner after its start did not come to work at all."""

QUICK_DEATHS = 3
"""Quick deaths in a row after which starting again is no use."""


KILLED_FROM_OUTSIDE = (-signal.SIGKILL, -signal.SIGTERM)
"""Exit codes of a worker that did not end of itself: that says nothing of its next start."""


class Supervisor:
    """Starts, watches and stops the processes of one home folder.

    Parameters
    ----------
    settings
        All settings; the worker inherits home and clock from them.
    say
        Called with one line for people at each step.
    environ
        Environment the worker starts from.
    """

    def __init__(
        self,
        settings: Settings,
        say: Callable[[str], None],
        environ: Mapping[str, str] = os.environ,
    ) -> None:
        self.settings = settings
        self._environ = environ
        self.server: RunningServer | None = None
        self.restarts = 0
        self._say = say
        self._postgres: EmbeddedPostgres | None = None
        self._prefect: PrefectServer | None = None
        self._worker: subprocess.Popen[bytes] | None = None
        self._worker_started = 0.0
        self._log_start = 0
        self._quick_deaths = 0
        self._note = settings.folder / "up.json"
        self._is_noted = False

    @property
    def worker_pid(self) -> int | None:
        """Process of the worker, None while there is none."""
        return self._worker.pid if self._worker and self._worker.poll() is None else None

    def start_server(self, use_configured: bool = True) -> RunningServer:
        """Start Prefect's server and its database, unless the user has a server.

        Parameters
        ----------
        use_configured
            False starts one of our own whatever is configured.

        Raises
        ------
        ServerError
            If a configured server does not answer, or ours does not start.
        NewsbeatError
            If `up` runs in this folder already.
        """
        other = running_supervisor(self.settings)
        if other is not None:
            raise NewsbeatError(
                f"newsbeat is already up in {self.settings.home} (process {other});"
                " stop it with `newsbeat down`"
            )
        self.settings.folder.mkdir(parents=True, exist_ok=True)
        self._note.write_text(json.dumps({"pid": os.getpid()}), encoding="utf-8")
        self._is_noted = True
        api_url = configured_api_url(self.settings) if use_configured else ""
        if api_url:
            if not is_healthy(api_url):
                raise ServerError(
                    api_url,
                    "the configured Prefect server does not answer",
                    "Start it, or clear prefect.api_url and PREFECT_API_URL to use our own",
                )
            self.server = RunningServer(api_url)
            return self.server
        database_url = self.settings.prefect.database_url
        if not database_url:
            self._say("starting the database …")
            self._postgres = start_postgres(self.settings.folder / "postgres")
            database_url = self._postgres.database_url
        self._say("starting Prefect's server …")
        self._prefect = PrefectServer(self.settings, database_url)
        self.server = self._prefect.start()
        return self.server

    def start_worker(self) -> None:
        """Start the worker as a process of its own."""
        assert self.server is not None
        # -P: started in a home folder, whose `data` must not pass for our package.
        command = [sys.executable, "-P", "-m", "flows.cli", "worker"]
        command += ["--parent", str(os.getpid())]
        environment = {
            **self._environ,
            **client_environment(self.settings, self.server.api_url),
            "NEWSBEAT_HOME": str(self.settings.home),
            "NEWSBEAT_CLOCK": self.settings.clock.spell(),
        }
        with self.worker_log.open("ab") as log:
            self._log_start = log.tell()
            self._worker = subprocess.Popen(  # noqa: S603
                command,
                env=environment,
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=log,
                # Ctrl-C is for us alone: what we started is stopped in its order.
                process_group=0,
            )
        self._worker_started = time.monotonic()

    @property
    def worker_log(self) -> Path:
        """Where the worker's words go."""
        return logs_folder(self.settings) / "worker.log"

    @property
    def is_worker_ready(self) -> bool:
        """Whether the worker that runs has said that it collects."""
        return any(line.startswith(WORKER_READY) for line in self._worker_lines())

    @property
    def worker_progress(self) -> str:
        """How far the worker is with its deployments, ``""`` before it has begun."""
        done = [line for line in self._worker_lines() if line.startswith(WORKER_DEPLOYED)]
        return done[-1] if done else ""

    def _worker_lines(self) -> list[str]:
        """Return what the worker has said since its start."""
        with self.worker_log.open("rb") as log:
            log.seek(self._log_start)
            return log.read().decode(errors="replace").splitlines()

    def watch(self) -> None:
        """Start again whatever has died. Call it every second or so.

        Raises
        ------
        ServerError
            If the worker dies at every start; the message holds its last words.
        """
        if self._postgres is not None and not _lives(self._postgres.pid):
            self._say("the database has died; starting it again …")
            self._postgres.start()
        if self._prefect is not None and self.server is not None and not _lives(self.server.pid):
            self._say("Prefect's server has died; starting it again …")
            self._prefect.stop()
            self.server = self._prefect.start()
        if self._worker is None or self._worker.poll() is None:
            return
        lived_s = time.monotonic() - self._worker_started
        if lived_s >= QUICK_DEATH_S:
            self._quick_deaths = 0
        elif self._worker.returncode not in KILLED_FROM_OUTSIDE:
            self._quick_deaths += 1
        if self._quick_deaths >= QUICK_DEATHS:
            raise ServerError(
                "newsbeat worker", _last_line(self.worker_log), f"See {self.worker_log}"
            )
        self.restarts += 1
        self._say(f"the worker has died ({self._cause()}); starting it again …")
        self.start_worker()

    def _cause(self) -> str:
        assert self._worker is not None
        code = self._worker.returncode
        return f"by signal {-code}" if code < 0 else _last_line(self.worker_log)

    def stop(self) -> None:
        """Stop the worker, then the server, then its database."""
        if self._worker is not None and self._worker.poll() is None:
            self._worker.terminate()
            try:
                self._worker.wait(30)
            except subprocess.TimeoutExpired:
                self._worker.kill()
                self._worker.wait()
        if self._prefect is not None:
            self._prefect.stop()
        if self._postgres is not None:
            self._postgres.stop()
        if self._is_noted:
            self._note.unlink(missing_ok=True)


def running_supervisor(settings: Settings) -> int | None:
    """Return the process id of the `newsbeat up` of this folder, None where none runs."""
    try:
        note = json.loads((settings.folder / "up.json").read_text(encoding="utf-8"))
        pid = int(note["pid"])
        command = psutil.Process(pid).cmdline()
    except (OSError, ValueError, KeyError, psutil.Error):
        return None
    is_ours = any("newsbeat" in part or "flows.cli" in part for part in command)
    return pid if is_ours and pid != os.getpid() else None


def stop_everything(settings: Settings, say: Callable[[str], None]) -> bool:
    """Stop the `up` of this folder and whatever a killed one left behind.

    Returns
    -------
    bool
        Whether anything ran.
    """
    pid = running_supervisor(settings)
    if pid is not None:
        say(f"stopping newsbeat (process {pid}) …")
        stop_process(pid, patience_s=60)
        return True
    left = PrefectServer(settings, "")
    ran = left.stop()
    postgres_folder = settings.folder / "postgres"
    if (postgres_folder / "postmaster.pid").exists():
        start_postgres(postgres_folder).stop()
        ran = True
    (settings.folder / "up.json").unlink(missing_ok=True)
    return ran


def _lives(pid: int | None) -> bool:
    try:
        return bool(psutil.Process(pid).status() != psutil.STATUS_ZOMBIE)
    except psutil.Error:
        return False


def _last_line(log: Path) -> str:
    lines = [line for line in log.read_text(errors="replace").splitlines() if line.strip()]
    return lines[-1] if lines else "it says nothing"
