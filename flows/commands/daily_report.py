"""`newsbeat report`: the report of a day, now."""

from __future__ import annotations

from datetime import date
from pathlib import Path
from typing import Any

from flows.commands.screen import Screen
from flows.daily import check_zone, write_day_report
from models.errors import ConfigError
from models.report import today, yesterday
from tasks.settings import Settings


def report_now(
    settings: Settings, day: str | None, folder: Path | None, quiet: bool = False
) -> dict[str, Any]:
    """Write the report of a day and say what is in it and where it lies.

    Parameters
    ----------
    day
        ``YYYY-MM-DD``, ``today`` or ``yesterday``; None chooses, as `write_day_report` does.

    Raises
    ------
    ConfigError
        If `day` is none.
    """
    with Screen(quiet) as screen:
        screen.say("reading …")
        written = write_day_report(settings, _read_day(settings, day), folder)
        report = written.report
        screen.say(report.title)
        for line in report.lines:
            screen.say(f"- {line}")
        screen.say(f"for people    {written.folder / 'report.html'}  (and report.md, status.html)")
        screen.say(f"for programs  {len(report.sections)} tables there, as .csv and .parquet")
    return {"folder": str(written.folder), **report.as_json()}


def _read_day(settings: Settings, day: str | None) -> date | None:
    words = {"today": today, "yesterday": yesterday}
    if day is None:
        return None
    if day in words:
        return words[day](settings.clock.now(), check_zone(settings))
    try:
        return date.fromisoformat(day)
    except ValueError as error:
        allowed = "a day is written 2026-03-01; or say today, or yesterday"
        raise ConfigError("--day", "", day, allowed) from error
