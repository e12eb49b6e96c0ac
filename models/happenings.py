"""What may happen to sources: what a policy must live through, played on made-up ones.

Doubled rates, a holiday, clocks that change, an outage, a week of silence, and stamps
that are wrong, cut, or come in batches. The truth (when an entry really appeared) is kept
beside what its stamp says.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from models.synthetic import (
    CELL_S,
    DAY_S,
    HOUR_S,
    MONDAY_S,
    WEEK_S,
    MadeUpSource,
    make_set,
    make_stamps,
)
from models.traces import FloatArray, Stream, Trace


@dataclass(frozen=True, slots=True)
class Event:
    """Something that happens to all sources of a trace at once.

    Attributes
    ----------
    name
        One of `EVENTS`.
    trace
        Its part that tests begins two weeks before the event.
    event_s
        When it happens.
    windows
        Stretches to look at, by name.
    down_s
        Rows ``(from, to)`` in which polls fail, None where they do not.
    """

    name: str
    trace: Trace
    event_s: float
    windows: dict[str, tuple[float, float]]
    down_s: FloatArray | None = None


BEFORE_WEEKS, CALM_WEEKS, AFTER_WEEKS = 26, 2, 5
"""Weeks that train, that are tested before the event, and that follow it."""


def make_event(name: str, seed: int, n_sources: int = 20) -> Event:
    """Return twenty bursty sources to which an event happens.

    Parameters
    ----------
    name
        One of `EVENTS`.
    seed
        Of the sources; the same ones for every event.
    """
    rng = np.random.default_rng([seed, 7])
    sources = make_set("H", seed, n_sources, BEFORE_WEEKS + CALM_WEEKS + AFTER_WEEKS)
    split_s = MONDAY_S + BEFORE_WEEKS * WEEK_S
    event_s = split_s + CALM_WEEKS * WEEK_S
    happening = EVENTS[name]
    streams = tuple(happening.change(source, event_s, rng, seed) for source in sources)
    windows = {
        label: (event_s + since_h * HOUR_S, event_s + until_h * HOUR_S)
        for label, (since_h, until_h) in happening.windows_h.items()
    }
    down_s = None
    if happening.down_h:
        down_s = np.array([[event_s, event_s + happening.down_h * HOUR_S]])
    end_s = event_s + AFTER_WEEKS * WEEK_S
    return Event(name, Trace(streams, MONDAY_S, split_s, end_s), event_s, windows, down_s)


@dataclass(frozen=True, slots=True)
class Happening:
    """What an event does to one source, and where to look, in hours from it on."""

    change: Callable[[MadeUpSource, float, np.random.Generator, int], Stream]
    windows_h: dict[str, tuple[float, float]]
    down_h: float = 0.0


def _rewritten(
    source: MadeUpSource, event_s: float, seed: int, change: Callable[[FloatArray], FloatArray]
) -> Stream:
    """Return a source whose intensity is another from the event on, and its past the same."""
    first = int((event_s - MONDAY_S) // CELL_S)
    rng = np.random.default_rng([seed, *source.source.encode()])
    later = make_stamps(change(source.per_s[first:]), rng, source.branching, source.decay_s)
    before = source.stamps_s[source.stamps_s < event_s]
    return Stream(source.source, np.concatenate((before, later - MONDAY_S + event_s)))


def _calm(source: MadeUpSource, *_: object) -> Stream:
    return Stream(source.source, source.stamps_s)


def _double(source: MadeUpSource, event_s: float, _: object, seed: int) -> Stream:
    return _rewritten(source, event_s, seed, lambda per_s: 2.0 * per_s)


def _take_holiday(source: MadeUpSource, event_s: float, _: object, seed: int) -> Stream:
    def change(per_s: FloatArray) -> FloatArray:
        share = np.ones(len(per_s))
        share[: 5 * 288] = 0.3
        return np.asarray(per_s * share, dtype=np.float64)

    return _rewritten(source, event_s, seed, change)


def _shift_clock(source: MadeUpSource, event_s: float, _: object, seed: int) -> Stream:
    """Move all habits by an hour, in a zone that nobody has told us."""
    return _rewritten(source, event_s, seed, lambda per_s: np.roll(per_s, -12))


def _break_down(source: MadeUpSource, event_s: float, *_: object) -> Stream:
    """Hold back half a day of entries: they show when the source comes back."""
    back_s, stamps = event_s + 12 * HOUR_S, source.stamps_s
    is_held = (stamps >= event_s) & (stamps < back_s)
    return Stream(source.source, stamps, appear_s=np.where(is_held, back_s, stamps))


def _fall_silent(source: MadeUpSource, event_s: float, *_: object) -> Stream:
    stamps = source.stamps_s
    return Stream(source.source, stamps[(stamps < event_s) | (stamps >= event_s + WEEK_S)])


def _stamp_wrongly(source: MadeUpSource, _: float, rng: np.random.Generator, __: object) -> Stream:
    """Write wrong stamps at three sources in five: hours ahead, hours behind, or days alone."""
    stamps = source.stamps_s
    fault = int(rng.integers(5))
    wrong = (stamps + 3 * HOUR_S, stamps - 3 * HOUR_S, stamps // DAY_S * DAY_S, stamps, stamps)
    return Stream(source.source, wrong[fault], appear_s=stamps)


def _publish_in_batches(source: MadeUpSource, *_: object) -> Stream:
    return Stream(source.source, np.ceil(source.stamps_s / 900.0) * 900.0)


def _cut_stamps(source: MadeUpSource, *_: object) -> Stream:
    stamps = source.stamps_s
    return Stream(source.source, stamps // HOUR_S * HOUR_S, appear_s=stamps)


WEEK_AFTER = {"week 1": (0.0, 168.0)}
WEEKS_AFTER = {"three weeks": (0.0, 504.0)}

EVENTS = {
    "nothing": Happening(_calm, WEEK_AFTER | WEEKS_AFTER),
    "rates double": Happening(_double, {"day 1": (0.0, 24.0), "weeks 3-4": (336.0, 672.0)}),
    "holiday": Happening(_take_holiday, {"Monday to Friday": (0.0, 120.0)}),
    "clock change": Happening(_shift_clock, WEEK_AFTER),
    "outage": Happening(
        _break_down, {"backlog": (12.0, 12.001), "12 h after": (12.001, 24.0)}, down_h=12.0
    ),
    "silence": Happening(
        _fall_silent, {"silent week": (0.0, 168.0), "2 days back": (168.0, 216.0)}
    ),
    "wrong stamps": Happening(_stamp_wrongly, WEEKS_AFTER),
    "batches": Happening(_publish_in_batches, WEEKS_AFTER),
    "hour-cut stamps": Happening(_cut_stamps, WEEKS_AFTER),
}
"""Events by name: what a policy must live through."""
