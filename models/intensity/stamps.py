"""Stamps as publishers write them, made fit to learn from."""

from __future__ import annotations

import numpy as np

from models.compiled import compiled
from models.intensity.lag import LAG_LIMIT_S
from models.intensity.state import FloatArray


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
    >>> clean_stamps(np.array([90.0, 5e9]), since_s=0.0, until_s=100.0, n_undated=1).tolist()
    [25.0, 75.0, 90.0]
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
    for place in range(n_spread):
        settled[n_told + place] = since_s + (until_s - since_s) * (place + 0.5) / n_spread
    settled.sort()
    return settled
