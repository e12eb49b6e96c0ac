"""What the status page shows, as records, and what of it is trouble."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime, timedelta

from models.polling.fixed import spell_duration
from models.records import BudgetReport, RecentPoll

HOURS_SHOWN = 48
"""Hours of the charts on the first page."""

DAYS_SHOWN = 14
"""Days of the charts that go by days."""

LOSS_SHOWN = timedelta(hours=24)
"""A possible loss is news for a day; afterwards the table of losses has it."""

HIT_SHOWN = timedelta(hours=24)
"""So long a hit at once is shown where no notice of it could be closed."""

AT_ONCE = 1
"""The level of urgency that nobody may miss."""


@dataclass(frozen=True, slots=True)
class LagHour:
    """Articles stored in an hour, and how late they were; None where none could be told."""

    hour_at: datetime
    n_articles: int
    median_lag_s: float | None
    p95_lag_s: float | None


@dataclass(frozen=True, slots=True)
class PollHour:
    """Polls begun in an hour."""

    hour_at: datetime
    n_polls: int
    n_failed: int
    megabytes: float


@dataclass(frozen=True, slots=True)
class ForecastHour:
    """An hour as it was expected, and as it came.

    Attributes
    ----------
    low, high
        Where the count lies nine times in ten, the sources taken as independent.
    actual
        None for an hour that is not over.
    n_within, n_sources
        Sources whose own count lay in their own range, and of how many.
    """

    hour_at: datetime
    expected: float
    low: float
    high: float
    actual: int | None
    n_within: int
    n_sources: int


@dataclass(frozen=True, slots=True)
class LagOfSource:
    """How late the articles of a source were in the last day.

    Attributes
    ----------
    target_s
        The lag people asked for; None where they did not.
    """

    source: str
    n_articles: int
    median_lag_s: float | None
    p95_lag_s: float | None
    mean_lag_s: float | None
    target_s: float | None = None

    @property
    def is_over(self) -> bool:
        """Whether it is later than wanted."""
        return (
            self.target_s is not None
            and self.mean_lag_s is not None
            and self.mean_lag_s > self.target_s
        )


@dataclass(frozen=True, slots=True)
class Loss:
    """A poll that found no known entry."""

    source: str
    started_at: datetime
    seen_before_at: datetime | None
    entries_listed: int
    entries_new: int

    @property
    def gap_s(self) -> float | None:
        """Seconds since the last good look; None where there was none."""
        if self.seen_before_at is None:
            return None
        return (self.started_at - self.seen_before_at).total_seconds()


@dataclass(frozen=True, slots=True)
class DriftCheck:
    """A check of a source's layout."""

    source: str
    checked_at: datetime
    n_reference: int
    n_test: int
    n_criteria: int
    fired: str
    drifted: bool


@dataclass(frozen=True, slots=True)
class Drift:
    """A change of a source's layout that stands: nobody has set it right yet.

    Attributes
    ----------
    standing
        ``layout``: pages are built otherwise, the text is right; ``text``: it is wrong.
    reason
        What changed, in words.
    """

    source: str
    standing: str
    since_at: datetime | None
    reason: str

    @property
    def verdict(self) -> str:
        """The verdict in words."""
        return "the text is wrong" if self.standing == "text" else "the layout changed"


@dataclass(frozen=True, slots=True)
class VerdictDay:
    """Pages judged on a day."""

    day_at: datetime
    n_pages: int
    n_suspicious: int


@dataclass(frozen=True, slots=True)
class Held:
    """Articles of a source that are held back."""

    source: str
    n_articles: int
    last_at: datetime


@dataclass(frozen=True, slots=True)
class LevelDay:
    """Hits of a day and level."""

    day_at: datetime
    level: int
    n_hits: int


@dataclass(frozen=True, slots=True)
class Hit:
    """A keyword rule that matched an article."""

    hit_at: datetime
    level: int
    rule: str
    source: str
    title: str
    url: str
    matched: str
    sentence: str
    explanation: str


@dataclass(frozen=True, slots=True)
class Notice:
    """Something people were or will be told.

    Attributes
    ----------
    closed_at
        When it was over: told, mended, or acknowledged.
    """

    notice_id: str
    kind: str
    subject: str
    source: str | None
    level: int
    channel: str
    raised_at: datetime
    sent_at: datetime | None
    closed_at: datetime | None
    error: str | None

    @property
    def is_open(self) -> bool:
        """Whether what it is about goes on."""
        return self.closed_at is None


@dataclass(frozen=True, slots=True)
class Overview:
    """What the first page shows beside the standing of every source.

    Attributes
    ----------
    notices
        Those that are open, and the others of the last week.
    hits
        The latest of the levels 1 and 2.
    """

    now: datetime
    lag_hours: tuple[LagHour, ...] = ()
    poll_hours: tuple[PollHour, ...] = ()
    forecast_hours: tuple[ForecastHour, ...] = ()
    lags: tuple[LagOfSource, ...] = ()
    budgets: tuple[BudgetReport, ...] = ()
    losses: tuple[Loss, ...] = ()
    drifts: tuple[Drift, ...] = ()
    checks: tuple[DriftCheck, ...] = ()
    verdict_days: tuple[VerdictDay, ...] = ()
    held: tuple[Held, ...] = ()
    level_days: tuple[LevelDay, ...] = ()
    hits: tuple[Hit, ...] = ()
    notices: tuple[Notice, ...] = ()

    @property
    def recent_losses(self) -> list[Loss]:
        """Possible losses that are still news."""
        return [loss for loss in self.losses if self.now - loss.started_at < LOSS_SHOWN]

    @property
    def urgent(self) -> list[Hit]:
        """Hits at once of the last day."""
        since = self.now - HIT_SHOWN
        return [hit for hit in self.hits if hit.level == AT_ONCE and hit.hit_at > since]


@dataclass(frozen=True, slots=True)
class KnownArticle:
    """An article as a source's page names it."""

    published_at: datetime | None
    stored_at: datetime
    title: str
    url: str
    publication_lag_s: float | None
    version: int
    quarantined: bool


@dataclass(frozen=True, slots=True)
class SuspiciousPage:
    """A page the detector found strange."""

    judged_at: datetime
    url: str
    score: float
    reason: str


@dataclass(frozen=True, slots=True)
class HabitModel:
    """What the last refit chose for a source."""

    fitted_at: datetime
    kind: str
    policy: str | None
    score: float | None
    note: str | None


@dataclass(frozen=True, slots=True)
class SourceFacts:
    """What a source's page shows beside its standing.

    Attributes
    ----------
    polls
        The last ones, newest first.
    decisions
        What the choice after each was made from, JSON, in the same order.
    """

    polls: tuple[RecentPoll, ...] = ()
    decisions: tuple[str, ...] = field(default=(), repr=False)
    lag_hours: tuple[LagHour, ...] = ()
    forecast_hours: tuple[ForecastHour, ...] = ()
    articles: tuple[KnownArticle, ...] = ()
    losses: tuple[Loss, ...] = ()
    drifts: tuple[Drift, ...] = ()
    checks: tuple[DriftCheck, ...] = ()
    suspicious: tuple[SuspiciousPage, ...] = ()
    verdict_days: tuple[VerdictDay, ...] = ()
    hits: tuple[Hit, ...] = ()
    notices: tuple[Notice, ...] = ()
    model: HabitModel | None = None


def with_targets(
    lags: Sequence[LagOfSource], targets: Mapping[str, float]
) -> tuple[LagOfSource, ...]:
    """Return lags with the targets of their sources, those furthest over theirs first."""
    known = [
        LagOfSource(
            lag.source,
            lag.n_articles,
            lag.median_lag_s,
            lag.p95_lag_s,
            lag.mean_lag_s,
            targets.get(lag.source),
        )
        for lag in lags
    ]
    return tuple(sorted(known, key=lambda lag: (-_excess(lag), -(lag.mean_lag_s or 0.0))))


def _excess(lag: LagOfSource) -> float:
    return (lag.mean_lag_s or 0.0) / lag.target_s if lag.target_s else 0.0


def describe_loss(loss: Loss) -> str:
    """Return what may have been lost, in words.

    Examples
    --------
    >>> at = datetime(2026, 3, 1, 12)
    >>> describe_loss(Loss("daily", at, at - timedelta(hours=3), 30, 30))
    'all 30 entries listed were new, 3 h after the poll before: more may have come and gone'
    """
    gap = f", {spell_duration(loss.gap_s)} after the poll before" if loss.gap_s else ""
    return f"all {loss.entries_listed} entries listed were new{gap}: more may have come and gone"
