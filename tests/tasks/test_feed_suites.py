"""Test suites of other feed parsers, each with its own expectations, against a floor.

The floor (``benchmarks/feed_floor.json``) may only rise: ``python benchmarks/corpus.py
--raise-floor`` writes it anew where more is right than before.
"""

import sys
from contextlib import suppress
from itertools import combinations
from pathlib import Path

import pytest

from models.errors import ParseError
from models.identity import identify
from models.recognition import is_same
from models.records import KnownEntry, NewEntry
from tasks.feeds import parse_feed

BENCHMARKS = Path(__file__).parents[2] / "benchmarks"
sys.path.insert(0, str(BENCHMARKS))
try:
    from suites.feeds import FOLDER, SUITES, read_suite
    from suites.floor import Floor, fallen, measure_ours, read_floor
    from suites.readers import NOW
    from suites.tally import Tally
    from suites.values import Digest, Either, digest, is_alike, moment_of
finally:
    sys.path.remove(str(BENCHMARKS))

BASE = "https://news.example/"
NINE, SEVEN = moment_of("2024-05-06T09:00+02:00"), moment_of("2024-05-06T07:00")


@pytest.mark.real
@pytest.mark.skipif(not FOLDER.exists(), reason="the real collections are absent")
@pytest.mark.parametrize("suite", SUITES)
def test_nothing_that_was_right_of_a_suite_is_wrong(
    suite: str, capsys: pytest.CaptureFixture[str]
) -> None:
    floor, tally = read_floor()[suite], measure_ours(suite)
    assert fallen(floor, tally) == []
    assert tally.n_read >= floor.n_read
    assert tally.right.total() >= floor.n_right
    if (tally.n_read, tally.right.total()) != (floor.n_read, floor.n_right):
        with capsys.disabled():
            print(f"\n{suite}: more is right than the floor says; `--raise-floor` keeps it")


MIXED_UP_SHARE = 2e-4
"""Pairs of entries listed side by side that may be taken for one: a double listing, adverts."""


@pytest.mark.real
@pytest.mark.skipif(not FOLDER.exists(), reason="the real collections are absent")
def test_entries_that_real_feeds_list_side_by_side_are_not_taken_for_one() -> None:
    n_pairs = n_mixed_up = 0
    for suite in ("wechat-feeds", "rss-parser", "feedjira", "feed-rs", "node-feedparser"):
        for file in read_suite(suite):
            with suppress(ParseError):
                listing = parse_feed(file.answer.body, url=file.answer.base, now=NOW)
                for one, other in combinations(identify("s", listing.entries)[:60], 2):
                    n_pairs += 1
                    n_mixed_up += is_same(one.entry, as_known(other))
    assert n_pairs > 20_000
    assert n_mixed_up <= MIXED_UP_SHARE * n_pairs


def as_known(new: NewEntry) -> KnownEntry:
    entry = new.entry
    return KnownEntry(new.entry_id, "", entry.url, entry.guid, entry.title, entry.published_at)


def test_what_fell_is_named_and_what_was_never_right_is_not() -> None:
    floor = Floor(3, 5, frozenset({"old.xml"}), frozenset({"a.xml 0 date"}))
    tally = Tally(n_read=2, unread=["old.xml", "new.xml"])
    tally.wrong = {"a.xml 0 date": "a.xml 0 date: …", "b.xml 1 title": "b.xml 1 title: 'x' not 'y'"}
    assert fallen(floor, tally) == ["new.xml is no longer read", "b.xml 1 title: 'x' not 'y'"]


def test_the_floor_knows_every_suite() -> None:
    assert list(read_floor()) == list(SUITES)


@pytest.mark.parametrize(
    ("name", "got", "wanted"),
    [
        pytest.param("title", "A big day", "A <b>big</b>  day", id="markup"),
        pytest.param("title", "Olá mundo", "Ol\ufffd mundo", id="a lost character"),
        pytest.param("title", "Rain", Digest(digest("Rain")), id="a digest"),
        pytest.param("link", "https://news.example/a", "/a", id="a relative link"),
        pytest.param("link", "", "ftp://news.example/a", id="an address off the web"),
        pytest.param("link", "https://b.example/", Either(("/a", "//b.example/")), id="one of two"),
        pytest.param("id", "/a", "https://news.example/a", id="an identifier as written"),
        pytest.param("date", NINE, SEVEN, id="one moment"),
        pytest.param("author", ("Vera", "Ivo"), "Vera", id="the first of two"),
        pytest.param("author", "Vera", "desk@news.example (Vera)", id="an address beside the name"),
    ],
)  # fmt: skip
def test_two_ways_to_say_one_thing_are_alike(name: str, got: object, wanted: object) -> None:
    assert is_alike(name, got, wanted, BASE)


@pytest.mark.parametrize(
    ("name", "got", "wanted"),
    [
        ("title", None, "Rain"),
        ("title", "Ol mundo de hoje", "Ol\ufffd mundo"),
        ("title", "Rain", Digest(digest("Snow"))),
        ("link", "https://news.example/b", "/a"),
        ("date", moment_of("2024-05-06T07:00:01"), SEVEN),
        ("author", ("Ivo", "Vera"), "Vera"),
    ],
)
def test_two_different_things_are_not_alike(name: str, got: object, wanted: object) -> None:
    assert not is_alike(name, got, wanted, BASE)
