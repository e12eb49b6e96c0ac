"""`newsbeat match`: which keyword rules hit a text, where and why."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from rich.console import Group, RenderableType
from rich.text import Text

from models.errors import ConfigError
from models.harmless import one_line
from models.triage.hits import RuleMatch
from models.triage.matcher import Passage
from models.triage.scope import Origin
from tasks.rulebook import Rulebook, read_rulebook
from tasks.settings import Settings

LEVELS = {1: "at once, until acknowledged", 2: "at once", 3: "hourly", 4: "daily", 5: "kept"}


@dataclass(frozen=True, slots=True)
class MatchReport:
    """What the rules make of a text."""

    matches: tuple[RuleMatch, ...]
    n_rules: int
    problems: tuple[ConfigError, ...] = ()

    @property
    def level(self) -> int | None:
        """The most urgent level, None where nothing matched."""
        return min((match.level for match in self.matches), default=None)

    def as_json(self) -> dict[str, Any]:
        """Return level and hits, JSON-ready: one hit for every place."""
        return {
            "level": self.level,
            "hits": [hit for match in self.matches for hit in match.as_json()],
        }

    def __rich__(self) -> RenderableType:
        """Return the hits for people."""
        if not self.matches:
            return Text(f"none of {self.n_rules} rules matches")
        return Group(*(line for match in self.matches for line in _lines(match)))


def _lines(match: RuleMatch) -> list[Text]:
    title = Text(f"{match.rule.rule}  level {match.level}, {LEVELS[match.level]}", style="bold")
    if match.rule.note:
        title.append(f"  {one_line(match.rule.note)}", style="not bold dim")
    lines = [title]
    for place, sentence in zip(match.places, match.sentences, strict=True):
        lines.append(Text(f"  at {place.start}: {one_line(place.why)}"))
        lines.append(Text(f"    {one_line(sentence)}", style="dim"))
    if match.why:
        lines.append(Text(f"  {one_line(match.why)}"))
    return lines


def match_file(
    settings: Settings, file: str, rules: Path | None, source: str | None, language: str | None
) -> MatchReport:
    """Return which rules hit the text in a file; its first line counts as the title.

    Parameters
    ----------
    settings
        Name the rules and the catalogue.
    file
        Path of a text, ``-`` for standard input.
    rules
        Rules to use instead.
    source
        Take the text for one of this source's: rules of another scope do not hold.
    language
        Of the text; rules for other languages do not hold.

    Raises
    ------
    ConfigError
        If a file or the source does not exist, or no rule can be used.
    """
    text = _read(file)
    book = read_rulebook(settings, rules)
    refuse_empty(book)
    origin = _origin(settings, source, language)
    matches = book.matcher().match(Passage.of_file(text), origin)
    return MatchReport(tuple(matches), len(book.rules), book.problems)


def refuse_empty(book: Rulebook) -> None:
    """Raise where there is no rule to use.

    Raises
    ------
    ConfigError
        Its first problem, or that there are none.
    """
    if not book.rules:
        raise (
            book.problems[0]
            if book.problems
            else ConfigError(
                book.place, "", None, "no keyword rules there; docs/rules.md shows how to write one"
            )
        )


def warn_of(problems: Sequence[ConfigError]) -> None:
    """Say on standard error which rules are left out."""
    for problem in problems:
        print(f"left out: {one_line(problem)}", file=sys.stderr)


def _read(file: str) -> str:
    if file == "-":
        return sys.stdin.read()
    try:
        return Path(file).read_bytes().decode("utf-8-sig", "replace")
    except OSError as error:
        raise ConfigError(file, "", None, f"not readable: {error.strerror}") from error


def _origin(settings: Settings, source: str | None, language: str | None) -> Origin | None:
    if source is None:
        return Origin(language=language) if language else None
    # Both take their time to load, and a text by itself needs neither.
    from flows.collector import unknown_source
    from tasks.catalogue import read_catalogue

    known = {one.source: one for one in read_catalogue(settings).sources}
    if source not in known:
        raise unknown_source(source, known)
    found = known[source]
    return Origin(
        source=found.source,
        tags=found.tags,
        language=language or found.language,
        country=found.country,
        reach=found.reach,
        weight=found.weight,
    )
