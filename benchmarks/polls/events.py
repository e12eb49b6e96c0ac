"""What happens to sources: doubled rates, holidays, clocks, outages, silence, wrong stamps."""

from __future__ import annotations

from collections import defaultdict
from dataclasses import replace

import numpy as np
from polls.figures import Figure, say

from models.backtest import CONTENDERS, PHASES, Bench, look_at, train
from models.happenings import EVENTS, make_event
from models.simulator import Rule

SEEDS = (1, 2, 3, 4, 5)
INTERVAL_S = 600.0

MOST_LAG = {
    ("rates double", "day 1"): 0.45,
    ("rates double", "weeks 3-4"): 0.45,
    ("silence", "2 days back"): 0.70,
    ("outage", "backlog"): 2.0,
}
MOST_POLLS = {("rates double", "day 1"): 1.45, ("rates double", "weeks 3-4"): 1.45}
"""Targets over a timer of the budget before the event."""

MOST_WORSE = {"wrong stamps": 1.02, "clock change": 1.02, "hour-cut stamps": 1.02}
"""Lag times polls over those of the same weeks when nothing happens."""


def measure(workers: int) -> list[Figure]:
    """Return lag and polls over a timer's in the stretch after each event."""
    results = {name: _live_through(name, workers) for name in EVENTS}
    figures = []
    for name, by_window in results.items():
        for (policy, window), rows in by_window.items():
            lag, polls, lost = np.nanmean(rows, axis=0)
            where = f"{name}, {window}: {policy}"
            if not np.isnan(lag):
                figures.append(Figure(f"{where}, lag / timer", lag, MOST_LAG.get((name, window))))
            if not np.isnan(polls):
                figures.append(
                    Figure(f"{where}, polls / timer", polls, MOST_POLLS.get((name, window)))
                )
            if name != "outage":
                figures.append(
                    Figure(f"{where}, entries lost that were listed", lost * len(rows), 0)
                )
    return figures + [
        _worse(results, name, policy, most)
        for name, most in MOST_WORSE.items()
        for policy in ("price", "plan")
    ]


Rows = dict[tuple[str, str], list[tuple[float, float, float]]]


def _worse(results: dict[str, Rows], name: str, policy: str, most: float) -> Figure:
    window = next(iter(EVENTS[name].windows_h))
    happened = np.array(results[name][policy, window])
    calm = np.array(results["nothing"][policy, window])
    product = np.mean(happened[:, 0] * happened[:, 1]) / np.mean(calm[:, 0] * calm[:, 1])
    return Figure(f"{name}: {policy}, lag x polls / when nothing happens", product, most)


def _live_through(name: str, workers: int) -> Rows:
    """Return per policy and window: lag and polls over the timer's, and losses, by seed."""
    rows: Rows = defaultdict(list)
    for seed in SEEDS:
        say(f"{name}, seed {seed}")
        event = make_event(name, seed)
        states = train(event.trace, workers)
        calm = Bench(replace(event.trace, end_s=event.event_s), states, workers=workers)
        whole = Bench(event.trace, states, workers=workers)
        fixed = calm.time(INTERVAL_S)
        timers = [
            whole.replay(
                Rule("fixed", knob=INTERVAL_S), event.trace.split_s + phase_s, event.down_s
            )
            for phase_s in INTERVAL_S * (np.arange(PHASES) + 0.5) / PHASES
        ]
        for policy in ("price", "plan"):
            tuned = calm.tune(CONTENDERS[policy], fixed)
            rule = replace(CONTENDERS[policy].rule, knob=tuned.parameters["knob"])
            replays = whole.replay(rule, down_s=event.down_s)
            lost = sum(replay.lost for replay in replays) - event.trace.n_never_listed
            for window, stretch in event.windows.items():
                polls, lag = look_at(replays, *stretch)
                seen = np.array([look_at(timer, *stretch) for timer in timers])
                timed = np.array([np.mean(seen[:, 0]), np.mean(seen[:, 1])])
                polls_share = polls / timed[0] if stretch[1] - stretch[0] > INTERVAL_S else np.nan
                rows[policy, window].append((lag / timed[1], polls_share, lost))
    return rows
