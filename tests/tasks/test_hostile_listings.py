"""No listing of a megabyte, however made, may hold up the event loop that reads it."""

import contextlib
import time
from datetime import UTC, datetime

import pytest

from models.errors import ParseError
from tasks.feeds import parse_feed
from tasks.lists import parse_list
from tasks.sitemaps import parse_sitemap
from tasks.telegram import parse_telegram

NOW = datetime(2024, 5, 7, tzinfo=UTC)
SIZE = 1_000_000
MAX_CPU_S = 6.0
"""Each takes under 1 s here; what is quadratic takes minutes."""

LINKS = b"".join(
    b"<a href='/2024/05/06/story-%d.html'>A headline of some length, number %d</a>" % (n, n)
    for n in range(6000)
)
HOSTILE = {
    "prologs": b"<?xml" * (SIZE // 5),
    "comments": b"<!---->" * (SIZE // 7),
    "open comments": b"<!--" * (SIZE // 4),
    "instructions": b"<??>" * (SIZE // 4),
    "comments in a doctype": b"<!DOCTYPE x [" + b"<!--" * (SIZE // 4),
    "entities in a doctype": b"<!DOCTYPE x [" + b'<!ENTITY a "' * (SIZE // 12),
    "scripts": b"\xcf<script>" * (SIZE // 9),
    "items in items": b"<rss><channel>" + b"<item><description>" * (SIZE // 19),
    "items deep down": b"<rss>" + b"<a>" * (SIZE // 6) + b"<item/>" * (SIZE // 14),
    "open items": b"<rss><channel>" + b"<item>" * (SIZE // 6),
    "long author": b"<rss><item><link>/a</link><author>" + b"a" * SIZE + b"</author></item></rss>",
    "tags in a title": b"<rss><item><link>/a</link><title>" + b"&lt;b " * (SIZE // 6),
    "ampersands": b"<rss><item><title>" + b"&" * SIZE,
    "open sections": b"<rss>&x;" + b"<![CDATA[" * (SIZE // 9),
    "links side by side": b"<div>" + LINKS,
    "links far inside": b"<div>" * 20_000 + LINKS,
    "links in links": LINKS.replace(b"<a", b"<div><a"),
    "posts in posts": b"<div class='tgme_widget_message' data-post='a/1'>" * (SIZE // 49),
    "posts side by side": b"<p class='tgme_widget_message' data-post='a/1'>x</p>" * (SIZE // 52),
    "pages in pages": b"<div class='pager'><a href='?p=2'>Next</a>" * (SIZE // 42),
}


@pytest.mark.slow
@pytest.mark.parametrize("name", HOSTILE)
def test_hostile_listing_is_done_with_soon(name: str) -> None:
    for parse in (parse_feed, parse_sitemap, parse_list, parse_telegram):
        started = time.process_time()
        with contextlib.suppress(ParseError):
            parse(HOSTILE[name], url="https://a.example/", now=NOW)
        assert time.process_time() - started < MAX_CPU_S
