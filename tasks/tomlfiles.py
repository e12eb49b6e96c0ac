"""TOML files of many tables, written by hand: one broken table costs no other."""

from __future__ import annotations

import itertools
import re
from collections.abc import Callable, Iterable, Iterator
from importlib.resources.abc import Traversable
from pathlib import Path
from tomllib import TOMLDecodeError

from models.errors import ConfigError

Stamp = tuple[tuple[str, int, int], ...]
"""Name, time and size of each file: changes whenever somebody writes in one."""

_LINE = re.compile(r"at line (\d+)")


def split_tables(text: str, name: str) -> Iterator[tuple[int, str]]:
    r"""Yield ``(first line, text)`` of what stands before the first ``[[name]]``, and of each.

    Examples
    --------
    >>> list(split_tables("# mine\n[[rule]]\nlevel = 1\n[[ rule ]]\n", "rule"))
    [(1, '# mine\n'), (2, '[[rule]]\nlevel = 1\n'), (4, '[[ rule ]]\n')]
    """
    header = re.compile(rf"^[ \t]*\[\[[ \t]*{name}[ \t]*\]\]", re.MULTILINE)
    starts = [0, *(match.start() for match in header.finditer(text)), len(text)]
    for start, end in itertools.pairwise(starts):
        yield text.count("\n", 0, start) + 1, text[start:end]


def syntax_problem(file: str, line: int, error: TOMLDecodeError, whose: str = "") -> ConfigError:
    """Return what is wrong with a part that is no TOML, at its line in the file.

    Parameters
    ----------
    line
        First line of the part.
    whose
        Put before the reason, such as ``"rule fire: "``.
    """
    text = str(error)
    found = _LINE.search(text)
    at = line + int(found[1]) - 1 if found else line
    reason = text.partition(" (at ")[0]
    return ConfigError(f"{file}:{at}", "", None, f"{whose}not readable as TOML: {reason}")


def read_stamp(list_files: Callable[[], Iterable[Traversable]]) -> Stamp:
    """Return the stamp of the files that are listed; empty where they cannot be looked at."""
    try:
        looks = [(file.name, file.stat()) for file in list_files() if isinstance(file, Path)]
    except OSError:
        return ()
    return tuple((name, look.st_mtime_ns, look.st_size) for name, look in looks)
