"""`newsbeat status`: what broke, what is late, what was lost; then every source."""

from __future__ import annotations

import statistics
from dataclasses import asdict, dataclass
from datetime import datetime, timedelta
from typing import Any

from rich.console import Console, ConsoleOptions, RenderResult
from rich.table import Table
from rich.text import Text

from flows.commands.screen import Column, fit_table
from flows.wording import spell_count
from models.harmless import one_line
from models.polling.fixed import spell_duration
from models.records import FAILURES, BudgetReport, Incident, SourceStatus
from tasks.clock import Clock
from tasks.settings import Settings
from tasks.warehouse_reader import WarehouseReader, open_reader

LATE = timedelta(minutes=2)
LATE_WALL_S = 20.0
"""A poll that is due longer ago than both is late: the worker starts polls within seconds,
which are minutes of a replay."""

UNREAD_SHOWN = 8
"""Sources not read last time that are named with the reason: one failure is soon over."""

WIDEST_REASON = 48
"""Characters of a reason shown in the table; Prefect's pages have it whole."""


@dataclass(frozen=True, slots=True)
class StatusReport:
    """How every source stands.

    Attributes
    ----------
    rows
        One per source.
    now
        When it was asked, on the product's clock.
    is_live
        Whether a worker runs; without one nothing can be late.
    late_after
        How long ago a late poll was due, at least.
    budget
        How the budget stands; None before a worker has reckoned it.
    incidents
        What stands of hosts, our own line, moves and validators.
    """

    rows: tuple[SourceStatus, ...]
    now: datetime
    is_live: bool
    late_after: timedelta = LATE
    budget: BudgetReport | None = None
    incidents: tuple[Incident, ...] = ()

    @property
    def broken(self) -> list[SourceStatus]:
        """Sources that fail, drifted, or are gone."""
        return [row for row in self.rows if row.state in ("failing", "drifted", "gone")]

    @property
    def unread(self) -> list[SourceStatus]:
        """Sources whose last poll brought no answer, and that are not broken, or not yet."""
        broken = {row.source for row in self.broken}
        return [
            row for row in self.rows if row.last_outcome in FAILURES and row.source not in broken
        ]

    @property
    def late(self) -> list[SourceStatus]:
        """Sources whose next poll is overdue."""
        if not self.is_live:
            return []
        return [
            row
            for row in self.rows
            if row.state != "paused" and row.due_at and self.now - row.due_at > self.late_after
        ]

    @property
    def lossy(self) -> list[SourceStatus]:
        """Sources of which entries may have scrolled off unseen."""
        return [row for row in self.rows if row.n_possible_losses]

    def in_one_line(self) -> str:
        """Return a line such as ``08:31 UTC  181 sources, 2 broken; 900 articles, lag 4 min``."""
        articles = sum(row.n_articles for row in self.rows)
        troubles = [
            f"{len(rows)} {what}"
            for rows, what in (
                (self.broken, "broken"),
                (self.unread, "not read last time"),
                (self.late, "late"),
                (self.lossy, "with possible loss"),
            )
            if rows
        ]
        polls = sum(row.n_polls for row in self.rows)
        facts = [spell_count(articles, "article"), spell_count(polls, "poll")]
        if (lag := self.median_lag_s) is not None:
            facts.append(f"lag {spell_duration(lag)}")
        return (
            f"{self.now:%Y-%m-%d %H:%M} UTC  {spell_count(len(self.rows), 'source')},"
            f" {', '.join(troubles) or 'all well'}; {', '.join(facts)}"
        )

    @property
    def median_lag_s(self) -> float | None:
        """The publication lag of the source in the middle, in seconds; None while unknown."""
        lags = [row.median_lag_s for row in self.rows if row.median_lag_s is not None]
        return statistics.median(lags) if lags else None

    def as_json(self) -> dict[str, Any]:
        """Return it as JSON-ready values."""
        return {
            "now": self.now.isoformat(),
            "is_live": self.is_live,
            "broken": [row.source for row in self.broken],
            "unread": [row.source for row in self.unread],
            "late": [row.source for row in self.late],
            "possible_losses": [row.source for row in self.lossy],
            "budget": asdict(self.budget) if self.budget else None,
            "incidents": [
                {
                    "kind": one.kind,
                    "subject": one.subject,
                    "begun_at": one.begun_at.isoformat(),
                    "reason": one.reason,
                    "evidence": one.evidence,
                }
                for one in self.incidents
            ],
            "sources": [
                {
                    name: value.isoformat() if isinstance(value, datetime) else value
                    for name, value in asdict(row).items()
                }
                for row in self.rows
            ],
        }

    def __rich_console__(self, console: Console, options: ConsoleOptions) -> RenderResult:
        """Print it: troubles first, then the table."""
        yield Text(self.in_one_line(), style="bold")
        if not self.is_live:
            yield Text("no worker runs here; `newsbeat up` starts it", style="yellow")
        if self.budget is not None:
            yield Text(describe_budget(self.budget), style="dim")
        yield from self._troubles()
        yield ""
        yield self.table(options.max_width)

    def _troubles(self) -> list[Text]:
        lines = []
        for row in self.broken:
            since = row.last_success_at
            good = f", last good poll {self._ago(since)}" if since else ", never read yet"
            reason = one_line(row.last_reason or row.reason)
            lines.append(Text(f"broken  {row.source}: {reason}{good}", style="red"))
        for row in self.unread[:UNREAD_SHOWN]:
            reason = one_line(row.last_reason or "")
            lines.append(Text(f"{row.last_outcome:<7} {row.source}: {reason}", style="yellow"))
        if len(self.unread) > UNREAD_SHOWN:
            more = len(self.unread) - UNREAD_SHOWN
            lines.append(Text(f"… and {more} more not read last time", style="yellow"))
        for incident in self.incidents:
            # Sources that fail or are gone have been named.
            if incident.kind not in ("failing", "gone"):
                said = ": ".join(filter(None, [incident.subject, one_line(incident.reason)]))
                ago = self._ago(incident.begun_at)
                lines.append(Text(f"{incident.kind:<7} {said}, since {ago}", style="yellow"))
        for row in self.late:
            assert row.due_at is not None
            wait = spell_duration((self.now - row.due_at).total_seconds())
            lines.append(Text(f"late    {row.source}: due {wait} ago", style="yellow"))
        for row in self.lossy:
            times = row.n_possible_losses
            polls = spell_count(times, "poll")
            lines.append(
                Text(
                    f"lost?   {row.source}: {polls} found no entry known before;"
                    " shorten its interval",
                    style="yellow",
                )
            )
        return lines

    def table(self, width: int) -> Table:
        """Return the table of all sources, fitted to `width` cells."""
        rows = self.rows
        lags = [row.median_lag_s for row in rows]
        columns = [
            Column("source", [row.source for row in rows]),
            Column("kind", [row.kind for row in rows], worth=2),
            Column("state", [_state(row.state) for row in rows], worth=6),
            Column("articles", [f"{row.n_articles:,}" for row in rows], is_number=True),
            Column("24 h", [f"{row.n_articles_24h:,}" for row in rows], True, worth=4),
            Column("lag", ["" if lag is None else spell_duration(lag) for lag in lags], True),
            Column("polls", [f"{row.n_polls:,}" for row in rows], True, worth=3),
            Column("last poll", [self._ago(row.last_poll_at) for row in rows], True, worth=8),
            Column("found", [_outcome(row.last_outcome) for row in rows], worth=7),
        ]
        if self.is_live:
            columns += [
                Column("next poll", [self._next(row) for row in rows], True),
                Column("because", [_why(row) for row in rows], worth=1),
            ]
        return fit_table(columns, width)

    def _next(self, row: SourceStatus) -> str:
        if row.state == "paused" or row.due_at is None:
            return "none"
        wait_s = (row.due_at - self.now).total_seconds()
        return f"in {spell_duration(wait_s)}" if wait_s > 0 else "now"

    def _ago(self, moment: datetime | None) -> str:
        if moment is None:
            return ""
        return f"{spell_duration(max((self.now - moment).total_seconds(), 0.0))} ago"


def _state(state: str) -> Text:
    colours = {"active": "green", "paused": "dim", "failing": "red", "drifted": "red"}
    return Text(state, style=colours.get(state, ""))


def _outcome(outcome: str | None) -> Text:
    colours = {"new": "green", "failed": "red", "refused": "red"}
    return Text(outcome or "", style=colours.get(outcome or "", "dim"))


def _why(row: SourceStatus) -> str:
    """Return the reason for the next poll without its time, which has a column of its own."""
    _, _, why = row.reason.partition(": ")
    why = one_line(why or row.reason)
    return why if len(why) <= WIDEST_REASON else f"{why[: WIDEST_REASON - 1]}…"


def read_report(settings: Settings) -> StatusReport:
    """Return how every source stands, live or from the file.

    Raises
    ------
    WarehouseError
        If there is no warehouse yet, or it cannot be read.
    """
    with open_reader(settings) as reader:
        return report_from(reader, settings.clock)


def report_from(reader: WarehouseReader, clock: Clock) -> StatusReport:
    """Return how every source stands, from a warehouse that is open."""
    now = clock.now()
    late_after = max(LATE, timedelta(seconds=LATE_WALL_S * clock.speed))
    rows, budget = tuple(reader.read_status(now)), reader.read_budget()
    incidents = tuple(reader.read_incidents())
    return StatusReport(rows, now, reader.is_live, late_after, budget, incidents)


def describe_budget(budget: BudgetReport) -> str:
    """Return how the budget stands in one line.

    Such as ``budget: 1,728 polls a day planned, 1,690 spent; a poll must save 180
    entry-seconds, entries wait 5.1 min for theirs``.
    """
    unit = "MB" if budget.currency == "MB" else "polls"
    parts = []
    if budget.planned_per_day is not None:
        parts.append(f"{budget.planned_per_day:,.0f} {unit} a day planned")
    if budget.spent_per_day is not None:
        parts.append(f"{budget.spent_per_day:,.0f} spent")
    if not parts:
        parts.append(f"{budget.expected_per_day:,.0f} {unit} a day expected")
    worth = f"a poll must save {budget.price:,.0f} entry-seconds"
    if budget.expected_lag_s is not None:
        worth += f", entries wait {spell_duration(budget.expected_lag_s)} for theirs"
    if budget.overload > 1.0:
        worth += f"; {budget.overload:.1f} times dearer, as polls came late"
    return f"budget: {', '.join(parts)}; {worth}"
