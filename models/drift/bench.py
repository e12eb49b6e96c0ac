"""How detectors do on streams of pages: false alarms, what is found, after how many pages."""

from __future__ import annotations

import math
import time
from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from scipy.special import betaincinv

from models.drift.contenders import Contender, Judge
from models.drift.faults import CAUSES
from models.drift.features import PageFeatures

PAGES_BEFORE = 30
"""Correct pages of a stream before it breaks."""

PAGES_AFTER = 120
"""Pages within which a breakage must be found."""


@dataclass(frozen=True, slots=True)
class Outcome:
    """How one stream ended.

    Attributes
    ----------
    kind
        What broke.
    delay
        Pages from the first broken one to the alarm; nothing where there was none.
    cause
        What the detector named as its cause; ``""`` where it names none.
    """

    kind: str
    delay: int | None
    cause: str


@dataclass(slots=True)
class Tally:
    """What one detector did, over all sites so far.

    Attributes
    ----------
    pages_ok
        Correct pages judged; different ones, each once.
    false_alarms
        Alarms on them.
    outcomes
        Of the broken streams.
    redesign_delays
        Of real redesigns; nothing where one was not found.
    redesign_false_alarms
        Alarms on a site's own pages before its redesign.
    cpu_s, n_timed
        Processor time spent on pages.
    """

    pages_ok: int = 0
    false_alarms: int = 0
    outcomes: list[Outcome] = field(default_factory=list)
    redesign_delays: list[int | None] = field(default_factory=list)
    redesign_false_alarms: int = 0
    cpu_s: float = 0.0
    n_timed: int = 0

    def add(self, other: Tally) -> None:
        """Take in what the detector did elsewhere."""
        self.pages_ok += other.pages_ok
        self.false_alarms += other.false_alarms
        self.outcomes += other.outcomes
        self.redesign_delays += other.redesign_delays
        self.redesign_false_alarms += other.redesign_false_alarms
        self.cpu_s += other.cpu_s
        self.n_timed += other.n_timed

    @property
    def false_alarm_bound(self) -> float:
        """The share of false alarms a page is below this with 95 % confidence."""
        if not self.pages_ok or self.false_alarms >= self.pages_ok:
            return 1.0
        alarms = self.false_alarms
        return float(betaincinv(alarms + 1, self.pages_ok - alarms, 0.95))

    def by_kind(self) -> list[dict[str, Any]]:
        """Return what was found of each kind, in the order they were tried."""
        grouped: dict[str, list[Outcome]] = defaultdict(list)
        for outcome in self.outcomes:
            grouped[outcome.kind].append(outcome)
        return [_describe(kind, outcomes) for kind, outcomes in grouped.items()]

    def as_json(self, name: str) -> dict[str, Any]:
        """Return it as JSON-ready values."""
        found = [delay for delay in self.redesign_delays if delay is not None]
        return {
            "detector": name,
            "pages_ok": self.pages_ok,
            "false_alarms": self.false_alarms,
            "kinds": self.by_kind(),
            "redesigns": {
                "n": len(self.redesign_delays),
                "found": len(found),
                "median_pages": _quantile(self.redesign_delays, 0.5),
                "false_alarms": self.redesign_false_alarms,
            },
            "cpu_ms_per_page": round(1e3 * self.cpu_s / max(self.n_timed, 1), 3),
        }


def _describe(kind: str, outcomes: Sequence[Outcome]) -> dict[str, Any]:
    alarms = [outcome for outcome in outcomes if outcome.delay is not None]
    named = [outcome.cause in CAUSES[kind] for outcome in alarms if outcome.cause]
    return {
        "kind": kind,
        "streams": len(outcomes),
        "found_share": round(len(alarms) / len(outcomes), 4),
        "median_pages": _quantile([outcome.delay for outcome in outcomes], 0.5),
        "p90_pages": _quantile([outcome.delay for outcome in outcomes], 0.9),
        "cause_right_share": round(sum(named) / len(named), 4) if named else None,
    }


def _quantile(delays: Sequence[int | None], share: float) -> int | None:
    """Return the smallest delay that a share of all streams do not exceed; nothing if none."""
    if not delays:
        return None
    ordered = sorted(math.inf if delay is None else delay for delay in delays)
    picked = ordered[min(math.ceil(share * len(ordered)), len(ordered)) - 1]
    return None if math.isinf(picked) else int(picked)


def count_false_alarms(contender: Contender, pages: Sequence[PageFeatures]) -> Tally:
    """Return how often a detector alarms on correct pages; it starts anew after each alarm."""
    tally, judge = Tally(), contender.start()
    started = time.process_time()
    for page in pages:
        if judge.add(page) is not None:
            tally.false_alarms += 1
            judge = contender.start()
    tally.cpu_s = time.process_time() - started
    tally.pages_ok = tally.n_timed = len(pages)
    return tally


def run_stream(
    contender: Contender,
    before: Sequence[PageFeatures],
    after: Sequence[PageFeatures],
    is_broken: Sequence[bool],
) -> tuple[int | None, str]:
    """Return the delay and cause of the first alarm after a stream breaks.

    Alarms before that make the detector start anew.
    """
    judge = _warmed_up(contender, before)
    first = is_broken.index(True) if True in is_broken else 0
    for at, page in enumerate(after):
        cause = judge.add(page)
        if cause is None:
            continue
        if at >= first:
            return at - first + 1, cause
        judge = contender.start()
    return None, ""


def _warmed_up(contender: Contender, pages: Sequence[PageFeatures]) -> Judge:
    judge = contender.start()
    for page in pages:
        if judge.add(page) is not None:
            judge = contender.start()
    return judge


def run_kinds(
    contender: Contender,
    correct: Sequence[PageFeatures],
    broken: Mapping[str, Sequence[PageFeatures]],
    *,
    share: float,
    n_streams: int,
    rng: np.random.Generator,
) -> Tally:
    """Return what a detector finds on streams that break.

    Parameters
    ----------
    contender
        The detector.
    correct
        Correct pages of the site, to stand before the break and, where only a share of the
        pages is broken, between the broken ones.
    broken
        Broken pages by kind, taken in turn.
    share
        Share of the pages after the break that are broken.
    n_streams
        Streams a kind.
    rng
        Draws the streams: the same one gives the same streams to every detector.
    """
    tally = Tally()
    for kind, pages in broken.items():
        for _ in range(n_streams):
            start = int(rng.integers(len(correct)))
            ahead = [correct[(start + at) % len(correct)] for at in range(PAGES_BEFORE)]
            start += PAGES_BEFORE
            flags = [True, *(rng.random(PAGES_AFTER - 1) < share).tolist()]
            turn = int(rng.integers(len(pages)))
            after = []
            for at, flag in enumerate(flags):
                turn += flag
                page = pages[turn % len(pages)] if flag else correct[(start + at) % len(correct)]
                after.append(page)
            delay, cause = run_stream(contender, ahead, after, flags)
            tally.outcomes.append(Outcome(kind, delay, cause))
    return tally


def run_redesign(
    contender: Contender, own: Sequence[PageFeatures], following: Sequence[PageFeatures]
) -> Tally:
    """Return what a detector makes of a real redesign.

    Parameters
    ----------
    contender
        The detector, set to work on pages before the redesign.
    own
        Other pages before it.
    following
        Pages after it.
    """
    tally = count_false_alarms(contender, own)
    alarms = tally.false_alarms
    delay, _ = run_stream(contender, own, following, [True] * len(following))
    return Tally(redesign_delays=[delay], redesign_false_alarms=alarms)
