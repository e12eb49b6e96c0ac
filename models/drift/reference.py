"""The reference: how a site's correct pages look, frozen.

A reference is built from pages that are held to be right and is not learnt on: whoever
accepts a new layout builds a new one. Pages already wrong are refused as a reference
(:mod:`models.drift.gate`).
"""

from __future__ import annotations

import io
import zlib
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import numpy.typing as npt

from models.drift.calibration import N_SCORES, BorrowedTails, Calibration
from models.drift.channels import N_CHANNELS, RECENT_PAGES, PageModel, RecentParagraphs
from models.drift.deferred import WindowReference
from models.drift.evidence import Odds, Ranks, join_groups, rank_page
from models.drift.features import FloatArray, PageFeatures
from models.drift.gate import check_reference
from models.errors import InsufficientDataError, ParseError

MIN_PAGES = 9
MAX_PAGES = 400
"""More pages tell hardly more; they are thinned to so many."""

MAX_WINDOW = 1_200
"""So many pages the slides' detectors are made of: they need as many."""

N_FOLDS = 5
N_PLACES = 3
MAX_PATHS = 6_000
_LAYOUT = 1


@dataclass(frozen=True, slots=True, eq=False)
class Reference:
    """How a site's correct pages look.

    Attributes
    ----------
    model
        What the pages have in common.
    ranks
        Their scores, each by a model that had not seen the page.
    recent
        The paragraphs of the last of them.
    window
        Their distributions, for the deferred stage.
    places
        Where text mostly stood, and on which share of pages, commonest first.
    tails
        What is borrowed from other sites.
    """

    model: PageModel
    ranks: Ranks
    recent: tuple[npt.NDArray[np.uint32], ...]
    window: WindowReference
    places: tuple[tuple[str, float], ...]
    tails: BorrowedTails

    @property
    def n_pages(self) -> int:
        """Number of pages it was built from."""
        return self.model.n_pages

    def judge(self, page: PageFeatures, repeats: float) -> Odds:
        """Return a page's p-values on all scores.

        Parameters
        ----------
        page
            The page.
        repeats
            As :meth:`~models.drift.channels.RecentParagraphs.share_of` says.
        """
        scores = np.full(N_SCORES, np.nan)
        scores[:N_CHANNELS] = self.model.score(page, repeats)
        return judge_scores(scores, self.ranks, self.tails)

    def to_bytes(self) -> bytes:
        """Return the reference packed; the same reference gives the same bytes."""
        arrays = {
            "layout": np.array([_LAYOUT]),
            "has_path": np.packbits(self.model.has_path, axis=1),
            "path_keys": self.model.path_keys,
            "fact_counts": self.model.fact_counts,
            "place_keys": self.model.place_keys,
            "place_shares": self.model.place_shares,
            "makeup": np.stack([self.model.makeup_middle, self.model.makeup_scale]),
            "letter_pairs": self.model.letter_pairs,
            "ordered": self.ranks.ordered,
            "known": self.ranks.known,
            "ranks": np.stack([self.ranks.middle, self.ranks.spread]),
            "recent": np.concatenate([*self.recent, np.array([], np.uint32)]),
            "recent_sizes": np.array([len(page) for page in self.recent], np.int64),
            "values": self.window.values.astype(np.float32),
            "tags": self.window.tags.astype(np.float32),
            "numbers": self.window.numbers.astype(np.float32),
            "places": np.array([name for name, _ in self.places], "U200"),
            "places_shares": np.array([share for _, share in self.places]),
            "tails": np.stack([self.tails.high, self.tails.low]),
            "floors": self.tails.floors,
        }
        return pack_arrays(arrays)

    @classmethod
    def from_bytes(cls, packed: bytes) -> Reference:
        """Return the reference that :meth:`to_bytes` packed.

        Raises
        ------
        ParseError
            If it was packed by a version with another layout, or is cut short.
        """
        arrays = unpack_arrays(packed, "drift reference", _LAYOUT)
        n_paths = len(arrays["path_keys"])
        has_path = np.unpackbits(arrays["has_path"], axis=1, count=n_paths).astype(np.bool_)
        model = PageModel(
            n_pages=len(has_path),
            path_keys=arrays["path_keys"],
            path_counts=has_path.sum(axis=0).astype(np.uint32),
            has_path=has_path,
            place_keys=arrays["place_keys"],
            place_shares=arrays["place_shares"],
            fact_counts=arrays["fact_counts"],
            makeup_middle=arrays["makeup"][0],
            makeup_scale=arrays["makeup"][1],
            letter_pairs=arrays["letter_pairs"],
        )
        ends = np.cumsum(arrays["recent_sizes"])[:-1]
        shares = arrays["places_shares"].tolist()
        return cls(
            model=model,
            ranks=Ranks(arrays["ordered"], arrays["known"], *arrays["ranks"]),
            recent=tuple(np.split(arrays["recent"], ends)) if len(arrays["recent_sizes"]) else (),
            window=WindowReference(
                arrays["values"].astype(np.float64),
                arrays["tags"].astype(np.float64),
                arrays["numbers"].astype(np.float64),
            ),
            places=tuple(zip(arrays["places"].tolist(), shares, strict=True)),
            tails=BorrowedTails(arrays["tails"][0], arrays["tails"][1], arrays["floors"]),
        )


def build_reference(
    pages: Sequence[PageFeatures],
    calibration: Calibration | None = None,
    *,
    must_be_fit: bool = True,
) -> Reference:
    """Return the reference of a site.

    Parameters
    ----------
    pages
        Pages held to be right, oldest first, at least :data:`MIN_PAGES`; beyond
        :data:`MAX_PAGES` they are thinned evenly.
    calibration
        Figures learnt from other sites; cautious ones without.
    must_be_fit
        Whether pages whose text looks wrong are refused.

    Raises
    ------
    InsufficientDataError
        If there are fewer than :data:`MIN_PAGES`.
    ContaminatedReference
        If the pages look wrong already.

    Notes
    -----
    About 0.5 s for 200 pages.
    """
    if len(pages) < MIN_PAGES:
        raise InsufficientDataError(MIN_PAGES, len(pages))
    if must_be_fit:
        check_reference(pages)
    kept = _thinned(pages)
    tails = (calibration or Calibration.cautious()).for_size(len(kept))
    scores = held_out_scores(kept)
    return Reference(
        model=PageModel.fit(kept),
        ranks=rank_reference(scores, tails),
        recent=tuple(RecentParagraphs(kept).hashes()),
        window=replace(
            WindowReference.of(pages[-MAX_WINDOW:]), numbers=WindowReference.of(kept).numbers
        ),
        places=_common_places(kept),
        tails=tails,
    )


def judge_scores(scores: FloatArray, ranks: Ranks, tails: BorrowedTails) -> Odds:
    """Return the p-values of a page's scores, and of what the groups say together."""
    alone = rank_page(scores, ranks, tails)
    joined = np.full(N_SCORES, np.nan)
    joined[N_CHANNELS:] = join_groups(alone.worst)
    return alone.joined_with(rank_page(joined, ranks, tails))


def rank_reference(scores: FloatArray, tails: BorrowedTails) -> Ranks:
    """Return the ranks of held-out scores, those of the groups together among them."""
    ranks = Ranks.of(scores, tails.floors)
    whole = scores.copy()
    for row in range(len(scores)):
        whole[row, N_CHANNELS:] = join_groups(rank_page(scores[row], ranks, tails).worst)
    return Ranks.of(whole, tails.floors)


def held_out_scores(pages: Sequence[PageFeatures]) -> FloatArray:
    """Return the scores of each page by a model of the others, in :data:`N_FOLDS` folds.

    Small references leave out one page at a time. The joint columns are ``nan``.
    """
    n_folds = len(pages) if len(pages) < 5 * N_FOLDS else N_FOLDS
    scores = np.full((len(pages), N_SCORES), np.nan)
    repeats = _repeats(pages)
    for fold in range(n_folds):
        held = range(fold, len(pages), n_folds)
        model = PageModel.fit([page for at, page in enumerate(pages) if at % n_folds != fold])
        for at in held:
            scores[at, :N_CHANNELS] = model.score(pages[at], repeats[at])
    return scores


def _repeats(pages: Sequence[PageFeatures]) -> list[float]:
    """Return the share of each page's text that the pages before it hold, in a circle."""
    n_before = min(RECENT_PAGES, len(pages) - 1)
    circle = [*pages[-n_before:], *pages]
    recent = RecentParagraphs(circle[:n_before])
    shares = []
    for page in pages:
        shares.append(recent.share_of(page))
        recent.add(page)
        recent.keep(n_before)
    return shares


def _thinned(pages: Sequence[PageFeatures]) -> list[PageFeatures]:
    if len(pages) <= MAX_PAGES:
        return list(pages)
    picked = np.linspace(0, len(pages) - 1, MAX_PAGES).round().astype(int)
    return [pages[at] for at in picked]


def _common_places(pages: Sequence[PageFeatures]) -> tuple[tuple[str, float], ...]:
    seen = Counter(page.place for page in pages if page.place)
    return tuple((name, count / len(pages)) for name, count in seen.most_common(N_PLACES))


def pack_arrays(arrays: dict[str, Any]) -> bytes:
    """Return named arrays in one compressed block, always the same for the same arrays."""
    buffer = io.BytesIO()
    for name, array in sorted(arrays.items()):
        np.lib.format.write_array(buffer, np.array(name), allow_pickle=False)
        np.lib.format.write_array(buffer, np.ascontiguousarray(array), allow_pickle=False)
    return zlib.compress(buffer.getvalue(), 6)


def unpack_arrays(packed: bytes, what: str, layout: int) -> dict[str, Any]:
    """Return the arrays of a block, whose ``layout`` must be as given.

    Raises
    ------
    ParseError
        If the block is cut short, not ours, or of another layout.
    """
    arrays: dict[str, Any] = {}
    try:
        buffer = io.BytesIO(zlib.decompress(packed))
        while buffer.tell() < len(buffer.getbuffer()):
            name = str(np.lib.format.read_array(buffer, allow_pickle=False))
            arrays[name] = np.lib.format.read_array(buffer, allow_pickle=False)
        found = int(arrays["layout"][0])
    except (zlib.error, ValueError, KeyError, EOFError) as error:
        raise ParseError(what, "cut short or not ours") from error
    if found != layout:
        raise ParseError(what, f"layout {found}, and this version reads {layout}")
    return arrays
