"""`newsbeat notices` and `newsbeat ack`: what people were told, and who answers."""

from __future__ import annotations

import getpass
from dataclasses import asdict, dataclass
from datetime import UTC, datetime, timedelta
from typing import Any

from rich.console import Group, RenderableType
from rich.text import Text

from flows.commands.screen import Column, fit_table, make_console
from flows.wording import spell_count
from models.errors import ConfigError
from models.harmless import one_line
from models.triage.ladder import Notice
from tasks.acknowledgements import leave_request
from tasks.duck.notices import query_notices
from tasks.settings import Settings
from tasks.warehouse import Warehouse, find_writer
from tasks.warehouse_reader import open_reader

SHOWN_HOURS = 24.0


@dataclass(frozen=True, slots=True)
class NoticeList:
    """Notices, the newest first, and the moment they are looked at."""

    notices: tuple[Notice, ...]
    now: datetime

    def as_json(self) -> list[dict[str, Any]]:
        """Return the notices, JSON-ready."""
        return [asdict(notice) | {"state": state_of(notice, self.now)} for notice in self.notices]

    def __rich__(self) -> RenderableType:
        """Return a table for people, with what failed below."""
        if not self.notices:
            return Text("nobody was told anything; see also: newsbeat sql 'FROM rule_hits'")
        shown = self.notices
        columns = [
            Column("notice", [notice.notice_id for notice in shown]),
            Column("level", [f"{notice.level}" for notice in shown], True),
            Column("raised", [f"{notice.raised_at:%m-%d %H:%M}" for notice in shown]),
            Column("channel", [notice.channel for notice in shown], worth=2),
            Column("state", [state_of(notice, self.now) for notice in shown]),
            Column("outlets", [f"{len(notice.outlets)}" for notice in shown], True, worth=1),
            Column("what", [one_line(notice.subject) for notice in shown]),
        ]
        failed = [
            Text(f"not sent to {notice.channel}: {one_line(notice.error)}")
            for notice in shown
            if notice.error
        ]
        return Group(fit_table(columns, make_console().width), *dict.fromkeys(failed))


def state_of(notice: Notice, now: datetime) -> str:
    """Return how a notice stands, in a word or two."""
    if notice.error:
        return "not sent yet"
    if notice.acknowledged_at is not None:
        return f"acknowledged by {one_line(notice.acknowledged_by)}"
    if notice.sent_at is None:
        is_due = notice.due_at is None or notice.due_at <= now
        return "waits to be sent" if is_due else f"due {notice.due_at:%H:%M}"
    return "unanswered" if notice.is_open else "sent"


def list_notices(settings: Settings, hours: float = SHOWN_HOURS) -> NoticeList:
    """Return the notices of the last hours, and all that wait or are unanswered.

    Raises
    ------
    WarehouseError
        If there is no warehouse.
    """
    now = settings.clock.now()
    since = (now - timedelta(hours=hours)).astimezone(UTC).isoformat()
    is_recent = f"raised_at >= TIMESTAMPTZ '{since}'"
    waits = "closed_at IS NULL"
    with open_reader(settings) as reader:
        found = query_notices(lambda sql: reader.query(sql).rows, f"{is_recent} OR {waits}")
    return NoticeList(tuple(reversed(found)), now)


def read_urgent(settings: Settings, since: datetime) -> list[Notice]:
    """Return the notices of level 1 and 2 raised after a moment, one for each story.

    Raises
    ------
    WarehouseError
        If there is no warehouse.
    """
    after = f"raised_at > TIMESTAMPTZ '{since.astimezone(UTC).isoformat()}'"
    with open_reader(settings) as reader:
        found = query_notices(lambda sql: reader.query(sql).rows, f"{after} AND level <= 2")
    return list({notice.story_id: notice for notice in found}.values())


def describe_notice(notice: Notice) -> str:
    """Return a notice as one line."""
    what = f"{notice.raised_at:%H:%M} UTC  level {notice.level}  {one_line(notice.subject)}"
    return f"{what} ({', '.join(notice.outlets)}: {', '.join(notice.rules)})"


def acknowledge(settings: Settings, notice: str) -> str:
    """Stop the repeats of a notice, named by its first digits; return what was done, in words.

    Raises
    ------
    ConfigError
        If no notice, or more than one, is called so.
    """
    with open_reader(settings) as reader:
        known = query_notices(lambda sql: reader.query(sql).rows, "kind IS NOT NULL")
    named = [one for one in known if one.notice_id.startswith(notice)]
    if not notice.isalnum() or not named:
        raise ConfigError("notices", "", None, f"no notice is called {notice!r}")
    if len({one.story_id or one.notice_id for one in named}) > 1:
        several = ", ".join(one.notice_id for one in named)
        raise ConfigError("notices", "", None, f"{notice!r} names several: {several}")
    by = getpass.getuser()
    if find_writer(settings) is not None:
        leave_request(settings.folder, named[0].notice_id, by)
    else:
        with Warehouse.open(settings, "newsbeat ack") as warehouse:
            warehouse.acknowledge(named[0].notice_id, by, settings.clock.now())
    n_channels = sum(one.story_id == named[0].story_id for one in known)
    return f"acknowledged: {one_line(named[0].subject)} (on {spell_count(n_channels, 'channel')})"
