"""Page after page: evidence adds up until it is beyond chance, and says what has changed.

Each bet keeps a running product of what it paid, started anew whenever it has lost (Page's
CUSUM on e-values). The alarm is raised when the weighted mean of all products reaches
10⁴; each of the three groups of channels has a third of the weight. No page is paid for with
more than 100, so that no page alarms alone.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Protocol

import numpy as np

from models.drift.calibration import N_SCORES, SCORE_NAMES
from models.drift.channels import CHANNELS, GROUPS, N_CHANNELS, Group, RecentParagraphs
from models.drift.evidence import (
    ALARM,
    BET_MASK,
    BET_STAKES,
    GROUP_OF,
    IS_SHARP,
    N_BETS,
    SHARP_WEIGHT,
    bet,
)
from models.drift.features import FloatArray, PageFeatures
from models.drift.reference import Reference, pack_arrays, unpack_arrays

SUSPICIOUS = 0.002
"""A page is suspicious alone where a group of channels together has so small a p-value."""

REMEMBERED = 400
"""Pages whose names are remembered, to say which was the first."""

_LAYOUT = 1
_FAR = -(10**9)


@dataclass(frozen=True, slots=True)
class PageJudgement:
    """One page against the reference.

    Attributes
    ----------
    score
        Smallest p-value of the three groups, 0 to 1: the chance that a correct page looks
        so odd.
    suspicious
        Whether that is below :data:`SUSPICIOUS`. Correct pages are, now and then.
    reason
        In words, where it is suspicious.
    channel
        The channel that departs most; ``""`` where no page can be judged.
    evidence
        log10 of the evidence gathered up to this page; the alarm is at 4.
    """

    score: float
    suspicious: bool
    reason: str
    channel: str
    evidence: float


@dataclass(frozen=True, slots=True)
class Drift:
    """A lasting change.

    Attributes
    ----------
    layout_changed
        The pages are built otherwise.
    text_wrong
        The text is not what it was: it comes from elsewhere, or is of another kind.
    group, channel
        What speaks loudest.
    reason
        In words.
    first_suspect
        Name of the first page of the change, as given to :meth:`Watch.judge`.
    n_pages
        Pages from that one up to the last.
    place_before, place_after
        Where on the page the text stood, and where it stands now.
    evidence
        log10 of the evidence; 4 and more.
    """

    layout_changed: bool
    text_wrong: bool
    group: Group
    channel: str
    reason: str
    first_suspect: str
    n_pages: int
    place_before: str
    place_after: str
    evidence: float


LOG_ALARM = math.log10(ALARM)

DOUBT = 2.0
"""log10 of the evidence for a new layout from which on a moved text may come of that."""

HARMFUL = ("repeats", "title_overlap", "description_overlap", "odd_share", "link_share")
"""Channels that tell a wrong text whatever the layout."""

_HARMFUL = [SCORE_NAMES.index(name) for name in HARMFUL]


def _weights() -> FloatArray:
    weights = np.zeros((N_SCORES, N_BETS))
    for group in range(len(GROUPS)):
        rows = np.flatnonzero(group == GROUP_OF)
        shares = np.where(IS_SHARP[rows], SHARP_WEIGHT, 1.0)
        stakes = BET_MASK[rows] * np.array(BET_STAKES)
        stakes /= stakes.sum(axis=1, keepdims=True)
        weights[rows] = stakes * (shares / shares.sum())[:, None]
    return weights / len(GROUPS)


_WEIGHTS = _weights()


class PageWatch(Protocol):
    """What watches the pages of one site: :class:`Watch`, or one that takes its place."""

    def judge(self, page: PageFeatures, name: str) -> PageJudgement:
        """Judge the next page."""

    def verdict(self) -> Drift | None:
        """Return what has changed for good, or nothing."""

    def to_bytes(self) -> bytes:
        """Return its state without its reference."""


class Watch:
    """Watches the pages of one site as they come.

    Parameters
    ----------
    reference
        How its correct pages look.

    Examples
    --------
    >>> from models.drift.features import describe_page
    >>> page = "<main><h1>Snow</h1><div class='body'><p>{}</p></div></main>"
    >>> texts = [f"Snow fell on town {n}, for {n * 7} hours." for n in range(40)]
    >>> pages = [describe_page(page.format(text), text) for text in texts]
    >>> from models.drift.reference import build_reference
    >>> watch = Watch(build_reference(pages[:30]))
    >>> [watch.judge(page, str(n)).suspicious for n, page in enumerate(pages[30:])].count(True)
    0
    >>> watch.verdict() is None
    True
    """

    def __init__(self, reference: Reference) -> None:
        self.reference = reference
        self.n_pages = 0
        self.recent = RecentParagraphs.of_hashes(reference.recent)
        self._gathered = np.zeros((N_SCORES, N_BETS))
        self._since = np.zeros((N_SCORES, N_BETS), np.int64)
        self._names: list[str] = []
        self._places: list[str] = []
        self._drift: Drift | None = None

    def judge(self, page: PageFeatures, name: str) -> PageJudgement:
        """Judge the next page and add what it says to the evidence.

        Parameters
        ----------
        page
            Its features.
        name
            Anything that names it; :attr:`Drift.first_suspect` gives it back.
        """
        odds = self.reference.judge(page, self.recent.share_of(page))
        self.recent.add(page)
        paid = bet(odds, self.reference.ranks.known)
        starts_anew = self._gathered <= 0.0
        self._since[starts_anew] = self.n_pages
        self._gathered = np.maximum(self._gathered, 0.0) + paid
        self.n_pages += 1
        self._names = [*self._names, name][-REMEMBERED:]
        self._places = [*self._places, page.place][-REMEMBERED:]
        return self._tell(odds.worst)

    def _tell(self, worst: FloatArray) -> PageJudgement:
        known = np.nan_to_num(worst, nan=1.0)
        joint = known[N_CHANNELS:]
        channel = int(known[:N_CHANNELS].argmin())
        score = float(joint.min())
        suspicious = score < SUSPICIOUS
        return PageJudgement(
            score=score,
            suspicious=suspicious,
            reason=CHANNELS[channel].words if suspicious else "",
            channel=CHANNELS[channel].name,
            evidence=self.evidence,
        )

    @property
    def evidence(self) -> float:
        """log10 of the evidence gathered; the alarm is at 4."""
        return float(np.log10(max((_WEIGHTS * _payout(self._gathered)).sum(), 1e-9)))

    def group_evidence(self, group: Group) -> float:
        """Return log10 of the evidence of one group of channels."""
        rows = GROUPS.index(group) == GROUP_OF
        paid = (_WEIGHTS[rows] * _payout(self._gathered[rows])).sum() * len(GROUPS)
        return float(np.log10(max(paid, 1e-9)))

    def verdict(self) -> Drift | None:
        """Return what has changed for good, or nothing."""
        if self.evidence < LOG_ALARM:
            return None
        groups: dict[Group, float] = {group: self.group_evidence(group) for group in GROUPS}
        layout_changed = groups["structure"] >= LOG_ALARM
        text_wrong = self._is_text_wrong(groups, layout_changed)
        if not (layout_changed or text_wrong):
            return None
        group: Group = "structure" if layout_changed else max(GROUPS, key=lambda name: groups[name])
        row, column = self._leading(group)
        first = int(self._since[row, column])
        n_pages = self.n_pages - first
        places = [place for place in self._places[-n_pages:] if place]
        return Drift(
            layout_changed=layout_changed,
            text_wrong=text_wrong,
            group=group,
            channel=SCORE_NAMES[row],
            reason=CHANNELS[row].words,
            first_suspect=self._names[max(len(self._names) - n_pages, 0)],
            n_pages=n_pages,
            place_before=self.reference.places[0][0] if self.reference.places else "",
            place_after=max(set(places), key=places.count) if places else "",
            evidence=self.evidence,
        )

    def _is_text_wrong(self, groups: dict[Group, float], layout_changed: bool) -> bool:
        """Say whether the text is not what it was.

        A new layout moves the text, and its captions and bylines with it, and the text is
        still right: then only what speaks of harm counts. Where a new layout is likely
        but not sure yet, a moved text waits for that.
        """
        if layout_changed:
            return self._harm() >= LOG_ALARM
        patience = LOG_ALARM if groups["structure"] > DOUBT else 0.0
        return groups["text"] >= LOG_ALARM or groups["place"] >= LOG_ALARM + patience

    def _harm(self) -> float:
        paid = (_WEIGHTS * _payout(self._gathered))[_HARMFUL].sum()
        return float(np.log10(max(paid / _WEIGHTS[_HARMFUL].sum(), 1e-9)))

    def _leading(self, group: Group) -> tuple[int, int]:
        """Return the score and bet of a group with the most evidence; no joint one."""
        gathered = np.where(BET_MASK, self._gathered, -np.inf)[:N_CHANNELS]
        gathered[GROUP_OF[:N_CHANNELS] != GROUPS.index(group)] = -np.inf
        row, column = np.unravel_index(int(gathered.argmax()), gathered.shape)
        return int(row), int(column)

    def to_bytes(self) -> bytes:
        """Return the state of the watch without its reference, some 10 KB."""
        recent = self.recent.hashes()
        return pack_arrays(
            {
                "layout": np.array([_LAYOUT]),
                "n_pages": np.array([self.n_pages]),
                "gathered": self._gathered,
                "since": self._since,
                "names": np.array(self._names, np.str_),
                "places": np.array(self._places, np.str_),
                "recent": np.concatenate([*recent, np.array([], np.uint32)]),
                "recent_sizes": np.array([len(page) for page in recent], np.int64),
            }
        )

    @classmethod
    def from_bytes(cls, packed: bytes, reference: Reference) -> Watch:
        """Return the watch as it was when :meth:`to_bytes` packed it.

        Raises
        ------
        ParseError
            If another version packed it, or it is cut short.
        """
        arrays = unpack_arrays(packed, "drift watch", _LAYOUT)
        watch = cls(reference)
        watch.n_pages = int(arrays["n_pages"][0])
        watch._gathered = arrays["gathered"]
        watch._since = arrays["since"]
        watch._names = arrays["names"].tolist()
        watch._places = arrays["places"].tolist()
        sizes = arrays["recent_sizes"]
        ends = np.cumsum(sizes)[:-1]
        pages = np.split(arrays["recent"], ends) if len(sizes) else []
        watch.recent = RecentParagraphs.of_hashes(pages)
        return watch


def _payout(gathered: FloatArray) -> FloatArray:
    """Return the evidence of each bet, kept finite."""
    return np.exp(np.minimum(gathered, 60.0))
