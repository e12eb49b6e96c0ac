import pickle
import time
from datetime import UTC, datetime, timedelta

import pytest

from tasks.clock import Clock

NOON = datetime(2026, 3, 5, 12, tzinfo=UTC)


def test_an_ordinary_clock_shows_the_time_of_the_wall():
    before = datetime.now(UTC)
    shown = Clock().now()
    assert before <= shown <= datetime.now(UTC)


def test_a_fast_clock_starts_where_it_is_told_and_runs_at_its_speed():
    clock = Clock.starting_at(NOON, speed=3600.0)
    assert timedelta(0) <= clock.now() - NOON < timedelta(hours=1)
    assert clock.at_wall(clock.anchor_wall + 2.0) == NOON + timedelta(hours=2)


@pytest.mark.parametrize("speed", [0.5, 1.0, 60.0, 86_400.0])
def test_wall_time_and_clock_time_turn_into_each_other(speed):
    clock = Clock(speed=speed, anchor_wall=1_700_000_000.0, anchor_at=NOON.timestamp())
    at = NOON + timedelta(hours=5)
    # Wall times as floats are right to a quarter of a microsecond, times the speed.
    tolerance = timedelta(microseconds=1 + speed / 4)
    assert abs(clock.at_wall(clock.wall_of(at)) - at) <= tolerance
    assert clock.wall_time_of(at).timestamp() == pytest.approx(clock.wall_of(at), abs=1e-3)


def test_processes_agree_on_the_time_through_the_spelling():
    clock = Clock.starting_at(NOON, speed=61.7)
    assert Clock.read_spelling(clock.spell()) == clock
    assert pickle.loads(pickle.dumps(clock)) == clock


@pytest.mark.parametrize("text", ["", "60", "0:1:2", "-1:1:2", "a:b:c", "1:2:3:4"])
def test_a_spelling_that_is_none_is_refused(text):
    with pytest.raises(ValueError):
        Clock.read_spelling(text)


async def test_sleep_takes_less_wall_time_on_a_fast_clock():
    clock = Clock.starting_at(NOON, speed=1000.0)
    started = time.perf_counter()
    await clock.sleep(50.0)
    assert 0.04 <= time.perf_counter() - started < 2.0


async def test_sleeping_until_the_past_returns_at_once():
    started = time.perf_counter()
    await Clock().sleep_until(datetime.now(UTC) - timedelta(days=1))
    await Clock().sleep(-5.0)
    assert time.perf_counter() - started < 0.5


async def test_sleep_until_ends_at_the_moment_on_the_clock():
    clock = Clock.starting_at(NOON, speed=600.0)
    await clock.sleep_until(NOON + timedelta(minutes=1))
    assert clock.now() >= NOON + timedelta(minutes=1)


def test_all_times_are_aware_utc():
    clock = Clock.starting_at(NOON, 2.0)
    assert clock.now().utcoffset() == timedelta(0)
    assert clock.wall_time_of(NOON).utcoffset() == timedelta(0)
