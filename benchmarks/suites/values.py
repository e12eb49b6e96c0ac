"""Values of a feed as they are compared: what they say, whichever way they are written.

The comparison is the same for every parser. It asks whether a value was understood, not
whether it is kept in one library's way:

- titles and authors are compared as plain text, an address beside an author's name left out;
  where several authors are named, the first or all of them are right;
- a link is right absolute; where the same entry states the original behind a proxy's address
  (``feedburner:origLink``), that original is right too; an address outside the web
  (``ftp:``), where no article can be fetched, is right kept and right refused;
- an identifier that is a relative address is right as written and as resolved;
- a date is a moment, to the second;
- a character that an expectation has lost (U+FFFD) says only that a character stood there.
"""

from __future__ import annotations

import hashlib
import html
import re
from contextlib import suppress
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any

from models.plaintext import absolute_url

FIELDS = ("title", "link", "id", "date", "author")

Item = dict[str, Any]
"""Values of one entry by field."""

FEED = -1
"""The place of the feed's own title among the entries."""

_TAG = re.compile(r"</?[a-zA-Z](?:[^<>\"']|\"[^\"]*\"|'[^']*')*>")
_DIGEST_CHARS = 16


@dataclass(frozen=True, slots=True)
class Digest:
    """A wanted value of which only the digest is kept."""

    digest: str


@dataclass(frozen=True, slots=True)
class Either:
    """Wanted values any of which is right."""

    values: tuple[Any, ...]


def is_alike(name: str, got: Any, wanted: Any, base: str) -> bool:
    """Return whether a parser's value says what is wanted."""
    if name == "link" and isinstance(wanted, str) and _is_off_the_web(wanted):
        return got in (None, "", wanted)
    if got is None:
        return False
    if isinstance(wanted, Either):
        return any(is_alike(name, got, value, base) for value in wanted.values)
    ways = _ways(name, got, base)
    if isinstance(wanted, Digest):
        return any(digest(way) == wanted.digest for way in ways)
    asked = settled(name, wanted, base)
    if "\ufffd" in asked:
        pattern = re.compile(re.escape(asked).replace("\ufffd", ".?"))
        return any(pattern.fullmatch(way) for way in ways)
    return asked in ways


def _is_off_the_web(link: str) -> bool:
    scheme = link.partition("://")[0].lower()
    return "://" in link and scheme.isalpha() and scheme not in ("http", "https")


def _ways(name: str, got: Any, base: str) -> set[str]:
    if name == "id":
        return {settled(name, got, base), absolute_url(str(got), base) or ""}
    if name == "author" and isinstance(got, tuple):
        return {settled(name, ", ".join(got), base), *(settled(name, one, base) for one in got[:1])}
    return {settled(name, got, base)}


def settled(name: str, value: Any, base: str) -> str:
    """Return a value as it is compared."""
    if name == "date":
        return value.astimezone(UTC).strftime("%FT%T") if isinstance(value, datetime) else ""
    if name == "link":
        return absolute_url(str(value), base) or plain(str(value))
    if name == "author":
        return _name_only(plain(str(value)))
    return plain(str(value))


def digest(text: str) -> str:
    """Return what is kept of a settled value."""
    return hashlib.sha256(text.encode()).hexdigest()[:_DIGEST_CHARS]


def plain(text: str) -> str:
    """Return text without markup: what a title says, whichever way it was written."""
    for _ in range(3):
        text = html.unescape(_TAG.sub("", text))
    return " ".join(text.split())


def _name_only(author: str) -> str:
    return " ".join(re.sub(r"\(?<?\S+@\S+>?\)?", " ", author).split()).strip("() ") or author


def moment_of(value: Any) -> datetime | None:
    """Return the moment of nine numbers, or of a text by ISO 8601."""
    with suppress(TypeError, ValueError):
        if isinstance(value, str):
            at = datetime.fromisoformat(value)
            return at if at.tzinfo else at.replace(tzinfo=UTC)
        return datetime(*tuple(value)[:6], tzinfo=UTC)
    return None
