"""The report of a day: read, made, and written as files for people and programs."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import date
from pathlib import Path
from zoneinfo import ZoneInfo, ZoneInfoNotFoundError

from flows.page import StatusPages
from models.daybook import Span
from models.errors import ConfigError, NewsbeatError
from models.report import (
    DayReport,
    Kind,
    link_of,
    make_report,
    render_markdown,
    spell_cell,
    yesterday,
)
from tasks.daybook import read_bounds, read_day
from tasks.files import write_text
from tasks.settings import SETTINGS_FILE, Settings
from tasks.tables import Sheet, write_sheets
from tasks.templates import ALONE, render_alone
from tasks.warehouse_reader import open_reader

SQL_TYPES: dict[Kind, str] = {
    "text": "VARCHAR",
    "count": "BIGINT",
    "number": "DOUBLE",
    "span": "DOUBLE",
    "moment": "TIMESTAMPTZ",
    "flag": "BOOLEAN",
}


@dataclass(frozen=True, slots=True)
class WrittenReport:
    """A report, and where it went.

    Attributes
    ----------
    folder
        Holds ``report.md``, ``report.html``, ``status.html`` and the tables.
    """

    report: DayReport
    folder: Path


def write_day_report(
    settings: Settings, day: date | None = None, folder: Path | None = None
) -> WrittenReport:
    """Write the report of a day, and return it.

    Parameters
    ----------
    day
        None takes yesterday; in a young warehouse its first day, in one that nothing
        feeds any more its last.
    folder
        None takes one named after the day, in the folder of the settings.

    Raises
    ------
    WarehouseError
        If there is no warehouse yet, or it cannot be read.
    NewsbeatError
        If nothing was collected yet, or the files cannot be written.
    ConfigError
        If the time zone of the settings does not exist.
    """
    report = make_day_report(settings, day)
    folder = folder or settings.home / settings.report.folder / report.span.day.isoformat()
    write_text(folder / "report.md", render_markdown(report))
    write_text(folder / "report.html", render_report(report))
    write_text(folder / "status.html", StatusPages(settings).render_overview(ALONE))
    write_sheets(folder, make_sheets(report))
    return WrittenReport(report, folder)


def make_day_report(settings: Settings, day: date | None = None) -> DayReport:
    """Return the report of a day; parameters and errors as `write_day_report`."""
    timezone = check_zone(settings)
    now = settings.clock.now()
    with open_reader(settings) as reader:
        bounds = read_bounds(reader)
        if bounds is None:
            raise NewsbeatError(
                f"{settings.database}: nothing was collected yet, so there is nothing to report;"
                " start with `newsbeat up`"
            )
        if day is None:
            first, last = (moment.astimezone(ZoneInfo(timezone)).date() for moment in bounds)
            day = max(min(yesterday(now, timezone), last), first)
        span = Span.of(day, timezone, settings.report.baseline_days)
        facts = read_day(reader, span)
    return make_report(facts, now, settings.clock.speed)


def check_zone(settings: Settings) -> str:
    """Return the time zone of the settings.

    Raises
    ------
    ConfigError
        If there is none of that name.
    """
    name = settings.report.timezone
    try:
        ZoneInfo(name)
    except (ZoneInfoNotFoundError, ValueError, OSError) as error:
        where = str(settings.home / SETTINGS_FILE)
        reason = "there is no such time zone; an example: Europe/Berlin"
        raise ConfigError(where, "report.timezone", name, reason) from error
    return name


def render_report(report: DayReport) -> str:
    """Return the report as a page that needs no other file."""
    values = {
        "report": report,
        "speed": report.speed,
        "spell_cell": spell_cell,
        "link_of": link_of,
    }
    return render_alone("report.html", values)


def make_sheets(report: DayReport) -> list[Sheet]:
    """Return the sections as tables for files."""
    return [
        Sheet(
            section.name,
            [(column.name, SQL_TYPES[column.kind]) for column in section.columns],
            section.rows,
        )
        for section in report.sections
    ]
