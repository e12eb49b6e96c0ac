"""Invented news: articles put together from a phrasebook, the same for the same seed.

A demo needs thousands of articles that nobody owns, each different, in several
languages, with text enough that an extractor takes them for what they are. A
phrasebook (``data/sample/phrases/*.toml``) holds stories, each with titles and
sentences; words in braces are filled in. What comes out is not meant to be
believed, only to be read by machines, and the true text is known.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

_SLOT = re.compile(r"\{(\w+)\}")


@dataclass(frozen=True, slots=True)
class Story:
    """A subject to write about: titles and sentences with ``{slots}``."""

    topic: str
    titles: tuple[str, ...]
    sentences: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Phrasebook:
    """What the publishers of one language write with.

    Attributes
    ----------
    language
        Two-letter code.
    labels
        Words of the page around an article: "Read also", "Comments".
    names
        Choices for the slots, such as ``town``.
    stories
        Subjects; each article is about one.
    common
        Sentences that fit every subject.
    sections, remarks
        Names of the site's sections, and what readers say in comments.
    """

    language: str
    labels: Mapping[str, str]
    names: Mapping[str, tuple[str, ...]]
    stories: tuple[Story, ...]
    common: tuple[str, ...]
    sections: tuple[str, ...]
    remarks: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class InventedArticle:
    """An article as its writer wrote it, before any page was made of it."""

    title: str
    author: str
    paragraphs: tuple[str, ...]

    @property
    def text(self) -> str:
        """The paragraphs, one a line."""
        return "\n".join(self.paragraphs)


def parse_phrasebook(language: str, parsed: Mapping[str, Any]) -> Phrasebook:
    """Return the phrasebook that a parsed TOML file holds."""
    labels = parsed["labels"]
    return Phrasebook(
        language=language,
        labels={key: text for key, text in labels.items() if isinstance(text, str)},
        names={key: tuple(words) for key, words in parsed["names"].items()},
        stories=tuple(
            Story(story["topic"], tuple(story["titles"]), tuple(story["sentences"]))
            for story in parsed["story"]
        ),
        common=tuple(parsed["common"]["sentences"]),
        sections=tuple(labels["sections"]),
        remarks=tuple(labels["remark"]),
    )


def invent_title(phrasebook: Phrasebook, seed: int, topics: tuple[str, ...] = ()) -> str:
    """Return the title of article `seed`: the one :func:`invent_article` gives it."""
    return _Writer(phrasebook, seed, topics).title


def invent_article(
    phrasebook: Phrasebook, seed: int, topics: tuple[str, ...] = ()
) -> InventedArticle:
    """Return article `seed` of an endless supply.

    Parameters
    ----------
    phrasebook
        Words to write with.
    seed
        Number of the article, >= 0: the same number gives the same article.
    topics
        Subjects to choose from; all of the phrasebook where empty.

    Returns
    -------
    InventedArticle
        Three to twelve paragraphs of one to three sentences. Names stay the same all
        through an article, numbers change, no sentence comes twice.
    """
    return _Writer(phrasebook, seed, topics).article()


class _Writer:
    """One article in the making: its random numbers and the names already settled."""

    def __init__(self, phrasebook: Phrasebook, seed: int, topics: tuple[str, ...]) -> None:
        self._phrasebook = phrasebook
        self._rng = np.random.default_rng(seed)
        self._names: dict[str, str] = {}
        known = [story for story in phrasebook.stories if not topics or story.topic in topics]
        self._story = known[int(self._rng.integers(len(known)))]
        titles = self._story.titles
        self.title = self._fill(titles[int(self._rng.integers(len(titles)))])

    def article(self) -> InventedArticle:
        n_paragraphs = int(self._rng.integers(3, 13))
        own = self._shuffled(self._story.sentences)
        pool = own[1:] + self._shuffled(self._phrasebook.common)
        n_sentences = min(len(pool), max(8, int(n_paragraphs * self._rng.uniform(1.4, 2.6))))
        chosen = [own[0], *self._shuffled(tuple(pool[:n_sentences]))]
        parts = np.array_split(np.arange(len(chosen)), n_paragraphs)
        space = "" if self._phrasebook.language == "zh" else " "
        paragraphs = tuple(
            space.join(self._fill(chosen[int(at)]) for at in part) for part in parts if len(part)
        )
        return InventedArticle(self.title, self._name("person"), paragraphs)

    def _shuffled(self, sentences: tuple[str, ...]) -> list[str]:
        return [sentences[int(at)] for at in self._rng.permutation(len(sentences))]

    def _fill(self, sentence: str) -> str:
        filled = _SLOT.sub(lambda slot: self._value(slot[1]), sentence)
        return filled[:1].upper() + filled[1:]

    def _value(self, slot: str) -> str:
        numbers = {"n": (5, 21, 1), "big": (12, 100, 10), "hour": (6, 21, 1)}
        if slot in numbers:
            low, high, unit = numbers[slot]
            return str(int(self._rng.integers(low, high)) * unit)
        return self._name(slot)

    def _name(self, slot: str) -> str:
        if slot not in self._names:
            words = self._phrasebook.names[slot]
            self._names[slot] = words[int(self._rng.integers(len(words)))]
        return self._names[slot]
