"""Entries that come back under another name.

Some publishers write the headline into an identifier, which then changes with every edit.
Some put a fresh token into every link, or list the copy for telephones besides. Some give
all their entries new identifiers when they change their software. By its id such an entry
is new; by what it says it is not, and it keeps the id under which it was first seen. What
differs in the listing is an edit.

A double is a nuisance and an entry taken for another is lost, so two of the three have to
agree: headline, moment or number, address.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Iterable, Sequence
from dataclasses import dataclass

import ada_url

from models.identity import page_key
from models.plaintext import collapse_spaces
from models.records import Entry, KnownEntry, NewEntry

LOOK_BACK_DAYS = 30
"""Lists that show more than a month of entries hardly ever rename them."""

_ALIKE_SHARE = 0.5
"""Share of the shorter headline's words that an edited one still has."""

_EXTENSION = re.compile(r"\.(?:s?html?|php|aspx?|jsp)$", re.IGNORECASE)
_NUMBER = re.compile(r"\d{5,12}")
_NUMBER_FIRST = re.compile(r"(\d{5,12})[-_](.+)")
_NUMBER_LAST = re.compile(r"(.+)[-_](?:a|art|id|n)?(\d{5,12})", re.IGNORECASE)
_TOKEN_RUN = re.compile(r"[A-Za-z0-9]{20,}")
_WORDS = re.compile(r"\w+")


@dataclass(frozen=True, slots=True)
class Telltales:
    """By what earlier entries that may be the same are looked for: headlines, and numbers."""

    titles: tuple[str, ...]
    numbers: tuple[str, ...]


def telltales(unknown: Iterable[NewEntry]) -> Telltales:
    """Return by what the entries may be known, though their ids are not."""
    entries = [item.entry for item in unknown]
    titles = dict.fromkeys(entry.title for entry in entries if entry.title)
    settled = (settled_address(address) for entry in entries for address in _addresses(entry))
    numbers = dict.fromkeys(_NUMBER.findall(key)[-1] for key in settled if key)
    return Telltales(tuple(titles), tuple(numbers))


def recognise(
    unknown: Sequence[NewEntry], before: Sequence[KnownEntry], listed: Collection[str]
) -> dict[str, KnownEntry]:
    """Return which of the unknown entries are earlier ones, by their id.

    Parameters
    ----------
    unknown
        Entries of a listing whose ids are not known.
    before
        Earlier entries of the source that share a headline or a number with one of them.
    listed
        Ids of all entries of the listing: an earlier entry that is still listed under its
        own id is none of the others. Each is recognised once.
    """
    found: dict[str, KnownEntry] = {}
    taken = set(listed)
    for item in unknown:
        same = (old for old in before if old.entry_id not in taken and is_same(item.entry, old))
        old = next(same, None)
        if old is not None:
            found[item.entry_id] = old
            taken.add(old.entry_id)
    return found


def is_same(entry: Entry, old: KnownEntry) -> bool:
    """Return whether a listed entry is an earlier one under another identifier.

    Examples
    --------
    >>> link = "https://a.example/12345-rain-ends-soon"
    >>> old = KnownEntry("e1", "f", link, title="Rain ends soon")
    >>> is_same(Entry("https://a.example/12345-rain-has-ended", "Rain has ended soon"), old)
    True
    >>> is_same(Entry("https://a.example/12346-rain-ends-soon", "Rain ends soon"), old)
    False
    """
    is_title = bool(entry.title) and _folded(entry.title) == _folded(old.title)
    is_moment = entry.published_at is not None and entry.published_at == old.published_at
    if is_title and page_key(entry.url) == page_key(old.url):
        return True
    if _share_number(entry, old):
        return is_moment or _are_alike(entry.title, old.title)
    if not is_title:
        return False
    if is_opaque(entry.url):
        return is_moment or entry.published_at is old.published_at is None
    return is_moment and entry.published_precision != "day"


def settled_address(address: str) -> str | None:
    """Return an address with its number kept and the headline beside it left out, or None.

    None where it has not both. Dates and times are no numbers: many articles share one.

    Examples
    --------
    >>> settled_address("https://a.example/world/rain-ends-soon-123456.html")
    'a.example/world/*-123456'
    >>> settled_address("https://a.example/123456/rain-ends-soon")
    'a.example/123456/*'
    >>> settled_address("https://a.example/rain-ends-20240506") is None
    True
    """
    try:
        parsed = ada_url.URL(address.strip())
    except ValueError:
        return None
    if parsed.protocol not in {"http:", "https:"}:
        return None
    parts = [part for part in parsed.pathname.split("/") if part]
    if parts:
        parts[-1] = _EXTENSION.sub("", parts[-1])
    settled = _settled_last(parts) or _settled_pair(parts)
    return f"{parsed.hostname}/{'/'.join(settled)}" if settled else None


def _settled_last(parts: list[str]) -> list[str] | None:
    last = parts[-1] if parts else ""
    if (first := _NUMBER_FIRST.fullmatch(last)) and _names(first[1], first[2]):
        return [*parts[:-1], f"{first[1]}-*"]
    if (second := _NUMBER_LAST.fullmatch(last)) and _names(second[2], second[1]):
        return [*parts[:-1], f"*-{second[2]}"]
    return None


def _settled_pair(parts: list[str]) -> list[str] | None:
    if len(parts) < 2:
        return None
    *rest, left, right = parts
    if _NUMBER.fullmatch(left) and _names(left, right):
        return [*rest, left, "*"]
    return [*rest, "*", right] if _NUMBER.fullmatch(right) and _names(right, left) else None


def _names(number: str, slug: str) -> bool:
    """Return whether a number names an article, and what stands beside it is a headline."""
    words = [word for word in re.split(r"[-_]|%20|\+", slug) if word and not word.isdigit()]
    return len(words) >= 2 and not _is_time(number)


def _is_time(digits: str) -> bool:
    if len(digits) == 6:
        return _is_day(digits[2:4], digits[4:]) or _is_day(digits[2:4], digits[:2])
    if len(digits) == 8:
        first, last = digits[:2], digits[4:6]
        return (first in ("19", "20") and _is_day(digits[4:6], digits[6:])) or (
            last in ("19", "20") and _is_day(digits[2:4], digits[:2])
        )
    return (len(digits) == 10 and digits[0] == "1") or (len(digits) == 12 and digits[:2] == "20")


def _is_day(month: str, day: str) -> bool:
    return 1 <= int(month) <= 12 and 1 <= int(day) <= 31


def is_opaque(address: str) -> bool:
    """Return whether an address is a token that may be another one next time.

    Aggregators list the articles of others under such addresses.

    Examples
    --------
    >>> is_opaque("https://a.example/rss/CBMiVkFVX3lxTE5vQ2ZJc0ZPT0E5?oc=5")
    True
    >>> is_opaque("https://a.example/2024/rain-ends-soon")
    False
    """
    runs = _TOKEN_RUN.findall(address.partition("://")[2].partition("/")[2])
    return any(
        re.search("[a-z]", run) and re.search("[A-Z]", run) and re.search("[0-9]", run)
        for run in runs
    )


def _addresses(entry: Entry | KnownEntry) -> tuple[str, ...]:
    return (entry.guid or "", entry.url)


def _share_number(entry: Entry, old: KnownEntry) -> bool:
    numbers = {settled_address(address) for address in _addresses(entry)} - {None}
    return not numbers.isdisjoint(settled_address(address) for address in _addresses(old))


def _folded(title: str | None) -> str:
    return collapse_spaces(title or "").casefold()


def _are_alike(title: str | None, other: str | None) -> bool:
    words, others = (set(_WORDS.findall(_folded(each))) for each in (title, other))
    fewest = min(len(words), len(others))
    return fewest > 0 and len(words & others) >= _ALIKE_SHARE * fewest
