"""Stamps as publishers write them, made fit to learn from."""

from __future__ import annotations

import numpy as np

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
    stamps = np.asarray(stamps, dtype=np.float64)
    told = (stamps <= until_s) & (stamps >= since_s - LAG_LIMIT_S)
    n_spread = int((~told).sum()) + n_undated
    gap_s = until_s - since_s
    spread = since_s + gap_s * (np.arange(n_spread) + 0.5) / max(n_spread, 1)
    return np.sort(np.concatenate([stamps[told], spread]))
