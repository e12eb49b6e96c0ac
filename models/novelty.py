"""What a day has more of than the days before: words of headlines, entries of an hour.

Both ask the same: is this count more than chance would make of the usual one? A count of
events that come in bursts varies more than Poisson's; `BURSTINESS` times as much is
allowed for.
"""

from __future__ import annotations

import math
from collections import Counter, defaultdict
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from datetime import datetime
from functools import lru_cache

from models.triage.folding import folded_text
from models.triage.morphology import STEMMERS, readings, stem
from models.triage.words import is_unspaced, words_of

BURSTINESS = 2.0
"""Variance of an ordinary count over its mean."""

SPIKE_SCORE, SPIKE_LEAST = 4.0, 5
"""A spike is that many standard deviations, and that many entries, at least."""

WORD_SCORE, WORD_LEAST, WORD_SOURCES = 3.0, 3, 2
"""A new word stands that far out, in that many headlines of that many sources."""

UNSPACED_CHARS = 2
"""Characters of what stands for a word in scripts without blanks."""


@dataclass(frozen=True, slots=True)
class Spike:
    """Far more in an hour than there usually is.

    Attributes
    ----------
    usual
        Mean of the same hour in the days before.
    before
        Mean of an hour in the day before it.
    score
        Standard deviations above the larger of the two.
    """

    name: str
    hour_at: datetime
    count: int
    usual: float
    before: float
    score: float


def score_excess(count: float, expected: float) -> float:
    """Return how many standard deviations a count lies above what was expected.

    Examples
    --------
    >>> score_excess(10, 10.0), round(score_excess(30, 4.0), 1), round(score_excess(3, 0.0), 1)
    (0.0, 8.7, 3.0)
    """
    return (count - expected) / math.sqrt(BURSTINESS * expected + 1.0)


def find_spike(
    name: str, hour_at: datetime, count: int, usual: float, before: float
) -> Spike | None:
    """Return the spike that an hour is, None where it is none.

    Two things must be exceeded, the same hour of other days and the hours just before:
    a busy morning is no spike, nor is a busy week.
    """
    score = score_excess(count, max(usual, before))
    if count < SPIKE_LEAST or score < SPIKE_SCORE:
        return None
    return Spike(name, hour_at, count, usual, before, score)


@dataclass(frozen=True, slots=True)
class Title:
    """A headline, as words are counted in it.

    Attributes
    ----------
    is_of_day
        Whether it is of the day looked at; the others are what it is compared with.
    """

    text: str
    source: str
    language: str
    is_of_day: bool


@dataclass(frozen=True, slots=True)
class NewWord:
    """A word that a day has more of than others.

    Attributes
    ----------
    n_headlines, n_sources
        Of the day that have it.
    usual
        Headlines that would have it, were the day like those before.
    example
        One of the headlines.
    """

    word: str
    n_headlines: int
    n_sources: int
    usual: float
    score: float
    example: str


def find_new_words(titles: Iterable[Title], most: int = 40) -> list[NewWord]:
    """Return the words a day has more of than the days before, the furthest out first.

    All forms of a word are one; it is named by its commonest form.
    """
    sizes = [0, 0]
    counts: tuple[Counter[str], Counter[str]] = (Counter(), Counter())
    sources: dict[str, set[str]] = defaultdict(set)
    forms: dict[str, Counter[str]] = defaultdict(Counter)
    examples: dict[str, str] = {}
    for title in titles:
        sizes[title.is_of_day] += 1
        words = _counted_words(title)
        counts[title.is_of_day].update(words.keys())
        if title.is_of_day:
            for word, form in words.items():
                sources[word].add(title.source)
                forms[word][form] += 1
                examples.setdefault(word, title.text)
    share = sizes[1] / sizes[0] if sizes[0] else 0.0
    found = []
    for word, n in counts[1].items():
        usual = counts[0][word] * share
        score = score_excess(n, usual)
        if n >= WORD_LEAST and len(sources[word]) >= WORD_SOURCES and score >= WORD_SCORE:
            form = forms[word].most_common(1)[0][0]
            found.append(NewWord(form, n, len(sources[word]), usual, score, examples[word]))
    found.sort(key=lambda new: (-new.score, new.word))
    return found[:most]


def _counted_words(title: Title) -> Mapping[str, str]:
    """Return what is counted of a headline: the key of each word, and its form there."""
    folded = folded_text(title.text)
    found: dict[str, str] = {}
    for start, end in words_of(folded):
        word = folded[start:end]
        if is_unspaced(word):
            for at in range(max(len(word) - UNSPACED_CHARS + 1, 0)):
                pair = word[at : at + UNSPACED_CHARS]
                found[pair] = pair
        elif len(word) > 2 and not word.isdigit():
            found.setdefault(_key(word, title.language), word)
    return found


@lru_cache(200_000)
def _key(word: str, language: str) -> str:
    """Return what all forms of a word have in common."""
    if language == "ru" and not word.isascii():
        shares = readings(word)
        return max(shares, key=lambda each: shares[each], default=word)
    return stem(language, word) if language in STEMMERS else word
