"""The sites of a demo that are rebuilt: found, held back, set right, and counted."""

from __future__ import annotations

import time
from collections.abc import Iterator
from dataclasses import asdict, dataclass
from datetime import datetime
from typing import Any

from flows.commands.running import stopping_afterwards
from flows.duties import MEND
from tasks.changetally import ChangeTally, tally_change
from tasks.prefect_server import read_outcome, read_runs, start_run
from tasks.replay.history import RecordedWeb
from tasks.settings import Settings
from tasks.tally import read_tallies
from tasks.warehouse_reader import open_reader

ENOUGH_PAGES = {"redesigned": 8, "structured_half": 15}
"""Pages after which each of them must have been found, at the very latest."""

WORDS = {
    "redesigned": "redesigned itself; its rule reads the comments",
    "structured_half": "shows a third of every text",
}

MEND_TIMEOUT_S, FAILURE_TIMEOUT_S = 90.0, 60.0
LOOK_S = 0.5


@dataclass(frozen=True, slots=True)
class Rebuilt:
    """A site that was rebuilt, and what became of it.

    Attributes
    ----------
    found, mended
        How it fared before it was set right, and after.
    failure
        What the flow run said that found it; empty where none failed.
    mending
        What the run said that set it right.
    first_look_at
        When its pages were first had; None where none was.
    """

    source: str
    layout: str
    at: datetime
    found: ChangeTally
    mended: ChangeTally
    failure: str = ""
    mending: str = ""
    first_look_at: datetime | None = None

    @property
    def is_unknowable(self) -> bool:
        """Whether nothing could be found: no page was seen as it was before.

        The recorded time goes on while the worker starts, which may last past the rebuilding
        where a machine is busy.
        """
        return self.first_look_at is None or self.first_look_at >= self.at

    @property
    def problems(self) -> Iterator[str]:
        """What is wrong, one sentence each."""
        found, mended = self.found, self.mended
        if found.found_at is None:
            if not self.is_unknowable and found.n_pages >= ENOUGH_PAGES[self.layout]:
                yield f"{self.source}: rebuilt, and not found in {found.n_pages} pages"
            return
        if not self.failure:
            yield f"{self.source}: its text is wrong, and no flow run failed"
        if mended.is_open or mended.n_held:
            yield f"{self.source}: not set right again: {self.mending}"

    def in_lines(self) -> Iterator[str]:
        """Return what happened, for people."""
        found, mended = self.found, self.mended
        yield f"{self.source} {WORDS[self.layout]} from {self.at:%H:%M} on:"
        if found.found_at is None and self.is_unknowable:
            yield "  before that no page was seen to compare with: this machine started too slowly"
            yield "  more time helps: `newsbeat demo --minutes 5`"
            return
        if found.found_at is None:
            yield f"  not found in the {found.n_pages} pages since; that takes a few more"
            return
        yield (
            f"  found at {found.found_at:%H:%M}, on page {found.n_to_find}; its flow run failed;"
            f" {found.n_held} articles held back, {found.n_held_before} of before"
        )
        yield (
            f"  `newsbeat reextract {self.source} --adopt`: {mended.n_restored} texts set right by"
            f" {mended.way or 'nothing'}; {mended.n_held} held back,"
            f" notice {'open' if mended.is_open else 'closed'}"
        )

    def as_json(self) -> dict[str, Any]:
        """Return it as plain values."""
        return asdict(self)


def mend_rebuilt(settings: Settings, api_url: str, web: RecordedWeb) -> tuple[Rebuilt, ...]:
    """Set right what was found, as a person would, and return what became of each site."""
    found = {
        source.source: _tally(settings, source.source, redesign.at)
        for source in web.history
        for redesign in source.redesigns
    }
    wrong = {source for source, tally in found.items() if tally.found_at is not None}
    failures = _await_failures(api_url, wrong)
    with stopping_afterwards(), open_reader(settings) as reader:
        looks = {source: tally.first_look_at for source, tally in read_tallies(reader).items()}
    mended = {source: _run_mending(api_url, source) for source in sorted(wrong)}
    return tuple(
        Rebuilt(
            source.source, redesign.layout, redesign.at, found[source.source],
            _tally(settings, source.source, redesign.at), failures.get(source.source, ""),
            mended.get(source.source, ""), looks.get(source.source),
        )
        for source in web.history
        for redesign in source.redesigns
    )  # fmt: skip


def _await_failures(api_url: str, sources: set[str]) -> dict[str, str]:
    """Return what the run said that found each site, once all of them have failed.

    A run goes on after its poll is stored: the check of a set takes seconds.
    """
    give_up = time.monotonic() + FAILURE_TIMEOUT_S
    while True:
        runs = read_runs(api_url)
        told = {run.source: run.failure for run in reversed(runs) if "text is wrong" in run.failure}
        if sources <= told.keys() or time.monotonic() > give_up:
            return told
        time.sleep(LOOK_S)


def _tally(settings: Settings, source: str, since: datetime) -> ChangeTally:
    with stopping_afterwards(), open_reader(settings) as reader:
        return tally_change(reader, source, since)


def _run_mending(api_url: str, source: str) -> str:
    parameters = {"source": source, "action": "reextract", "adopt": True}
    run_id = start_run(api_url, MEND.deployment, parameters)
    give_up = time.monotonic() + MEND_TIMEOUT_S
    while (outcome := read_outcome(api_url, run_id)) is None:
        if time.monotonic() > give_up:
            return f"not over after {MEND_TIMEOUT_S:g} s"
        time.sleep(LOOK_S)
    return outcome[1]
