"""The report of a day: a headline, and sections that are tables.

Every section is the same thing to all renderers, a name, columns and rows: Markdown and
HTML show the first rows for people, CSV and Parquet have all of them.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field
from datetime import UTC, date, datetime, timedelta
from typing import Any, Literal, TypeVar
from zoneinfo import ZoneInfo

from models.board import LEVEL_NAMES
from models.daybook import DayCount, DayFacts, Span
from models.drawing import SPELLINGS, Chart, Series
from models.harmless import escape_markdown, one_line
from models.novelty import Spike, find_new_words, find_spike
from models.polling.fixed import spell_duration
from models.stories import Story, group_stories, rank_movers

Kind = Literal["text", "count", "number", "span", "moment", "flag"]

T = TypeVar("T")

MOST_STORIES = 200
"""Stories in the tables: those of most sources."""


@dataclass(frozen=True, slots=True)
class Column:
    """A column of a section.

    Attributes
    ----------
    name
        In files; such as ``median_lag_s``.
    label
        For people; empty where only files have it.
    link
        Name of the column whose cell is the address behind this one.
    """

    name: str
    label: str
    kind: Kind = "text"
    link: str = ""

    @property
    def is_figure(self) -> bool:
        """Whether its cells stand at the right."""
        return self.kind in ("count", "number", "span")


@dataclass(frozen=True, slots=True)
class Section:
    """A table of the report.

    Attributes
    ----------
    note
        What it shows, in a sentence.
    nothing
        What stands there when it has no rows.
    most
        Rows shown to people; files have all.
    """

    name: str
    title: str
    note: str
    nothing: str
    columns: tuple[Column, ...]
    rows: tuple[tuple[Any, ...], ...] = field(repr=False)
    most: int = 20


@dataclass(frozen=True, slots=True)
class DayReport:
    """The report of a day.

    Attributes
    ----------
    lines
        What a reader in a hurry should know, one sentence each, the worst first.
    speed
        Of the product's clock: other than 1, the times are those of a replay.
    """

    span: Span
    made_at: datetime
    lines: tuple[str, ...]
    sections: tuple[Section, ...]
    charts: tuple[Chart, ...] = ()
    speed: float = 1.0

    @property
    def title(self) -> str:
        """Its title, such as ``News of Sunday 1 March 2026``."""
        day = self.span.day
        return f"News of {day:%A} {day.day} {day:%B %Y}"

    @property
    def zone_words(self) -> str:
        """Which hours the day has, in a sentence or two."""
        words = f"The day is that of {self.span.timezone}; times are UTC."
        return words if self.made_at >= self.span.until else f"{words} It is not over yet."

    def section(self, name: str) -> Section:
        """Return a section by its name."""
        return next(section for section in self.sections if section.name == name)

    def as_json(self) -> dict[str, Any]:
        """Return it as JSON-ready values; rows as dictionaries."""
        return {
            "day": self.span.day.isoformat(),
            "timezone": self.span.timezone,
            "made_at": self.made_at.isoformat(),
            "lines": list(self.lines),
            "sections": {
                section.name: [
                    {
                        column.name: _plain(cell)
                        for column, cell in zip(section.columns, row, strict=True)
                    }
                    for row in section.rows
                ]
                for section in self.sections
            },
        }


def _plain(cell: Any) -> Any:
    return cell.isoformat() if isinstance(cell, date | datetime) else cell


def make_report(facts: DayFacts, made_at: datetime, speed: float = 1.0) -> DayReport:
    """Return the report of what is known of a day."""
    stories = [story for story in group_stories(facts.headlines) if len(story.sources) > 1]
    spikes = _find_spikes(facts)
    sections = (
        _hits(facts),
        _levels(facts),
        _rules(facts),
        _stories(stories),
        _movers(stories),
        _spikes(spikes, facts),
        _words(facts),
        _tags(facts),
        _outlets(facts),
        _losses(facts),
        _down(facts),
        _silent(facts),
        _held(facts),
        _checks(facts),
        _unsent(facts),
        _coverage(facts),
        _days(facts),
    )
    return DayReport(
        facts.span,
        made_at,
        tuple(_say(facts, spikes, stories)),
        sections,
        _draw(facts.days),
        speed,
    )


# What a reader in a hurry should know


def _say(facts: DayFacts, spikes: Sequence[Spike], stories: Sequence[Story]) -> Iterable[str]:
    today = _today(facts)
    urgent = next((row.n_hits for row in facts.levels if row.level == 1), 0)
    if urgent:
        yield f"{_many(urgent, 'hit')} of level 1, at once."
    unaccounted = sum(row.n_neither for row in facts.coverage)
    if unaccounted:
        yield f"{_many(unaccounted, 'listed entry', 'listed entries')} neither stored nor owed."
    troubles = [
        (len(facts.down), "source failed at times", "sources failed at times"),
        (len(facts.losses), "possible loss", "possible losses"),
        (len({row.source for row in facts.checks if row.drifted}), "site drifted", "sites drifted"),
        (len(facts.held), "article held back", "articles held back"),
        (len(facts.silent), "source fell silent", "sources fell silent"),
        (len(facts.unsent), "notice was not sent", "notices were not sent"),
    ]
    found = [_many(n, one, many) for n, one, many in troubles if n]
    yield f"Coverage: {', '.join(found)}." if found else "Coverage: no trouble on record."
    if today is None:
        yield "Nothing was collected on that day."
        return
    yield _describe_day(today, facts.days)
    if stories:
        first = stories[0]
        yield (
            f"{_many(len(stories), 'story was', 'stories were')} told by several sources; the"
            f" widest by {len(first.sources)}, first by {first.first.source}:"
            f" {one_line(first.first.title)}"
        )
    if spikes:
        spike = max(spikes, key=lambda each: each.score)
        yield (
            f"{_many(len(spikes), 'spike')}; the steepest: {spike.name} at {spike.hour_at:%H:%M},"
            f" {spike.count} in an hour, usually {spike.usual:.1f}."
        )


def _describe_day(today: DayCount, days: Sequence[DayCount]) -> str:
    others = [row.n_articles for row in days if row.day != today.day]
    usual = f" (usually {sum(others) / len(others):,.0f})" if others else ""
    lag = f", median lag {spell_duration(today.median_lag_s)}" if today.median_lag_s else ""
    return (
        f"{_many(today.n_articles, 'article')} of {_many(today.n_sources, 'source')}{usual}{lag};"
        f" {_many(today.n_polls, 'poll')}, {today.megabytes:,.1f} MB."
    )


def _today(facts: DayFacts) -> DayCount | None:
    return next((row for row in facts.days if row.day == facts.span.day), None)


def _many(number: int, one: str, many: str = "") -> str:
    return f"{number:,} {one if number == 1 else many or one + 's'}"


def _draw(days: Sequence[DayCount]) -> tuple[Chart, ...]:
    moments = [datetime(row.day.year, row.day.month, row.day.day, tzinfo=UTC) for row in days]
    if len(moments) < 2:
        return ()
    return (
        Chart(
            "articles",
            "Articles a day",
            "articles stored on each day",
            moments,
            (Series("articles", [row.n_articles for row in days], "bars"),),
        ),
        Chart(
            "day-lag",
            "Publication lag",
            "median and 95th percentile of each day",
            moments,
            (
                Series("95 of 100 are faster", [row.p95_lag_s for row in days], tone=2),
                Series("median", [row.median_lag_s for row in days]),
            ),
            unit="s",
        ),
    )


# Sections

SOURCE = Column("source", "source")
USUAL = Column("usual", "usual", "number")


def _section(
    name: str,
    title: str,
    note: str,
    nothing: str,
    columns: Sequence[Column],
    rows: Iterable[T],
    cells: Callable[[T], tuple[Any, ...]],
    most: int = 20,
) -> Section:
    return Section(name, title, note, nothing, tuple(columns), tuple(map(cells, rows)), most)


def _hits(facts: DayFacts) -> Section:
    return _section(
        "hits",
        "What matters",
        "Keyword hits of the levels 1 to 3, the most urgent first.",
        "No keyword hit of the levels 1 to 3.",
        (
            Column("level", "level", "count"),
            Column("title", "headline", link="url"),
            Column("url", ""),
            SOURCE,
            Column("rule", "rule"),
            Column("matched", "matched"),
            Column("sentence", ""),
            Column("explanation", ""),
            Column("hit_at", "at", "moment"),
        ),
        facts.hits,
        lambda hit: (
            hit.level, hit.title, hit.url, hit.source, hit.rule, hit.matched, hit.sentence,
            hit.explanation, hit.hit_at,
        ),
        30,
    )  # fmt: skip


def _levels(facts: DayFacts) -> Section:
    return _section(
        "levels",
        "Hits by level",
        "",
        "No keyword hit.",
        (
            Column("level", "level", "count"),
            Column("means", "means"),
            Column("n_hits", "hits", "count"),
            USUAL,
            Column("n_articles", "articles", "count"),
            Column("n_sources", "sources", "count"),
        ),
        facts.levels,
        lambda row: (
            row.level, LEVEL_NAMES.get(row.level, ""), row.n_hits, row.usual, row.n_articles,
            row.n_sources,
        ),
    )  # fmt: skip


def _rules(facts: DayFacts) -> Section:
    return _section(
        "rules",
        "Hits by rule",
        "",
        "No keyword hit.",
        (
            Column("rule", "rule"),
            Column("level", "level", "count"),
            Column("n_hits", "hits", "count"),
            USUAL,
            Column("n_sources", "sources", "count"),
        ),
        facts.rules,
        lambda row: (row.rule, row.level, row.n_hits, row.usual, row.n_sources),
    )


def _stories(stories: Sequence[Story]) -> Section:
    return _section(
        "stories",
        "Who told it first",
        "Stories that several sources told, by like headlines; the widest first.",
        "No story was told by several sources.",
        (
            Column("title", "headline", link="url"),
            Column("url", ""),
            Column("first", "first"),
            Column("first_at", "at", "moment"),
            Column("lead_s", "ahead by", "span"),
            Column("n_sources", "sources", "count"),
            Column("followed_by", "then"),
        ),
        stories[:MOST_STORIES],
        lambda story: (
            story.first.title, story.first.url, story.first.source, story.first.at, story.lead_s,
            len(story.sources), ", ".join(story.sources[1:]),
        ),
    )  # fmt: skip


def _movers(stories: Sequence[Story]) -> Section:
    return _section(
        "movers",
        "First movers",
        "How often a source was first with what others told too.",
        "No story was told by several sources.",
        (
            SOURCE,
            Column("n_first", "first", "count"),
            Column("n_shared", "of stories shared", "count"),
            Column("median_lead_s", "median lead", "span"),
        ),
        rank_movers(stories),
        lambda row: (row.source, row.n_first, row.n_shared, row.median_lead_s),
        10,
    )


def _find_spikes(facts: DayFacts) -> list[Spike]:
    if not facts.usual_days:
        return []
    found = [
        find_spike(row.source, row.hour_at, row.n_entries, row.usual, row.before)
        for row in facts.hours
    ]
    found += [
        find_spike(f"rule {row.rule}", facts.span.since, row.n_hits, row.usual, row.usual)
        for row in facts.rules
    ]
    return sorted(filter(None, found), key=lambda spike: -spike.score)


def _spikes(spikes: Sequence[Spike], facts: DayFacts) -> Section:
    nothing = "No spike." if facts.usual_days else "No day before to compare with."
    return _section(
        "spikes",
        "Spikes",
        "Far more entries in an hour than in the same hour of the days before, and than in the"
        " hours just before; of a rule, far more hits on the day.",
        nothing,
        (
            Column("name", "of"),
            Column("at", "from", "moment"),
            Column("n", "count", "count"),
            USUAL,
            Column("before", "", "number"),
            Column("score", "deviations", "number"),
        ),
        spikes,
        lambda spike: (
            spike.name, spike.hour_at, spike.count, spike.usual, spike.before, spike.score,
        ),
    )  # fmt: skip


def _words(facts: DayFacts) -> Section:
    nothing = "None stands out." if facts.usual_days else "No day before to compare with."
    return _section(
        "words",
        "New words",
        "Words of headlines that the day has far more of than those before, in headlines of at"
        " least two sources.",
        nothing,
        (
            Column("word", "word"),
            Column("n_headlines", "headlines", "count"),
            Column("n_sources", "sources", "count"),
            USUAL,
            Column("score", "deviations", "number"),
            Column("example", "such as"),
        ),
        find_new_words(facts.titles) if facts.usual_days else [],
        lambda new: (
            new.word, new.n_headlines, new.n_sources, new.usual, new.score, new.example,
        ),
    )  # fmt: skip


def _tags(facts: DayFacts) -> Section:
    return _section(
        "tags",
        "By tag",
        "",
        "No source with a tag brought anything.",
        (
            Column("tag", "tag"),
            Column("n_articles", "articles", "count"),
            USUAL,
            Column("n_sources", "sources", "count"),
            Column("median_lag_s", "median lag", "span"),
            Column("n_hits", "hits", "count"),
        ),
        facts.tags,
        lambda row: (
            row.tag, row.n_articles, row.usual, row.n_sources, row.median_lag_s, row.n_hits,
        ),
        30,
    )  # fmt: skip


def _outlets(facts: DayFacts) -> Section:
    return _section(
        "outlets",
        "By outlet",
        "",
        "Nothing was stored.",
        (
            SOURCE,
            Column("title", "name"),
            Column("n_articles", "articles", "count"),
            USUAL,
            Column("median_lag_s", "median lag", "span"),
            Column("p95_lag_s", "95 of 100", "span"),
            Column("n_hits", "hits", "count"),
            Column("n_edited", "edited", "count"),
        ),
        facts.outlets,
        lambda row: (
            row.source, row.title, row.n_articles, row.usual, row.median_lag_s, row.p95_lag_s,
            row.n_hits, row.n_edited,
        ),
        50,
    )  # fmt: skip


def _losses(facts: DayFacts) -> Section:
    return _section(
        "losses",
        "Possible losses",
        "Polls that found no entry they knew: more may have come and gone since the one before.",
        "None: every poll found an entry it knew.",
        (
            SOURCE,
            Column("started_at", "poll began", "moment"),
            Column("gap_s", "after", "span"),
            Column("entries_listed", "listed", "count"),
            Column("entries_new", "new", "count"),
        ),
        facts.losses,
        lambda row: (row.source, row.started_at, row.gap_s, row.entries_listed, row.entries_new),
    )


def _down(facts: DayFacts) -> Section:
    return _section(
        "down",
        "Sources down",
        "Sources some of whose polls failed, and the longest time without a good one.",
        "None: every poll was answered.",
        (
            SOURCE,
            Column("n_failed", "failed", "count"),
            Column("n_polls", "of polls", "count"),
            Column("longest_s", "longest", "span"),
            Column("last_reason", "last reason"),
            Column("state", "now"),
        ),
        facts.down,
        lambda row: (
            row.source, row.n_failed, row.n_polls, row.longest_s, row.last_reason, row.state,
        ),
    )  # fmt: skip


def _silent(facts: DayFacts) -> Section:
    return _section(
        "silent",
        "Silent sources",
        "Sources that published nothing, and usually do.",
        "None.",
        (SOURCE, USUAL, Column("last_at", "last entry", "moment")),
        facts.silent,
        lambda row: (row.source, row.usual, row.last_at),
    )


def _held(facts: DayFacts) -> Section:
    return _section(
        "held",
        "Held back",
        "Articles whose page looked strange: their text is not to be trusted yet.",
        "None.",
        (
            SOURCE,
            Column("title", "headline", link="url"),
            Column("url", ""),
            Column("stored_at", "stored", "moment"),
            Column("reason", "why"),
        ),
        facts.held,
        lambda row: (row.source, row.title, row.url, row.stored_at, row.reason),
    )


def _checks(facts: DayFacts) -> Section:
    return _section(
        "checks",
        "Layouts checked",
        "",
        "None was checked.",
        (
            SOURCE,
            Column("checked_at", "checked", "moment"),
            Column("drifted", "drifted", "flag"),
            Column("fired", "because of"),
            Column("n_test", "pages", "count"),
            Column("n_reference", "against", "count"),
        ),
        facts.checks,
        lambda row: (
            row.source, row.checked_at, row.drifted, row.fired, row.n_test, row.n_reference,
        ),
    )  # fmt: skip


def _unsent(facts: DayFacts) -> Section:
    return _section(
        "unsent",
        "Notices not sent",
        "",
        "None: whatever was to be told was told, or waits for its hour.",
        (
            Column("subject", "notice"),
            Column("level", "level", "count"),
            Column("channel", "to"),
            Column("raised_at", "raised", "moment"),
            Column("error", "why not"),
        ),
        facts.unsent,
        lambda row: (row.subject, row.level, row.channel, row.raised_at, row.error),
    )


def _coverage(facts: DayFacts) -> Section:
    return _section(
        "coverage",
        "Coverage",
        "What became of every entry that was listed: *neither* must be 0.",
        "Nothing was listed.",
        (
            SOURCE,
            Column("n_listed", "listed", "count"),
            Column("n_stored", "stored", "count"),
            Column("n_stood_in", "without page", "count"),
            Column("n_held", "held back", "count"),
            Column("n_owed", "owed", "count"),
            Column("n_neither", "neither", "count"),
        ),
        facts.coverage,
        lambda row: (
            row.source, row.n_listed, row.n_stored, row.n_stood_in, row.n_held, row.n_owed,
            row.n_neither,
        ),
        50,
    )  # fmt: skip


def _days(facts: DayFacts) -> Section:
    return _section(
        "days",
        "The days before",
        "",
        "Nothing was collected.",
        (
            Column("day", "day", "text"),
            Column("n_articles", "articles", "count"),
            Column("n_sources", "sources", "count"),
            Column("median_lag_s", "median lag", "span"),
            Column("p95_lag_s", "95 of 100", "span"),
            Column("n_polls", "polls", "count"),
            Column("n_failed", "failed", "count"),
            Column("megabytes", "MB", "number"),
            Column("n_possible_losses", "possible losses", "count"),
        ),
        facts.days,
        lambda row: (
            row.day.isoformat(), row.n_articles, row.n_sources, row.median_lag_s, row.p95_lag_s,
            row.n_polls, row.n_failed, row.megabytes, row.n_possible_losses,
        ),
        40,
    )  # fmt: skip


# For people


def spell_cell(cell: Any, kind: Kind) -> str:
    """Return a cell as people read it.

    Examples
    --------
    >>> spell_cell(1234, "count"), spell_cell(0.25, "number"), spell_cell(90.0, "span")
    ('1,234', '0.25', '1.5 min')
    >>> spell_cell(None, "span"), spell_cell(True, "flag"), spell_cell(" a  b", "text")
    ('', 'yes', 'a b')
    """
    if cell is None:
        return ""
    if kind == "moment":
        return f"{cell.astimezone(UTC):%m-%d %H:%M}"
    if kind == "flag":
        return "yes" if cell else "no"
    return SPELLED.get(kind, one_line)(cell)


SPELLED: dict[str, Callable[[Any], str]] = {
    "count": lambda cell: f"{cell:,}",
    "number": lambda cell: f"{cell:,.0f}" if abs(cell) >= 100 else f"{cell:,.3g}",
    "span": SPELLINGS["s"],
}


def render_markdown(report: DayReport) -> str:
    """Return the report as Markdown; what publishers wrote is never markup in it."""
    lines = [f"# {report.title}", "", report.zone_words, ""]
    if report.speed != 1.0:
        lines += [f"*A replay, {report.speed:g} times as fast: times are recorded time.*", ""]
    lines += [*(f"- {escape_markdown(line)}" for line in report.lines), ""]
    for section in report.sections:
        lines += _render_section(section)
    lines += [f"Written {report.made_at:%Y-%m-%d %H:%M} UTC by newsbeat.", ""]
    return "\n".join(lines)


def _render_section(section: Section) -> list[str]:
    lines = [f"## {section.title}", ""]
    if not section.rows:
        return [*lines, section.nothing, ""]
    if section.note:
        lines += [section.note, ""]
    shown = [(at, column) for at, column in enumerate(section.columns) if column.label]
    lines.append("| " + " | ".join(column.label for _, column in shown) + " |")
    lines.append("|" + "|".join("--:" if column.is_figure else "---" for _, column in shown) + "|")
    for row in section.rows[: section.most]:
        cells = [_markdown_cell(section, row, at, column) for at, column in shown]
        lines.append("| " + " | ".join(cells) + " |")
    if len(section.rows) > section.most:
        n = len(section.rows) - section.most
        lines += ["", f"… and {n:,} more: `{section.name}.csv`"]
    return [*lines, ""]


def _markdown_cell(section: Section, row: tuple[Any, ...], at: int, column: Column) -> str:
    text = escape_markdown(spell_cell(row[at], column.kind))
    url = link_of(section, row, column)
    if not url:
        return text
    for mark, code in (("<", "%3C"), (">", "%3E"), ("\\", "%5C"), ("|", "%7C")):
        url = url.replace(mark, code)
    return f"[{text or '(no title)'}](<{url}>)"


def link_of(section: Section, row: tuple[Any, ...], column: Column) -> str:
    """Return the address behind a cell, where it is one of the web; else ``""``."""
    if not column.link:
        return ""
    names = [each.name for each in section.columns]
    url = one_line(row[names.index(column.link)] or "")
    return url if url.lower().startswith(("http://", "https://")) else ""


def today(now: datetime, timezone: str) -> date:
    """Return the day that it is in a time zone."""
    return now.astimezone(ZoneInfo(timezone)).date()


def yesterday(now: datetime, timezone: str) -> date:
    """Return the last whole day in a time zone.

    Examples
    --------
    >>> yesterday(datetime(2026, 3, 1, 23, 30, tzinfo=UTC), "Europe/Moscow")
    datetime.date(2026, 3, 1)
    """
    return today(now, timezone) - timedelta(days=1)
