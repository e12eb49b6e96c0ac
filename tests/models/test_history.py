"""What was watched, and what came out meanwhile."""

import numpy as np
import pytest

from models.intensity.history import History, make_history

HOUR = 3600.0


def history(entries, breaks=((np.nan, 0.0),), polled=(0.0, 10 * HOUR)):
    return make_history(
        "daily",
        "UTC",
        polled_s=polled,
        breaks_s=np.array(breaks, dtype=np.float64).reshape(-1, 2),
        entries_s=np.array(entries, dtype=np.float64).reshape(-1, 3),
    )


def test_a_history_without_entries_covers_what_was_polled():
    past = history([])
    assert past.spans().tolist() == [[0.0, 10 * HOUR]]
    assert past.stamps_s.tolist() == []
    assert past.covered_h() == 10.0


def test_a_source_polled_once_covers_nothing():
    past = history([], polled=(0.0, 0.0))
    assert past.covered_h() == 0.0
    assert past.counts()[1].tolist() == []


def test_the_first_listing_covers_the_time_that_its_entries_span():
    listed = [(stamp, np.nan, 0.0) for stamp in (-4 * HOUR, -3 * HOUR, -HOUR)]
    past = history(listed)
    assert past.spans().tolist() == [[-4 * HOUR, 10 * HOUR]]
    assert past.stamps_s.tolist() == [-3 * HOUR, -HOUR]


def test_an_old_post_pinned_to_the_top_covers_nothing():
    pinned = [(-13 * 86_400.0, np.nan, 0.0)]
    listed = [(-hour * HOUR, np.nan, 0.0) for hour in range(1, 20)]
    past = history(pinned + listed)
    assert past.start_s >= -19 * HOUR


def test_entries_older_than_two_weeks_at_the_first_look_are_left_out():
    listed = [(-day * 86_400.0, np.nan, 0.0) for day in (2, 3, 30, 400)]
    assert history(listed).start_s == -3 * 86_400.0


def test_between_polls_that_do_not_overlap_only_the_listing_counts():
    breaks = [(np.nan, 0.0), (2 * HOUR, 6 * HOUR)]
    found = [(stamp * HOUR, 2 * HOUR, 6 * HOUR) for stamp in (5.0, 5.5, 5.8)]
    past = history(found, breaks)
    assert past.spans().tolist() == [[0.0, 2 * HOUR], [5 * HOUR, 10 * HOUR]]
    assert past.stamps_s.tolist() == [5.5 * HOUR, 5.8 * HOUR]
    assert np.isnan(past.counts()[1][2:5]).all()
    assert past.counts()[1][5] == 2.0


def test_an_entry_without_a_date_is_spread_over_its_gap():
    undated = [(np.nan, HOUR, 2 * HOUR)] * 2
    future = [(9e9, 3 * HOUR, 4 * HOUR)]
    backdated = [(-1e9, 5 * HOUR, 6 * HOUR)]
    past = history(undated + future + backdated)
    first, second, third, fourth = past.stamps_s / HOUR
    assert second - first == pytest.approx(0.5)
    assert 1 <= first <= 1.5
    assert 3 <= third <= 4
    assert 5 <= fourth <= 6


def test_entries_without_dates_make_no_habit_of_a_minute():
    hours = np.arange(0.0, 600.0)
    undated = [(np.nan, since * HOUR, (since + 1) * HOUR) for since in hours]
    minutes = np.bincount((history(undated).stamps_s % HOUR // 600).astype(int), minlength=6)
    assert minutes.min() > 80


def test_a_stamp_a_little_ahead_of_the_poll_is_of_just_now():
    assert history([(HOUR + 60.0, 0.0, HOUR)]).stamps_s.tolist() == [HOUR]


def test_sightings_are_the_dated_entries_of_polls_that_overlap():
    found = [(-10.0, np.nan, 0.0), (np.nan, 0.0, HOUR), (30.0, 0.0, HOUR)]
    past = history(found)
    assert past.sightings_s is not None
    assert past.sightings_s.tolist() == [[30.0, 0.0, HOUR]]


def test_an_hour_is_counted_only_if_it_was_watched_whole():
    past = History("a", np.array([10.0, HOUR + 5.0]), 600.0, 3 * HOUR)
    first, counts = past.counts()
    assert first == 0.0
    np.testing.assert_array_equal(counts, [np.nan, 1.0, 0.0])


@pytest.mark.parametrize("n", [0, 1])
def test_a_trace_without_polls_is_covered_all_the_time(n):
    past = History("a", np.arange(n) + 5.0, 0.0, HOUR)
    assert past.covered_h() == 1.0
    assert past.counts()[1].tolist() == [n]
