"""The floor: what we get right of each suite, below which no change may fall.

``python benchmarks/corpus.py --raise-floor`` writes it anew. It keeps counts, and the names
of the few values and files that are not right; whatever is not among them was right.
"""

from __future__ import annotations

import json
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from suites.feeds import SUITES
from suites.readers import read_with_ours
from suites.tally import Tally, measure

FILE = Path(__file__).parents[1] / "feed_floor.json"


@dataclass(frozen=True, slots=True)
class Floor:
    """What was right of a suite when the floor was written."""

    n_read: int
    n_right: int
    unread: frozenset[str]
    wrong: frozenset[str]


def read_floor() -> dict[str, Floor]:
    """Return the floor of each suite."""
    told: dict[str, dict[str, Any]] = json.loads(FILE.read_text(encoding="utf-8"))
    return {
        name: Floor(
            suite["files read"],
            suite["values right"],
            frozenset(suite["not read"]),
            frozenset(suite["not right"]),
        )
        for name, suite in told.items()
    }


def fallen(floor: Floor, tally: Tally) -> list[str]:
    """Return what was read or right when the floor was written, and is not now."""
    files = [f"{path} is no longer read" for path in tally.unread if path not in floor.unread]
    return files + [line for name, line in tally.wrong.items() if name not in floor.wrong]


def measure_ours(suite: str) -> Tally:
    """Return our tally of a suite."""
    return measure(suite, {"ours": read_with_ours})["ours"]


def raise_floor() -> None:
    """Write what is right now."""
    tallies = {name: measure_ours(name) for name in SUITES}
    told = {
        name: {
            "files read": tally.n_read,
            "values right": tally.right.total(),
            "not read": sorted(tally.unread),
            "not right": sorted(tally.wrong),
        }
        for name, tally in tallies.items()
    }
    FILE.write_text(json.dumps(told, indent=1) + "\n", encoding="utf-8")
