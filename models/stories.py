"""Headlines that tell the same story, and who told it first.

Headlines are compared by their words, a rare word weighing more than a common one; in
scripts without blanks, by pairs of characters. A headline joins the earlier story whose
first headline it is most like, and begins one of its own where none is like it: stories
cannot grow into each other over headlines in between.
"""

from __future__ import annotations

import math
import statistics
from collections import Counter, defaultdict
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from functools import lru_cache

from models.triage.folding import folded_text
from models.triage.words import is_unspaced, words_of

ALIKE = 0.4
"""Weight of the words two headlines share, over that of all their words, to be one story."""

LEAST_SHARED = 3
"""Words they must share at least: short headlines are alike by chance."""

STORY_AGE = timedelta(hours=36)
"""What comes later tells another story in the same words."""

PRIOR_HEADLINES = 100
"""Among few headlines a word is not common because two of them have it."""

COMMON_SHARE, COMMON_LEAST = 0.02, 50
"""Words in more headlines than that find no candidates: too many would share them."""


@dataclass(frozen=True, slots=True)
class Headline:
    """An article as far as its headline tells.

    Attributes
    ----------
    at
        When it was published, or first seen where no exact time is known.
    """

    source: str
    title: str
    at: datetime
    url: str = ""


@dataclass(frozen=True, slots=True)
class Story:
    """What several headlines tell, the earliest first."""

    headlines: tuple[Headline, ...]

    @property
    def first(self) -> Headline:
        """The headline that came first."""
        return self.headlines[0]

    @property
    def sources(self) -> list[str]:
        """Who told it, in the order in which they did, each once."""
        return list(dict.fromkeys(headline.source for headline in self.headlines))

    @property
    def lead_s(self) -> float | None:
        """Seconds from the first to the second source; None where there is one alone."""
        for headline in self.headlines:
            if headline.source != self.first.source:
                return (headline.at - self.first.at).total_seconds()
        return None


@dataclass(frozen=True, slots=True)
class Mover:
    """How often a source was first with what others told too.

    Attributes
    ----------
    n_shared
        Stories it told that others told as well.
    median_lead_s
        Time to the second source, over the stories where it was first.
    """

    source: str
    n_first: int
    n_shared: int
    median_lead_s: float | None


@lru_cache(20_000)
def title_words(title: str) -> frozenset[str]:
    """Return what a headline is compared by.

    Examples
    --------
    >>> sorted(title_words("Sturm über dem Hafen: 3 Tote"))
    ['dem', 'hafen', 'sturm', 'tote', 'über']
    >>> sorted(title_words("港口大桥"))
    ['口大', '大桥', '港口']
    """
    folded = folded_text(title)
    found: set[str] = set()
    for start, end in words_of(folded):
        word = folded[start:end]
        if is_unspaced(word):
            found.update(word[at : at + 2] for at in range(max(len(word) - 1, 1)))
        elif len(word) > 2:
            found.add(word)
    return frozenset(found)


@dataclass(slots=True)
class _Open:
    """A story that may still grow."""

    words: frozenset[str]
    weight: float
    headlines: list[Headline] = field(default_factory=list)


def group_stories(headlines: Iterable[Headline]) -> list[Story]:
    """Return the stories that headlines tell, those of most sources first.

    Takes about a second for 30,000 headlines.
    """
    ordered = sorted(headlines, key=lambda headline: headline.at)
    counts = Counter(word for each in ordered for word in title_words(each.title))
    most = max(COMMON_LEAST, COMMON_SHARE * len(ordered))
    total = len(ordered) + PRIOR_HEADLINES
    weights = {word: math.log(1.0 + total / n) for word, n in counts.items()}
    finder: dict[str, list[_Open]] = defaultdict(list)
    found: list[_Open] = []
    for headline in ordered:
        words = title_words(headline.title)
        rare = [word for word in words if counts[word] <= most]
        story = _find_story(headline, words, rare, finder, weights)
        if story is None:
            story = _Open(words, sum(weights[word] for word in words))
            found.append(story)
            for word in rare:
                finder[word].append(story)
        story.headlines.append(headline)
    stories = [Story(tuple(story.headlines)) for story in found]
    return sorted(stories, key=lambda story: (-len(story.sources), story.first.at))


def _find_story(
    headline: Headline,
    words: frozenset[str],
    rare: Sequence[str],
    finder: dict[str, list[_Open]],
    weights: dict[str, float],
) -> _Open | None:
    shared = Counter(id(story) for word in rare for story in finder[word])
    candidates = {id(story): story for word in rare for story in finder[word]}
    weight = sum(weights[word] for word in words)
    best, best_alike = None, ALIKE
    for key, _ in shared.most_common(20):
        story = candidates[key]
        common = words & story.words
        if len(common) < LEAST_SHARED or headline.at - story.headlines[0].at > STORY_AGE:
            continue
        both = sum(weights[word] for word in common)
        alike = both / (weight + story.weight - both)
        if alike >= best_alike:
            best, best_alike = story, alike
    return best


def rank_movers(stories: Iterable[Story]) -> list[Mover]:
    """Return who was first how often, the most often first.

    Examples
    --------
    >>> at = datetime(2026, 3, 1, 8)
    >>> told = (Headline("a", "t", at), Headline("b", "t", at + timedelta(minutes=5)))
    >>> rank_movers([Story(told)])[0]
    Mover(source='a', n_first=1, n_shared=1, median_lead_s=300.0)
    """
    shared: Counter[str] = Counter()
    leads: dict[str, list[float]] = defaultdict(list)
    for story in stories:
        if story.lead_s is not None:
            shared.update(story.sources)
            leads[story.first.source].append(story.lead_s)
    movers = [
        Mover(
            source,
            len(leads[source]),
            n,
            statistics.median(leads[source]) if leads[source] else None,
        )
        for source, n in shared.items()
    ]
    return sorted(movers, key=lambda mover: (-mover.n_first, -mover.n_shared, mover.source))
