"""Made-up sources whose true intensity is known: the sets that policies are compared on.

Fifty newsrooms over 52 weeks: the five of the loading paper's table and 45 more, their
rates log-uniform from 1 to 500 entries a day. Nights are low, mornings ramp up, some
pause for lunch, weekends are quieter, days vary, and most grow. Set ``P`` is Poisson; in
set ``H`` entries breed entries. The same seed gives the same trace.
"""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np

from models.traces import FloatArray, Stream, Trace

PAPER_PER_YEAR = (115_560.0, 49_785.0, 16_464.0, 8_541.0, 3_437.0)
"""Articles a year of the five sources of the loading paper (table 1)."""

CELL_S = 300.0
"""The intensity is constant for five minutes."""

MONDAY_S = 1_735_516_800.0
"""Where the traces begin: Monday, 30 December 2024, 00:00 UTC."""

HOUR_S, DAY_S, WEEK_S = 3600.0, 86_400.0, 604_800.0
DAY_NOISE_SD, DAY_NOISE_MEMORY = 0.2, 0.5


@dataclass(frozen=True, slots=True)
class MadeUpSource:
    """A source with its truth.

    Attributes
    ----------
    source
        Its name.
    stamps_s
        When entries came out, rising, seconds since 1970.
    per_s
        The intensity, entries per second, in cells of five minutes from `MONDAY_S` on.
    branching, decay_s
        Share of entries that others bred, and how fast that dies away; 0 in set ``P``.
    """

    source: str
    stamps_s: FloatArray = field(repr=False)
    per_s: FloatArray = field(repr=False)
    branching: float = 0.0
    decay_s: float = 1800.0

    def hourly_per_s(self, start_s: float) -> FloatArray:
        """Return the true rates hour by hour from a whole hour on."""
        first = int((start_s - MONDAY_S) // CELL_S)
        return np.asarray(self.per_s[first:].reshape(-1, 12).mean(axis=1), dtype=np.float64)


def make_set(kind: str, seed: int, n_sources: int = 50, n_weeks: int = 52) -> list[MadeUpSource]:
    """Return a set of made-up sources.

    Parameters
    ----------
    kind
        ``P`` for Poisson entries, ``H`` for entries that breed.
    seed
        Constants of policies are set on seed 101 only; results are shown for 1 to 5.
    n_sources
        The paper's five, then others.

    Examples
    --------
    >>> sources = make_set("P", seed=1, n_sources=6, n_weeks=2)
    >>> [source.source for source in sources][-2:]
    ['paper-5', 'made-6']
    """
    rng = np.random.default_rng([seed, "PH".index(kind)])
    return [_make_source(place, kind, n_weeks, rng) for place in range(n_sources)]


def _make_source(place: int, kind: str, n_weeks: int, rng: np.random.Generator) -> MadeUpSource:
    if place < len(PAPER_PER_YEAR):
        name, per_day = f"paper-{place + 1}", PAPER_PER_YEAR[place] / 365.0
    else:
        name, per_day = f"made-{place + 1}", float(np.exp(rng.uniform(0.0, np.log(500.0))))
    per_s = make_intensity(per_day, n_weeks, rng)
    branching, decay_s = 0.0, 1800.0
    if kind == "H":
        branching = float(rng.uniform(0.1, 0.5))
        decay_s = float(np.exp(rng.uniform(np.log(300.0), np.log(3600.0))))
    stamps = make_stamps(per_s, rng, branching, decay_s)
    return MadeUpSource(name, stamps, per_s, branching, decay_s)


def make_intensity(per_day: float, n_weeks: int, rng: np.random.Generator) -> FloatArray:
    """Return an intensity in cells of five minutes, entries per second, of the mean asked for."""
    n_days = 7 * n_weeks
    hour = np.arange(288) / 12.0
    night, ramp_h = rng.uniform(0.12, 0.5), rng.uniform(0.4, 1.2)
    morning, evening = rng.uniform(6.5, 9.5), rng.uniform(18.0, 22.5)
    risen = 1.0 / (1.0 + np.exp(-(hour - morning) / ramp_h))
    awake = risen / (1.0 + np.exp((hour - evening) / ramp_h))
    dip, noon = rng.uniform(0.0, 0.3), rng.uniform(12.5, 14.0)
    lunch = 1.0 - dip * np.exp(-0.5 * ((hour - noon) / 0.6) ** 2)
    day = np.roll(night + (1.0 - night) * awake * lunch, int(rng.integers(-24, 25)))
    weekdays = np.ones(7)
    weekdays[5:] = rng.uniform(0.2, 0.75, size=2)
    noise, level = np.empty(n_days), 0.0
    for at in range(n_days):
        step = rng.normal(0.0, DAY_NOISE_SD * np.sqrt(1.0 - DAY_NOISE_MEMORY**2))
        level = DAY_NOISE_MEMORY * level + step
        noise[at] = level
    growth = 1.0 + rng.uniform(0.0, 0.25) * np.arange(n_days) / n_days
    days = np.tile(weekdays, n_weeks) * np.exp(noise) * growth
    shape = (days[:, None] * day[None, :]).ravel()
    return np.asarray(shape * (per_day / DAY_S / shape.mean()), dtype=np.float64)


def make_stamps(
    per_s: FloatArray, rng: np.random.Generator, branching: float = 0.0, decay_s: float = 1800.0
) -> FloatArray:
    """Return publication times of an intensity, rising, from `MONDAY_S` on.

    A share `branching` of the entries is bred by others, each after an exponential delay,
    so that the mean stays that of the intensity.
    """
    counts = rng.poisson(per_s * CELL_S * (1.0 - branching))
    cells = np.repeat(np.arange(len(per_s)), counts)
    generation = (cells + rng.uniform(size=len(cells))) * CELL_S
    stamps, end_s = [generation], len(per_s) * CELL_S
    while branching > 0.0 and len(generation):
        children = rng.poisson(branching, size=len(generation))
        generation = np.repeat(generation, children)
        generation = generation + rng.exponential(decay_s, size=len(generation))
        generation = generation[generation < end_s]
        stamps.append(generation)
    return np.asarray(MONDAY_S + np.sort(np.concatenate(stamps)), dtype=np.float64)


def make_synthetic_trace(
    kind: str, seed: int, *, n_sources: int = 50, n_weeks: int = 52, window: int = 30
) -> Trace:
    """Return a made-up set as a trace with its truth; the first half trains."""
    split_s, end_s = MONDAY_S + n_weeks // 2 * WEEK_S, MONDAY_S + n_weeks * WEEK_S
    streams = tuple(
        Stream(
            source.source,
            source.stamps_s,
            known_per_s=source.hourly_per_s(split_s),
            known_burst=(source.branching, source.decay_s),
        )
        for source in make_set(kind, seed, n_sources, n_weeks)
    )
    return Trace(streams, MONDAY_S, split_s, end_s, window)
