"""What an HTTP answer means: its status, its type, how long it asks us to wait.

Pure rules, so that each can be read as a table and tested as one. The fetcher
in ``tasks/fetch.py`` asks them and acts.
"""

from __future__ import annotations

import math
import re
from datetime import UTC, datetime, timedelta
from email.utils import parsedate_to_datetime
from http import HTTPStatus
from typing import Literal

from models.errors import FetchError, PermanentFetchError, TransientFetchError

Accept = Literal["listing", "page", "robots"]
"""What is wanted: a feed, sitemap or list page; an article page; a robots.txt."""

ROBOTS_BYTES = 500 * 1024
"""RFC 9309: what a crawler must read of a robots.txt. We read no more."""

MAX_RETRY_AFTER_S = 7 * 86_400.0
"""Who asks to be left alone for longer is asked again after a week: a slip in a header, or a
trick, must not silence a source for years."""

REDIRECTS = frozenset({301, 302, 303, 307, 308})
_TRANSIENT = frozenset({408, 425, 429})

# Feeds really are served under these names, and so are songs: the first bytes decide.
_UNTOLD = frozenset(
    {
        "",
        "application/binary",
        "application/download",
        "application/force-download",
        "application/gzip",
        "application/octet-stream",
        "application/x-download",
        "application/x-gzip",
        "application/x-unknown-content-type",
        "binary/octet-stream",
        "unknown/unknown",
    }
)
_FEED_TYPES = frozenset({"application/rss", "application/atom", "application/x-rss"})
_PAGE_TYPES = frozenset(
    {"application/xhtml+xml", "application/xml", "application/vnd.wap.xhtml+xml"}
)
_NEVER_TEXT = frozenset({"audio", "video", "image", "font", "model"})
_ENDLESS = frozenset({"text/event-stream", "multipart/x-mixed-replace"})

_MARKUP_STARTS = (b"<", b"{", b"[", b"\x1f\x8b")
_BYTE_ORDER_MARKS = (b"\xef\xbb\xbf", b"\xff\xfe", b"\xfe\xff")
_TYPE = re.compile(r"[\w!#$&^.+-]+/[\w!#$&^.+-]+")


def error_for_status(
    url: str, status: int, final_url: str, retry_after_s: float | None = None
) -> FetchError:
    """Return the error that an answer outside 200-299 and the redirects stands for.

    408, 425, 429 and every 5xx may pass; all others stay until someone changes something.

    Examples
    --------
    >>> error_for_status("http://a.example/", 503, "http://a.example/", 30.0)
    TransientFetchError('http://a.example/', 'HTTP 503 Service Unavailable', 503, \
'http://a.example/', 30.0)
    """
    reason = f"HTTP {status} {_phrase(status)}".rstrip()
    if status in _TRANSIENT or status >= 500:
        return TransientFetchError(url, reason, status, final_url, retry_after_s)
    return PermanentFetchError(url, reason, status, final_url)


def _phrase(status: int) -> str:
    try:
        return HTTPStatus(status).phrase
    except ValueError:
        return ""


def parse_retry_after(text: str | None, now: datetime, sent_at: str | None = None) -> float | None:
    """Return the seconds that a ``Retry-After`` header asks to wait, None where it says nothing.

    Parameters
    ----------
    text
        Value of the header: seconds, or a date. More than a week counts as a week.
    now
        Our own time, aware UTC.
    sent_at
        Value of the answer's ``Date`` header. A date in `text` is the server's, and so is
        this one: their difference is right even when its clock, or ours, is not.

    Examples
    --------
    >>> parse_retry_after("120", datetime(2024, 1, 1, tzinfo=UTC))
    120.0
    >>> parse_retry_after("Mon, 01 Jan 2024 00:01:00 GMT", datetime(2024, 1, 1, tzinfo=UTC))
    60.0
    """
    if not text:
        return None
    try:
        seconds = float(text)
    except ValueError:
        until = parse_http_date(text)
        if until is None:
            return None
        seconds = (until - (parse_http_date(sent_at) or now)) / timedelta(seconds=1)
    return min(max(seconds, 0.0), MAX_RETRY_AFTER_S) if math.isfinite(seconds) else None


def parse_http_date(text: str | None) -> datetime | None:
    """Return the moment an HTTP date stands for, aware UTC, or None where it is none."""
    if not text:
        return None
    try:
        moment = parsedate_to_datetime(text)
    except (ValueError, IndexError, OverflowError):
        return None
    return moment.replace(tzinfo=UTC) if moment.tzinfo is None else moment.astimezone(UTC)


def media_type(content_type: str | None) -> str:
    """Return the bare media type in lower case, ``""`` where the header holds none.

    Examples
    --------
    >>> media_type("Text/HTML; charset=utf-8"), media_type("rss")
    ('text/html', '')
    """
    bare = (content_type or "").split(";")[0].split(",")[0].strip().lower()
    return bare if _TYPE.fullmatch(bare) else ""


def refuse_type(content_type: str | None, accept: Accept) -> str | None:
    """Return why an answer of this type is not read, or None where it may be.

    A listing may come under almost any name, see :func:`is_untold`; a page must say that it
    is text or markup, or say nothing; a robots.txt is read unless it is clearly no text.

    Examples
    --------
    >>> refuse_type("audio/mpeg", "page")
    'it is audio/mpeg, not a page'
    >>> refuse_type("application/octet-stream", "listing") is None
    True
    """
    kind = media_type(content_type)
    if kind in _ENDLESS or kind.partition("/")[0] in _NEVER_TEXT:
        return _not_wanted(kind, accept)
    if accept == "robots" or not kind or kind.startswith("text/"):
        return None
    if accept == "page":
        return None if kind in _PAGE_TYPES else _not_wanted(kind, accept)
    known = kind in _UNTOLD or kind in _FEED_TYPES or "xml" in kind or "json" in kind
    return None if known else _not_wanted(kind, accept)


def _not_wanted(kind: str, accept: Accept) -> str:
    wanted = {"listing": "a feed, sitemap or list", "page": "a page", "robots": "a robots.txt"}
    return f"it is {kind}, not {wanted[accept]}"


def is_untold(content_type: str | None) -> bool:
    """Return whether the type says nothing, so that the first bytes must tell."""
    return media_type(content_type) in _UNTOLD


def looks_like_markup(start: bytes) -> bool:
    r"""Return whether a body that starts so may be XML, HTML, JSON or one of them gzipped.

    Examples
    --------
    >>> looks_like_markup(b"\n <rss>"), looks_like_markup(b"ID3\x03")
    (True, False)
    """
    if start.startswith(_BYTE_ORDER_MARKS):
        return True
    bare = start.replace(b"\0", b"").lstrip()
    return not bare or bare.startswith(_MARKUP_STARTS)
