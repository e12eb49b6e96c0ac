"""The recorded web that ships: invented sites that keep the hours of real ones."""

from __future__ import annotations

import itertools
import tomllib
from collections.abc import Mapping
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from importlib.resources import files
from typing import Any
from zoneinfo import ZoneInfo

import numpy as np

from models.invented import invent_title
from models.publication import PublicationHabits, generate_times
from models.records import ExtractRules
from tasks.replay.history import (
    BACKLOG_HOURS,
    BACKLOG_REACH,
    InventedPage,
    RecordedEntry,
    RecordedSource,
    RecordedWeb,
    Redesign,
    first_of_backlog,
)
from tasks.replay.pages import read_phrasebook

# An ordinary Tuesday: morning in Moscow, early morning in London, afternoon in Shanghai.
SAMPLE_START = datetime(2025, 3, 4, 7, tzinfo=UTC)
_FIRST_NUMBER = 100_000


def sample_web(
    start: datetime = SAMPLE_START,
    hours: float = 24.0,
    seed: int = 1,
    n_sources: int = 12,
    backlog_hours: float = BACKLOG_HOURS,
    rebuilt_at: datetime | None = None,
) -> RecordedWeb:
    """Return a web of invented sites, the same for the same arguments.

    Parameters
    ----------
    start
        Moment the replay begins at.
    hours
        How long the sites go on publishing after it.
    seed
        Of publication times and texts.
    n_sources
        How many sites. There are twelve; past these they come again under numbered names,
        with times and texts of their own.
    backlog_hours
        How long before `start` they began, ten entries at least: what listings hold at first.
    rebuilt_at
        From then on some have another layout: one that its reader's rules misread, and one
        that shows the first third of every text. None for never.
    """
    described, figures = _read("sources.toml"), _read("habits.toml")
    history = []
    for at, name in enumerate(itertools.islice(itertools.cycle(described), n_sources)):
        rng = np.random.default_rng([seed, at])
        habits = _habits(figures[name], described[name]["timezone"])
        times = _times(habits, start, hours, backlog_hours, rng)
        source = _source(name, at // len(described), described[name], times, rng)
        if rebuilt_at is not None and (layout := described[name].get("rebuilt")):
            source = replace(source, redesigns=(Redesign(rebuilt_at, layout),))
        history.append(source)
    return RecordedWeb(tuple(history), start)


def _source(
    name: str,
    copy: int,
    described: Mapping[str, Any],
    times: list[datetime],
    rng: np.random.Generator,
) -> RecordedSource:
    suffix = f"-{copy + 1}" if copy else ""
    topics = tuple(described.get("topics", ()))
    seeds = rng.integers(2**40, size=len(times)).tolist()
    return RecordedSource(
        source=name + suffix,
        title=described["title"] + suffix.replace("-", " "),
        host=described["host"].replace(".example", f"{suffix}.example"),
        kind=described["kind"],
        entries=tuple(
            _entry(described, topics, at, number, seed)
            for number, (at, seed) in enumerate(zip(times, seeds, strict=True), _FIRST_NUMBER)
        ),
        language=described["language"],
        timezone=described["timezone"],
        country=described["country"],
        reach=described.get("reach", "wide"),
        window=described["window"],
        feed_format=described.get("format", "rss"),
        layout=described["layout"],
        front=described["front"],
        encoding=described.get("encoding", "utf-8"),
        validators=described.get("validators", "both"),
        topics=topics,
        extract=ExtractRules(**described.get("extract", {})),
    )


def _times(
    habits: PublicationHabits,
    start: datetime,
    hours: float,
    backlog_hours: float,
    rng: np.random.Generator,
) -> list[datetime]:
    opening = start - max(BACKLOG_REACH, timedelta(hours=backlog_hours))
    times = generate_times(habits, opening, start + timedelta(hours=hours), rng)
    return times[first_of_backlog(times, start, backlog_hours) :]


def _entry(
    described: Mapping[str, Any], topics: tuple[str, ...], at: datetime, number: int, seed: int
) -> RecordedEntry:
    local = at.astimezone(ZoneInfo(described["timezone"]))
    path = described["path"].format(
        number=number, year=f"{local:%Y}", month=f"{local:%m}", day=f"{local:%d}"
    )
    title = invent_title(read_phrasebook(described["language"]), seed, topics)
    return RecordedEntry(at, path, title, InventedPage(seed))


def _habits(figures: Mapping[str, Any], timezone: str) -> PublicationHabits:
    return PublicationHabits(
        entries_per_day=figures["entries_per_day"],
        hour_of_week=tuple(weight for day in figures["hour_of_week"] for weight in day),
        minute_of_hour=tuple(figures["minute_of_hour"]),
        branching_ratio=figures["branching_ratio"],
        decay_minutes=figures["decay_minutes"],
        timezone=timezone,
        resolution_s=figures["resolution_s"],
    )


def _read(name: str) -> dict[str, Any]:
    return tomllib.loads((files("data") / "sample" / name).read_text(encoding="utf-8"))
