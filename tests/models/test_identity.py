from dataclasses import replace
from datetime import UTC, datetime

import pytest
from hypothesis import given
from hypothesis import strategies as st

from models.identity import (
    article_id,
    entry_id,
    entry_key,
    identify,
    listing_fingerprint,
    page_key,
    repeated_guids,
    url_key,
)
from models.records import Entry

PAGE = "https://news.example/world/rain-ends?id=7"


@pytest.mark.parametrize(
    "other",
    [
        pytest.param("http://news.example/world/rain-ends?id=7", id="scheme"),
        pytest.param("https://NEWS.example:443/world/rain-ends?id=7", id="host case and port"),
        pytest.param("https://news.example/world/rain-ends?id=7#comments", id="fragment"),
        pytest.param("https://news.example/world/rain-ends/?id=7", id="trailing slash"),
        pytest.param(
            f"{PAGE}&utm_source=feed&utm_medium=rss",
            id="utm",
            marks=pytest.mark.report("wallabag/wallabag#1102"),
        ),
        pytest.param(f"{PAGE}&fbclid=abc&gclid=d&yclid=e&_openstat=f", id="click ids"),
        pytest.param(f" {PAGE} ", id="spaces around"),
        pytest.param("https://me:secret@news.example/world/rain-ends?id=7", id="user"),
        pytest.param(f"{PAGE}&from=rss", id="came by feed"),
    ],
)
def test_two_addresses_of_one_page_have_one_key(other: str) -> None:
    assert url_key(other) == url_key(PAGE)


@pytest.mark.parametrize(
    "other",
    [
        pytest.param("https://news.example/world/rain-ends?id=8", id="parameter"),
        pytest.param("https://news.example/world/rain-ends", id="no parameter"),
        pytest.param("https://news.example/World/rain-ends?id=7", id="path case"),
        pytest.param("https://m.news.example/world/rain-ends?id=7", id="host"),
        pytest.param("https://news.example:8080/world/rain-ends?id=7", id="port"),
        pytest.param(f"{PAGE}#!/photo/2", id="route"),
        pytest.param(f"{PAGE}&from=politics", id="section"),
    ],
)
def test_addresses_of_different_pages_have_different_keys(other: str) -> None:
    assert url_key(other) != url_key(PAGE)


def test_order_of_parameters_is_kept_in_the_key() -> None:
    assert url_key("https://a.example/?b=1&a=2") == "a.example?b=1&a=2"


@pytest.mark.report("scrapy/w3lib#222")
def test_only_the_host_is_made_punycode() -> None:
    assert url_key("https://тест.тест:33") == "xn--e1aybc.xn--e1aybc:33"


def test_text_that_is_no_address_is_its_own_key() -> None:
    assert url_key("  not an\n address ") == "not an address"


@given(st.text(max_size=60))
def test_a_key_can_be_made_of_any_text(text: str) -> None:
    assert url_key(text) == url_key(text)
    assert isinstance(url_key(f"https://a.example/{text}"), str)


def entry(number: int, **fields: object) -> Entry:
    return replace(Entry(f"https://news.example/{number}", f"Title {number}"), **fields)


@pytest.mark.report("miniflux/v2#4197")
def test_one_guid_on_every_item_does_not_make_them_one() -> None:
    listing = [entry(number, guid="article") for number in range(10)]
    assert len({new.entry_id for new in identify("daily", listing)}) == 10


def test_guid_keeps_an_entry_the_same_when_its_link_moves() -> None:
    before = entry(1, guid="tag:1")
    after = replace(before, url="https://news.example/moved")
    assert entry_id("daily", before) == entry_id("daily", after)


@pytest.mark.report("feedbin/support#416")
def test_without_guid_the_link_is_the_identity() -> None:
    before = entry(1)
    after = replace(before, url=f"{before.url}?utm_campaign=x", title="Other")
    assert entry_id("daily", before) == entry_id("daily", after)


def test_guid_that_is_the_link_survives_a_move_to_https() -> None:
    before = entry(1, guid="http://news.example/1")
    after = entry(1, guid="https://news.example/1")
    assert entry_key("daily", before) == entry_key("daily", after)


def test_same_guid_of_another_source_is_another_entry() -> None:
    assert entry_id("daily", entry(1)) != entry_id("weekly", entry(1))


def test_entry_listed_twice_with_its_guid_does_not_make_the_guid_doubtful() -> None:
    assert repeated_guids([entry(1, guid="a"), entry(1, guid="a")]) == frozenset()


@pytest.mark.report("stackernews/stacker.news#138")
@pytest.mark.parametrize(
    "copy",
    ["/amp/world/1", "/world/1/amp", "/world/1/amp/", "/world/1?amp=1", "/world/1?outputType=amp"],
)
def test_the_copy_for_telephones_is_the_page_where_the_headline_is_the_same(copy: str) -> None:
    page = Entry("https://www.news.example/world/1", "Rain ends")
    for host in ("www.news.example", "m.news.example", "amp.news.example", "news.example"):
        twin = Entry(f"https://{host}{copy}", "Rain ends")
        assert [new.entry for new in identify("daily", [twin, page])] == [page]
        other = replace(twin, title="Wind rises")
        assert len(identify("daily", [other, page])) == 2


@pytest.mark.parametrize(
    ("url", "key"),
    [
        ("https://m.example/a", "m.example/a"),
        ("https://amp.example.com/a.amp.html", "example.com/a.html"),
        ("https://www.m.example.com/?amp", "example.com"),
        ("https://example.com/amplifiers/a?amplitude=1", "example.com/amplifiers/a?amplitude=1"),
    ],
)
def test_only_what_makes_a_copy_is_taken_out_of_a_page_s_key(url: str, key: str) -> None:
    assert page_key(url) == key


def test_each_entry_of_a_listing_is_kept_once_and_in_order() -> None:
    listing = [entry(2), entry(1), entry(2, title="Again"), entry(3)]
    assert [new.entry.title for new in identify("daily", listing)] == [
        "Title 2",
        "Title 1",
        "Title 3",
    ]


def test_ids_are_short_hex_and_never_change() -> None:
    assert entry_id("daily", entry(1)) == "09396afb5c310a219b33"
    assert article_id("daily", "https://news.example/1") == "82b6d4d6174584a95f9d"


NOW = datetime(2024, 5, 6, tzinfo=UTC)


@pytest.mark.parametrize(
    "change",
    [
        pytest.param({"title": " Title \n 1 "}, id="white space"),
        pytest.param({"url": "https://news.example/1?x=2"}, id="address"),
        pytest.param({"published_at": NOW}, id="publication date"),
        pytest.param({"authors": ("A",)}, id="authors"),
    ],
)
def test_fingerprint_does_not_change_by_what_flickers(change: dict[str, object]) -> None:
    assert listing_fingerprint(entry(1, **change)) == listing_fingerprint(entry(1))


@pytest.mark.parametrize("change", [{"title": "New"}, {"summary": "More"}, {"updated_at": NOW}])
def test_fingerprint_changes_when_the_listing_says_something_new(
    change: dict[str, object],
) -> None:
    assert listing_fingerprint(entry(1, **change)) != listing_fingerprint(entry(1))
