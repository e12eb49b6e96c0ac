"""From a policy's wish to the decision: floor, ceiling, failures, manners, jitter.

Every policy shares this last step, and the whole step is a pure function of the
moment, the rules and the policy, so that a stored decision replays bit for bit.
"""

from __future__ import annotations

import hashlib
from dataclasses import asdict
from datetime import UTC, datetime
from typing import Any

from models.errors import ConfigError
from models.polling.fixed import FixedPolicy, spell_duration
from models.polling.moment import Moment, Policy
from models.records import Decision, PollRules

BACKOFF_FACTOR = 2.0
"""Each further failure doubles the wait: a dead host costs little, and a source that
comes back after a short outage is found soon."""

BACKOFF_CEILING_S = 86_400.0
"""A source is never given up: feeds come back after months. One look a day is the least."""

JITTER_SHARE = 0.05
"""Largest part of a wait added at random, so that sources do not march in step."""

POLICIES = ("fixed",)


def choose_next_poll(moment: Moment, rules: PollRules, policy: Policy | None = None) -> Decision:
    """Return when a source is polled next, and why.

    Parameters
    ----------
    moment
        How the last poll went.
    rules
        The source's floor, ceiling and interval.
    policy
        Who wishes; made from `rules` where None.

    Returns
    -------
    Decision
        Due strictly after ``moment.now_s``. ``inputs`` holds moment and rules;
        `replay_decision` turns them into the same decision.

    Examples
    --------
    >>> choose_next_poll(Moment("a", now_s=61.0, due_s=60.0), PollRules(interval_s=600.0)).reason
    'next in 10 min: every 10 min'

    A failure waits longer, and says so:

    >>> failed = Moment("a", now_s=60.0, due_s=60.0, outcome="failed", consecutive_failures=3)
    >>> choose_next_poll(failed, PollRules(interval_s=600.0)).reason
    'next in 41 min: every 10 min; held back after 3 failures in a row'
    """
    policy = policy or make_policy(rules)
    wish = policy.choose_next(moment)
    wait_s = wish.due_s - moment.now_s
    notes: list[str] = []
    if moment.consecutive_failures > 1:
        wait_s = max(wait_s, _backoff_s(moment, rules))
        notes.append(f"held back after {moment.consecutive_failures} failures in a row")
    wait_s = _clamp(wait_s, rules, moment, notes)
    if moment.retry_after_s and moment.retry_after_s > wait_s:
        wait_s = moment.retry_after_s
        notes.append(f"the server asked to wait {spell_duration(moment.retry_after_s)}")
    # "fixed" keeps its beat: jitter there would drift from the interval people set.
    if policy.name != "fixed" or moment.consecutive_failures > 1:
        wait_s *= 1.0 + JITTER_SHARE * _fraction(moment)
    due_s = moment.now_s + wait_s
    clauses = "; ".join([wish.reason, *notes])
    return Decision(
        due_at=datetime.fromtimestamp(due_s, UTC),
        reason=f"next in {spell_duration(wait_s)}: {clauses}",
        policy=policy.name,
        inputs={"moment": moment.as_inputs(), "rules": asdict(rules)},
    )


def replay_decision(inputs: dict[str, Any]) -> Decision:
    """Return the decision made from stored `inputs`, the same bit for bit."""
    return choose_next_poll(Moment(**inputs["moment"]), PollRules(**inputs["rules"]))


def make_policy(rules: PollRules) -> Policy:
    """Return the policy that `rules` name.

    Raises
    ------
    ConfigError
        If there is no such policy.
    """
    if rules.policy == "fixed":
        return FixedPolicy(rules.interval_s)
    raise ConfigError("catalogue", "poll.policy", rules.policy, f"one of {', '.join(POLICIES)}")


def _clamp(wait_s: float, rules: PollRules, moment: Moment, notes: list[str]) -> float:
    ceiling_s = max(rules.max_interval_s, _backoff_s(moment, rules))
    if wait_s > ceiling_s:
        notes.append(f"not later than {spell_duration(ceiling_s)}")
        return ceiling_s
    return max(wait_s, rules.min_interval_s)


def _backoff_s(moment: Moment, rules: PollRules) -> float:
    if moment.consecutive_failures < 2:
        return 0.0
    doublings = min(moment.consecutive_failures - 1, 30)
    return min(rules.interval_s * BACKOFF_FACTOR**doublings, BACKOFF_CEILING_S)


def _fraction(moment: Moment) -> float:
    """Return a number in [0, 1) that is the same for the same source and cycle."""
    digest = hashlib.sha256(f"{moment.source}#{moment.cycle}".encode()).digest()
    return int.from_bytes(digest[:8], "big") / 2**64
