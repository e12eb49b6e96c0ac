"""What a decision costs, and what is remembered of a source."""

from __future__ import annotations

import time
from datetime import UTC, datetime

from polls.figures import Figure, say

from models.backtest import CONTENDERS, Bench, train
from models.intensity.forecast import make_forecast
from models.intensity.state import SOURCE_STATE
from models.polling.choice import choose_next_poll
from models.polling.forecasting import Basis
from models.polling.moment import Moment
from models.records import PollRules
from models.simulator import zone_of
from models.synthetic import make_synthetic_trace

PRICES = {"price": 150.0, "plan": 150.0}
N_DECISIONS = 2000


def measure(workers: int) -> list[Figure]:
    """Return microseconds a poll (learning and decision), and bytes a source."""
    say("cost of decisions")
    trace = make_synthetic_trace("H", 1, n_sources=20)
    states = train(trace, workers)
    for state in states:
        state["phase_trust"] = 1.0
        state["minutes"][::15] += 200.0
    bench = Bench(trace, states)
    figures = []
    for name, price in PRICES.items():
        rule = CONTENDERS[name].rule
        rule = type(rule)(rule.policy, rule.estimator, knob=price)
        begun = time.process_time()
        polls = sum(len(replay.polls_s) for replay in bench.replay(rule))
        micros = (time.process_time() - begun) / polls * 1e6
        figures.append(Figure(f"{name}: a poll, learning and decision, µs", micros, 50))
    zone = zone_of("Europe/Berlin", trace.split_s, trace.end_s)
    for name in PRICES:
        micros = _live(states[0], zone, trace.split_s, name)
        figures.append(Figure(f"{name}: a live decision with its record and sentence, µs", micros))
    return [*figures, Figure("state of a source, bytes", SOURCE_STATE.itemsize, 4096)]


def _live(state: object, zone: object, at_s: float, policy: str) -> float:
    """Return what the whole of a live decision takes, in microseconds of processor time."""
    rules = PollRules(policy=policy)
    moment = Moment("a", now_s=at_s, due_s=at_s)
    begun = time.process_time()
    for _ in range(N_DECISIONS):
        basis = Basis(make_forecast(state, at_s, zone), price=150.0)  # type: ignore[arg-type]
        choose_next_poll(moment, rules, basis)
    assert datetime.fromtimestamp(at_s, UTC)
    return (time.process_time() - begun) / N_DECISIONS * 1e6
