"""Histories in, models and forecasts out; nothing of one source fails the refit."""

from dataclasses import replace
from datetime import UTC, datetime, timedelta

import numpy as np
import pytest

from models.intensity.fitting import fit_state
from models.intensity.history import History
from models.intensity.state import read_state
from models.outlook import expected_hours, hourly_range
from models.refitting import Terms, compared_share, look_ahead, refit
from models.synthetic import MONDAY_S, make_intensity, make_stamps
from models.week import WEEK_S, zone_table

N_WEEKS = 8
END_S = MONDAY_S + N_WEEKS * WEEK_S
MADE_AT = datetime.fromtimestamp(END_S, UTC) + timedelta(minutes=10)
TERMS = Terms(MADE_AT)


def make_history(name="daily", per_day=60.0, seed=1, timezone="UTC", quarters=False):
    rng = np.random.default_rng(seed)
    stamps = make_stamps(make_intensity(per_day, N_WEEKS, rng), rng)
    if quarters:
        stamps = np.sort(np.round(stamps / 900.0) * 900.0 + 2.0)
    return History(name, stamps, MONDAY_S, END_S, timezone)


@pytest.fixture(scope="module")
def done():
    return refit([make_history()], TERMS)[0]


def test_a_model_holds_all_that_the_worker_needs(done):
    assert done.model.source == "daily"
    assert done.model.fitted_at == MADE_AT
    assert read_state(done.model.state)["updated_at"] == END_S
    assert done.model.kind == "weekly"
    assert 0.0 < done.model.score < 1.0
    assert set(done.model.parameters["scores"]) == {"weekly", "ema", "holt-winters"}


def test_a_forecast_is_a_week_of_whole_hours_of_which_none_has_begun(done):
    forecast = done.forecast
    assert forecast.from_at == MADE_AT.replace(minute=0) + timedelta(hours=1)
    assert len(forecast.expected) == len(forecast.low) == len(forecast.high) == 168
    assert done.per_day == pytest.approx(60.0, rel=0.5)


def test_nine_in_ten_hours_lie_in_the_range():
    histories = [make_history(str(n), 150.0, seed=n) for n in range(6)]
    cut_s = END_S - WEEK_S
    terms = Terms(datetime.fromtimestamp(cut_s, UTC) - timedelta(hours=1))
    before = [replace(h, stamps_s=h.stamps_s[h.stamps_s < cut_s], end_s=cut_s) for h in histories]
    inside = []
    for history, item in zip(histories, refit(before, terms), strict=True):
        edges = cut_s + 3600.0 * np.arange(169)
        came = np.diff(np.searchsorted(history.stamps_s, edges))
        low, high = np.array(item.forecast.low), np.array(item.forecast.high)
        inside.append(((came >= low) & (came <= high)).mean())
    assert 0.88 <= np.mean(inside) <= 0.99


def test_the_range_is_that_of_the_distribution():
    from scipy.stats import nbinom, poisson

    means = np.array([0.01, 0.5, 1.0, 3.3, 20.0, 150.0])
    low, high = hourly_range(means, 1.0)
    np.testing.assert_array_equal(low, poisson.ppf(0.05, means))
    np.testing.assert_array_equal(high, poisson.ppf(0.95, means))
    low, high = hourly_range(means, 3.0)
    np.testing.assert_array_equal(low, nbinom.ppf(0.05, means / 2.0, 1.0 / 3.0))
    np.testing.assert_array_equal(high, nbinom.ppf(0.95, means / 2.0, 1.0 / 3.0))


def test_hours_of_a_zone_that_begin_at_half_past_are_shared_out():
    item = refit([make_history(timezone="Asia/Kolkata")], TERMS)[0]
    state, zone = read_state(item.model.state), zone_table("Asia/Kolkata", 2024, 2026)
    on_the_hour = expected_hours(state, "weekly", END_S, zone)
    half_past = expected_hours(state, "weekly", END_S + 1800.0, zone)
    np.testing.assert_allclose(on_the_hour[1:], 0.5 * (half_past[:-1] + half_past[1:]), rtol=1e-9)


def test_plan_is_chosen_for_a_source_on_the_quarter_and_price_for_others():
    quarters, other = make_history("quarters", 100.0, quarters=True), make_history("other", 100.0)
    first, second = refit([quarters, other], TERMS)
    assert first.model.policy == "plan"
    assert first.model.parameters["policies"]["gain"] > 0.1
    assert second.model.policy == "price"
    assert "no minute" in second.model.note


def test_a_verdict_is_kept_until_the_source_is_compared_again():
    quarters = make_history(quarters=True)
    (first,) = refit([quarters], TERMS)
    later = Terms(MADE_AT + timedelta(days=1), compared_share=0.0, previous={"daily": first.model})
    (second,) = refit([quarters], later)
    assert second.model.policy == "plan"
    assert second.model.parameters["policies"] == first.model.parameters["policies"]
    (never,) = refit([quarters], Terms(MADE_AT, compared_share=0.0))
    assert never.model.policy == "price"
    assert "not compared" in never.model.note


def test_those_not_compared_for_longest_go_first():
    names = ["a", "b", "c"]
    histories = [make_history(name, 100.0, seed, quarters=True) for seed, name in enumerate(names)]
    all_of_them = {item.model.source: item.model for item in refit(histories, TERMS)}
    stale = replace(
        all_of_them["b"],
        parameters={"policies": {"compared_at": "2020-01-01T00:00:00+00:00"}},
    )
    later = Terms(
        MADE_AT + timedelta(days=1), compared_share=0.3, previous={**all_of_them, "b": stale}
    )
    compared = {
        item.model.source
        for item in refit(histories, later)
        if item.model.parameters["policies"]["compared_at"] == later.made_at.isoformat()
    }
    assert compared == {"b"}


def test_few_sources_are_all_compared_every_night():
    assert compared_share(500) == 1.0
    assert compared_share(501) == pytest.approx(1 / 7)


@pytest.mark.parametrize(
    ("name", "value", "fault"),
    [
        pytest.param("hw_trend", 1e6, "where the busiest ever had", id="absurd"),
        pytest.param("hw_level", np.nan, "not a number", id="no number"),
    ],
)
def test_a_forecast_that_cannot_be_falls_back_to_the_weekly_profile(name, value, fault):
    fit = fit_state(make_history())
    zone = zone_table("UTC", 2024, 2026)
    fit.state[name] = value
    expected, said = look_ahead(fit, "holt-winters", END_S, zone)
    assert said.startswith("holt-winters expects ")
    assert fault in said
    np.testing.assert_array_equal(expected, expected_hours(fit.state, "weekly", END_S, zone))


def test_even_a_spoilt_profile_gives_a_forecast_that_can_be_stored():
    fit = fit_state(make_history())
    fit.state["counts"] = np.nan
    expected, said = look_ahead(fit, "weekly", END_S, zone_table("UTC", 2024, 2026))
    assert said
    assert np.isfinite(expected).all()


@pytest.mark.parametrize("n_entries", [0, 1, 5])
def test_a_source_with_next_to_no_past_has_a_model_and_a_forecast(n_entries):
    stamps = END_S - 600.0 * np.arange(n_entries, 0, -1)
    young = History("young", stamps, END_S - 3600.0, END_S)
    (item,) = refit([young], TERMS)
    assert (item.model.kind, item.model.policy, item.model.score) == ("weekly", "price", None)
    assert "too young" in item.model.note
    assert np.isfinite(item.forecast.expected).all()
    assert np.isfinite(item.forecast.high).all()


def test_threads_and_other_processors_change_nothing():
    histories = [make_history(str(seed), 30.0, seed, quarters=True) for seed in range(5)]
    alone = refit(histories, TERMS)
    together = refit(histories, TERMS, threads=2, chunk=2)
    elsewhere = refit(histories, TERMS, spread=lambda call, parts: list(map(call, parts)), chunk=2)
    for other in (together, elsewhere):
        assert [item.model for item in alone] == [item.model for item in other]
        assert [item.forecast for item in alone] == [item.forecast for item in other]
