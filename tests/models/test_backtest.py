import sys
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from models.backtest import (
    CONTENDERS,
    Bench,
    Contender,
    KnobSearch,
    bound_by_foresight,
    draw_curve,
    look_at,
    run_backtest,
    train,
)
from models.bounds import clairvoyant_lags, rate_bound, spread_profile, week_profile
from models.errors import InsufficientDataError
from models.happenings import EVENTS, make_event
from models.simulator import Rule, zone_of
from models.synthetic import MONDAY_S, WEEK_S, make_set, make_synthetic_trace
from models.traces import Stream, Trace, make_trace

BENCHMARKS = Path(__file__).parents[2] / "benchmarks"
SMALL = make_synthetic_trace("H", 3, n_sources=6, n_weeks=8)


@pytest.fixture(scope="module")
def bench():
    return Bench(SMALL, train(SMALL))


@pytest.fixture(scope="module")
def result(bench):
    return run_backtest(SMALL, ("holt-winters", "price", "plan"), bench=bench)


def test_no_score_falls_below_the_floor():
    sys.path.insert(0, str(BENCHMARKS))
    try:
        from polls.floor import SLACK, measure_floor, read_floor
    finally:
        sys.path.remove(str(BENCHMARKS))
    floor = read_floor()
    measured = measure_floor()
    assert set(measured) == set(floor)
    assert {name: score for name, score in measured.items() if score > SLACK * floor[name]} == {}


def test_all_policies_spend_the_same_polls(result):
    for name in ("price", "plan", "holt-winters", "rate-oracle"):
        assert result.score(name).polls == pytest.approx(result.score("fixed").polls, rel=0.003)


def test_the_price_rule_comes_near_what_perfect_knowledge_gives(result):
    price, oracle = result.score("price"), result.score("rate-oracle")
    assert oracle.lag_vs_fixed == pytest.approx(result.rho, rel=0.05)
    assert 0.98 < price.lag_vs_fixed / oracle.lag_vs_fixed < 1.08
    assert price.lag_vs_fixed < 0.9 * result.score("holt-winters").lag_vs_fixed


def test_nobody_beats_who_knows_every_publication(result):
    best = min(score.lag_vs_fixed for score in result.scores)
    assert result.score("clairvoyant").lag_vs_fixed == best


def test_nothing_is_lost_by_price_and_plan(result):
    assert result.score("price").lost == result.score("plan").lost == 0


def test_a_back_test_gives_the_same_twice_and_with_threads(result):
    states = train(SMALL, workers=2)
    again = run_backtest(SMALL, ("price",), bench=Bench(SMALL, states, workers=2))
    assert again.score("price") == result.score("price")


def test_the_curve_of_a_policy_falls(bench, result):
    points = draw_curve(bench, result.score("price"))
    polls, lags = zip(*points, strict=True)
    assert list(polls) == sorted(polls)
    assert list(lags) == sorted(lags, reverse=True)


def test_the_timer_is_no_better_for_a_lucky_phase():
    stamps = np.arange(MONDAY_S, MONDAY_S + 2 * WEEK_S, 900.0)
    trace = Trace((Stream("a", stamps),), MONDAY_S, MONDAY_S + WEEK_S, MONDAY_S + 2 * WEEK_S)
    assert Bench(trace, train(trace)).time(900.0).mean_lag_s == pytest.approx(450.0, rel=0.01)


def test_too_few_entries_are_refused_with_their_number():
    stamps = MONDAY_S + np.arange(30) * 86_400.0
    trace = make_trace([Stream("a", stamps)], train_share=0.9)
    with pytest.raises(InsufficientDataError, match="20 needed"):
        run_backtest(trace, ("price",))


def test_a_policy_is_reported_once_and_in_order(bench):
    told = []
    run_backtest(SMALL, ("price",), bench=bench, report=lambda *what: told.append(what))
    assert told == [("fixed", 1, 3), ("price", 2, 3), ("bounds", 3, 3)]


@settings(max_examples=200, deadline=None)
@given(st.floats(-2.5, -0.3), st.floats(-4.0, 8.0), st.floats(0.0, 0.4), st.floats(0.05, 2.0))
def test_the_search_meets_any_budget_within_its_range(slope, root, wave, frequency):
    contender = Contender("x", Rule("price"), 1e-3, 1e6, -0.5)

    def excess(knob):
        at = np.log(knob) - root
        return slope * at + wave * abs(slope) * np.sin(frequency * at) / max(frequency, 1.0)

    search, tried = KnobSearch(contender, 1.0), []
    while (knob := search.next_knob()) is not None:
        tried.append(excess(knob))
        search.learn(knob, tried[-1])
    assert min(map(abs, tried)) < 0.01


def test_a_search_out_of_range_ends_at_the_end():
    search, tried = KnobSearch(Contender("x", Rule("price"), 1.0, 10.0, -1.0), 3.0), []
    while (knob := search.next_knob()) is not None:
        tried.append(knob)
        search.learn(knob, 5.0 - np.log(knob))
    assert tried[-1] == pytest.approx(10.0)
    assert len(tried) <= 3


class TestBounds:
    @given(st.lists(st.floats(0.0, 100.0), min_size=1, max_size=50))
    def test_the_rate_bound_is_a_share(self, rates):
        if sum(rates) > 0.0:
            assert 0.0 < rate_bound(np.array([rates])) <= 1.0

    @settings(max_examples=100, deadline=None)
    @given(st.lists(st.integers(0, 60), min_size=1, max_size=8), st.floats(0.5, 90.0))
    def test_foresight_is_the_cheapest_grouping(self, times, price):
        stamps = np.sort(np.array(times, dtype=float))
        best = [0.0] + [np.inf] * len(stamps)
        for last in range(1, len(stamps) + 1):
            best[last] = min(
                best[first] + price + (stamps[last - 1] - stamps[first:last]).sum()
                for first in range(last)
            )
        polls, lags = clairvoyant_lags(stamps, price)
        assert polls * price + lags.sum() == pytest.approx(best[-1], abs=1e-9)

    def test_with_a_poll_per_publication_nobody_waits(self, bench):
        score = bound_by_foresight(bench, bench.time(60.0))
        assert score.mean_lag_s == 0.0
        assert score.polls < bench.time(60.0).polls

    @pytest.mark.parametrize("kind", ["P", "H"])
    def test_a_shrunk_profile_tells_the_bound_of_the_truth(self, kind):
        trace = make_synthetic_trace(kind, 5, n_sources=30, n_weeks=16)
        zone = zone_of("UTC", trace.split_s, trace.end_s)
        span = (trace.split_s, trace.end_s, zone)
        shrunk = np.array([week_profile(each.stamps_s, *span) for each in trace.streams])
        raw = np.array([week_profile(each.stamps_s, *span, is_raw=True) for each in trace.streams])
        truth = rate_bound(np.array([each.known_per_s for each in trace.streams]))
        assert rate_bound(shrunk) == pytest.approx(truth, rel=0.04)
        assert rate_bound(raw) < rate_bound(shrunk)

    def test_a_profile_laid_over_weeks_keeps_its_total(self):
        stream = SMALL.streams[0]
        zone = zone_of("Europe/Berlin", SMALL.split_s, SMALL.end_s)
        profile = week_profile(stream.stamps_s, SMALL.split_s, SMALL.end_s, zone)
        hourly = spread_profile(profile, SMALL.split_s, SMALL.end_s, zone)
        expected = hourly[:-1].sum() * 3600.0
        assert expected == pytest.approx(len(SMALL.tested(stream)), rel=0.05)


class TestMadeUpSets:
    def test_the_same_seed_gives_the_same_trace(self):
        first, second = (make_set("H", 4, n_sources=7, n_weeks=2) for _ in range(2))
        assert all(
            np.array_equal(a.stamps_s, b.stamps_s) for a, b in zip(first, second, strict=True)
        )

    @pytest.mark.parametrize("kind", ["P", "H"])
    def test_as_many_entries_come_as_the_intensity_says(self, kind):
        for source in make_set(kind, 2, n_sources=8, n_weeks=12)[:3]:
            expected = source.per_s.sum() * 300.0
            assert len(source.stamps_s) == pytest.approx(expected, rel=0.12)
            assert (np.diff(source.stamps_s) >= 0.0).all()

    @pytest.mark.parametrize("name", sorted(EVENTS))
    def test_an_event_changes_nothing_that_came_before_it(self, name):
        event = make_event(name, 1, n_sources=3)
        calm = make_event("nothing", 1, n_sources=3)
        if name in ("wrong stamps", "batches", "hour-cut stamps"):
            pytest.skip("these hold all the time")
        for changed, quiet in zip(event.trace.streams, calm.trace.streams, strict=True):
            before = changed.stamps_s[changed.stamps_s < event.event_s]
            assert np.array_equal(before, quiet.stamps_s[quiet.stamps_s < event.event_s])

    def test_doubled_rates_double_the_entries(self):
        event = make_event("rates double", 1, n_sources=5)
        calm = make_event("nothing", 1, n_sources=5)
        after = [
            sum((stream.stamps_s >= each.event_s).sum() for stream in each.trace.streams)
            for each in (event, calm)
        ]
        assert after[0] / after[1] == pytest.approx(2.0, rel=0.1)


def through(name, policy="price", seed=2):
    """Return lag over that before the event, and polls over a timer's, in each window."""
    event = make_event(name, seed, n_sources=8)
    calm = replace(event.trace, end_s=event.event_s)
    states = train(event.trace)
    bench = Bench(calm, states)
    tuned = bench.tune(CONTENDERS[policy], bench.time(600.0))
    rule = replace(CONTENDERS[policy].rule, knob=tuned.parameters["knob"])
    replays = Bench(event.trace, states).replay(rule, down_s=event.down_s)
    shares = {}
    for window, (since, until) in event.windows.items():
        polls, lag = look_at(replays, since, until)
        shares[window] = lag / tuned.mean_lag_s, polls / (8 * (until - since) / 600.0)
    return shares, sum(replay.lost for replay in replays)


def test_doubled_rates_are_followed_within_the_day():
    shares, lost = through("rates double")
    assert shares["day 1"][0] < 0.9
    assert shares["day 1"][1] < 1.45
    assert lost == 0


def test_a_backlog_is_found_soon_after_an_outage():
    shares, _ = through("outage")
    assert shares["backlog"][0] < 3.0


def test_a_silent_week_is_forgiven_within_two_days():
    shares, lost = through("silence")
    assert shares["2 days back"][0] < 1.25
    assert shares["silent week"][1] < 0.6
    assert lost == 0


def test_a_plan_meets_batches_where_they_are():
    shares, _ = through("batches", "plan")
    assert shares["three weeks"][0] * shares["three weeks"][1] < 1.1


@pytest.mark.parametrize("policy", ["price", "plan"])
@pytest.mark.parametrize("name", ["wrong stamps", "hour-cut stamps"])
def test_stamps_that_mislead_cost_hardly_anything(name, policy):
    wrong, right = (through(each, policy)[0]["three weeks"] for each in (name, "nothing"))
    assert wrong[0] * wrong[1] < 1.06 * right[0] * right[1]
