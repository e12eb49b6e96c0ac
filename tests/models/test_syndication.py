"""Feeds and outlines: what publishers wrote is text in them, and they are well formed."""

import json
import re
import xml.etree.ElementTree as ET
from datetime import UTC, datetime

import duckdb
import pytest

from models.errors import ConfigError
from models.search import SavedSearch, pattern_of, read_search
from models.syndication import (
    FeedItem,
    OutFeed,
    Outline,
    render_atom,
    render_json_feed,
    render_opml,
)

AT = datetime(2026, 3, 1, 8, tzinfo=UTC)
ATOM = "{http://www.w3.org/2005/Atom}"
HARM = '</title><script>alert(1)</script> & "x" \x00\x1b[31m \ufffe \U0001f701'


def item(**changes):
    fields = {
        "article_id": "a1", "url": "https://x.example/a?b=1&c=2", "title": "Flood",
        "text": "Water rose. " * 100, "source": "daily", "published_at": AT, "updated_at": AT,
        "authors": ("A. Writer",), "tags": ("local",),
    }  # fmt: skip
    return FeedItem(**(fields | changes))


def atom(*items):
    return ET.fromstring(render_atom(OutFeed("all", "Everything", items, AT)))


def test_an_atom_feed_has_what_the_standard_asks_for():
    feed = atom(item())
    assert feed.find(f"{ATOM}id").text == "urn:newsbeat:search:all"
    assert feed.find(f"{ATOM}updated").text == "2026-03-01T08:00:00Z"
    (entry,) = feed.findall(f"{ATOM}entry")
    assert entry.find(f"{ATOM}id").text == "urn:newsbeat:article:a1"
    assert entry.find(f"{ATOM}link").get("href") == "https://x.example/a?b=1&c=2"
    assert len(entry.find(f"{ATOM}summary").text) < 420


@pytest.mark.parametrize("field", ["title", "text", "source"])
def test_hostile_words_are_only_text_in_a_feed(field):
    feed = atom(item(**{field: HARM, "authors": (HARM,), "tags": (HARM,)}))
    assert [each.tag for each in feed.iter() if "script" in each.tag] == []
    found = json.loads(render_json_feed(OutFeed("all", HARM, [item(title=HARM)], AT)))
    assert "\x1b" not in found["items"][0]["title"]


@pytest.mark.parametrize("url", ["javascript:alert(1)", "data:text/html,x", "", "file:///etc"])
def test_an_address_that_is_none_of_the_web_is_no_link(url):
    (entry,) = atom(item(url=url)).findall(f"{ATOM}entry")
    assert entry.find(f"{ATOM}link") is None
    found = json.loads(render_json_feed(OutFeed("all", "All", [item(url=url)], AT)))
    assert "url" not in found["items"][0]


def test_an_undated_item_without_title_is_still_an_entry():
    (entry,) = atom(item(title="", published_at=None, authors=())).findall(f"{ATOM}entry")
    assert entry.find(f"{ATOM}title").text == "(no title)"
    assert entry.find(f"{ATOM}author/{ATOM}name").text == "daily"


def test_an_empty_feed_is_a_feed():
    assert atom().find(f"{ATOM}updated").text == "2026-03-01T08:00:00Z"


def test_opml_lists_feeds_as_feeds_and_lists_as_links():
    outlines = [
        Outline(
            HARM,
            "https://a.example/",
            "https://a.example/?x=1&y=2",
            ("one", "two"),
            "en",
            {"kind": "feed"},
        ),
        Outline("B", "https://b.example/"),
    ]
    first, second = ET.fromstring(render_opml("Mine", outlines, AT)).iter("outline")
    assert first.get("xmlUrl") == "https://a.example/?x=1&y=2"
    assert first.get("htmlUrl") == "https://a.example/"
    assert first.get("category") == "one,two"
    assert first.get("{urn:newsbeat}kind") == "feed"
    assert (second.get("type"), second.get("url")) == ("link", "https://b.example/")


@pytest.mark.parametrize(
    ("term", "text", "is_found"),
    [
        ("tram", "A TRAM came", True),
        ("tram", "trample", False),
        ("tram*", "trample", True),
        ("порт", "Порт закрыт", True),
        ("порт", "спортсмен", False),
        ("порт*", "в порту", True),
        ("港口", "新港口大桥", True),
        ("old harbour", "the old\n harbour", True),
        ("c++", "in C++ now", True),
        ("a.b", "aXb", False),
    ],
)
def test_a_term_finds_whole_words_in_any_script(term, text, is_found):
    ((found,),) = duckdb.execute("SELECT regexp_matches(?, ?)", [text, pattern_of(term)]).fetchall()
    assert found == is_found


def test_a_search_is_read_from_its_table():
    given = {"title": "Trams", "any": "tram", "tags": ["local"], "level": 2}
    assert read_search("f", "trams", given) == SavedSearch(
        "trams", "Trams", ("tram",), tags=("local",), level=2
    )


@pytest.mark.parametrize(
    ("name", "given", "says"),
    [
        ("Trams!", {}, "lower-case letters"),
        ("t", 3, "a search is a table"),
        ("t", {"words": ["x"]}, "keys are title, any, all"),
        ("t", {"any": [1]}, "list of texts"),
        ("t", {"any": [""]}, "list of texts"),
        ("t", {"level": 9}, "from 0 to 5"),
        ("t", {"limit": True}, "from 1 to 500"),
        ("t", {"title": 1}, "it must be text"),
    ],
)
def test_a_wrong_search_is_named_with_what_is_allowed(name, given, says):
    with pytest.raises(ConfigError, match=re.escape(says)):
        read_search("searches.toml", name, given)
