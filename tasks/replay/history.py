"""What the recorded web lives through: sources, their entries, faults and redesigns.

All of it is data, made by `tasks.replay.sample` (invented) or `tasks.replay.recording`
(real) before anything is served. `RecordedWeb` also knows the truth a collector is
judged by: `RecordedWeb.listed` names every address that was listed.
"""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections.abc import Iterable, Sequence
from dataclasses import asdict, dataclass, field, replace
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Literal, get_args

import tomlkit

from models.records import ExtractRules, HttpRules, Kind, PollRules, Source

FaultKind = Literal[
    "status", "slow", "drip", "cut", "content_type", "changing_etag", "stuck_etag", "bad_validators"
]
Where = Literal["all", "index", "article", "robots"]
ValidatorHabit = Literal["both", "etag", "modified", "none"]

CATALOGUE_FILE = "recorded-web.toml"
BACKLOG_HOURS = 6.0
LEAST_BACKLOG = 10
BACKLOG_REACH = timedelta(days=3)  # how far back a slow site's last entries are looked for


@dataclass(frozen=True, slots=True)
class InventedPage:
    """An article page to be written when asked for: article number `seed` of the source."""

    seed: int


@dataclass(frozen=True, slots=True)
class StoredPage:
    """An article page as found, byte for byte.

    Attributes
    ----------
    content_type
        Sent with it. No charset where none is known: the bytes speak for themselves.
    """

    body: bytes
    content_type: str = "text/html"


@dataclass(frozen=True, slots=True)
class RecordedEntry:
    """Something a source published.

    Attributes
    ----------
    published_at
        Aware UTC, whole seconds. From then on it is listed and its page is there.
    path
        Address within the source's host, with its query if it has one. Unique there.
    """

    published_at: datetime
    path: str
    title: str
    page: InventedPage | StoredPage
    summary: str = ""


@dataclass(frozen=True, slots=True)
class Redesign:
    """From `at` on, a source's article pages (and front page) have another layout.

    Pages kept as found (`StoredPage`) do not change.
    """

    at: datetime
    layout: str
    front: str | None = None


@dataclass(frozen=True, slots=True)
class Fault:
    """Something that goes wrong with answers, between two moments of the clock.

    Attributes
    ----------
    kind
        ``status``: answer `status`, with ``Retry-After`` if `retry_after_s` is given ·
        ``slow``: wait `wait_s` before the answer · ``drip``: send the body in pieces over
        `wait_s` · ``cut``: close the connection half way through the body ·
        ``content_type``: claim `content_type` · ``changing_etag``: another ETag each time ·
        ``stuck_etag``: the same ETag for ever, so that 304 is answered to whoever has it,
        news or no news · ``bad_validators``: unreadable ETag and Last-Modified.
    host
        The source it befalls; every one where empty.
    where
        Which answers.
    from_at, until_at
        From when, and until when (not included), on the clock; open where None.
    wait_s
        Wall seconds.
    every
        Befalls one of the source's requests in so many: 1 is each.

    Raises
    ------
    ValueError
        If there is no such kind or place, or `every` is below 1.
    """

    kind: FaultKind
    host: str = ""
    where: Where = "all"
    from_at: datetime | None = None
    until_at: datetime | None = None
    status: int = 503
    retry_after_s: int | None = None
    wait_s: float = 2.0
    content_type: str = "application/octet-stream"
    every: int = 1

    def __post_init__(self) -> None:
        for name, allowed in (("kind", get_args(FaultKind)), ("where", get_args(Where))):
            if getattr(self, name) not in allowed:
                raise ValueError(f"{name} must be one of {', '.join(allowed)}")
        if self.every < 1:
            raise ValueError("every must be 1 or more")

    def befalls(self, host: str, where: str, at: datetime) -> bool:
        """Return whether an answer of `host` at moment `at` is affected."""
        if self.host not in ("", host) or self.where not in ("all", where):
            return False
        begun = self.from_at is None or at >= self.from_at
        return begun and (self.until_at is None or at < self.until_at)


@dataclass(frozen=True, slots=True)
class RecordedSource:
    """One site of the recorded web.

    Attributes
    ----------
    source
        Short name, as in the catalogue.
    kind
        How it is to be watched: feed, sitemap or list. All three are served.
    entries
        Sorted here by time of publication.
    window
        How many entries a listing holds, W.
    feed_format
        ``rss`` or ``atom``.
    layout, front
        Names of an article layout and a front page, in ``data/sample``.
    encoding
        Of its own pages and feeds (the sitemap is always UTF-8).
    validators
        Which of ETag and Last-Modified it sends.
    gzip
        Whether it compresses for those who accept that.
    latency_s
        Wait before an answer, wall seconds.
    topics
        What its invented articles are about; everything where empty.
    extract
        What the catalogue says of its article pages.
    """

    source: str
    title: str
    host: str
    kind: Kind
    entries: tuple[RecordedEntry, ...]
    language: str = "en"
    timezone: str = "UTC"
    country: str | None = None
    reach: Literal["wide", "local", "trade"] = "wide"
    window: int = 30
    feed_format: Literal["rss", "atom"] = "rss"
    layout: str = "html5"
    front: str = "river"
    encoding: str = "utf-8"
    validators: ValidatorHabit = "both"
    gzip: bool = True
    latency_s: float = 0.02
    topics: tuple[str, ...] = ()
    extract: ExtractRules = field(default_factory=ExtractRules)
    redesigns: tuple[Redesign, ...] = ()
    times: tuple[datetime, ...] = field(init=False, repr=False, compare=False)

    def __post_init__(self) -> None:
        in_order = tuple(sorted(self.entries, key=lambda entry: entry.published_at))
        object.__setattr__(self, "entries", in_order)
        object.__setattr__(self, "times", tuple(entry.published_at for entry in in_order))

    @property
    def base_url(self) -> str:
        """Scheme and host."""
        return f"http://{self.host}"

    @property
    def index_url(self) -> str:
        """The address to poll."""
        path = {"feed": "/feed.xml", "sitemap": "/news-sitemap.xml"}.get(self.kind, "/")
        return self.base_url + path

    @property
    def feed_type(self) -> str:
        """Media type of its feed."""
        return f"application/{self.feed_format}+xml"

    def url_of(self, entry: RecordedEntry) -> str:
        """Return the address of an entry's article."""
        return self.base_url + entry.path

    def window_at(self, at: datetime) -> range:
        """Return which `entries` a listing holds at moment `at`."""
        last = bisect_right(self.times, at)
        return range(max(0, last - self.window), last)

    def listed(self, since: datetime, until: datetime) -> range:
        """Return which `entries` a listing held at some moment of ``[since, until]``."""
        first = self.window_at(since).start
        return range(first, bisect_right(self.times, until))

    def n_published(self, since: datetime, until: datetime) -> int:
        """Return how many entries came out in ``[since, until)``."""
        return bisect_left(self.times, until) - bisect_left(self.times, since)

    def layout_at(self, at: datetime) -> tuple[str, str]:
        """Return the article layout and front page in use at moment `at`."""
        layout, front = self.layout, self.front
        for redesign in sorted(self.redesigns, key=lambda each: each.at):
            if redesign.at <= at:
                layout, front = redesign.layout, redesign.front or front
        return layout, front


@dataclass(frozen=True, slots=True)
class RecordedWeb:
    """A web of recorded sources.

    Attributes
    ----------
    history
        The sources, each with its entries: those before `start` too, so that listings are
        filled from the first moment.
    start
        The moment a replay begins at.
    faults
        What goes wrong; more can be added while it is served.
    """

    history: tuple[RecordedSource, ...]
    start: datetime
    faults: tuple[Fault, ...] = ()

    def sources(self, port: int, interval_s: float = 300.0, policy: str = "fixed") -> list[Source]:
        """Return catalogue entries with which a collector reaches this web at `port`.

        Parameters
        ----------
        port
            Loopback port it is served at.
        interval_s
            Wait between two polls, seconds of the clock.
        policy
            Polling policy of them all.
        """
        return [
            Source(
                source=each.source,
                title=each.title,
                url=each.index_url,
                kind=each.kind,
                language=each.language,
                timezone=each.timezone,
                country=each.country,
                tags=("recorded",),
                reach=each.reach,
                poll=PollRules(policy=policy, interval_s=interval_s),
                extract=each.extract,
                http=HttpRules(allow_private=True, connect_to=f"127.0.0.1:{port}", min_gap_s=0.0),
                file=CATALOGUE_FILE,
            )
            for each in self.history
        ]

    def listed(self, until: datetime, since: datetime | None = None) -> dict[str, set[str]]:
        """Return, by source, the article addresses that were listed at some moment.

        Parameters
        ----------
        until
            Last moment that counts.
        since
            First one; `start` where None. What had left the listing before does not count,
            what leaves it later does.
        """
        since = self.start if since is None else since
        return {
            each.source: {each.url_of(each.entries[at]) for at in each.listed(since, until)}
            for each in self.history
        }

    def with_faults(self, faults: Iterable[Fault]) -> RecordedWeb:
        """Return this web with more going wrong."""
        return replace(self, faults=(*self.faults, *faults))


def first_of_backlog(times: Sequence[datetime], start: datetime, backlog_hours: float) -> int:
    """Return the place in `times` where what is out at `start` begins.

    All of the last `backlog_hours`, and never less than `LEAST_BACKLOG` while there are as
    many: no site's list is ever all but empty.
    """
    begins_at = start - timedelta(hours=backlog_hours)
    return max(0, min(bisect_left(times, begins_at), bisect_right(times, start) - LEAST_BACKLOG))


def write_catalogue(sources: Iterable[Source], folder: Path) -> Path:
    """Write `sources` as one catalogue file into `folder`, and return its path.

    What equals the default is left out. An existing file of that name is replaced.
    """
    document = tomlkit.document()
    document.add(tomlkit.comment("The recorded web: written anew each time it is served."))
    tables = tomlkit.aot()
    for source in sources:
        tables.append(_table(source))
    document.add("source", tables)
    folder.mkdir(parents=True, exist_ok=True)
    path = folder / CATALOGUE_FILE
    path.write_text(tomlkit.dumps(document), encoding="utf-8")
    return path


def _table(source: Source) -> tomlkit.items.Table:
    table = tomlkit.table()
    for key in ("source", "title", "url", "kind", "language", "timezone", "country"):
        if getattr(source, key) is not None:
            table.add(key, getattr(source, key))
    table.add("tags", list(source.tags))
    table.add("reach", source.reach)
    poll, usual = asdict(source.poll), asdict(PollRules(interval_s=0.0))
    table.add("poll", {key: value for key, value in poll.items() if value != usual[key]})
    plain = asdict(ExtractRules())
    rules = asdict(source.extract).items()
    if extract := {key: text for key, text in rules if text and text != plain[key]}:
        table.add("extract", extract)
    http = {"allow_private": source.http.allow_private, "connect_to": source.http.connect_to}
    table.add("http", http | {"min_gap_s": source.http.min_gap_s})
    return table


def read_moment(text: str) -> datetime:
    """Return an ISO time as aware UTC; one without zone is taken as UTC.

    Raises
    ------
    ValueError
        If it is no ISO time.
    """
    moment = datetime.fromisoformat(text)
    return moment.replace(tzinfo=UTC) if moment.tzinfo is None else moment.astimezone(UTC)
