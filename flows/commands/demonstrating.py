"""`newsbeat demo`: the whole system on a recorded web, and an honest count at the end."""

from __future__ import annotations

import os
import shutil
import time
from collections.abc import Callable
from dataclasses import asdict, dataclass, replace
from datetime import datetime
from pathlib import Path
from typing import Any

import click
from rich.console import Console
from rich.table import Table

from flows.commands.reporting import read_report
from flows.commands.running import Stopped, stopping_on_signals
from flows.supervisor import Supervisor, running_supervisor
from models.errors import ConfigError, NewsbeatError
from tasks.clock import Clock
from tasks.prefect_server import find_free_port, is_port_free, read_runs
from tasks.replay.history import RecordedSource, RecordedWeb, write_catalogue
from tasks.replay.recording import read_recording
from tasks.replay.sample import sample_web
from tasks.replay.server import serve_in_process
from tasks.settings import PrefectSettings, Settings, read_settings
from tasks.tally import SourceTally, read_poll_ids, read_settled, read_tallies
from tasks.warehouse_reader import open_reader

MARK = ".newsbeat-demo"
"""File that says a folder is a demo's: only such a folder is wiped."""

POLL_INTERVAL_S = 300.0
SETTLE_TIMEOUT_S = 120.0
LOOK_S = 1.0
TABLE_WIDTH = 110
"""Where nobody's terminal is asked, wide enough for every column."""

SETTINGS = """\
# Written by `newsbeat demo`. Everything here is on this machine.
[agent]
contact = "demo@newsbeat.example"

[prefect]
port = {port}

[worker]
query_s = 1.0
reconcile_s = 10.0
pause_s = 5.0
artifact_s = 20.0
"""


@dataclass(frozen=True, slots=True)
class SourceCount:
    """What the demo did for one source."""

    source: str
    kind: str
    listed: int
    articles: int
    missing: tuple[str, ...]
    twice: tuple[str, ...]
    polls: int
    empty_polls: int
    failed_polls: int
    mean_lag_s: float | None
    megabytes: float
    possible_losses: int
    has_next_poll: bool


@dataclass(frozen=True, slots=True)
class DemoOutcome:
    """The count at the end of a demo.

    Attributes
    ----------
    unrecorded_runs
        Flow runs that ended in Prefect and have no row in ``polls``.
    unsettled
        Sources not polled once more after the last moment counted.
    """

    sources: tuple[SourceCount, ...]
    started_at: datetime
    ended_at: datetime
    speed: float
    unrecorded_runs: tuple[str, ...] = ()
    unsettled: tuple[str, ...] = ()
    worker_restarts: int = 0

    @property
    def problems(self) -> list[str]:
        """What is wrong, one sentence each; empty when all is well."""
        found = []
        for count in self.sources:
            if count.missing:
                found.append(f"{count.source}: {len(count.missing)} missing: {count.missing[0]}")
            if count.twice:
                found.append(f"{count.source}: {len(count.twice)} twice: {count.twice[0]}")
            if not count.has_next_poll:
                found.append(f"{count.source}: left without a next poll")
        found += [f"{name}: not polled to the end" for name in self.unsettled]
        found += [f"{name}: ended, but is not in polls" for name in self.unrecorded_runs]
        return found

    @property
    def is_good(self) -> bool:
        """Whether every listed entry is there exactly once, and every source goes on."""
        return not self.problems

    def as_json(self) -> dict[str, Any]:
        """Return the count as JSON-ready values."""
        return {
            "started_at": self.started_at.isoformat(),
            "ended_at": self.ended_at.isoformat(),
            "speed": self.speed,
            "worker_restarts": self.worker_restarts,
            "problems": self.problems,
            "sources": [asdict(count) for count in self.sources],
        }


def run_demo(
    folder: Path,
    *,
    minutes: float = 2.0,
    speed: float = 60.0,
    data: Path | None = None,
    keep: bool = False,
    quiet: bool = False,
    meddle: Callable[[Supervisor], None] = lambda _supervisor: None,
) -> DemoOutcome:
    """Live through a stretch of the recorded web with the real system, and count.

    Parameters
    ----------
    folder
        Home of the demo; wiped first, if it is a demo's.
    minutes
        Wall minutes to collect for.
    speed
        Recorded seconds per wall second.
    data
        Folder of real recordings; the sample we ship where None.
    keep
        Go on after the count until interrupted.
    quiet
        Print nothing but the count's own problems.
    meddle
        Called about every second while collecting; a test kills the worker in it.

    Raises
    ------
    NewsbeatError
        If a part does not start, or the folder is not a demo's.
    """
    say: Callable[[str], None] = (lambda _line: None) if quiet else click.echo
    settings = _prepare(folder)
    say("reading the recording …" if data else "inventing a morning of twelve newsrooms …")
    hours = (minutes + 3.0) * speed / 60.0
    # Its clock starts when everything is up; until then the web does not move.
    web = read_recording(data, hours=hours) if data else sample_web(hours=hours)
    supervisor = Supervisor(settings, say, _plain_environment())
    try:
        with stopping_on_signals():
            outcome = _live_through(supervisor, web, minutes, speed, say, meddle, keep)
    except Stopped:
        raise NewsbeatError("the demo was stopped before its end; nothing was counted") from None
    finally:
        supervisor.stop()
    return outcome


def _prepare(folder: Path) -> Settings:
    """Return the settings of an empty demo folder."""
    if folder.exists():
        if not (folder / MARK).exists():
            raise ConfigError(
                str(folder), "", None, "it exists and is not a demo's; name another with --home"
            )
        if (other := running_supervisor(read_settings(folder))) is not None:
            raise NewsbeatError(f"a demo runs there already (process {other}); stop it first")
        shutil.rmtree(folder)
    folder.mkdir(parents=True)
    (folder / MARK).touch()
    usual = PrefectSettings()
    port = usual.port if is_port_free(usual.host, usual.port) else find_free_port()
    (folder / "newsbeat.toml").write_text(SETTINGS.format(port=port), encoding="utf-8")
    return read_settings(folder, _plain_environment())


def _plain_environment() -> dict[str, str]:
    """Return our environment without what is meant for the user's own newsbeat and Prefect."""
    return {
        name: value
        for name, value in os.environ.items()
        if not name.startswith(("NEWSBEAT_", "PREFECT_"))
    }


def _live_through(
    supervisor: Supervisor,
    web: RecordedWeb,
    minutes: float,
    speed: float,
    say: Callable[[str], None],
    meddle: Callable[[Supervisor], None],
    keep: bool,
) -> DemoOutcome:
    server = supervisor.start_server(use_configured=False)
    clock = Clock.starting_at(web.start, speed)
    supervisor.settings = settings = replace(supervisor.settings, clock=clock)
    with serve_in_process(web, clock) as port:
        write_catalogue(web.sources(port, POLL_INTERVAL_S), settings.sources_folder)
        say(f"starting the worker for {len(web.history)} sources …")
        supervisor.start_worker()
        say(f"Prefect   {server.ui_url}   (every poll is a flow run; open one)")
        say(f'SQL       newsbeat sql --home {settings.home} "FROM source_health"')
        say(f"{speed:g} recorded seconds a second; collecting for {minutes:g} min …")
        _collect(supervisor, minutes, say, meddle)
        ended_at = clock.now()
        unsettled = _settle(supervisor, web, ended_at, say)
        outcome = _count(supervisor, web, ended_at, unsettled)
        _show(outcome, say)
        say(f"look at it:  newsbeat status --home {settings.home}")
        say(f'             newsbeat sql --home {settings.home} "FROM lag_by_source_day"')
        if keep:
            say(f"going on until Ctrl-C; look at {server.ui_url}")
            _keep_going(supervisor)
    return outcome


def _collect(
    supervisor: Supervisor,
    minutes: float,
    say: Callable[[str], None],
    meddle: Callable[[Supervisor], None],
) -> None:
    end = time.monotonic() + minutes * 60
    next_line = time.monotonic() + 10
    while time.monotonic() < end:
        time.sleep(LOOK_S)
        supervisor.watch()
        meddle(supervisor)
        if time.monotonic() >= next_line:
            next_line += 10
            say(_progress_line(supervisor.settings))


def _progress_line(settings: Settings) -> str:
    try:
        report = read_report(settings)
    except NewsbeatError:
        return f"{settings.clock.now():%H:%M}  the worker is starting"
    polls = sum(row.n_polls for row in report.rows)
    return f"{report.in_one_line()} in {polls} polls"


def _settle(
    supervisor: Supervisor, web: RecordedWeb, ended_at: datetime, say: Callable[[str], None]
) -> tuple[str, ...]:
    """Wait until each source was polled once more after `ended_at` and owes nothing."""
    say("letting the last polls come in …")
    give_up = time.monotonic() + SETTLE_TIMEOUT_S
    wanted = {source.source for source in web.history}
    missing = wanted
    while missing and time.monotonic() < give_up:
        time.sleep(LOOK_S)
        supervisor.watch()
        try:
            with open_reader(supervisor.settings) as reader:
                missing = wanted - read_settled(reader, ended_at)
        except NewsbeatError:
            continue
    return tuple(sorted(missing))


def _count(
    supervisor: Supervisor, web: RecordedWeb, ended_at: datetime, unsettled: tuple[str, ...]
) -> DemoOutcome:
    """Compare what the web listed with what the warehouse holds."""
    assert supervisor.server is not None
    runs = read_runs(supervisor.server.api_url)
    with open_reader(supervisor.settings) as reader:
        tallies, poll_ids = read_tallies(reader), read_poll_ids(reader)
    waiting = {run.source for run in runs if not run.is_over}
    counts = [
        _count_source(source, tallies.get(source.source), ended_at, source.source in waiting)
        for source in web.history
    ]
    return DemoOutcome(
        sources=tuple(counts),
        started_at=web.start,
        ended_at=ended_at,
        speed=supervisor.settings.clock.speed,
        unrecorded_runs=tuple(
            run.name for run in runs if run.is_done and run.poll_id and run.poll_id not in poll_ids
        ),
        unsettled=unsettled,
        worker_restarts=supervisor.restarts,
    )


def _count_source(
    source: RecordedSource, tally: SourceTally | None, ended_at: datetime, has_next_poll: bool
) -> SourceCount:
    """Compare what a source listed since the first look at it with what is stored of it."""
    if tally is None:
        return SourceCount(source.source, source.kind, 0, 0, (), (), 0, 0, 0, None, 0.0, 0, False)
    listed = source.listed(tally.first_poll_at, ended_at)
    urls = {source.url_of(source.entries[at]) for at in listed}
    return SourceCount(
        source=source.source,
        kind=source.kind,
        listed=len(urls),
        articles=sum(tally.stored.values()),
        missing=tuple(sorted(urls - tally.stored.keys())),
        twice=tuple(sorted(url for url, times in tally.stored.items() if times > 1)),
        polls=tally.polls,
        empty_polls=tally.empty_polls,
        failed_polls=tally.failed_polls,
        mean_lag_s=tally.mean_lag_s,
        megabytes=tally.megabytes,
        possible_losses=tally.possible_losses,
        has_next_poll=has_next_poll,
    )


def _show(outcome: DemoOutcome, say: Callable[[str], None]) -> None:
    table = Table(title=f"{outcome.started_at:%H:%M} to {outcome.ended_at:%H:%M} recorded time")
    table.add_column("source", no_wrap=True)
    table.add_column("kind", no_wrap=True)
    for name in ("listed", "articles", "mean lag", "polls", "empty", "failed", "MB", "missing"):
        table.add_column(name, justify="right", no_wrap=True)
    for count in outcome.sources:
        lag = "" if count.mean_lag_s is None else f"{count.mean_lag_s:.0f} s"
        cells = [count.source, count.kind, count.listed, count.articles, lag, count.polls]
        cells += [count.empty_polls, count.failed_polls, f"{count.megabytes:.2f}"]
        table.add_row(*map(str, cells), str(len(count.missing)))
    console = Console(width=max(Console().width, TABLE_WIDTH))
    with console.capture() as capture:
        console.print(table)
    say(capture.get().rstrip())
    for problem in outcome.problems:
        say(f"PROBLEM   {problem}")
    if outcome.is_good:
        total = sum(count.listed for count in outcome.sources)
        say(f"all {total} listed entries are in `articles`, each once; every source goes on")


def _keep_going(supervisor: Supervisor) -> None:
    try:
        while True:
            time.sleep(LOOK_S)
            supervisor.watch()
    except Stopped:
        return
