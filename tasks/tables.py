"""Write tables as CSV and Parquet files."""

from __future__ import annotations

import csv
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import duckdb

from models.harmless import spreadsheet_cell
from tasks.duck.database import explained, literal
from tasks.duck.rows import insert_rows

UTF8_MARK = "\ufeff"
"""Without it spreadsheets take the file for one of their own alphabet."""


@dataclass(frozen=True, slots=True)
class Sheet:
    """A table to be written.

    Attributes
    ----------
    columns
        Names and SQL types.
    """

    name: str
    columns: Sequence[tuple[str, str]]
    rows: Sequence[Sequence[Any]] = field(repr=False)


def write_sheets(folder: Path, sheets: Sequence[Sheet]) -> list[Path]:
    """Write each table as CSV and as Parquet into a folder that is there; return the files.

    Raises
    ------
    WarehouseError
        If the disk is full or may not be written to.
    """
    files = []
    with duckdb.connect(config={"threads": 1}) as connection:
        connection.execute("SET TimeZone = 'UTC'")
        for sheet in sheets:
            with explained(folder):
                files += [_write_csv(folder, sheet), _write_parquet(folder, sheet, connection)]
    return files


def _write_csv(folder: Path, sheet: Sheet) -> Path:
    path = folder / f"{sheet.name}.csv"
    with path.open("w", encoding="utf-8", newline="") as file:
        file.write(UTF8_MARK)
        writer = csv.writer(file, lineterminator="\n")
        writer.writerow([name for name, _ in sheet.columns])
        writer.writerows([spreadsheet_cell(cell) for cell in row] for row in sheet.rows)
    return path


def _write_parquet(folder: Path, sheet: Sheet, connection: duckdb.DuckDBPyConnection) -> Path:
    path = folder / f"{sheet.name}.parquet"
    columns = ", ".join(f'"{name}" {kind}' for name, kind in sheet.columns)
    connection.execute(f"CREATE OR REPLACE TEMP TABLE sheet ({columns})")
    insert_rows(connection, "sheet", sheet.rows)
    connection.execute(f"COPY sheet TO {literal(str(path))} (FORMAT parquet)")
    return path
