"""Which articles tell the same story, so that people are told once.

A text is known by a sketch: the smallest hashes of its runs of three words (of five
characters where words are not set apart). Two sketches share about as much as the texts do.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from itertools import islice
from zlib import crc32

from models.triage.folding import folded_text
from models.triage.words import WORD, is_unspaced

SKETCH = 96
"""Hashes kept of a text."""

HEAD = 16
"""Smallest hashes of a sketch, by which candidates are found: two texts alike enough to be one
story have none in common there once in a thousand times."""

RUN_WORDS, RUN_CHARS = 3, 5
READ_WORDS = 3000

LEAST_ALIKE = 0.35
"""Share of common runs from which two texts are one story: reprints change their first
sentence and cut the end."""

LEAST_TITLE_WORDS = 4
"""A title of fewer words ("Weather") may head anything."""


@dataclass(frozen=True, slots=True)
class Story:
    """What a story is known by."""

    story_id: str
    title: str
    signature: tuple[int, ...]


def sketch(title: str, text: str) -> tuple[int, ...]:
    """Return the sketch of an article, in ascending order; equal texts have equal ones."""
    folded = folded_text(f"{title} {text}"[: READ_WORDS * 12])
    if is_unspaced(folded):
        bare = "".join(WORD.findall(folded))
        runs: Iterable[str] = (bare[at : at + RUN_CHARS] for at in range(len(bare) - RUN_CHARS + 1))
    else:
        words = list(islice(WORD.findall(folded), READ_WORDS))
        runs = (" ".join(words[at : at + RUN_WORDS]) for at in range(len(words) - RUN_WORDS + 1))
    return tuple(sorted({crc32(run.encode()) for run in runs})[:SKETCH])


def likeness(one: Sequence[int], other: Sequence[int]) -> float:
    """Return the share of runs that two texts have in common, 0 to 1.

    Examples
    --------
    >>> text = "The river rose by six feet during the night and reached the first houses."
    >>> likeness(sketch("", text), sketch("", text + " Nobody was hurt.")) > 0.7
    True
    >>> likeness(sketch("", text), sketch("", "A bakery gave away six hundred rolls."))
    0.0
    """
    if not one or not other:
        return 0.0
    # The smallest of both together are a fair sample of all their runs.
    smallest = sorted({*one, *other})[:SKETCH]
    both = set(one) & set(other)
    return sum(mark in both for mark in smallest) / len(smallest)


def find_story(title: str, signature: Sequence[int], recent: Iterable[Story]) -> Story | None:
    """Return the recent story that an article tells, the likest; None where it is a new one."""
    head = _head(title)
    best, best_share = None, LEAST_ALIKE
    for story in recent:
        if head and head == _head(story.title):
            return story
        share = likeness(signature, story.signature)
        if share >= best_share:
            best, best_share = story, share
    return best


def _head(title: str) -> str:
    """Return a title as it is compared, empty where it says too little."""
    folded = folded_text(title)
    words = WORD.findall(folded)
    enough = len(words) >= LEAST_TITLE_WORDS or (
        is_unspaced(folded) and len(folded) > 2 * RUN_CHARS
    )
    return " ".join(words) if enough else ""
