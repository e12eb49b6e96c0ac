"""Ranks to p-values to bets: how much a page speaks against "nothing has changed".

An e-value is what a bet of 1 against "nothing has changed" pays: at most 1 on the average
while nothing has. Bets of following pages multiply (:mod:`models.drift.watch`).
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
from scipy.special import ndtri

from models.drift.calibration import N_SCORES, SCORE_NAMES, BorrowedTails
from models.drift.channels import CHANNELS, GROUPS, N_CHANNELS
from models.drift.features import FloatArray

ALARM = 1e4
"""Evidence that raises the alarm; also a lower bound of the mean run of correct pages
between false alarms, as far as the bets are fair."""

MAX_LOG = math.log(ALARM) / 2
"""No page counts for more, so that none alarms alone."""

MIN_LOG = -4.0
POWERS = (0.05, 0.1, 0.2, 0.4, 0.7)
"""Exponents of the bets on small p-values, mixed in equal parts."""

MIXED_SHARE = 0.25
"""Stake of the careful bet: finds breakages that hit only some of the pages."""

SLOW_SHIFTS = (0.5, 0.9)
"""Lasting shifts bet on, in standard deviations."""

SLOW_MARGIN = 1.0
"""The reference's own middle is uncertain by about 1/√n; so much of that is granted."""

P_FLOOR = 1e-6
TAIL = 0.2
TAIL_STRETCH = 1.3
BORROWED_PAGES = 40
"""Borrowed tails count as so many pages beside a site's own."""

TIE_SHARE = 0.1
"""Scores nearer than this share of the spread's floor are equal: a model of all pages scores
a little otherwise than the models of four fifths that the ranks come from."""

MIN_KNOWN = 5
STEPS = (0.01, 0.05)
"""A bet that pays only where p is at most so small: the quickest against gross breakage."""

STEP_STAKE = 0.95
BETS = (
    "fast",
    "mixed",
    *(f"step {share}" for share in STEPS),
    *(f"slow {sign}{shift}" for shift in SLOW_SHIFTS for sign in "+-"),
)
N_BETS = len(BETS)
BET_STAKES = (3.0, 2.0, 3.0, 2.0, *(2.0 for _ in BETS[4:]))
"""Weights of the bets on one score."""

N_FAST = 2 + len(STEPS)

_SIDES = np.array(
    [{"high": 1, "low": -1, "both": 0}[channel.side] for channel in CHANNELS] + [1] * len(GROUPS)
)
_IS_SLOW = np.array([channel.is_slow for channel in CHANNELS] + [False] * len(GROUPS))
GROUP_OF = np.array(
    [GROUPS.index(channel.group) for channel in CHANNELS] + list(range(len(GROUPS)))
)


_SHARP = {
    "new_paths", "layout_distance", "lost_paths", "facts", "makeup", "place", "repeats", "letters",
    "odd_share", "other_script_share", "title_overlap", *(f"joint_{group}" for group in GROUPS),
}  # fmt: skip
"""Scores that steps are bet on."""

SHARP_WEIGHT = 6.0
"""Weight of such a score beside one that is not."""

IS_SHARP = np.array([name in _SHARP for name in SCORE_NAMES])


def _bet_mask() -> npt.NDArray[np.bool_]:
    mask = np.zeros((N_SCORES, N_BETS), np.bool_)
    mask[:, :2] = True
    mask[IS_SHARP, 2:N_FAST] = True
    for row in np.flatnonzero(_IS_SLOW):
        mask[row, N_FAST:] = True
        if _SIDES[row]:
            away = slice(N_FAST + (_SIDES[row] > 0), None, 2)
            mask[row, away] = False
    return mask


BET_MASK = _bet_mask()
"""Which bets are made on which score; shape ``(n_scores, n_bets)``."""


@dataclass(frozen=True, slots=True, eq=False)
class Ranks:
    """Scores of correct pages that a page's scores are ranked among.

    Attributes
    ----------
    ordered
        Scores of the reference pages, each found by a model that had not seen the page;
        sorted by column, ``nan`` last; shape ``(n_pages, n_scores)``.
    known
        How many of a column are no ``nan``.
    middle, spread
        Of each column; the spread has the calibration's floor added.
    """

    ordered: FloatArray
    known: npt.NDArray[np.int64]
    middle: FloatArray
    spread: FloatArray

    @classmethod
    def of(cls, scores: FloatArray, floors: FloatArray) -> Ranks:
        """Return the ranks of a matrix of scores, a row a page."""
        ordered = np.sort(scores, axis=0)
        known = np.count_nonzero(~np.isnan(scores), axis=0)
        middle, spread = np.zeros(N_SCORES), np.ones(N_SCORES)
        for column in range(N_SCORES):
            values = ordered[: known[column], column]
            if len(values) >= MIN_KNOWN:
                low, middle[column], high = np.quantile(values, [0.25, 0.5, 0.75])
                spread[column] = (high - low) / 1.349 + floors[column]
        return cls(ordered, known, middle, spread)


@dataclass(frozen=True, slots=True, eq=False)
class Odds:
    """P-values of one page.

    Attributes
    ----------
    high, low
        Share of correct pages that score at least, or at most, as much.
    normal
        The rank as a standard normal deviate, ties at their middle.
    """

    high: FloatArray
    low: FloatArray
    normal: FloatArray

    def joined_with(self, other: Odds) -> Odds:
        """Return these p-values, with the other's where these are ``nan``."""
        return Odds(
            high=np.where(np.isnan(self.high), other.high, self.high),
            low=np.where(np.isnan(self.low), other.low, self.low),
            normal=np.where(np.isnan(self.normal), other.normal, self.normal),
        )

    @property
    def worst(self) -> FloatArray:
        """The p-value of each score on the side that counts."""
        both = np.minimum(2.0 * np.minimum(self.high, self.low), 1.0)
        return np.where(_SIDES > 0, self.high, np.where(_SIDES < 0, self.low, both))


def rank_page(scores: FloatArray, ranks: Ranks, shared: BorrowedTails) -> Odds:
    """Return a page's p-values: its own site's ranks, mixed with borrowed tails.

    Scores that are ``nan``, and those that too few reference pages have, stay ``nan``.
    """
    high, low, normal = (np.full(N_SCORES, np.nan) for _ in range(3))
    standard = (scores - ranks.middle) / ranks.spread
    borrowed_high, borrowed_low = shared.p_values(standard)
    for column in np.flatnonzero(~np.isnan(scores) & (ranks.known >= MIN_KNOWN)):
        known = int(ranks.known[column])
        value = float(scores[column])
        own = ranks.ordered[:known, column]
        alike = TIE_SHARE * shared.floors[column]
        below = int(np.searchsorted(own, value - alike, side="left"))
        upto = int(np.searchsorted(own, value + alike, side="right"))
        spread = float(ranks.spread[column])
        p_high = _own_share(known - below, known, value, own, spread)
        p_low = _own_share(upto, known, -value, -own[::-1], spread)
        high[column] = _mixed(p_high, known, float(borrowed_high[column]))
        low[column] = _mixed(p_low, known, float(borrowed_low[column]))
        normal[column] = ndtri(((below + upto) / 2 + 0.5) / (known + 1))
    return Odds(high, low, normal)


def _own_share(beyond: int, known: int, value: float, own: FloatArray, spread: float) -> float:
    """Return the share of a site's pages at or beyond a value; past the last, a fitted tail."""
    share = (beyond + 1) / (known + 1)
    if beyond:
        return share
    start = own[int((1.0 - TAIL) * (known - 1))]
    excess = max(
        float((own[own > start] - start).mean()) if own[-1] > start else 0.0, 0.25 * spread
    )
    return min(share, TAIL * math.exp(-(value - start) / (TAIL_STRETCH * excess)))


def _mixed(own: float, known: int, borrowed: float) -> float:
    weight = known / (known + BORROWED_PAGES)
    return max(weight * own + (1.0 - weight) * borrowed, P_FLOOR)


def join_groups(worst: FloatArray) -> FloatArray:
    """Return what the channels of each group say together, from their p-values.

    The sum over channels of ``-log p``, counting only small p: many channels each a little
    odd can be odder than one. Shape ``(3,)``; ``nan`` where a group has no channel.
    """
    joint = np.full(len(GROUPS), np.nan)
    surprise = -np.log(worst[:N_CHANNELS])
    for group in range(len(GROUPS)):
        own = surprise[GROUP_OF[:N_CHANNELS] == group]
        own = own[~np.isnan(own)]
        if len(own):
            joint[group] = np.where(own > -math.log(TAIL), own, 0.0).sum()
    return joint


def bet(odds: Odds, known: npt.NDArray[np.int64]) -> FloatArray:
    """Return the logarithm of what each bet pays on a page; 0 where none is made.

    Shape ``(n_scores, n_bets)``, between :data:`MIN_LOG` and :data:`MAX_LOG`.
    """
    logs = np.zeros((N_SCORES, N_BETS))
    one_sided = np.where(_SIDES >= 0, odds.high, odds.low)
    pays = np.where(
        _SIDES == 0, (_power_bet(odds.high) + _power_bet(odds.low)) / 2, _power_bet(one_sided)
    )
    with np.errstate(invalid="ignore"):
        logs[:, 0] = np.log(pays)
        logs[:, 1] = np.log(1.0 - MIXED_SHARE + MIXED_SHARE * np.minimum(pays, math.exp(MAX_LOG)))
        worst = odds.worst
        for column, share in enumerate(STEPS, start=2):
            paid = np.where(worst <= share, STEP_STAKE / share, 0.0) + 1.0 - STEP_STAKE
            logs[:, column] = np.where(np.isnan(worst), 0.0, np.log(paid))
        margin = SLOW_MARGIN / np.sqrt(np.maximum(known, 1))
        for column, (sign, shift) in enumerate(
            ((sign, shift) for shift in SLOW_SHIFTS for sign in (1.0, -1.0)), start=N_FAST
        ):
            logs[:, column] = shift * (sign * odds.normal - margin) - shift**2 / 2
    logs[~BET_MASK | np.isnan(logs)] = 0.0
    clipped: FloatArray = np.clip(logs, MIN_LOG, MAX_LOG)
    return clipped


def _power_bet(p: FloatArray) -> FloatArray:
    paid: FloatArray = np.mean([power * p ** (power - 1.0) for power in POWERS], axis=0)
    return paid
