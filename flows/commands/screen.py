"""Where a long command shows how far it is: a live view in a terminal, plain lines elsewhere."""

from __future__ import annotations

import os
import shlex
import shutil
import sys
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path
from types import TracebackType
from typing import Self

from rich import box
from rich.cells import cell_len
from rich.console import Console, ConsoleOptions, RenderableType
from rich.live import Live
from rich.segment import Segment
from rich.spinner import Spinner
from rich.table import Table
from rich.text import Text

from models.harmless import printable

GAP = 2
"""Blanks between two columns of a table."""

WIDE = 240
"""Cells of a line where no terminal sets them: room for every column."""

UNDER_WAY = "…"
"""A line that ends so names a step under way: in a terminal it moves until the next."""


class Screen:
    """Lines that stay, and below them, in a terminal, one thing that moves.

    Use as a context manager; what moves is wiped on leaving.

    Parameters
    ----------
    quiet
        Show nothing at all.
    console
        Where to show it; standard output where None.
    """

    def __init__(self, quiet: bool = False, console: Console | None = None) -> None:
        self.console = console or make_console()
        self._quiet = quiet
        self._live = Live(console=self.console, transient=True, refresh_per_second=8)

    @property
    def is_live(self) -> bool:
        """Whether a view can move here."""
        return self.console.is_terminal and not self._quiet

    def __enter__(self) -> Self:
        if self.is_live:
            self._live.start()
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        if self.is_live:
            self._live.update("")
            self._live.stop()

    def say(self, line: str) -> None:
        """Show a line; one that ends in ``…`` is a step that lasts until the next line."""
        if self.is_live and line.endswith(UNDER_WAY):
            self.move(Spinner("dots", Text(line)))
        else:
            # Left to the terminal to break, so that an address can be copied whole.
            self.keep(Text(line), soft_wrap=True)

    def keep(self, what: RenderableType, soft_wrap: bool = False) -> None:
        """Show something that stays."""
        if not self._quiet:
            self.console.print(what, soft_wrap=soft_wrap)
            self.console.file.flush()

    def move(self, view: RenderableType) -> None:
        """Put a view in place of the one that moves; without a terminal, nothing is shown."""
        if self.is_live:
            self._live.update(view)


class SafeConsole(Console):
    """A console on which no text acts: what a publisher wrote must not steer a terminal.

    Its own colours and movements are no text, and go through.
    """

    def render(
        self, renderable: RenderableType, options: ConsoleOptions | None = None
    ) -> Iterable[Segment]:
        """Yield the pieces of `renderable`, printable."""
        for piece in super().render(renderable, options):
            yield piece if piece.control else piece._replace(text=printable(piece.text))


def make_console() -> Console:
    """Return a console for standard output; where that is no terminal, nothing is cut to fit."""
    if sys.stdout.isatty() or "COLUMNS" in os.environ:
        return SafeConsole()
    return SafeConsole(width=WIDE)


@dataclass(frozen=True, slots=True)
class Column:
    """A column of a table that fits itself to the terminal.

    Attributes
    ----------
    worth
        Where there is no room for all, columns of least worth go first; 0 stays always.
    """

    name: str
    cells: Sequence[str | Text]
    is_number: bool = False
    worth: int = 0

    @property
    def width(self) -> int:
        """Cells it takes at its widest."""
        texts = [cell.plain if isinstance(cell, Text) else cell for cell in self.cells]
        return max(map(cell_len, [self.name, *texts]))


def fit_table(columns: Sequence[Column], width: int) -> Table:
    """Return a table of as many of `columns` as `width` cells have room for."""
    shown = list(columns)
    while sum(column.width + GAP for column in shown) - GAP > width:
        droppable = [column for column in shown if column.worth]
        if not droppable:
            break
        shown.remove(min(droppable, key=lambda column: column.worth))
    table = Table(box=box.SIMPLE_HEAD, show_edge=False, pad_edge=False, padding=(0, GAP - 1, 0, 0))
    for column in shown:
        table.add_column(
            column.name,
            justify="right" if column.is_number else "left",
            no_wrap=True,
            overflow="ellipsis",
        )
    for cells in zip(*(column.cells for column in shown), strict=True):
        # As text: square brackets in a title are no instructions to us.
        table.add_row(*(cell if isinstance(cell, Text) else Text(cell) for cell in cells))
    return table


def spell_command(home: Path, *words: str) -> str:
    """Return a command of ours as it can be typed here.

    Names the program by its path where the shell would not find it, and the home
    folder where it is another than the current one.
    """
    return " ".join([_program(), *map(_quoted, words), *_home_option(home)])


def _program() -> str:
    started = Path(sys.argv[0])
    found = shutil.which("newsbeat")
    is_script = started.name == "newsbeat"
    if not is_script or (found and Path(found).resolve() == started.resolve()):
        return "newsbeat"
    return shlex.quote(_short(started))


def _home_option(home: Path) -> list[str]:
    usual = Path(os.environ.get("NEWSBEAT_HOME") or ".")
    return [] if usual.resolve() == home.resolve() else ["--home", shlex.quote(_short(home))]


def _short(path: Path) -> str:
    """Return a path relative to the current folder where it lies below."""
    path, here = path.absolute(), Path.cwd()
    return str(path.relative_to(here)) if path.is_relative_to(here) else str(path)


def _quoted(word: str) -> str:
    return f'"{word}"' if " " in word else word
