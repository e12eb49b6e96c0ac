"""Which articles say nearly the same: reprints of one wire, however each outlet edits them.

A text is known by its signature: the MinHash of its runs of two words (four characters
where words are not set apart), of each mark the lowest eight bits. Two signatures agree in
about the share of runs that the texts have in common. Runs are short, so that a word
changed here and there costs few of them, and order matters little.

All recent signatures are compared with each new one: 100,000 of them are 13 MB, and take
two milliseconds. That finds every likeness, where bands of hashes miss some and hold a
hundred times the memory.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from datetime import datetime, timedelta
from itertools import islice

import numpy as np
import numpy.typing as npt
from rensa import RMinHash

from models.triage.folding import folded_text
from models.triage.words import WORD, is_unspaced

N_MARKS = 128
"""Marks of a signature: a likeness of 0.3 is then known to 0.04."""

RUN_WORDS, RUN_CHARS = 2, 4
READ_TOKENS = 3000
_LONGEST_TOKEN = 12

LEAST_RUNS = 12
"""A text of fewer runs ("Photo: agency") is like too many others, and has no signature."""

ALIKE = 0.3
"""Share of common runs from which two texts tell one story. Reprints that lost 40 % of the
text, got another headline or a frame of the site's own, or were reworded, share more; texts on
one subject share less than half of that (``benchmarks/likeness.py``)."""

LEAST_TITLE_WORDS, LEAST_TITLE_CHARS = 4, 10
"""A shorter title ("Weather") may head anything."""

MOST_KEPT = 200_000
"""Signatures in memory at most: the oldest go first."""

_SEED = 1
_BY_CHANCE = 1.0 / 256.0


@dataclass(frozen=True, slots=True)
class Signed:
    """An article as it was found to be like another, or none.

    Attributes
    ----------
    story_id
        The first article of its story: its own id where it is like none before.
    resembles, similarity
        The earlier article it is likest, and the share of common runs; None where there is
        none. With the same headline the share may be small.
    signature
        None where the text says too little.
    """

    article_id: str
    source: str
    seen_at: datetime
    story_id: str
    resembles: str | None
    similarity: float | None
    signature: bytes | None
    title: str = ""


def sign_text(title: str | None, text: str | None) -> bytes | None:
    """Return the signature of an article, None where it says too little.

    Examples
    --------
    >>> sign_text("Weather", "Rain.") is None
    True
    >>> len(sign_text("", "The river rose by six feet during the night and reached the old town."))
    128
    """
    runs = _runs_of(f"{title or ''} {text or ''}")
    if len(runs) < LEAST_RUNS:
        return None
    sketch = RMinHash(N_MARKS, _SEED)
    sketch.update(list(runs))
    return np.asarray(sketch.digest(), dtype=np.uint32).astype(np.uint8).tobytes()


def _runs_of(text: str) -> set[str]:
    folded = folded_text(text[: READ_TOKENS * _LONGEST_TOKEN])
    words = list(islice(WORD.findall(folded), READ_TOKENS))
    if 2 * sum(map(is_unspaced, words)) > len(words):
        bare = "".join(words)[:READ_TOKENS]
        return {bare[at : at + RUN_CHARS] for at in range(len(bare) - RUN_CHARS + 1)}
    return {" ".join(words[at : at + RUN_WORDS]) for at in range(len(words) - RUN_WORDS + 1)}


def likeness(one: bytes, other: bytes) -> float:
    """Return about the share of runs that two texts have in common, 0 to 1.

    Examples
    --------
    >>> text = "The river rose by six feet during the night and reached the first houses."
    >>> likeness(sign_text("", text), sign_text("", text + " Nobody was hurt.")) > 0.7
    True
    >>> other = "A bakery gave away six hundred rolls to all who came by on Monday."
    >>> likeness(sign_text("", text), sign_text("", other)) < 0.1
    True
    """
    same = np.frombuffer(one, np.uint8) == np.frombuffer(other, np.uint8)
    return _share(int(same.sum()))


def _share(n_same: int) -> float:
    """Return the share of common runs that so many equal marks speak for."""
    return max((n_same / N_MARKS - _BY_CHANCE) / (1.0 - _BY_CHANCE), 0.0)


class Likenesses:
    """The signatures of recent articles, to find what a new one is like.

    Parameters
    ----------
    span
        How long after an article was seen another may join its story.
    most
        Articles kept at most.
    """

    def __init__(self, span: timedelta, most: int = MOST_KEPT) -> None:
        self._span_s = span.total_seconds()
        self._most = most
        self._marks: npt.NDArray[np.uint8] = np.zeros((N_MARKS, 1024), np.uint8)
        self._seen_s: npt.NDArray[np.float64] = np.zeros(1024)
        self._ids: list[str] = []
        self._stories: list[str] = []
        self._places: dict[str, int] = {}
        self._heads: dict[str, int] = {}

    def __len__(self) -> int:
        return len(self._ids)

    @property
    def n_bytes(self) -> int:
        """Bytes of the signatures held."""
        return self._marks.nbytes + self._seen_s.nbytes

    def load(self, articles: Iterable[Signed]) -> None:
        """Take up articles that were signed before, the oldest first."""
        for one in articles:
            if one.signature is not None:
                self._keep(one)

    def add(
        self,
        article_id: str,
        source: str,
        title: str,
        signature: bytes | None,
        seen_at: datetime,
        story_id: str | None = None,
    ) -> Signed:
        """Return what an article is like, and keep it for those to come.

        Parameters
        ----------
        story_id
            The story it is known to belong to, if it was seen before.
        """
        at_s = seen_at.timestamp()
        place, share = self._find(article_id, title, signature, at_s)
        own = self._places.get(article_id)
        if own is not None:
            story_id = self._stories[own]
        like = self._ids[place] if place is not None else None
        if story_id is None:
            story_id = self._stories[place] if place is not None else article_id
        found = Signed(article_id, source, seen_at, story_id, like, share, signature, title)
        self._keep(found)
        return found

    def _find(
        self, article_id: str, title: str, signature: bytes | None, at_s: float
    ) -> tuple[int | None, float | None]:
        """Return the place of the likest recent article, and its likeness."""
        n = len(self._ids)
        if not n:
            return None, None
        same = self._count_same(signature, n)
        same[self._seen_s[:n] < at_s - self._span_s] = 0
        own = self._places.get(article_id)
        if own is not None:
            same[own] = 0
        best = int(same.argmax())
        if _share(int(same[best])) >= ALIKE:
            return best, _share(int(same[best]))
        head = self._heads.get(_head(title))
        if head is None or head == own or self._seen_s[head] < at_s - self._span_s:
            return None, None
        return head, _share(int(same[head]))

    def _count_same(self, signature: bytes | None, n: int) -> npt.NDArray[np.uint8]:
        count = np.zeros(n, np.uint8)
        if signature is None:
            return count
        same = np.empty(n, np.bool_)
        # Mark by mark over all articles: ten times as fast as article by article.
        for marks, mark in zip(self._marks, signature, strict=True):
            np.equal(marks[:n], mark, out=same)
            count += same.view(np.uint8)
        return count

    def _keep(self, one: Signed) -> None:
        place = self._places.get(one.article_id)
        if place is None:
            if len(self._ids) == self._seen_s.size:
                self._make_room(one.seen_at.timestamp())
            place = len(self._ids)
            self._ids.append(one.article_id)
            self._stories.append(one.story_id)
            self._places[one.article_id] = place
        blank = bytes(N_MARKS)
        self._marks[:, place] = np.frombuffer(one.signature or blank, np.uint8)
        self._seen_s[place] = one.seen_at.timestamp()
        if head := _head(one.title):
            self._heads[head] = place

    def _make_room(self, now_s: float) -> None:
        """Drop what is out of date, the oldest tenth where there is too much, and grow."""
        kept = np.flatnonzero(self._seen_s >= now_s - self._span_s)
        if len(kept) >= self._most:
            kept = np.sort(np.argsort(self._seen_s)[len(self._seen_s) // 10 :])
        size = max(1024, min(2 * len(kept), self._most))
        marks, seen_s = np.zeros((N_MARKS, size), np.uint8), np.zeros(size)
        marks[:, : len(kept)] = self._marks[:, kept]
        seen_s[: len(kept)] = self._seen_s[kept]
        moved = {int(old): new for new, old in enumerate(kept)}
        self._marks, self._seen_s = marks, seen_s
        self._ids = [self._ids[old] for old in kept]
        self._stories = [self._stories[old] for old in kept]
        self._places = {article: place for place, article in enumerate(self._ids)}
        self._heads = {head: moved[old] for head, old in self._heads.items() if old in moved}


def _head(title: str) -> str:
    """Return a title as it is compared, empty where it says too little."""
    folded = folded_text(title)
    words = WORD.findall(folded)
    is_enough = len(words) >= LEAST_TITLE_WORDS or (
        is_unspaced(folded) and len(folded) > LEAST_TITLE_CHARS
    )
    return " ".join(words) if is_enough else ""
