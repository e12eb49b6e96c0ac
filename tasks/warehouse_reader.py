"""Read the warehouse, whether its writer runs or not.

While a writer runs, DuckDB lets no other process open the file, so queries go to the
writer's live endpoint. When none does, the file is opened read-only. The same statements
are answered in both cases, and no other: only those that read.
"""

from __future__ import annotations

import re
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path
from typing import Any, Self

import duckdb
import numpy as np

from models.errors import WarehouseError
from models.intensity.history import History
from models.intensity.state import FloatArray
from models.records import BudgetReport, FittedModel, Incident, SourceStatus
from tasks.duck import fitted, histories, incidents, status
from tasks.duck.database import connect, explained, find_failure, literal, load_quack
from tasks.duck.endpoint import READ_ONLY_MACRO, Endpoint, read_endpoint
from tasks.duck.lease import Holder, read_holder
from tasks.duck.rows import utc_row
from tasks.settings import Settings

# A worker takes its lease, brings the schema up to date, and only then serves.
STARTING_S, PAUSE_S = 3.0, 0.1


@dataclass(frozen=True, slots=True)
class Table:
    """The answer to a query.

    Attributes
    ----------
    columns
        Their names; two may be alike.
    rows
        Values as Python has them; times are aware UTC.
    """

    columns: tuple[str, ...]
    rows: tuple[tuple[Any, ...], ...]

    def to_dicts(self) -> list[dict[str, Any]]:
        """Return every row as a dictionary, as ``--json`` prints it."""
        return [dict(zip(self.columns, row, strict=True)) for row in self.rows]


class WarehouseReader:
    """An open warehouse, for reading. Made by :func:`open_reader`; use it in one thread.

    Attributes
    ----------
    endpoint
        The writer's live endpoint, None where the file itself is open.
    """

    def __init__(
        self, settings: Settings, connection: duckdb.DuckDBPyConnection, endpoint: Endpoint | None
    ) -> None:
        self.settings = settings
        self.endpoint = endpoint
        self._connection = connection
        # Judges statements; apart from the database, which may be read-only.
        self._judge = duckdb.connect(config={"threads": 1})
        self._judge.execute(READ_ONLY_MACRO)

    @property
    def is_live(self) -> bool:
        """Whether a writer runs and answers; otherwise the file itself is open."""
        return self.endpoint is not None

    def query(self, sql: str) -> Table:
        """Return the answer to one reading statement.

        Parameters
        ----------
        sql
            SELECT, FROM, VALUES, DESCRIBE, SHOW, SUMMARIZE or EXPLAIN.

        Raises
        ------
        WarehouseError
            If the statement does more than read, or DuckDB cannot make sense of it, or
            the writer stopped meanwhile.
        """
        with self._answering(sql) as answer:
            columns = tuple(str(column[0]) for column in answer.description or [])
            return Table(columns, tuple(utc_row(row) for row in answer.fetchall()))

    def query_numbers(self, sql: str) -> dict[str, FloatArray]:
        """Return the columns of the answer to a reading statement, numbers without NULL all.

        Raises
        ------
        WarehouseError
            As :meth:`query`.
        """
        with self._answering(sql) as answer:
            columns = answer.fetchnumpy()
            return {name: np.asarray(column) for name, column in columns.items()}

    @contextmanager
    def _answering(self, sql: str) -> Iterator[duckdb.DuckDBPyConnection]:
        self._refuse_writing(sql)
        try:
            if self.endpoint is None:
                yield self._connection.execute(sql)
            else:
                yield self._connection.execute(_remote(self.endpoint, sql))
        except duckdb.Error as error:
            raise self._explained(error) from error
        except RuntimeError as error:
            # What DuckDB makes of Ctrl-C.
            if "interrupted" in str(error):
                raise KeyboardInterrupt from error
            raise

    def write_answer(self, sql: str, path: Path, form: str) -> int:
        """Write the answer to a reading statement into a file; return its rows.

        It goes from database to file without ever being in Python: a year of articles takes
        no more memory than a day.

        Parameters
        ----------
        form
            ``csv``, ``parquet`` or ``jsonl``.

        Raises
        ------
        WarehouseError
            As :meth:`query`, and if the file cannot be written.
        """
        self._refuse_writing(sql)
        if self.endpoint is not None:
            return _copy(self._connection, _remote(self.endpoint, sql), path, form)
        # The file's own connection reaches no other file.
        with connect(":memory:", self.settings.warehouse) as connection:
            database = literal(str(self.settings.database))
            with explained(self.settings.database):
                connection.execute(f"ATTACH {database} AS newsbeat (READ_ONLY)")
                connection.execute("USE newsbeat")
            return _copy(connection, f"FROM ({sql})", path, form)

    def read_status(self, now: datetime) -> list[SourceStatus]:
        """Return how every source fares at `now`."""
        return status.read_status(lambda sql: self.query(sql).rows, now)

    def read_budget(self) -> BudgetReport | None:
        """Return how the budget stands; None before a worker has reckoned it."""
        rows = self.query("FROM budget ORDER BY reckoned_at DESC LIMIT 1").rows
        return BudgetReport(*rows[0]) if rows else None

    def read_incidents(self) -> list[Incident]:
        """Return what stands: incidents that have begun and are not over, the oldest first."""
        return incidents.read_standing(lambda sql: self.query(sql).rows)

    def read_intensity_models(self) -> list[FittedModel]:
        """Return the last fitted model of every source that has one."""
        return fitted.read_models(lambda sql: self.query(sql).rows)

    def read_histories(
        self, sources: Sequence[tuple[str, str]], since: datetime, until: datetime
    ) -> list[History]:
        """Return the history of each source that was polled, in the order asked for.

        Parameters
        ----------
        sources
            Names and IANA zones.
        since, until
            Polls before and after do not count, nor do their entries.
        """
        return histories.read_histories(self.query_numbers, sources, since, until)

    def close(self) -> None:
        """Let go of the file, or of the writer."""
        self._judge.close()
        self._connection.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *about: object) -> None:
        self.close()

    def _refuse_writing(self, sql: str) -> None:
        """Refuse what the endpoint would refuse, with more words than it has."""
        try:
            statements = self._judge.extract_statements(sql)
        except duckdb.Error as error:
            raise self._explained(error) from error
        if len(statements) != 1:
            raise self._error(f"one statement at a time, not {len(statements)}")
        question = f"SELECT newsbeat_reads_only('', {literal(sql)})"
        if self._judge.execute(question).fetchall() != [(True,)]:
            kind = statements[0].type.name.replace("_", " ")
            raise self._error(f"only statements that read are answered, and this {kind} does more")

    def _explained(self, error: duckdb.Error) -> WarehouseError:
        text = _without_wrapping(str(error))
        if self.endpoint is not None and "Failed to send message" in text:
            return self._error("the worker that answers queries has stopped", "Ask again")
        # A mistake in a statement may quote any word; only these are about the file.
        is_trouble = isinstance(error, duckdb.IOException | duckdb.OutOfMemoryException)
        failure = find_failure(text) if is_trouble else None
        return self._error(*failure) if failure else self._error(text)

    def _error(self, reason: str, way_out: str = "") -> WarehouseError:
        hint = way_out or 'See `newsbeat sql "SHOW TABLES"`, and the examples in docs/sql.md'
        return WarehouseError(str(self.settings.database), reason, hint)


def open_reader(settings: Settings) -> WarehouseReader:
    """Open the warehouse for reading: through its writer if one runs, else from the file.

    Raises
    ------
    WarehouseError
        If there is no warehouse yet, or a process holds it that answers no queries.
    """
    folder, path = settings.folder, settings.database
    holder = read_holder(folder)
    if holder is not None:
        endpoint = _wait_for_endpoint(folder, holder)
        if endpoint is not None:
            return WarehouseReader(settings, _connect_client(settings), endpoint)
    if not path.exists():
        raise WarehouseError(
            str(path),
            "there is no warehouse yet",
            "Collect something first: `newsbeat up`, or `newsbeat poll SOURCE`; another home "
            "folder is named with --home",
        )
    connection = connect(path, settings.warehouse, read_only=True)
    connection.execute("SET enable_external_access = false")
    return WarehouseReader(settings, connection, None)


def attach_live(settings: Settings, name: str = "newsbeat") -> duckdb.DuckDBPyConnection:
    """Return a DuckDB of your own with the warehouse attached as `name`, for notebooks.

    Your own files, tables and settings stand beside it. While the worker runs the
    warehouse is attached through it, live; otherwise the file is attached, read-only.

    Raises
    ------
    WarehouseError
        As :func:`open_reader`.
    """
    with open_reader(settings) as reader:
        endpoint = reader.endpoint
    connection = _connect_client(settings)
    with explained(settings.database):
        if endpoint is None:
            connection.execute(f"ATTACH {literal(str(settings.database))} AS {name} (READ_ONLY)")
        else:
            connection.execute(
                f"ATTACH {literal(endpoint.address)} AS {name} "
                f"(TYPE quack, TOKEN {literal(endpoint.token)}, DISABLE_SSL true)"
            )
    return connection


def _connect_client(settings: Settings) -> duckdb.DuckDBPyConnection:
    connection = connect(":memory:", settings.warehouse)
    load_quack(connection)
    return connection


def _wait_for_endpoint(folder: Path, holder: Holder) -> Endpoint | None:
    """Return the holder's endpoint; None if the holder let go meanwhile.

    Raises
    ------
    WarehouseError
        If it serves none.
    """
    started = time.monotonic()
    while time.monotonic() - started < STARTING_S:
        endpoint = read_endpoint(folder)
        if endpoint is not None and holder.pid in (0, endpoint.pid):
            return endpoint
        time.sleep(PAUSE_S)
        found = read_holder(folder)
        if found is None:
            return None
        holder = found
    raise WarehouseError(
        str(folder),
        f"the warehouse is in use by {holder}, which answers no queries",
        "Ask again once that is done",
    )


FORMS = {"csv": "csv, HEADER", "parquet": "parquet, COMPRESSION zstd", "jsonl": "json"}
"""What a file may be, and what DuckDB calls it."""


def _copy(connection: duckdb.DuckDBPyConnection, sql: str, path: Path, form: str) -> int:
    with explained(path):
        written = connection.execute(f"COPY ({sql}) TO {literal(str(path))} (FORMAT {FORMS[form]})")
        return int(written.fetchall()[0][0])


def _remote(endpoint: Endpoint, sql: str) -> str:
    return (
        f"FROM quack_query({literal(endpoint.address)}, {literal(sql)}, "
        f"token = {literal(endpoint.token)}, disable_ssl = true)"
    )


def _without_wrapping(message: str) -> str:
    r"""Return what is wrong with a statement, in one line.

    Left out are the kind of error, the picture of the place, and what the statement was
    wrapped in on its way to the endpoint, which holds the token.

    Examples
    --------
    >>> _without_wrapping("Catalog Error: Table x does not exist!\nDid you mean y?\n\nLINE 3: x")
    'Table x does not exist; did you mean y (line 3)'
    """
    text = re.sub(r"^(?:[A-Z][A-Za-z-]* )+Error: ", "", message)
    text, *places = re.split(r"\n+LINE (?=\d+:)", text)
    what = " ".join(text.split()).replace("! Did you", "; did you").rstrip(".!?")
    line = places[0].partition(":")[0] if places else "1"
    return f"{what} (line {line})" if line != "1" else what
