"""Rows of hits, stories and notices, as SQL has them."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

import pytest

from models.triage.ladder import Channel
from tasks.channels import Channels
from tasks.duck.notices import close_state, raise_state, read_notices
from tasks.settings import Settings
from tasks.warehouse import Warehouse

NOW = datetime(2026, 3, 20, 9, 30, tzinfo=UTC)
DAY = timedelta(days=1)


@pytest.fixture
def warehouse(tmp_path):
    channels = {
        "desk": Channel("desk", levels=(1, 2, 3)),
        "port": Channel("port", levels=(3,), tags=("port",)),
    }
    with Warehouse.open(Settings(home=tmp_path, channels=channels), "test") as warehouse:
        yield warehouse


def add_hits(warehouse, rule, *moments, muted=None):
    for at in moments:
        warehouse._connection.execute(
            "INSERT INTO rule_hits (hit_id, article_id, version, source, rule, level, matched,"
            " start, hit_at, muted) VALUES (?, 'a', 1, 's', ?, 3, 'x', 0, ?, ?)",
            [f"{rule}{at}", rule, at, muted],
        )


def add_poll(warehouse, at):
    columns = [row[0] for row in warehouse.query("DESCRIBE polls")]
    values = ["'p'" if name in ("poll_id", "source", "outcome", "reason", "policy", "next_reason")
              else "'{}'" if name == "decision" else "false" if name == "possible_loss"
              else f"TIMESTAMPTZ '{at.isoformat()}'" if name.endswith("_at") else "0"
              for name in columns]  # fmt: skip
    warehouse._connection.execute(f"INSERT INTO polls VALUES ({', '.join(values)})")


def test_bursts_compare_the_last_hour_with_that_hour_of_days_that_were_watched(warehouse):
    add_poll(warehouse, NOW - 3.5 * DAY)
    minutes = timedelta(minutes=1)
    add_hits(warehouse, "a", NOW - 5 * minutes, NOW - 59 * minutes, NOW - 61 * minutes)
    add_hits(
        warehouse, "a", NOW - DAY - 30 * minutes, NOW - 3 * DAY - minutes, NOW - DAY - 2 * DAY / 3
    )
    add_hits(warehouse, "a", NOW - 2 * minutes, muted="backlog")
    bursts = warehouse.read_bursts(["a", "b"], NOW)
    assert (bursts["a"].last_hour, bursts["a"].earlier) == (2, (1, 0, 1))
    assert (bursts["b"].last_hour, bursts["b"].earlier) == (0, (0, 0, 0))
    assert warehouse.read_bursts([], NOW) == {}


def test_a_state_is_told_once_on_the_channels_that_take_it_until_it_is_over(warehouse):
    about = ("drift", "quay", "quay has a new layout", "text", 3, ["port"], warehouse.settings)
    with warehouse._transaction() as connection:
        assert raise_state(connection, *about, NOW)
        assert not raise_state(connection, *about, NOW + DAY)
        notices = read_notices(connection, "source = 'quay'")
        assert sorted(notice.channel for notice in notices) == ["desk", "port"]
        assert close_state(connection, "drift", "quay", NOW + DAY) == 2
        assert close_state(connection, "drift", "quay", NOW + DAY) == 0
        assert raise_state(connection, *about, NOW + 2 * DAY)


def test_a_channel_says_how_much_it_takes():
    channels = Channels({"tg": Channel("tg", "tgram://123456789:abcdefg_hijklmnop/12315544"),
                         "log": Channel("log")})  # fmt: skip
    assert channels.room("tg") < 4096
    assert channels.room("log") > 10_000
