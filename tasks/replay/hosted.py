"""One site of the recorded web: which page an address holds at a moment.

Listings are rendered again only when something new came out, so that asking often
costs little.
"""

from __future__ import annotations

import gzip
import hashlib
from collections import OrderedDict
from dataclasses import dataclass
from datetime import UTC, datetime
from email.utils import format_datetime
from typing import TypeVar

from tasks.replay.history import RecordedSource, Where
from tasks.replay.pages import (
    PageBytes,
    make_article_page,
    make_feed,
    make_front,
    make_robots,
    make_sitemap,
)

_INDEX_PATHS = ("/feed.xml", "/news-sitemap.xml", "/")
_MAX_CACHED = 256
_LONG_AGO = datetime(2020, 1, 1, tzinfo=UTC)

_Key = TypeVar("_Key")
_Kept = TypeVar("_Kept")


@dataclass(frozen=True, slots=True)
class Answer:
    """A page with its validators, ready to be sent.

    Attributes
    ----------
    names
        Numbers of the entries it lists.
    """

    page: PageBytes
    where: Where
    etag: str
    modified_at: datetime
    names: range = range(0)

    @property
    def last_modified(self) -> str:
        """When it last changed, as HTTP spells it."""
        return format_datetime(self.modified_at, usegmt=True)


class Site:
    """One source and the pages rendered for it so far."""

    def __init__(self, source: RecordedSource) -> None:
        self.source = source
        self._numbers = {entry.path: at for at, entry in enumerate(source.entries)}
        self._listings: dict[str, tuple[object, Answer]] = {}
        self._articles: OrderedDict[tuple[int, str], Answer] = OrderedDict()
        self._compressed: OrderedDict[str, bytes] = OrderedDict()

    def find(self, path: str, now: datetime) -> Answer | None:
        """Return the page at `path` as it is at moment `now`; None where there is none."""
        if path in _INDEX_PATHS:
            return self._listing(path, now)
        if path == "/robots.txt":
            return _answer(make_robots(self.source), "robots", _LONG_AGO)
        number = self._numbers.get(path)
        if number is None or self.source.entries[number].published_at > now:
            return None
        return self._article(number, self.source.layout_at(now)[0])

    def compressed(self, answer: Answer) -> bytes:
        """Return the body in gzip, from memory if it was wanted lately."""
        if answer.etag not in self._compressed:
            self._compressed[answer.etag] = gzip.compress(answer.page.body, 5, mtime=0)
        return _kept(self._compressed, answer.etag)

    def _listing(self, path: str, now: datetime) -> Answer:
        window, front = self.source.window_at(now), self.source.layout_at(now)[1]
        state = (window, front)
        if path not in self._listings or self._listings[path][0] != state:
            self._listings[path] = (state, self._render_listing(path, window, front))
        return self._listings[path][1]

    def _render_listing(self, path: str, window: range, front: str) -> Answer:
        newest = self.source.times[window[-1]] if window else _LONG_AGO
        if path == "/feed.xml":
            page = make_feed(self.source, window)
        elif path == "/news-sitemap.xml":
            page = make_sitemap(self.source, window)
        else:
            page = make_front(self.source, window, front)
        return _answer(page, "index", newest, window)

    def _article(self, number: int, layout: str) -> Answer:
        key = (number, layout)
        if key not in self._articles:
            page = make_article_page(self.source, number, layout)
            self._articles[key] = _answer(page, "article", self.source.times[number])
        return _kept(self._articles, key)


def _answer(
    page: PageBytes, where: Where, modified_at: datetime, names: range = range(0)
) -> Answer:
    digest = hashlib.sha256(page.body).hexdigest()[:20]
    return Answer(page, where, f'"{digest}"', modified_at, names)


def _kept(cache: OrderedDict[_Key, _Kept], key: _Key) -> _Kept:
    """Return ``cache[key]``, and forget what was not wanted for longest."""
    cache.move_to_end(key)
    while len(cache) > _MAX_CACHED:
        cache.popitem(last=False)
    return cache[key]
