"""What a rule found, and why: records that explain themselves."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from models.triage.rules import Mode, Rule


@dataclass(frozen=True, slots=True)
class Place:
    """A term found in a passage.

    Attributes
    ----------
    start, end
        In characters of the passage as it was given.
    matched
        Those characters.
    term, mode
        What the rule has for it.
    why
        How the two come together, in words.
    """

    start: int
    end: int
    matched: str
    term: str
    mode: Mode
    why: str


@dataclass(frozen=True, slots=True)
class RuleMatch:
    """A rule that matched a passage.

    Attributes
    ----------
    places
        Of everything it wanted, in order of the passage.
    level
        Its own, or the one it was raised to.
    why
        Why the rule as a whole matched, and what raised it.
    """

    rule: Rule
    places: tuple[Place, ...]
    level: int
    why: str
    sentences: tuple[str, ...] = ()

    @property
    def first(self) -> Place:
        """The place to show: the first."""
        return self.places[0]

    @property
    def sentence(self) -> str:
        """The sentence of the first place."""
        return self.sentences[0] if self.sentences else ""

    def as_json(self) -> list[dict[str, Any]]:
        """Return a JSON-ready hit for every place."""
        return [
            {
                "rule": self.rule.rule,
                "level": self.level,
                "matched": place.matched,
                "start": place.start,
                "end": place.end,
                "mode": place.mode,
                "sentence": sentence,
                "why": f"{place.why}; {self.why}" if self.why else place.why,
            }
            for place, sentence in zip(self.places, self.sentences, strict=True)
        ]
