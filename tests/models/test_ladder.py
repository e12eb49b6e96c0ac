"""Who is told when: levels, quiet hours, digests, messages."""

from datetime import UTC, datetime, timedelta
from zoneinfo import ZoneInfo

import pytest
from hypothesis import given
from hypothesis import strategies as st

from models.triage.ladder import Channel, Notice, Pace, draft_messages, first_due, next_reminder
from models.triage.message import split_text, write_body, write_title

AT = datetime(2026, 3, 28, 21, 40, tzinfo=UTC)


def notice(number=1, level=2, **about):
    usual = {
        "notice_id": f"id{number}", "kind": "hit", "subject": f"Story {number}", "source": "a",
        "level": level, "channel": "desk", "text": "rule r", "raised_at": AT + timedelta(number),
    }  # fmt: skip
    return Notice(**(usual | about))


@pytest.mark.parametrize(
    ("level", "channel", "due"),
    [
        (3, Channel("half-hours", timezone="Asia/Kolkata"), "2026-03-28 22:30"),
        (4, Channel("berlin", timezone="Europe/Berlin"), "2026-03-29 06:00"),  # the clocks go on
        (2, Channel("night", quiet="23:00-06:30", timezone="Europe/Moscow"), "2026-03-29 03:30"),
        (2, Channel("day", quiet="09:00-17:00"), "2026-03-28 21:40"),
        (1, Channel("night", quiet="00:00-23:59"), "2026-03-28 21:40"),
    ],
)
def test_a_notice_is_due(level, channel, due):
    assert f"{first_due(level, AT, channel, Pace()):%Y-%m-%d %H:%M}" == due


@given(
    level=st.integers(2, 4),
    at=st.datetimes(datetime(2020, 1, 1), datetime(2030, 1, 1), timezones=st.just(UTC)),
    zone=st.sampled_from(["UTC", "Europe/Berlin", "Asia/Kolkata", "America/St_Johns"]),
    quiet=st.sampled_from(["", "22:00-07:00", "02:00-03:00", "12:00-12:30"]),
)
def test_nobody_is_told_early_late_or_in_quiet_hours(level, at, zone, quiet):
    channel = Channel("c", quiet=quiet, timezone=zone)
    due = first_due(level, at, channel, Pace())
    assert at <= due <= at + timedelta(hours=50)
    local = f"{due.astimezone(ZoneInfo(zone)):%H:%M}"
    if quiet == "22:00-07:00":
        assert "07:00" <= local < "22:00"
    elif quiet:
        begins, ends = quiet.split("-")
        assert not begins <= local < ends


def test_alerts_go_singly_unless_many_wait_and_digests_together():
    few = [notice(number) for number in range(3)]
    many = [notice(number) for number in range(4)]
    digest = [notice(number, level=3) for number in range(2)]
    assert [len(draft.notices) for draft in draft_messages([*few, *digest])] == [1, 1, 1, 2]
    assert [draft.kind for draft in draft_messages([*many, *digest])] == ["alert", "digest"]
    assert draft_messages([]) == []


def test_only_an_unanswered_first_level_is_repeated():
    assert next_reminder(notice(level=2), AT, Pace()) is None
    assert next_reminder(notice(level=1, acknowledged_at=AT), AT, Pace()) is None
    assert next_reminder(notice(level=1), AT, Pace(repeat_s=60)) == AT + timedelta(minutes=1)


def test_a_message_says_who_what_and_how_to_stop_it():
    (draft,) = draft_messages([notice(level=1, outlets=("a", "b"), url="https://a.example/1")])
    assert write_title(draft) == "[newsbeat 1] Story 1"
    assert write_body(draft).splitlines() == [
        "Story 1",
        "a, 2026-03-29 21:40 UTC; also b",
        "rule r",
        "https://a.example/1",
        "Stop the repeats: newsbeat ack id1",
    ]


@given(st.text(max_size=3000), st.integers(300, 1000))
def test_parts_fit_and_nothing_but_blanks_is_lost(text, most):
    parts = split_text(text, most, "message ab12")
    assert all(len(part) <= most for part in parts)
    whole = "".join(part.rpartition("\n(message")[0] for part in parts)
    assert "".join(whole.split()) == "".join(text.split())
