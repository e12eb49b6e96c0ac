"""From a policy's wish to the decision: floor, ceiling, failures, manners, jitter.

Every policy shares this last step, and the whole step is a pure function of the
moment, the rules and the policy, so that a stored decision replays bit for bit.
"""

from __future__ import annotations

import hashlib
from dataclasses import asdict, replace
from datetime import UTC, datetime
from typing import Any

from models.errors import ConfigError
from models.polling.adaptive import AdaptivePolicy
from models.polling.fixed import FixedPolicy, spell_duration
from models.polling.forecasting import Basis, ForecastPolicy, make_forecast_policy
from models.polling.moment import Moment, Policy
from models.polling.patrol import PatrolPolicy
from models.records import Decision, PollRules

BACKOFF_FACTOR = 2.0
"""Each further failure doubles the wait: a dead host costs little, and a source that
comes back after a short outage is found soon."""

BACKOFF_CEILING_S = 86_400.0
"""A source is never given up: feeds come back after months. One look a day is the least."""

JITTER_SHARE = 0.05
"""Largest part of a wait added at random after failures, so that sources of one host that
failed together do not come back together."""

PRICE_JITTER_SHARE = 0.02
"""The same for `price`, against marching in step; the mean lag grows by a hundredth. What
keeps a beat (`fixed`) or aims (`plan`) gets none."""

YOUNG_ENTRIES = 20
MOST_HINT_S = 900.0
"""A publisher's hint (``ttl``) holds back a source whose habits are not known yet, and no
longer than this: half of all feeds carry one their software put there."""

POLICIES = ("auto", "price", "plan", "fixed", "adaptive", "ema", "holt-winters", "patrol")


def choose_next_poll(moment: Moment, rules: PollRules, basis: Basis | None = None) -> Decision:
    """Return when a source is polled next, and why.

    Parameters
    ----------
    moment
        How the last poll went.
    rules
        The source's policy, floor, ceiling and interval.
    basis
        Forecast and price; None makes do with the interval.

    Returns
    -------
    Decision
        Due strictly after ``moment.now_s``. ``inputs`` holds all it was made from;
        `replay_decision` turns them into the same decision.

    Examples
    --------
    >>> rules = PollRules(policy="fixed", interval_s=600.0)
    >>> choose_next_poll(Moment("a", now_s=61.0, due_s=60.0), rules).reason
    'next in 10 min: every 10 min'

    A failure waits longer, and says so:

    >>> failed = Moment("a", now_s=60.0, due_s=60.0, outcome="failed", consecutive_failures=3)
    >>> choose_next_poll(failed, rules).reason
    'next in 41 min: every 10 min; held back after 3 failures in a row'
    """
    policy = make_policy(rules, basis)
    if basis is not None and isinstance(policy, ForecastPolicy):
        # What is stored must be what was used, and no more than that.
        basis = replace(basis, forecast=basis.forecast.cut(policy.hours_used(moment)))
        policy = make_policy(rules, basis)
    wish = policy.choose_next(moment)
    wait_s = wish.due_s - moment.now_s
    notes: list[str] = []
    wait_s = _hold_back(wait_s, moment, rules, notes)
    wait_s = _clamp(wait_s, rules, moment, notes)
    if moment.retry_after_s and moment.retry_after_s > wait_s:
        wait_s = moment.retry_after_s
        notes.append(f"the server asked to wait {spell_duration(moment.retry_after_s)}")
    wait_s *= 1.0 + _jitter_share(policy, moment) * _fraction(moment)
    if moment.retry_after_s:
        wait_s += moment.stagger_s * _fraction(moment)
    due_s = moment.now_s + wait_s
    clauses = "; ".join([wish.reason, *notes])
    return Decision(
        due_at=datetime.fromtimestamp(due_s, UTC),
        reason=f"next in {spell_duration(wait_s)}: {clauses}",
        policy=policy.name,
        inputs={
            "moment": moment.as_inputs(),
            "rules": asdict(rules),
            "basis": basis.as_inputs() if isinstance(policy, ForecastPolicy) and basis else None,
        },
    )


def replay_decision(inputs: dict[str, Any]) -> Decision:
    """Return the decision made from stored `inputs`, the same bit for bit."""
    basis = inputs.get("basis")
    return choose_next_poll(
        Moment(**inputs["moment"]),
        PollRules(**inputs["rules"]),
        Basis.read_inputs(basis) if basis else None,
    )


def make_policy(rules: PollRules, basis: Basis | None = None) -> Policy:
    """Return the policy that `rules` name; ``auto`` is what the nightly refit chose.

    Without a forecast the forecast-based ones keep to the interval.

    Raises
    ------
    ConfigError
        If there is no such policy.
    """
    if rules.policy not in POLICIES:
        allowed = f"one of {', '.join(POLICIES)}"
        raise ConfigError("catalogue", "poll.policy", rules.policy, allowed)
    if rules.policy == "patrol":
        return PatrolPolicy(rules.interval_s)
    if rules.policy == "adaptive":
        return AdaptivePolicy()
    if rules.policy == "fixed" or basis is None:
        return FixedPolicy(rules.interval_s)
    return make_forecast_policy(basis.chosen if rules.policy == "auto" else rules.policy, basis)


def _hold_back(wait_s: float, moment: Moment, rules: PollRules, notes: list[str]) -> float:
    """Return the wait after failures in a row, or after a hint that still counts."""
    if moment.is_gone:
        notes.append("it is gone for good: one look a day")
        return max(wait_s, BACKOFF_CEILING_S)
    if moment.consecutive_failures > 1:
        notes.append(f"held back after {moment.consecutive_failures} failures in a row")
        return max(wait_s, _backoff_s(moment, rules))
    hint_s = min(moment.hint_s or 0.0, MOST_HINT_S)
    if moment.entries_known < YOUNG_ENTRIES and hint_s > wait_s:
        notes.append(f"its feed asks for {spell_duration(moment.hint_s or 0.0)}")
        return hint_s
    return wait_s


def _jitter_share(policy: Policy, moment: Moment) -> float:
    if moment.consecutive_failures > 1:
        return JITTER_SHARE
    return PRICE_JITTER_SHARE if policy.name == "price" else 0.0


def _clamp(wait_s: float, rules: PollRules, moment: Moment, notes: list[str]) -> float:
    ceiling_s = max(rules.max_interval_s, _backoff_s(moment, rules))
    if wait_s > ceiling_s:
        notes.append(f"not later than {spell_duration(ceiling_s)}")
        return ceiling_s
    return max(wait_s, rules.min_interval_s)


def _backoff_s(moment: Moment, rules: PollRules) -> float:
    if moment.is_gone:
        return BACKOFF_CEILING_S
    if moment.consecutive_failures < 2:
        return 0.0
    doublings = min(moment.consecutive_failures - 1, 30)
    return min(rules.interval_s * BACKOFF_FACTOR**doublings, BACKOFF_CEILING_S)


def _fraction(moment: Moment) -> float:
    """Return a number in [0, 1) that is the same for the same source and cycle."""
    digest = hashlib.sha256(f"{moment.source}#{moment.cycle}".encode()).digest()
    return int.from_bytes(digest[:8], "big") / 2**64
