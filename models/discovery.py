"""Which of several addresses of a publisher to watch, and what to call the source.

A publisher often offers several feeds, a news sitemap, and list pages. The best one to
poll is alive, says when its entries were published, and lists far enough back that a
late poll still finds everything.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from statistics import median

import ada_url

from models.kinds import account_of
from models.plaintext import plain_text
from models.records import Entry, ExtractRules, Kind, Listing, Method, Source

BOARD_TEXT_CHARS = 60
"""A board whose feed brings texts of this length, in the middle, need not be fetched itself."""

FULL_TEXT_CHARS = 1500.0
"""A feed whose texts are this long, in the middle, brings its articles whole."""

FULL_WINDOW_H = 48.0
"""A listing that reaches back two days outlives any ordinary outage of ours."""

_KIND_BONUS: dict[Kind, float] = {"sitemap": 0.3, "list": 0.0}
_FEED_BONUS = 0.6
"""A feed brings titles, summaries and authors; a sitemap titles at best; a list only links."""

_MASTODON_FEED = re.compile(r"/(?:@\w+|users/\w+|tags/[^/]+)\.rss$")

_HUGE_LISTING = 2000
"""More entries than this is an archive, not news: every poll would carry all of it."""

_SECOND_LEVELS = frozenset({"ac", "co", "com", "edu", "gob", "gov", "net", "ne", "or", "org"})
_DULL_LABELS = frozenset({"www", "feeds", "feed", "rss", "m", "news"})


@dataclass(frozen=True, slots=True)
class Candidate:
    """An address that could be polled, and what speaks for it.

    Attributes
    ----------
    url
        Address to poll, after redirects.
    found_by
        How it was found, in words: ``"named by the page"``.
    score
        Larger is better; see `score_listing`.
    n_entries, n_dated
        Entries listed, and how many of them say when they were published.
    newest_at, window_h
        Newest date, and hours between the oldest and the newest.
    text_chars
        Characters of text that the entry in the middle brings along.
    method
        How its texts are best got: ``listing`` where the entries bring all there is.
    evidence
        The above as one line for people.
    """

    url: str
    kind: Kind
    format: str
    title: str | None
    found_by: str
    score: float
    n_entries: int
    n_dated: int
    newest_at: datetime | None
    window_h: float
    evidence: str
    text_chars: int = 0
    language: str | None = None
    method: Method = "auto"


@dataclass(frozen=True, slots=True)
class Miss:
    """An address that was tried and cannot be polled, and why."""

    url: str
    found_by: str
    reason: str


@dataclass(frozen=True, slots=True)
class Discovery:
    """What could be polled, the best first, and what was tried in vain."""

    found: list[Candidate]
    misses: list[Miss]


def judge_listing(
    listing: Listing, url: str, kind: Kind, found_by: str, now: datetime, board: str | None = None
) -> Candidate:
    """Return the candidate that `listing`, fetched from `url`, makes.

    Parameters
    ----------
    board
        Forum software of the site, where it is one: its posts are their own articles.
    """
    dates = [entry.published_at for entry in listing.entries if entry.published_at]
    newest = max(dates, default=None)
    window_h = (max(dates) - min(dates)) / timedelta(hours=1) if dates else 0.0
    n_chars = _text_chars(listing.entries)
    if kind == "feed" and _is_mastodon(url, listing.entries):
        kind = "mastodon"
    is_whole = board is not None and kind == "feed" and n_chars >= BOARD_TEXT_CHARS
    return Candidate(
        url=url,
        kind=kind,
        format=listing.format,
        title=listing.title,
        found_by=found_by,
        score=score_listing(listing.entries, kind, now),
        n_entries=len(listing.entries),
        n_dated=len(dates),
        newest_at=newest,
        window_h=window_h,
        evidence=_evidence(listing, len(dates), newest, window_h, now),
        text_chars=n_chars,
        method="listing" if is_whole else "auto",
    )


def _text_chars(entries: Iterable[Entry]) -> int:
    lengths = [len(plain_text(entry.content or entry.summary or "")) for entry in entries]
    return int(median(lengths)) if lengths else 0


def _is_mastodon(url: str, entries: Sequence[Entry]) -> bool:
    path = url.partition("?")[0]
    return bool(_MASTODON_FEED.search(path)) and not any(entry.title for entry in entries)


def score_listing(entries: Iterable[Entry], kind: Kind, now: datetime) -> float:
    """Return how good a listing is to poll, from about -1 to 5.

    Up to 2 for the newest entry being fresh, up to 1 for the share of dated entries, up
    to 1 for how far back it reaches, a bonus for the kind, and up to 0.4 for full texts.

    Examples
    --------
    >>> now = datetime.fromisoformat("2026-03-05T12:00:00+00:00")
    >>> dated = [Entry("https://news.example/1", published_at=now - timedelta(hours=h))
    ...          for h in (1, 25)]
    >>> score_listing(dated, "feed", now)
    4.1
    >>> score_listing([Entry("https://news.example/1")], "list", now)
    0.8
    """
    listed = list(entries)
    if not listed:
        return -1.0
    dates = [entry.published_at for entry in listed if entry.published_at]
    window_h = (max(dates) - min(dates)) / timedelta(hours=1) if dates else 0.0
    score = 2.0 * _freshness(max(dates, default=None), now)
    score += len(dates) / len(listed)
    score += min(window_h / FULL_WINDOW_H, 1.0)
    score -= 1.5 if len(listed) > _HUGE_LISTING else 0.0
    score += 0.4 * min(_text_chars(listed) / FULL_TEXT_CHARS, 1.0)
    return round(score + _KIND_BONUS.get(kind, _FEED_BONUS), 3)


def _freshness(newest: datetime | None, now: datetime) -> float:
    """Return 1 for news of the last day, falling to 0.1 for a listing long asleep."""
    if newest is None:
        return 0.4
    age = now - newest
    steps = ((timedelta(days=1), 1.0), (timedelta(days=7), 0.7), (timedelta(days=30), 0.3))
    return next((value for limit, value in steps if age <= limit), 0.1)


def _evidence(
    listing: Listing, n_dated: int, newest: datetime | None, window_h: float, now: datetime
) -> str:
    parts = [f"{listing.format}, {len(listing.entries)} entries"]
    if newest is None:
        parts.append("none dated")
    else:
        if n_dated < len(listing.entries):
            parts.append(f"{n_dated} dated")
        parts.append(f"newest {spell_hours((now - newest) / timedelta(hours=1))} old")
        parts.append(f"reaches back {spell_hours(window_h)}")
    return ", ".join(parts)


def spell_hours(hours: float) -> str:
    """Return hours in the unit people would use.

    >>> spell_hours(0.4), spell_hours(30.0), spell_hours(100.0)
    ('24 min', '30 h', '4 days')
    """
    if hours < 2:
        return f"{max(hours, 0.0) * 60:.0f} min"
    return f"{hours:.0f} h" if hours < 72 else f"{hours / 24:.0f} days"


def suggest_name(url: str, taken: Iterable[str] = (), kind: Kind = "auto") -> str:
    """Return a free source name made from an address: of a channel or profile, its own name.

    Examples
    --------
    >>> suggest_name("https://www.daily-herald.co.uk/rss.xml")
    'daily-herald'
    >>> suggest_name("https://feeds.bbci.co.uk/russian/rss.xml", taken=["bbci"])
    'bbci-2'
    >>> suggest_name("https://t.me/harbour_news", kind="telegram")
    'harbour-news'
    """
    if account := account_of(kind, url):
        return free_name(account, taken)
    labels = ada_url.URL(url).hostname.split(".")
    if labels[-1].isdigit():
        return _first_free("-".join(["host", *labels]), set(taken))
    while len(labels) > 2 and labels[0] in _DULL_LABELS:
        labels = labels[1:]
    labels = labels[:-1] if len(labels) > 1 else labels
    if len(labels) > 1 and labels[-1] in _SECOND_LEVELS:
        labels = labels[:-1]
    return free_name("-".join(reversed(labels)), taken)


def free_name(text: str, taken: Iterable[str] = ()) -> str:
    """Return a free source name made from words.

    Examples
    --------
    >>> free_name("BBC News"), free_name("BBC News", ["bbc-news"]), free_name("新闻")
    ('bbc-news', 'bbc-news-2', 'source')
    """
    name = re.sub(r"[^a-z0-9]+", "-", text.lower()).strip("-")[:50].rstrip("-")
    name = name if len(name) > 1 else f"source-{name}".rstrip("-")
    return _first_free(name, set(taken))


def _first_free(name: str, taken: set[str]) -> str:
    if name not in taken:
        return name
    number = 2
    while f"{name}-{number}" in taken:
        number += 1
    return f"{name}-{number}"


def make_source(candidate: Candidate, taken: Iterable[str] = ()) -> Source:
    """Return the catalogue entry that a candidate makes; its name is none of `taken`."""
    name = suggest_name(candidate.url, taken, candidate.kind)
    title = " ".join((candidate.title or "").split())[:200]
    return Source(
        source=name,
        title=title or name,
        url=candidate.url,
        kind=candidate.kind,
        language=candidate.language,
        extract=ExtractRules(method=candidate.method),
    )
