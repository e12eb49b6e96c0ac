"""ADWIN: a window that forgets its older part when the means of the two differ.

A yardstick from data streams: what a detector of change finds that knows nothing of pages.
"""

from __future__ import annotations

import math

DELTA = 0.002
MAX_WINDOW = 1_000
MIN_PART = 5


class Adwin:
    """Watches the mean of one number.

    Parameters
    ----------
    delta
        Chance of a false alarm that the bound of a cut is made for.

    References
    ----------
    A. Bifet and R. Gavaldà, "Learning from Time-Changing Data with Adaptive Windowing", SDM
    2007. Every cut of the window is looked at, as memory is no concern here.

    Examples
    --------
    >>> adwin = Adwin()
    >>> any(adwin.add(value) for value in [0.1, 0.2] * 30), any(adwin.add(0.9) for _ in range(30))
    (False, True)
    """

    def __init__(self, delta: float = DELTA) -> None:
        self.delta = delta
        self._values: list[float] = []

    def add(self, value: float) -> bool:
        """Take the next value in; say whether the mean has changed."""
        self._values = [*self._values, value][-MAX_WINDOW:]
        cut = self._cut()
        if cut:
            self._values = self._values[cut:]
        return cut > 0

    def _cut(self) -> int:
        count, total = len(self._values), sum(self._values)
        if count < 2 * MIN_PART:
            return 0
        middle = total / count
        variance = sum((value - middle) ** 2 for value in self._values) / count
        level = math.log(2.0 * math.log(count) / self.delta)
        before = 0.0
        for at, value in enumerate(self._values, start=1):
            before += value
            rest = count - at
            if at < MIN_PART or rest < MIN_PART:
                continue
            harmonic = 1.0 / (1.0 / at + 1.0 / rest)
            bound = math.sqrt(2.0 / harmonic * variance * level) + 2.0 / (3.0 * harmonic) * level
            if abs(before / at - (total - before) / rest) > bound:
                return at
        return 0
