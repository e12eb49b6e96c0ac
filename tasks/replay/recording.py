"""A recorded web of real publication times and real pages, from a folder of recordings.

The folder holds two collections::

    A_timestamps/events.parquet   source, published_at, url_hash, title: a row per item
    A_timestamps/sources.csv      what each source is, and how far its times can be trusted
    B_html/index.csv              a row per page: site, lang, kind, archive, member
    B_html/<archive>.tar.xz       the pages, byte for byte

Each source lives again through the hours around a working day of its own, moved by whole
days of its local time to the wanted date, so that its clock and its week stay right. The
day is a busy but ordinary one: busier than three in four of the same weekday. Each source's
articles are the pages of one real site of its language.
"""

from __future__ import annotations

import csv
import itertools
import re
import tarfile
from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from pathlib import Path
from zoneinfo import ZoneInfo

import duckdb

from models.errors import ConfigError
from models.invented import invent_title
from models.records import Kind
from tasks.replay.history import (
    BACKLOG_HOURS,
    BACKLOG_REACH,
    RecordedEntry,
    RecordedSource,
    RecordedWeb,
    StoredPage,
    first_of_backlog,
)
from tasks.replay.pages import read_phrasebook
from tasks.replay.sample import SAMPLE_START

BUSY_QUANTILE = 0.75
MIN_PER_DAY, MAX_PER_DAY = 20.0, 450.0
MIN_SITE_PAGES = 20
# Kinds take turns, so that each way of listing is played.
_TURNS: tuple[tuple[Kind, str], ...] = (
    ("feed", "rss"), ("list", "rss"), ("sitemap", "rss"), ("feed", "atom"),
)  # fmt: skip
_WINDOW = 40
# Sites before channels, and the best evidence of when things came out first.
_KINDS = ("web", "aggregator", "telegram", "facebook", "twitter")
_COVERAGES = ("full", "text-posts", "polled", "top-headlines")


@dataclass(frozen=True, slots=True)
class _Traced:
    """A row of ``sources.csv`` that may be played."""

    key: str
    language: str
    timezone: str
    kind: str
    coverage: str
    per_day: float
    outlet: str


@dataclass(frozen=True, slots=True)
class _Site:
    """The article pages of one real site: where they lie."""

    name: str
    language: str
    members: tuple[tuple[str, str], ...]


def read_recording(
    folder: Path,
    start: datetime | None = None,
    n_sources: int = 12,
    hours: float = 24.0,
    backlog_hours: float = BACKLOG_HOURS,
) -> RecordedWeb:
    """Return a web of real sources, at their real times, with real pages.

    Parameters
    ----------
    folder
        Folder of recordings, laid out as this module says.
    start
        Moment of the clock the replay begins at; an ordinary Tuesday morning where None.
    n_sources
        How many sources to play, of those whose times are exact and whose language has
        pages; fewer where there are not so many.
    hours, backlog_hours
        How long they publish after `start`, and before it.

    Raises
    ------
    ConfigError
        If the folder is not there or not laid out so.
    """
    start = SAMPLE_START if start is None else start
    _check_layout(folder)
    try:
        return _read(folder, start, n_sources, hours, backlog_hours)
    except (OSError, KeyError, ValueError, tarfile.TarError, duckdb.Error) as error:
        reason = f"not readable as a folder of recordings ({type(error).__name__}: {error})"
        raise ConfigError(str(folder), "", None, reason) from error


def _check_layout(folder: Path) -> None:
    wanted = ("A_timestamps/events.parquet", "A_timestamps/sources.csv", "B_html/index.csv")
    missing = [name for name in wanted if not (folder / name).is_file()]
    if missing:
        reason = f"a folder of recordings holds {', '.join(wanted)}; missing: {', '.join(missing)}"
        raise ConfigError(str(folder), "", None, reason)


def _read(
    folder: Path, start: datetime, n_sources: int, hours: float, backlog_hours: float
) -> RecordedWeb:
    sites = _read_sites(folder / "B_html" / "index.csv")
    candidates = _choose_sources(_read_traced(folder / "A_timestamps" / "sources.csv"), sites)
    opening = start - max(BACKLOG_REACH, timedelta(hours=backlog_hours))
    span = (opening, start + timedelta(hours=hours))
    events = folder / "A_timestamps" / "events.parquet"
    read = ((each, _read_events(events, each, start, span)) for each in candidates)
    played = itertools.islice(((each, happened) for each, happened in read if happened), n_sources)
    history = []
    for number, (traced, events_around) in enumerate(played):
        first = first_of_backlog([event.at for event in events_around], start, backlog_hours)
        happened = events_around[first:]
        pages = _read_pages(folder / "B_html", sites[traced.language].pop(0), len(happened))
        history.append(_source(traced, happened, pages, number))
    return RecordedWeb(tuple(history), start)


@dataclass(frozen=True, slots=True)
class _Event:
    """A row of ``events.parquet``, moved to the clock's date."""

    at: datetime
    key: str
    title: str | None


def _read_traced(path: Path) -> list[_Traced]:
    """Return the sources whose stamps are their own, exact, and neither rare nor a flood."""
    with path.open(encoding="utf-8", newline="") as lines:
        rows = list(csv.DictReader(lines))
    return [
        _Traced(row["source"], row["lang"], row["tz"], row["kind"], row["coverage"],
                float(row["per_day"]), row["outlet"])
        for row in rows
        if row["tier"] == "1"
        and row["resolution"] in ("s", "min")
        and row["coverage"] in _COVERAGES
        and row["kind"] in _KINDS
        and MIN_PER_DAY <= float(row["per_day"]) <= MAX_PER_DAY
    ]  # fmt: skip


def _read_sites(path: Path) -> dict[str, list[_Site]]:
    """Return the sites of each language, most pages first.

    Where a language has no site with enough pages, all its pages together stand for one.
    """
    pages: dict[str, dict[str, list[tuple[str, str]]]] = defaultdict(lambda: defaultdict(list))
    with path.open(encoding="utf-8", newline="") as lines:
        for row in csv.DictReader(lines):
            if row["kind"] == "article" and row["lang"]:
                pages[row["lang"]][row["site"]].append((row["archive"], row["member"]))
    return {language: _large_sites(language, sites) for language, sites in pages.items()}


def _large_sites(language: str, sites: Mapping[str, list[tuple[str, str]]]) -> list[_Site]:
    large = [
        _Site(name, language, tuple(members))
        for name, members in sites.items()
        if len(members) >= MIN_SITE_PAGES
    ]
    together = tuple(itertools.chain.from_iterable(sites.values()))
    if not large and len(together) >= MIN_SITE_PAGES:
        large = [_Site(language, language, together)]
    return sorted(large, key=lambda site: -len(site.members))


def _choose_sources(
    traced: Iterable[_Traced], sites: Mapping[str, list[_Site]]
) -> Iterator[_Traced]:
    """Give sources in the order to play them: languages in turn, one source an outlet.

    No more of a language than it has sites with pages.
    """
    by_language: dict[str, dict[str, _Traced]] = defaultdict(dict)
    for each in sorted(traced, key=_preference):
        if sites.get(each.language):
            by_language[each.language].setdefault(each.outlet, each)
    queues = [
        list(outlets.values())[: len(sites[language])]
        for language, outlets in sorted(by_language.items())
    ]
    for turn in itertools.zip_longest(*queues):
        yield from (each for each in turn if each is not None)


def _preference(traced: _Traced) -> tuple[int, int, float]:
    kind, coverage = _KINDS.index(traced.kind), _COVERAGES.index(traced.coverage)
    return kind, coverage, -traced.per_day


def _read_events(
    path: Path, traced: _Traced, start: datetime, span: tuple[datetime, datetime]
) -> list[_Event]:
    """Return what `traced` published in `span`, as if the clock's day were one of its own."""
    query = "SELECT epoch_ms(published_at) FROM read_parquet(?) WHERE source = ? ORDER BY 1"
    stamps = [row[0] for row in duckdb.execute(query, [str(path), traced.key]).fetchall()]
    shift = _choose_shift(stamps, traced.timezone, start, span)
    if shift is None:
        return []
    first, last = ((moment - shift).timestamp() * 1000 for moment in span)
    query = (
        "SELECT epoch_ms(published_at), url_hash, title FROM read_parquet(?) "
        "WHERE source = ? AND epoch_ms(published_at) >= ? AND epoch_ms(published_at) < ? "
        "ORDER BY 1, 2"
    )
    rows = duckdb.execute(query, [str(path), traced.key, int(first), int(last)]).fetchall()
    return [
        _Event(datetime.fromtimestamp(stamp // 1000, UTC) + shift, key, title)
        for stamp, key, title in rows
    ]


def _choose_shift(
    stamps: list[int], timezone: str, start: datetime, span: tuple[datetime, datetime]
) -> timedelta | None:
    """Return by how much to move a source's times so that a busy ordinary day meets `start`.

    Days of the same local weekday come first, then any working day; only those round which
    the recording spans all of `span`. None where there is no such day.
    """
    zone = ZoneInfo(timezone)
    wanted = start.astimezone(zone).date()
    counts: dict[int, int] = defaultdict(int)
    for stamp in stamps:
        counts[datetime.fromtimestamp(stamp / 1000, zone).date().toordinal()] += 1
    days = []
    for ordinal, count in counts.items():
        day = datetime.fromordinal(ordinal)
        shift = _midnight(wanted.toordinal(), zone) - _midnight(ordinal, zone)
        first, last = (int((moment - shift).timestamp() * 1000) for moment in span)
        if day.weekday() < 5 and stamps[0] <= first and last <= stamps[-1]:
            days.append((day.weekday() == wanted.weekday(), count, shift))
    alike = [(count, shift) for is_alike, count, shift in days if is_alike]
    alike = sorted(alike or [(count, shift) for _, count, shift in days])
    return alike[int(BUSY_QUANTILE * (len(alike) - 1))][1] if alike else None


def _midnight(ordinal: int, zone: ZoneInfo) -> datetime:
    return datetime.fromordinal(ordinal).replace(tzinfo=zone).astimezone(UTC)


def _read_pages(folder: Path, site: _Site, n_wanted: int) -> list[StoredPage]:
    """Return up to `n_wanted` pages of a site, in the order of the index."""
    members = site.members[:n_wanted]
    found: dict[tuple[str, str], StoredPage] = {}
    for archive in sorted({archive for archive, _ in members}):
        names = {name for of_archive, name in members if of_archive == archive}
        found |= _read_archive(folder, archive, names)
    return [found[member] for member in members]


def _read_archive(folder: Path, archive: str, names: set[str]) -> dict[tuple[str, str], StoredPage]:
    found = {}
    with tarfile.open(folder / archive, "r|xz") as stream:
        for member in stream:
            content = stream.extractfile(member) if member.name in names else None
            if content is not None:
                found[archive, member.name] = StoredPage(content.read())
            if len(found) == len(names):
                break
    return found


def _source(
    traced: _Traced, happened: list[_Event], pages: list[StoredPage], number: int
) -> RecordedSource:
    kind, feed_format = _TURNS[number % len(_TURNS)]
    name = re.sub(r"[^a-z0-9]+", "-", traced.key.removeprefix("web:").lower()).strip("-")
    return RecordedSource(
        source=name,
        title=traced.key,
        host=f"{name}.example",
        kind=kind,
        entries=tuple(
            _entry(traced, event, page)
            for event, page in zip(happened, itertools.cycle(pages), strict=False)
        ),
        language=traced.language,
        timezone=traced.timezone,
        window=_WINDOW,
        feed_format="atom" if feed_format == "atom" else "rss",
    )


def _entry(traced: _Traced, event: _Event, page: StoredPage) -> RecordedEntry:
    local = event.at.astimezone(ZoneInfo(traced.timezone))
    title = " ".join((event.title or "").split())
    if not title:
        title = invent_title(read_phrasebook(traced.language), int(event.key, 16))
    return RecordedEntry(event.at, f"/{local:%Y/%m/%d}/{event.key}.html", title, page)
