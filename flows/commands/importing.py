"""`newsbeat import FILE`: many sources at once, from other programs and from tables."""

from __future__ import annotations

import asyncio
import sys
from collections import Counter
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import click

from flows.commands.adding import describe_first, describe_start
from flows.importing import OF_ONES_OWN_NETWORK, Fate, Line, Tell, check_plan, plan_import
from flows.wording import spell_count
from models.decoding import decode_bytes
from models.errors import ConfigError, NewsbeatError
from models.harmless import one_line
from models.subscriptions import Form, Wishes, make_tags, read_wishes
from tasks.catalogue import IMPORTED_FILE, check_timezone, read_catalogue, write_sources
from tasks.settings import Settings

MAX_FILE_BYTES = 50 * 2**20
"""More than any list of sources: somebody's archive was named by mistake."""

_WORDS: dict[Fate, str] = {
    "imported": "imported",
    "there": "there already",
    "twice": "named twice",
    "bad": "no source",
    "failed": "cannot be polled",
}


@dataclass(frozen=True, slots=True)
class ImportReport:
    """What became of a list.

    Attributes
    ----------
    file
        Catalogue file the sources were written to; empty where none was.
    notes
        What else people should know, in sentences.
    """

    lines: tuple[Line, ...]
    file: str
    notes: tuple[str, ...] = ()
    is_trial: bool = False

    @property
    def is_good(self) -> bool:
        """Whether there was a line, and every line is a source that is watched now."""
        return bool(self.lines) and not any(line.fate in ("bad", "failed") for line in self.lines)

    def as_text(self) -> str:
        """Return the report: every line that was not imported, then the sum."""
        lines = [
            f"line {line.number}: {_WORDS[line.fate]}: {one_line(line.words)}"
            for line in self.lines
            if line.fate != "imported"
        ]
        counts = Counter(line.fate for line in self.lines)
        words = {**_WORDS, "imported": "would be imported"} if self.is_trial else _WORDS
        told = [f"{counts[fate]} {words[fate]}" for fate in _WORDS if counts[fate]]
        if told:
            lines.append(f"{spell_count(len(self.lines), 'source')} in the list: {', '.join(told)}")
        else:
            lines.append("no source in the list; --format opml, csv or list says how to read it")
        return "\n".join([*lines, *self.notes])

    def as_json(self) -> dict[str, Any]:
        """Return the report as JSON-ready values."""
        counts = Counter(line.fate for line in self.lines)
        return {
            "file": self.file,
            **{fate: counts[fate] for fate in _WORDS},
            "lines": [
                {
                    "line": line.number,
                    "fate": line.fate,
                    "words": line.words,
                    "source": line.source.source if line.source else None,
                }
                for line in self.lines
            ],
        }


def import_sources(
    settings: Settings,
    path: Path,
    *,
    form: Form | None = None,
    check: bool = False,
    tags: tuple[str, ...] = (),
    timezone: str | None = None,
    allow_private: bool = False,
    dry_run: bool = False,
    tell: Tell = lambda _done, _total: None,
) -> ImportReport:
    """Read a list of sources, and write those that are new to the catalogue.

    Parameters
    ----------
    form
        What the list is; found out where None.
    check
        Try every address first; what cannot be polled is not imported.
    tags, timezone
        For every source; the zone only where its line names none.
    allow_private
        Let the list open addresses inside one's own network.
    dry_run
        Write nothing.
    tell
        Told how many addresses were tried, and of how many.

    Raises
    ------
    ConfigError
        If the file cannot be read, or the catalogue not be written.
    ParseError
        If it holds no list.
    """
    check_timezone(timezone)
    wishes = read_wishes(_read(path), path.name, form)
    before = read_catalogue(settings)
    known = () if before.is_packaged else before.sources
    plan = plan_import(
        wishes, known, tags=make_tags(tags), timezone=timezone, allow_private=allow_private
    )
    if check:
        plan = asyncio.run(check_plan(settings, plan, tell))
    notes = [_describe_closed(wishes)] if not allow_private and _describe_closed(wishes) else []
    if not plan.sources or dry_run:
        return ImportReport(tuple(plan.lines), "", tuple(notes), is_trial=dry_run)
    written = write_sources(settings.sources_folder, plan.sources, IMPORTED_FILE)
    notes.append(f"written to {written}")
    if before.is_packaged:
        notes.append(describe_first(settings, before))
    notes.append(describe_start(settings, before.is_packaged))
    return ImportReport(tuple(plan.lines), str(written), tuple(notes))


def _describe_closed(wishes: Wishes) -> str:
    """Return which keys of a list were passed over, as they open one's own network."""
    keys = sorted(
        {key for wish in wishes.wanted for key in OF_ONES_OWN_NETWORK & wish.values.keys()}
    )
    if not keys:
        return ""
    return f"{' and '.join(keys)} of the list not taken: that needs --allow-private"


def _read(path: Path) -> str:
    try:
        if str(path) == "-":
            body = sys.stdin.buffer.read(MAX_FILE_BYTES + 1)
        else:
            with path.open("rb") as file:
                body = file.read(MAX_FILE_BYTES + 1)
    except OSError as error:
        raise ConfigError(str(path), "", None, f"not readable: {error.strerror}") from error
    if len(body) > MAX_FILE_BYTES:
        raise NewsbeatError(f"{path}: larger than {MAX_FILE_BYTES >> 20} MiB: no list of sources")
    return decode_bytes(body).text


def say_progress(done: int, total: int) -> None:
    """Show how many addresses were tried: moving in a terminal, now and then elsewhere."""
    if sys.stderr.isatty():
        click.echo(f"\r{done} of {total} addresses tried", nl=done == total, err=True)
    elif done == total or done % 50 == 0:
        click.echo(f"{done} of {total} addresses tried", err=True)
