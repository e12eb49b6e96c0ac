"""What is remembered of one source: a record of fixed size, at most 4 KB."""

from __future__ import annotations

import hashlib
from typing import Any

import numpy as np
import numpy.typing as npt

from models.week import HOURS_PER_WEEK

FORECAST_HOURS = 96
"""Hours a forecast reaches ahead: longer than any planned gap looks."""

SOURCE_STATE = np.dtype(
    [
        # Gamma-Poisson hour-of-week profile: weighted counts, and hours watched.
        ("counts", "f4", (HOURS_PER_WEEK,)),
        ("exposure_h", "f4", (HOURS_PER_WEEK,)),
        ("weight", "f8"),
        ("prior_per_hour", "f8"),
        # Level: entries seen lately, against those the profile expected.
        ("level_seen", "f8"),
        ("level_expected", "f8"),
        # Burst: excess intensity per second at a moment, share bred, decay.
        ("excess_per_s", "f8"),
        ("excess_at", "f8"),
        ("last_stamp", "f8"),
        ("branching", "f8"),
        ("decay_s", "f8"),
        # Minute-of-hour and second-of-minute habits, and how far they are trusted.
        ("minutes", "f4", (60,)),
        ("seconds", "f4", (6,)),
        ("phase_trust", "f8"),
        # Seconds between an entry's stamp and its appearance in the list.
        ("lag_s", "f8"),
        # Share of entries that appeared even later than that, lately.
        ("late_share", "f8"),
        # Exponential moving average of hourly counts.
        ("ema_per_hour", "f8"),
        ("ema_alpha", "f8"),
        # Double-seasonal Holt-Winters on hourly counts.
        ("hw_level", "f8"),
        ("hw_trend", "f8"),
        ("hw_day", "f8", (24,)),
        ("hw_week", "f8", (HOURS_PER_WEEK,)),
        ("hw_alpha", "f8"),
        ("hw_beta", "f8"),
        ("hw_gamma", "f8"),
        ("hw_omega", "f8"),
        # The hour under way, for the two estimators that count by whole hours.
        ("hour_at", "f8"),
        ("hour_count", "f8"),
        ("updated_at", "f8"),
    ]
)

State = Any
"""One record of :data:`SOURCE_STATE` (``numpy.void``), which numba reads by field."""

FloatArray = npt.NDArray[np.float64]


def new_state(at_s: float, prior_per_hour: float = 1.0) -> State:
    """Return the state of a source nothing is known of.

    Parameters
    ----------
    at_s
        The moment it starts to be watched, seconds since 1970.
    prior_per_hour
        A guess at its rate, entries per hour, > 0.

    Examples
    --------
    >>> state = new_state(0.0, prior_per_hour=2.0)
    >>> SOURCE_STATE.itemsize <= 4096, float(state["prior_per_hour"])
    (True, 2.0)
    """
    state = np.zeros(1, dtype=SOURCE_STATE)[0]
    state["weight"] = 1.0
    state["prior_per_hour"] = prior_per_hour
    state["last_stamp"] = -np.inf
    state["decay_s"] = 1800.0
    state["ema_per_hour"] = prior_per_hour
    state["ema_alpha"] = 0.1
    state["hw_level"] = prior_per_hour
    state["hw_alpha"], state["hw_beta"] = 0.05, 0.001
    state["hw_gamma"], state["hw_omega"] = 0.1, 0.1
    state["hour_at"] = np.floor(at_s / 3600.0) * 3600.0
    state["updated_at"] = at_s
    return state


LAYOUT = hashlib.sha256(repr(SOURCE_STATE.descr).encode()).digest()[:4]
"""Marks bytes of a state, so that those of another version are not taken for ours."""


def write_state(state: State) -> bytes:
    """Return a state as bytes, for the warehouse."""
    return LAYOUT + bytes(state.tobytes())


def read_state(stored: bytes) -> State:
    """Return the state that :func:`write_state` wrote.

    Raises
    ------
    ValueError
        If another version wrote the bytes, with other fields.
    """
    if stored[:4] != LAYOUT or len(stored) != len(LAYOUT) + SOURCE_STATE.itemsize:
        raise ValueError(f"these {len(stored)} bytes are no source state of this version")
    return np.frombuffer(stored[len(LAYOUT) :], dtype=SOURCE_STATE).copy()[0]
