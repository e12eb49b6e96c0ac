"""Read traces of publication times: files with a row per entry, or the warehouse itself."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Any
from zoneinfo import ZoneInfo

import duckdb
import numpy as np

from models.errors import ParseError
from models.traces import Stream

Rows = Iterable[tuple[Any, ...]]

NEEDED = ("source", "published_at")

WORDS = 25
"""Of DuckDB's complaints; what follows is the text of the file."""

LARGEST_S = 1e11
"""A number beyond this is milliseconds since 1970: as seconds it would be the year 5138."""


def read_trace(path: Path, timezone: str | None = None) -> list[Stream]:
    """Return the publication times of each source of a file, in the order of their names.

    Parameters
    ----------
    path
        Parquet, or CSV with a header. Columns ``source`` and ``published_at`` (a time with
        its offset, a time in UTC, or seconds since 1970), and perhaps ``timezone``.
        Rows without a time are left out.
    timezone
        IANA zone of sources whose row names none; UTC where None.

    Raises
    ------
    ParseError
        If the file is no table, lacks a column, or holds a time or a zone nobody can read.
    """
    with duckdb.connect(config={"threads": 2}) as connection:
        connection.execute("SET TimeZone = 'UTC'")
        try:
            rows = _read_rows(_open(connection, path), path)
        except duckdb.Error as error:
            reason = " ".join(str(error).split()[:WORDS])
            raise ParseError(str(path), f"neither Parquet nor CSV: {reason}") from error
    return [
        Stream(
            source,
            np.array(stamps, dtype=np.float64),
            _checked(path, source, own or timezone or "UTC"),
        )
        for source, own, stamps in rows
    ]


def _open(connection: duckdb.DuckDBPyConnection, path: Path) -> duckdb.DuckDBPyRelation:
    try:
        with path.open("rb") as file:
            is_parquet = file.read(4) == b"PAR1"
    except OSError as error:
        raise ParseError(str(path), error.strerror or str(error)) from error
    if is_parquet:
        return connection.read_parquet(str(path))
    return connection.read_csv(str(path), header=True, sample_size=-1)


def _read_rows(table: duckdb.DuckDBPyRelation, path: Path) -> list[tuple[Any, ...]]:
    kinds = {
        column.lower(): str(kind) for column, kind in zip(table.columns, table.types, strict=True)
    }
    for column in NEEDED:
        if column not in kinds:
            raise ParseError(str(path), f"no column {column}; there are: {', '.join(kinds)}")
    dated = table.filter("source IS NOT NULL AND published_at IS NOT NULL").project(
        f"source::VARCHAR AS source, {_moment(kinds['published_at'])} AS stamp,"
        f" published_at::VARCHAR AS written,"
        f" {'timezone' if 'timezone' in kinds else 'NULL'} AS timezone"
    )
    bad = dated.filter("stamp IS NULL").aggregate("count(*), any_value(written)").fetchone()
    assert bad is not None
    if bad[0]:
        raise ParseError(
            str(path),
            f"{bad[1]!r} in published_at is no time (and {bad[0] - 1} more such rows); write"
            " times like 2026-03-01T12:00:00Z, or as seconds since 1970",
        )
    by_source = "source, any_value(timezone), list(stamp ORDER BY stamp)"
    rows = dated.aggregate(by_source, "source").order("source").fetchall()
    if not rows:
        raise ParseError(str(path), "no row has both a source and a time")
    return rows


def _moment(kind: str) -> str:
    """Return SQL for the time in seconds since 1970, NULL where it cannot be read."""
    if kind.startswith("TIMESTAMP") or kind == "DATE":
        return "epoch(published_at::TIMESTAMPTZ)"
    if kind == "VARCHAR":
        return "epoch(try_cast(published_at AS TIMESTAMPTZ))"
    number = "try_cast(published_at AS DOUBLE)"
    return f"if({number} > {LARGEST_S}, {number} / 1000.0, {number})"


def _checked(path: Path, source: str, timezone: str) -> str:
    try:
        ZoneInfo(timezone)
    except (KeyError, ValueError, OSError) as error:
        reason = f"{timezone!r} of {source} is no time zone; an IANA name such as Europe/Moscow is"
        raise ParseError(str(path), reason) from error
    return timezone


def read_warehouse_trace(query: Callable[[str], Rows]) -> list[Stream]:
    """Return the publication times of each source of a warehouse.

    Left out is what cannot be replayed: entries dated to the day or not at all, and those
    that were listed already when their source was first polled, as the rest of their
    time has scrolled off.

    Parameters
    ----------
    query
        Answers a reading statement with rows.
    """
    return [
        Stream(source, np.array(stamps, dtype=np.float64), timezone)
        for source, timezone, stamps in query(_STAMPS)
    ]


_STAMPS = """
SELECT source, coalesce(any_value(timezone), 'UTC'), list(stamp ORDER BY stamp)
FROM (
    SELECT source, epoch(published_at) AS stamp
    FROM entries
    WHERE published_precision IN ('instant', 'minute') AND NOT is_backlog
      AND published_at <= first_seen_at + INTERVAL 5 MINUTE
)
LEFT JOIN (SELECT source, arg_max(timezone, read_at) AS timezone FROM sources GROUP BY source)
    USING (source)
GROUP BY source
ORDER BY source
"""
