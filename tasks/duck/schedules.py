"""Rows of ``schedule`` and ``sources``: what comes next for whom."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import astuple, replace
from datetime import datetime
from typing import Any

import duckdb

from models.first_poll import choose_first_poll
from models.records import Conduct, PollResult, Schedule, Source, Validators
from tasks.duck.rows import Row, insert_rows, marks, storable, utc_row

LEFT_CATALOGUE = "no longer in the catalogue"

_COLUMNS = (
    "source, due_at, reason, state, cycle, consecutive_failures, etag, last_modified, "
    "validators_url, host_not_before, lease_until, body_sha256, last_success_at, "
    "body_at, n_not_modified, n_expected, distrusted_at, moved_to, moved_since, n_moved, "
    "address, address_of, n_gone"
)


def read_schedules(connection: duckdb.DuckDBPyConnection) -> list[Schedule]:
    """Return the schedule of every source, the next due first."""
    rows = connection.execute(f"SELECT {_COLUMNS} FROM schedule ORDER BY due_at, source")  # noqa: S608
    return [_schedule(row) for row in rows.fetchall()]


def read_schedule(connection: duckdb.DuckDBPyConnection, source: str) -> Schedule | None:
    """Return the schedule of one source, None where it has none."""
    rows = connection.execute(f"SELECT {_COLUMNS} FROM schedule WHERE source = ?", [source])  # noqa: S608
    found = [_schedule(row) for row in rows.fetchall()]
    return found[0] if found else None


def write_schedule(connection: duckdb.DuckDBPyConnection, schedule: Schedule) -> None:
    """Write the schedule of a source, new or known."""
    _, *values = _row(schedule)
    names = _COLUMNS.split(", ")[1:]
    updated = connection.execute(
        f"UPDATE schedule SET {', '.join(f'{name} = ?' for name in names)} WHERE source = ?",  # noqa: S608
        storable([*values, schedule.source]),
    ).fetchall()
    if updated == [(0,)]:
        insert_rows(connection, "schedule", [_row(schedule)])


def write_lease(
    connection: duckdb.DuckDBPyConnection, source: str, lease_until: datetime | None
) -> None:
    """Write until when a poll of the source is under way."""
    connection.execute(
        "UPDATE schedule SET lease_until = ? WHERE source = ?", [lease_until, source]
    )


def store_outcome(connection: duckdb.DuckDBPyConnection, result: PollResult) -> None:
    """Write the schedule that a poll leaves behind.

    If the cycle has moved on meanwhile (the source was paused in the middle of its
    poll), due time, state and cycle stay as they are now; what the poll learnt of the
    source is kept all the same.
    """
    before = read_schedule(connection, result.poll.source)
    after = result.schedule
    if before is not None and before.cycle != result.poll.cycle:
        after = replace(
            after,
            cycle=before.cycle,
            due_at=before.due_at,
            state=before.state,
            reason=before.reason,
            lease_until=before.lease_until,
        )
    write_schedule(connection, after)


def sync_sources(
    connection: duckdb.DuckDBPyConnection,
    sources: Sequence[Source],
    now: datetime,
    is_complete: bool = True,
) -> None:
    """Bring ``sources`` and ``schedule`` up to the catalogue; nobody leaves an incomplete one."""
    _sync_source_rows(connection, sources, now, is_complete)
    schedules = {row.source: row for row in read_schedules(connection)}
    new = [source for source in sources if source.source not in schedules]
    insert_rows(connection, "schedule", [_row(_first(source, len(new), now)) for source in new])
    listed = {source.source for source in sources}
    for schedule in schedules.values():
        is_listed = schedule.source in listed
        if not is_listed and not is_complete:
            continue
        changed = _turn(schedule, is_listed, now)
        if changed != schedule:
            write_schedule(connection, changed)


def _first(source: Source, n_new: int, now: datetime) -> Schedule:
    due_at = choose_first_poll(source.source, n_new, source.poll.interval_s, now)
    return Schedule(source.source, due_at, "first poll of a new source")


def _turn(schedule: Schedule, is_listed: bool, now: datetime) -> Schedule:
    """Return the schedule of a source that left the catalogue, or came back to it."""
    if not is_listed and schedule.reason != LEFT_CATALOGUE:
        return replace(schedule, state="paused", reason=LEFT_CATALOGUE, cycle=schedule.cycle + 1)
    if is_listed and schedule.reason == LEFT_CATALOGUE:
        return replace(
            schedule,
            state="active",
            reason="back in the catalogue",
            due_at=max(schedule.due_at, now),
        )
    return schedule


def _sync_source_rows(
    connection: duckdb.DuckDBPyConnection,
    sources: Sequence[Source],
    now: datetime,
    is_complete: bool,
) -> None:
    """Write rows of ``sources`` that are new or differ; those not listed stay, unlisted."""
    wanted = {source.source: _source_row(source) for source in sources}
    stored = connection.execute("SELECT * EXCLUDE (read_at) FROM sources").fetchall()
    known = {row[0]: row for row in stored}
    changed = [[*row, now] for key, row in wanted.items() if known.get(key) != row]
    if is_complete:
        changed += [
            [*row[:-1], False, now] for key, row in known.items() if key not in wanted and row[-1]
        ]
    if not changed:
        return
    connection.execute(
        f"DELETE FROM sources WHERE source IN ({marks(len(changed))})",  # noqa: S608
        [row[0] for row in changed],
    )
    insert_rows(connection, "sources", changed)


def _source_row(source: Source) -> tuple[Any, ...]:
    return (
        source.source,
        source.title,
        source.url,
        source.kind,
        source.language,
        source.timezone,
        source.country,
        list(source.tags),
        source.weight,
        source.reach,
        source.poll.policy,
        source.poll.interval_s,
        True,
    )


def _row(schedule: Schedule) -> Row:
    return (
        schedule.source,
        schedule.due_at,
        schedule.reason,
        schedule.state,
        schedule.cycle,
        schedule.consecutive_failures,
        schedule.validators.etag,
        schedule.validators.last_modified,
        schedule.validators.url,
        schedule.host_not_before,
        schedule.lease_until,
        schedule.body_sha256,
        schedule.last_success_at,
        *astuple(schedule.conduct),
    )


def _schedule(row: Row) -> Schedule:
    (
        source, due_at, reason, state, cycle, failures, etag, last_modified, validators_url,
        host_not_before, lease_until, body_sha256, last_success_at, *conduct,
    ) = utc_row(row)  # fmt: skip
    return Schedule(
        source=source,
        due_at=due_at,
        reason=reason,
        state=state,
        cycle=cycle,
        consecutive_failures=failures,
        validators=Validators(etag, last_modified, validators_url),
        host_not_before=host_not_before,
        lease_until=lease_until,
        body_sha256=body_sha256,
        last_success_at=last_success_at,
        conduct=Conduct(*conduct),
    )
