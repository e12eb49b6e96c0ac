from __future__ import annotations

from datetime import UTC, datetime

import pytest

from models.answers import (
    error_for_status,
    looks_like_markup,
    parse_http_date,
    parse_retry_after,
    refuse_type,
)
from models.errors import PermanentFetchError, TransientFetchError

NOW = datetime(2024, 3, 1, 12, 0, tzinfo=UTC)


@pytest.mark.parametrize("status", [408, 425, 429, 500, 502, 503, 504, 520, 599])
def test_a_status_that_may_pass_is_transient(status: int) -> None:
    error = error_for_status("u", status, "u", 5.0)
    assert isinstance(error, TransientFetchError)
    assert (error.status, error.retry_after_s) == (status, 5.0)


@pytest.mark.parametrize("status", [300, 305, 400, 401, 402, 403, 404, 405, 410, 421, 451, 499])
def test_a_status_that_stays_is_permanent(status: int) -> None:
    error = error_for_status("u", status, "u")
    assert isinstance(error, PermanentFetchError)
    assert f"HTTP {status}" in str(error)


@pytest.mark.parametrize(
    ("text", "sent_at", "seconds"),
    [
        ("120", None, 120.0),
        (" 7 ", None, 7.0),
        ("0", None, 0.0),
        ("-3", None, 0.0),
        ("Fri, 01 Mar 2024 12:10:00 GMT", None, 600.0),
        ("Fri, 01 Mar 2024 11:00:00 GMT", None, 0.0),
        ("Fri, 01 Mar 2030 12:10:00 GMT", "Fri, 01 Mar 2030 12:09:00 GMT", 60.0),
        ("Friday, 01-Mar-24 12:10:00 GMT", None, 600.0),
        ("1e300", None, 7 * 86_400.0),
        ("Fri, 31 Dec 9999 23:59:59 GMT", None, 7 * 86_400.0),
        ("soon", None, None),
        ("nan", None, None),
        ("inf", None, None),
        ("", None, None),
        (None, None, None),
    ],
)
def test_retry_after_is_read_in_both_forms(
    text: str | None, sent_at: str | None, seconds: float | None
) -> None:
    assert parse_retry_after(text, NOW, sent_at) == seconds


def test_a_date_without_a_zone_is_taken_as_utc() -> None:
    assert parse_http_date("Fri, 01 Mar 2024 12:00:00") == NOW


@pytest.mark.parametrize(
    "kind",
    [
        None,
        "",
        "rss",
        "text/html",
        "text/plain",
        "text/xml; charset=windows-1251",
        "Application/RSS+XML",
        "application/xml",
        "application/feed+json",
        "application/json",
        "application/octet-stream",
        "application/x-gzip",
        "application/rss",
        "application/vnd.custom+xml",
    ],
)
def test_a_listing_may_come_under_many_names(kind: str | None) -> None:
    assert refuse_type(kind, "listing") is None


@pytest.mark.parametrize(
    "kind",
    ["audio/mpeg", "video/mp4", "image/png", "application/pdf", "text/event-stream", "font/woff2"],
)
@pytest.mark.parametrize("accept", ["listing", "page"])
def test_what_cannot_be_text_is_refused_by_name(kind: str, accept: str) -> None:
    assert kind in (refuse_type(kind, accept) or "")


@pytest.mark.parametrize("kind", ["application/octet-stream", "application/json"])
def test_a_page_must_be_markup_or_text(kind: str) -> None:
    assert kind in (refuse_type(kind, "page") or "")


@pytest.mark.parametrize("kind", [None, "text/html", "application/xhtml+xml", "text/plain", "bad"])
def test_a_page_may_be_untyped_html_or_text(kind: str | None) -> None:
    assert refuse_type(kind, "page") is None


def test_a_robots_txt_is_read_under_any_name_but_media() -> None:
    assert refuse_type("application/octet-stream", "robots") is None
    assert refuse_type("audio/mpeg", "robots") is not None


@pytest.mark.parametrize(
    ("start", "is_markup"),
    [
        (b"<?xml", True),
        (b"\xef\xbb\xbf<rss>", True),
        ("<rss>".encode("utf-16"), True),
        ("<rss>".encode("utf-16-be"), True),
        (b'{"version"', True),
        (b"\n\n  [", True),
        (b"   ", True),
        (b"\x1f\x8b\x08", True),
        (b"ID3\x03\x00", False),
        (b"\xff\xfb\x90", False),
        (b"%PDF-1.7", False),
    ],
)
def test_first_bytes_tell_markup(start: bytes, is_markup: bool) -> None:
    assert looks_like_markup(start) == is_markup
