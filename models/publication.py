"""When an invented publisher publishes: habits as figures, and times drawn from them.

Publishers keep hours. They publish much on weekday mornings and little at night,
many just after the full hour, and one story brings the next. `PublicationHabits`
holds these four as figures; `generate_times` draws times that have them;
`fit_burstiness` finds the last one from real times.

The model is a Hawkes process whose *total* intensity follows the given profiles:
a share of all entries (the branching ratio) is set off by entries before them,
after an exponential delay, and the rest come by themselves, just often enough
that both together keep the publisher's hours.

References
----------
A. G. Hawkes, "Spectra of some self-exciting and mutually exciting point
processes", Biometrika 58(1), 1971. Times are drawn by the cluster method of
A. G. Hawkes and D. Oakes, "A cluster process representation of a self-exciting
process", Journal of Applied Probability 11(3), 1974.
"""

from __future__ import annotations

import zoneinfo
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta

import numpy as np
from numpy.typing import NDArray

FloatArray = NDArray[np.float64]

MINUTES_PER_WEEK = 168 * 60
_WARM_UP_MINUTES = 2 * 24 * 60  # longer than bursts last: none of the habits allowed has τ > 4 h


@dataclass(frozen=True, slots=True)
class PublicationHabits:
    """How a publisher publishes, in figures.

    Attributes
    ----------
    entries_per_day
        Mean over a whole week.
    hour_of_week
        Relative weight of each hour of the local week, Monday 00:00 first; 168 values >= 0.
    minute_of_hour
        Relative weight of each minute of an hour; 60 values >= 0.
    branching_ratio
        Share of entries set off by an entry before them, in ``[0, 0.9]``; 0 is Poisson.
    decay_minutes
        Mean delay between an entry and one it sets off, in ``(0, 240]``.
    timezone
        IANA zone the week is counted in.
    resolution_s
        Times are whole multiples of it: 1, or 60 where only minutes are stated.

    Raises
    ------
    ValueError
        If a figure is outside the stated range.
    """

    entries_per_day: float
    hour_of_week: tuple[float, ...]
    minute_of_hour: tuple[float, ...] = (1.0,) * 60
    branching_ratio: float = 0.0
    decay_minutes: float = 30.0
    timezone: str = "UTC"
    resolution_s: int = 1

    def __post_init__(self) -> None:
        _check_weights("hour_of_week", self.hour_of_week, 168)
        _check_weights("minute_of_hour", self.minute_of_hour, 60)
        if not self.entries_per_day > 0:
            raise ValueError(f"entries_per_day must be above 0, not {self.entries_per_day}")
        if not 0 <= self.branching_ratio <= 0.9:
            raise ValueError(f"branching_ratio must be in [0, 0.9], not {self.branching_ratio}")
        if not 0 < self.decay_minutes <= 240:
            raise ValueError(f"decay_minutes must be in (0, 240], not {self.decay_minutes}")

    def expected_per_minute(self) -> FloatArray:
        """Return the expected entries in each minute of the local week, Monday 00:00 first.

        Shape ``(10080,)``; the sum is seven times `entries_per_day`.
        """
        hours = np.asarray(self.hour_of_week, dtype=np.float64)
        minutes = np.asarray(self.minute_of_hour, dtype=np.float64)
        week = np.outer(hours / hours.sum(), minutes / minutes.sum()).ravel()
        return week * self.entries_per_day * 7.0

    def spontaneous_per_minute(self) -> FloatArray:
        """Return the part of :meth:`expected_per_minute` that no earlier entry sets off.

        What earlier entries set off, the total seen through the delays, is taken away.
        Where that would leave less than nothing (just after a sharp peak) nothing is left,
        and the rest is scaled so that the weekly total stays right.
        """
        total = self.expected_per_minute()
        spontaneous = np.clip(total - self.branching_ratio * self._delayed(total), 0.0, None)
        wanted = total.sum() * (1.0 - self.branching_ratio)
        return np.asarray(spontaneous * (wanted / spontaneous.sum()))

    def _delayed(self, per_minute: FloatArray) -> FloatArray:
        """Return the weekly pattern seen through the exponential delay (circular)."""
        edges = np.exp(-np.arange(MINUTES_PER_WEEK + 1) / self.decay_minutes)
        kernel = edges[:-1] - edges[1:]
        product = np.fft.rfft(per_minute) * np.fft.rfft(kernel / kernel.sum())
        return np.asarray(np.fft.irfft(product, n=MINUTES_PER_WEEK))


def generate_times(
    habits: PublicationHabits, start: datetime, end: datetime, rng: np.random.Generator
) -> list[datetime]:
    """Return the moments in ``[start, end)`` at which the publisher publishes.

    Parameters
    ----------
    habits
        The publisher's habits.
    start, end
        Aware times.
    rng
        The same generator state gives the same times.

    Returns
    -------
    list of datetime
        Aware UTC, in order; several entries may share one moment.

    Notes
    -----
    Entries that come by themselves are drawn minute by minute, then each entry's
    followers, then theirs. The draw begins two days early, so that bursts under way
    at `start` are there. Takes ``O(minutes + entries)``.

    Examples
    --------
    >>> habits = PublicationHabits(entries_per_day=24.0, hour_of_week=(1.0,) * 168)
    >>> monday = datetime(2025, 3, 3, tzinfo=UTC)
    >>> times = generate_times(habits, monday, monday + timedelta(days=7), np.random.default_rng(1))
    >>> 140 < len(times) < 200
    True
    """
    opening = (start - timedelta(minutes=_WARM_UP_MINUTES)).astimezone(UTC)
    n_minutes = int(np.ceil((end - opening) / timedelta(minutes=1)))
    per_minute = habits.spontaneous_per_minute()[local_minutes(opening, n_minutes, habits.timezone)]
    counts = rng.poisson(per_minute)
    first = np.repeat(np.arange(n_minutes, dtype=np.float64), counts)
    seconds = 60.0 * _with_followers(first + rng.random(len(first)), habits, n_minutes, rng)
    moments = np.sort(opening.timestamp() + seconds)
    moments = np.floor(moments / habits.resolution_s) * habits.resolution_s
    kept = moments[(moments >= start.timestamp()) & (moments < end.timestamp())]
    return [datetime.fromtimestamp(moment, UTC) for moment in kept.tolist()]


def fit_burstiness(minutes: FloatArray, expected_per_minute: FloatArray) -> tuple[float, float]:
    """Return the branching ratio and decay (minutes) under which `minutes` are most likely.

    Parameters
    ----------
    minutes
        Publication times in minutes since the start of the span, in order. Times that were
        rounded should be spread inside their rounding step first: equal times would
        otherwise look like a burst of no length.
    expected_per_minute
        Total expected entries in each minute of the span, by the publisher's hours.

    Returns
    -------
    tuple of float
        Branching ratio in ``[0, 0.9]`` and decay in ``[2, 240]`` minutes, on a grid.

    Notes
    -----
    Log-likelihood of ``(1 - n)·b(t) + n·x(t)`` with `x` the exponentially fading
    excitation by earlier entries, at every grid point. ``O(entries · grid)``.
    """
    spontaneous = expected_per_minute[np.minimum(minutes.astype(int), len(expected_per_minute) - 1)]
    spontaneous = np.maximum(spontaneous, 1e-6)
    best = (-np.inf, 0.0, 30.0)
    for decay in (2.0, 4.0, 8.0, 15.0, 30.0, 60.0, 120.0, 240.0):
        excitation = _excitation(minutes, decay)
        for ratio in np.arange(0.0, 0.91, 0.05):
            intensity = (1.0 - ratio) * spontaneous + ratio * excitation
            likelihood = float(np.log(intensity).sum()) - len(minutes)
            best = max(best, (likelihood, float(ratio), decay))
    return round(best[1], 2), best[2] if best[1] > 0 else 30.0


def local_minutes(opening: datetime, n_minutes: int, timezone: str) -> NDArray[np.int64]:
    """Return the minute of the local week, Monday 00:00 first, of each minute from `opening`.

    Parameters
    ----------
    opening
        Aware time of the first minute.
    n_minutes
        Number of minutes.
    timezone
        IANA zone; its change of clocks is followed, to the quarter of an hour.
    """
    zone = zoneinfo.ZoneInfo(timezone)
    found = np.empty(n_minutes, dtype=np.int64)
    for first in range(0, n_minutes, 15):
        local = (opening + timedelta(minutes=first)).astimezone(zone)
        minute = (local.weekday() * 24 + local.hour) * 60 + local.minute
        last = min(first + 15, n_minutes)
        found[first:last] = (minute + np.arange(last - first)) % MINUTES_PER_WEEK
    return found


def _excitation(minutes: FloatArray, decay: float) -> FloatArray:
    """Return at each time the fading sum over earlier times, as a rate per minute."""
    fades = np.exp(-np.diff(minutes) / decay).tolist()
    level, levels = 0.0, [0.0]
    for fade in fades:
        level = (level + 1.0) * fade
        levels.append(level)
    return np.asarray(levels) / decay


def _with_followers(
    first: FloatArray, habits: PublicationHabits, n_minutes: int, rng: np.random.Generator
) -> FloatArray:
    """Return `first` and all that they set off, directly or not, up to `n_minutes`."""
    generations = [first]
    while len(generations[-1]):
        counts = rng.poisson(habits.branching_ratio, len(generations[-1]))
        parents = np.repeat(generations[-1], counts)
        children = parents + rng.exponential(habits.decay_minutes, len(parents))
        generations.append(children[children < n_minutes])
    return np.concatenate(generations)


def _check_weights(name: str, weights: tuple[float, ...], n_wanted: int) -> None:
    if len(weights) != n_wanted:
        raise ValueError(f"{name} needs {n_wanted} weights, not {len(weights)}")
    if min(weights) < 0 or not sum(weights) > 0:
        raise ValueError(f"{name} must hold weights of 0 and above, not all 0")
