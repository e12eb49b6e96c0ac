"""Habits within the hour: scheduled posts come out at :00, :15, :30, and by the second.

Editors plan on round minutes and programs post in their first seconds. Knowing that is
worth as much again as knowing the hour, for a policy that can aim (`plan`).
"""

from __future__ import annotations

import numpy as np

from models.compiled import compiled
from models.intensity.state import FloatArray, State
from models.week import offset_at

PRIOR = 3.0
"""Entries a minute (or ten seconds) without any is taken to have had."""

MEMORY = 5000.0
"""Entries after which older ones start to count for less."""

MOST_LATE = 0.2
"""Share of entries appearing later than stamp and lag say, at which habits count for nothing."""

TRUSTS = (0.25, 0.5, 0.75, 1.0)
"""How far the habits may be trusted, beside not at all."""

LEAST_GAIN = 3.0
"""Log-likelihood that they must gain on stamps they were not counted from."""


@compiled
def observe_phase(state: State, zone: FloatArray, stamps: FloatArray) -> None:
    """Count the entries of a poll by minute of the hour and ten seconds of the minute."""
    if stamps.shape[0] == 0:
        return
    total = 0.0
    for stamp in stamps:
        local = stamp + offset_at(zone, stamp)
        state.minutes[int(local // 60.0) % 60] += 1.0
        state.seconds[int(local % 60.0) // 10] += 1.0
    for minute in range(60):
        total += state.minutes[minute]
    if total > MEMORY:
        for minute in range(60):
            state.minutes[minute] *= 0.5
        for part in range(6):
            state.seconds[part] *= 0.5


@compiled
def shape_phase(counts: FloatArray, trust: float, shape: FloatArray) -> None:
    """Write the shape that counts of equal parts suggest: mean 1, flat where trust is 0."""
    parts, total = counts.shape[0], 0.0
    for part in range(parts):
        total += counts[part]
    for part in range(parts):
        share = (counts[part] + PRIOR) / (total + parts * PRIOR) * parts
        shape[part] = 1.0 + trust * (share - 1.0)


@compiled
def trust_of(state: State) -> float:
    """Return how far habits may be trusted now: less where entries do not come when stamped."""
    return float(state.phase_trust * max(1.0 - state.late_share / MOST_LATE, 0.0))


@compiled
def fill_phase(state: State, minutes: FloatArray, seconds: FloatArray) -> None:
    """Write the shapes within the hour (60) and the minute (6); both have mean 1."""
    trust = trust_of(state)
    shape_phase(state.minutes, trust, minutes)
    shape_phase(state.seconds, trust, seconds)


@compiled
def _count_parts(stamps: FloatArray, zone: FloatArray, parts: FloatArray) -> None:
    """Count stamps by minute of the hour and ten seconds of the minute, shape (60, 6)."""
    for stamp in stamps:
        local = stamp + offset_at(zone, stamp)
        parts[int(local // 60.0) % 60, int(local % 60.0) // 10] += 1.0


def fit_trust(earlier: FloatArray, later: FloatArray, zone: FloatArray) -> float:
    """Return how far the habits of earlier stamps foretell later ones: 0 (not) to 1.

    Parameters
    ----------
    earlier, later
        Stamps, seconds since 1970.
    zone
        As `models.week.zone_table` returns it.
    """
    before, after = np.zeros((60, 6)), np.zeros((60, 6))
    _count_parts(earlier, zone, before)
    _count_parts(later, zone, after)
    minutes, seconds = np.empty(60), np.empty(6)
    best, most = 0.0, LEAST_GAIN
    for trust in TRUSTS:
        shape_phase(before.sum(axis=1), trust, minutes)
        shape_phase(before.sum(axis=0), trust, seconds)
        gain = float(after.sum(axis=1) @ np.log(minutes) + after.sum(axis=0) @ np.log(seconds))
        if gain > most:
            best, most = trust, gain
    return best
