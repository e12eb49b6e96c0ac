"""`newsbeat rules try`: what rules would have matched in what was collected, and their cost."""

from __future__ import annotations

import re
import time
from collections import Counter
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

from rich.console import Group, RenderableType
from rich.text import Text

from flows.commands.matching import refuse_empty
from flows.commands.screen import Column, fit_table, make_console
from flows.wording import spell_count
from models.errors import ConfigError
from models.harmless import one_line
from models.triage.hits import RuleMatch
from models.triage.matcher import Matcher, Passage
from models.triage.rules import Rule
from models.triage.scope import Origin
from tasks.rulebook import read_rulebook
from tasks.settings import Settings
from tasks.warehouse_reader import WarehouseReader, open_reader

PAGE = 500
"""Articles read at a time."""

N_EXAMPLES = 3
TIMED_ARTICLES, TIMED_RULES = 200, 100
"""The cost of a rule is measured on so many articles, and of so many rules at most."""

_UNITS = {"h": timedelta(hours=1), "d": timedelta(days=1), "w": timedelta(weeks=1)}

Progress = Callable[[int, int], None]
"""Told how many articles are done, and of how many."""


@dataclass(frozen=True, slots=True)
class Example:
    """An article a rule would have matched."""

    stored_at: datetime
    source: str
    title: str
    matched: str
    sentence: str
    why: str


@dataclass(slots=True)
class Tried:
    """What one rule would have done.

    Attributes
    ----------
    cost_us
        Microseconds it adds to an article; None where it was not measured.
    """

    rule: Rule
    n_articles: int = 0
    sources: Counter[str] = field(default_factory=Counter)
    examples: list[Example] = field(default_factory=list)
    cost_us: float | None = None

    def note(self, match: RuleMatch, source: str, title: str, stored_at: datetime) -> None:
        """Count an article; the newest ones are kept as examples."""
        self.n_articles += 1
        self.sources[source] += 1
        place = match.first
        example = Example(stored_at, source, title, place.matched, match.sentence, place.why)
        self.examples = [example, *self.examples][:N_EXAMPLES]


@dataclass(frozen=True, slots=True)
class TryReport:
    """What the rules of a file would have matched since a moment."""

    tried: tuple[Tried, ...]
    since: datetime
    days: float
    n_articles: int
    problems: tuple[ConfigError, ...] = ()

    def as_json(self) -> dict[str, Any]:
        """Return the report, JSON-ready."""
        return {
            "since": self.since.isoformat(),
            "articles": self.n_articles,
            "rules": [
                {
                    "rule": one.rule.rule,
                    "level": one.rule.level,
                    "articles": one.n_articles,
                    "per_day": round(one.n_articles / self.days, 3),
                    "sources": dict(one.sources.most_common()),
                    "cost_us": None if one.cost_us is None else round(one.cost_us, 1),
                    "examples": [
                        {
                            "stored_at": example.stored_at.isoformat(),
                            "source": example.source,
                            "title": example.title,
                            "matched": example.matched,
                            "sentence": example.sentence,
                            "why": example.why,
                        }
                        for example in one.examples
                    ],
                }
                for one in self.tried
            ],
        }

    def __rich__(self) -> RenderableType:
        """Return a table of rules, and examples of each below."""
        shown = self.tried
        columns = [
            Column("rule", [one.rule.rule for one in shown]),
            Column("level", [f"{one.rule.level}" for one in shown], True),
            Column("articles", [f"{one.n_articles}" for one in shown], True),
            Column("a day", [f"{one.n_articles / self.days:.1f}" for one in shown], True),
            Column("sources", [f"{len(one.sources)}" for one in shown], True, worth=1),
            Column("cost, µs", [_cost(one.cost_us) for one in shown], True, worth=2),
        ]
        table = fit_table(columns, make_console().width)
        head = Text(
            f"{spell_count(self.n_articles, 'article')} since {self.since:%Y-%m-%d %H:%M} UTC"
        )
        return Group(head, table, *(line for one in shown for line in _examples(one)))


def _cost(cost_us: float | None) -> str:
    return "" if cost_us is None else f"{cost_us:.0f}"


def _examples(tried: Tried) -> Iterator[Text]:
    if not tried.examples:
        return
    yield Text(f"\n{tried.rule.rule}", style="bold")
    for example in tried.examples:
        at = f"{example.stored_at:%m-%d %H:%M}"
        yield Text(f"  {at}  {example.source}: {one_line(example.title)}")
        yield Text(f"    {one_line(example.why)}", style="dim")


def try_rules(
    settings: Settings, file: Path, since: str, on_progress: Progress = lambda _done, _total: None
) -> TryReport:
    """Return what the rules of a file would have matched.

    Parameters
    ----------
    settings
        Name the warehouse.
    file
        Rules, or a folder of them.
    since
        How far back: ``30d``, ``12h``, ``2w``.

    Raises
    ------
    ConfigError
        If the span or the file is wrong, or holds no usable rule.
    WarehouseError
        If there is no warehouse.
    """
    span = read_span(since)
    book = read_rulebook(place=file)
    refuse_empty(book)
    matcher = book.matcher()
    tried = {rule.rule: Tried(rule) for rule in book.rules}
    now = settings.clock.now()
    begun, first_at = now - span, now
    sample: list[tuple[Passage, Origin]] = []
    n_articles = 0
    with open_reader(settings) as reader:
        origins = _read_origins(reader)
        total = _count(reader, begun)
        for stored_at, source, title, text, language in _read_articles(reader, begun):
            passage = Passage.of(title, text)
            origin = _origin(origins.get(source, Origin(source)), language)
            for match in matcher.match(passage, origin):
                tried[match.rule.rule].note(match, source, title or "", stored_at)
            n_articles += 1
            first_at = min(first_at, stored_at)
            if len(sample) < TIMED_ARTICLES:
                sample.append((passage, origin))
            if n_articles % PAGE == 0:
                on_progress(n_articles, total)
    _measure(list(tried.values()), sample)
    # Where less was collected than is asked for, a month would make every rule look rare.
    covered = min(span, max(now - first_at, timedelta(days=1)))
    days = max(covered / timedelta(days=1), 1e-9)
    return TryReport(tuple(tried.values()), begun, days, n_articles, book.problems)


def read_span(text: str) -> timedelta:
    """Return a span such as ``30d``.

    Raises
    ------
    ConfigError
        If it is none.

    Examples
    --------
    >>> read_span("36h")
    datetime.timedelta(days=1, seconds=43200)
    """
    found = re.fullmatch(r"(\d{1,5})([hdw])", text.strip())
    if found is None:
        raise ConfigError("--since", "", None, f"{text!r} is no span: write 12h, 30d or 2w")
    return int(found[1]) * _UNITS[found[2]]


def _moment(at: datetime) -> str:
    return f"TIMESTAMPTZ '{at.astimezone(UTC).isoformat()}'"


def _count(reader: WarehouseReader, since: datetime) -> int:
    sql = f"SELECT count(*) FROM articles WHERE stored_at >= {_moment(since)} AND NOT quarantined"  # noqa: S608
    return int(reader.query(sql).rows[0][0])


def _read_articles(
    reader: WarehouseReader, since: datetime
) -> Iterator[tuple[datetime, str, str | None, str | None, str | None]]:
    """Yield articles in order of time, a page at a time: a month may not fit into memory."""
    after, last = since, ""
    while True:
        sql = (
            "SELECT stored_at, source, title, text, language, article_id FROM articles "  # noqa: S608
            f"WHERE (stored_at, article_id) > ({_moment(after)}, '{last}') AND NOT quarantined "
            f"ORDER BY stored_at, article_id LIMIT {PAGE}"
        )
        rows = reader.query(sql).rows
        for *article, _ in rows:
            stored_at, source, title, text, language = article
            yield stored_at, source, title, text, language
        if len(rows) < PAGE:
            return
        after, last = rows[-1][0], rows[-1][5]


def _read_origins(reader: WarehouseReader) -> dict[str, Origin]:
    rows = reader.query("SELECT source, tags, language, country, reach, weight FROM sources").rows
    return {
        source: Origin(source, tuple(tags or ()), language, country, reach, weight)
        for source, tags, language, country, reach, weight in rows
    }


def _origin(source: Origin, language: str | None) -> Origin:
    return Origin(
        source.source,
        source.tags,
        language or source.language,
        source.country,
        source.reach,
        source.weight,
    )


def _measure(tried: list[Tried], sample: list[tuple[Passage, Origin]]) -> None:
    """Measure what each rule adds to an article, against matching none."""
    if not sample or len(tried) > TIMED_RULES:
        return
    nothing = _seconds(Matcher([]), sample)
    for one in tried:
        matcher = Matcher([one.rule])
        _seconds(matcher, sample)
        one.cost_us = max(_seconds(matcher, sample) - nothing, 0.0) / len(sample) * 1e6


def _seconds(matcher: Matcher, sample: list[tuple[Passage, Origin]]) -> float:
    began = time.perf_counter()
    for passage, origin in sample:
        matcher.match(passage, origin)
    return time.perf_counter() - began
