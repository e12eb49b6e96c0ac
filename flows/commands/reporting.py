"""`newsbeat status`: what broke, what is late, what was lost; then every source."""

from __future__ import annotations

from dataclasses import asdict, dataclass
from datetime import datetime, timedelta
from typing import Any

from rich.console import Console, ConsoleOptions, RenderResult
from rich.table import Table
from rich.text import Text

from models.harmless import one_line
from models.polling.fixed import spell_duration
from models.records import SourceStatus
from tasks.settings import Settings
from tasks.warehouse_reader import open_reader

LATE = timedelta(minutes=2)
"""A poll that is due longer ago than this is late: the worker starts polls within seconds."""


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
    """

    rows: tuple[SourceStatus, ...]
    now: datetime
    is_live: bool

    @property
    def broken(self) -> list[SourceStatus]:
        """Sources that fail, drifted, or are gone."""
        return [row for row in self.rows if row.state in ("failing", "drifted", "gone")]

    @property
    def late(self) -> list[SourceStatus]:
        """Sources whose next poll is overdue."""
        if not self.is_live:
            return []
        return [
            row
            for row in self.rows
            if row.state != "paused" and row.due_at and self.now - row.due_at > LATE
        ]

    @property
    def lossy(self) -> list[SourceStatus]:
        """Sources of which entries may have scrolled off unseen."""
        return [row for row in self.rows if row.n_possible_losses]

    def in_one_line(self) -> str:
        """Return a line such as ``181 sources: 2 broken, 0 late; 12,300 articles``."""
        articles = sum(row.n_articles for row in self.rows)
        return (
            f"{self.now:%H:%M} UTC  {len(self.rows)} sources: {len(self.broken)} broken,"
            f" {len(self.late)} late, {len(self.lossy)} with possible loss;"
            f" {articles:,} articles"
        )

    def as_json(self) -> dict[str, Any]:
        """Return it as JSON-ready values."""
        return {
            "now": self.now.isoformat(),
            "is_live": self.is_live,
            "broken": [row.source for row in self.broken],
            "late": [row.source for row in self.late],
            "possible_losses": [row.source for row in self.lossy],
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
        yield from self._troubles()
        yield self._table()

    def _troubles(self) -> list[Text]:
        lines = []
        for row in self.broken:
            since = row.last_success_at
            good = f", last good poll {self._ago(since)}" if since else ", never read yet"
            reason = one_line(row.last_reason or row.reason)
            lines.append(Text(f"broken  {row.source}: {reason}{good}", style="red"))
        for row in self.late:
            assert row.due_at is not None
            wait = spell_duration((self.now - row.due_at).total_seconds())
            lines.append(Text(f"late    {row.source}: due {wait} ago", style="yellow"))
        for row in self.lossy:
            times = row.n_possible_losses
            lines.append(
                Text(
                    f"lost?   {row.source}: {times} polls found no entry they knew; shorten"
                    " its interval",
                    style="yellow",
                )
            )
        return lines

    def _table(self) -> Table:
        table = Table(expand=False)
        table.add_column("source", no_wrap=True)
        table.add_column("kind")
        table.add_column("state")
        for name in ("articles", "24 h", "lag", "polls"):
            table.add_column(name, justify="right", no_wrap=True)
        table.add_column("last poll", no_wrap=True)
        table.add_column("next poll")
        for row in self.rows:
            lag = row.median_lag_s
            table.add_row(
                row.source,
                row.kind,
                _state(row.state),
                f"{row.n_articles:,}",
                f"{row.n_articles_24h:,}",
                "" if lag is None else spell_duration(lag),
                f"{row.n_polls:,}",
                f"{row.last_outcome or ''} {self._ago(row.last_poll_at)}".strip(),
                self._next(row),
            )
        return table

    def _next(self, row: SourceStatus) -> str:
        if row.state == "paused" or row.due_at is None:
            return one_line(row.reason)
        wait_s = (row.due_at - self.now).total_seconds()
        when = f"in {spell_duration(wait_s)}" if wait_s > 0 else "now"
        _, _, why = row.reason.partition(": ")
        return f"{when} ({one_line(why or row.reason)})"

    def _ago(self, moment: datetime | None) -> str:
        if moment is None:
            return ""
        return f"{spell_duration(max((self.now - moment).total_seconds(), 0.0))} ago"


def _state(state: str) -> Text:
    colours = {"active": "green", "paused": "dim", "failing": "red", "drifted": "red"}
    return Text(state, style=colours.get(state, ""))


def read_report(settings: Settings) -> StatusReport:
    """Return how every source stands, live or from the file.

    Raises
    ------
    WarehouseError
        If there is no warehouse yet, or it cannot be read.
    """
    now = settings.clock.now()
    with open_reader(settings) as reader:
        return StatusReport(tuple(reader.read_status(now)), now, reader.endpoint is not None)
