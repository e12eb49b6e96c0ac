"""What a poll shows of a server's conduct, and whom its failure is put down to."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from datetime import datetime

from flows.collector import Collector
from flows.findings import Findings
from flows.incidents import Upshot, domain_of
from models.conduct import (
    GONE_POLLS,
    TRUST_AGAIN,
    adopt_move,
    find_constant,
    forget_move,
    note_place,
    why_forget_move,
)
from models.first_poll import SECONDS_PER_SOURCE
from models.incidents import Ending, next_hold_s
from models.records import Incident, IncidentKind, State, Validators

LONGEST_STAGGER_S = 3600.0
"""Over no longer than this do the sources of a domain come back after it was left alone."""

FAILING_AFTER = 3
"""Failures in a row after which a source is called failing: one bad answer is weather."""


def heed_time(collector: Collector, findings: Findings, now: datetime) -> None:
    """Let go of what no longer holds: an adopted address, and distrust that has lasted."""
    name, conduct = findings.source.source, findings.conduct
    n_failures = findings.schedule.consecutive_failures
    if why_forget_move(conduct, findings.source.url, n_failures):
        conduct = forget_move(conduct)
        _end(collector, findings, ("moved", name))
    since = conduct.distrusted_at
    if since is not None and now - since >= TRUST_AGAIN:
        conduct = replace(conduct, distrusted_at=None)
        _end(collector, findings, ("validators", name))
    findings.conduct = conduct


def note_conduct(collector: Collector, findings: Findings, now: datetime) -> None:
    """Remember what the poll showed of the server: lies, a move, that it is gone."""
    name, conduct = findings.source.source, findings.conduct
    if findings.http_status is not None:
        is_gone = findings.outcome == "failed" and findings.http_status == 410
        conduct = replace(conduct, n_gone=conduct.n_gone + 1 if is_gone else 0)
    if not findings.is_failure:
        conduct = note_place(conduct, findings.hops, findings.overlap, now)
        moved = adopt_move(conduct, findings.source.url, now)
        if moved is not None:
            evidence = {"since": conduct.moved_since, "polls": conduct.n_moved}
            where = f"{findings.address} redirects for good to {moved.address}, polled from now on"
            _begin(collector, findings, Incident("moved", name, now, where, _plain(evidence)))
            conduct = moved
        lie = _find_lie(findings)
        if lie and conduct.distrusted_at is None:
            conduct = replace(conduct, distrusted_at=now)
            proof = {"etag": findings.schedule.validators.etag, "entries": _urls(findings)}
            _begin(collector, findings, Incident("validators", name, now, lie, _plain(proof)))
        if conduct.distrusted_at is not None:
            findings.validators = Validators()
    findings.conduct = conduct


def _plain(evidence: Mapping[str, object]) -> dict[str, object]:
    """Return evidence as JSON takes it."""
    return {
        key: value.isoformat() if isinstance(value, datetime) else value
        for key, value in evidence.items()
    }


def _urls(findings: Findings) -> list[str]:
    return [item.entry.url for item in findings.entries[:5]]


def _find_lie(findings: Findings) -> str:
    """Return how the source's validators lied in this poll; empty where they did not.

    Only entries we had not seen prove it: a list may differ in its own date alone.
    """
    n_new = len(findings.entries)
    if not n_new or findings.schedule.last_success_at is None:
        return ""
    if findings.doubt:
        return f"{findings.doubt}; asked without conditions, it lists {n_new} new ones"
    same = find_constant(findings.schedule.validators, findings.validators)
    return f"{same} though it lists {n_new} new entries" if same else ""


def count_failures(collector: Collector, findings: Findings, now: datetime) -> int:
    """Return the source's failures in a row; what is its host's fault, or ours, is not one."""
    before, source = findings.schedule.consecutive_failures, findings.source
    upshot = _note_ending(collector, findings, now)
    if not findings.is_failure:
        return 0
    if upshot.blamed is not None and upshot.blamed.kind == "host":
        n_before = collector.incidents.count_hold(upshot.blamed)
        collector.fetcher.hold(findings.address, next_hold_s(n_before), upshot.blamed.reason)
    hold = collector.fetcher.held(findings.address)
    if hold is not None:
        left_s = (hold.until - now).total_seconds()
        findings.retry_after_s = max(findings.retry_after_s or 1.0, left_s)
        if upshot.blamed is None and not findings.is_held:
            domain = domain_of(findings.address)
            words = f"{domain} is left alone until {hold.until:%H:%M} UTC: {hold.reason}"
            evidence = _plain({"source": source.source, "until": hold.until})
            _begin(collector, findings, Incident("held", domain, now, words, evidence))
    is_excused = findings.is_held or hold is not None or upshot.blamed is not None
    return before if is_excused else before + 1


def _note_ending(collector: Collector, findings: Findings, now: datetime) -> Upshot:
    """Tell the incidents how the poll ended, where it says anything of host or line."""
    is_well = not findings.is_failure
    # A channel that shows nothing on the web is no sign of a host that is down.
    says_nothing = findings.is_held or findings.is_unlisted
    if says_nothing or not (is_well or findings.http_status or findings.is_silent):
        return Upshot()
    upshot = collector.incidents.note(
        Ending(
            source=findings.source.source,
            domain=domain_of(findings.address),
            at=now,
            has_answered=is_well or findings.http_status is not None,
            is_well=is_well,
            was_well=findings.schedule.consecutive_failures == 0,
            reason=findings.reason,
        )
    )
    findings.begun += upshot.begun
    findings.ended += upshot.ended
    return upshot


def note_standing(
    collector: Collector, findings: Findings, state: State, failures: int, now: datetime
) -> None:
    """Note that the source by itself fails, or is gone, or is well."""
    name, gone = findings.source.source, findings.conduct.n_gone
    if not findings.is_failure:
        _end(collector, findings, ("failing", name), ("gone", name))
    elif state == "gone":
        words = f"answered 410 Gone {gone} times in a row" if gone else findings.reason
        proof = {"polls": gone or failures}
        _begin(collector, findings, Incident("gone", name, now, words, proof))
    elif state == "failing":
        words = f"could not be read {failures} times in a row: {findings.reason}"
        _begin(collector, findings, Incident("failing", name, now, words, {"polls": failures}))


def stagger_s(collector: Collector, findings: Findings) -> float:
    """Return over how long the sources of this domain come back after it was left alone."""
    if not findings.retry_after_s:
        return 0.0
    gap_s = max(collector.settings.fetch.host_gap_s, SECONDS_PER_SOURCE)
    n = collector.incidents.n_neighbours(findings.source)
    return min((n - 1) * gap_s, LONGEST_STAGGER_S)


def _begin(collector: Collector, findings: Findings, incident: Incident) -> None:
    findings.begun += collector.incidents.begin([incident])


def _end(collector: Collector, findings: Findings, *keys: tuple[IncidentKind, str]) -> None:
    findings.ended += collector.incidents.end(keys)


def state_of(findings: Findings, failures: int) -> State:
    """Return the state a source is left in."""
    if findings.conduct.n_gone >= GONE_POLLS:
        return "gone"
    if failures >= FAILING_AFTER:
        return "gone" if findings.is_unlisted else "failing"
    return "drifted" if findings.has_drifted else "active"
