"""The charts of the status page: which rows of numbers, under which names."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Iterable, Sequence
from datetime import datetime, timedelta
from operator import attrgetter
from typing import TypeVar

from models.drawing import Chart, Series
from models.overview import (
    DAYS_SHOWN,
    HOURS_SHOWN,
    ForecastHour,
    LagHour,
    LevelDay,
    PollHour,
    VerdictDay,
)
from models.records import BudgetReport

LEVELS = (1, 2, 3, 4, 5)

LEVEL_NAMES = {1: "at once", 2: "soon", 3: "hourly", 4: "daily", 5: "kept"}
"""What a level of urgency means to whoever waits for it."""

HOUR, DAY = timedelta(hours=1), timedelta(days=1)

T = TypeVar("T")


def draw_lags(
    hours: Sequence[LagHour], now: datetime, target_s: float | None, target_name: str = "target"
) -> Chart:
    """Return the chart of the publication lag, hour by hour."""
    moments = _hours_until(now)
    found = _by_moment(hours, "hour_at")
    rows = [found.get(moment) for moment in moments]
    return Chart(
        "lag",
        "Publication lag",
        f"median and 95th percentile of each of the last {HOURS_SHOWN} hours",
        moments,
        (
            Series("95 of 100 are faster", _column(rows, lambda row: row.p95_lag_s), tone=2),
            Series("median", _column(rows, lambda row: row.median_lag_s)),
        ),
        unit="s",
        target=target_s,
        target_name=target_name,
    )


def draw_polls(hours: Sequence[PollHour], now: datetime) -> Chart:
    """Return the chart of the polls of each hour, those that failed apart."""
    moments = _hours_until(now)
    found = _by_moment(hours, "hour_at")
    rows = [found.get(moment) for moment in moments]
    return Chart(
        "polls",
        "Polls an hour",
        f"polls of each of the last {HOURS_SHOWN} hours, and how many of them failed",
        moments,
        (
            Series("answered", _column(rows, lambda row: row.n_polls - row.n_failed), "bars"),
            Series("failed", _column(rows, lambda row: row.n_failed), "bars", 3),
        ),
    )


def draw_traffic(hours: Sequence[PollHour], now: datetime) -> Chart:
    """Return the chart of what was received in each hour."""
    moments = _hours_until(now)
    found = _by_moment(hours, "hour_at")
    rows = [found.get(moment) for moment in moments]
    megabytes = _column(rows, lambda row: row.megabytes)
    return Chart(
        "traffic",
        "MB an hour",
        f"megabytes received in each of the last {HOURS_SHOWN} hours",
        moments,
        (Series("MB", megabytes, "bars"),),
    )


def draw_forecast(hours: Sequence[ForecastHour], now: datetime) -> Chart:
    """Return the chart of entries expected against entries that came."""
    first, last = _hours_until(now)[0], max([row.hour_at for row in hours], default=now)
    moments = _evenly(first, last, HOUR)
    found = _by_moment(hours, "hour_at")
    rows = [found.get(moment) for moment in moments]
    return Chart(
        "forecast",
        "Entries an hour",
        "entries that came in each hour, what was expected of it, and the likely range",
        moments,
        (
            Series(
                "likely range",
                _column(rows, lambda row: row.low),
                "band",
                2,
                _column(rows, lambda row: row.high),
            ),
            Series("came", _column(rows, lambda row: row.actual), "bars"),
            Series("expected", _column(rows, lambda row: row.expected), tone=2),
        ),
    )


def draw_spending(budgets: Sequence[BudgetReport], now: datetime) -> Chart:
    """Return the chart of what a day costs at the pace of each hour, against the plan."""
    moments = _hours_until(now)
    found = {_hour_of(row.reckoned_at): row for row in budgets}
    rows = [found.get(moment) for moment in moments]
    planned = next((row.planned_per_day for row in reversed(budgets)), None)
    unit = budgets[-1].currency if budgets else "polls"
    return Chart(
        "spending",
        f"{unit} a day",
        f"{unit} a day at the pace of each hour, against what is planned",
        moments,
        (
            Series("expected", _column(rows, lambda row: row.expected_per_day), tone=2),
            Series("spent", _column(rows, lambda row: row.spent_per_day)),
        ),
        target=planned,
        target_name="planned",
    )


def draw_price(budgets: Sequence[BudgetReport], now: datetime) -> Chart:
    """Return the chart of what a poll had to save."""
    moments = _hours_until(now)
    found = {_hour_of(row.reckoned_at): row for row in budgets}
    prices = _column([found.get(moment) for moment in moments], lambda row: row.price)
    return Chart(
        "price",
        "Price of a poll",
        "entry-seconds of waiting that a poll must save to be made",
        moments,
        (Series("entry-seconds", prices),),
    )


def draw_verdicts(days: Sequence[VerdictDay], now: datetime) -> Chart:
    """Return the chart of the pages that looked strange, day by day."""
    moments = _days_until(now)
    found = _by_moment(days, "day_at")
    shares = [
        row.n_suspicious / row.n_pages if (row := found.get(moment)) and row.n_pages else None
        for moment in moments
    ]
    return Chart(
        "suspicious",
        "Strange pages",
        f"share of the article pages of each of the last {DAYS_SHOWN} days that looked strange",
        moments,
        (Series("strange", shares, "bars", 3),),
        unit="%",
    )


def draw_levels(days: Sequence[LevelDay], now: datetime) -> Chart:
    """Return the chart of keyword hits by level, day by day."""
    moments = _days_until(now)
    counts: dict[tuple[datetime, int], int] = defaultdict(int)
    for row in days:
        counts[row.day_at, row.level] += row.n_hits
    rows = tuple(
        Series(
            f"{level} {LEVEL_NAMES[level]}",
            [counts.get((moment, level)) for moment in moments],
            "bars",
            LEVEL_TONES[level],
        )
        for level in reversed(LEVELS)
    )
    return Chart(
        "levels",
        "Hits a day",
        f"keyword hits of each of the last {DAYS_SHOWN} days by level of urgency",
        moments,
        rows,
    )


LEVEL_TONES = {1: 3, 2: 4, 3: 2, 4: 1, 5: 5}
"""The tone of each level: the most urgent ones warm."""


def _hours_until(now: datetime) -> list[datetime]:
    last = _hour_of(now)
    return _evenly(last - (HOURS_SHOWN - 1) * HOUR, last, HOUR)


def _days_until(now: datetime) -> list[datetime]:
    last = _hour_of(now).replace(hour=0)
    return _evenly(last - (DAYS_SHOWN - 1) * DAY, last, DAY)


def _evenly(first: datetime, last: datetime, step: timedelta) -> list[datetime]:
    return [first + at * step for at in range(int((last - first) / step) + 1)]


def _hour_of(moment: datetime) -> datetime:
    return moment.replace(minute=0, second=0, microsecond=0)


def _by_moment(rows: Iterable[T], name: str) -> dict[datetime, T]:
    moment_of = attrgetter(name)
    return {moment_of(row): row for row in rows}


def _column(rows: Sequence[T | None], value: Callable[[T], float | None]) -> list[float | None]:
    return [None if row is None else value(row) for row in rows]
