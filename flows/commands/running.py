"""`newsbeat up`: everything, until stopped."""

from __future__ import annotations

import contextlib
import signal
import sys
import time
from collections.abc import Iterator
from types import FrameType

import click

from flows.supervisor import Supervisor
from models.errors import ConfigError, NewsbeatError
from tasks.catalogue import read_catalogue
from tasks.settings import Settings

WATCH_S = 1.0
REPORT_S = 60.0


class Stopped(Exception):  # noqa: N818 - not an error
    """Somebody asked us to stop."""


@contextlib.contextmanager
def stopping_on_signals() -> Iterator[None]:
    """Turn SIGTERM and Ctrl-C into :class:`Stopped`, and back when left."""

    def stop(_number: int, _frame: FrameType | None) -> None:
        raise Stopped

    before = {number: signal.signal(number, stop) for number in (signal.SIGTERM, signal.SIGINT)}
    try:
        yield
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)


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
    for problem in catalogue.problems:
        click.echo(f"left out: {problem}", err=True)
    if not catalogue.sources:
        raise ConfigError(
            str(settings.sources_folder), "", None, "no source yet; add one: newsbeat add URL"
        )
    if not settings.agent.contact and not all(s.http.allow_private for s in catalogue.sources):
        raise ConfigError(
            "newsbeat.toml",
            "agent.contact",
            "",
            "it must name a mail address or page where the owners of the sites you read can"
            " reach you (or set NEWSBEAT_AGENT_CONTACT)",
        )
    supervisor = Supervisor(settings, click.echo)
    try:
        with stopping_on_signals():
            _run(supervisor, len(catalogue.sources))
    except Stopped:
        click.echo("stopping …")
    finally:
        supervisor.stop()
    click.echo("stopped; everything collected is in the warehouse")


def _run(supervisor: Supervisor, n_sources: int) -> None:
    server = supervisor.start_server()
    click.echo(f"starting the worker for {n_sources} sources …")
    supervisor.start_worker()
    click.echo(f"Prefect   {server.ui_url}")
    click.echo('SQL       newsbeat sql "FROM source_health"')
    click.echo("status    newsbeat status")
    click.echo(f"log       {supervisor.worker_log}")
    click.echo("Ctrl-C stops everything.")
    reported = time.monotonic()
    while True:
        time.sleep(WATCH_S)
        supervisor.watch()
        if time.monotonic() - reported >= REPORT_S:
            reported = time.monotonic()
            _report(supervisor.settings)


def _report(settings: Settings) -> None:
    """Print one line on how things stand."""
    from flows.commands.reporting import read_report

    try:
        line = read_report(settings).in_one_line()
    except NewsbeatError as error:
        line = str(error)
    click.echo(line)
    sys.stdout.flush()
