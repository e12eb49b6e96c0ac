"""`newsbeat up`: everything, until stopped."""

from __future__ import annotations

import contextlib
import signal
import time
from collections.abc import Callable, Iterator
from types import FrameType

from rich.spinner import Spinner
from rich.text import Text

from flows.commands.noticing import describe_notice, read_urgent
from flows.commands.reporting import StatusReport, read_report
from flows.commands.screen import Screen, spell_command
from flows.supervisor import Supervisor
from flows.wording import spell_count
from models.errors import ConfigError, NewsbeatError
from models.harmless import one_line
from tasks.catalogue import Catalogue, read_catalogue
from tasks.channels import Channels
from tasks.pageserver import PageServer
from tasks.prefect_server import RunningServer
from tasks.rulebook import read_rulebook
from tasks.settings import SETTINGS_FILE, Settings

WATCH_S = 1.0
READY_LOOK_S = 0.2
LOOK_S = 10.0
"""How often `up` looks at the sources: the warehouse answers in some hundredths of a second."""

REPORT_S = 60.0
STOPPING = (signal.SIGTERM, signal.SIGINT, signal.SIGHUP)

NO_CONTACT = (
    "say who collects before anything outside this machine is fetched: a line"
    ' contact = "you@example.org" under [agent] (or NEWSBEAT_AGENT_CONTACT), a mail address or'
    " page where the owner of a site can reach you"
)


class Stopped(Exception):  # noqa: N818 - not an error
    """Somebody asked us to stop."""


Handler = Callable[[int, FrameType | None], None]


@contextlib.contextmanager
def _handling_signals(handler: Handler) -> Iterator[None]:
    before = {number: signal.signal(number, handler) for number in STOPPING}
    try:
        yield
    finally:
        for number, earlier in before.items():
            signal.signal(number, earlier)


def _stop(_number: int, _frame: FrameType | None) -> None:
    raise Stopped


def _ignore(_number: int, _frame: FrameType | None) -> None:
    return


def stopping_on_signals() -> contextlib.AbstractContextManager[None]:
    """Turn SIGTERM, Ctrl-C and a closed terminal into :class:`Stopped`, and back when left."""
    return _handling_signals(_stop)


def undisturbed() -> contextlib.AbstractContextManager[None]:
    """Ignore a second Ctrl-C: what is being stopped is stopped in order."""
    return _handling_signals(_ignore)


@contextlib.contextmanager
def stopping_afterwards() -> Iterator[None]:
    """Put a signal off to the end of the block.

    DuckDB, interrupted, raises an error of its own in place of ours.
    """
    asked: list[int] = []
    with _handling_signals(lambda number, _frame: asked.append(number)):
        yield
    if asked:
        signal.raise_signal(asked[0])


def run_up(settings: Settings) -> None:
    """Start everything and keep it running until SIGTERM or Ctrl-C.

    Raises
    ------
    ConfigError
        If no contact is set, or the catalogue holds no usable source.
    ServerError
        If a part does not start.
    """
    catalogue = read_catalogue(settings)
    check_can_collect(settings, catalogue)
    with Screen() as screen:
        for problem in (*catalogue.problems, *read_rulebook(settings).problems):
            screen.say(f"left out  {one_line(problem)}")
        if catalogue.is_packaged:
            screen.say(
                f"collecting the {len(catalogue.sources)} sources that come with newsbeat;"
                f" for your own: {spell_command(settings.home, 'add', 'URL')}"
            )
        supervisor = Supervisor(settings, screen.say)
        try:
            with stopping_on_signals():
                _run(supervisor, len(catalogue.sources), screen)
        except Stopped:
            screen.say("stopping …")
        finally:
            with undisturbed():
                supervisor.stop()
        screen.say("stopped; everything collected is in the warehouse")


def check_can_collect(settings: Settings, catalogue: Catalogue) -> None:
    """Raise where there is nothing to collect, or nobody to answer for it.

    Raises
    ------
    ConfigError
        The message says what to do.
    """
    if not catalogue.sources and catalogue.problems:
        raise catalogue.problems[0]
    if not catalogue.sources:
        add = spell_command(settings.home, "add", "URL")
        raise ConfigError(catalogue.folder, "", None, f"no source to collect; add one: {add}")
    # An address that no message can go to is said now, and not when something burns.
    Channels(settings.open_channels)
    if not settings.agent.contact and not all(s.http.allow_private for s in catalogue.sources):
        raise ConfigError(str(settings.home / SETTINGS_FILE), "", None, NO_CONTACT)


def _run(supervisor: Supervisor, n_sources: int, screen: Screen) -> None:
    # First: settings it cannot live with are said before anything is started.
    supervisor.start_page()
    server = supervisor.start_server()
    supervisor.start_worker()
    await_worker(supervisor, screen, n_sources)
    say_addresses(supervisor, server, screen)
    screen.say(f"log       {supervisor.worker_log}")
    screen.say(f"{spell_count(n_sources, 'source')}; Ctrl-C stops everything, and loses nothing")
    watched = _Watched(supervisor.settings, screen)
    while True:
        watched.look()
        time.sleep(WATCH_S)
        supervisor.watch()


def say_moved(page: PageServer, settings: Settings) -> str:
    """Return why the page is not where the settings say; empty where it is."""
    return f" (port {settings.page.port} is taken)" if page.is_elsewhere else ""


def say_addresses(supervisor: Supervisor, server: RunningServer, screen: Screen) -> None:
    """Say where to look at what goes on."""
    settings, page = supervisor.settings, supervisor.page
    if page is not None:
        moved = say_moved(page, settings)
        screen.say(f"page      {page.url}   what broke, what is late, what was lost{moved}")
    screen.say(f"Prefect   {server.ui_url}/deployments   a deployment for each source")
    screen.say(f"          {server.ui_url}/artifacts     and a page: its polls, lag, next poll")
    screen.say(f"ask       {spell_command(settings.home, 'sql', 'FROM lag_by_source_day')}")
    screen.say(f"look      {spell_command(settings.home, 'status')}")


def await_worker(supervisor: Supervisor, screen: Screen, n_sources: int) -> None:
    """Wait until the worker collects, and show how far it is."""
    what = f"starting the worker for {spell_count(n_sources, 'source')}"
    screen.say(f"{what} …")
    while not supervisor.is_worker_ready:
        time.sleep(READY_LOOK_S)
        supervisor.watch()
        if screen.is_live and (progress := supervisor.worker_progress):
            screen.say(f"{what}: {progress} …")


class _Watched:
    """Says once a minute how things stand, and at once which source broke or mended.

    In a terminal the standing is a line at the bottom that renews itself.
    """

    def __init__(self, settings: Settings, screen: Screen) -> None:
        self._settings = settings
        self._screen = screen
        self._broken: set[str] = set()
        self._told_at = settings.clock.now()
        self._look_at = self._line_at = 0.0

    def look(self) -> None:
        """Look, if it is time to."""
        if (now := time.monotonic()) < self._look_at:
            return
        self._look_at = now + LOOK_S
        try:
            with stopping_afterwards():
                report = read_report(self._settings)
        except NewsbeatError as error:
            self._screen.say(str(error))
            return
        self._say_changes(report)
        self._say_alerts()
        if self._screen.is_live:
            self._screen.move(Spinner("dots", Text(report.in_one_line())))
        elif now >= self._line_at:
            self._line_at = now + REPORT_S
            self._screen.say(report.in_one_line())

    def _say_alerts(self) -> None:
        """Say what became urgent since the last look: not everybody has a channel."""
        try:
            with stopping_afterwards():
                urgent = read_urgent(self._settings, self._told_at)
        except NewsbeatError:
            return
        for notice in urgent:
            self._told_at = max(self._told_at, notice.raised_at)
            self._screen.say(describe_notice(notice))

    def _say_changes(self, report: StatusReport) -> None:
        broken = {row.source: row for row in report.broken}
        for source in sorted(broken.keys() - self._broken):
            reason = one_line(broken[source].last_reason or broken[source].reason)
            self._screen.say(f"{report.now:%H:%M} UTC  broken  {source}: {reason}")
        for source in sorted(self._broken - broken.keys()):
            self._screen.say(f"{report.now:%H:%M} UTC  mended  {source}")
        self._broken = set(broken)
