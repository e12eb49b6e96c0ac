"""`newsbeat page`: the status page alone, until stopped."""

from __future__ import annotations

import time

import click

from flows.commands.running import Stopped, say_moved, stopping_on_signals
from flows.page import make_page_server
from tasks.settings import Settings

SLEEP_S = 3600.0


def show_page(settings: Settings) -> None:
    """Serve the status page until SIGTERM or Ctrl-C.

    Raises
    ------
    ConfigError
        If it may not listen where the settings say, or cannot.
    """
    with make_page_server(settings) as page:
        try:
            with stopping_on_signals():
                click.echo(f"{page.url}   Ctrl-C stops it{say_moved(page, settings)}")
                while True:
                    time.sleep(SLEEP_S)
        except Stopped:
            click.echo("stopped")
