"""How much of a suite each parser gets right."""

from __future__ import annotations

import re
import time
from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass, field

from suites.feeds import SuiteFile, read_suite
from suites.readers import Read, Reader
from suites.values import FEED, Item, is_alike

_OPENING = re.compile(rb"<(?:\w+:)?(?:item|entry)[\s>]|\"items\"")


@dataclass
class Tally:
    """What one parser made of a suite.

    Attributes
    ----------
    n_files, n_read
        Files that hold entries, and those in which this one finds some.
    asked, right
        Values by field.
    cpu_s
        Processor seconds over all files of the suite.
    unread
        Files that hold entries of which this one finds none.
    wrong
        What is wrong, by the name of the value: file, place and field.
    """

    n_files: int = 0
    n_read: int = 0
    cpu_s: float = 0.0
    asked: Counter[str] = field(default_factory=Counter)
    right: Counter[str] = field(default_factory=Counter)
    unread: list[str] = field(default_factory=list)
    wrong: dict[str, str] = field(default_factory=dict)


def measure(suite: str, readers: Mapping[str, Reader]) -> dict[str, Tally]:
    """Return each parser's tally of a suite.

    A file holds entries if any of several parsers finds one; a single parser is not asked:
    for it, a file that opens an entry holds some.
    """
    tallies = {name: Tally() for name in readers}
    for file in read_suite(suite):
        found = {name: _timed(read, file, tallies[name]) for name, read in readers.items()}
        is_feed = any(_has_entries(items) for items in found.values())
        if len(readers) == 1:
            is_feed = _OPENING.search(file.answer.body.replace(b"\0", b"")) is not None
        for name, items in found.items():
            if is_feed:
                _count_file(tallies[name], file.path, items)
            if is_feed or FEED in file.expected:
                _count_values(tallies[name], file, items)
    return tallies


def _timed(read: Reader, file: SuiteFile, tally: Tally) -> Read:
    before_s = time.process_time()
    items = read(file.answer)
    tally.cpu_s += time.process_time() - before_s
    return items


def _has_entries(items: Read) -> bool:
    return any(place != FEED for place in items)


def _count_file(tally: Tally, path: str, items: Read) -> None:
    tally.n_files += 1
    tally.n_read += _has_entries(items)
    if not _has_entries(items):
        tally.unread.append(path)


def _count_values(tally: Tally, file: SuiteFile, items: Read) -> None:
    for place, wanted in file.expected.items():
        got: Item = items.get(place, {})
        for name, value in wanted.items():
            tally.asked[name] += 1
            if is_alike(name, got.get(name), value, file.answer.base):
                tally.right[name] += 1
            else:
                where = f"{file.path} {'feed' if place == FEED else place} {name}"
                tally.wrong[where] = f"{where}: {got.get(name)!r} not {value!r}"
