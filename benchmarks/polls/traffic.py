"""What scheduling saves: polls and megabytes at equal lag, with and without validators."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
from polls.figures import Figure, say

from models.backtest import CONTENDERS, Bench, Score, train
from models.simulator import PageModel
from models.synthetic import make_synthetic_trace

SEEDS = (1, 2, 3)
INTERVAL_S = 600.0


def _speed(score: Score) -> float:
    return 1.0 / score.mean_lag_s


def _bytes_with_validators(score: Score) -> float:
    return score.mb_with_validators


def measure(workers: int) -> list[Figure]:
    """Return the figures of set H at a timer of ten minutes, means over seeds."""
    pages = PageModel()
    aware = replace(
        CONTENDERS["price"],
        name="price-304",
        rule=replace(CONTENDERS["price"].rule, empty_share=pages.not_modified_kb / pages.index_kb),
    )
    rows = []
    for seed in SEEDS:
        say(f"traffic, set H, seed {seed}")
        trace = make_synthetic_trace("H", seed)
        bench = Bench(trace, train(trace, workers), workers=workers)
        fixed = bench.time(INTERVAL_S)
        as_fast = bench.tune(CONTENDERS["price"], fixed, spend=_speed)
        as_dear = bench.tune(CONTENDERS["price"], fixed, spend=_bytes_with_validators)
        aware_as_dear = bench.tune(aware, fixed, spend=_bytes_with_validators)
        rows.append(
            (
                as_fast.polls / fixed.polls,
                as_fast.mb / fixed.mb,
                as_dear.mean_lag_s / fixed.mean_lag_s,
                aware_as_dear.mean_lag_s / fixed.mean_lag_s,
            )
        )
    polls, megabytes, plain, aware_lag = np.mean(rows, axis=0)
    note = "index 200 KB (0.5 KB on a 304), article 100 KB"
    return [
        Figure("set H, 10 min: price, polls at the timer's lag / timer", polls, 0.60),
        Figure("set H, 10 min: price, MB at the timer's lag / timer", megabytes, 0.70, note),
        Figure("set H, 10 min: price, lag at the timer's MB where empties are 304s", plain),
        Figure("set H, 10 min: the same, with the price of a 304 known", aware_lag, 1.00),
    ]
