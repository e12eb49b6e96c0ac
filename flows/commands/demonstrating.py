"""`newsbeat demo`: the whole system on a recorded web, and an honest count at the end."""

from __future__ import annotations

import contextlib
import os
import shutil
import time
from collections.abc import Callable, Iterator
from dataclasses import asdict, dataclass, replace
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

from rich.console import Group, RenderableType
from rich.spinner import Spinner
from rich.text import Text

from flows.commands.noticing import describe_notice, read_urgent
from flows.commands.rebuilding import Rebuilt, mend_rebuilt
from flows.commands.reporting import read_report
from flows.commands.running import (
    Stopped,
    await_worker,
    say_addresses,
    stopping_afterwards,
    stopping_on_signals,
    undisturbed,
)
from flows.commands.screen import Column, Screen, fit_table, spell_command
from flows.supervisor import Supervisor, running_supervisor
from models.errors import ConfigError, NewsbeatError
from models.polling.fixed import spell_duration
from tasks.clock import Clock
from tasks.prefect_server import RunningServer, find_free_port, is_port_free, read_runs, start_runs
from tasks.replay.history import RecordedSource, RecordedWeb, write_catalogue
from tasks.replay.recording import read_recording
from tasks.replay.sample import sample_web
from tasks.replay.server import serve_in_process
from tasks.settings import SETTINGS_FILE, PrefectSettings, Settings, read_settings
from tasks.tally import SourceTally, read_poll_ids, read_settled, read_tallies
from tasks.warehouse_reader import open_reader

MARK = ".newsbeat-demo"
"""File that says a folder is a demo's: only such a folder is wiped."""

POLL_INTERVAL_S = 300.0
SETTLE_TIMEOUT_S = 120.0
LOOK_S = 1.0
KEPT_HOURS = 72.0
"""How long the recorded web publishes where the demo is to go on after the count."""

NOON = datetime(2025, 3, 4, 12, tzinfo=UTC)
LEAST_REBUILT_HOURS = 1.5
"""In less recorded time too few pages come after a rebuilding to tell."""

WORKER_START_S = 15.0
"""So long the worker may take to its first polls, on a machine with some other work."""

LINE_S = 10.0
"""Where nothing moves, a line this often."""

SETTINGS = """\
# Written by `newsbeat demo`. Everything here is on this machine; the folder may be deleted.
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
    rebuilt
        The sites that were rebuilt on the way, and what became of them.
    """

    sources: tuple[SourceCount, ...]
    started_at: datetime
    ended_at: datetime
    speed: float
    unrecorded_runs: tuple[str, ...] = ()
    unsettled: tuple[str, ...] = ()
    worker_restarts: int = 0
    rebuilt: tuple[Rebuilt, ...] = ()

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
        found += [problem for site in self.rebuilt for problem in site.problems]
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
            "rebuilt": [site.as_json() for site in self.rebuilt],
        }


def run_demo(
    folder: Path,
    *,
    minutes: float = 2.0,
    speed: float = 60.0,
    data: Path | None = None,
    keep: bool = False,
    quiet: bool = False,
    port: int | None = None,
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
    port
        Of Prefect's server; where None the usual one, or any if that is taken.
    meddle
        Called about every second while collecting; a test kills the worker in it.

    Raises
    ------
    NewsbeatError
        If a part does not start, or the folder is not a demo's.
    """
    settings = _prepare(folder, port)
    hours = KEPT_HOURS if keep else (minutes + 3.0) * speed / 60.0
    with Screen(quiet) as screen:
        screen.say(
            "reading the recording …" if data else "inventing a morning of twelve newsrooms …"
        )
        # Its clock starts once the server is there; until then the web does not move.
        web = read_recording(data, hours=hours) if data else _invent(hours, minutes, speed)
        supervisor = Supervisor(settings, screen.say, _plain_environment())
        demo = _Demo(supervisor, web, minutes, speed, screen, meddle)
        try:
            with stopping_on_signals():
                return demo.live_through(keep)
        except Stopped:
            raise NewsbeatError(
                "the demo was stopped before its end; nothing was counted"
            ) from None
        finally:
            with undisturbed():
                supervisor.stop()


def _invent(hours: float, minutes: float, speed: float) -> RecordedWeb:
    """Return the web that ships; where there is time for it, noon comes a third of the way in.

    At noon two of its sites are rebuilt: by then the worker must have seen them as they were.
    """
    if minutes * speed / 60 < LEAST_REBUILT_HOURS:
        return sample_web(hours=hours)
    start = NOON - timedelta(minutes=minutes / 3, seconds=WORKER_START_S) * speed
    return sample_web(start, hours=hours, rebuilt_at=NOON)


def _prepare(folder: Path, port: int | None = None) -> Settings:
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
    if port is None:
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


class _Demo:
    """One run of the demo: start everything, collect, let it settle, count."""

    def __init__(
        self,
        supervisor: Supervisor,
        web: RecordedWeb,
        minutes: float,
        speed: float,
        screen: Screen,
        meddle: Callable[[Supervisor], None],
    ) -> None:
        self.supervisor = supervisor
        self.web = web
        self.minutes = minutes
        self.speed = speed
        self.screen = screen
        self.meddle = meddle

    @property
    def home(self) -> Path:
        """The demo's home folder."""
        return self.supervisor.settings.home

    def live_through(self, keep: bool) -> DemoOutcome:
        """Return the count after a stretch of the recorded web."""
        supervisor = self.supervisor
        server = supervisor.start_server(use_configured=False)
        clock = Clock.starting_at(self.web.start, self.speed)
        _write_clock(self.home, clock)
        supervisor.settings = replace(supervisor.settings, clock=clock)
        try:
            with serve_in_process(self.web, clock) as port, self._worker_stopped():
                return self._live_with(server, port, keep)
        finally:
            # Its time goes on at the ordinary pace: what is asked later was not hours ago.
            _write_clock(self.home, Clock.starting_at(clock.now(), 1.0))

    @contextlib.contextmanager
    def _worker_stopped(self) -> Iterator[None]:
        """Stop the worker at the end: a poll of a web that is gone would tell of failures."""
        try:
            yield
        finally:
            self.screen.say("stopping …")
            with undisturbed():
                self.supervisor.stop_worker()

    def _live_with(self, server: RunningServer, port: int, keep: bool) -> DemoOutcome:
        supervisor, screen = self.supervisor, self.screen
        sources = self.web.sources(port, POLL_INTERVAL_S, policy="auto")
        write_catalogue(sources, supervisor.settings.sources_folder)
        supervisor.start_page()
        supervisor.start_worker()
        await_worker(supervisor, screen, len(sources))
        say_addresses(supervisor, server, screen)
        screen.say(
            f"collecting for {self.minutes:g} min, in which"
            f" {spell_duration(self.minutes * 60 * self.speed)} of recorded time go by"
        )
        ended_at = self._collect()
        unsettled = self._settle(ended_at)
        rebuilt = self._mend(server)
        outcome = replace(_count(supervisor, self.web, ended_at, unsettled), rebuilt=rebuilt)
        _show(outcome, screen)
        self._say_alerts()
        self._say_where_to_look(server, keep)
        if keep:
            self._keep_going()
        return outcome

    def _mend(self, server: RunningServer) -> tuple[Rebuilt, ...]:
        """Set right, as a person would, what was found to be wrong with the rebuilt sites."""
        if not any(source.redesigns for source in self.web.history):
            return ()
        self.screen.say("setting right what was held back …")
        return mend_rebuilt(self.supervisor.settings, server.api_url, self.web)

    def _say_alerts(self) -> None:
        """Say what was urgent: the rules that ship are at work in the demo too."""
        with stopping_afterwards():
            urgent = read_urgent(self.supervisor.settings, self.web.start)
        for notice in urgent:
            self.screen.say(f"alert     {describe_notice(notice)}")
        if urgent:
            self.screen.say(f"          {spell_command(self.home, 'notices')}")

    def _collect(self) -> datetime:
        """Watch for as long as was asked, and return the recorded moment of the end."""
        began = time.monotonic()
        next_line = began + LINE_S
        while (passed_s := time.monotonic() - began) < self.minutes * 60:
            if self.screen.is_live:
                self.screen.move(self._view(f"{_clock_face(passed_s)} of {self.minutes:g} min"))
            time.sleep(LOOK_S)
            self.supervisor.watch()
            self.meddle(self.supervisor)
            if not self.screen.is_live and time.monotonic() >= next_line:
                next_line += LINE_S
                self.screen.say(self._standing())
        return self.supervisor.settings.clock.now()

    def _settle(self, ended_at: datetime) -> tuple[str, ...]:
        """Wait until each source was polled once more after `ended_at` and owes nothing.

        On a busy machine that takes its time: it is given up once no source more is through.
        """
        what = "letting the last polls come in"
        if not self.screen.is_live:
            self.screen.say(f"{what} …")
        assert self.supervisor.server is not None
        # A quiet source may not be due for an hour: each gets one more poll now.
        start_runs(self.supervisor.server.api_url)
        give_up = time.monotonic() + SETTLE_TIMEOUT_S
        wanted = {source.source for source in self.web.history}
        missing = wanted
        while missing and time.monotonic() < give_up:
            time.sleep(LOOK_S)
            self.supervisor.watch()
            self.screen.move(self._view(what))
            try:
                with stopping_afterwards(), open_reader(self.supervisor.settings) as reader:
                    settled = read_settled(reader, ended_at)
            except NewsbeatError:
                continue
            if wanted - settled != missing:
                give_up = time.monotonic() + SETTLE_TIMEOUT_S
            missing = wanted - settled
        return tuple(sorted(missing))

    def _standing(self) -> str:
        try:
            with stopping_afterwards():
                return read_report(self.supervisor.settings).in_one_line()
        except NewsbeatError as error:
            return str(error)

    def _view(self, how_far: str) -> RenderableType:
        """Return the standing of every source, as it moves in a terminal."""
        try:
            with stopping_afterwards():
                report = read_report(self.supervisor.settings)
        except NewsbeatError as error:
            return Spinner("dots", Text(f"{how_far}  {error}"))
        standing = Text(report.in_one_line(), no_wrap=True, overflow="ellipsis")
        moving = Spinner("dots", Text(how_far))
        return Group("", report.table(self.screen.console.width), "", standing, moving)

    def _say_where_to_look(self, server: RunningServer, keep: bool) -> None:
        say = self.screen.say
        say("")
        say("It can all be asked about:" if not keep else "It goes on; look at it:")
        say(f"  {spell_command(self.home, 'status')}")
        say(f"  {spell_command(self.home, 'sql', 'FROM lag_by_source_day ORDER BY ALL')}")
        if keep:
            say(f"  {server.ui_url}")
        else:
            say("Prefect's pages are there while it runs; --keep leaves it running.")

    def _keep_going(self) -> None:
        """Go on until interrupted, for as long as the web has something to publish."""
        if not self.screen.is_live:
            self.screen.say("Ctrl-C stops it")
        try:
            while True:
                time.sleep(LOOK_S)
                self.supervisor.watch()
                if self.screen.is_live:
                    self.screen.move(self._view("going on; Ctrl-C stops it"))
        except Stopped:
            return


def _clock_face(seconds: float) -> str:
    return f"{int(seconds // 60)}:{int(seconds % 60):02}"


def _write_clock(home: Path, clock: Clock) -> None:
    """Let every command in the demo's home live in the demo's time."""
    file = home / SETTINGS_FILE
    lines = file.read_text(encoding="utf-8").splitlines(keepends=True)
    kept = [line for line in lines if not line.startswith("clock = ")]
    file.write_text("".join([f'clock = "{clock.spell()}"\n', *kept]), encoding="utf-8")


def _count(
    supervisor: Supervisor, web: RecordedWeb, ended_at: datetime, unsettled: tuple[str, ...]
) -> DemoOutcome:
    """Compare what the web listed with what the warehouse holds."""
    assert supervisor.server is not None
    runs = read_runs(supervisor.server.api_url)
    with stopping_afterwards(), open_reader(supervisor.settings) as reader:
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
    listed = source.listed(tally.first_look_at, ended_at)
    urls = {source.url_of(source.entries[at]) for at in listed}
    return SourceCount(
        source=source.source,
        kind=source.kind,
        listed=len(urls),
        articles=sum(times for url, times in tally.stored.items() if url in urls),
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


def _show(outcome: DemoOutcome, screen: Screen) -> None:
    counts = outcome.sources
    lags = [count.mean_lag_s for count in counts]
    columns = [
        Column("source", [count.source for count in counts]),
        Column("kind", [count.kind for count in counts], worth=1),
        Column("listed", [f"{count.listed}" for count in counts], True),
        Column("articles", [f"{count.articles}" for count in counts], True),
        Column("missing", [_or_blank(len(count.missing)) for count in counts], True),
        Column("mean lag", ["" if lag is None else spell_duration(lag) for lag in lags], True),
        Column("polls", [f"{count.polls}" for count in counts], True),
        Column("empty", [f"{count.empty_polls}" for count in counts], True, worth=2),
        Column("failed", [_or_blank(count.failed_polls) for count in counts], True, worth=3),
        Column("MB", [f"{count.megabytes:.2f}" for count in counts], True, worth=4),
    ]
    screen.say("")
    screen.say(f"{outcome.started_at:%H:%M} to {outcome.ended_at:%H:%M} in recorded time (UTC)")
    screen.say("")
    screen.keep(fit_table(columns, screen.console.width))
    screen.say("")
    for site in outcome.rebuilt:
        for line in site.in_lines():
            screen.say(line)
    if outcome.rebuilt:
        screen.say("")
    for problem in outcome.problems:
        screen.say(f"PROBLEM   {problem}")
    if outcome.is_good:
        total = sum(count.listed for count in counts)
        screen.say(
            f"All {total} listed entries are in `articles`, each once; every source goes on."
        )


def _or_blank(number: int) -> str:
    return f"{number}" if number else "–"
