"""The channels a page is judged on, and the model of a site's pages that scores them.

A channel is one number of a page: how far it stands from what the reference pages hold, or
one of the page's own numbers. Channels fall into three groups, and the verdicts follow the
groups: `structure` says that the layout is another one, `place` that the text comes from
elsewhere on the page, `text` that the text itself is of another kind.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

import numpy as np
import numpy.typing as npt

from models.drift.features import N_LETTER_PAIRS, NUMBERS, FloatArray, HashArray, PageFeatures
from models.drift.pagescan import FACTS

Group = Literal["structure", "place", "text"]
Side = Literal["high", "low", "both"]
GROUPS: tuple[Group, ...] = ("structure", "place", "text")

NEAREST = 3
"""A page is compared with so many of the reference pages most like it, so that a site may
have several layouts at once."""

CORE_SHARE = 0.9
_NOWHERE = 0


@dataclass(frozen=True, slots=True)
class Channel:
    """One number pages are judged on.

    Attributes
    ----------
    name
        As shown to people.
    group
        What a departure means.
    side
        Which way a departure counts.
    is_slow
        Whether a small lasting shift is watched for too.
    words
        What a departure says, in words.
    """

    name: str
    group: Group
    side: Side
    is_slow: bool
    words: str


CHANNELS: tuple[Channel, ...] = (
    Channel("new_paths", "structure", "high", False, "the page is built of other elements"),
    Channel(
        "layout_distance", "structure", "high", False, "the page is laid out like no known one"
    ),
    Channel("lost_paths", "structure", "high", False, "elements every page had are missing"),
    Channel("facts", "structure", "high", False, "marks every page had are missing or new"),
    Channel("makeup", "structure", "high", False, "the page has other numbers of elements"),
    Channel("place", "place", "high", False, "the text comes from another place of the page"),
    Channel("own_share", "place", "both", True, "the text is another share of the page"),
    Channel("text_start", "place", "both", False, "the text stands elsewhere on the page"),
    Channel("text_density", "place", "low", True, "the text is gathered from here and there"),
    Channel("repeats", "text", "high", False, "the text repeats other articles"),
    Channel("letters", "text", "high", False, "the letters are of another kind"),
    Channel("title_overlap", "text", "low", True, "the text is not about its headline"),
    Channel("description_overlap", "text", "low", True, "the text does not fit its summary"),
    Channel("text_size", "text", "both", True, "the text has another size"),
    Channel("paragraphs", "text", "both", True, "the text has another number of paragraphs"),
    Channel("paragraph_size", "text", "both", True, "paragraphs have another size"),
    Channel("paragraph_spread", "text", "both", True, "paragraph sizes vary otherwise"),
    Channel("short_share", "text", "both", True, "there are more, or fewer, short lines"),
    Channel("sentence_share", "text", "both", True, "lines end otherwise than sentences do"),
    Channel("digit_share", "text", "both", False, "there are more, or fewer, digits"),
    Channel("punctuation_share", "text", "both", True, "punctuation is otherwise"),
    Channel("upper_share", "text", "both", True, "there are more, or fewer, capitals"),
    Channel("odd_share", "text", "high", False, "characters are garbled"),
    Channel("accent_share", "text", "both", False, "accented letters come and go"),
    Channel("other_script_share", "text", "both", False, "the script is another one"),
    Channel("word_length", "text", "both", False, "words have another length"),
    Channel("unique_share", "text", "both", False, "words repeat more, or less"),
    Channel("link_share", "text", "high", True, "the text consists of links"),
)

CHANNEL_INDEX = {channel.name: place for place, channel in enumerate(CHANNELS)}
N_CHANNELS = len(CHANNELS)

_COPIED = [
    (place, NUMBERS.index(channel.name))
    for place, channel in enumerate(CHANNELS)
    if channel.name in NUMBERS
]
_COPIED_TO = np.array([to for to, _ in _COPIED])
_COPIED_FROM = np.array([source for _, source in _COPIED])
_MAKEUP = np.array([NUMBERS.index(name) for name in NUMBERS[NUMBERS.index("page_size") :]])
_MAKEUP_FLOOR = np.array([0.1, 0.1, 0.05, 0.05, 0.1, 0.2])


@dataclass(frozen=True, slots=True, eq=False)
class PageModel:
    """What a set of pages of one site has in common.

    Attributes
    ----------
    n_pages
        Pages it was made from.
    path_keys, path_counts
        Tag paths seen, sorted, and on how many pages each.
    has_path
        Which page has which path; shape ``(n_pages, n_paths)``.
    place_keys, place_shares
        Places that gave text, sorted, and the mean share each gave.
    fact_counts
        Pages that have each fact.
    makeup_middle, makeup_scale
        Median and spread of page size and element counts.
    letter_pairs
        Mean share of each bucket of neighbouring letters.
    """

    n_pages: int
    path_keys: HashArray
    path_counts: npt.NDArray[np.uint32]
    has_path: npt.NDArray[np.bool_]
    place_keys: HashArray
    place_shares: FloatArray
    fact_counts: npt.NDArray[np.uint32]
    makeup_middle: FloatArray
    makeup_scale: FloatArray
    letter_pairs: FloatArray

    @classmethod
    def fit(cls, pages: Sequence[PageFeatures]) -> PageModel:
        """Return the model of a set of pages, at least one."""
        all_paths = np.concatenate([page.paths for page in pages])
        keys, counts = np.unique(all_paths, return_counts=True)
        has_path = np.zeros((len(pages), len(keys)), np.bool_)
        for row, page in enumerate(pages):
            has_path[row, np.searchsorted(keys, page.paths)] = True
        places, shares = _mean_places(pages)
        bits = np.array([page.facts for page in pages], np.uint32)
        facts = (bits[:, None] >> np.arange(len(FACTS), dtype=np.uint32)) & 1
        makeup = np.array([page.numbers[_MAKEUP] for page in pages])
        with_text = [page.letter_pairs for page in pages if page.letter_pairs.any()]
        return cls(
            n_pages=len(pages),
            path_keys=keys.astype(np.uint32),
            path_counts=counts.astype(np.uint32),
            has_path=has_path,
            place_keys=places,
            place_shares=shares,
            fact_counts=facts.sum(axis=0).astype(np.uint32),
            makeup_middle=np.median(makeup, axis=0),
            makeup_scale=_spread(makeup) + _MAKEUP_FLOOR,
            letter_pairs=np.mean(with_text or [np.zeros(N_LETTER_PAIRS)], axis=0),
        )

    def score(self, page: PageFeatures, repeats: float) -> FloatArray:
        """Return the page's score on each of :data:`CHANNELS`; ``nan`` where it has none.

        Parameters
        ----------
        page
            The page.
        repeats
            Share of its text that stood on other pages just before.
        """
        scores = np.full(N_CHANNELS, np.nan)
        scores[_COPIED_TO] = page.numbers[_COPIED_FROM]
        scores[:3] = self._score_paths(page)
        scores[3] = self._score_facts(page)
        scores[4] = self._score_makeup(page)
        scores[5] = self._score_places(page)
        scores[CHANNEL_INDEX["repeats"]] = repeats
        scores[CHANNEL_INDEX["letters"]] = self._score_letters(page)
        return scores

    def _score_paths(self, page: PageFeatures) -> tuple[float, float, float]:
        n_own = max(len(page.paths), 1)
        at = np.searchsorted(self.path_keys, page.paths)
        at = np.minimum(at, len(self.path_keys) - 1)
        known = at[self.path_keys[at] == page.paths]
        new_share = 1.0 - len(known) / n_own
        shared = self.has_path[:, known].sum(axis=1)
        either = self.has_path.sum(axis=1) + n_own - shared
        likeness = np.sort(shared / either)[::-1][: min(NEAREST, self.n_pages)]
        core = self.path_counts >= CORE_SHARE * self.n_pages
        n_core = int(core.sum())
        lost = 1.0 - float(core[known].sum()) / n_core if n_core else 0.0
        return new_share, 1.0 - float(likeness.mean()), lost

    def _score_facts(self, page: PageFeatures) -> float:
        has = (page.facts >> np.arange(len(FACTS))) & 1
        share = (self.fact_counts + 0.5) / (self.n_pages + 1.0)
        return float(-np.log(np.where(has, share, 1.0 - share)).sum())

    def _score_makeup(self, page: PageFeatures) -> float:
        apart = (page.numbers[_MAKEUP] - self.makeup_middle) / self.makeup_scale
        return float(np.sqrt(np.mean(apart**2)))

    def _score_places(self, page: PageFeatures) -> float:
        if page.text_bytes == 0:
            return float("nan")
        keys = np.append(page.places, np.uint32(_NOWHERE))
        shares = np.append(page.place_shares, max(1.0 - page.place_shares.sum(), 0.0))
        at = np.minimum(np.searchsorted(self.place_keys, keys), len(self.place_keys) - 1)
        usual = np.where(self.place_keys[at] == keys, self.place_shares[at], 0.0)
        surprise = -np.log((usual * self.n_pages + 0.25) / (self.n_pages + 0.25))
        return float((shares * surprise).sum())

    def _score_letters(self, page: PageFeatures) -> float:
        if not page.letter_pairs.any():
            return float("nan")
        return float(1.0 - np.sqrt(page.letter_pairs * self.letter_pairs).sum())


def _mean_places(pages: Sequence[PageFeatures]) -> tuple[HashArray, FloatArray]:
    totals: dict[int, float] = {_NOWHERE: 0.0}
    for page in pages:
        nowhere = max(1.0 - float(page.place_shares.sum()), 0.0)
        totals[_NOWHERE] += nowhere
        for key, share in zip(page.places.tolist(), page.place_shares.tolist(), strict=True):
            totals[key] = totals.get(key, 0.0) + share
    keys = sorted(totals)
    return (
        np.array(keys, np.uint32),
        np.array([totals[key] for key in keys]) / len(pages),
    )


def _spread(values: FloatArray) -> FloatArray:
    high, low = np.quantile(values, [0.75, 0.25], axis=0)
    spread: FloatArray = (high - low) / 1.349
    return spread


RECENT_PAGES = 30
"""Repeats are looked for among so many pages: a longer memory finds ever more of them."""


class RecentParagraphs:
    """The paragraphs of the last pages, to tell what repeats.

    Parameters
    ----------
    pages
        Pages to begin with, oldest first.
    """

    def __init__(self, pages: Sequence[PageFeatures] = ()) -> None:
        self._pages: list[HashArray] = []
        for page in pages[-RECENT_PAGES:]:
            self.add(page)

    def add(self, page: PageFeatures) -> None:
        """Take a page in; the oldest goes."""
        self._pages.append(np.unique(page.paragraphs))
        self.keep(RECENT_PAGES)

    def keep(self, n_pages: int) -> None:
        """Forget all but the last pages."""
        del self._pages[:-n_pages]

    def share_of(self, page: PageFeatures) -> float:
        """Return the share of a page's text that stands on one of the last pages."""
        if not self._pages or not len(page.paragraphs):
            return float("nan")
        seen = np.isin(page.paragraphs, np.concatenate(self._pages))
        sizes = page.paragraph_sizes.astype(np.float64)
        return float(sizes[seen].sum() / max(sizes.sum(), 1.0))

    def hashes(self) -> list[HashArray]:
        """Return what is remembered, a page each, oldest first."""
        return list(self._pages)

    @classmethod
    def of_hashes(cls, pages: Sequence[HashArray]) -> RecentParagraphs:
        """Return the memory that :meth:`hashes` told."""
        recent = cls()
        recent._pages = list(pages)
        return recent
