"""What polls and entries of the warehouse tell of a source's past."""

import numpy as np
import pytest

from tasks.warehouse_reader import open_reader

DAILY = [("daily", "Europe/Berlin")]


def seconds(press, *minutes):
    return [press.at(minute).timestamp() for minute in minutes]


@pytest.fixture
def read(settings, press):
    """Reads the history of sources, as the refit does: beside the writer that serves."""

    def run(sources=DAILY, since=-60, until=600):
        with open_reader(settings) as reader:
            return reader.read_histories(sources, press.at(since), press.at(until))

    return run


@pytest.fixture
def stored(warehouse, press):
    """An hour of a source: a first look, a find, an empty poll, a failure, a find after it."""
    first = [press.entry("a", -120), press.entry("b", -60), press.entry("c", -30)]
    polls = [
        {"entries": first, "overlap": None},
        {"entries": [press.entry("d", 15)]},
        {},
        {"outcome": "failed"},
        {"entries": [press.entry("e", 38, published_at=None), press.entry("f", 41)]},
    ]
    for cycle, parts in enumerate(polls, start=1):
        warehouse.store_poll(press.result(cycle, minutes=10 * cycle, **parts))
    warehouse.serve()
    return warehouse


def test_a_history_is_read_beside_the_writer(stored, press, read):
    (history,) = read()
    assert (history.source, history.timezone) == ("daily", "Europe/Berlin")
    assert history.stamps_s[:3].tolist() == seconds(press, -60, -30, 15)
    assert history.stamps_s[-1] == press.at(41).timestamp()
    assert len(history.stamps_s) == 5
    assert history.spans().tolist() == [seconds(press, -120, 50)]


def test_a_failed_poll_covers_nothing_and_the_next_one_the_time_since(stored, press, read):
    (history,) = read()
    undated = history.stamps_s[3]
    assert press.at(30).timestamp() <= undated <= press.at(50).timestamp()


def test_sightings_name_the_polls_around_an_appearance(stored, press, read):
    (history,) = read()
    assert history.sightings_s[0].tolist() == seconds(press, 15, 10, 20)


def test_polls_outside_the_stretch_do_not_count(stored, press, read):
    (history,) = read(until=25)
    assert history.end_s == press.at(20).timestamp()
    assert history.stamps_s.tolist() == seconds(press, -60, -30, 15)
    assert read(since=100) == []


def test_a_possible_loss_leaves_a_hole(warehouse, press, read):
    warehouse.store_poll(press.result(1, 10))
    lost = [press.entry(f"x{n}", 200 + 10 * n) for n in range(5)]
    warehouse.store_poll(press.result(2, 300, entries=lost, overlap=False, possible_loss=True))
    warehouse.store_poll(press.result(3, 310))
    warehouse.serve()
    (history,) = read()
    assert history.spans().tolist() == [seconds(press, 200, 310)]
    assert history.stamps_s.tolist() == seconds(press, 210, 220, 230, 240)


def test_a_stamp_exact_to_the_day_is_none(warehouse, press, read):
    warehouse.store_poll(press.result(1, 10))
    dated = press.entry("a", 12, published_precision="day")
    warehouse.store_poll(press.result(2, 20, entries=[dated]))
    warehouse.serve()
    (history,) = read()
    assert press.at(10).timestamp() < history.stamps_s[0] < press.at(20).timestamp()
    assert len(history.sightings_s) == 0


def test_sources_come_in_the_order_asked_for_without_those_never_polled(
    warehouse, press, settings, read
):
    warehouse.sync_sources([press.source("daily"), press.source("it's")], press.start)
    for name in ("daily", "it's"):
        warehouse.store_poll(press.result(1, 10, source=name))
    warehouse.serve()
    zones = [("nobody", "UTC"), ("it's", "UTC"), ("daily", "Asia/Tokyo")]
    found = read(zones)
    assert [(item.source, item.timezone) for item in found] == [
        ("it's", "UTC"),
        ("daily", "Asia/Tokyo"),
    ]


def test_the_file_is_read_where_nobody_writes(settings, press, stored, read):
    (live,) = read()
    stored.close()
    (closed,) = read()
    np.testing.assert_array_equal(live.stamps_s, closed.stamps_s)
    assert live.spans().tolist() == closed.spans().tolist()
