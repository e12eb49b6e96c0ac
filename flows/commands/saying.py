"""Plain lines on a terminal, in which nothing acts: what commands print goes through here."""

from __future__ import annotations

import sys

import click

from models.harmless import printable


def echo(text: object, *, err: bool = False) -> None:
    """Print lines of text in which nothing acts on a terminal."""
    click.echo(printable(str(text)), err=err)


def echo_for_programs(text: str) -> None:
    """Print what other programs read as it is; where people would see it, as :func:`echo` does."""
    if sys.stdout.isatty():
        echo(text)
    else:
        # Half a surrogate pair is no text that a pipe could hold.
        click.echo(text.encode("utf-8", "replace").decode("utf-8"))
