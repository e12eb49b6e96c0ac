"""Replay one source's publications under a policy, and note every poll and every lag.

The same functions that decide in the live system decide here; only the world is a list
of publication times.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from datetime import UTC, datetime

import numpy as np

from models.compiled import compiled
from models.intensity.burst import excess_at
from models.intensity.estimator import ESTIMATORS, fill_rates, observe
from models.intensity.lag import observe_lag
from models.intensity.phase import fill_phase
from models.intensity.state import FORECAST_HOURS, FloatArray, State, new_state
from models.peers import commafeed_interval, mavsync_interval, miniflux_interval, nutch_interval
from models.polling.adaptive import next_interval
from models.polling.count import next_by_count
from models.polling.plan import next_by_plan
from models.polling.price import next_by_price
from models.week import next_hour, offset_at, zone_table

FIXED, ADAPTIVE, COUNT, PRICE, PLAN, NUTCH, MINIFLUX, COMMAFEED, MAVSYNC = range(9)
POLICIES = {
    "fixed": FIXED,
    "adaptive": ADAPTIVE,
    "count": COUNT,
    "price": PRICE,
    "plan": PLAN,
    "nutch": NUTCH,
    "miniflux": MINIFLUX,
    "commafeed": COMMAFEED,
    "mavsync": MAVSYNC,
}


@dataclass(frozen=True, slots=True)
class Rule:
    """A policy with its figures: everything a replay needs but the source.

    Attributes
    ----------
    policy
        One of `POLICIES`.
    estimator
        Which forecast drives it, one of ``ESTIMATORS``; without meaning for the reactive ones.
    knob
        The one figure that trades lag against polls: interval in seconds (fixed, and the
        first interval of adaptive and Nutch), wanted entries (adaptive, count), price in
        entry-seconds (price, plan), factor (Miniflux, CommaFeed, MAVSync).
    up, down, sync
        Shares of adaptive and Nutch.
    start_s
        First interval.
    floor_s, ceiling_s
        Bounds of any wait, seconds.
    empty_share
        Cost of an empty poll as a share of a full one.
    """

    policy: str
    estimator: str = "weekly"
    knob: float = 600.0
    up: float = 0.1
    down: float = 0.1
    sync: float = 0.0
    start_s: float = 600.0
    floor_s: float = 30.0
    ceiling_s: float = 86_400.0
    empty_share: float = 1.0


@dataclass(frozen=True, slots=True)
class Replay:
    """What a policy did to one source.

    Attributes
    ----------
    polls_s
        Times of the polls, seconds since 1970.
    lags_s
        Publication lag of every loaded entry, seconds.
    empty
        Polls that found nothing.
    lost
        Entries that scrolled off the list between two polls.
    """

    polls_s: FloatArray = field(repr=False)
    lags_s: FloatArray = field(repr=False)
    empty: int
    lost: int


def replay_source(
    stamps_s: FloatArray,
    rule: Rule,
    *,
    start_s: float,
    end_s: float,
    timezone: str = "UTC",
    window: int = 30,
    state: State | None = None,
    appear_s: FloatArray | None = None,
) -> Replay:
    """Return what `rule` does to a source between two moments.

    Parameters
    ----------
    stamps_s
        Publication times, rising, seconds since 1970; those before `start_s` are known
        history (they fill the list, and nothing else: train with `train_state`).
    rule
        The policy.
    start_s, end_s
        The stretch polled. The first poll is one first interval after `start_s`.
    timezone
        The source's IANA zone.
    window
        Entries the list holds.
    state
        What is known of the source at `start_s`; changed in place. A newborn where None.
    appear_s
        When each entry shows in the list, rising; at its stamp where None.
    """
    state = new_state(start_s) if state is None else state
    zone = zone_of(timezone, start_s, end_s)
    appear_s = stamps_s if appear_s is None else appear_s
    memory = np.array([rule.start_s, start_s])
    figures = np.array(
        [rule.knob, rule.up, rule.down, rule.sync, rule.floor_s, rule.ceiling_s,
         rule.empty_share, safe_entries(window)]
    )  # fmt: skip
    polls, lags, empty, lost = _replay(
        POLICIES[rule.policy], ESTIMATORS[rule.estimator], figures, memory, state,
        np.ascontiguousarray(stamps_s), np.ascontiguousarray(appear_s), zone,
        start_s, start_s + rule.start_s, end_s, window,
    )  # fmt: skip
    return Replay(polls, lags, empty, lost)


def train_state(stamps_s: FloatArray, start_s: float, end_s: float, timezone: str = "UTC") -> State:
    """Return what a stretch of history teaches of a source, as if it had been polled hourly."""
    state = new_state(start_s)
    zone = zone_of(timezone, start_s, end_s)
    begin, end = np.searchsorted(stamps_s, [start_s, end_s])
    _train(state, start_s, end_s, zone, np.ascontiguousarray(stamps_s[begin:end]))
    return state


def zone_of(timezone: str, start_s: float, end_s: float) -> FloatArray:
    """Return the zone's table for the years of a stretch, and one on either side."""
    first = datetime.fromtimestamp(start_s, UTC).year - 1
    return zone_table(timezone, first, datetime.fromtimestamp(end_s, UTC).year + 1)


def safe_entries(window: int) -> float:
    """Return the expected entries at which a list of `window` may already overflow.

    Placeholder bound used in replays; see `models.window` for the live guard.
    """
    return 0.45 * window


@compiled
def _train(
    state: State, start_s: float, end_s: float, zone: FloatArray, stamps: FloatArray
) -> None:
    at, since = 0, start_s
    while since < end_s:
        until = min(since + 3600.0, end_s)
        begin = at
        while at < stamps.shape[0] and stamps[at] <= until:
            at += 1
        observe(state, since, until, zone, stamps[begin:at])
        since = until


@compiled
def _replay(
    policy: int,
    estimator: int,
    figures: FloatArray,
    memory: FloatArray,
    state: State,
    stamps: FloatArray,
    appear: FloatArray,
    zone: FloatArray,
    start_s: float,
    first_s: float,
    end_s: float,
    window: int,
) -> tuple[FloatArray, FloatArray, int, int]:
    knob, up, down, sync, floor_s, ceiling_s, empty_share, most_entries = figures
    rates = np.empty(FORECAST_HOURS)
    minutes, seconds = np.empty(60), np.empty(6)
    polls, n_polls = np.empty(1024), 0
    lags, n_lags = np.empty(max(stamps.shape[0], 1)), 0
    empty = lost = 0
    seen = np.searchsorted(appear, start_s, side="right")
    before, now = start_s, first_s
    while now < end_s:
        if n_polls == polls.shape[0]:
            polls = np.concatenate((polls, np.empty(n_polls)))
        polls[n_polls] = now
        n_polls += 1
        begin = seen
        while seen < appear.shape[0] and appear[seen] <= now:
            seen += 1
        found = seen - begin
        empty += found == 0
        lost += max(found - window, 0)
        for entry in range(max(begin, seen - window), seen):
            lags[n_lags] = now - appear[entry]
            n_lags += 1
        new = stamps[begin:seen]
        observe_lag(state, before, now, new)
        observe(state, before, now, zone, np.sort(new))
        wait = 0.0
        if policy == FIXED:
            wait = knob
        elif policy == ADAPTIVE:
            wait = next_interval(memory[0], found, knob, up, down)
            memory[0] = min(max(wait, floor_s), ceiling_s)
        elif policy == NUTCH:
            wait = nutch_interval(
                memory, found, now, up * knob, down * knob, sync, floor_s, ceiling_s
            )
        elif policy >= MINIFLUX:
            listed = stamps[max(seen - window, 0) : seen]
            if policy == MINIFLUX:
                wait = miniflux_interval(listed, now, knob, floor_s, ceiling_s)
            elif policy == COMMAFEED:
                wait = commafeed_interval(listed, now, knob, floor_s, ceiling_s)
            else:
                wait = mavsync_interval(listed, now, knob, floor_s, ceiling_s)
        else:
            fill_rates(estimator, state, now, zone, rates)
            offset = offset_at(zone, now)
            ends = next_hour(now + offset) - offset
            if policy == COUNT:
                wait = next_by_count(now, rates, ends, knob, ceiling_s) - now
            else:
                excess = excess_at(state, now)
                if policy == PRICE:
                    at, _, _ = next_by_price(
                        now, rates, ends, excess, state.branching, state.decay_s, knob,
                        empty_share, most_entries, ceiling_s,
                    )  # fmt: skip
                else:
                    fill_phase(state, minutes, seconds)
                    at, _, _ = next_by_plan(
                        now, rates, ends, excess, state.branching, state.decay_s, knob,
                        empty_share, most_entries, ceiling_s, minutes, seconds, offset,
                        state.lag_s,
                    )  # fmt: skip
                wait = at - now
        before = now
        now += min(max(wait, floor_s), ceiling_s) if policy != FIXED else wait
    return polls[:n_polls], lags[:n_lags], empty, lost
