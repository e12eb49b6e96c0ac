from __future__ import annotations

from datetime import UTC, datetime, timedelta
from zoneinfo import ZoneInfo

import numpy as np
import pytest

from models.publication import (
    MINUTES_PER_WEEK,
    PublicationHabits,
    fit_burstiness,
    generate_times,
    local_minutes,
)

MONDAY = datetime(2025, 3, 3, tzinfo=UTC)
FLAT_WEEK = (1.0,) * 168
OFFICE_WEEK = tuple(
    9.0 if 9 <= hour < 18 and day < 5 else 1.0 for day in range(7) for hour in range(24)
)


def draw(habits: PublicationHabits, weeks: float, seed: int = 1) -> list[datetime]:
    end = MONDAY + timedelta(weeks=weeks)
    return generate_times(habits, MONDAY, end, np.random.default_rng(seed))


@pytest.mark.parametrize("per_day", [5.0, 50.0, 300.0])
@pytest.mark.parametrize("ratio", [0.0, 0.5])
def test_the_rate_is_the_stated_one(per_day: float, ratio: float) -> None:
    habits = PublicationHabits(per_day, OFFICE_WEEK, branching_ratio=ratio, decay_minutes=20.0)
    n_days = 140
    expected = per_day * n_days
    spread = np.sqrt(expected) / (1.0 - ratio)
    assert abs(len(draw(habits, n_days / 7)) - expected) < 4 * spread


def test_the_same_seed_gives_the_same_times() -> None:
    habits = PublicationHabits(100.0, OFFICE_WEEK, branching_ratio=0.4)
    assert draw(habits, 1, seed=7) == draw(habits, 1, seed=7)
    assert draw(habits, 1, seed=7) != draw(habits, 1, seed=8)


@pytest.mark.parametrize("ratio", [0.0, 0.5])
def test_hours_of_the_local_week_follow_the_profile(ratio: float) -> None:
    habits = PublicationHabits(
        200.0,
        OFFICE_WEEK,
        branching_ratio=ratio,
        decay_minutes=10.0,
        timezone="Asia/Shanghai",
    )
    zone = ZoneInfo("Asia/Shanghai")
    local = [at.astimezone(zone) for at in draw(habits, 20)]
    counts = np.bincount([at.weekday() * 24 + at.hour for at in local], minlength=168)
    weights = np.array(OFFICE_WEEK)
    expected = weights / weights.sum() * len(local)
    assert np.abs(counts - expected).sum() / len(local) < 0.12
    assert counts[9:18].sum() > 6 * counts[0:9].sum()


def test_the_change_of_clocks_moves_the_hours() -> None:
    sunday = datetime(2025, 3, 29, 22, tzinfo=UTC)  # clocks go forward at 01:00 UTC
    minutes = local_minutes(sunday, 6 * 60, "Europe/Berlin")
    hours = [int(minute) // 60 % 24 for minute in minutes[::60]]
    assert hours == [23, 0, 1, 3, 4, 5]


@pytest.mark.parametrize("zone", ["Asia/Kolkata", "Asia/Kathmandu", "UTC"])
def test_zones_off_the_full_hour_are_followed(zone: str) -> None:
    opening = datetime(2025, 3, 5, 10, 7, tzinfo=UTC)
    local = (opening + timedelta(minutes=100)).astimezone(ZoneInfo(zone))
    expected = (local.weekday() * 24 + local.hour) * 60 + local.minute
    assert local_minutes(opening, 101, zone)[100] == expected


@pytest.mark.parametrize("ratio", [0.0, 0.5])
def test_minutes_of_the_hour_follow_the_profile(ratio: float) -> None:
    on_the_clock = (20.0, *(1.0,) * 59)
    habits = PublicationHabits(100.0, FLAT_WEEK, on_the_clock, ratio, decay_minutes=20.0)
    minutes = np.array([at.minute for at in draw(habits, 20)])
    share = float((minutes == 0).mean())
    assert share == pytest.approx(20 / 79, abs=0.03 if ratio == 0 else 0.08)


def test_bursts_make_counts_more_spread_than_poisson() -> None:
    def dispersion(ratio: float) -> float:
        habits = PublicationHabits(200.0, FLAT_WEEK, branching_ratio=ratio, decay_minutes=15.0)
        hours = [int((at - MONDAY) / timedelta(hours=2)) for at in draw(habits, 10)]
        counts = np.bincount(hours)
        return float(counts.var() / counts.mean())

    assert dispersion(0.0) == pytest.approx(1.0, abs=0.25)
    assert dispersion(0.6) > 3.0


def test_what_was_drawn_is_fitted_again() -> None:
    habits = PublicationHabits(150.0, OFFICE_WEEK, branching_ratio=0.4, decay_minutes=15.0)
    times = draw(habits, 8)
    minutes = np.array([(at - MONDAY) / timedelta(minutes=1) for at in times])
    of_week = local_minutes(MONDAY, 8 * MINUTES_PER_WEEK, "UTC")
    ratio, decay = fit_burstiness(minutes, habits.expected_per_minute()[of_week])
    assert ratio == pytest.approx(0.4, abs=0.1)
    assert decay in (8.0, 15.0, 30.0)


def test_no_bursts_are_found_where_there_are_none() -> None:
    habits = PublicationHabits(150.0, OFFICE_WEEK)
    minutes = np.array([(at - MONDAY) / timedelta(minutes=1) for at in draw(habits, 8)])
    of_week = local_minutes(MONDAY, 8 * MINUTES_PER_WEEK, "UTC")
    ratio, _ = fit_burstiness(minutes, habits.expected_per_minute()[of_week])
    assert ratio <= 0.1


def test_times_are_in_order_inside_the_span_and_on_the_resolution() -> None:
    habits = PublicationHabits(300.0, FLAT_WEEK, branching_ratio=0.5, resolution_s=60)
    start = MONDAY + timedelta(hours=5, seconds=7)
    times = generate_times(habits, start, start + timedelta(days=2), np.random.default_rng(2))
    assert times == sorted(times)
    assert all(start <= at < start + timedelta(days=2) for at in times)
    assert all(at.second == 0 and at.microsecond == 0 and at.tzinfo is UTC for at in times)


def test_spontaneous_and_total_agree_over_the_week() -> None:
    habits = PublicationHabits(80.0, OFFICE_WEEK, branching_ratio=0.5, decay_minutes=60.0)
    assert habits.expected_per_minute().sum() == pytest.approx(560.0)
    assert habits.spontaneous_per_minute().sum() == pytest.approx(280.0)
    assert habits.spontaneous_per_minute().min() >= 0.0


@pytest.mark.parametrize(
    ("changes", "word"),
    [
        ({"hour_of_week": (1.0,) * 24}, "168 weights"),
        ({"minute_of_hour": (0.0,) * 60}, "not all 0"),
        ({"minute_of_hour": (-1.0, *(1.0,) * 59)}, "0 and above"),
        ({"entries_per_day": 0.0}, "entries_per_day"),
        ({"branching_ratio": 1.0}, "branching_ratio"),
        ({"decay_minutes": 0.0}, "decay_minutes"),
    ],
)
def test_habits_nobody_has_are_refused(changes: dict[str, object], word: str) -> None:
    fields: dict[str, object] = {"entries_per_day": 10.0, "hour_of_week": FLAT_WEEK}
    with pytest.raises(ValueError, match=word):
        PublicationHabits(**(fields | changes))  # type: ignore[arg-type]
