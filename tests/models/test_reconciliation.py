from dataclasses import replace
from datetime import UTC, datetime, timedelta

import pytest
from hypothesis import given
from hypothesis import strategies as st

from models.reconciliation import (
    PAUSED_IN_PREFECT,
    CreateRun,
    EndRun,
    Hasten,
    OpenRun,
    Pause,
    Resume,
    reconcile_runs,
)
from models.records import Schedule

NOON = datetime(2026, 3, 1, 12, tzinfo=UTC)
LATER = NOON + timedelta(minutes=10)
DUE = Schedule("a", due_at=LATER, reason="every 10 min", cycle=7)
WAITING = OpenRun("run-7", "a", cycle=7, state="scheduled", due_at=LATER)
RUNNING = OpenRun("run-7", "a", cycle=7, state="running", due_at=NOON)

YEARS_AHEAD = replace(DUE, due_at=NOON + timedelta(days=1000))

CASES = {
    "a source due absurdly far ahead is polled now": (
        YEARS_AHEAD,
        [replace(WAITING, due_at=YEARS_AHEAD.due_at)],
        False,
        [
            EndRun("run-7", "a", "cancelled", "its time lies too far ahead: a clock was wrong"),
            Hasten("a"),
        ],
    ),
    "a source with its next run is left alone": (DUE, [WAITING], False, []),
    "a source without a run gets one at its due time": (DUE, [], False, [CreateRun("a", LATER)]),
    "an overdue source gets one run, now": (
        replace(DUE, due_at=NOON - timedelta(hours=5)),
        [],
        False,
        [CreateRun("a", NOON)],
    ),
    "a second run of the same cycle is cancelled": (
        DUE,
        [WAITING, replace(WAITING, run_id="run-8")],
        False,
        [EndRun("run-8", "a", "cancelled", "twice: another run has this cycle")],
    ),
    "a run of an earlier cycle is cancelled and the current one made": (
        DUE,
        [replace(WAITING, cycle=6)],
        False,
        [
            EndRun("run-7", "a", "cancelled", "overtaken: cycle 6 is over"),
            CreateRun("a", LATER),
        ],
    ),
    "a run under way here is left alone": (DUE, [replace(RUNNING, is_ours=True)], False, []),
    "a run whose lease still holds is left alone": (
        replace(DUE, lease_until=LATER),
        [RUNNING],
        False,
        [],
    ),
    "a run whose worker is gone has crashed, and the source goes on": (
        replace(DUE, lease_until=NOON - timedelta(minutes=1)),
        [RUNNING],
        False,
        [
            EndRun("run-7", "a", "crashed", "its worker is gone: lease ran out"),
            CreateRun("a", LATER),
        ],
    ),
    "a run started by hand does not stand for the next one": (
        DUE,
        [replace(WAITING, cycle=None)],
        False,
        [CreateRun("a", LATER)],
    ),
    "pausing in Prefect cancels what waits": (
        DUE,
        [WAITING],
        True,
        [EndRun("run-7", "a", "cancelled", "the source is paused"), Pause("a")],
    ),
    "a paused source stays as it is": (
        replace(DUE, state="paused", reason=PAUSED_IN_PREFECT),
        [],
        True,
        [],
    ),
    "resuming in Prefect polls at once": (
        replace(DUE, state="paused", reason=PAUSED_IN_PREFECT),
        [],
        False,
        [Resume("a")],
    ),
    "a source taken out of the catalogue is not resumed by Prefect": (
        replace(DUE, state="paused", reason="no longer in the catalogue"),
        [WAITING],
        False,
        [EndRun("run-7", "a", "cancelled", "the source is paused")],
    ),
    "a run of an unknown source is cancelled": (
        DUE,
        [WAITING, replace(WAITING, source="b", run_id="run-b")],
        False,
        [EndRun("run-b", "b", "cancelled", "no such source")],
    ),
}


@pytest.mark.parametrize(
    ("schedule", "runs", "is_paused", "expected"), CASES.values(), ids=CASES.keys()
)
def test_each_difference_is_mended(schedule, runs, is_paused, expected):
    paused = frozenset({"a"}) if is_paused else frozenset()
    assert reconcile_runs([schedule], runs, paused, NOON) == expected


@given(
    cycles=st.lists(st.integers(5, 8) | st.none(), max_size=5),
    state=st.sampled_from(["active", "failing", "drifted", "paused"]),
    is_paused=st.booleans(),
    lease_min=st.integers(-20, 20) | st.none(),
)
def test_mending_once_is_enough(cycles, state, is_paused, lease_min):
    lease = None if lease_min is None else NOON + timedelta(minutes=lease_min)
    schedule = replace(DUE, state=state, reason=PAUSED_IN_PREFECT, lease_until=lease)
    runs = [replace(WAITING, run_id=f"run-{i}", cycle=cycle) for i, cycle in enumerate(cycles)]
    paused = frozenset({"a"}) if is_paused else frozenset()
    actions = reconcile_runs([schedule], runs, paused, NOON)

    ended = {action.run_id for action in actions if isinstance(action, EndRun)}
    left = [run for run in runs if run.run_id not in ended]
    for action in actions:
        match action:
            case CreateRun(_, due_at):
                left.append(replace(WAITING, run_id="made", due_at=due_at))
            case Pause():
                schedule = replace(schedule, state="paused", cycle=schedule.cycle + 1)
            case Resume():
                schedule = replace(schedule, state="active", due_at=NOON)
                left = [run for run in left if run.cycle is None]
                left.append(replace(WAITING, run_id="resumed", due_at=NOON))

    assert reconcile_runs([schedule], left, paused, NOON) == []
    if schedule.state != "paused":
        assert sum(run.cycle == schedule.cycle for run in left) == 1
