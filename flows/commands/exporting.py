"""`newsbeat export`: anything out, into a file or to standard output."""

from __future__ import annotations

import shutil
import sys
import tempfile
from datetime import datetime
from pathlib import Path

from flows.commands.saying import echo, echo_for_programs
from flows.commands.trying import read_span
from flows.exporting import (
    CATALOGUE,
    FEEDS,
    export_catalogue,
    export_feed,
    export_opml,
    export_table,
    find_search,
)
from models.errors import ConfigError
from tasks.files import write_text
from tasks.settings import Settings


def export(
    settings: Settings, form: str, what: str, search: str, since: str | None, out: Path | None
) -> str:
    """Write what is wanted to `out`, or to standard output; return what was done, in words.

    Raises
    ------
    ConfigError
        If an option fits no other, or names what is not there.
    WarehouseError
        If there is no warehouse, or the file cannot be written.
    """
    if form == "opml":
        return _write(export_opml(settings), out, "the catalogue")
    if form == "csv" and what == CATALOGUE:
        return _write(export_catalogue(settings), out, "the catalogue")
    if form in FEEDS:
        return _write(export_feed(settings, find_search(settings, search), form), out, search)
    span = read_span(since) if since else None
    moment = settings.clock.now() - span if span else None
    if out is not None:
        out.parent.mkdir(parents=True, exist_ok=True)
        rows = export_table(settings, what, out, form, moment)
        return f"{rows:,} rows of {what} in {out}"
    return _stream(settings, form, what, moment)


def _write(text: str, out: Path | None, what: str) -> str:
    if out is None:
        echo_for_programs(text.removesuffix("\n"))
        return ""
    write_text(out, text)
    return f"{what} in {out}"


def _stream(settings: Settings, form: str, what: str, since: datetime | None) -> str:
    """Write a table to standard output, by way of a file: DuckDB writes no other way."""
    if form == "parquet" and sys.stdout.isatty():
        raise ConfigError("--out", "", None, "Parquet is no text: name a file with --out")
    with tempfile.TemporaryDirectory(prefix="newsbeat-") as folder:
        path = Path(folder) / f"export.{form}"
        export_table(settings, what, path, form, since)
        if sys.stdout.isatty():
            echo(path.read_text(encoding="utf-8"))
            return ""
        with path.open("rb") as file:
            shutil.copyfileobj(file, sys.stdout.buffer)
            sys.stdout.flush()
    return ""
