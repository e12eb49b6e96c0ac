"""Habits within the hour: scheduled posts come out at :00, :15, :30, and by the second.

Editors plan on round minutes and programs post in their first seconds. Knowing that is
worth as much again as knowing the hour, for a policy that can aim (`plan`).
"""

from __future__ import annotations

from models.compiled import compiled
from models.intensity.state import FloatArray, State
from models.week import offset_at

PRIOR = 3.0
"""Entries a minute (or ten seconds) without any is taken to have had."""

MEMORY = 5000.0
"""Entries after which older ones start to count for less."""


@compiled
def observe_phase(state: State, zone: FloatArray, stamps: FloatArray) -> None:
    """Count the entries of a poll by minute of the hour and ten seconds of the minute."""
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
def fill_phase(state: State, minutes: FloatArray, seconds: FloatArray) -> None:
    """Write the shapes within the hour (60) and the minute (6); both have mean 1."""
    shape_phase(state.minutes, state.phase_trust, minutes)
    shape_phase(state.seconds, state.phase_trust, seconds)
