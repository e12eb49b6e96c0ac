"""Bursts: entries that breed entries, for the sources where that pays.

A self-exciting (Hawkes) process: each publication raises the intensity by
``branching / decay_s``, which dies away. What a poll shows settles the history; until
the next one the *expected* excess dies away slower, at ``(1 - branching) / decay_s``,
since unseen entries breed too. Entries stamped the same second are one act of
publishing: counting them as excitement made every batch publisher worse.

References
----------
A. G. Hawkes, "Spectra of some self-exciting and mutually exciting point processes",
Biometrika 58(1), 1971.
"""

from __future__ import annotations

import math

import numpy as np

from models.compiled import compiled
from models.intensity.state import FloatArray, State

TIE_S = 1.0
"""Stamps no further apart than this are one act."""

BRANCHINGS = (0.1, 0.2, 0.3, 0.4, 0.5, 0.6, 0.7)
DECAYS_S = (300.0, 600.0, 1200.0, 2400.0, 4800.0)
"""What is tried when a source is fitted."""

LEAST_GAIN = 2.0
"""Log-likelihood that a burst term must gain on data it did not see, to be switched on."""


@compiled
def observe_burst(state: State, stamps: FloatArray) -> None:
    """Let the entries of a poll (stamps rising) excite the source."""
    if state.branching <= 0.0:
        return
    for stamp in stamps:
        if stamp > state.last_stamp + TIE_S:
            state.excess_per_s = excess_at(state, stamp) + state.branching / state.decay_s
            state.excess_at = stamp
        state.last_stamp = max(state.last_stamp, stamp)


@compiled
def excess_at(state: State, at_s: float) -> float:
    """Return the excess intensity at `at_s`, entries per second, by what has been seen."""
    if state.branching <= 0.0:
        return 0.0
    age_s = max(at_s - state.excess_at, 0.0)
    return float(state.excess_per_s * math.exp(-age_s / state.decay_s))


@compiled
def burst_log_likelihood(
    stamps: FloatArray,
    base_per_s: FloatArray,
    expected: float,
    end_s: float,
    branching: float,
    decay_s: float,
) -> float:
    """Return the log-likelihood of stamps under a base rate with bursts on top.

    Parameters
    ----------
    stamps
        Acts of publishing, rising, ties removed.
    base_per_s
        Base intensity at each stamp. Same shape.
    expected
        Entries the base expects over the whole stretch.
    end_s
        End of the stretch.
    branching, decay_s
        Of the burst term; branching 0 is the base alone.
    """
    total, excess, last = -expected * (1.0 - branching), 0.0, 0.0
    for at in range(stamps.shape[0]):
        stamp = stamps[at]
        excess *= math.exp(-(stamp - last) / decay_s)
        last = stamp
        total += math.log((1.0 - branching) * base_per_s[at] + excess + 1e-300)
        excess += branching / decay_s
        total -= branching * (1.0 - math.exp(-(end_s - stamp) / decay_s))
    return total


@compiled
def _log_likelihoods(
    stamps: FloatArray, base_per_s: FloatArray, expected: float, end_s: float, found: FloatArray
) -> None:
    """Fill in `burst_log_likelihood` for all that is tried, shape (decays, branchings).

    The excess grows in proportion to the branching, so one pass serves all of one decay;
    logarithms are taken of eight factors at a time.
    """
    for row, decay_s in enumerate(DECAYS_S):
        excess = last = bred = 0.0
        products = np.ones(len(BRANCHINGS))
        logs = found[row]
        logs[:] = 0.0
        for at in range(stamps.shape[0]):
            stamp = stamps[at]
            excess *= math.exp(-(stamp - last) / decay_s)
            last = stamp
            bred += 1.0 - math.exp(-(end_s - stamp) / decay_s)
            for column, branching in enumerate(BRANCHINGS):
                products[column] *= (1.0 - branching) * base_per_s[at] + branching * excess
            excess += 1.0 / decay_s
            if at % 8 == 7:
                logs += np.log(products)
                products[:] = 1.0
        logs += np.log(products)
        for column, branching in enumerate(BRANCHINGS):
            logs[column] -= expected * (1.0 - branching) + branching * bred


def fit_burst(
    stamps: FloatArray, base_per_s: FloatArray, expected: float, end_s: float
) -> tuple[float, float]:
    """Return the branching and decay that explain held-out stamps best.

    The base must have been fitted on other data, so the gain is honest.

    Parameters
    ----------
    stamps
        Rising, seconds since the beginning of the stretch.
    base_per_s, expected, end_s
        As `burst_log_likelihood`.

    Returns
    -------
    tuple
        ``(0.0, 1800.0)`` where no burst term gains at least `LEAST_GAIN`.
    """
    keep = np.diff(stamps, prepend=-np.inf) > TIE_S
    acts, base = stamps[keep], np.maximum(base_per_s[keep], 1e-12)
    # Ties removed, the base must expect acts, not entries.
    share = keep.mean() if len(keep) else 1.0
    base, expected = base * share, expected * share
    alone = burst_log_likelihood(acts, base, expected, end_s, 0.0, DECAYS_S[0])
    found = np.empty((len(DECAYS_S), len(BRANCHINGS)))
    _log_likelihoods(acts, base, expected, end_s, found)
    decay, branching = np.unravel_index(int(found.argmax()), found.shape)
    if found[decay, branching] <= alone + LEAST_GAIN:
        return 0.0, 1800.0
    return BRANCHINGS[branching], DECAYS_S[decay]
