"""What the estimators remember, hour by hour, zone by zone, stamp by stamp."""

from datetime import UTC, datetime
from zoneinfo import ZoneInfo

import numpy as np
import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st

from models.intensity.burst import excess_at, observe_burst
from models.intensity.ema import begin_ema, fill_ema, learn_hour_ema
from models.intensity.estimator import ESTIMATORS, fill_rates, observe
from models.intensity.holtwinters import begin_holtwinters, learn_hour_holtwinters
from models.intensity.lag import observe_lag
from models.intensity.phase import fill_phase, observe_phase, trust_of
from models.intensity.stamps import clean_stamps
from models.intensity.state import SOURCE_STATE, new_state, read_state, write_state
from models.intensity.weekly import (
    fill_profile,
    level_of,
    overall_per_hour,
    profile_per_hour,
)
from models.week import HOURS_PER_WEEK, hour_of_week, next_hour, offset_at, zone_table

HOUR, DAY, WEEK = 3600.0, 86_400.0, 604_800.0
MONDAY = 1_735_516_800.0
UTC_ZONE = zone_table("UTC", 2024, 2027)
BERLIN = zone_table("Europe/Berlin", 2024, 2027)
EMPTY = np.empty(0)


def moment(*when, zone="UTC"):
    return datetime(*when, tzinfo=ZoneInfo(zone)).timestamp()


def polled(stamps, since=MONDAY, until=MONDAY + 2 * WEEK, every=HOUR, zone=UTC_ZONE, **fields):
    state = new_state(since)
    for name, value in fields.items():
        state[name] = value
    at = since
    while at < until:
        end = min(at + every, until)
        begin, stop = np.searchsorted(stamps, [at, end], side="right")
        observe(state, at, end, zone, np.ascontiguousarray(stamps[begin:stop]))
        at = end
    return state


def profile_of(state):
    profile = np.empty(HOURS_PER_WEEK)
    fill_profile(state, overall_per_hour(state), profile)
    return profile


def steady(per_hour, seed=1, since=MONDAY, until=MONDAY + 2 * WEEK):
    rng = np.random.default_rng(seed)
    return np.sort(rng.uniform(since, until, rng.poisson(per_hour * (until - since) / HOUR)))


def scattered(hours, counts, rng):
    """Return stamps of so many entries in each hour from MONDAY on."""
    within = rng.uniform(0.0, HOUR, counts.sum())
    return MONDAY + np.sort(np.repeat(hours, counts) * HOUR + within)


class TestZones:
    @pytest.mark.parametrize(
        "name", ["Europe/Berlin", "Asia/Kolkata", "Australia/Lord_Howe", "UTC"]
    )
    @settings(deadline=None)
    @given(st.floats(1_704_067_200.0, 1_830_000_000.0))
    def test_the_offset_is_that_of_the_zone(self, name, at_s):
        zone = zone_table(name, 2023, 2028)
        told = datetime.fromtimestamp(at_s, UTC).astimezone(ZoneInfo(name)).utcoffset()
        assert offset_at(zone, at_s) == told.total_seconds()

    @settings(deadline=None)
    @given(st.floats(1_704_067_200.0, 1_830_000_000.0))
    def test_the_hour_of_the_week_is_the_calendar_s(self, at_s):
        told = datetime.fromtimestamp(at_s, UTC)
        assert hour_of_week(at_s) == told.weekday() * 24 + told.hour
        assert next_hour(at_s) % HOUR == 0.0
        assert 0.0 < next_hour(at_s) - at_s <= HOUR

    def test_a_winter_habit_is_expected_at_the_same_local_hour_in_summer(self):
        days = [moment(2026, 3, day, 9, 30, zone="Europe/Berlin") for day in range(2, 28)]
        stamps = np.sort(np.array([at + 60.0 * k for at in days for k in range(10)]))
        state = polled(stamps, moment(2026, 3, 1), moment(2026, 3, 28), zone=BERLIN)
        rates = np.empty(96)
        now = moment(2026, 3, 28, 0, 0)
        fill_rates(ESTIMATORS["weekly"], state, now, BERLIN, rates)
        monday = moment(2026, 3, 30, 9, 0, zone="Europe/Berlin")
        ahead = int((monday - now) // HOUR)
        around = rates[ahead - 6 : ahead + 6]
        assert around.argmax() == 6
        assert monday % DAY == 7 * HOUR

    @pytest.mark.parametrize("day", [(2026, 3, 29), (2026, 10, 25)])
    def test_a_day_that_changes_its_clock_is_watched_as_long_as_it_lasts(self, day):
        since, until = (
            moment(*when, zone="Europe/Berlin") for when in (day, (*day[:2], day[2] + 1))
        )
        state = polled(EMPTY, since, until, every=700.0, zone=BERLIN)
        watched = state["exposure_h"].sum() / state["weight"]
        assert until - since in (23 * HOUR, 25 * HOUR)
        assert watched == pytest.approx((until - since) / HOUR, rel=0.01)

    def test_the_hour_that_comes_twice_is_watched_twice(self):
        since, until = (moment(2026, 10, 25, zone="Europe/Berlin"), moment(2026, 10, 26, 5))
        state = polled(EMPTY, since, until, zone=BERLIN)
        sunday_two = 6 * 24 + 2
        assert state["exposure_h"][sunday_two] == pytest.approx(2.0, rel=0.05)
        assert state["exposure_h"][sunday_two + 1] == pytest.approx(1.0, rel=0.05)


class TestWeek:
    def test_only_watched_time_counts(self):
        stamps = steady(4.0)
        state = new_state(MONDAY)
        # Watched in the first hour of each day alone.
        for day in range(14):
            since = MONDAY + day * DAY
            found = stamps[(stamps > since) & (stamps <= since + HOUR)]
            observe(state, since, since + HOUR, UTC_ZONE, np.ascontiguousarray(found))
        assert state["exposure_h"].sum() / state["weight"] == pytest.approx(14.0, rel=0.1)
        assert overall_per_hour(state) == pytest.approx(4.0, rel=0.35)

    @pytest.mark.parametrize("every", [300.0, 1700.0, 5 * HOUR])
    def test_the_rate_does_not_depend_on_how_often_was_polled(self, every):
        state = polled(steady(6.0), every=every)
        assert overall_per_hour(state) == pytest.approx(6.0, rel=0.06)
        assert level_of(state) == pytest.approx(1.0, abs=0.35)

    def test_no_hour_is_ever_thought_impossible(self):
        state = polled(steady(0.1))
        assert profile_of(state).min() > 0.0

    def test_a_week_is_enough_to_know_day_from_night(self):
        rng = np.random.default_rng(2)
        hours = np.arange(168)
        counts = rng.poisson(np.where((hours % 24 >= 8) & (hours % 24 < 20), 5.0, 0.2))
        stamps = MONDAY + np.sort(
            np.repeat(hours, counts) * HOUR + rng.uniform(0, HOUR, counts.sum())
        )
        profile = profile_of(polled(stamps, until=MONDAY + WEEK))
        day = (hours % 24 >= 8) & (hours % 24 < 20)
        assert profile[day].mean() == pytest.approx(5.0, rel=0.1)
        assert profile[~day & (hours % 24 != 7) & (hours % 24 != 20)].mean() < 0.7
        # Chance alone would scatter a raw bin by nearly half.
        assert profile[day].std() < 0.25 * profile[day].mean()

    def test_weekends_lean_on_workdays(self):
        rng = np.random.default_rng(3)
        hours = np.arange(5 * 24)
        counts = rng.poisson(np.where(hours % 24 < 12, 6.0, 0.5))
        stamps = MONDAY + np.sort(
            np.repeat(hours, counts) * HOUR + rng.uniform(0, HOUR, counts.sum())
        )
        # The first Saturday has not come yet: its mornings are expected to be busier too.
        profile = profile_of(polled(stamps, until=MONDAY + 5 * DAY))
        assert profile[5 * 24 + 2 : 5 * 24 + 10].mean() > 4 * profile[5 * 24 + 14 : 6 * 24].mean()

    def test_one_hour_and_all_hours_agree(self):
        state = polled(steady(2.0))
        overall = overall_per_hour(state)
        single = [profile_per_hour(state, hour, overall) for hour in range(HOURS_PER_WEEK)]
        assert profile_of(state).tolist() == single

    def test_a_doubling_is_followed_within_the_day(self):
        before, after = steady(5.0), steady(10.0, 2, MONDAY + 2 * WEEK, MONDAY + 2 * WEEK + DAY)
        state = polled(np.concatenate((before, after)), until=MONDAY + 2 * WEEK + DAY)
        rates = np.empty(24)
        fill_rates(ESTIMATORS["weekly"], state, MONDAY + 2 * WEEK + DAY, UTC_ZONE, rates)
        assert 6.5 < rates.mean() * HOUR < 11.0

    def test_old_habits_fade(self):
        state = polled(steady(10.0, until=MONDAY + WEEK), until=MONDAY + 40 * WEEK, every=6 * HOUR)
        assert overall_per_hour(state) < 0.2

    def test_rates_stay_finite_when_weights_are_scaled_down(self):
        state = polled(steady(3.0), until=MONDAY + 130 * WEEK, every=DAY)
        assert np.isfinite(profile_of(state)).all()
        assert 1.0 <= state["weight"] < 1e4


class TestHours:
    def test_the_average_is_that_of_the_formula(self):
        state, alpha, expected = new_state(0.0), 0.1, 4.0
        begin_ema(state, np.full(24, 4.0))
        for count in (3.0, 0.0, 12.0):
            learn_hour_ema(state, count)
            expected = alpha * count + (1.0 - alpha) * expected
        rates = np.empty(3)
        fill_ema(state, rates)
        assert rates.tolist() == pytest.approx([expected / HOUR] * 3)

    def test_seasons_begin_where_the_hours_say(self):
        hours = np.arange(2 * HOURS_PER_WEEK)
        counts = (hours % 24 == 9) * 6.0 + (hours // 24 % 7 == 5) * 2.0 + 1.0
        state = new_state(0.0)
        # The counts begin on a Thursday.
        begin_holtwinters(state, np.roll(counts, -72), 72)
        told = state["hw_level"] + np.tile(state["hw_day"], 7) + state["hw_week"]
        assert told.tolist() == pytest.approx(counts[:HOURS_PER_WEEK].tolist())

    def test_a_perfect_forecast_changes_nothing(self):
        state = new_state(0.0)
        begin_holtwinters(state, np.tile(np.arange(24.0), 14), 0)
        before = state.copy()
        for hour in range(HOURS_PER_WEEK):
            learn_hour_holtwinters(state, hour, float(hour % 24))
        for name in ("hw_level", "hw_trend", "hw_day", "hw_week"):
            assert np.allclose(state[name], before[name], atol=1e-9)


class TestBursts:
    def test_a_poll_of_many_entries_excites_and_time_calms(self):
        state = new_state(0.0)
        state["branching"], state["decay_s"] = 0.5, 600.0
        observe_burst(state, np.array([10.0, 20.0, 30.0]))
        excited = excess_at(state, 30.0)
        assert excited > 2.5 * 0.5 / 600.0
        assert excess_at(state, 30.0 + 600.0) == pytest.approx(excited / np.e)

    def test_entries_of_one_second_are_one_act(self):
        one, many = new_state(0.0), new_state(0.0)
        for state, stamps in ((one, [50.0]), (many, [50.0, 50.0, 50.4])):
            state["branching"] = 0.4
            observe_burst(state, np.array(stamps))
        assert excess_at(one, 60.0) == excess_at(many, 60.0)

    def test_without_branching_nothing_is_remembered(self):
        state = new_state(0.0)
        observe_burst(state, np.array([1.0, 2.0]))
        assert excess_at(state, 2.0) == 0.0


class TestWithinTheHour:
    @given(st.lists(st.floats(0.0, 1e7), max_size=80), st.floats(0.0, 1.0))
    @settings(deadline=None)
    def test_shapes_have_mean_one_and_are_never_zero(self, stamps, trust):
        state = new_state(0.0)
        state["phase_trust"] = trust
        observe_phase(state, UTC_ZONE, np.array(stamps))
        minutes, seconds = np.empty(60), np.empty(6)
        fill_phase(state, minutes, seconds)
        assert minutes.mean() == pytest.approx(1.0)
        assert seconds.mean() == pytest.approx(1.0)
        assert min(minutes.min(), seconds.min()) > 0.0

    def test_a_quarter_hour_habit_stands_out(self):
        state = new_state(0.0)
        state["phase_trust"] = 1.0
        observe_phase(state, UTC_ZONE, MONDAY + np.arange(400) * 900.0 + 3.0)
        minutes, seconds = np.empty(60), np.empty(6)
        fill_phase(state, minutes, seconds)
        assert np.flatnonzero(minutes > 2.0).tolist() == [0, 15, 30, 45]
        assert seconds.argmax() == 0

    def test_stamps_cut_to_the_hour_lose_their_trust(self):
        state = new_state(0.0)
        state["phase_trust"] = 1.0
        rng = np.random.default_rng(4)
        for appears in MONDAY + np.sort(rng.uniform(0, 10 * DAY, 300)):
            poll = np.ceil(appears / 600.0) * 600.0
            observe_lag(state, poll - 600.0, poll, np.array([appears // HOUR * HOUR]))
        assert trust_of(state) == 0.0

    def test_a_steady_lag_keeps_it(self):
        state = new_state(0.0)
        state["phase_trust"] = 1.0
        rng = np.random.default_rng(5)
        for stamp in MONDAY + np.sort(rng.uniform(0, 10 * DAY, 300)):
            appears = stamp + 90.0 + rng.exponential(20.0)
            poll = np.ceil(appears / 60.0) * 60.0
            observe_lag(state, poll - 60.0, poll, np.array([stamp]))
        assert 60.0 < state["lag_s"] < 150.0
        assert trust_of(state) > 0.7


class TestStamps:
    @given(
        st.lists(st.floats(-1e10, 1e10), max_size=30),
        st.floats(0.0, 2e9),
        st.floats(1.0, 1e6),
        st.integers(0, 10),
    )
    @settings(deadline=None)
    def test_every_entry_is_kept_inside_what_can_be_true(self, stamps, since, gap, n_undated):
        clean = clean_stamps(np.array(stamps), since, since + gap, n_undated)
        assert len(clean) == len(stamps) + n_undated
        assert (np.diff(clean) >= 0.0).all()
        assert len(clean) == 0 or (since - 1800.0 <= clean[0] and clean[-1] <= since + gap)

    @settings(deadline=None)
    @given(st.floats(0.0, 2e9), st.floats(60.0, 1e5))
    def test_stamps_that_can_be_true_stay(self, since, gap):
        stamps = since + gap * np.array([0.1, 0.5, 0.9])
        assume((np.diff(stamps) > 0.0).all())
        assert clean_stamps(stamps[::-1], since, since + gap).tolist() == stamps.tolist()


def test_a_state_survives_being_stored():
    state = polled(steady(3.0))
    assert read_state(write_state(state)).tobytes() == state.tobytes()
    with pytest.raises(ValueError, match="no source state"):
        read_state(b"short")


def test_a_state_is_small():
    assert SOURCE_STATE.itemsize <= 4096


@pytest.mark.parametrize("function", [overall_per_hour, level_of, trust_of])
def test_compiled_and_plain_python_agree(function):
    state = polled(steady(3.0), phase_trust=0.5, late_share=0.05)
    record = np.array([state], dtype=SOURCE_STATE).view(np.recarray)[0]
    assert function(state) == function.py_func(record)


def test_learning_an_hour_is_the_same_compiled_and_in_plain_python():
    state = polled(steady(3.0))
    record = np.array([state], dtype=SOURCE_STATE).view(np.recarray)[0]
    learn_hour_holtwinters(state, 100, 7.0)
    learn_hour_holtwinters.py_func(record, 100, 7.0)
    learn_hour_ema(state, 7.0)
    learn_hour_ema.py_func(record, 7.0)
    assert record.tobytes() == state.tobytes()
