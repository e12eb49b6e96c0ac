"""Which estimator and policy suit a source, and when a rival's gain counts."""

from dataclasses import replace

import numpy as np
import pytest

from models.intensity.fitting import fit_state
from models.intensity.history import History
from models.scores import (
    Comparison,
    check_forecast,
    choose_estimator,
    choose_policy,
    compare_policies,
    is_steady,
    score_estimators,
    shrink_gain,
)
from models.synthetic import MONDAY_S, make_intensity, make_stamps
from models.week import WEEK_S


def make_history(per_day=60.0, n_weeks=12, seed=1):
    rng = np.random.default_rng(seed)
    stamps = make_stamps(make_intensity(per_day, n_weeks, rng), rng)
    return History("daily", stamps, MONDAY_S, MONDAY_S + n_weeks * WEEK_S)


def on_the_quarter(history):
    stamps = np.sort(np.round(history.stamps_s / 900.0) * 900.0 + 2.0)
    return replace(history, stamps_s=stamps)


@pytest.fixture(scope="module")
def history():
    return make_history()


@pytest.fixture(scope="module")
def fit(history):
    return fit_state(history)


def test_the_weekly_profile_explains_more_than_a_mean_and_a_moving_average(fit):
    scores = score_estimators(fit)
    assert scores["weekly"].explained > 0.1
    assert scores["weekly"].deviance < scores["ema"].deviance
    assert scores["weekly"].mean_error > 0.0


def test_a_young_source_is_not_scored():
    young = fit_state(make_history(n_weeks=1))
    assert score_estimators(young) == {}
    assert choose_estimator(make_history(n_weeks=1), young) == (
        "weekly",
        "weekly profile: too young to hold weeks out",
    )


def test_the_weekly_profile_is_kept_where_holt_winters_is_no_better(history, fit):
    assert choose_estimator(history, fit)[0] == "weekly"


def test_holt_winters_is_taken_where_its_forecasts_and_its_lags_are_better(history, fit):
    # A profile that takes the source for one that publishes at midnight only.
    held = fit.held_out
    spoilt = held.state.copy()
    counts = np.zeros(168)
    counts[::24] = spoilt["counts"].sum() / 7
    spoilt["counts"] = counts
    forecasts = held.forecasts.copy()
    forecasts[:, 0] = np.roll(forecasts[:, 0], 12)
    worse = replace(fit, held_out=replace(held, state=spoilt, forecasts=forecasts))
    name, note = choose_estimator(history, worse)
    assert name == "holt-winters"
    assert "less lag" in note


def test_forecasts_alone_do_not_make_holt_winters_win(history, fit):
    held = fit.held_out
    forecasts = held.forecasts.copy()
    forecasts[:, 0] = np.roll(forecasts[:, 0], 12)
    told = replace(fit, held_out=replace(held, forecasts=forecasts))
    assert choose_estimator(history, told)[0] == "weekly"


def test_plan_wins_where_a_source_publishes_on_the_quarter(history):
    quarters = on_the_quarter(history)
    found = compare_policies(quarters, fit_state(quarters))
    assert found.gain > 0.2
    assert found.doubt < 0.1
    assert choose_policy(found, aims=True)[0] == "plan"


def test_the_comparison_is_made_at_equal_polls(history):
    quarters = on_the_quarter(history)
    dear = compare_policies(quarters, fit_state(quarters), price=1000.0)
    cheap = compare_policies(quarters, fit_state(quarters), price=100.0)
    assert 10.0 < dear.polls_per_day < 0.7 * cheap.polls_per_day
    assert cheap.usual_lag_s < dear.usual_lag_s


def test_too_few_entries_are_not_compared():
    rare = make_history(per_day=1.0)
    assert compare_policies(rare, fit_state(rare)) is None


def comparison(gain, doubt):
    return Comparison(300.0, 300.0 * (1 - gain), 50.0, 400, gain, doubt, shrink_gain(gain, doubt))


@pytest.mark.parametrize(
    ("gain", "doubt", "policy"),
    [
        pytest.param(0.15, 0.03, "plan", id="clearly better"),
        pytest.param(0.01, 0.005, "price", id="better by too little"),
        pytest.param(-0.20, 0.05, "price", id="clearly worse"),
        pytest.param(-0.20, 0.30, "plan", id="worse in a measure that says nothing"),
        pytest.param(float("nan"), 0.05, "price", id="no number"),
    ],
)
def test_plan_is_taken_where_a_gain_is_to_be_expected(gain, doubt, policy):
    assert choose_policy(comparison(gain, doubt), aims=True)[0] == policy


def test_without_habits_to_aim_at_plan_is_not_considered():
    policy, note = choose_policy(comparison(0.3, 0.01), aims=False)
    assert policy == "price"
    assert "no minute" in note


def test_what_was_not_compared_is_polled_by_price_and_says_so():
    assert choose_policy(None, aims=True) == ("price", "price: not compared with plan yet")


@pytest.mark.parametrize(
    ("gains", "steady"),
    [
        pytest.param([1.0] * 4, False, id="too few"),
        pytest.param([1.0, 1.1, 0.9, 1.0, 1.2], True, id="all alike"),
        pytest.param([9.0, -8.0, 7.0, -6.0, 5.0, -4.0], False, id="to and fro"),
        pytest.param([-1.0] * 8, False, id="always worse"),
    ],
)
def test_a_gain_counts_if_it_is_more_than_chance(gains, steady):
    assert bool(is_steady(np.array(gains))) is steady


@pytest.mark.parametrize(
    ("expected", "fault"),
    [
        pytest.param([0.0, 3.0], "", id="usable"),
        pytest.param([], "", id="empty"),
        pytest.param([1.0, float("inf")], "not a number in an hour", id="infinite"),
        pytest.param([1.0, -0.5], "fewer than no entries in an hour", id="negative"),
        pytest.param([201.0], "201 entries in an hour, where the busiest ever had 10", id="absurd"),
    ],
)
def test_a_forecast_that_cannot_be_is_named(expected, fault):
    assert check_forecast(expected, largest_per_hour=10.0) == fault
