"""Bring a warehouse up to this program's schema: numbered migrations, then the views."""

from __future__ import annotations

import hashlib
import re
import shutil
from collections.abc import Callable
from dataclasses import dataclass
from datetime import UTC, datetime
from importlib.resources import files
from importlib.resources.abc import Traversable
from pathlib import Path

import duckdb

from models.errors import WarehouseError
from tasks.duck.database import explained

BACKUPS_FOLDER = "backups"

# The views are one step that is taken again whenever one of them reads differently.
VIEWS = 0


@dataclass(frozen=True, slots=True)
class Migration:
    """One numbered change of the schema."""

    version: int
    name: str
    sql: str

    @property
    def sha256(self) -> str:
        """Digest of the file."""
        return hashlib.sha256(self.sql.encode()).hexdigest()


def read_migrations(folder: Traversable | None = None) -> list[Migration]:
    """Return the migrations in `folder` (that of the package where None), in order.

    Examples
    --------
    >>> read_migrations()[0].name
    '0001_tables.sql'
    """
    folder = folder or files("data") / "schema"
    found = [
        Migration(int(match[1]), item.name, item.read_text(encoding="utf-8"))
        for item in folder.iterdir()
        if (match := re.fullmatch(r"(\d{4})_\w+\.sql", item.name))
    ]
    return sorted(found, key=lambda migration: migration.version)


def read_views(folder: Traversable | None = None) -> Migration:
    """Return all views of `folder` as one step that may be taken again and again."""
    folder = (folder or files("data") / "schema") / "views"
    texts = [
        item.read_text(encoding="utf-8")
        for item in sorted(folder.iterdir(), key=lambda item: item.name)
        if item.name.endswith(".sql")
    ]
    return Migration(VIEWS, "views", "\n".join(texts))


def migrate(
    connection: duckdb.DuckDBPyConnection,
    path: Path,
    reopen: Callable[[], duckdb.DuckDBPyConnection],
    folder: Traversable | None = None,
) -> duckdb.DuckDBPyConnection:
    """Apply what is missing, each migration in one transaction, and return the connection.

    A copy of an existing database is put into the ``backups`` folder before its schema
    is changed; for that it is closed and opened again with `reopen`.

    Raises
    ------
    WarehouseError
        If the database is newer than this program, was changed by a migration that
        reads differently here, or a migration fails.
    """
    migrations = read_migrations(folder)
    applied = _read_applied(connection)
    _refuse_newer(path, max(applied, default=0), migrations[-1].version)
    _refuse_edited(path, applied, migrations)
    missing = [step for step in migrations if step.version not in applied]
    if missing and applied:
        connection = _back_up(connection, path, max(applied), reopen)
    for step in missing:
        _apply(connection, path, step)
    views = read_views(folder)
    if missing or applied.get(VIEWS) != views.sha256:
        _apply(connection, path, views)
    return connection


def _read_applied(connection: duckdb.DuckDBPyConnection) -> dict[int, str]:
    """Return ``{version: sha256}`` of what the database has been through."""
    known = connection.execute(
        "SELECT count(*) FROM duckdb_tables() WHERE table_name = 'schema_migrations'"
    ).fetchall()
    if known == [(0,)]:
        connection.execute((files("data") / "schema" / "ledger.sql").read_text(encoding="utf-8"))
    rows = connection.execute("SELECT version, sha256 FROM schema_migrations").fetchall()
    return dict(rows)


def _refuse_newer(path: Path, found: int, known: int) -> None:
    if found > known:
        raise WarehouseError(
            str(path),
            f"the database has schema {found}, this newsbeat knows {known} at most",
            "Install a newer newsbeat, or restore the copy that was put into the "
            f"{BACKUPS_FOLDER} folder before the schema was changed",
        )


def _refuse_edited(path: Path, applied: dict[int, str], migrations: list[Migration]) -> None:
    for step in migrations:
        if applied.get(step.version, step.sha256) != step.sha256:
            raise WarehouseError(
                str(path),
                f"its schema {step.version} was made by a different {step.name}",
                "Install the newsbeat that made it, or start with an empty folder: a released "
                "migration never changes",
            )


def _apply(connection: duckdb.DuckDBPyConnection, path: Path, step: Migration) -> None:
    with explained(path):
        connection.execute("BEGIN")
        try:
            connection.execute(step.sql)
            connection.execute("DELETE FROM schema_migrations WHERE version = ?", [step.version])
            connection.execute(
                "INSERT INTO schema_migrations VALUES (?, ?, ?, ?)",
                [step.version, step.name, step.sha256, datetime.now(UTC)],
            )
            connection.execute("COMMIT")
        except BaseException:
            connection.execute("ROLLBACK")
            raise


def _back_up(
    connection: duckdb.DuckDBPyConnection,
    path: Path,
    version: int,
    reopen: Callable[[], duckdb.DuckDBPyConnection],
) -> duckdb.DuckDBPyConnection:
    stamp = datetime.now(UTC).strftime("%Y%m%dT%H%M%SZ")
    copy = path.parent / BACKUPS_FOLDER / f"{path.stem}-schema{version}-{stamp}{path.suffix}"
    with explained(path):
        connection.execute("CHECKPOINT")
        connection.close()
        copy.parent.mkdir(exist_ok=True)
        shutil.copy2(path, copy)
    return reopen()
