"""Lists of sources as people have them."""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from models.errors import ParseError
from models.subscriptions import guess_form, make_tag, read_wishes, tidy_address


@pytest.mark.parametrize(
    ("written", "address"),
    [
        (" https://a.example/rss \t", "https://a.example/rss"),
        ("HTTPS://A.example/rss", "HTTPS://A.example/rss"),
        ("a.example", "https://a.example"),
        ("a.example:8080/rss?x=1", "https://a.example:8080/rss?x=1"),
        ("новости.рф/rss", "https://новости.рф/rss"),
        ("feed://a.example/rss", "https://a.example/rss"),
        ("feed:https://a.example/rss", "https://a.example/rss"),
        ("<https://a.example/>", "https://a.example/"),
        ("tg://resolve?domain=harbour", "https://t.me/harbour"),
        ("3.14", None),
        ("me@a.example", None),
        ("javascript:alert(1)", None),
        ("file:///etc/passwd", None),
        ("Daily News", None),
        ("", None),
    ],
)
def test_an_address_is_told_from_other_words(written, address):
    assert tidy_address(written) == address


@pytest.mark.parametrize(
    ("name", "tag"),
    [
        ("World news", "World-news"),
        (" — Новости / мира — ", "Новости-мира"),
        ("新闻", "新闻"),
        ("!!!", ""),
        ("a" * 60, "a" * 40),
        ("-x-", "x"),
    ],
)
def test_a_folder_becomes_a_tag(name, tag):
    assert make_tag(name) == tag


def test_a_table_may_say_what_parts_its_cells():
    text = 'sep=;\nurl;title\na.example;"One; two"\n'
    (wish,) = read_wishes(text, "x.csv").wanted
    assert (wish.line, wish.url, wish.values["title"]) == (3, "https://a.example", "One; two")


def test_a_cell_over_several_lines_does_not_shift_the_count():
    text = 'url,title\na.example,"One\ntwo"\nnothing here,x\nb.example,\n'
    found = read_wishes(text, "x.csv")
    assert [wish.line for wish in found.wanted] == [2, 5]
    assert [slip.line for slip in found.slips] == [4]


def test_the_first_column_that_holds_an_address_counts():
    text = "Title,Website,Feed URL\nA,https://a.example/,https://a.example/rss\nB,https://b.example/,\n"
    found = read_wishes(text, "x.csv")
    assert [wish.url for wish in found.wanted] == ["https://a.example/rss", "https://b.example/"]


def test_folders_inside_folders_end_somewhere():
    deep = "<outline text='f'>" * 1000 + "<outline xmlUrl='https://a.example/'/>"
    found = read_wishes(f"<opml><body>{deep}", "x.opml")
    assert [wish.url for wish in found.wanted] == ["https://a.example/"]


def test_a_list_that_names_another_list_says_so():
    found = read_wishes(
        "<opml><body><outline type='link' url='https://a.example/b.opml'/></body></opml>", "x"
    )
    assert [slip.reason for slip in found.slips] == ["another list of sources: import it by itself"]


def test_a_title_that_would_steer_a_terminal_is_harmless():
    for text, name in (
        ("a.example,\x1b[31mred\x07\u202etxt\n", "x.csv"),
        ("a.example \x1b[31mred\x07\u202etxt\n", "x.txt"),
        ("<opml><body><outline text='&#x202e;red' xmlUrl='a.example'/></body></opml>", "x.opml"),
    ):
        (wish,) = read_wishes(text, name).wanted
        assert wish.values["title"].isprintable()


LINES = st.lists(
    st.one_of(
        st.text(max_size=30),
        st.sampled_from(
            [
                "<opml>",
                "<outline xmlUrl='x'>",
                "https://a.example/",
                '"',
                "url;title",
                "sep=,",
                "<!--",
            ]
        ),
    ),
    max_size=12,
)


@settings(max_examples=300, deadline=None)
@given(lines=LINES, form=st.sampled_from([None, "opml", "csv", "list"]))
def test_any_text_is_read_or_refused_with_a_reason(lines, form):
    text = "\n".join(lines)
    try:
        found = read_wishes(text, "x", form)
    except ParseError:
        return
    assert all(wish.url.lower().startswith(("http://", "https://")) for wish in found.wanted)
    assert found.form == (form or guess_form(text.lstrip("\ufeff").replace("\x00", ""), "x"))
