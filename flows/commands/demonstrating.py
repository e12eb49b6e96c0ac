"""`newsbeat demo`: the whole system on a recorded web, and an honest count at the end."""

from __future__ import annotations

import shutil
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from datetime import datetime
from pathlib import Path
from typing import Any

import click

from flows.commands.running import Stopped, stopping_on_signals
from flows.supervisor import Supervisor, running_supervisor
from models.errors import ConfigError, NewsbeatError
from tasks.clock import Clock
from tasks.prefect_server import find_free_port, is_port_free, read_runs
from tasks.replay.history import RecordedWeb, write_catalogue
from tasks.replay.recording import read_recording
from tasks.replay.sample import sample_web
from tasks.replay.server import serve_in_process
from tasks.settings import PrefectSettings, Settings, read_settings
from tasks.warehouse_reader import WarehouseReader, open_reader

MARK = ".newsbeat-demo"
"""File that says a folder is a demo's: only such a folder is wiped."""

POLL_INTERVAL_S = 300.0
SETTLE_TIMEOUT_S = 120.0
LOOK_S = 1.0

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
    faults: tuple[str, ...] = field(default=())

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
        return [*found, *self.faults]

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
            "sources": [
                {
                    "source": count.source,
                    "kind": count.kind,
                    "listed": count.listed,
                    "articles": count.articles,
                    "missing": list(count.missing),
                    "twice": list(count.twice),
                    "polls": count.polls,
                    "empty_polls": count.empty_polls,
                    "failed_polls": count.failed_polls,
                    "mean_lag_s": count.mean_lag_s,
                    "megabytes": count.megabytes,
                    "possible_losses": count.possible_losses,
                    "has_next_poll": count.has_next_poll,
                }
                for count in self.sources
            ],
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
    supervisor = Supervisor(settings, say)
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
    # The user's own environment is for the user's own newsbeat.
    return read_settings(folder, environ={})


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
        _collect(supervisor, clock, minutes, say, meddle)
        ended_at = clock.now()
        unsettled = _settle(supervisor, web, ended_at, say)
        outcome = _count(supervisor, web, ended_at, unsettled)
        _show(outcome, say)
        if keep:
            say(f"going on until Ctrl-C; look at {server.ui_url}")
            _keep_going(supervisor)
    return outcome


def _collect(
    supervisor: Supervisor,
    clock: Clock,
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
            say(_progress_line(supervisor.settings, clock))


def _progress_line(settings: Settings, clock: Clock) -> str:
    try:
        with open_reader(settings) as reader:
            ((polls, articles, sources),) = reader.query(
                "SELECT (SELECT count(*) FROM polls), (SELECT count(*) FROM articles),"
                " (SELECT count(DISTINCT source) FROM polls)"
            ).rows
    except NewsbeatError:
        return f"{clock.now():%H:%M} recorded time: the worker is starting"
    return (
        f"{clock.now():%H:%M} recorded time: {articles} articles in {polls} polls"
        f" of {sources} sources"
    )


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
                missing = wanted - _settled(reader, ended_at)
        except NewsbeatError:
            continue
    return tuple(sorted(missing))


def _settled(reader: WarehouseReader, ended_at: datetime) -> set[str]:
    rows = reader.query(
        "SELECT DISTINCT source FROM polls WHERE outcome NOT IN ('failed', 'refused')"
        f" AND started_at >= TIMESTAMPTZ '{ended_at.isoformat()}'"
        " AND source NOT IN (SELECT source FROM pending_articles)"
    ).rows
    return {str(source) for (source,) in rows}


def _count(
    supervisor: Supervisor, web: RecordedWeb, ended_at: datetime, unsettled: tuple[str, ...]
) -> DemoOutcome:
    """Compare what the web listed with what the warehouse holds."""
    assert supervisor.server is not None
    runs = read_runs(supervisor.server.api_url)
    with open_reader(supervisor.settings) as reader:
        stored = _stored_urls(reader)
        figures = {str(row[0]): row[1:] for row in reader.query(_FIGURES).rows}
        polls = {str(poll_id) for (poll_id,) in reader.query("SELECT poll_id FROM polls").rows}
    waiting = {run.source for run in runs if not run.is_over}
    counts = []
    for source in web.history:
        figure = figures.get(source.source)
        first = figure[0] if figure else web.start
        urls = {source.url_of(source.entries[at]) for at in source.listed(first, ended_at)}
        counts.append(_count_source(source, urls, stored.get(source.source, {}), figure, waiting))
    return DemoOutcome(
        sources=tuple(counts),
        started_at=web.start,
        ended_at=ended_at,
        speed=supervisor.settings.clock.speed,
        unrecorded_runs=tuple(
            run.name for run in runs if run.is_done and run.poll_id and run.poll_id not in polls
        ),
        unsettled=unsettled,
        worker_restarts=supervisor.restarts,
    )


def _count_source(
    source: Any,
    urls: set[str],
    stored: Mapping[str, int],
    figure: tuple[Any, ...] | None,
    waiting: set[str],
) -> SourceCount:
    _, polls, empty, failed, megabytes, losses, lag_s = figure or (None, 0, 0, 0, 0.0, 0, None)
    return SourceCount(
        source=source.source,
        kind=source.kind,
        listed=len(urls),
        articles=sum(stored.values()),
        missing=tuple(sorted(urls - stored.keys())),
        twice=tuple(sorted(url for url, times in stored.items() if times > 1)),
        polls=polls,
        empty_polls=empty,
        failed_polls=failed,
        mean_lag_s=None if lag_s is None else float(lag_s),
        megabytes=float(megabytes),
        possible_losses=losses,
        has_next_poll=source.source in waiting,
    )


def _stored_urls(reader: WarehouseReader) -> dict[str, dict[str, int]]:
    stored: dict[str, dict[str, int]] = {}
    for source, url, times in reader.query(
        "SELECT source, url, count(*) FROM articles GROUP BY ALL"
    ).rows:
        stored.setdefault(str(source), {})[str(url)] = int(times)
    return stored


_FIGURES = """
SELECT source, min(started_at), count(*), count(*) FILTER (outcome IN ('empty', 'not_modified')),
       count(*) FILTER (outcome IN ('failed', 'refused')),
       sum(index_bytes + article_bytes) / 1e6, count(*) FILTER (possible_loss),
       (SELECT avg(publication_lag_s) FROM articles AS a
        WHERE a.source = p.source AND a.published_at >= min(p.started_at))
FROM polls AS p GROUP BY source
"""
"""Figures of each source. The lag is that of what came out after the first look."""


def _show(outcome: DemoOutcome, say: Callable[[str], None]) -> None:
    from rich.console import Console
    from rich.table import Table

    table = Table(title=f"{outcome.started_at:%H:%M} to {outcome.ended_at:%H:%M} recorded time")
    table.add_column("source")
    table.add_column("kind")
    for name in ("listed", "articles", "mean lag", "polls", "empty", "failed", "MB", "lost"):
        table.add_column(name, justify="right")
    for count in outcome.sources:
        lag = "" if count.mean_lag_s is None else f"{count.mean_lag_s:.0f} s"
        cells = [count.source, count.kind, count.listed, count.articles, lag, count.polls]
        cells += [count.empty_polls, count.failed_polls, f"{count.megabytes:.2f}"]
        table.add_row(*map(str, cells), str(len(count.missing)))
    console = Console()
    with console.capture() as capture:
        console.print(table)
    say(capture.get())
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
