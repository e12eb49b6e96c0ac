"""Where a list goes on: pagers of made-up pages, and of real ones read in place."""

from __future__ import annotations

import csv
import io
import tarfile
from datetime import UTC, datetime
from pathlib import Path

import pytest
from selectolax.lexbor import LexborHTMLParser, LexborNode, SelectolaxError

from models.decoding import decode_bytes
from models.identity import url_key
from models.paging import list_stem
from models.plaintext import absolute_url
from tasks.lists import find_older, parse_list

URL = "https://news.example/latest"
PAGES = Path(__file__).parents[3] / "shared" / "data" / "C_feeds" / "index-pages" / (
    "autopager.tar.xz"
)  # fmt: skip


def older(body: str, url: str = URL) -> str | None:
    listing = parse_list(body.encode(), url=url, now=datetime(2026, 3, 1, tzinfo=UTC))
    return listing.older


@pytest.mark.parametrize(
    ("body", "address"),
    [
        ("<head><link rel='next' href='/latest?page=2'></head>", "/latest?page=2"),
        ("<a rel='next nofollow' href='/latest/page/2/'>2</a>", "/latest/page/2/"),
        ("<a href='/latest?page=2'>Older posts »</a>", "/latest?page=2"),
        ("<a href='/latest/page/2'>Следующая</a>", "/latest/page/2"),
        ("<a href='/latest/2'>下一页</a>", "/latest/2"),
        ("<a class='next' href='?start=25'>›</a>", "/latest?start=25"),
        ("<p class='pager'><b class='active'>1</b><a href='?p=2'>2</a></p>", "/latest?p=2"),
        ("<div class='pager'><a href='/latest?p=2'>Next</a><a href='/sport?p=2'>Next</a></div>",
         "/latest?p=2"),
    ],
)  # fmt: skip
def test_a_list_goes_on_where_its_pager_leads(body, address):
    assert older(f"<html>{body}</html>") == f"https://news.example{address}"


@pytest.mark.parametrize(
    "body",
    [
        "<a href='/2026/next-storm'>Next storm hits the coast</a>",
        "<a class='next' href='/calendar?month=4'>»</a>",
        "<a href='/more'>More</a>",
        "<a rel='next' href='https://elsewhere.example/latest?page=2'>Next</a>",
        "<a href='/latest#top'>Next</a>",
        "<div class='pager'><a class='prev' href='/latest?page=0'>«</a></div>",
        "<p>Nothing.</p>",
    ],
)
def test_what_only_looks_like_a_pager_leads_nowhere(body):
    assert older(f"<html>{body}</html>") is None


def test_the_second_page_leads_to_the_third():
    body = (
        "<html><div class='pagination'><a href='/latest'>1</a><span class='current'>2</span>"
        "<a href='/latest?page=3'>3</a></div></html>"
    )
    assert older(body, f"{URL}?page=2") == f"{URL}?page=3"


@pytest.mark.parametrize(
    "url",
    [
        "https://a.example/news",
        "https://www.a.example/news/",
        "https://a.example/news/page/7/",
        "https://a.example/news?page=7",
        "https://a.example/news?start=50",
        "https://a.example/news/index7.html",
    ],
)
def test_all_pages_of_a_list_have_one_stem(url):
    assert list_stem(url) == "a.example/news"


def true_addresses(tree: LexborHTMLParser, selector: str, base: str) -> set[str]:
    """Return the keys of the addresses that somebody marked as the next page."""
    try:
        marked = tree.css(selector) if selector else []
    except SelectolaxError:
        return set()
    found = set()
    for node in marked:
        current: LexborNode | None = node
        while current is not None and current.tag != "a":
            current = current.parent
        anchor = current or node.css_first("a[href]")
        address = absolute_url(anchor.attributes.get("href") or "", base) if anchor else None
        found |= {url_key(address)} if address else set()
    return found


@pytest.mark.real
@pytest.mark.skipif(not PAGES.exists(), reason="the collections are not here")
def test_pagers_of_real_lists_are_followed() -> None:
    right = others = marked = 0
    with tarfile.open(PAGES, "r:xz") as archive:
        names = {Path(name).stem: name for name in archive.getnames() if name.endswith(".html")}
        table = archive.extractfile("data.csv")
        assert table is not None
        for row in csv.DictReader(io.StringIO(table.read().decode())):
            page = archive.extractfile(names[row["File Name"]]) if (
                row["File Name"] in names
            ) else None  # fmt: skip
            if page is None:
                continue
            tree, url = LexborHTMLParser(decode_bytes(page.read()).text), row["Page URL"]
            node = tree.css_first("base[href]")
            base = (absolute_url(node.attributes.get("href") or "", url) if node else None) or url
            true = true_addresses(tree, row["NEXT"], base)
            found = find_older(tree, url, base)
            marked += bool(true)
            right += found is not None and url_key(found) in true
            others += found is not None and url_key(found) not in true
    # Of the others, nine in ten do lead on: they were not marked, or marked the other way round.
    assert marked == 76
    assert right >= 61
    assert others <= 11
