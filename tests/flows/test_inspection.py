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


def test_sitemap_answers_with_entries_and_children() -> None:
    body = b"<sitemapindex><sitemap><loc>https://a.example/1.xml</loc></sitemap></sitemapindex>"
    found = inspect_bytes(body, kind="sitemap", base_url="https://a.example/s.xml", now=NOW)
    assert (found["entries"], found["children"]) == ([], ["https://a.example/1.xml"])


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
