"""Rows of ``notices`` and ``outbox``: what people are told, and how far each message has gone.

A notice is written in the transaction that stores its article. Messages are written from
the notices that are due, word for word, and only then sent: a process that dies in
between finds them again.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import astuple, dataclass, fields, replace
from datetime import datetime
from typing import Any

import duckdb

from models.records import RuleHit
from models.triage.ladder import (
    Channel,
    Draft,
    Notice,
    Pace,
    draft_messages,
    first_due,
    next_reminder,
    next_try,
    takes,
)
from models.triage.message import explain_hits, split_text, write_body, write_title
from tasks.duck.hits import Told, digest
from tasks.duck.rows import Row, insert_rows, marks, storable, utc_row
from tasks.settings import Settings

MOST_OUTLETS = 50
HIT, FAILURE = "hit", "failure"

_NAMES = tuple(item.name for item in fields(Notice))
_COLUMNS = ", ".join(_NAMES)

Query = Callable[[str], Sequence[Sequence[Any]]]


@dataclass(frozen=True, slots=True)
class Message:
    """A row of ``outbox`` that is to be sent.

    Attributes
    ----------
    n_sent
        Parts that have gone out already.
    attempts
        Failed ones so far.
    """

    message_id: str
    channel: str
    kind: str
    level: int
    notice_ids: tuple[str, ...]
    title: str
    parts: tuple[str, ...]
    n_sent: int
    attempts: int


def raise_notices(
    connection: duckdb.DuckDBPyConnection,
    told: Sequence[Told],
    source: str,
    labels: Sequence[str],
    channels: Iterable[Channel],
    pace: Pace,
    now: datetime,
) -> None:
    """Write a notice for every story and channel that has none, and add to those there are.

    Parameters
    ----------
    told
        Hits of one source.
    labels
        Tags of the source; with a rule's group they choose the channels.
    """
    for one in told:
        for channel in channels:
            hits = [
                hit for hit in one.hits if takes(channel, hit.level, {*labels, hit.group} - {""})
            ]
            if hits:
                _raise_one(connection, one, hits, source, channel, pace, now)


def _raise_one(
    connection: duckdb.DuckDBPyConnection,
    told: Told,
    hits: Sequence[RuleHit],
    source: str,
    channel: Channel,
    pace: Pace,
    now: datetime,
) -> None:
    notice_id = digest("notice", told.story_id, channel.name)[:12]
    level = min(hit.level for hit in hits)
    known = read_notices(connection, "notice_id = ?", [notice_id])
    if known:
        _join(connection, known[0], told, hits, source, channel, pace, now)
        return
    notice = Notice(
        notice_id=notice_id,
        kind=HIT,
        subject=told.item.article.title or told.item.url,
        source=source,
        level=level,
        channel=channel.name,
        text=_explain(hits),
        raised_at=now,
        story_id=told.story_id,
        url=told.item.url,
        rules=tuple(hit.rule for hit in hits),
        outlets=(source,),
        due_at=first_due(level, now, channel, pace),
    )
    write_notice(connection, notice)


def _explain(hits: Sequence[RuleHit]) -> str:
    return explain_hits([(hit.rule, hit.level, hit.sentence, hit.explanation) for hit in hits])


def _join(
    connection: duckdb.DuckDBPyConnection,
    notice: Notice,
    told: Told,
    hits: Sequence[RuleHit],
    source: str,
    channel: Channel,
    pace: Pace,
    now: datetime,
) -> None:
    """Add an outlet, and rules, to a notice; only what became more urgent is told anew."""
    new = [hit for hit in hits if hit.rule not in notice.rules]
    outlets = tuple(dict.fromkeys([*notice.outlets, source]))[:MOST_OUTLETS]
    joined = replace(
        notice,
        outlets=outlets,
        rules=(*notice.rules, *(hit.rule for hit in new)),
        text="\n".join(filter(None, [notice.text, _explain(new)])),
    )
    level = min(hit.level for hit in hits)
    if level < notice.level:
        joined = replace(
            joined,
            subject=told.item.article.title or told.item.url,
            url=told.item.url,
            text=_explain(hits),
            level=level,
            due_at=first_due(level, now, channel, pace),
            n_told=0,
            acknowledged_at=None,
            closed_at=None,
        )
    if joined != notice:
        change_notice(connection, joined)


def raise_state(
    connection: duckdb.DuckDBPyConnection,
    kind: str,
    source: str,
    subject: str,
    text: str,
    level: int,
    labels: Sequence[str],
    settings: Settings,
    now: datetime,
) -> bool:
    """Tell that a source is in a state that wants looking at; return whether that is new.

    It is told once, on every channel that takes its level, and stands until
    :func:`close_state`.

    Parameters
    ----------
    kind
        Such as ``failure`` or ``drift``.
    labels
        Tags of the source; they choose the channels.
    """
    if read_notices(connection, "kind = ? AND source = ? AND closed_at IS NULL", [kind, source]):
        return False
    draft = Notice(
        notice_id="",
        kind=kind,
        subject=subject,
        source=source,
        level=level,
        channel="",
        text=text,
        raised_at=now,
        story_id=digest(kind, source, now),
        outlets=(source,),
    )
    return tell_all(connection, draft, labels, settings)


def tell_all(
    connection: duckdb.DuckDBPyConnection, draft: Notice, labels: Sequence[str], settings: Settings
) -> bool:
    """Write a notice for every channel that takes its level; return whether any does.

    Parameters
    ----------
    draft
        The notice, but for its name, its channel and when it is due.
    """
    taking = [
        channel
        for channel in settings.open_channels.values()
        if takes(channel, draft.level, set(labels))
    ]
    for channel in taking:
        notice = replace(
            draft,
            notice_id=digest(draft.story_id, channel.name)[:12],
            channel=channel.name,
            due_at=first_due(draft.level, draft.raised_at, channel, settings.alerts.pace),
        )
        write_notice(connection, notice)
    return bool(taking)


def close_story(connection: duckdb.DuckDBPyConnection, story_id: str, now: datetime) -> None:
    """Note that what a story's notices tell is over."""
    for notice in read_notices(connection, "story_id = ? AND closed_at IS NULL", [story_id]):
        change_notice(connection, replace(notice, closed_at=now, due_at=None))


def close_state(
    connection: duckdb.DuckDBPyConnection, kind: str, source: str, now: datetime
) -> int:
    """Note that a state is over; return how many notices of it stood.

    What was over before it was told is not told any more.
    """
    standing = read_notices(
        connection, "kind = ? AND source = ? AND closed_at IS NULL", [kind, source]
    )
    for notice in standing:
        change_notice(connection, replace(notice, closed_at=now, due_at=None))
    return len(standing)


def write_notice(connection: duckdb.DuckDBPyConnection, notice: Notice) -> None:
    """Write a new notice."""
    values = storable(_row(notice))
    connection.execute(
        f"INSERT INTO notices ({_COLUMNS}) VALUES ({marks(len(values))})",  # noqa: S608
        values,
    )


def change_notice(connection: duckdb.DuckDBPyConnection, notice: Notice) -> None:
    """Write a notice in place of what it was."""
    names = [name for name in _NAMES if name != "notice_id"]
    values = dict(zip(_NAMES, _row(notice), strict=True))
    connection.execute(
        f"UPDATE notices SET {', '.join(f'{name} = ?' for name in names)} WHERE notice_id = ?",  # noqa: S608
        storable([*(values[name] for name in names), notice.notice_id]),
    )


def _row(notice: Notice) -> Row:
    return [list(value) if isinstance(value, tuple) else value for value in astuple(notice)]


def read_notices(
    connection: duckdb.DuckDBPyConnection, condition: str, values: Sequence[Any] = ()
) -> list[Notice]:
    """Return the notices that meet an SQL condition, the oldest first."""
    rows = connection.execute(
        f"SELECT {_COLUMNS} FROM notices WHERE {condition} ORDER BY raised_at",  # noqa: S608
        list(values),
    ).fetchall()
    return [notice_of(row) for row in rows]


def query_notices(query: Query, condition: str) -> list[Notice]:
    """Return the notices that meet an SQL condition, by whichever connection there is."""
    sql = f"SELECT {_COLUMNS} FROM notices WHERE {condition} ORDER BY raised_at"  # noqa: S608
    return [notice_of(row) for row in query(sql)]


def notice_of(row: Sequence[Any]) -> Notice:
    """Return a notice as its row has it; rows of before the ladder have gaps."""
    values = dict(zip(_NAMES, utc_row(row), strict=True))
    for name in ("rules", "outlets"):
        values[name] = tuple(values[name] or ())
    return Notice(**values | {"n_told": values["n_told"] or 0, "text": values["text"] or ""})


def write_messages(
    connection: duckdb.DuckDBPyConnection,
    channels: Mapping[str, Channel],
    room: Callable[[str], int],
    now: datetime,
) -> int:
    """Write messages of all notices that are due, and return how many; none where none are.

    Parameters
    ----------
    room
        Returns how many characters a channel takes in one part.
    """
    due: dict[str, list[Notice]] = defaultdict(list)
    for notice in read_notices(connection, "due_at <= ? AND closed_at IS NULL", [now]):
        due[notice.channel].append(notice)
    n_written = 0
    for name, notices in due.items():
        # What is for a channel that was taken out of the settings waits for it.
        if name not in channels:
            continue
        for draft in draft_messages(notices):
            insert_rows(connection, "outbox", [_message_row(draft, name, room(name), now)])
            n_written += 1
        for notice in notices:
            told = replace(notice, due_at=None, n_told=notice.n_told + 1)
            change_notice(connection, told)
    return n_written


def _message_row(draft: Draft, channel: str, most_chars: int, now: datetime) -> Row:
    ids = [notice.notice_id for notice in draft.notices]
    counts = [notice.n_told for notice in draft.notices]
    message_id = digest("message", channel, draft.level, *ids, *counts)[:8]
    parts = split_text(write_body(draft), most_chars, f"message {message_id}")
    title = write_title(draft)
    return (
        message_id, channel, draft.kind, draft.level, ids, title, parts, 0, now, now, 0, None, None,
    )  # fmt: skip


def read_messages(connection: duckdb.DuckDBPyConnection, now: datetime) -> list[Message]:
    """Return the messages that are to be sent now, the most urgent and oldest first."""
    rows = connection.execute(
        "SELECT message_id, channel, kind, level, notice_ids, title, parts, n_sent, attempts "
        "FROM outbox WHERE sent_at IS NULL AND next_try_at <= ? ORDER BY level, made_at",
        [now],
    ).fetchall()
    return [
        Message(key, channel, kind, level, tuple(ids), title, tuple(parts), n_sent, attempts)
        for key, channel, kind, level, ids, title, parts, n_sent, attempts in rows
    ]


def note_part(connection: duckdb.DuckDBPyConnection, message: Message, n_sent: int) -> None:
    """Note that so many parts of a message have gone out."""
    connection.execute(
        "UPDATE outbox SET n_sent = ? WHERE message_id = ?", [n_sent, message.message_id]
    )


def note_sent(
    connection: duckdb.DuckDBPyConnection, message: Message, pace: Pace, now: datetime
) -> None:
    """Note that a message has gone out whole, and when its notices are told again."""
    connection.execute(
        "UPDATE outbox SET n_sent = ?, sent_at = ?, next_try_at = NULL, error = NULL "
        "WHERE message_id = ?",
        [len(message.parts), now, message.message_id],
    )
    for notice in _notices_of(connection, message):
        again = notice.due_at or next_reminder(notice, now, pace)
        told = replace(notice, sent_at=notice.sent_at or now, told_at=now, due_at=again, error=None)
        # A hit that is told once is over with that; one of level 1 when somebody has answered.
        is_over = again is None and notice.kind == HIT
        change_notice(connection, replace(told, closed_at=now) if is_over else told)


def note_failed(
    connection: duckdb.DuckDBPyConnection, message: Message, error: str, pace: Pace, now: datetime
) -> None:
    """Note why a message could not be sent, and when it is tried again."""
    attempts = message.attempts + 1
    connection.execute(
        "UPDATE outbox SET attempts = ?, next_try_at = ?, error = ? WHERE message_id = ?",
        storable([attempts, next_try(attempts, now, pace), error, message.message_id]),
    )
    for notice in _notices_of(connection, message):
        change_notice(connection, replace(notice, error=error))


def _notices_of(connection: duckdb.DuckDBPyConnection, message: Message) -> list[Notice]:
    ids = message.notice_ids
    return read_notices(connection, f"notice_id IN ({marks(len(ids))})", ids)


def acknowledge(
    connection: duckdb.DuckDBPyConnection, prefix: str, by: str, now: datetime
) -> list[Notice]:
    """Stop the repeats of a notice, and of its story on other channels; return what changed.

    Parameters
    ----------
    prefix
        First digits of its name.
    """
    named = read_notices(connection, "starts_with(notice_id, ?)", [prefix])
    stories = {notice.story_id or notice.notice_id for notice in named}
    if len(stories) != 1:
        return []
    alike = [
        notice
        for notice in read_notices(connection, "coalesce(story_id, notice_id) = ?", [stories.pop()])
        if notice.acknowledged_at is None
    ]
    changed = [
        replace(
            notice,
            acknowledged_at=now,
            acknowledged_by=by,
            due_at=notice.due_at if notice.sent_at is None else None,
            closed_at=None if notice.sent_at is None else now,
        )
        for notice in alike
    ]
    for notice in changed:
        change_notice(connection, notice)
        # A reminder that has not gone out yet need not.
        connection.execute(
            "UPDATE outbox SET next_try_at = NULL, error = 'acknowledged before it went out' "
            "WHERE kind = 'reminder' AND sent_at IS NULL AND n_sent = 0 AND notice_ids = [?]",
            [notice.notice_id],
        )
    return changed
