"""What is known of one day, as it is read: the report is made from it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from datetime import date, datetime, time, timedelta
from zoneinfo import ZoneInfo

from models.novelty import Title
from models.overview import DriftCheck, Hit, Loss
from models.stories import Headline


@dataclass(frozen=True, slots=True)
class Span:
    """A day in a time zone, and the days it is compared with.

    Attributes
    ----------
    since, until
        Its first moment, and the first of the next day.
    before
        First moment of the days it is compared with.
    """

    day: date
    timezone: str
    since: datetime
    until: datetime
    before: datetime
    baseline_days: int

    @classmethod
    def of(cls, day: date, timezone: str, baseline_days: int) -> Span:
        """Return the span of a day.

        Examples
        --------
        >>> span = Span.of(date(2026, 3, 29), "Europe/Berlin", 14)
        >>> (span.until - span.since) / timedelta(hours=1)
        23.0
        """
        zone = ZoneInfo(timezone)

        def start_of(when: date) -> datetime:
            return datetime.combine(when, time(), zone).astimezone(ZoneInfo("UTC"))

        return cls(
            day,
            timezone,
            start_of(day),
            start_of(day + timedelta(days=1)),
            start_of(day - timedelta(days=baseline_days)),
            baseline_days,
        )


@dataclass(frozen=True, slots=True)
class DayCount:
    """What a day came to, all sources together."""

    day: date
    n_articles: int
    n_sources: int
    median_lag_s: float | None
    p95_lag_s: float | None
    n_polls: int
    n_failed: int
    megabytes: float
    n_possible_losses: int


@dataclass(frozen=True, slots=True)
class LevelCount:
    """Hits of a level; `usual` is their mean on the days before."""

    level: int
    n_hits: int
    n_articles: int
    n_sources: int
    usual: float


@dataclass(frozen=True, slots=True)
class RuleCount:
    """Hits of a rule; `usual` is their mean on the days before."""

    rule: str
    level: int
    n_hits: int
    n_sources: int
    usual: float


@dataclass(frozen=True, slots=True)
class TagCount:
    """Articles of the sources with a tag; `usual` is their mean on the days before."""

    tag: str
    n_articles: int
    n_sources: int
    usual: float
    median_lag_s: float | None
    n_hits: int


@dataclass(frozen=True, slots=True)
class OutletCount:
    """Articles of a source; `usual` is their mean on the days before."""

    source: str
    title: str
    n_articles: int
    usual: float
    median_lag_s: float | None
    p95_lag_s: float | None
    n_hits: int
    n_edited: int


@dataclass(frozen=True, slots=True)
class HourCount:
    """Entries of a source in an hour, and in how many of the days before it had any."""

    source: str
    hour_at: datetime
    n_entries: int
    usual: float
    before: float


@dataclass(frozen=True, slots=True)
class Coverage:
    """What became of the entries a source listed on the day.

    Attributes
    ----------
    n_stood_in
        Entries whose page could not be had, so that the listing stands in for it.
    n_neither
        Entries neither stored nor owed: never more than none.
    """

    source: str
    n_listed: int
    n_stored: int
    n_stood_in: int
    n_held: int
    n_owed: int
    n_neither: int


@dataclass(frozen=True, slots=True)
class Down:
    """A source that did not answer for some of the day.

    Attributes
    ----------
    longest_s
        Longest time without a good poll within the day.
    """

    source: str
    n_polls: int
    n_failed: int
    longest_s: float
    last_reason: str
    state: str


@dataclass(frozen=True, slots=True)
class Silent:
    """A source that published nothing, although it usually does."""

    source: str
    usual: float
    last_at: datetime | None


@dataclass(frozen=True, slots=True)
class HeldArticle:
    """An article that is held back, and why."""

    source: str
    title: str
    url: str
    stored_at: datetime
    reason: str


@dataclass(frozen=True, slots=True)
class Unsent:
    """A notice that people were not told, although they should have been."""

    subject: str
    level: int
    channel: str
    raised_at: datetime
    error: str


@dataclass(frozen=True, slots=True)
class DayFacts:
    """All that is read of a day.

    Attributes
    ----------
    usual_days
        Days before that were watched; without any there is nothing to compare with.
    """

    span: Span
    usual_days: float = 0.0
    days: Sequence[DayCount] = ()
    levels: Sequence[LevelCount] = ()
    rules: Sequence[RuleCount] = ()
    tags: Sequence[TagCount] = ()
    outlets: Sequence[OutletCount] = ()
    hits: Sequence[Hit] = ()
    headlines: Sequence[Headline] = field(default=(), repr=False)
    titles: Sequence[Title] = field(default=(), repr=False)
    hours: Sequence[HourCount] = field(default=(), repr=False)
    coverage: Sequence[Coverage] = ()
    losses: Sequence[Loss] = ()
    down: Sequence[Down] = ()
    silent: Sequence[Silent] = ()
    held: Sequence[HeldArticle] = ()
    checks: Sequence[DriftCheck] = ()
    unsent: Sequence[Unsent] = ()
