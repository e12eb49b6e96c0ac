import json
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest

from flows.inspection import KINDS, inspect_bytes
from models.errors import ParseError
from models.records import Source

NOW = datetime(2024, 5, 7, 12, 0, tzinfo=UTC)
SAMPLES = Path(__file__).parents[1] / "samples"


def inspect(name: str, kind: str, **more: Any) -> dict[str, Any]:
    body = (SAMPLES / name).read_bytes()
    found = inspect_bytes(body, kind=kind, base_url="https://www.vesti.example/", now=NOW, **more)
    return dict(json.loads(json.dumps(found)))


def test_feed_answers_with_all_that_is_promised() -> None:
    found = inspect("feed.rss.xml", "feed")
    assert {"format", "encoding", "title", "warnings", "entries"} <= found.keys()
    assert {
        "id", "url", "title", "published_at", "published_precision", "published_basis", "summary",
        "authors",
    } <= found["entries"][0].keys()  # fmt: skip
    assert found["entries"][0]["id"] == "vesti-101"
    assert found["entries"][0]["published_at"] == "2024-05-06T09:30:00Z"


def test_zone_of_the_source_holds() -> None:
    source = Source("vesti", "Vesti", "https://vesti.example/", timezone="Europe/Moscow")
    found = inspect("feed.rss.xml", "feed", source=source)
    assert found["entries"][1]["published_at"] == "2024-05-06T08:05:00Z"


def test_list_answers_with_links() -> None:
    assert len(inspect("listing.ru.html", "list")["links"]) == 4


def test_article_answers_with_all_that_is_promised() -> None:
    found = inspect("article.de.html", "article")
    assert {
        "title", "text", "published_at", "authors", "language", "canonical_url", "class",
        "features", "warnings",
    } <= found.keys()  # fmt: skip
    assert found["class"] == "article"
    assert list(found["features"]) == [
        "page_bytes", "paragraph_chars", "n_paragraphs", "paragraph_variance", "n_links",
        "n_blocks", "n_formatting", "n_images", "n_other",
    ]  # fmt: skip
    assert all(value > 0 for value in list(found["features"].values())[:4])


def test_sitemap_answers_with_entries_and_children() -> None:
    body = b"<sitemapindex><sitemap><loc>https://a.example/1.xml</loc></sitemap></sitemapindex>"
    found = inspect_bytes(body, kind="sitemap", base_url="https://a.example/s.xml", now=NOW)
    assert (found["entries"], found["children"]) == ([], ["https://a.example/1.xml"])


def test_telegram_answers_with_posts_and_the_page_before() -> None:
    body = (
        "<div class='tgme_channel_info'><div class='tgme_channel_info_header_title'>Harbour</div>"
        "</div><a class='tme_messages_more' data-before='7' href='/s/harbour?before=7'></a>"
        "<div class='tgme_widget_message' data-post='harbour/7'>"
        "<div class='tgme_widget_message_reply'><div class='tgme_widget_message_text"
        " js-message_reply_text'>Is it open?</div></div>"
        "<div class='tgme_widget_message_forwarded_from'>Forwarded from"
        " <span class='tgme_widget_message_forwarded_from_name'>East quay</span></div>"
        "<div class='tgme_widget_message_poll'><div class='tgme_widget_message_poll_question'>"
        "Open the pier?</div><div class='tgme_widget_message_poll_option_text'>Yes</div></div>"
        "<a class='tgme_widget_message_date'><time datetime='2024-05-07T08:00:00+00:00'></time></a>"
        "</div><div class='tgme_widget_message service_message' data-post='harbour/8'>pinned</div>"
    )
    found = inspect_bytes(
        body.encode(), kind="telegram", base_url="https://t.me/s/harbour", now=NOW
    )
    (post,) = found["entries"]
    assert (found["title"], found["older"]) == ("Harbour", "https://t.me/s/harbour?before=7")
    assert (post["url"], post["published_at"]) == ("https://t.me/harbour/7", "2024-05-07T08:00:00Z")
    assert (post["title"], post["summary"]) == ("Open the pier?", "Open the pier?\nYes")
    assert (post["authors"], post["media"], post["note"]) == (["East quay"], ["poll"], None)


def test_what_is_no_page_of_telegram_is_named() -> None:
    with pytest.raises(ParseError, match="no page of a Telegram channel"):
        inspect_bytes(b"<p>Hello</p>", kind="telegram", base_url="https://t.me/s/a", now=NOW)


def test_robots_answers_with_the_rule() -> None:
    found = inspect_bytes(
        b"User-agent: *\nDisallow: /private\nCrawl-delay: 5",
        kind="robots",
        base_url="https://a.example/robots.txt",
        now=NOW,
        agent="newsbeat",
        url="https://a.example/private/x",
    )
    assert found == {"allowed": False, "rule": "Disallow: /private", "crawl_delay": 5.0}


@pytest.mark.parametrize("kind", ["telegram", "podcast"])
def test_kind_that_cannot_be_read_is_said(kind: str) -> None:
    with pytest.raises(ParseError):
        inspect_bytes(b"x", kind=kind, base_url="https://a.example/", now=NOW)


@pytest.mark.parametrize("kind", [kind for kind in KINDS if kind != "robots"])
def test_nothing_is_none_of_them(kind: str) -> None:
    with pytest.raises(ParseError):
        inspect_bytes(b"", kind=kind, base_url="https://a.example/", now=NOW)
