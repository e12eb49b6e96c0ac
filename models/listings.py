"""What feeds, sitemaps and list pages have in common: dates to be judged, entries to be mended."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime, time, timedelta
from zoneinfo import ZoneInfo

from models.foreign_dates import read_foreign_moment
from models.lag import CLOCK_ERROR
from models.moments import Moment, is_plausible, place_in_order, read_moment
from models.plaintext import collapse_spaces
from models.records import Entry

_ENOUGH_TO_JUDGE = 3
_JUST_NOW = timedelta(minutes=10)
_SHOWN_CHARS = 60
_MOST_FOREIGN = 500
_WRITTEN_DAY = re.compile(r"\s*\d{4}-\d\d-\d\d")
"""A day in the standard's form that is none: of the year 1246, or the 45th of a month."""


@dataclass(slots=True)
class DateReader:
    """Reads the dates of one document, and remembers the ones it could not take.

    Parameters
    ----------
    zone
        IANA zone for dates that state none.
    now
        The present, to judge dates by.
    language
        Of the publisher, for names of months that nobody else has.
    """

    zone: str
    now: datetime
    language: str | None = None
    unreadable: list[str] = field(default_factory=list)
    implausible: list[str] = field(default_factory=list)
    _refusal: str | None = None
    _n_foreign: int = 0

    def read(self, text: str | None) -> Moment | None:
        """Return the moment `text` writes, or None where it is empty, unreadable or absurd."""
        if text is None or not text.strip():
            return None
        moment = read_moment(text, self.zone) or self.read_foreign(text)
        if moment is None and not _WRITTEN_DAY.match(text):
            self._refuse("not readable", text, self.unreadable)
        elif moment is None or not is_plausible(moment, self.now):
            self._refuse("implausible", text, self.implausible)
            return None
        return moment

    def read_foreign(self, text: str) -> Moment | None:
        """Return the moment that `text` writes in the publisher's language, or None.

        A document has so many tries: each takes its time, and a hostile one has thousands.
        """
        if self.language is None or self._n_foreign >= _MOST_FOREIGN:
            return None
        self._n_foreign += 1
        return read_foreign_moment(text, self.zone, self.language)

    def _refuse(self, kind: str, text: str, others: list[str]) -> None:
        others.append(text.strip())
        self._refusal = self._refusal or f"{kind}: {collapse_spaces(text)[:_SHOWN_CHARS]}"

    def take_refusal(self) -> str | None:
        """Return why the first date refused since the last call was, None where none was."""
        refusal, self._refusal = self._refusal, None
        return refusal

    def warnings(self) -> list[str]:
        """Return a sentence for each kind of date that was not taken."""
        kinds = (("not readable", self.unreadable), ("implausible", self.implausible))
        return [
            f"{len(texts)} dates are {kind}, such as {texts[0][:40]!r}"
            for kind, texts in kinds
            if texts
        ]


def newest_first(entries: Iterable[Entry]) -> list[Entry]:
    """Return entries as listed, but with the dated newer ones before the dated older ones.

    Listings are mostly in order; where one is not and is cut short, the newest must stay. A
    date known to the day stands at the end of that day, and entries of one day in the order
    they are listed in; an undated entry stays with the one before it.
    """
    dated, last = [], None
    for entry in entries:
        if entry.published_at is not None:
            last = place_in_order(entry.published_at, entry.published_precision)
        dated.append((last, entry))
    dated.sort(key=lambda pair: pair[0] or _EVER, reverse=True)
    return [entry for _, entry in dated]


_EVER = datetime.max.replace(tzinfo=UTC)


def mend_dates(
    entries: Sequence[Entry], zone: str, now: datetime
) -> tuple[tuple[Entry, ...], list[str]]:
    """Return the entries with dates that claim no more than they know, and warnings.

    Where every entry is stamped midnight, the publisher knows days only, and the precision
    says so. Where every entry was "updated" at one moment just now, the program that wrote
    the listing stamped them, and the update times go. A publication time ahead of `now`
    stays as declared, and is noted.

    Parameters
    ----------
    entries
        All entries of one listing.
    zone
        The publisher's IANA zone.
    now
        When the listing was fetched.
    """
    warnings = []
    if _all_at_midnight(entries, zone):
        entries = [
            replace(entry, published_precision="day") if entry.published_at else entry
            for entry in entries
        ]
        warnings.append("every entry is stamped midnight; dates are taken as days")
    if _all_updated_just_now(entries, now):
        entries = [_without_update(entry) for entry in entries]
        warnings.append("every entry claims to be updated just now; update times are left out")
    return tuple(_noted(entry, now) for entry in entries), warnings


def _noted(entry: Entry, now: datetime) -> Entry:
    """Return an entry with a note where its declared time is still to come."""
    if entry.published_at is None or entry.published_at <= now + CLOCK_ERROR:
        return entry
    minutes = (entry.published_at - now) / timedelta(minutes=1)
    ahead = f"{minutes:.0f} min" if minutes < 120 else f"{minutes / 60:.0f} h"
    return replace(entry, published_note=f"declared {ahead} ahead of when it was first seen")


def _all_at_midnight(entries: Sequence[Entry], zone: str) -> bool:
    dated = [entry for entry in entries if entry.published_at]
    if len({entry.published_at for entry in dated}) < _ENOUGH_TO_JUDGE:
        return False
    if all(entry.published_precision == "day" for entry in dated):
        return False
    return any(
        all(
            entry.published_at.astimezone(ZoneInfo(place)).time() == time()
            for entry in dated
            if entry.published_at
        )
        for place in ("UTC", zone)
    )


def _all_updated_just_now(entries: Sequence[Entry], now: datetime) -> bool:
    stamps = {entry.updated_at for entry in entries}
    if len(entries) < _ENOUGH_TO_JUDGE or len(stamps) != 1:
        return False
    stamp = next(iter(stamps))
    return stamp is not None and abs(now - stamp) <= _JUST_NOW


def _without_update(entry: Entry) -> Entry:
    if entry.published_basis in {"updated", "modified", "lastmod"}:
        entry = replace(entry, published_at=None, published_precision=None, published_basis=None)
    return replace(entry, updated_at=None)


def only_pinned(known: Sequence[bool]) -> bool:
    """Tell whether all that is known of a page of a list is pinned to its top.

    Boards keep some threads there for years. When all below them is new, and that is most
    of the page, some may have come and gone unseen.

    Parameters
    ----------
    known
        Of each entry, in the order of the page.

    Examples
    --------
    >>> only_pinned([True, False, False]), only_pinned([True, False, False, True])
    (True, False)
    """
    if True not in known or False not in known:
        return False
    below = known[known.index(False) :]
    return True not in below and 2 * len(below) >= len(known)
