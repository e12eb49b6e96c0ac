"""When who is told: five levels, channels, quiet hours, digests, repeats.

Level 1 goes out at once and again until somebody answers, 2 at once, 3 with the next hourly
digest, 4 with the daily one; 5 is only kept. Everything here only decides.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime, time, timedelta
from zoneinfo import ZoneInfo

AT_ONCE = (1, 2)
HOURLY, DAILY, KEPT = 3, 4, 5

BUNDLED_FROM = 4
"""So many alerts of one level that wait for a channel go as one message: after an outage
nobody reads forty."""

CLOCK_TIME = r"([01]\d|2[0-3]):[0-5]\d"
QUIET = rf"({CLOCK_TIME}-{CLOCK_TIME})?"


@dataclass(frozen=True, slots=True)
class Channel:
    """A place people are told at.

    Attributes
    ----------
    name
        Its name in the settings.
    url
        An apprise address, ``prefect:`` for an event in Prefect, ``log:`` for the worker's log.
    levels
        Levels it takes.
    tags
        Tags of sources, and groups of rules, it takes; empty for all.
    quiet
        ``"22:00-07:00"``: only level 1 is told then, the rest after it.
    timezone
        Of quiet hours and digests.
    """

    name: str
    url: str = "log:"
    levels: tuple[int, ...] = (1, 2, 3, 4)
    tags: tuple[str, ...] = ()
    quiet: str = ""
    timezone: str = "UTC"


@dataclass(frozen=True, slots=True)
class Pace:
    """How fast the ladder runs.

    Attributes
    ----------
    digest_at
        Time of day of the daily digest, in the channel's zone.
    repeat_s
        Seconds after which an alert of level 1 is told again.
    retry_s, longest_retry_s
        Wait after a failed attempt; it doubles, up to the longest.
    """

    digest_at: str = "08:00"
    repeat_s: float = 900.0
    retry_s: float = 15.0
    longest_retry_s: float = 900.0


@dataclass(frozen=True, slots=True)
class Raising:
    """What raises a hit by one level, each reason once.

    Attributes
    ----------
    weight
        A source of this weight or more.
    together
        So many rules of a level hitting one article.
    spike_hits
        Least hits in an hour that can be a burst.
    spike_chance
        A burst is what the same hour of earlier days makes less likely than this.
    """

    weight: float = 3.0
    together: int = 3
    spike_hits: int = 5
    spike_chance: float = 1e-4


def takes(channel: Channel, level: int, labels: Collection[str]) -> bool:
    """Return whether a channel takes a hit of that level, from a source or rule so labelled.

    Examples
    --------
    >>> desk = Channel("desk", levels=(1, 2), tags=("energy",))
    >>> takes(desk, 1, {"energy", "world"}), takes(desk, 3, {"energy"}), takes(desk, 1, {"sport"})
    (True, False, False)
    """
    if level not in channel.levels or level >= KEPT:
        return False
    return not channel.tags or not set(channel.tags).isdisjoint(labels)


def first_due(level: int, raised_at: datetime, channel: Channel, pace: Pace) -> datetime:
    """Return when a notice of that level is told.

    Examples
    --------
    >>> at = datetime(2025, 3, 4, 22, 41, tzinfo=UTC)
    >>> night = Channel("night", quiet="22:00-07:00")
    >>> [f"{first_due(level, at, night, Pace()):%d %H:%M}" for level in (1, 2, 3, 4)]
    ['04 22:41', '05 07:00', '05 07:00', '05 08:00']
    """
    if level == 1:
        return raised_at
    zone = ZoneInfo(channel.timezone)
    due = raised_at
    if level == HOURLY:
        local = raised_at.astimezone(zone)
        due = local.replace(minute=0, second=0, microsecond=0).astimezone(UTC) + timedelta(hours=1)
    elif level >= DAILY:
        due = _next_time(raised_at, pace.digest_at, zone)
    return _after_quiet(due, channel.quiet, zone)


def _next_time(after: datetime, clock: str, zone: ZoneInfo) -> datetime:
    """Return the next moment after `after` at which clocks of a zone show `clock`."""
    at = time.fromisoformat(clock)
    local = after.astimezone(zone)
    for days in range(3):
        moment = datetime.combine(local.date() + timedelta(days=days), at, zone)
        if moment.astimezone(UTC) > after:
            return moment.astimezone(UTC)
    raise AssertionError("a day has every time")


def _after_quiet(at: datetime, quiet: str, zone: ZoneInfo) -> datetime:
    """Return `at`, or the end of the quiet hours it falls into."""
    if not quiet:
        return at
    begins, _, ends = quiet.partition("-")
    start, end = time.fromisoformat(begins), time.fromisoformat(ends)
    clock = at.astimezone(zone).time()
    is_quiet = start <= clock < end if start <= end else clock >= start or clock < end
    return _next_time(at, ends, zone) if is_quiet else at


@dataclass(frozen=True, slots=True)
class Notice:
    """A row of ``notices``: something people on one channel are, or will be, told.

    Attributes
    ----------
    notice_id
        Digest of the story and the channel.
    kind
        ``hit``, ``failure`` and so on.
    subject
        One line: the headline.
    source, outlets
        Who ran it first, and all who did.
    text
        Rules, sentences and reasons.
    due_at
        When it is to be told; None while nothing is to be.
    """

    notice_id: str
    kind: str
    subject: str
    source: str | None
    level: int
    channel: str
    text: str
    raised_at: datetime
    sent_at: datetime | None = None
    closed_at: datetime | None = None
    error: str | None = None
    story_id: str | None = None
    url: str | None = None
    rules: tuple[str, ...] = ()
    outlets: tuple[str, ...] = ()
    due_at: datetime | None = None
    told_at: datetime | None = None
    n_told: int = 0
    acknowledged_at: datetime | None = None
    acknowledged_by: str | None = None

    @property
    def is_open(self) -> bool:
        """Whether it goes on being told: level 1, until somebody answers."""
        return self.level == 1 and self.acknowledged_at is None and self.closed_at is None


@dataclass(frozen=True, slots=True)
class Draft:
    """Notices that go out as one message.

    Attributes
    ----------
    kind
        ``alert``, ``reminder`` or ``digest``.
    """

    kind: str
    notices: tuple[Notice, ...] = field(default_factory=tuple)

    @property
    def level(self) -> int:
        """The most urgent level in it."""
        return min(notice.level for notice in self.notices)


def draft_messages(due: Sequence[Notice]) -> list[Draft]:
    """Return the messages that the due notices of one channel make; none where none are due.

    Alerts go singly, or in one message where many wait; digests are one message a level.
    """
    drafts: list[Draft] = []
    for level in sorted({notice.level for notice in due}):
        notices = sorted(
            (notice for notice in due if notice.level == level), key=lambda one: one.raised_at
        )
        fresh = [notice for notice in notices if not notice.n_told]
        again = [notice for notice in notices if notice.n_told]
        if level not in AT_ONCE:
            drafts += [Draft("digest", tuple(notices))]
            continue
        drafts += _singly("alert", fresh)
        drafts += [Draft("reminder", tuple(again))] if again else []
    return drafts


def _singly(kind: str, notices: Sequence[Notice]) -> Iterable[Draft]:
    if len(notices) >= BUNDLED_FROM:
        return [Draft(kind, tuple(notices))]
    return [Draft(kind, (notice,)) for notice in notices]


def next_reminder(notice: Notice, told_at: datetime, pace: Pace) -> datetime | None:
    """Return when a notice that was told is told again, None for never."""
    return told_at + timedelta(seconds=pace.repeat_s) if notice.is_open else None


def next_try(attempts: int, now: datetime, pace: Pace) -> datetime:
    """Return when a message is tried again after so many failures in a row.

    Examples
    --------
    >>> at = datetime(2025, 3, 4, tzinfo=UTC)
    >>> [(next_try(n, at, Pace()) - at).seconds for n in (1, 2, 3, 12)]
    [15, 30, 60, 900]
    """
    wait_s = min(pace.retry_s * 2.0 ** min(attempts - 1, 20), pace.longest_retry_s)
    return now + timedelta(seconds=wait_s)
