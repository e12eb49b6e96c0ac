"""The ``adaptive`` policy: shorten the interval after too many entries, lengthen it after too few.

Formulas (3) to (6) of the loading paper. Its (4) is printed with the two cases
exchanged, which runs away from any target; the prose and the results mean this.
"""

from __future__ import annotations

from models.compiled import compiled


@compiled
def next_interval(interval_s: float, found: int, wanted: float, up: float, down: float) -> float:
    """Return the next interval, before floor and ceiling, in seconds.

    Parameters
    ----------
    interval_s
        The interval that just ended.
    found, wanted
        Entries the poll found, and those it should have.
    up, down
        Shares by which the interval grows and shrinks.
    """
    if found > wanted:
        return interval_s - down * interval_s
    if found < wanted:
        return interval_s + up * interval_s
    return interval_s
