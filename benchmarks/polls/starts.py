"""Cold starts, and publishers whose entries show later than they are stamped."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
from polls.cuts import DATA, read_cut
from polls.figures import Figure, say

from models.backtest import CONTENDERS, Bench, look_at, train
from models.intensity.state import new_state
from models.synthetic import make_synthetic_trace
from models.traces import Trace

INTERVAL_S = 600.0
DAY_S = 86_400.0

STRETCHES = {"day 1": (0, 1), "day 3": (2, 3), "day 7": (6, 7), "week 2": (7, 14)}
LAG_SEEDS = (1, 2)
LEAST_S, MOST_S, SCATTER_S = 10.0, 180.0, 20.0
"""A publisher's lag: constant per source, and an exponential part per entry."""

LAGGING = {"FB16": 25, "RSS25": 7}
"""Cuts and how many of their sources are taken."""


def measure(workers: int) -> list[Figure]:
    """Return the figures of cold starts and of publishers' lag."""
    traces = {"set H, seed 1": make_synthetic_trace("H", 1)}
    if DATA.exists():
        traces["FB16"] = read_cut("FB16")
    figures = [figure for name, trace in traces.items() for figure in _start(name, trace, workers)]
    if DATA.exists():
        for name, n_sources in LAGGING.items():
            figures += _lag(name, n_sources, workers)
    return figures


def _start(name: str, trace: Trace, workers: int) -> list[Figure]:
    """Begin with nothing known, and a guess at the rate that is wrong for nearly all."""
    say(f"cold start on {name}")
    trained = Bench(trace, train(trace, workers), workers=workers)
    fixed = trained.time(INTERVAL_S)
    steady = trained.tune(CONTENDERS["price"], fixed)
    rule = replace(CONTENDERS["price"].rule, knob=steady.parameters["knob"])
    newborns = [new_state(trace.split_s) for _ in trace.streams]
    replays = Bench(trace, newborns, workers=workers).replay(rule)
    usual = trained.replay(rule)
    figures = []
    for label, (since, until) in STRETCHES.items():
        stretch = trace.split_s + since * DAY_S, trace.split_s + until * DAY_S
        budget = len(trace.streams) * (stretch[1] - stretch[0]) / INTERVAL_S
        polls, lag = look_at(replays, *stretch)
        product = polls * lag / (budget * INTERVAL_S / 2.0)
        polls_usual, lag_usual = look_at(usual, *stretch)
        share = polls * lag / (polls_usual * lag_usual)
        where = f"cold start, {name}, {label}: price"
        figures += [
            Figure(f"{where}, lag x polls / timer", product, 0.90 if label == "day 1" else None),
            Figure(f"{where}, lag x polls / trained", share, 1.10 if since >= 6 else None),
        ]
    return figures


def _lag(name: str, n_sources: int, workers: int) -> list[Figure]:
    """Let entries show some 10 to 180 seconds after their stamp."""
    rows = []
    for seed in LAG_SEEDS:
        say(f"publishers' lag on {name}, draw {seed}")
        trace = _delayed(read_cut(name), n_sources, np.random.default_rng([seed, 11]))
        bench = Bench(trace, train(trace, workers), workers=workers)
        fixed = bench.time(INTERVAL_S)
        rows.append(
            [bench.tune(CONTENDERS[each], fixed).lag_vs_fixed for each in ("price", "plan")]
        )
    price, plan = np.mean(rows, axis=0)
    where = f"publishers' lag, {name}, 10 min"
    return [
        Figure(f"{where}: price, mean lag / timer", price),
        Figure(f"{where}: plan, mean lag / timer", plan),
        Figure(f"{where}: plan / plan without habits (which is price)", plan / price, 0.95),
    ]


def _delayed(trace: Trace, n_sources: int, rng: np.random.Generator) -> Trace:
    streams = []
    for stream in trace.streams[:n_sources]:
        constant_s = rng.uniform(LEAST_S, MOST_S)
        lags = constant_s + rng.exponential(SCATTER_S, size=len(stream.stamps_s))
        appear_s = stream.stamps_s + lags
        order = np.argsort(appear_s, kind="stable")
        streams.append(replace(stream, stamps_s=stream.stamps_s[order], appear_s=appear_s[order]))
    return replace(trace, streams=tuple(streams))
