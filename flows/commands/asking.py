"""`newsbeat sql`: read-only SQL, live or from the file."""

from __future__ import annotations

import csv
import io
from datetime import datetime
from decimal import Decimal
from typing import Any

import click
from rich.cells import cell_len, set_cell_size

from flows.commands.saying import echo
from models.errors import NewsbeatError
from models.harmless import one_line, spell_json, spreadsheet_cell
from tasks.settings import Settings
from tasks.warehouse_reader import Table, WarehouseReader, open_reader

WIDEST_CELL = 60
EXACT_FROM = 1000
"""Numbers from here on are shown with one decimal instead of four digits."""


def ask(settings: Settings, query: str, form: str = "table") -> str:
    """Return the answer to `query` as a table for people, CSV or JSON.

    Raises
    ------
    WarehouseError
        If there is no warehouse, the statement is no question, or DuckDB refuses it.
    """
    with open_reader(settings) as reader:
        return _render(reader.query(query), form)


def converse(settings: Settings, form: str = "table") -> None:
    """Answer one line after another until the end of input; a wrong one is explained."""
    with open_reader(settings) as reader:
        click.echo('read-only SQL, one statement a line; "SHOW TABLES" to begin, Ctrl-D ends')
        while (line := _next_line()) is not None:
            if line.strip():
                echo(_answer(reader, line, form))


def _next_line() -> str | None:
    try:
        return input("newsbeat> ")
    except (EOFError, KeyboardInterrupt):
        return None


def _answer(reader: WarehouseReader, line: str, form: str) -> str:
    try:
        return _render(reader.query(line), form)
    except NewsbeatError as error:
        return str(error)
    except KeyboardInterrupt:
        return "interrupted"


def _render(table: Table, form: str) -> str:
    if form == "json":
        return spell_json(table.to_dicts())
    if form == "csv":
        output = io.StringIO()
        writer = csv.writer(output, lineterminator="\n")
        writer.writerow(table.columns)
        writer.writerows([spreadsheet_cell(value) for value in row] for row in table.rows)
        return output.getvalue().rstrip("\n")
    return _render_table(table)


def _render_table(table: Table) -> str:
    cells = [[_cell(value) for value in row] for row in table.rows]
    columns = list(zip(table.columns, *cells, strict=True))
    widths = [max(map(cell_len, column)) for column in columns]
    are_numbers = [_holds_numbers(table, at) for at in range(len(columns))]
    lines = [
        "  ".join(map(_aligned, row, widths, are_numbers)).rstrip()
        for row in [table.columns, ["-" * width for width in widths], *cells]
    ]
    lines.append(f"({len(table.rows)} row{'' if len(table.rows) == 1 else 's'})")
    return "\n".join(lines)


def _holds_numbers(table: Table, at: int) -> bool:
    values = [row[at] for row in table.rows if row[at] is not None]
    return bool(values) and all(isinstance(value, int | float | Decimal) for value in values)


def _aligned(text: str, width: int, is_number: bool) -> str:
    return " " * (width - cell_len(text)) + text if is_number else set_cell_size(text, width)


def _cell(value: Any) -> str:
    # What people can read, times in UTC; --csv and --json have every digit.
    if isinstance(value, float):
        return f"{value:.1f}" if abs(value) >= EXACT_FROM else f"{value:.4g}"
    if isinstance(value, datetime):
        return f"{value:%Y-%m-%d %H:%M:%S}"
    text = "" if value is None else one_line(value)
    return text if len(text) <= WIDEST_CELL else text[: WIDEST_CELL - 1] + "…"
