"""What `newsbeat up` keeps running: PostgreSQL, Prefect's server, the worker.

The supervisor itself does no work and holds no data, so that whatever dies can be
started again: the worker after a crash, the server after an out-of-memory kill.
"""

from __future__ import annotations

import contextlib
import os
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import TYPE_CHECKING

import psutil

from models.errors import NewsbeatError, ServerError, WarehouseError
from tasks.duck.lease import Holder, Lease, read_holder
from tasks.postgres import EmbeddedPostgres, start_postgres
from tasks.prefect_server import (
    PrefectServer,
    RunningServer,
    client_environment,
    configured_api_url,
    is_healthy,
    logs_folder,
    stop_process,
    without_prefect,
)
from tasks.settings import Settings

if TYPE_CHECKING:
    from tasks.pageserver import PageServer

WORKER_READY = "worker ready"
WORKER_DEPLOYED = "deployed"
"""Words the worker's lines begin with, for the supervisor to find."""

QUICK_DEATH_S = 20.0
"""A worker that dies sooner after its start did not come to work at all."""

QUICK_DEATHS = 3
"""Quick deaths in a row after which starting again is no use, where it never came to work."""

LONGEST_REST_S = 60.0
"""What has worked before is started again for ever, at most this long after its last death."""

HEALTH_S, HEALTH_TIMEOUT_S, UNWELL_LOOKS = 30.0, 10.0, 4
"""How often Prefect's server is asked whether it is well, how long it may think about it,
and how often in a row it may say nothing before it is started again."""

HANDOVER_S = 30.0
"""How long the worker of an `up` that was killed may take to end."""

LOG_BYTES = 20 * 2**20
"""A log that has grown larger is put aside; the one before it is forgotten."""

UP_FILE = "up.lock"
"""Locked by the `up` of a folder for as long as it lives."""


KILLED_FROM_OUTSIDE = (-signal.SIGKILL, -signal.SIGTERM)
"""Exit codes of a worker that did not end of itself: that says nothing of its next start."""


class _Revival:
    """When to start something again that dies: at once, then later and later."""

    def __init__(self) -> None:
        self.quick_deaths = 0
        self._not_before = 0.0

    def note_death(self, lived_s: float, is_own_fault: bool = True) -> None:
        """Count a death; one from outside says nothing of the next start."""
        if lived_s >= QUICK_DEATH_S:
            self.quick_deaths = 0
        elif is_own_fault:
            self.quick_deaths += 1
        rest_s = min(2.0**self.quick_deaths, LONGEST_REST_S) if self.quick_deaths else 0.0
        self._not_before = time.monotonic() + rest_s

    @property
    def is_time(self) -> bool:
        """Whether it may be started now."""
        return time.monotonic() >= self._not_before


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
        self.page: PageServer | None = None
        self.restarts = 0
        self._say = say
        self._postgres: EmbeddedPostgres | None = None
        self._prefect: PrefectServer | None = None
        self._worker: subprocess.Popen[bytes] | None = None
        self._worker_started = 0.0
        self._worker_revival = _Revival()
        self._was_ready = False
        self._is_dead_worker_noted = False
        self._log_start = 0
        self._server_started = 0.0
        self._server_revival = _Revival()
        self._asked_at = 0.0
        self._unwell = 0
        self._lease: Lease | None = None

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
        self._lease = _take_lease(self.settings)
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
        self._prefect = PrefectServer(self.settings, database_url, self._environ)
        self.server = self._prefect.start()
        self._server_started = time.monotonic()
        return self.server

    def start_page(self) -> str:
        """Serve the status page from this process, and return its address.

        It is no part of the collecting: where its port is taken, it goes to another.

        Raises
        ------
        ConfigError
            If the settings would have it reached from elsewhere without a token, or name an
            address that is none of this machine's.
        """
        # Needed by `up` alone; others come here for a name or two.
        from flows.page import make_page_server

        self.page = make_page_server(self.settings, is_watched=True)
        return self.page.start()

    def start_worker(self) -> None:
        """Start the worker as a process of its own.

        Raises
        ------
        NewsbeatError
            If another process writes to the warehouse, and goes on doing so.
        """
        assert self.server is not None
        self._await_handover()
        # -P: started in a home folder, whose `data` must not pass for our package.
        command = [sys.executable, "-P", "-m", "flows.cli", "worker"]
        command += ["--parent", str(os.getpid())]
        # With a server of ours, what is said about another one must not confuse it.
        given = self._environ if self._prefect is None else without_prefect(self._environ)
        page_url = self.settings.page.url or (self.page.url if self.page is not None else "")
        environment = {
            **given,
            "NEWSBEAT_PAGE_URL": page_url,
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
        self._is_dead_worker_noted = False

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
            log.seek(self._log_start if self._log_start <= self.worker_log.stat().st_size else 0)
            return log.read().decode(errors="replace").splitlines()

    def _await_handover(self) -> None:
        """Wait until the worker of a killed `up` has let go of the warehouse."""
        end = time.monotonic() + HANDOVER_S
        said = False
        while (holder := read_holder(self.settings.folder)) is not None:
            if time.monotonic() > end:
                raise NewsbeatError(
                    f"{self.settings.folder}: {holder} holds the warehouse; end it first"
                    f" (kill {holder.pid})"
                )
            if not said:
                self._say(f"waiting for {holder} to let go of the warehouse …")
            said = True
            time.sleep(0.2)

    def watch(self) -> None:
        """Start again whatever has died. Call it every second or so.

        Raises
        ------
        ServerError
            If the worker dies at every start and never came to work; the message holds its
            last words. What has worked before is started again for ever: a full disk is
            emptied one day.
        """
        self._watch_server()
        self._watch_worker()
        self._trim_logs()

    def _watch_server(self) -> None:
        if self._prefect is None or self.server is None or not self._server_revival.is_time:
            return
        cause = self._find_server_trouble()
        if cause is None:
            return
        self._say(f"{cause}; starting again …")
        self._server_revival.note_death(time.monotonic() - self._server_started)
        try:
            if self._postgres is not None:
                self._postgres.start()
            if not self._is_server_well():
                self.server = self._prefect.start()
                self._server_started = time.monotonic()
        except ServerError as error:
            self._say(str(error))
        self._unwell = 0

    def _find_server_trouble(self) -> str | None:
        """Return what of the server and its database has died, None where both live."""
        if self._postgres is not None and not self._postgres.is_running():
            return "the database has died"
        if not _lives(self.server.pid if self.server else None):
            return "Prefect's server has died"
        if time.monotonic() - self._asked_at >= HEALTH_S:
            self._asked_at = time.monotonic()
            self._unwell = 0 if self._is_server_well() else self._unwell + 1
        if self._unwell >= UNWELL_LOOKS:
            return "Prefect's server lives, but has answered nothing for a while"
        return None

    def _is_server_well(self) -> bool:
        if self.server is None or not _lives(self.server.pid):
            return False
        return is_healthy(self.server.api_url, HEALTH_TIMEOUT_S)

    def _watch_worker(self) -> None:
        if self._worker is None:
            return
        code = self._worker.poll()
        if code is None:
            self._was_ready = self._was_ready or self.is_worker_ready
            return
        if not self._is_dead_worker_noted:
            lived_s = time.monotonic() - self._worker_started
            self._worker_revival.note_death(lived_s, code not in KILLED_FROM_OUTSIDE)
            self._is_dead_worker_noted = True
            if not self._was_ready and self._worker_revival.quick_deaths >= QUICK_DEATHS:
                words = _last_line(self.worker_log)
                raise ServerError("newsbeat worker", words, f"See {self.worker_log}")
            self._say(f"the worker has died ({self._cause()}); starting it again …")
        if self._worker_revival.is_time:
            self.restarts += 1
            self.start_worker()

    def _trim_logs(self) -> None:
        """Put large logs aside. They are written at their end, so they may be cut under way."""
        for log in logs_folder(self.settings).glob("*.log"):
            with contextlib.suppress(OSError):
                if log.stat().st_size > LOG_BYTES:
                    shutil.copyfile(log, log.with_suffix(".log.1"))
                    os.truncate(log, 0)

    def _cause(self) -> str:
        assert self._worker is not None
        code = self._worker.returncode
        return f"by signal {-code}" if code < 0 else _last_line(self.worker_log)

    def stop_worker(self) -> None:
        """Stop the worker, once its polls are over."""
        if self._worker is None or self._worker.poll() is not None:
            return
        self._worker.terminate()
        try:
            self._worker.wait(30)
        except subprocess.TimeoutExpired:
            self._worker.kill()
            self._worker.wait()

    def stop(self) -> None:
        """Stop the worker, then the server, then its database; the page last of all."""
        self.stop_worker()
        if self._prefect is not None:
            self._prefect.stop()
        if self._postgres is not None:
            self._postgres.stop()
        if self.page is not None:
            self.page.stop()
        if self._lease is not None:
            self._lease.release()


def _take_lease(settings: Settings) -> Lease:
    """Become the one `up` of this folder, until the end of the process."""
    settings.folder.mkdir(parents=True, exist_ok=True)
    try:
        return Lease(settings.folder, "newsbeat up", UP_FILE)
    except WarehouseError as error:
        raise NewsbeatError(
            f"newsbeat is already up in {settings.home} (process {running_supervisor(settings)});"
            " stop it with `newsbeat down`"
        ) from error


def running_supervisor(settings: Settings) -> int | None:
    """Return the process id of the `newsbeat up` of this folder, None where none runs."""
    end = time.monotonic() + 1.0
    while (holder := read_holder(settings.folder, UP_FILE)) is not None:
        if holder.pid or time.monotonic() > end:
            return holder.pid
        # It has the lock and is about to write who it is.
        time.sleep(0.05)
    return None


def stop_everything(settings: Settings, say: Callable[[str], None]) -> bool:
    """Stop the `up` of this folder and whatever a killed one left behind.

    Returns
    -------
    bool
        Whether anything ran.
    """
    ran = False
    if pid := running_supervisor(settings):
        say(f"stopping newsbeat (process {pid}) …")
        stop_process(pid, patience_s=60)
        ran = True
    if (holder := read_holder(settings.folder)) and _is_orphan(holder):
        say(f"stopping a worker that was left behind (process {holder.pid}) …")
        stop_process(holder.pid, patience_s=HANDOVER_S)
        ran = True
    ran = PrefectServer(settings, "").stop() or ran
    with contextlib.suppress(ServerError):
        postgres = EmbeddedPostgres(settings.folder / "postgres")
        ran = postgres.is_running() or ran
        postgres.stop()
    return ran


def _is_orphan(holder: Holder) -> bool:
    """Return whether the writer is a worker whose `up` is gone."""
    try:
        words = psutil.Process(holder.pid).cmdline()
        return not psutil.pid_exists(int(words[words.index("--parent") + 1]))
    except (psutil.Error, ValueError, IndexError):
        return False


def _lives(pid: int | None) -> bool:
    try:
        return bool(psutil.Process(pid).status() != psutil.STATUS_ZOMBIE)
    except psutil.Error:
        return False


def _last_line(log: Path) -> str:
    lines = [line for line in log.read_text(errors="replace").splitlines() if line.strip()]
    return lines[-1] if lines else "it says nothing"
