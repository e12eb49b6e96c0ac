"""Open DuckDB the way the warehouse wants it, and say in one sentence what goes wrong."""

from __future__ import annotations

import importlib.util
import re
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

import duckdb

from models.errors import WarehouseError
from tasks.settings import WarehouseSettings

# Both sides of a live connection need both: quack speaks through httpfs.
# Room on the disk for what does not fit into memory; by itself DuckDB takes nine tenths.
SPILL_LIMIT = "5GB"

EXTENSIONS = ("httpfs", "quack")


def connect(
    path: Path | str, settings: WarehouseSettings, read_only: bool = False
) -> duckdb.DuckDBPyConnection:
    """Open a database with the limits of `settings`; all times are shown in UTC.

    Nothing is ever downloaded: extensions come as Python packages.

    Raises
    ------
    WarehouseError
        If the file cannot be opened.
    """
    config: dict[str, str | bool | int | float | list[str]] = {
        "autoinstall_known_extensions": False,
        "autoload_known_extensions": False,
        "memory_limit": settings.memory_limit,
        "threads": settings.threads,
        "preserve_insertion_order": False,
        "max_temp_directory_size": SPILL_LIMIT,
    }
    with explained(path):
        connection = duckdb.connect(str(path), read_only=read_only, config=config)
        # For the sessions of the live endpoint too.
        connection.execute("SET GLOBAL TimeZone = 'UTC'")
        return connection


def load_quack(connection: duckdb.DuckDBPyConnection) -> None:
    """Load the extensions of the live connection from their Python packages.

    Raises
    ------
    WarehouseError
        If one is not installed, or does not fit this DuckDB.
    """
    for name in EXTENSIONS:
        path = extension_path(name)
        with explained(path):
            connection.execute(f"LOAD {literal(str(path))}")


def extension_path(name: str) -> Path:
    """Return the file of a DuckDB extension that is installed as a Python package."""
    package = f"duckdb_extension_{name}"
    spec = importlib.util.find_spec(package)
    for folder in (spec.submodule_search_locations if spec else None) or []:
        path = Path(folder) / "extensions" / f"v{duckdb.__version__}" / f"{name}.duckdb_extension"
        if path.exists():
            return path
    raise WarehouseError(
        package,
        f"the DuckDB extension {name} for DuckDB {duckdb.__version__} is not installed",
        f"Install it: pip install duckdb-extension-{name}=={duckdb.__version__}",
    )


def literal(text: str) -> str:
    """Return `text` as an SQL string.

    Examples
    --------
    >>> literal("it's")
    "'it''s'"
    """
    return "'" + text.replace("'", "''") + "'"


@contextmanager
def explained(path: Path | str) -> Iterator[None]:
    """Turn failures of DuckDB and of the file system into one clear sentence.

    Raises
    ------
    WarehouseError
        In place of ``duckdb.Error`` and ``OSError``.
    """
    try:
        yield
    except (duckdb.Error, OSError) as error:
        reason, way_out = explain(str(error), str(path))
        raise WarehouseError(str(path), reason, way_out) from error


@dataclass(frozen=True, slots=True)
class Failure:
    """What DuckDB or the system says (a pattern), what that means, and the way out."""

    pattern: str
    reason: str
    way_out: str


# The first that matches counts.
FAILURES = (
    Failure(
        r"Conflicting lock is held in (.*?)\(PID (\d+)\)",
        "the file is open in another program, {0}(PID {1})",
        "Close it there, or end that program (kill {1})",
    ),
    Failure(
        r"No space left|[Dd]isk full|disk quota|File too large|Could not write|Could not fsync"
        r"|wrote \d+/\d+|Out of disk|max_temp_directory_size",
        "the disk is full, and nothing of this step was stored",
        "Free some space: then it goes on by itself, and what was stored before is safe",
    ),
    Failure(
        r"[Rr]ead-only file system|Permission denied|read only",
        "the file or its folder cannot be written",
        "Give this user write permission, or name another folder with NEWSBEAT_WAREHOUSE_FOLDER",
    ),
    Failure(
        r"version number (\d+)",
        "the file was written by a newer DuckDB (storage version {0})",
        "Install the newsbeat that wrote it, or restore a copy from the backups folder",
    ),
    Failure(
        r"not a valid DuckDB database|[Cc]orrupt|[Cc]hecksum|Failure while replaying WAL"
        r"|Serialization Error|read enough bytes|magic bytes|Could not read",
        "the file is damaged",
        "Move it away and put the last copy from the backups folder in its place, or start "
        "an empty one: raw pages are kept in the warc folder",
    ),
    Failure(
        r"database has been invalidated|fatal error",
        "a write failed before, so the database was closed to protect the file",
        "Start newsbeat again; what was stored before is safe",
    ),
    Failure(
        r"Out of Memory|could not allocate",
        "the memory limit of the warehouse is too small for this",
        "Raise it with NEWSBEAT_WAREHOUSE_MEMORY_LIMIT, for example to 2GB",
    ),
)


def explain(message: str, path: str = "") -> tuple[str, str]:
    """Return what is wrong and the way out, for a message of DuckDB or the system.

    Parameters
    ----------
    path
        The file in question. It may hold any word, and must not decide.

    Examples
    --------
    >>> explain("IO Error: ... No space left on device")[0]
    'the disk is full, and nothing of this step was stored'
    """
    known = find_failure(message.replace(path, "the file") if path else message)
    return known or (" ".join(message.split()), "`newsbeat doctor` checks the installation")


def find_failure(message: str) -> tuple[str, str] | None:
    """Return reason and way out of a failure that is known, None for any other."""
    for failure in FAILURES:
        if found := re.search(failure.pattern, message):
            parts = found.groups()
            return failure.reason.format(*parts), failure.way_out.format(*parts)
    return None
