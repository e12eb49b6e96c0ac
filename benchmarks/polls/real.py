"""The real cuts: every policy at equal polls, the bounds, tails and losses."""

from __future__ import annotations

from polls.cuts import CUTS, DATA, read_cut
from polls.figures import Figure, say

from models.backtest import COUNT_RULES, Bench, Score, run_backtest, train

MOST = {
    "FB16": {"plan": 0.52},
    "RSS25": {"plan": 0.60},
    "NA20": {"plan": 0.58},
    "NA22": {"plan": 0.35},
}
"""Targets of the mean lag over a timer's."""

NONE_LOST = ("FB16", "RSS25", "NA20")
"""Where nothing may be lost. NA22 is posted in such clumps that the guard's one gap in ten
thousand happens."""

RULES = ("adaptive", "ema", "holt-winters", "miniflux", "commafeed", "mavsync", "nutch")


def measure(workers: int) -> list[Figure]:
    """Return the figures of all cuts at a timer of 10 and of 30 minutes."""
    if not DATA.exists():
        return [Figure("real cuts", float("nan"), note=f"no data at {DATA}")]
    figures = []
    for name in CUTS:
        say(f"{name}: reading and learning")
        trace = read_cut(name)
        bench = Bench(trace, train(trace, workers), workers=workers)
        figures.append(
            Figure(f"{name}: sources", len(trace.streams), note=f"{trace.n_tested} entries tested")
        )
        for interval_s in (600.0, 1800.0):
            figures += _compare(name, bench, interval_s)
    return figures


def _compare(name: str, bench: Bench, interval_s: float) -> list[Figure]:
    where = f"{name}, {interval_s / 60:.0f} min"
    result = run_backtest(
        bench.trace,
        ("price", "plan", "price-holt-winters", *RULES),
        interval_s=interval_s,
        bench=bench,
        report=lambda policy, place, n: say(f"{where}: {policy} ({place} of {n})"),
    )
    count_rules = [result.score(rule) for rule in COUNT_RULES]
    best = min(count_rules, key=lambda score: score.lag_vs_fixed)
    price, plan = result.score("price"), result.score("plan")
    figures = [
        Figure(f"{where}: rate bound", result.rho, note=f"{result.rho_across:.3f} across sources"),
        Figure(f"{where}: plan, mean lag / timer", plan.lag_vs_fixed, MOST[name]["plan"]),
        Figure(f"{where}: price, mean lag / timer", price.lag_vs_fixed),
        Figure(f"{where}: price / rate bound", price.lag_vs_fixed / result.rho, 1.03),
        Figure(f"{where}: plan / rate bound", plan.lag_vs_fixed / result.rho, 0.95),
        Figure(
            f"{where}: plan / best count rule",
            plan.lag_vs_fixed / best.lag_vs_fixed,
            0.85,
            best.policy,
        ),
        Figure(
            f"{where}: price / best count rule",
            price.lag_vs_fixed / best.lag_vs_fixed,
            None,
            best.policy,
        ),
    ]
    for score in (price, plan):
        figures += [
            Figure(f"{where}: {score.policy}, p95 / timer", score.p95_vs_fixed, 0.85),
            _losses(f"{where}: {score.policy}", score, 0 if name in NONE_LOST else None),
        ]
    return figures + [_told(where, score, result.scores[0]) for score in result.scores[1:]]


def _losses(where: str, score: Score, most: float | None) -> Figure:
    note = f"the guard allows one gap in ten thousand; there were {score.polls:,}"
    return Figure(f"{where}, entries lost", score.lost, most, note)


def _told(where: str, score: Score, fixed: Score) -> Figure:
    note = (
        f"{score.polls / fixed.polls:.2f} of the polls,"
        f" median {score.median_lag_s / fixed.median_lag_s:.2f}, p95 {score.p95_vs_fixed:.2f},"
        " mean over sources"
        f" {score.source_mean_lag_s / fixed.source_mean_lag_s:.2f}, lost {score.lost}"
    )
    return Figure(f"{where}: {score.policy}", score.lag_vs_fixed, note=note)
