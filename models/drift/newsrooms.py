"""From stored pages to made-up sites: which pages lend their layout, which their articles."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence
from zlib import crc32

import numpy as np

from models.drift.faults import Newsroom, draw_habits
from models.drift.template import Story, Template

MAX_MARKUP = 120_000
"""Longest template, in characters: longer ones only cost time."""

MIN_PARAGRAPHS = 6
MIN_CHARS = 1_200
MIN_STORIES = 120
"""Articles of its own language that a site needs; with fewer it prints those of another."""

_MAX_SHARE = 0.3
_MIN_LINE = 40
_MIN_FIT = 0.85


def read_story(title: str | None, text: str | None) -> Story | None:
    """Return an extracted article as material, or nothing where it is too short or odd."""
    lines = tuple(line for line in (text or "").splitlines() if len(line) >= _MIN_LINE)
    size = sum(map(len, lines))
    if not title or len(title) < 15 or len(lines) < MIN_PARAGRAPHS or size < MIN_CHARS:
        return None
    if max(map(len, lines)) > _MAX_SHARE * size:
        return None
    return Story(title, lines[0][:150], lines)


def agreement(found: str, truth: str) -> float:
    """Return F1 of the words of two texts, 0 to 1; 1 where both are empty.

    Examples
    --------
    >>> agreement("rain all night", "rain all day")
    0.6666666666666666
    """
    ours, theirs = Counter(found.split()), Counter(truth.split())
    total = sum(ours.values()) + sum(theirs.values())
    return 2 * sum((ours & theirs).values()) / total if total else 1.0


def is_fit(agreements: Sequence[float]) -> bool:
    """Say whether the extractor reads a template rightly, from some of its pages."""
    return float(np.median(agreements)) >= _MIN_FIT


def site_seed(site: str, seed: int) -> int:
    """Return the seed of all chance about one site."""
    return crc32(f"{site} {seed}".encode())


def in_drawn_order(sites: Iterable[str], seed: int) -> list[str]:
    """Return sites in an order that chance gave them, the same for the same seed."""
    return sorted(set(sites), key=lambda site: site_seed(site, seed))


def stories_for(
    language: str, stories: dict[str, list[Story]], rng: np.random.Generator
) -> tuple[Story, ...]:
    """Return the articles a site prints, in an order of its own."""
    plenty = sorted(name for name, own in stories.items() if name and len(own) >= MIN_STORIES)
    if not plenty:
        plenty = [max(stories, key=lambda name: len(stories[name]))]
    chosen = language if language in plenty else plenty[int(rng.integers(len(plenty)))]
    own = stories[chosen]
    return tuple(own[at] for at in rng.permutation(len(own)))


def open_newsroom(
    template: Template, other: Template, stories: dict[str, list[Story]], seed: int
) -> Newsroom:
    """Return the site that a template makes with the articles at hand.

    Parameters
    ----------
    template, other
        Its layout, and the one it is redesigned to.
    stories
        By language.
    seed
        Of all chance about it.
    """
    rng = np.random.default_rng(site_seed(template.site, seed))
    habits = draw_habits(template, rng)
    return Newsroom(template, other, habits, stories_for(template.language, stories, rng))
