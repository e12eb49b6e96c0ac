"""Price and plan against numerical integration, brute force, and plain Python."""

import itertools
import math

import numpy as np
import pytest
from hypothesis import assume, example, given, settings
from hypothesis import strategies as st
from scipy.integrate import quad

from models.polling import plan as planning
from models.polling.count import next_by_count
from models.polling.gap import entries_in, poll_price, waiting_in
from models.polling.plan import next_by_plan
from models.polling.price import next_by_price

NOW = 1_000_000.0
HOUR = 3600.0
FLAT = np.ones(60), np.ones(6)

rates = st.lists(st.floats(0.0, 0.02), min_size=12, max_size=12).map(np.array)
bursts = st.tuples(st.floats(0.0, 0.05), st.floats(0.05, 0.7), st.floats(120.0, 7200.0))


NO_BURST = (0.0, 0.0, 1800.0)
unhurried = settings(deadline=None)  # the first call compiles


def by_price(rates_per_s, price, burst=NO_BURST, empty_share=1.0, most=1e9):
    return next_by_price(NOW, rates_per_s, NOW + 900, *burst, price, empty_share, most, 86_400.0)


def by_plan(rates_per_s, price, minutes, seconds, empty_share=1.0, most=1e9, lag_s=0.0):
    return next_by_plan(
        NOW, rates_per_s, NOW + 900, 0.0, 0.0, 1800.0, price, empty_share, most, 86_400.0,
        minutes, seconds, 0.0, lag_s,
    )  # fmt: skip


@unhurried
@given(st.floats(1.0, 20_000.0), st.floats(0.0, 0.1), st.floats(-0.05, 0.1), st.floats(1e-5, 0.05))
def test_entries_and_waiting_are_the_integrals(length, rate, burst, decay):
    def intensity(at):
        return rate + burst * math.exp(-decay * at)

    points = [min(1.0 / decay, length)]
    entries, _ = quad(intensity, 0.0, length, points=points, limit=200)
    waiting, _ = quad(
        lambda at: intensity(at) * (length - at), 0.0, length, points=points, limit=200
    )
    scale = (rate + abs(burst)) * length
    assert entries_in(length, rate, burst, decay) == pytest.approx(
        entries, abs=1e-6 * scale + 1e-12
    )
    assert waiting_in(length, rate, burst, decay) == pytest.approx(
        waiting, abs=1e-6 * scale * length + 1e-12
    )


@unhurried
@given(rates, st.floats(1.0, 1e5), bursts)
def test_at_the_next_poll_the_waiting_is_worth_the_price(rates_per_s, price, burst):
    excess, branching, decay_s = burst
    at, entries, waiting = by_price(rates_per_s, price, burst)
    assume(at < NOW + 86_399)
    ends = NOW + 900 + HOUR * np.arange(-1.0, 30.0)

    def intensity(moment):
        return rates_per_s[min(int(np.searchsorted(ends[1:], moment, side="right")), 11)]

    # The burst restarts from its own value at each hour; walk it as the model does.
    total, delayed, x, since = 0.0, 0.0, excess, NOW
    k = (1.0 - branching) / decay_s
    for end in [*ends[(ends > NOW) & (ends < at)], at]:
        rate = intensity(0.5 * (since + end))
        y = x - branching * rate
        delayed += total * (end - since) + waiting_in(end - since, rate, y, k)
        total += entries_in(end - since, rate, y, k)
        x, since = branching * rate + y * math.exp(-k * (end - since)), end
    assert entries == pytest.approx(total, rel=1e-3, abs=1e-4)
    assert waiting == pytest.approx(delayed, rel=1e-3, abs=1e-2)
    assert waiting == pytest.approx(price, rel=1e-3)


@unhurried
@given(rates, st.floats(1.0, 1e5), st.floats(1.0, 10.0), bursts)
def test_a_higher_price_never_polls_earlier(rates_per_s, price, factor, burst):
    assert by_price(rates_per_s, price * factor, burst)[0] >= by_price(rates_per_s, price, burst)[0]


@unhurried
@given(rates, st.floats(1.0, 1e5), st.floats(1.0, 10.0))
def test_more_weight_never_polls_later(rates_per_s, price, weight):
    # The price of a source is the common one over its weight.
    assert by_price(rates_per_s, price / weight)[0] <= by_price(rates_per_s, price)[0]


@unhurried
@given(rates, st.floats(1.0, 1e5), st.floats(1.0, 4.0))
def test_more_entries_never_poll_later(rates_per_s, price, factor):
    busier = by_price(np.minimum(rates_per_s * factor, 1.0), price)[0]
    assert busier <= by_price(rates_per_s, price)[0] + 1e-3


@unhurried
@given(rates, st.floats(10.0, 1e5), st.floats(0.0025, 1.0))
def test_a_cheap_empty_answer_never_polls_later(rates_per_s, price, empty_share):
    cheap = by_price(rates_per_s, price, empty_share=empty_share)[0]
    assert cheap <= by_price(rates_per_s, price)[0] + 1e-3


@unhurried
@given(rates, st.floats(1.0, 1e6), st.floats(0.5, 20.0))
def test_the_list_is_fetched_before_it_overflows(rates_per_s, price, most):
    at, entries, _ = by_price(rates_per_s, price, most=most)
    assert entries <= most * 1.001 + 1e-3
    assert at > NOW


@unhurried
@given(st.floats(0.0, 40.0), st.floats(0.0, 1.0))
def test_the_price_of_a_poll_lies_between_an_empty_and_a_full_one(entries, empty_share):
    assert empty_share * 100.0 - 1e-9 <= poll_price(100.0, empty_share, entries) <= 100.0 + 1e-9


def test_the_count_rule_waits_for_the_wanted_entries():
    hourly = np.array([1.0, 2.0, 4.0]) / HOUR
    assert next_by_count(NOW, hourly, NOW + HOUR, 2.0, 86_400.0) == pytest.approx(NOW + 1.5 * HOUR)


def test_without_habits_a_plan_is_the_price_rule():
    hourly = np.full(96, 6.0 / HOUR)
    assert by_plan(hourly, 300.0, *FLAT) == by_price(hourly, 300.0)


def test_a_plan_waits_for_the_minute_at_which_entries_come():
    minutes = np.full(60, 0.2)
    minutes[::15] = 12.2
    at, _, _ = by_plan(np.full(96, 4.0 / HOUR), 400.0, minutes, np.ones(6))
    assert at % 900.0 <= 120.0


def test_a_plan_comes_a_lag_later_where_entries_show_late():
    minutes = np.full(60, 0.2)
    minutes[::15] = 12.2
    hourly = np.full(96, 4.0 / HOUR)
    at, _, _ = by_plan(hourly, 400.0, minutes, np.ones(6), lag_s=240.0)
    assert 240.0 <= at % 900.0 <= 360.0


def cost_of(plan, seen, moment, first_s, step_s, gap_s, price):
    """Return what a series of polls costs, as the plan reckons it."""
    last = len(seen) - 1
    at = [0.0] + [first_s + point * step_s for point in range(1, last + 1)]
    total = 0.0
    for here, there in itertools.pairwise([0, *plan, last]):
        part = 1.0 if there < last else min(1.0, (at[last] - at[here]) / gap_s)
        waited = at[there] * (seen[there] - seen[here]) - (moment[there] - moment[here])
        total += waited + price * part
    return total


@settings(max_examples=60, deadline=None)
@given(
    st.lists(st.floats(0.0, 3.0), min_size=3, max_size=8),
    st.floats(1.0, 300.0),
    st.floats(0.0, 0.9),
)
def test_the_plan_is_the_cheapest_of_all_series_of_polls(found, price, offset):
    step_s, gap_s = 20.0, 45.0
    first_s = -offset * step_s
    n = len(found)
    middles = first_s + (np.arange(n) + 0.5) * step_s
    seen = np.concatenate(([0.0], np.cumsum(found)))
    moment = np.concatenate(([0.0], np.cumsum(np.array(found) * middles)))
    costs = {
        plan: cost_of(plan, seen, moment, first_s, step_s, gap_s, price)
        for size in range(n)
        for plan in itertools.combinations(range(1, n), size)
    }
    first = planning._first_poll(seen, moment, first_s, step_s, gap_s, price)
    with_first = min(cost for plan, cost in costs.items() if (*plan, n)[0] == first)
    assert with_first == pytest.approx(min(costs.values()), abs=1e-6)


@settings(max_examples=60, deadline=None)
@given(
    st.lists(st.floats(0.0, 3.0), min_size=3, max_size=7),
    st.floats(1.0, 300.0),
    st.floats(0.0025, 0.9),
)
def test_the_plan_is_the_cheapest_with_cheap_empty_answers_too(found, price, empty_share):
    step_s, gap_s, n = 20.0, 45.0, len(found)
    middles = (np.arange(n) + 0.5) * step_s
    seen = np.concatenate(([0.0], np.cumsum(found)))
    moment = np.concatenate(([0.0], np.cumsum(np.array(found) * middles)))
    costs = {}
    for size in range(n):
        for plan in itertools.combinations(range(1, n), size):
            total = 0.0
            for here, there in itertools.pairwise([0, *plan, n]):
                entries = seen[there] - seen[here]
                share = empty_share + (1.0 - empty_share) * (1.0 - math.exp(-entries))
                if there == n:
                    share *= min(1.0, (there - here) * step_s / gap_s)
                total += there * step_s * entries - (moment[there] - moment[here]) + price * share
            costs[plan] = total
    first = planning._first_poll_with_304s(seen, moment, 0.0, step_s, n, gap_s, price, empty_share)
    with_first = min(cost for plan, cost in costs.items() if (*plan, n)[0] == first)
    assert with_first == pytest.approx(min(costs.values()), abs=1e-6)


@settings(max_examples=25, deadline=None)
@given(rates, st.floats(50.0, 1e4), st.integers(0, 59), st.floats(2.0, 40.0))
@example(np.array([*np.zeros(10), 0.015625, 0.0]), 1117.0, 0, 2.0)
def test_a_plan_costs_no_more_than_the_price_rule_by_its_own_model(
    rates_per_s, price, minute, peak
):
    minutes = np.ones(60)
    minutes[minute] = peak
    minutes *= 60.0 / minutes.sum()
    hourly = np.maximum(rates_per_s, 1e-4)
    planned = polls_of(lambda now: plan_at(now, hourly, price, minutes))
    priced = polls_of(lambda now: price_at(now, hourly, price))
    slack = 1.02  # a grid of seconds, and a horizon that ends
    assert rate_of_cost(planned, hourly, minutes, price) <= slack * rate_of_cost(
        priced, hourly, minutes, price
    )


SPAN_S = 48 * HOUR
"""Four times round the rates: compared over a few polls, who stops before a busy hour wins."""


def polls_of(choose):
    polls = [NOW]
    while polls[-1] < NOW + SPAN_S:
        polls.append(choose(polls[-1]))
    return polls


def ahead(hourly, now):
    """Return the hours from `now` on (hours begin at NOW + 900) and the end of the first."""
    past = 0 if now < NOW + 900 else int((now - NOW - 900) // HOUR) + 1
    return np.roll(hourly, -past), NOW + 900 + past * HOUR


def plan_at(now, hourly, price, minutes):
    rates_per_s, ends = ahead(hourly, now)
    return next_by_plan(
        now, rates_per_s, ends, 0.0, 0.0, 1800.0, price, 1.0, 1e9, 86_400.0, minutes,
        np.ones(6), 0.0, 0.0,
    )[0]  # fmt: skip


def price_at(now, hourly, price):
    rates_per_s, ends = ahead(hourly, now)
    return next_by_price(now, rates_per_s, ends, 0.0, 0.0, 1800.0, price, 1.0, 1e9, 86_400.0)[0]


def rate_of_cost(polls, hourly, minutes, price):
    """Return waiting and prices per second of the true model, over `SPAN_S` second by second.

    All entries of the stretch wait for their poll; of the gap that its end cuts, its part is paid.
    """
    at = np.arange(NOW + 0.5, NOW + SPAN_S)
    hour = np.where(at < NOW + 900, 0, (at - NOW - 900) // HOUR + 1).astype(int) % len(hourly)
    per_s = hourly[hour] * minutes[(at // 60).astype(int) % 60]
    wait = np.array(polls)[np.searchsorted(polls, at)] - at
    part = (NOW + SPAN_S - polls[-2]) / (polls[-1] - polls[-2])
    return ((per_s * wait).sum() + price * (len(polls) - 2 + part)) / SPAN_S


@unhurried
@given(rates, st.floats(1.0, 1e5), bursts, st.floats(0.0025, 1.0))
def test_compiled_and_plain_python_give_the_same_next_poll(rates_per_s, price, burst, share):
    arguments = (NOW, rates_per_s, NOW + 900, *burst, price, share, 8.0, 86_400.0)
    assert next_by_price(*arguments) == next_by_price.py_func(*arguments)
    minutes, seconds = 1.0 + 0.5 * np.sin(np.arange(60.0)), np.linspace(1.4, 0.6, 6)
    shaped = (*arguments, minutes, seconds, 3600.0, 12.5)
    assert next_by_plan(*shaped) == next_by_plan.py_func(*shaped)
