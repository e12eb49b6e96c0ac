"""Stamps as publishers write them, made fit to learn from."""

from __future__ import annotations

import numpy as np

from models.compiled import compiled
from models.intensity.lag import LAG_LIMIT_S
from models.intensity.state import FloatArray

GOLDEN = 0.6180339887498949
"""Where the first of some spread stamps stands in its part of the gap: elsewhere in every
gap, or polls on a beat would make a habit of one minute."""


def clean_stamps(
    stamps: FloatArray, since_s: float, until_s: float, n_undated: int = 0
) -> FloatArray:
    """Return when the new entries of a poll were published, as far as can be told.

    An entry that was not listed at the poll before and is listed now came out in
    between. A stamp outside that gap (in the future, or back-dated by more than any
    publishing system takes) and a missing one say no more than that; such entries are
    spread evenly over the gap. This one rule removes the damage wrong stamps do.

    Parameters
    ----------
    stamps
        Declared times, seconds since 1970, in any order.
    since_s, until_s
        The poll before, and this one.
    n_undated
        Entries without any date.

    Returns
    -------
    ndarray
        Rising, one per entry.

    Examples
    --------
    >>> stamps = clean_stamps(np.array([1090.0, 5e9]), 1000.0, 1100.0, n_undated=1)
    >>> stamps.round(1).tolist()
    [1001.7, 1051.7, 1090.0]
    """
    return settle_stamps(np.asarray(stamps, dtype=np.float64), since_s, until_s, n_undated)


@compiled
def settle_stamps(stamps: FloatArray, since_s: float, until_s: float, n_undated: int) -> FloatArray:
    """Do the work of `clean_stamps`, compiled."""
    settled = np.empty(stamps.shape[0] + n_undated)
    n_told = 0
    for stamp in stamps:
        if since_s - LAG_LIMIT_S <= stamp <= until_s:
            settled[n_told] = stamp
            n_told += 1
    n_spread = settled.shape[0] - n_told
    start = since_s * GOLDEN % 1.0
    for place in range(n_spread):
        settled[n_told + place] = since_s + (until_s - since_s) * (place + start) / n_spread
    settled.sort()
    return settled
