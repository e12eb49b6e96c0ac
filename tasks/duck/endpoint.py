"""The live SQL endpoint: where it listens, its token, and what it lets through."""

from __future__ import annotations

import json
import os
import secrets
import socket
from contextlib import suppress
from dataclasses import asdict, dataclass, field
from pathlib import Path

import duckdb

from models.errors import WarehouseError
from tasks.duck.database import literal, load_quack

ENDPOINT_FILE = "endpoint.json"
HOST = "127.0.0.1"

# How often a free port is looked for: another program may take it in between.
TRIES = 5

# True for a statement that only reads. DuckDB itself parses it: only a SELECT (with
# DESCRIBE, SHOW, SUMMARIZE and VALUES, which are SELECTs to the parser) can be
# serialized. An EXPLAIN is judged by what it explains. Functions that act although they
# are called from a SELECT, or hide a statement in a text, are refused by name.
READ_ONLY_MACRO = r"""
CREATE OR REPLACE MACRO newsbeat_reads_only(session, statement) AS (
    WITH parsed AS (
        SELECT json_serialize_sql(
            regexp_replace(statement, '^\s*explain\s+(analyze\s+)?', '', 'i')::VARCHAR
        )::VARCHAR AS tree
    )
    SELECT coalesce(
        tree ->> '$.error' = 'false'
        AND NOT regexp_matches(
            tree,
            '"function_name":"(quack_\w+|query|query_table|\w*checkpoint|\w+_logging|\w+_profiling|truncate_\w+|write_\w+)"',
            'i'
        ),
        false
    )
    FROM parsed
)
"""


@dataclass(frozen=True, slots=True)
class Endpoint:
    """Where the warehouse can be queried while its writer runs.

    Attributes
    ----------
    address
        Such as ``quack:127.0.0.1:9494``.
    token
        Secret that lets a client in; anyone who has it can read everything.
    pid
        Process that serves.
    """

    address: str
    token: str = field(repr=False)
    pid: int


def serve_endpoint(connection: duckdb.DuckDBPyConnection, folder: Path, port: int) -> Endpoint:
    """Start the live endpoint on loopback and write its address and token for readers.

    It answers reading statements only, and reaches no file of this machine but the
    database itself.

    Parameters
    ----------
    port
        0 takes a free one.

    Raises
    ------
    WarehouseError
        If the port is taken.
    """
    load_quack(connection)
    connection.execute(READ_ONLY_MACRO)
    connection.execute("SET GLOBAL quack_authorization_function = 'newsbeat_reads_only'")
    connection.execute("SET GLOBAL enable_external_access = false")
    token = secrets.token_urlsafe(32)
    address = _listen(connection, folder, port, token)
    endpoint = Endpoint(address, token, os.getpid())
    _write(folder / ENDPOINT_FILE, endpoint)
    return endpoint


def stop_endpoint(connection: duckdb.DuckDBPyConnection, folder: Path, endpoint: Endpoint) -> None:
    """Remove the file that says where, and stop serving.

    While a query runs, stopping would wait for its end, which may never come. Then the end
    of the process is what stops it.
    """
    (folder / ENDPOINT_FILE).unlink(missing_ok=True)
    with suppress(duckdb.Error):
        if not read_running(connection):
            connection.execute(f"CALL quack_stop({literal(endpoint.address)})")


def read_running(connection: duckdb.DuckDBPyConnection) -> list[tuple[float, str]]:
    """Return for how many wall seconds each live query has run, the longest first, and its text."""
    rows = connection.execute(
        "SELECT epoch(now()::TIMESTAMP - query_started_at), query"
        " FROM quack_active_connections() WHERE state = 'active' ORDER BY query_started_at"
    ).fetchall()
    return [(float(seconds or 0.0), str(query)) for seconds, query in rows]


def read_endpoint(folder: Path) -> Endpoint | None:
    """Return the endpoint written last, None where there is none.

    It may be left over from a process that was killed: whether the writer lives is what
    the lease tells.
    """
    try:
        return Endpoint(**json.loads((folder / ENDPOINT_FILE).read_text(encoding="utf-8")))
    except FileNotFoundError:
        return None
    except PermissionError as error:
        raise WarehouseError(
            str(folder / ENDPOINT_FILE),
            "only the user who runs the worker may read the token of the live endpoint",
            "Run this as that user",
        ) from error
    except (ValueError, TypeError):
        return None


def _listen(connection: duckdb.DuckDBPyConnection, folder: Path, port: int, token: str) -> str:
    for _ in range(TRIES):
        chosen = port or _free_port()
        if port and not _is_free(port):
            break
        address = f"quack:{HOST}:{chosen}"
        with suppress(duckdb.Error):
            connection.execute(
                f"CALL quack_serve({literal(address)}, token = {literal(token)})"
            ).fetchall()
            return address
    raise WarehouseError(
        str(folder),
        f"port {port or '(any)'} on {HOST}, for live SQL, is taken",
        "Stop what listens there, or choose another with NEWSBEAT_WAREHOUSE_QUACK_PORT "
        "(0 takes a free one)",
    )


def _free_port() -> int:
    with socket.socket() as probe:
        probe.bind((HOST, 0))
        return int(probe.getsockname()[1])


def _is_free(port: int) -> bool:
    # quack shares a port with another quack without a word; a plain socket does not.
    with socket.socket() as probe:
        try:
            probe.bind((HOST, port))
        except OSError:
            return False
    return True


def _write(path: Path, endpoint: Endpoint) -> None:
    """Write the endpoint into a file that was never readable by anyone else."""
    path.unlink(missing_ok=True)
    flags = os.O_WRONLY | os.O_CREAT | os.O_EXCL
    with os.fdopen(os.open(path, flags, 0o600), "w", encoding="utf-8") as file:
        json.dump(asdict(endpoint), file)
