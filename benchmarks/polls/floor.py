"""The floor: scores on small made-up sets that no change may fall below.

``python benchmarks/polling.py --raise-floor`` writes them anew; a test compares. They are
mean lags and 95th percentiles over a timer's at equal polls, so less is better, and the
same on every machine.
"""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path

from models.backtest import CONTENDERS, Bench, Score, train
from models.happenings import make_event
from models.synthetic import make_synthetic_trace
from models.traces import Trace

FILE = Path(__file__).parents[1] / "polling_floor.json"

SLACK = 1.003
"""A score may be this much worse: searches for equal polls stop within two per mille."""

INTERVAL_S = 600.0
N_SOURCES, N_WEEKS = 8, 12


def measure_floor() -> dict[str, float]:
    """Return the score of each policy on each set."""
    sets = {
        "P": make_synthetic_trace("P", 101, n_sources=N_SOURCES, n_weeks=N_WEEKS),
        "H": make_synthetic_trace("H", 101, n_sources=N_SOURCES, n_weeks=N_WEEKS),
        "batches": _calm("batches"),
        "wrong stamps": _calm("wrong stamps"),
        "hour-cut stamps": _calm("hour-cut stamps"),
    }
    return {
        f"{policy}, {name}{kind}": value
        for name, trace in sets.items()
        for policy, score in _scores(trace).items()
        for kind, value in (("", score.lag_vs_fixed), (", p95", score.p95_vs_fixed))
    }


def read_floor() -> dict[str, float]:
    """Return the committed scores."""
    scores: dict[str, float] = json.loads(FILE.read_text(encoding="utf-8"))
    return scores


def raise_floor() -> None:
    """Write today's scores."""
    text = json.dumps({name: round(score, 4) for name, score in measure_floor().items()}, indent=2)
    FILE.write_text(text + "\n", encoding="utf-8")


def _calm(name: str) -> Trace:
    event = make_event(name, 101, n_sources=N_SOURCES)
    return replace(event.trace, end_s=event.event_s)


def _scores(trace: Trace) -> dict[str, Score]:
    bench = Bench(trace, train(trace))
    fixed = bench.time(INTERVAL_S)
    names = ("price", "plan", "holt-winters")
    return {name: bench.tune(CONTENDERS[name], fixed) for name in names}
