import json
from dataclasses import replace
from datetime import datetime, timedelta
from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from models.errors import ConfigError
from models.polling.choice import (
    BACKOFF_CEILING_S,
    JITTER_SHARE,
    choose_next_poll,
    make_policy,
    replay_decision,
)
from models.polling.fixed import FixedPolicy
from models.polling.moment import Moment
from models.records import PollRules

RULES = PollRules(interval_s=600.0, min_interval_s=60.0, max_interval_s=86_400.0)
DONE = Moment("a", now_s=1_000_010.0, due_s=1_000_000.0, cycle=3)


def wait_s(moment, rules=RULES):
    return choose_next_poll(moment, rules).due_at.timestamp() - moment.now_s


def test_the_time_a_poll_took_is_part_of_the_interval():
    assert wait_s(DONE) == pytest.approx(590.0)


def test_polls_missed_while_asleep_collapse_into_one():
    asleep = replace(DONE, now_s=1_000_000.0 + 10 * 600 + 1)
    assert wait_s(asleep) == pytest.approx(599.0)


def test_a_poll_that_took_nearly_its_interval_is_not_followed_at_once():
    assert wait_s(replace(DONE, now_s=1_000_599.0)) == pytest.approx(60.0)


@pytest.mark.parametrize(("failures", "least_s"), [(1, 590), (2, 1200), (3, 2400), (4, 4800)])
def test_failures_in_a_row_wait_longer(failures, least_s):
    failed = replace(DONE, outcome="failed", consecutive_failures=failures)
    assert least_s <= wait_s(failed) <= least_s * (1 + JITTER_SHARE) + 10


def test_a_source_is_never_given_up():
    failed = replace(DONE, outcome="failed", consecutive_failures=10_000)
    assert wait_s(failed) <= BACKOFF_CEILING_S * (1 + JITTER_SHARE)


def test_retry_after_is_honoured_beyond_the_ceiling():
    asked = replace(DONE, outcome="failed", consecutive_failures=1, retry_after_s=200_000.0)
    assert wait_s(asked) >= 200_000.0


def test_the_reason_reads_as_a_sentence():
    asked = replace(DONE, outcome="failed", consecutive_failures=3, retry_after_s=7200.0)
    reason = choose_next_poll(asked, RULES).reason
    assert reason.startswith("next in 2.1 h: every 10 min; held back after 3 failures in a row")
    assert reason.endswith("the server asked to wait 2 h")


def test_an_unknown_policy_names_those_there_are():
    with pytest.raises(ConfigError, match="fixed"):
        make_policy(PollRules(policy="psychic"))


moments = st.builds(
    Moment,
    source=st.sampled_from(["a", "b"]),
    now_s=st.floats(1e9, 1.001e9),
    due_s=st.floats(0.999e9, 1e9),
    cycle=st.integers(1, 10**6),
    outcome=st.sampled_from(["new", "empty", "not_modified", "failed", "refused"]),
    consecutive_failures=st.integers(0, 50),
    retry_after_s=st.none() | st.floats(0, 1e6),
)


@given(moments, st.floats(60, 86_400))
def test_the_next_poll_is_in_the_future_and_not_before_the_floor(moment, interval_s):
    rules = replace(RULES, interval_s=interval_s)
    assert wait_s(moment, rules) >= rules.min_interval_s - 1e-3


@given(moments)
def test_a_stored_decision_replays_bit_for_bit(moment):
    decision = choose_next_poll(moment, RULES)
    stored = json.loads(json.dumps(decision.inputs))
    assert replay_decision(stored) == decision


@given(st.floats(1, 1e5), st.floats(0, 1e6))
def test_fixed_keeps_its_beat(interval_s, late_s):
    wish = FixedPolicy(interval_s).choose_next(Moment("a", now_s=late_s, due_s=0.0))
    beats = wish.due_s / interval_s
    assert wish.due_s > late_s * (1 - 1e-12)
    assert beats == pytest.approx(round(beats))


@pytest.mark.report("PrefectHQ/prefect#7381")
@pytest.mark.parametrize("day", ["2026-10-24T22:00", "2026-03-28T22:00"], ids=["back", "forward"])
def test_clocks_that_change_neither_double_a_poll_nor_skip_one(day):
    start_s = datetime.fromisoformat(f"{day}+00:00").timestamp()
    rules = PollRules(policy="fixed", interval_s=1800.0)
    dues = [start_s]
    for cycle in range(12):
        moment = Moment("berlin", now_s=dues[-1] + 1.0, due_s=dues[-1], cycle=cycle)
        due_at = choose_next_poll(moment, rules).due_at
        assert due_at.utcoffset() == timedelta(0)
        dues.append(due_at.timestamp())
    gaps = {later - earlier for earlier, later in pairwise(dues)}
    assert gaps == {1800.0}
