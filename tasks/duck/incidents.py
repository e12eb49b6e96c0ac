"""Rows of ``incidents``: what stands until it is mended, each raised once."""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence
from datetime import datetime
from typing import Any

import duckdb

from models.records import Incident, PollResult
from models.triage.ladder import Notice
from tasks.duck.hits import digest
from tasks.duck.notices import close_story, tell_all
from tasks.duck.rows import insert_rows, utc_row
from tasks.settings import Settings

TOLD = frozenset({"outage", "host"})
"""What people are told of here; a source that fails or is gone is told of with its poll."""

Query = Callable[[str], Sequence[Sequence[Any]]]


def store_incidents(
    connection: duckdb.DuckDBPyConnection, result: PollResult, settings: Settings
) -> None:
    """Write the incidents that a poll showed to have begun, and end those that are over."""
    now = result.poll.finished_at
    for kind, subject in result.ended:
        _end(connection, kind, subject, now)
    for incident in result.begun:
        _begin(connection, incident, settings)


def _begin(connection: duckdb.DuckDBPyConnection, incident: Incident, settings: Settings) -> None:
    if _find(connection, incident.kind, incident.subject):
        return
    incident_id = digest("incident", incident.kind, incident.subject, incident.begun_at)
    evidence = json.dumps(incident.evidence, ensure_ascii=False, sort_keys=True)
    row = (
        incident_id,
        incident.kind,
        incident.subject,
        incident.begun_at,
        None,
        incident.reason,
        evidence,
    )
    insert_rows(connection, "incidents", [row])
    if incident.kind in TOLD:
        draft = Notice(
            notice_id="",
            kind=incident.kind,
            subject=incident.reason,
            source=None,
            level=settings.alerts.failing_level,
            channel="",
            text=_words(incident),
            raised_at=incident.begun_at,
            story_id=incident_id,
        )
        tell_all(connection, draft, (), settings)


def _words(incident: Incident) -> str:
    """Return what an incident was concluded from, as people read it."""
    polls = incident.evidence.get("polls", ())
    return "\n".join(
        f"{poll['source']}, {poll['at'][:16].replace('T', ' ')} UTC: {poll['reason']}"
        for poll in polls
    )


def _end(connection: duckdb.DuckDBPyConnection, kind: str, subject: str, now: datetime) -> None:
    for incident_id in _find(connection, kind, subject):
        connection.execute(
            "UPDATE incidents SET ended_at = ? WHERE incident_id = ?", [now, incident_id]
        )
        close_story(connection, incident_id, now)


def _find(connection: duckdb.DuckDBPyConnection, kind: str, subject: str) -> list[str]:
    rows = connection.execute(
        "SELECT incident_id FROM incidents WHERE kind = ? AND subject = ? AND ended_at IS NULL",
        [kind, subject],
    ).fetchall()
    return [key for (key,) in rows]


def read_standing(query: Query) -> list[Incident]:
    """Return the incidents that stand, the oldest first."""
    rows = query(
        "SELECT kind, subject, begun_at, reason, evidence FROM incidents "
        "WHERE ended_at IS NULL ORDER BY begun_at, kind, subject"
    )
    return [
        Incident(kind, subject, begun_at, reason, json.loads(evidence))
        for kind, subject, begun_at, reason, evidence in map(utc_row, rows)
    ]
