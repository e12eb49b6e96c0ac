from datetime import UTC, datetime, timedelta

import pytest
from hypothesis import given
from hypothesis import strategies as st

from models.recognition import is_opaque, is_same, recognise, settled_address, telltales
from models.records import Entry, KnownEntry, NewEntry, Precision

AT = datetime(2024, 5, 6, 9, 0, tzinfo=UTC)
SITE = "https://news.example"
TOKEN = f"{SITE}/rss/articles/CBMi2AVBVV95cUxNQVQ0V0RQWFl"


def listed(
    path: str,
    title: str | None = "Rain ends in the harbour",
    at: datetime | None = AT,
    precision: Precision = "instant",
    guid: str | None = None,
) -> Entry:
    url = path if "://" in path else f"{SITE}{path}"
    return Entry(url, title, guid, at, precision if at else None)


def known(entry: Entry, entry_id: str = "old") -> KnownEntry:
    return KnownEntry(entry_id, "f", entry.url, entry.guid, entry.title, entry.published_at)


EDITED = "Rain ends in the harbour at last"


@pytest.mark.report("miniflux/v2#2358")
@pytest.mark.parametrize(
    ("before", "after"),
    [
        pytest.param("/world/123456-rain-ends", "/world/123456-rain-ends-at-last", id="in front"),
        pytest.param("/rain-ends-a-123456.html", "/rain-ends-at-last-a-123456.html", id="behind"),
        pytest.param("/a/123456/rain-ends", "/a/123456/rain-ends-at-last", id="a part of its own"),
        pytest.param("/rain-ends/123456", "/rain-ends-at-last/123456/", id="the last part"),
        pytest.param("/123456-%d0%b4-%d0%b0", "/123456-%d0%b4-%d0%bd", id="not Latin"),
    ],
)
def test_an_edited_headline_inside_an_address_makes_no_other_entry(before: str, after: str) -> None:
    old = known(listed(before, guid=f"{SITE}{before}"))
    moved_on = AT + timedelta(hours=2)
    assert is_same(listed(after, EDITED, moved_on, guid=f"{SITE}{after}"), old)
    assert is_same(listed(after, "Quite another headline", guid=f"{SITE}{after}"), old)


@pytest.mark.parametrize(
    ("before", "after"),
    [
        pytest.param("/rain-ends-20240506", "/rain-ends-soon-20240506", id="a date"),
        pytest.param("/240506/rain-ends", "/240506/rain-ends-soon", id="a short date"),
        pytest.param("/rain-ends-1714979289", "/rain-ends-soon-1714979289", id="a moment"),
        pytest.param("/rain-ends-2024", "/rain-ends-soon-2024", id="a year"),
        pytest.param("/sport/123456-rain-ends", "/world/123456-rain-ends-soon", id="a section"),
        pytest.param("/123456-rain-ends", "/123457-rain-ends", id="another number"),
        pytest.param("/123456-rain-ends", "https://b.example/123456-rain-ends", id="another host"),
    ],
)
def test_addresses_that_only_look_alike_are_two_entries(before: str, after: str) -> None:
    later = AT + timedelta(hours=2)
    assert not is_same(listed(after, "Rain ends soon", later), known(listed(before)))


def test_a_number_alone_does_not_make_two_stories_one() -> None:
    old = known(listed("/123456-rain-ends"))
    other = listed("/123456-council-votes", "Council votes on schools", AT + timedelta(days=1))
    assert not is_same(other, old)


@pytest.mark.report("Athou/commafeed#1755")
def test_a_fresh_token_in_every_link_makes_no_other_entry() -> None:
    old = known(listed(f"{TOKEN}1Aa", guid="CBMi1Aa"))
    assert is_same(listed(f"{TOKEN}2Bb", guid="CBMi2Bb"), old)
    assert not is_same(listed(f"{TOKEN}2Bb", at=AT + timedelta(minutes=1)), old)
    assert not is_same(listed(f"{TOKEN}2Bb", "Rain ends elsewhere"), old)


def test_a_headline_that_comes_every_day_is_another_entry_each_day() -> None:
    old = known(listed("/weather-1", "Weather", precision="day"))
    assert not is_same(listed("/weather-2", "Weather", precision="day"), old)
    assert not is_same(listed("/weather-2", "Weather", AT + timedelta(days=1)), old)
    assert not is_same(
        listed("/weather-2", "Weather", None), known(listed("/weather-1", "Weather", None))
    )


def test_new_identifiers_for_the_same_addresses_and_headlines_change_nothing() -> None:
    assert is_same(listed("/1", guid="new:1", at=None), known(listed("/1", guid="old:1")))


def test_updates_of_a_live_page_under_other_headlines_stay_apart() -> None:
    old = known(listed("/live", "Gate closed", guid="live#1"))
    assert not is_same(listed("/live", "Gate open", guid="live#2"), old)


def new(number: int, entry: Entry) -> NewEntry:
    return NewEntry(f"new-{number}", entry, "f")


def test_an_entry_is_recognised_once_and_not_where_it_is_still_listed() -> None:
    twins = [new(1, listed(f"{TOKEN}1Aa")), new(2, listed(f"{TOKEN}2Bb"))]
    before = [known(listed(f"{TOKEN}0Cc"))]
    assert recognise(twins, before, ()) == {"new-1": before[0]}
    assert recognise(twins, before, {"old"}) == {}


def test_what_to_look_for_are_headlines_and_numbers() -> None:
    told = telltales([new(1, listed("/123456-rain-ends")), new(2, listed("/a", None))])
    assert (told.titles, told.numbers) == (("Rain ends in the harbour",), ("123456",))


@pytest.mark.parametrize(
    ("address", "opaque"),
    [
        (TOKEN, True),
        (f"{SITE}/Russia-Ends-2024-Talks-With-Neighbours", False),
        (f"{SITE}/0a3f9c1be2d4475f8a6b7c8d9e0f1a2b", False),
        (f"{SITE}/2024/05/06/rain", False),
    ],
)
def test_an_opaque_address_is_a_token_and_no_words(address: str, opaque: bool) -> None:
    assert is_opaque(address) is opaque


@given(st.text(max_size=80))
def test_any_text_may_be_an_address(text: str) -> None:
    settled_address(text)
    settled_address(f"{SITE}/{text}")
    is_same(listed("/1", text), known(listed(f"/{text}", text)))
