import math
from dataclasses import replace

import numpy as np
import pytest

from models.budget import (
    Demand,
    corrected,
    expected_spending,
    price_for_budget,
    price_for_lag,
    weekly_rates,
)
from models.intensity.estimator import observe
from models.intensity.state import new_state
from models.week import zone_table

BUSY_NOON = np.where(np.arange(168) % 24 == 12, 10.0, 0.5)
DEMANDS = [Demand(BUSY_NOON), Demand(np.full(168, 0.1)), Demand(np.full(168, 20.0), weight=4.0)]


@pytest.mark.parametrize("per_day", [50.0, 300.0, 1500.0])
def test_the_price_meets_the_budget(per_day):
    assert price_for_budget(DEMANDS, per_day).per_day == pytest.approx(per_day, rel=1e-3)


@pytest.mark.parametrize("lag_s", [60.0, 300.0, 3000.0])
def test_the_price_keeps_a_promised_lag(lag_s):
    assert price_for_lag(DEMANDS, lag_s).mean_lag_s == pytest.approx(lag_s, rel=1e-3)


def test_a_budget_no_price_can_meet_gives_the_nearest():
    most = 2 * 86_400 / 60.0
    demands = [Demand(np.full(168, 1.0)), Demand(np.full(168, 1.0))]
    assert price_for_budget(demands, 1e9).polls_per_day == pytest.approx(most)


def test_a_higher_price_means_fewer_polls_and_longer_waits():
    spendings = [expected_spending(DEMANDS, price) for price in (10.0, 100.0, 1000.0)]
    assert sorted(spendings, key=lambda s: -s.polls_per_day) == spendings
    assert sorted(spendings, key=lambda s: s.mean_lag_s) == spendings


def test_at_one_price_the_mean_lag_beats_a_timer_of_as_many_polls():
    spending = price_for_budget(DEMANDS[:2], per_day=288.0)
    timer_lag_s = 2 * 86_400 / 288.0 / 2
    assert spending.mean_lag_s < 0.9 * timer_lag_s


def test_importance_buys_polls():
    plain, heavy = Demand(BUSY_NOON), Demand(BUSY_NOON, weight=4.0)
    light = expected_spending([plain], 200.0).polls_per_day
    assert expected_spending([heavy], 200.0).polls_per_day == pytest.approx(2 * light, rel=0.05)


def test_a_dear_source_is_polled_less():
    cheap = Demand(BUSY_NOON, cost=0.01)
    polls = [
        expected_spending([replace(cheap, cost=cost)], 1e4).polls_per_day for cost in (0.01, 0.04)
    ]
    assert polls[0] == pytest.approx(2 * polls[1], rel=0.05)


def test_nobody_to_poll_costs_nothing():
    assert expected_spending([], 10.0).polls_per_day == 0.0
    assert math.isnan(price_for_budget([], 100.0).mean_lag_s)


def test_spending_too_much_raises_the_price_and_within_bounds():
    assert corrected(100.0, spent=200.0, planned=100.0) == 400.0
    assert corrected(100.0, spent=1e6, planned=100.0) == 400.0
    assert corrected(100.0, spent=0.0, planned=100.0) == 100.0


def test_weekly_rates_come_from_what_was_observed():
    state = new_state(0.0)
    stamps = np.arange(0.0, 14 * 86_400.0, 1800.0) + 1.0
    observe(state, 0.0, 14 * 86_400.0, zone_table("UTC", 1970, 1970), stamps)
    assert weekly_rates(state) == pytest.approx(np.full(168, 2.0), rel=0.1)
