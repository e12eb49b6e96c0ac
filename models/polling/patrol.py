"""The ``patrol`` policy and who goes first when places are short: stride scheduling.

The patrol paper runs the task with the least ``weight x count``, which visits sources
at rates proportional to one over that weight. Our weight is importance, so the stride
is one over it. As printed, a task added later starts at count 0 and monopolises the
workers; here it starts at the current minimum.

References
----------
C. A. Waldspurger and W. E. Weihl, "Stride Scheduling: Deterministic Proportional-Share
Resource Management", MIT/LCS/TM-528, 1995.
"""

from __future__ import annotations

from dataclasses import dataclass, field

from models.polling.fixed import FixedPolicy
from models.polling.moment import Moment, Wish


@dataclass(frozen=True, slots=True)
class PatrolPolicy:
    """Visit at a rate proportional to importance: every ``interval_s / weight`` seconds.

    Examples
    --------
    >>> PatrolPolicy(600.0).choose_next(Moment("a", now_s=0.0, due_s=0.0, weight=2.0)).due_s
    300.0
    """

    interval_s: float
    name: str = "patrol"

    def choose_next(self, moment: Moment) -> Wish:
        """Return the next visit, on the beat of the last."""
        return FixedPolicy(self.interval_s / moment.weight).choose_next(moment)


@dataclass(slots=True)
class StrideQueue:
    """Who goes first among those due at once, in proportion to importance.

    Attributes
    ----------
    passes
        How far each source has come; the least goes next.

    Examples
    --------
    Twice the weight, twice the turns:

    >>> queue = StrideQueue()
    >>> weights = {"tier-1": 2.0, "tier-2": 1.0}
    >>> turns = [queue.take(weights) for _ in range(6)]
    >>> turns.count("tier-1"), turns.count("tier-2")
    (4, 2)
    """

    passes: dict[str, float] = field(default_factory=dict)

    def take(self, weights: dict[str, float]) -> str:
        """Return who goes first of those given with their weights, and count its turn.

        Equals go in the order given. A newcomer starts at the least pass there is.
        """
        start = min((self.passes[s] for s in weights if s in self.passes), default=self._least())
        for source in weights:
            self.passes.setdefault(source, start)
        chosen = min(weights, key=self.passes.__getitem__)
        self.passes[chosen] += 1.0 / weights[chosen]
        return chosen

    def _least(self) -> float:
        return min(self.passes.values(), default=0.0)
