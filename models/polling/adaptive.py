"""The ``adaptive`` policy: shorten the interval after too many entries, lengthen it after too few.

Formulas (3) to (6) of the loading paper. Its (4) is printed with the two cases
exchanged, which runs away from any target; the prose and the results mean this.
"""

from __future__ import annotations

from dataclasses import dataclass

from models.compiled import compiled
from models.polling.moment import Moment, Wish

FIRST_INTERVAL_S = 600.0


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


@dataclass(frozen=True, slots=True)
class AdaptivePolicy:
    """The paper's rule on the live system; the interval that ended is the state it needs.

    Attributes
    ----------
    wanted
        Entries a poll should find.
    up, down
        Shares by which the interval grows and shrinks.
    """

    wanted: float = 2.0
    up: float = 0.1
    down: float = 0.1
    name: str = "adaptive"

    def choose_next(self, moment: Moment) -> Wish:
        """Return now plus the next interval."""
        waited_s = moment.waited_s or FIRST_INTERVAL_S
        wait_s = next_interval(waited_s, moment.entries_new, self.wanted, self.up, self.down)
        found = f"{moment.entries_new} found, {self.wanted:g} wanted"
        return Wish(moment.now_s + wait_s, found)
