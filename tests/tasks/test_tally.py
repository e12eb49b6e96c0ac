"""What the demo and the benchmarks count in a warehouse."""

from __future__ import annotations

from dataclasses import replace
from datetime import timedelta

import pytest

from tasks.tally import read_poll_ids, read_settled, read_tallies
from tasks.warehouse_reader import open_reader


@pytest.fixture
def collected(warehouse, settings, press):
    """Two polls of one source that brought something, one that failed, one debt."""
    first = press.result(
        1, 10, entries=[press.entry("a"), press.entry("b")], articles=[press.article("a", 11)]
    )
    warehouse.store_poll(replace(first, pending=(press.pending("b"),)))
    warehouse.store_poll(press.result(2, 20, outcome="failed", reason="no answer"))
    fresh = replace(press.article("c", 31), published_at=press.at(30))
    warehouse.store_poll(press.result(3, 30, entries=[press.entry("c", 30)], articles=[fresh]))
    warehouse.store_poll(press.result(4, 40, outcome="not_modified"))
    warehouse.close()
    with open_reader(settings) as reader:
        yield reader


def test_polls_and_articles_are_counted(collected, press):
    tally = read_tallies(collected)["daily"]
    assert (tally.polls, tally.empty_polls, tally.failed_polls) == (4, 1, 1)
    assert tally.stored == {"https://daily.example/a": 1, "https://daily.example/c": 1}
    assert tally.megabytes == pytest.approx(0.28)
    assert tally.possible_losses == 0


def test_the_lag_is_of_what_came_out_since_the_first_look(collected):
    assert read_tallies(collected)["daily"].mean_lag_s == 60.0


def test_the_first_look_is_when_the_list_was_had_and_not_when_the_poll_began(collected, press):
    """Between the two, entries may have left the list that nobody could find."""
    tally = read_tallies(collected)["daily"]
    assert tally.first_look_at == press.at(11) > press.at(10)


def test_a_source_that_never_answered_is_counted_from_its_first_poll(warehouse, settings, press):
    warehouse.store_poll(press.result(1, 10, outcome="failed", reason="no answer"))
    warehouse.close()
    with open_reader(settings) as reader:
        assert read_tallies(reader)["daily"].first_look_at == press.at(10)
        assert read_settled(reader, press.start) == set()


def test_every_poll_is_there_by_its_id(collected):
    assert read_poll_ids(collected) == {f"daily#{cycle}" for cycle in (1, 2, 3, 4)}


def test_a_source_is_settled_once_it_was_polled_well_and_owes_nothing(warehouse, settings, press):
    first = press.result(1, 10, entries=[press.entry("a")])
    warehouse.store_poll(replace(first, pending=(press.pending("a"),)))
    second = press.result(2, 20, articles=[press.article("a", 21)], settled=["entry-a"])
    for stored, settled in ((None, set()), (second, {"daily"})):
        if stored is not None:
            warehouse.store_poll(stored)
        rows = warehouse.query(
            "SELECT DISTINCT source FROM polls WHERE source NOT IN"
            " (SELECT source FROM pending_articles)"
        )
        assert {row[0] for row in rows} == settled
    warehouse.close()
    with open_reader(settings) as reader:
        assert read_settled(reader, press.at(20)) == {"daily"}
        assert read_settled(reader, press.at(20) + timedelta(seconds=1)) == set()
