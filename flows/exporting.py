"""Everything out: sources as OPML, tables as files, saved searches as feeds."""

from __future__ import annotations

import csv
import io
from collections.abc import Callable
from datetime import UTC, datetime
from pathlib import Path

from models.errors import ConfigError
from models.harmless import spreadsheet_cell
from models.kinds import as_polled
from models.records import Source
from models.search import SavedSearch
from models.syndication import OutFeed, Outline, render_atom, render_json_feed, render_opml
from tasks.catalogue import read_catalogue, source_texts
from tasks.clippings import read_clippings
from tasks.searches import read_searches
from tasks.settings import Settings
from tasks.warehouse_reader import WarehouseReader, open_reader

TABLES = {
    "articles": "stored_at",
    "article_versions": "seen_at",
    "entries": "first_seen_at",
    "entry_changes": "seen_at",
    "pages": "fetched_at",
    "polls": "started_at",
    "rule_hits": "hit_at",
    "notices": "raised_at",
    "page_verdicts": "judged_at",
    "drift_checks": "checked_at",
    "forecasts": "hour_at",
    "budget": "reckoned_at",
    "sources": "",
    "schedule": "",
    "intensity_models": "",
}
"""What can be exported, and the column that says of when a row is."""

UNREADABLE = ("BLOB", "BIGINT[]")
"""Columns of these types are for the worker alone, and left out."""

FEEDS: dict[str, Callable[[OutFeed], str]] = {
    "atom": render_atom,
    "json-feed": render_json_feed,
}


def export_opml(settings: Settings) -> str:
    """Return the catalogue as OPML."""
    outlines = [_outline(source) for source in read_catalogue(settings).sources]
    return render_opml("newsbeat", outlines, settings.clock.now())


def _outline(source: Source) -> Outline:
    polled = as_polled(source)
    is_feed = polled.kind not in ("sitemap", "list", "telegram")
    own = {"source": source.source, "kind": source.kind}
    if source.timezone != "UTC":
        own["timezone"] = source.timezone
    feed_url = polled.url if is_feed else ""
    return Outline(source.title, source.url, feed_url, source.tags, source.language or "", own)


def export_catalogue(settings: Settings) -> str:
    """Return the catalogue as CSV: a row a source, a column a key that any of them sets."""
    rows = [source_texts(source) for source in read_catalogue(settings).sources]
    keys = list(dict.fromkeys([*CATALOGUE_COLUMNS, *sorted(key for row in rows for key in row)]))
    table = io.StringIO()
    writer = csv.writer(table, lineterminator="\n")
    writer.writerow(keys)
    writer.writerows([[spreadsheet_cell(row.get(key, "")) for key in keys] for row in rows])
    return table.getvalue()


CATALOGUE_COLUMNS = ("source", "title", "url", "kind", "language", "timezone", "country", "tags")
"""Columns that are always there."""

CATALOGUE = "catalogue"
"""What is exported without a warehouse: the sources, as `newsbeat import` reads them."""


def export_table(
    settings: Settings, table: str, path: Path, form: str, since: datetime | None = None
) -> int:
    """Write a table of the warehouse into a file; return its rows.

    Parameters
    ----------
    form
        ``csv``, ``parquet`` or ``jsonl``. In CSV a cell that a spreadsheet would take for a
        formula gets a ``'`` in front.

    Raises
    ------
    ConfigError
        If there is no such table, or its rows are of no time.
    WarehouseError
        If there is no warehouse, or the file cannot be written.
    """
    if table not in TABLES:
        raise ConfigError("--what", "", table, f"{table!r} is none of {', '.join(TABLES)}")
    if since is not None and not TABLES[table]:
        raise ConfigError("--since", "", None, f"rows of {table} are of no time; leave it out")
    with open_reader(settings) as reader:
        return reader.write_answer(_question(reader, table, since, form), path, form)


def _question(reader: WarehouseReader, table: str, since: datetime | None, form: str) -> str:
    columns = reader.query(f"DESCRIBE {table}").rows
    shown = [
        f"{SAFE_CELL.format(name)} AS {name}" if form == "csv" and kind == "VARCHAR" else str(name)
        for name, kind, *_ in columns
        if kind not in UNREADABLE
    ]
    when = TABLES[table]
    moment = "" if since is None else f"TIMESTAMPTZ '{since.astimezone(UTC).isoformat()}'"
    where = f"WHERE {when} >= {moment}" if moment else ""
    order = f"ORDER BY {when}" if when else ""
    return f"SELECT {', '.join(shown)} FROM {table} {where} {order}"  # noqa: S608 - names are ours


FORMULA = r"^[=+\-@\t\r\n＝＋－＠]"
SAFE_CELL = f"CASE WHEN regexp_matches({{0}}, '{FORMULA}') THEN '''' || {{0}} ELSE {{0}} END"
"""As `models.harmless.spreadsheet_cell`, in SQL."""


def find_search(settings: Settings, name: str) -> SavedSearch:
    """Return the saved search of a name.

    Raises
    ------
    ConfigError
        If there is none, or it is written wrong.
    """
    searches, problems = read_searches(settings)
    wrong = next((each for each in problems if each.key.partition(".")[0] in (name, "")), None)
    if wrong is not None:
        raise wrong
    if name not in searches:
        raise ConfigError("--search", "", name, f"{name!r} is none of {', '.join(searches)}")
    return searches[name]


def export_feed(settings: Settings, search: SavedSearch, form: str) -> str:
    """Return what a search finds as a feed, ``atom`` or ``json-feed``."""
    with open_reader(settings) as reader:
        return render_feed(reader, search, form, settings.clock.now())


def render_feed(reader: WarehouseReader, search: SavedSearch, form: str, now: datetime) -> str:
    """Return the feed of a search, from a warehouse that is open."""
    items = read_clippings(reader, search, now)
    return FEEDS[form](OutFeed(search.search, search.heading, items, now))
