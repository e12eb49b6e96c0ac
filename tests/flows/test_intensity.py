from datetime import UTC, datetime, timedelta

import numpy as np
import pytest

from flows.intensity import Intensities
from flows.pricing import Pricing
from models.intensity.state import write_state
from models.intensity.weekly import overall_per_hour
from models.polling.choice import choose_next_poll
from models.polling.moment import Moment
from models.records import Entry, FittedModel, Observed, PollRules, Source
from tasks.settings import BudgetSettings

START = datetime(2026, 3, 2, tzinfo=UTC)
SOURCE = Source("a", "A", "https://a.example/feed")
OTHER = Source("b", "B", "https://b.example/feed", tags=("tier-1",), weight=2.0)
SOURCES = {"a": SOURCE, "b": OTHER}


def entries(*minutes_ago, now=START):
    return [
        Entry(
            f"https://a.example/{minutes}",
            published_at=now - timedelta(minutes=minutes),
            published_precision="instant",
        )
        for minutes in minutes_ago
    ]


def per_hour(intensities, source="a"):
    return overall_per_hour(intensities.habits(source).state)


def test_a_first_listing_gives_a_fair_rate():
    intensities = Intensities(SOURCES, START)
    listed = entries(*range(10, 310, 10))
    intensities.learn("a", since=None, until=START, entries=listed, n_listed=30)
    assert per_hour(intensities) == pytest.approx(6.0, rel=0.6)
    assert per_hour(intensities) > 3.0
    assert intensities.habits("a").window == 30


def next_wait_s(intensities, source=SOURCE, price=100.0, **rules):
    basis = intensities.basis(source, START, price, counts_bytes=False)
    moment = Moment(source.source, now_s=START.timestamp(), due_s=START.timestamp())
    decision = choose_next_poll(moment, PollRules(**rules), basis)
    return (decision.due_at - START).total_seconds()


@pytest.mark.report("miniflux/v2#2166")
def test_a_list_of_fifty_from_an_hour_is_no_volume_of_a_week():
    busy, quiet = Intensities(SOURCES, START), Intensities(SOURCES, START)
    busy.learn("a", since=None, until=START, entries=entries(*range(1, 51)), n_listed=50)
    week = entries(*range(200, 10_200, 200))
    quiet.learn("a", since=None, until=START, entries=week, n_listed=50)
    assert per_hour(busy) > 20 * per_hour(quiet)
    assert next_wait_s(busy) < 600.0
    assert next_wait_s(busy) < next_wait_s(quiet) / 4


@pytest.mark.report("miniflux/v2#2166")
def test_a_rate_from_few_entries_is_held_less_certain_than_one_from_many():
    few, many = Intensities(SOURCES, START), Intensities(SOURCES, START)
    few.learn("a", since=None, until=START, entries=entries(1, 2), n_listed=2)
    many.learn("a", since=None, until=START, entries=entries(*range(1, 201)), n_listed=200)
    assert per_hour(few) < 10.0
    assert per_hour(many) > 2 * per_hour(few)


@pytest.mark.report("miniflux/v2#2036")
@pytest.mark.parametrize("target_s", [120.0, 600.0])
def test_the_wanted_lag_sets_the_wait_and_not_the_gap_between_entries(target_s):
    wanted = Source("a", "A", "https://a.example/", poll=PollRules(target_lag_s=target_s))
    intensities = Intensities({"a": wanted}, START)
    hourly = entries(*range(30, 30_030, 60))
    intensities.learn("a", since=None, until=START, entries=hourly, n_listed=500)
    priced = Pricing(BudgetSettings(polls_per_day=1.0), [wanted], intensities)
    priced.update(START)
    assert next_wait_s(intensities, wanted, priced.price(wanted)) < 4 * target_s < 3600.0


def test_polls_without_news_lower_the_rate():
    intensities = Intensities(SOURCES, START)
    before = per_hour(intensities)
    for hour in range(1, 25):
        now = START + timedelta(hours=hour)
        since = now - timedelta(hours=1)
        intensities.learn("a", since=since, until=now, entries=[], n_listed=0)
    assert per_hour(intensities) < before / 3


def test_undated_entries_count_where_they_were_found():
    intensities = Intensities(SOURCES, START)
    undated = [Entry(f"https://a.example/{n}") for n in range(8)]
    now = START + timedelta(hours=1)
    intensities.learn("a", since=START, until=now, entries=undated, n_listed=8)
    assert intensities.habits("a").state["level_seen"] == pytest.approx(8.0)


def test_a_fit_and_what_came_since_are_taken_together():
    teacher = Intensities(SOURCES, START)
    teacher.learn("a", since=None, until=START, entries=entries(*range(5, 605, 5)), n_listed=120)
    fit = FittedModel("a", START, "weekly", "plan", write_state(teacher.habits("a").state))
    later = START + timedelta(hours=2)
    stamps = tuple(later.timestamp() - 60.0 * n for n in range(1, 30))
    since = Observed("a", START.timestamp(), later.timestamp(), stamps, 40)
    pupil = Intensities(SOURCES, later)
    pupil.load([fit], [since])
    assert pupil.habits("a").state["updated_at"] == later.timestamp()
    assert pupil.basis(SOURCE, later, 100.0, False).chosen == "plan"
    assert pupil.habits("a").window == 40
    assert per_hour(pupil) > per_hour(teacher)


def test_a_fit_of_a_source_that_left_is_passed_over():
    intensities = Intensities({"b": OTHER}, START)
    state = write_state(Intensities(SOURCES, START).habits("a").state)
    intensities.load([FittedModel("a", START, "weekly", "price", state)], [])
    assert np.isfinite(per_hour(intensities, "b"))


def test_importance_lowers_the_price_of_a_source():
    intensities = Intensities(SOURCES, START)
    assert intensities.basis(OTHER, START, 100.0, False).price == 50.0


def test_an_empty_answer_costs_its_share_where_bytes_are_counted():
    intensities = Intensities(SOURCES, START)
    intensities.note_bytes("a", 200_000, is_empty=False)
    intensities.note_bytes("a", 2_000, is_empty=True)
    assert intensities.basis(SOURCE, START, 1.0, counts_bytes=True).empty_share == 0.01
    assert intensities.basis(SOURCE, START, 1.0, counts_bytes=False).empty_share == 1.0


def pricing(**budget):
    intensities = Intensities(SOURCES, START)
    return Pricing(BudgetSettings(**budget), SOURCES.values(), intensities)


def test_without_a_budget_a_timers_polls_are_spent():
    report = pricing().update(START)
    assert report.planned_per_day == 288.0
    assert report.expected_polls_per_day == pytest.approx(288.0, rel=0.01)


def test_a_budget_of_megabytes_is_met():
    report = pricing(megabytes_per_day=10.0).update(START)
    assert (report.currency, report.expected_per_day) == ("MB", pytest.approx(10.0, rel=0.01))


def test_a_price_that_is_set_is_held():
    priced = pricing(price=90.0)
    report = priced.update(START, spent_per_day=5000.0)
    assert (report.price, report.planned_per_day) == (90.0, None)
    assert priced.price(SOURCE) == 90.0


def test_a_promised_lag_is_kept_by_those_with_the_tag_alone():
    tight = pricing(polls_per_day=48.0, lag_by_tag={"tier-1": 60.0})
    tight.update(START)
    assert tight.price(OTHER) < tight.price(SOURCE)
    loose = pricing(polls_per_day=48.0, lag_by_tag={"tier-1": 86_000.0})
    loose.update(START)
    assert loose.price(OTHER) == loose.price(SOURCE)


def test_a_sources_own_target_counts_like_a_tags():
    quick = Source("a", "A", "https://a.example/", poll=PollRules(target_lag_s=60.0))
    intensities = Intensities({"a": quick}, START)
    priced = Pricing(BudgetSettings(polls_per_day=10.0), [quick], intensities)
    report = priced.update(START)
    assert report.expected_lag_s > 600.0
    assert priced.price(quick) < report.price


def test_overspending_raises_the_price_step_by_step():
    priced = pricing(polls_per_day=100.0)
    calm = priced.update(START, spent_per_day=100.0).price
    for _ in range(20):
        priced.update(START, spent_per_day=150.0)
    assert priced.price(SOURCE) > 1.5 * calm


def test_polls_that_come_late_raise_the_price_until_they_do_not():
    priced = pricing(polls_per_day=500.0)
    calm = priced.update(START)
    pressed = [priced.update(START, spent_per_day=100.0, late_share=0.4) for _ in range(3)]
    assert [report.overload for report in pressed] == [1.5, 2.25, 3.375]
    assert pressed[-1].price == pytest.approx(3.375 * calm.price)
    assert pressed[-1].expected_polls_per_day < calm.expected_polls_per_day
    for _ in range(8):
        report = priced.update(START)
    assert (report.overload, report.price) == (1.0, calm.price)


def test_a_fit_that_another_version_stored_is_passed_over():
    fit = FittedModel("a", START, "weekly", "plan", b"of another version")
    intensities = Intensities(SOURCES, START)
    intensities.load([fit], [])
    assert intensities.habits("a").fitted is None
