"""How far the scores of correct pages stray, learnt from many sites, for sites with few pages.

Nine pages say how a site looks, not how often the thousandth page looks odd. That tail is
borrowed: over many sites, the scores of pages that a reference of *n* pages has not seen
are standardised by that reference's own middle and spread, and pooled. Only those figures
are shipped.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from models.drift.channels import CHANNELS, GROUPS
from models.drift.features import FloatArray
from models.errors import ModelError

SCORE_NAMES = (*(channel.name for channel in CHANNELS), *(f"joint_{group}" for group in GROUPS))
"""All that has a p-value: the channels, then what each group says together."""

N_SCORES = len(SCORE_NAMES)

TAIL_SHARES = (0.5, 0.35, 0.2, 0.1, 0.05, 0.02, 0.01, 0.005, 0.002, 0.001)
"""Shares of pages beyond each of the quantiles kept, for either side."""

_LOG_SHARES = np.log(np.array(TAIL_SHARES))
LAYOUT = 1


@dataclass(frozen=True, slots=True, eq=False)
class BorrowedTails:
    """The part of a :class:`Calibration` that is for one size of reference."""

    high: FloatArray
    low: FloatArray
    floors: FloatArray

    def p_values(self, standard: FloatArray) -> tuple[FloatArray, FloatArray]:
        """Return the shares of correct pages above and below standardised scores.

        ``nan`` where the score is. Shapes ``(n_scores,)``.
        """
        return _shares_beyond(standard, self.high), _shares_beyond(-standard, self.low)


@dataclass(frozen=True, slots=True, eq=False)
class Calibration:
    """Pooled quantiles of standardised scores, by the size of the reference.

    Attributes
    ----------
    sizes
        Sizes of reference the tables are for, rising.
    high, low
        Standardised scores that a share :data:`TAIL_SHARES` of pages lies above, or below;
        shape ``(n_sizes, n_scores, 10)``. `low` has its sign turned: both rise.
    floors
        What is added to a site's own spread, by score; shape ``(n_scores,)``.
    """

    sizes: tuple[int, ...]
    high: FloatArray
    low: FloatArray
    floors: FloatArray

    def for_size(self, n_pages: int) -> BorrowedTails:
        """Return the tails for a reference of `n_pages`."""
        row = max(int(np.searchsorted(self.sizes, n_pages, side="right")) - 1, 0)
        return BorrowedTails(self.high[row], self.low[row], self.floors)

    def to_json(self) -> dict[str, Any]:
        """Return the figures as a document."""
        return {
            "layout": LAYOUT,
            "scores": list(SCORE_NAMES),
            "tail_shares": list(TAIL_SHARES),
            "sizes": list(self.sizes),
            "floors": _rounded(self.floors),
            "high": _rounded(self.high),
            "low": _rounded(self.low),
        }

    @classmethod
    def from_json(cls, document: Mapping[str, Any]) -> Calibration:
        """Return the calibration a document holds.

        Raises
        ------
        ModelError
            If it was made for other channels than this version has.
        """
        if document.get("layout") != LAYOUT or tuple(document["scores"]) != SCORE_NAMES:
            raise ModelError("the drift calibration was made for other channels; fit it again")
        return cls(
            sizes=tuple(document["sizes"]),
            high=np.array(document["high"], np.float64),
            low=np.array(document["low"], np.float64),
            floors=np.array(document["floors"], np.float64),
        )

    @classmethod
    def cautious(cls) -> Calibration:
        """Return heavy tails for all scores: what is used where nothing was learnt."""
        tail = -np.log(2.0 * np.array(TAIL_SHARES)) * 1.2
        table = np.tile(tail, (1, N_SCORES, 1))
        return cls((1,), table, table, np.full(N_SCORES, 0.05))


def fit_calibration(
    standard: Mapping[int, Sequence[FloatArray]], floors: FloatArray
) -> Calibration:
    """Return the calibration of standardised scores of correct pages.

    Parameters
    ----------
    standard
        By size of the reference, one array per site with the scores of pages that its
        reference had not seen; shape ``(n_pages, n_scores)``. Sites weigh the same.
    floors
        Spread floors the scores were standardised with.
    """
    sizes = tuple(sorted(standard))
    high = np.array([_pooled(standard[size], 1.0) for size in sizes])
    low = np.array([_pooled(standard[size], -1.0) for size in sizes])
    return Calibration(sizes, high, low, floors)


def _pooled(sites: Sequence[FloatArray], sign: float) -> FloatArray:
    table = np.empty((N_SCORES, len(TAIL_SHARES)))
    for column in range(N_SCORES):
        known = [site[:, column][~np.isnan(site[:, column])] * sign for site in sites]
        known = [values for values in known if len(values)]
        if not known:
            table[column] = -np.log(2.0 * np.array(TAIL_SHARES)) * 1.2
            continue
        values = np.concatenate(known)
        weights = np.concatenate([np.full(len(part), 1.0 / len(part)) for part in known])
        order = np.argsort(values)
        below = np.cumsum(weights[order]) / weights.sum()
        picked = np.searchsorted(below, 1.0 - np.array(TAIL_SHARES))
        table[column] = values[order][np.minimum(picked, len(values) - 1)]
    return np.maximum.accumulate(table, axis=1)


def _shares_beyond(standard: FloatArray, table: FloatArray) -> FloatArray:
    shares = np.empty(len(standard))
    for column, value in enumerate(standard):
        shares[column] = _share_beyond(float(value), table[column])
    return shares


def _share_beyond(value: float, quantiles: FloatArray) -> float:
    if np.isnan(value):
        return float("nan")
    if value <= quantiles[0]:
        return 1.0
    if value <= quantiles[-1]:
        at = int(np.searchsorted(quantiles, value, side="left"))
        low, high = quantiles[at - 1], quantiles[at]
        part = (value - low) / (high - low)
        return float(np.exp(_LOG_SHARES[at - 1] + part * (_LOG_SHARES[at] - _LOG_SHARES[at - 1])))
    scale = max((quantiles[-1] - quantiles[3]) / (_LOG_SHARES[3] - _LOG_SHARES[-1]), 0.3)
    return float(np.exp(_LOG_SHARES[-1] - (value - quantiles[-1]) / scale))


def _rounded(values: FloatArray) -> Any:
    return np.round(values, 4).tolist()
