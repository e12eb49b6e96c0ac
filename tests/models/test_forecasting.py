import json

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from models.intensity.estimator import observe
from models.intensity.forecast import make_forecast
from models.intensity.state import new_state
from models.polling.choice import POLICIES, choose_next_poll, replay_decision
from models.polling.forecasting import Basis
from models.polling.moment import Moment
from models.records import PollRules
from models.week import zone_table

UTC = zone_table("UTC", 1970, 1970)
WEEKS_S = 3 * 7 * 86_400.0


def taught(per_hour=2.0, seed=1):
    """A source that publishes by day only, mostly on the quarter hour."""
    rng = np.random.default_rng(seed)
    hours = np.arange(0.0, WEEKS_S, 3600.0)
    by_day = np.where((hours // 3600) % 24 >= 6, per_hour, 0.05)
    stamps = [
        h + 900.0 * rng.integers(0, 4)
        for h, n in zip(hours, rng.poisson(by_day), strict=True)
        for _ in range(n)
    ]
    state = new_state(0.0)
    observe(state, 0.0, WEEKS_S, UTC, np.sort(np.array(stamps)))
    state["phase_trust"] = 1.0
    return state


STATE = taught()


def basis(at_s, price=600.0, chosen="price", **changes):
    forecast = make_forecast(STATE, at_s, UTC, changes.pop("estimator", "weekly"))
    return Basis(forecast, price, chosen=chosen, **changes)


def decide(at_s, policy="auto", **changes):
    moment = Moment("a", now_s=at_s, due_s=at_s)
    return choose_next_poll(moment, PollRules(policy=policy), basis(at_s, **changes))


NIGHT, NOON = WEEKS_S + 1 * 3600.0, WEEKS_S + 12 * 3600.0


def test_the_night_is_polled_less_than_noon():
    assert decide(NIGHT).due_at.timestamp() - NIGHT > 2 * (decide(NOON).due_at.timestamp() - NOON)


def test_the_reason_says_how_many_are_expected_and_what_hour_it_is():
    assert "entries expected" in decide(NOON).reason
    assert "a quiet hour" in decide(NIGHT).reason


def test_a_plan_polls_right_after_the_quarter_hour():
    late_s = [
        decide(NOON + 60.0 * minute, policy="plan", price=900.0).due_at.timestamp() % 900.0
        for minute in range(0, 60, 7)
    ]
    assert np.median(late_s) <= 30.0


def test_a_full_list_is_fetched_before_it_overflows():
    soon = decide(NOON, price=1e9, most_entries=1.0)
    assert soon.due_at.timestamp() - NOON < 3600.0
    assert "before its list overflows" in soon.reason


@pytest.mark.parametrize("policy", [name for name in POLICIES if name != "adaptive"])
def test_every_policy_decides_and_replays(policy):
    estimator = policy if policy in ("ema", "holt-winters") else "weekly"
    decision = decide(NOON, policy=policy, estimator=estimator)
    stored = json.loads(json.dumps(decision.inputs))
    assert replay_decision(stored) == decision
    assert decision.due_at.timestamp() > NOON


@given(
    at_s=st.floats(WEEKS_S, WEEKS_S + 6 * 86_400.0),
    price=st.floats(1.0, 1e6),
    chosen=st.sampled_from(["price", "plan"]),
    empty_share=st.sampled_from([1.0, 0.05]),
)
def test_a_stored_decision_replays_bit_for_bit_whatever_it_was(at_s, price, chosen, empty_share):
    decision = decide(at_s, price=price, chosen=chosen, empty_share=empty_share)
    assert replay_decision(json.loads(json.dumps(decision.inputs))) == decision


@given(at_s=st.floats(WEEKS_S, WEEKS_S + 6 * 86_400.0), price=st.floats(1.0, 1e5))
def test_a_higher_price_never_polls_sooner(at_s, price):
    cheap, dear = (
        choose_next_poll(
            Moment("a", now_s=at_s, due_s=at_s),
            PollRules(policy="price", min_interval_s=1.0),
            basis(at_s, price=p),
        )
        for p in (price, 2 * price)
    )
    assert dear.due_at >= cheap.due_at


def test_what_is_stored_of_a_decision_is_small():
    sizes = [len(json.dumps(decide(NOON, chosen=chosen).inputs)) for chosen in ("price", "plan")]
    assert max(sizes) < 2500


@pytest.mark.report("statsmodels/statsmodels#6243")
@pytest.mark.report("statsmodels/statsmodels#9575")
@pytest.mark.parametrize("fault", [np.nan, np.inf, -1e9, 1e12])
def test_an_absurd_forecast_falls_back_and_says_so(fault):
    state = taught()
    state["hw_level"] = fault
    forecast = make_forecast(state, NOON, UTC, "holt-winters")
    assert np.isfinite(forecast.rates_per_s).all()
    assert min(forecast.rates_per_s) >= 0.0
    if fault != -1e9:
        assert forecast.estimator == "weekly"
        assert "not usable" in forecast.note


def test_a_young_source_heeds_its_feed_and_an_old_one_does_not():
    def wait_s(entries_known):
        moment = Moment("a", NOON, NOON, hint_s=3600.0, entries_known=entries_known)
        rules = PollRules(policy="price")
        return choose_next_poll(moment, rules, basis(NOON, price=5.0)).due_at.timestamp() - NOON

    assert wait_s(3) >= 900.0
    assert wait_s(100) < 600.0
