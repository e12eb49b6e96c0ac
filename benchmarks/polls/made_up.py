"""The synthetic sets: fifty sources, and the paper's five rates alone."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
from polls.figures import Figure, say

from models.backtest import CONTENDERS, Bench, Score, bound_by_rates, train
from models.synthetic import make_synthetic_trace
from models.traces import Trace

SEEDS = (1, 2, 3, 4, 5)
COUNT_RULES = ("adaptive", "ema", "holt-winters", "miniflux", "commafeed")
OURS = ("price", "plan")


def measure(workers: int) -> list[Figure]:
    """Return the figures of both sets, means over seeds, at a timer of 10 and of 30 minutes."""
    figures = []
    for interval_s in (600.0, 1800.0):
        for kind in "PH":
            figures += _fifty(kind, interval_s, workers)
        figures += _five(interval_s, workers)
    return figures


def _fifty(kind: str, interval_s: float, workers: int) -> list[Figure]:
    rows = []
    for seed in SEEDS:
        say(f"set {kind}, seed {seed}, {interval_s / 60:.0f} min")
        rows.append(_scores(make_synthetic_trace(kind, seed), interval_s, workers, COUNT_RULES))
    where = f"set {kind}, {interval_s / 60:.0f} min"
    figures = []
    for policy in OURS:
        ratios = np.array([row[policy].lag_vs_fixed for row in rows])
        bound = np.array([row["rate-oracle"].lag_vs_fixed for row in rows])
        best = np.array([min(row[name].lag_vs_fixed for name in COUNT_RULES) for row in rows])
        tails = np.array([row[policy].p95_vs_fixed for row in rows])
        note = f"sd {ratios.std(ddof=1):.3f} over {len(rows)} seeds"
        figures += [
            Figure(f"{where}: {policy}, mean lag / timer", ratios.mean(), 0.57, note),
            Figure(f"{where}: {policy} / rate oracle", (ratios / bound).mean(), 1.03),
            Figure(f"{where}: {policy} / best count rule", (ratios / best).mean(), 0.85),
            Figure(f"{where}: {policy}, p95 / timer", tails.mean(), 0.85),
            Figure(f"{where}: {policy}, entries lost", sum(row[policy].lost for row in rows), 0),
        ]
    for name in COUNT_RULES:
        share = np.mean([row[name].polls / row["fixed"].polls for row in rows])
        mean = float(np.mean([row[name].lag_vs_fixed for row in rows]))
        figures.append(Figure(f"{where}: {name}", mean, note=f"{share:.2f} of the polls"))
    return figures


def _five(interval_s: float, workers: int) -> list[Figure]:
    ratios = []
    for kind in "PH":
        for seed in SEEDS:
            trace = make_synthetic_trace(kind, seed, n_sources=5)
            ratios.append(_scores(trace, interval_s, workers)["price"].lag_vs_fixed)
    name = f"the paper's five rates, {interval_s / 60:.0f} min: price, mean lag / timer"
    note = f"sd {np.std(ratios, ddof=1):.3f}, P and H, seeds {SEEDS[0]}-{SEEDS[-1]}"
    return [Figure(name, float(np.mean(ratios)), 0.67, note)]


def _scores(
    trace: Trace, interval_s: float, workers: int, others: tuple[str, ...] = ()
) -> dict[str, Score]:
    bench = Bench(trace, train(trace, workers), workers=workers)
    fixed = bench.time(interval_s)
    scores = {"fixed": fixed, "rate-oracle": bound_by_rates(bench, fixed)}
    for name in (*OURS, *others):
        scores[name] = bench.tune(replace(CONTENDERS[name]), fixed)
    return scores
