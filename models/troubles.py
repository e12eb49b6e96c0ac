"""What is wrong now, in the order in which people want to know it."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from datetime import datetime

from models.overview import Hit, LagOfSource, Loss, Notice, Overview, describe_loss
from models.polling.fixed import spell_duration
from models.records import SourceStatus


@dataclass(frozen=True, slots=True)
class Trouble:
    """One thing that is wrong.

    Attributes
    ----------
    source
        Whom it is about; empty where it is about none.
    since
        When it began; None where that is not known.
    command
        What ends it, as it is typed; empty where there is no such thing.
    """

    source: str
    words: str
    since: datetime | None = None
    command: str = ""


@dataclass(frozen=True, slots=True)
class Card:
    """One kind of trouble on the first screen.

    Attributes
    ----------
    name
        Its anchor, and the class that styles it.
    noun
        What the headline says of it, after a number.
    well
        What stands there when there is none.
    """

    name: str
    title: str
    noun: str
    well: str
    troubles: tuple[Trouble, ...]


def make_cards(
    overview: Overview, broken: Sequence[SourceStatus], late: Sequence[SourceStatus]
) -> tuple[Card, ...]:
    """Return what matters at once, what broke, what is late and what was lost.

    Parameters
    ----------
    broken, late
        Sources that fail, drifted or are gone, and those whose poll is overdue.
    """
    return (
        Card(
            "urgent",
            "At once",
            "at once",
            "No open hit of level 1.",
            tuple(_find_urgent(overview.notices, overview.urgent)),
        ),
        Card(
            "broken",
            "Broken",
            "broken",
            "No source fails time and again.",
            tuple(_find_broken(broken, overview)),
        ),
        Card(
            "late",
            "Late",
            "late",
            "Every poll is on time.",
            tuple(_find_late(late, overview.lags, overview.now)),
        ),
        Card(
            "lost",
            "Lost",
            "with possible loss",
            "No sign of a loss in the last day.",
            tuple(_find_lost(overview.recent_losses)),
        ),
    )


def describe_cards(cards: Iterable[Card], n_sources: int, n_unread: int = 0) -> str:
    """Return the headline: ``2 broken, 1 late`` or that all is well.

    Sources whose last poll brought no answer, `n_unread` of them, are no trouble yet, but not
    well either.

    Examples
    --------
    >>> describe_cards([Card("late", "Late", "late", "", (Trouble("daily", "due"),))], 9)
    '1 late'
    >>> describe_cards([], 9)
    'All 9 sources are well'
    >>> describe_cards([], 9, 2)
    '2 of 9 sources could not be read last time'
    """
    parts = [f"{len(card.troubles)} {card.noun}" for card in cards if card.troubles]
    if parts:
        return ", ".join(parts)
    if n_unread:
        return f"{n_unread} of {n_sources} sources could not be read last time"
    return f"All {n_sources} sources are well" if n_sources else "No source yet"


ID_SHOWN = 6
"""Digits of a notice's name that tell it from all others."""

URGENT_KIND = "hit"
"""Kind of a notice that is about a keyword hit."""


def _find_urgent(notices: Sequence[Notice], hits: Sequence[Hit]) -> Iterable[Trouble]:
    """Yield the open notices of level 1; where none was ever raised, the hits themselves."""
    about_hits = [each for each in notices if each.kind == URGENT_KIND and each.level == 1]
    said = set()
    for notice in about_hits:
        # One notice a channel; people want to read of it once.
        if notice.is_open and notice.subject not in said:
            said.add(notice.subject)
            command = f"newsbeat ack {notice.notice_id[:ID_SHOWN]}"
            yield Trouble(notice.source or "", notice.subject, notice.raised_at, command)
    for hit in [] if about_hits else hits:
        # What several print, or one prints again, is one thing to know.
        words = f"{hit.title or hit.sentence} ({hit.rule})"
        if words not in said:
            said.add(words)
            yield Trouble(hit.source, words, hit.hit_at)


def _find_broken(broken: Sequence[SourceStatus], overview: Overview) -> Iterable[Trouble]:
    drifted = {drift.source for drift in overview.drifts}
    named = {row.source for row in broken} | drifted
    for row in broken:
        if row.source not in drifted or row.state == "failing":
            words = f"{row.state}: {row.last_reason or row.reason}"
            yield Trouble(row.source, words, row.last_success_at)
    for drift in overview.drifts:
        mends = "reextract" if drift.standing == "text" else "accept"
        words = f"drifted, {drift.verdict}: {drift.reason}"
        yield Trouble(drift.source, words, drift.since_at, f"newsbeat {mends} {drift.source}")
    for notice in overview.notices:
        if notice.is_open and notice.kind != URGENT_KIND and notice.source not in named:
            named.add(notice.source or notice.subject)
            yield Trouble(notice.source or "", notice.subject, notice.raised_at)
    yield from _find_unsent(overview.notices)


def _find_unsent(notices: Sequence[Notice]) -> Iterable[Trouble]:
    failed = [each for each in notices if each.error and each.sent_at is None]
    for channel in sorted({each.channel for each in failed}):
        ones = [each for each in failed if each.channel == channel]
        many = f"{len(ones)} notices" if len(ones) > 1 else "a notice"
        words = f"{many} could not be sent to {channel}: {ones[0].error}"
        yield Trouble("", words, min(each.raised_at for each in ones))


def _find_late(
    late: Sequence[SourceStatus], lags: Sequence[LagOfSource], now: datetime
) -> Iterable[Trouble]:
    for row in late:
        assert row.due_at is not None
        wait = spell_duration((now - row.due_at).total_seconds())
        yield Trouble(row.source, f"its poll is overdue by {wait}", row.due_at)
    named = {row.source for row in late}
    for lag in lags:
        if lag.is_over and lag.source not in named:
            assert lag.mean_lag_s is not None
            assert lag.target_s is not None
            found, wanted = spell_duration(lag.mean_lag_s), spell_duration(lag.target_s)
            yield Trouble(lag.source, f"articles come {found} late, wanted {wanted}")


def _find_lost(losses: Sequence[Loss]) -> Iterable[Trouble]:
    for loss in losses:
        yield Trouble(loss.source, describe_loss(loss), loss.started_at)
