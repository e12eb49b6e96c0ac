"""Compare what should come next with what Prefect has, and say what to mend.

The warehouse's ``schedule`` is the truth; Prefect's runs are its image. They part when
a process is killed, a run is cancelled by hand, a server loses its database, or a
deployment is paused. Everything here is computed from records; nothing is carried out.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from types import MappingProxyType
from typing import Literal

from models.records import Schedule

RunState = Literal["scheduled", "pending", "running", "other"]


@dataclass(frozen=True, slots=True)
class OpenRun:
    """A flow run of Prefect's that has not ended.

    Attributes
    ----------
    run_id
        Prefect's id.
    cycle
        The poll it is for; None for a run people started by hand.
    due_at
        When it is due, on the product's clock.
    is_ours
        Whether it runs inside this process right now.
    """

    run_id: str
    source: str
    cycle: int | None
    state: RunState
    due_at: datetime
    is_ours: bool = False


@dataclass(frozen=True, slots=True)
class CreateRun:
    """Create the run for the source's current cycle, due at `due_at`."""

    source: str
    due_at: datetime


@dataclass(frozen=True, slots=True)
class EndRun:
    """Put a run into a final state: ``cancelled``, or ``crashed`` for one that died."""

    run_id: str
    source: str
    state: Literal["cancelled", "crashed"]
    reason: str


@dataclass(frozen=True, slots=True)
class Pause:
    """Note in the schedule that people paused the source."""

    source: str


@dataclass(frozen=True, slots=True)
class Resume:
    """Note that people resumed the source; it is polled at once."""

    source: str


@dataclass(frozen=True, slots=True)
class Hasten:
    """Note that the source's due time is absurd; it is polled at once."""

    source: str


Action = CreateRun | EndRun | Pause | Resume | Hasten

LONGEST_WAIT = timedelta(days=8)
"""No wait of ours is longer, unless the catalogue says so: a server may ask for a week. What
is due later was set by a clock that was wrong."""

PAUSED_IN_PREFECT = "paused in Prefect"
"""Reason of a schedule that waits for its deployment to be resumed. A source paused for
another reason (taken out of the catalogue) is not resumed by Prefect's word."""


def reconcile_runs(
    schedules: Iterable[Schedule],
    runs: Sequence[OpenRun],
    paused: frozenset[str],
    now: datetime,
    longest_waits: Mapping[str, timedelta] = MappingProxyType({}),
) -> list[Action]:
    """Return what to do so that each active source has exactly one next run.

    Parameters
    ----------
    schedules
        Every source's schedule.
    runs
        Prefect's runs that have not ended.
    paused
        Sources whose deployment is paused in Prefect.
    now
        The present, on the product's clock.
    longest_waits
        The longest wait a source's own rules allow, where that is more than
        `LONGEST_WAIT`.

    Returns
    -------
    list of Action
        Runs to end come before runs to create. Applied, a second call returns nothing.

    Examples
    --------
    >>> from datetime import UTC
    >>> noon = datetime(2026, 1, 1, 12, tzinfo=UTC)
    >>> actions = reconcile_runs([Schedule("a", due_at=noon, reason="")], [], frozenset(), noon)
    >>> actions == [CreateRun("a", due_at=noon)]
    True
    """
    by_source: dict[str, list[OpenRun]] = {}
    for run in runs:
        by_source.setdefault(run.source, []).append(run)
    known = {schedule.source: schedule for schedule in schedules}
    actions: list[Action] = []
    for source, orphans in by_source.items():
        if source not in known:
            actions += [_cancel(run, "no such source") for run in orphans if not run.is_ours]
    for source, schedule in known.items():
        longest = max(longest_waits.get(source, LONGEST_WAIT), LONGEST_WAIT)
        source_runs, is_paused = by_source.get(source, []), source in paused
        actions += _reconcile_source(schedule, source_runs, is_paused, now, longest)
    return sorted(actions, key=_order)


def _reconcile_source(
    schedule: Schedule,
    runs: Sequence[OpenRun],
    is_paused: bool,
    now: datetime,
    longest: timedelta,
) -> list[Action]:
    waiting = [run for run in runs if run.state == "scheduled" and not run.is_ours]
    if is_paused or (schedule.state == "paused" and schedule.reason != PAUSED_IN_PREFECT):
        ends = [_cancel(run, "the source is paused") for run in waiting]
        # Noted last: each ended run burns its key, and the pause moves the cycle on.
        if is_paused and schedule.state != "paused":
            return [*ends, Pause(schedule.source)]
        return list(ends)
    if schedule.state == "paused":
        return [Resume(schedule.source)]
    if schedule.due_at - now > longest:
        ends = [_cancel(run, "its time lies too far ahead: a clock was wrong") for run in waiting]
        return [*ends, Hasten(schedule.source)]
    actions: list[Action] = []
    busy = False
    for run in runs:
        if run.state in ("running", "pending") or run.is_ours:
            if run.is_ours or not _is_dead(schedule, now):
                busy = True
            else:
                actions.append(
                    EndRun(run.run_id, run.source, "crashed", "its worker is gone: lease ran out")
                )
    current = [run for run in waiting if run.cycle == schedule.cycle]
    actions += [
        _cancel(run, f"overtaken: cycle {run.cycle} is over")
        for run in waiting
        if run.cycle is not None and run.cycle != schedule.cycle and not busy
    ]
    current.sort(key=lambda run: (run.due_at, run.run_id))
    actions += [_cancel(run, "twice: another run has this cycle") for run in current[1:]]
    if not current and not busy:
        actions.append(CreateRun(schedule.source, max(schedule.due_at, now)))
    return actions


def _is_dead(schedule: Schedule, now: datetime) -> bool:
    return schedule.lease_until is None or schedule.lease_until < now


def _cancel(run: OpenRun, reason: str) -> EndRun:
    return EndRun(run.run_id, run.source, "cancelled", reason)


def _order(action: Action) -> int:
    return {EndRun: 0, Pause: 1, Resume: 1, Hasten: 1, CreateRun: 2}[type(action)]


def cycle_of(parameters: Mapping[str, object]) -> int | None:
    """Return the cycle a run's parameters name, None for a run started by hand.

    Examples
    --------
    >>> cycle_of({"source": "a", "cycle": 7}), cycle_of({"source": "a"})
    (7, None)
    """
    cycle = parameters.get("cycle")
    return cycle if isinstance(cycle, int) else None
