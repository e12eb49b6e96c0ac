"""The writer: nothing twice, nothing half, nothing lost, and one at a time."""

import json
import os
import re
import socket
import stat
import subprocess
import sys
from dataclasses import replace
from datetime import timedelta

import duckdb
import pytest

from models.errors import WarehouseError
from models.records import Article, HttpRules, PollRules, Schedule, StoredCounts, Validators
from tasks.duck.migrations import read_migrations
from tasks.settings import Settings, WarehouseSettings
from tasks.warehouse import Warehouse

TABLES = {
    "sources", "schedule", "polls", "entries", "entry_heads", "entry_changes", "articles",
    "article_heads", "article_versions", "pending_articles", "pages", "intensity_models",
    "budget", "forecasts", "reference_models", "page_verdicts", "drift_checks", "rule_hits",
    "notices", "article_likenesses", "outbox", "untriaged", "drift_states", "repairs",
    "schema_migrations", "incidents",
}  # fmt: skip
VIEWS = {
    "lag_by_source_day", "traffic_by_source_day", "source_health", "forecast_vs_actual",
    "possible_losses", "hits_by_level_day", "drift_history", "trusted_articles", "stories",
    "shared_lists",
}  # fmt: skip


def count(warehouse: Warehouse) -> dict[str, int]:
    return {table: warehouse.query(f"SELECT count(*) FROM {table}")[0][0] for table in TABLES}


# Schema


def test_every_table_and_view_is_there(warehouse):
    rows = warehouse.query("SELECT table_name, table_type FROM information_schema.tables")
    assert {name for name, kind in rows if kind == "BASE TABLE"} == TABLES
    assert {name for name, kind in rows if kind == "VIEW"} == VIEWS


def test_every_table_view_and_column_has_a_comment(warehouse):
    bare = warehouse.query(
        "SELECT table_name FROM duckdb_tables() WHERE comment IS NULL "
        "UNION ALL SELECT view_name FROM duckdb_views() WHERE comment IS NULL AND NOT internal "
        "UNION ALL SELECT table_name || '.' || column_name FROM duckdb_columns() "
        "WHERE comment IS NULL AND NOT internal"
    )
    assert bare == []


@pytest.mark.report("duckdb/duckdb#23645")
def test_no_column_has_a_default_and_no_table_a_secondary_index(warehouse):
    # A served table with a function default cannot be attached.
    assert warehouse.query("SELECT * FROM duckdb_columns() WHERE column_default IS NOT NULL") == []
    assert warehouse.query("SELECT * FROM duckdb_indexes()") == []


def test_times_are_utc(warehouse):
    assert warehouse.query("SELECT current_setting('TimeZone')") == [("UTC",)]
    kinds = warehouse.query("SELECT DISTINCT data_type FROM duckdb_columns() WHERE NOT internal")
    assert ("TIMESTAMP",) not in kinds


def test_opening_again_changes_nothing(settings, press):
    with Warehouse.open(settings, "first") as warehouse:
        before = warehouse.query("SELECT * FROM schema_migrations ORDER BY version")
    with Warehouse.open(settings, "second") as warehouse:
        assert warehouse.query("SELECT * FROM schema_migrations ORDER BY version") == before


@pytest.mark.report("duckdb/duckdb#25395")
def test_closing_leaves_one_whole_file_that_opens_again_at_once(settings, press):
    for number in range(4):
        with Warehouse.open(settings, "test") as warehouse:
            with warehouse._transaction() as connection:
                connection.execute(f"CREATE TABLE t{number} (x INTEGER)")
                connection.execute(f"INSERT INTO t{number} SELECT * FROM range(5000)")
            with warehouse._transaction() as connection:
                connection.execute(f"DELETE FROM t{number} WHERE x % 2 = 0")
            with warehouse._transaction() as connection:
                connection.execute(f"ALTER TABLE t{number} ADD COLUMN y VARCHAR")
            warehouse.sync_sources([press.source()], press.at(0))
            warehouse.store_poll(press.result(number + 1, articles=[press.article(f"{number}")]))
        assert not list(settings.folder.glob("*.wal"))
    with Warehouse.open(settings, "test") as warehouse:
        assert warehouse.query("SELECT count(*) FROM t3") == [(2500,)]
        assert warehouse.query("SELECT count(*) FROM polls") == [(4,)]


def test_a_view_that_reads_differently_is_made_anew(settings):
    with Warehouse.open(settings, "test"):
        pass
    with duckdb.connect(str(settings.database)) as connection:
        connection.execute("CREATE OR REPLACE VIEW source_health AS SELECT 1 AS wrong")
        connection.execute("UPDATE schema_migrations SET sha256 = 'older' WHERE version = 0")
    with Warehouse.open(settings, "test") as warehouse:
        assert warehouse.query("SELECT source FROM source_health") == []


def test_a_newer_database_is_refused_with_both_versions_and_a_way_out(settings):
    with Warehouse.open(settings, "test"):
        pass
    known = read_migrations()[-1].version
    with duckdb.connect(str(settings.database)) as connection:
        connection.execute("INSERT INTO schema_migrations VALUES (99, 'x', 'x', '2026-01-01')")
    with pytest.raises(WarehouseError, match=rf"schema 99, this newsbeat knows {known}.*Install a"):
        Warehouse.open(settings, "test")
    # The lease was handed back.
    with pytest.raises(WarehouseError, match="schema 99"):
        Warehouse.open(settings, "test")


def test_a_migration_that_was_edited_is_refused(settings):
    with Warehouse.open(settings, "test"):
        pass
    with duckdb.connect(str(settings.database)) as connection:
        connection.execute("UPDATE schema_migrations SET sha256 = 'edited' WHERE version = 1")
    with pytest.raises(WarehouseError, match=r"different 0001_tables\.sql"):
        Warehouse.open(settings, "test")


# Sources and schedule


def test_new_sources_are_spread_over_the_first_interval(warehouse, press):
    sources = [press.source(f"s{number}") for number in range(300)]
    warehouse.sync_sources(sources, press.start)
    due = [row.due_at - press.start for row in warehouse.read_schedules() if row.source != "daily"]
    per_minute = [sum(minute == at // timedelta(minutes=1) for at in due) for minute in range(10)]
    assert sum(per_minute) == 300
    assert max(per_minute) < 50


def test_sync_twice_changes_nothing(warehouse, press):
    before = warehouse.query("SELECT * FROM sources"), warehouse.read_schedules()
    warehouse.sync_sources([press.source()], press.at(60))
    assert (warehouse.query("SELECT * FROM sources"), warehouse.read_schedules()) == before


def test_a_changed_catalogue_entry_is_updated(warehouse, press):
    changed = press.source(
        title="Anew", tags=("a", "b"), poll=PollRules(interval_s=60), http=HttpRules(True)
    )
    warehouse.sync_sources([changed], press.at(60))
    rows = warehouse.query("SELECT title, tags, interval_s, is_listed FROM sources")
    assert rows == [("Anew", ["a", "b"], 60.0, True)]


def test_a_source_that_leaves_the_catalogue_is_paused_and_back_in_it_active(warehouse, press):
    warehouse.sync_sources([press.source("other")], press.at(1))
    left = warehouse.read_schedule("daily")
    assert (left.state, left.reason) == ("paused", "no longer in the catalogue")
    assert warehouse.query("SELECT is_listed FROM sources WHERE source = 'daily'") == [(False,)]
    assert warehouse.claim_cycle("daily", 1, press.at(1), press.at(2)) is None

    warehouse.sync_sources([press.source(), press.source("other")], press.at(90))
    back = warehouse.read_schedule("daily")
    assert (back.state, back.due_at) == ("active", press.at(90))
    assert warehouse.query("SELECT is_listed FROM sources WHERE source = 'daily'") == [(True,)]


def test_a_pause_by_people_outlives_a_sync(warehouse, press):
    paused = replace(warehouse.read_schedule("daily"), state="paused", reason="paused in Prefect")
    warehouse.write_schedule(paused)
    warehouse.sync_sources([press.source()], press.at(5))
    assert warehouse.read_schedule("daily") == paused


def test_a_schedule_is_read_as_it_was_written(warehouse, press):
    full = Schedule(
        "daily", press.at(1), "why", "failing", 7, 3, Validators('W/"1"', "Sun", "https://x/"),
        press.at(2), press.at(3), "digest", press.at(4),
    )  # fmt: skip
    warehouse.write_schedule(full)
    assert warehouse.read_schedule("daily") == full
    assert warehouse.read_schedules() == [full]


def test_a_schedule_of_an_unknown_source_is_added(warehouse, press):
    warehouse.write_schedule(Schedule("fresh", press.at(1), "why"))
    assert warehouse.read_schedule("fresh").cycle == 1
    assert warehouse.read_schedule("nobody") is None


# Claims


@pytest.mark.report("PrefectHQ/prefect#18894")
def test_a_cycle_is_claimed_once(warehouse, press):
    claimed = warehouse.claim_cycle("daily", 1, press.at(0), press.at(5))
    assert claimed.cycle == 1
    assert claimed.lease_until == press.at(5)
    assert warehouse.claim_cycle("daily", 1, press.at(1), press.at(6)) is None
    assert warehouse.claim_cycle("daily", None, press.at(1), press.at(6)) is None


def test_a_lapsed_lease_can_be_claimed_again(warehouse, press):
    warehouse.claim_cycle("daily", 1, press.at(0), press.at(5))
    assert warehouse.claim_cycle("daily", 1, press.at(5), press.at(9)) is not None


@pytest.mark.parametrize("cycle", [0, 2, 99])
def test_another_cycle_than_the_current_is_refused(warehouse, press, cycle):
    assert warehouse.claim_cycle("daily", cycle, press.at(0), press.at(5)) is None


def test_a_poll_by_hand_claims_whichever_cycle_is_next(warehouse, press):
    assert warehouse.claim_cycle("daily", None, press.at(0), press.at(5)).cycle == 1


def test_an_unknown_source_cannot_be_claimed(warehouse, press):
    assert warehouse.claim_cycle("nobody", None, press.at(0), press.at(5)) is None


def test_a_claim_given_back_can_be_taken_again(warehouse, press):
    warehouse.claim_cycle("daily", 1, press.at(0), press.at(5))
    assert warehouse.claimed == {"daily"}
    warehouse.end_claim("daily")
    warehouse.end_claim("daily")
    assert warehouse.claimed == frozenset()
    assert warehouse.read_schedule("daily").lease_until is None
    assert warehouse.claim_cycle("daily", 1, press.at(1), press.at(6)) is not None


def test_leases_are_released_at_start(warehouse, press):
    warehouse.claim_cycle("daily", 1, press.at(0), press.at(5))
    assert warehouse.release_leases() == 1
    assert warehouse.release_leases() == 0
    assert warehouse.claim_cycle("daily", 1, press.at(1), press.at(6)) is not None


# Polls


def test_a_poll_stores_all_it_found(warehouse, press):
    result = press.result(
        entries=[press.entry("a"), press.entry("b"), press.entry("c")],
        articles=[press.article("a"), press.article("b")],
        pending=[press.pending("c")],
        settled=["entry-a", "entry-b"],
    )
    assert warehouse.store_poll(result) == StoredCounts(entries=3, pages=2, articles=2)
    there = count(warehouse)
    assert {name: n for name, n in there.items() if n} == {
        "sources": 1, "schedule": 1, "polls": 1, "entries": 3, "articles": 2, "article_heads": 2,
        "article_versions": 2, "pending_articles": 1, "pages": 2, "article_likenesses": 2,
        "schema_migrations": len(read_migrations()) + 1,
    }  # fmt: skip
    assert warehouse.read_schedule("daily") == result.schedule
    columns = "poll_id, outcome, entries_new, articles_stored, decision ->> '$.interval_s'"
    assert warehouse.query(f"SELECT {columns} FROM polls") == [("daily#1", "new", 3, 2, "600.0")]


@pytest.mark.report("duckdb/duckdb#23645")
def test_the_same_poll_again_changes_nothing(warehouse, press):
    result = press.result(
        entries=[press.entry("a")], articles=[press.article("a")], pending=[press.pending("b")]
    )
    warehouse.store_poll(result)
    tables = sorted(TABLES)
    before = [warehouse.query(f"SELECT * FROM {table} ORDER BY ALL") for table in tables]
    assert warehouse.store_poll(result) == StoredCounts(is_repeat=True)
    assert [warehouse.query(f"SELECT * FROM {table} ORDER BY ALL") for table in tables] == before


def test_a_repeated_poll_does_not_turn_the_schedule_back(warehouse, press):
    first, second = press.result(1, 10), press.result(2, 20)
    warehouse.store_poll(first)
    warehouse.store_poll(second)
    warehouse.store_poll(first)
    assert warehouse.read_schedule("daily") == second.schedule


def test_entries_and_articles_found_again_are_not_stored_twice(warehouse, press):
    found = {"entries": [press.entry("a")], "articles": [press.article("a")]}
    warehouse.store_poll(press.result(1, 10, **found))
    counts = warehouse.store_poll(press.result(2, 20, **found))
    assert (counts.entries, counts.articles, counts.versions) == (0, 0, 0)
    there = count(warehouse)
    assert (there["entries"], there["articles"], there["article_versions"]) == (1, 1, 1)


def test_one_poll_may_name_an_entry_or_article_twice(warehouse, press):
    twice = press.result(
        entries=[press.entry("a"), press.entry("a")],
        articles=[press.article("a"), press.article("a")],
        pending=[press.pending("b"), press.pending("b")],
    )
    counts = warehouse.store_poll(twice)
    assert (counts.entries, counts.articles) == (1, 1)
    assert count(warehouse)["pending_articles"] == 1


@pytest.mark.parametrize(
    "changes", [{"text": "Corrected text."}, {"title": "Corrected title"}], ids=["text", "title"]
)
def test_a_changed_article_becomes_a_version(warehouse, press, changes):
    first = press.article("a")
    warehouse.store_poll(press.result(1, 10, entries=[press.entry("a")], articles=[first]))
    edited = replace(
        first, stored_at=press.at(20), page=press.page("a", 20),
        article=replace(first.article, **changes),
    )  # fmt: skip
    counts = warehouse.store_poll(press.result(2, 20, articles=[edited]))
    assert (counts.articles, counts.versions) == (0, 1)
    rows = warehouse.query(
        "SELECT title, text, version, stored_at, changed_at, page_id, publication_lag_s, authors "
        "FROM articles"
    )
    assert rows == [
        (
            edited.article.title, edited.article.text, 2, press.at(10), press.at(20),
            "page-a-20", 600.0, ["A. Writer", "Б. Автор"],
        )
    ]  # fmt: skip
    versions = warehouse.query(
        "SELECT version, title, text, seen_at FROM article_versions ORDER BY version"
    )
    assert versions == [
        (1, first.article.title, first.article.text, press.at(10)),
        (2, edited.article.title, edited.article.text, press.at(20)),
    ]


@pytest.mark.report("duckdb/duckdb#16520")
def test_an_article_goes_through_many_versions_and_back(warehouse, press):
    texts = ["one", "two", "one", "three"]
    for cycle, text in enumerate(texts, 1):
        article = press.article("a", 10 * cycle, text)
        warehouse.store_poll(press.result(cycle, 10 * cycle, articles=[article]))
    versions = warehouse.query("SELECT version, text FROM article_versions ORDER BY version")
    assert versions == list(enumerate(texts, 1))
    assert warehouse.query("SELECT version, text FROM articles") == [(4, "three")]


def test_a_listing_that_stands_in_never_replaces_a_text(warehouse, press):
    warehouse.store_poll(press.result(1, 10, articles=[press.article("a")]))
    stand_in = Article("Title", "Summary", kind="empty", extraction="listing")
    empty = press.article("a", 20, article=stand_in, page=None)
    assert warehouse.store_poll(press.result(2, 20, articles=[empty])).versions == 0
    assert warehouse.query("SELECT kind, version FROM articles") == [("article", 1)]


def test_a_text_replaces_the_listing_that_stood_in(warehouse, press):
    stand_in = Article("Title", "Summary", kind="empty", extraction="listing")
    empty = press.article("a", 10, article=stand_in, page=None)
    warehouse.store_poll(press.result(1, 10, articles=[empty]))
    assert warehouse.query("SELECT kind, page_id FROM articles") == [("empty", None)]
    counts = warehouse.store_poll(press.result(2, 20, articles=[press.article("a", 20)]))
    assert counts.versions == 1
    rows = warehouse.query("SELECT kind, extraction, page_id, version FROM articles")
    assert rows == [("article", "trafilatura", "page-a-20", 2)]


def test_known_entries_are_told_with_how_they_were_last_listed(warehouse, press):
    first, changed = press.entry("a"), press.entry("a", title="Another title")
    warehouse.store_poll(press.result(1, 10, entries=[first, press.entry("b")]))
    known = warehouse.read_known("daily", ["entry-a", "entry-b", "entry-c", "entry-a"])
    assert {key: item.fingerprint for key, item in known.items()} == {
        "entry-a": first.fingerprint,
        "entry-b": press.entry("b").fingerprint,
    }
    warehouse.store_poll(press.result(2, 20, relisted=[changed]))
    assert warehouse.read_known("daily", ["entry-a"])["entry-a"].fingerprint == changed.fingerprint
    assert warehouse.read_known("other", ["entry-a"]) == {}
    assert warehouse.read_known("daily", []) == {}


def test_every_change_of_a_listing_is_kept_and_the_first_sight_too(warehouse, press):
    titles = ["Title of a", "Second", "Third", "Second"]
    entries = [press.entry("a", title=title) for title in titles]
    warehouse.store_poll(press.result(1, 10, entries=entries[:1]))
    for cycle, entry in enumerate(entries[1:], 2):
        warehouse.store_poll(press.result(cycle, 10 * cycle, relisted=[entry]))
        warehouse.store_poll(press.result(cycle + 100, 10 * cycle, relisted=[entry]))
    assert warehouse.query("SELECT title FROM entries") == [("Title of a",)]
    changes = warehouse.query("SELECT change, title FROM entry_changes ORDER BY change")
    assert changes == [(1, "Second"), (2, "Third"), (3, "Second")]


def test_debts_are_kept_renewed_and_settled(warehouse, press):
    warehouse.store_poll(press.result(1, 10, pending=[press.pending("a", 20), press.pending("b")]))
    due = warehouse.read_pending("daily", press.at(15), 10)
    assert due == [press.pending("b")]
    warehouse.store_poll(press.result(2, 20, pending=[press.pending("b", 60, attempts=2)]))
    assert warehouse.read_pending("daily", press.at(25), 10) == [press.pending("a", 20)]
    assert len(warehouse.read_pending("daily", press.at(99), 10)) == 2
    assert len(warehouse.read_pending("daily", press.at(99), 1)) == 1
    assert warehouse.read_pending("other", press.at(99), 10) == []
    warehouse.store_poll(press.result(3, 30, settled=["entry-a", "entry-b"]))
    assert count(warehouse)["pending_articles"] == 0


def test_a_pause_in_the_middle_of_a_poll_holds(warehouse, press):
    paused = replace(
        warehouse.read_schedule("daily"), state="paused", reason="paused in Prefect", cycle=2
    )
    warehouse.write_schedule(paused)
    warehouse.store_poll(press.result(1, 10, entries=[press.entry("a")]))
    after = warehouse.read_schedule("daily")
    assert (after.state, after.reason, after.cycle) == ("paused", "paused in Prefect", 2)
    assert after.last_success_at == press.at(10) + timedelta(seconds=1)


# Lag


def lags(warehouse: Warehouse) -> list[tuple[object, ...]]:
    return warehouse.query("SELECT publication_lag_s, is_backlog FROM articles ORDER BY article_id")


def test_what_was_listed_before_the_source_was_watched_is_backlog(warehouse, press):
    first = press.result(1, 10, entries=[press.entry("a"), press.entry("late")])
    first = replace(first, articles=(press.article("a"),), pending=(press.pending("late"),))
    warehouse.store_poll(first)
    second = press.result(
        2,
        20,
        entries=[press.entry("b")],
        articles=[press.article("b", 20), press.article("late", 20)],
    )
    warehouse.store_poll(second)
    assert lags(warehouse) == [(600.0, True), (1200.0, False), (1200.0, True)]
    assert warehouse.query("SELECT mean_lag_s FROM polls ORDER BY cycle") == [(None,), (1200.0,)]
    assert warehouse.query("SELECT n_articles, mean_lag_s FROM lag_by_source_day") == [(1, 1200.0)]


def test_a_failed_first_poll_does_not_end_the_backlog(warehouse, press):
    failed = press.result(1, 10, outcome="failed", reason="no answer")
    failed = replace(failed, schedule=replace(failed.schedule, last_success_at=None))
    warehouse.store_poll(failed)
    warehouse.store_poll(press.result(2, 20, entries=[press.entry("a")]))
    assert warehouse.query("SELECT is_backlog FROM entries") == [(True,)]


@pytest.mark.parametrize(
    ("changes", "precision", "expected"),
    [
        ({}, "instant", 600.0),
        ({}, "day", None),
        ({"published_at": None}, None, None),
        ({"published_at": "ahead"}, "instant", None),
    ],
    ids=["exact", "to the day", "undated", "an hour ahead"],
)
def test_lag_is_told_only_where_it_can_be(warehouse, press, changes, precision, expected):
    if changes.get("published_at") == "ahead":
        changes = {"published_at": press.at(70)}
    entry = press.entry("a", published_precision=precision)
    article = press.article("a", **changes)
    warehouse.store_poll(press.result(1, 10, entries=[entry], articles=[article]))
    assert lags(warehouse) == [(expected, True)]


# Reading back


def test_recent_polls_come_newest_first_and_past_gaps(warehouse, press):
    for cycle in (1, 2, 3, 9, 10):
        warehouse.store_poll(press.result(cycle, 10 * cycle))
        warehouse.write_schedule(replace(warehouse.read_schedule("daily"), cycle=cycle + 1))
    recent = warehouse.read_recent_polls("daily", 4)
    assert [poll.poll_id for poll in recent] == ["daily#10", "daily#9", "daily#3", "daily#2"]
    assert recent[0].next_reason == "every 10 min"
    assert recent[0].started_at == press.at(100)
    assert warehouse.read_recent_polls("nobody") == []


def test_status_tells_how_a_source_fares(warehouse, press):
    warehouse.store_poll(
        press.result(1, 10, entries=[press.entry("a")], articles=[press.article("a")])
    )
    warehouse.store_poll(
        press.result(
            2, 20, entries=[press.entry("b"), press.entry("c")], articles=[press.article("b", 20)],
            pending=[press.pending("c")], possible_loss=True,
        )
    )  # fmt: skip
    (row,) = warehouse.read_status(press.at(24 * 60 + 15))
    assert (row.source, row.state, row.last_outcome) == ("daily", "active", "new")
    assert (row.n_polls, row.n_entries, row.n_articles, row.n_articles_24h) == (2, 3, 2, 1)
    assert (row.mean_lag_s, row.median_lag_s) == (1200.0, 1200.0)
    assert (row.n_pending, row.n_possible_losses, row.due_at) == (1, 1, press.at(30))
    assert row.total_bytes == 240_000


def test_a_source_never_polled_has_a_status_too(warehouse, press):
    (row,) = warehouse.read_status(press.start)
    assert (row.n_polls, row.last_outcome, row.mean_lag_s) == (0, None, None)


# One writer

HOLD = """
w = Warehouse.open(settings, 'newsbeat worker')
print('open', flush=True)
input()
"""


@pytest.mark.report("sipcapture/homer#810")
def test_a_second_writer_is_refused_and_told_who_the_first_is(settings, other):
    first = other(HOLD)
    assert first.said() == "open"
    with pytest.raises(WarehouseError) as caught:
        Warehouse.open(settings, "newsbeat poll")
    text = str(caught.value)
    assert f"newsbeat worker (pid {first.process.pid} on {socket.gethostname()}, since 20" in text
    assert f"kill {first.process.pid}" in text
    assert "`newsbeat sql`" in text


def test_a_second_writer_in_the_same_process_is_refused_too(settings):
    with Warehouse.open(settings, "one"), pytest.raises(WarehouseError, match=r"one \(pid"):
        Warehouse.open(settings, "two")
    Warehouse.open(settings, "two").close()


def test_kill_frees_the_lease(settings, other):
    first = other(HOLD)
    first.said()
    first.kill()
    Warehouse.open(settings, "b").close()


def test_a_forked_child_does_not_keep_the_lease(settings):
    warehouse = Warehouse.open(settings, "parent")
    reader, writer = os.pipe()
    child = os.fork()
    if child == 0:
        os.read(reader, 1)
        os._exit(0)
    try:
        warehouse.close()
        Warehouse.open(settings, "next").close()
    finally:
        os.write(writer, b".")
        os.waitpid(child, 0)
        os.close(reader)
        os.close(writer)


def test_a_database_open_elsewhere_is_refused_with_that_program_s_pid(settings, other):
    Warehouse.open(settings, "test").close()
    foreign = other(
        "import duckdb\n"
        "connection = duckdb.connect(str(settings.database))\n"
        "print('open', flush=True)\n"
        "input()"
    )
    foreign.said()
    with pytest.raises(WarehouseError, match=rf"another program.*PID {foreign.process.pid}.*Close"):
        Warehouse.open(settings, "test")


def test_a_closed_warehouse_says_so(settings):
    warehouse = Warehouse.open(settings, "test")
    warehouse.close()
    warehouse.close()
    with pytest.raises(WarehouseError, match="closed"):
        warehouse.read_schedules()
    assert not (settings.folder / "newsbeat.duckdb.wal").exists()


# Live endpoint


def test_the_token_is_for_its_owner_only_and_gone_after_closing(settings):
    with Warehouse.open(settings, "test") as warehouse:
        endpoint = warehouse.serve()
        assert warehouse.serve() is endpoint
        path = settings.folder / "endpoint.json"
        assert stat.S_IMODE(path.stat().st_mode) == 0o600
        assert json.loads(path.read_text())["token"] == endpoint.token
        assert endpoint.token not in repr(endpoint)
    assert not path.exists()


@pytest.mark.parametrize("by", ["a socket", "another warehouse"])
def test_a_taken_port_is_named(tmp_path, by):
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        port = taken.getsockname()[1]
        settings = Settings(home=tmp_path, warehouse=WarehouseSettings(quack_port=port))
        first = None
        if by == "a socket":
            taken.listen()
        else:
            taken.close()
            elsewhere = replace(settings, home=tmp_path / "elsewhere")
            first = Warehouse.open(elsewhere, "first")
            first.serve()
        with Warehouse.open(settings, "test") as warehouse:
            with pytest.raises(WarehouseError, match=rf"port {port}.*QUACK_PORT"):
                warehouse.serve()
            assert warehouse.query("SELECT 1") == [(1,)]
        if first:
            first.close()


# Damage


KEEP_STORING = """
press_at = datetime(2026, 3, 1, 12, 0, tzinfo=UTC)
w = Warehouse.open(settings, 'victim')
w.sync_sources([Source('daily', 'Daily', 'https://daily.example/')], press_at)
first = w.read_schedule('daily').cycle
for cycle in range(first, 100000):
    at = press_at + timedelta(minutes=10 * cycle)
    names = [f'{cycle}-{n}' for n in range(5)]
    entries = tuple(NewEntry('e' + n, Entry('https://daily.example/' + n, n), n) for n in names)
    articles = tuple(
        StoredArticle('a' + n, 'e' + n, 'https://daily.example/' + n, Article(n, n * 400),
                      None, None, at, None)
        for n in names
    ) + ((StoredArticle('edited', 'e', 'https://daily.example/x', Article('x', f'{cycle}'), None,
                        None, at, None),))
    relisted = (NewEntry('e1-0', Entry('https://daily.example/1-0', f'{cycle}'), f'f{cycle}'),)
    poll = Poll(f'daily#{cycle}', 'daily', cycle, at, at, at, 'new', 200, '', 5, 5, 6, True, False,
                1, 1, 0.0, Decision(at, 'r', 'fixed', {}))
    w.store_poll(PollResult(poll, Schedule('daily', at, 'r', cycle=cycle + 1), entries, relisted,
                            (), articles))
    print(cycle, flush=True)
"""


@pytest.mark.report("duckdb/duckdb#11814")
def test_kill_loses_nothing_acknowledged_and_leaves_no_part_of_a_poll(settings, other):
    acknowledged = 0
    for n_polls in (3, 17, 40):
        victim = other(KEEP_STORING)
        for _ in range(n_polls):
            acknowledged = int(victim.said())
        victim.kill()
        with Warehouse.open(settings, "test") as warehouse:
            last = warehouse.read_schedule("daily").cycle - 1
            assert last >= acknowledged
            there = count(warehouse)
            assert there["polls"] == last
            assert there["entries"] == 5 * last
            assert there["articles"] == 5 * last + 1
            assert there["article_versions"] == 6 * last
            assert there["article_heads"] == 5 * last + 1
            assert there["entry_changes"] == last
            edited = warehouse.query(
                "SELECT version, text FROM articles WHERE article_id = 'edited'"
            )
            assert edited == [(last, str(last))]


FILL_THE_DISK = """
import resource
from models.errors import WarehouseError
w = Warehouse.open(settings, 'small')
at = datetime(2026, 3, 1, 12, 0, tzinfo=UTC)
w.sync_sources([Source('daily', 'Daily', 'https://daily.example/')], at)
size = os.path.getsize(settings.database)
resource.setrlimit(resource.RLIMIT_FSIZE, (size + 300_000, size + 300_000))
for cycle in range(1, 1000):
    text = ''.join(chr(97 + (cycle * k * k) % 26) for k in range(30_000))
    article = StoredArticle(
        f'a{cycle}', 'e', 'https://x/', Article('t', text), None, None, at, None)
    poll = Poll(f'daily#{cycle}', 'daily', cycle, at, at, at, 'new', 200, '', 1, 1, 1, True, False,
                1, 1, 0.0, Decision(at, 'r', 'fixed', {}))
    try:
        schedule = Schedule('daily', at, 'r', cycle=cycle + 1)
        w.store_poll(PollResult(poll, schedule, articles=(article,)))
    except WarehouseError as error:
        print(cycle - 1, error, flush=True)
        break
try:
    w.read_schedules()
    print('readable', flush=True)
except WarehouseError as error:
    print(error, flush=True)
w.close()
"""


FAIL_THE_CHECKPOINT = """
import resource
from models.errors import WarehouseError
w = Warehouse.open(settings, 'small')
at = datetime(2026, 3, 1, 12, 0, tzinfo=UTC)
w.sync_sources([Source('daily', 'Daily', 'https://daily.example/')], at)
w._connection.execute("CHECKPOINT")
w._connection.execute("SET checkpoint_threshold = '1MB'")
size = os.path.getsize(settings.database)
resource.setrlimit(resource.RLIMIT_FSIZE, (size, size))
for cycle in range(1, 1000):
    text = os.urandom(15_000).hex()
    article = StoredArticle(
        f'a{cycle}', 'e', 'https://x/', Article('t', text), None, None, at, None)
    poll = Poll(f'daily#{cycle}', 'daily', cycle, at, at, at, 'new', 200, '', 1, 1, 1, True, False,
                1, 1, 0.0, Decision(at, 'r', 'fixed', {}))
    try:
        schedule = Schedule('daily', at, 'r', cycle=cycle + 1)
        w.store_poll(PollResult(poll, schedule, articles=(article,)))
    except WarehouseError as error:
        print(cycle - 1, w.has_failed, flush=True)
        if w.has_failed:
            break
w.close()
"""


def test_a_database_that_duckdb_gives_up_says_so_and_the_next_process_goes_on(settings, other):
    small = other(FAIL_THE_CHECKPOINT)
    stored, _, has_failed = small.said().partition(" ")
    assert has_failed == "True"
    assert small.process.wait(30) == 0
    with Warehouse.open(settings, "test") as warehouse:
        assert not warehouse.has_failed
        # What was written before the checkpoint failed is in the log, and is replayed.
        assert count(warehouse)["polls"] >= int(stored) > 0


def test_a_full_disk_is_one_clear_sentence_and_loses_nothing(settings, other):
    small = other(FILL_THE_DISK)
    stored, _, text = small.said().partition(" ")
    assert re.search(r"newsbeat\.duckdb: the disk is full, and nothing .* Free some space", text), (
        text
    )
    assert small.said() == "readable"
    assert small.process.wait(30) == 0
    with Warehouse.open(settings, "test") as warehouse:
        assert count(warehouse)["polls"] == int(stored) > 0
        assert count(warehouse)["articles"] == int(stored)


def test_a_damaged_file_is_named_with_a_way_out(settings):
    settings.folder.mkdir(parents=True)
    settings.database.write_bytes(b"not a database at all" * 1000)
    with pytest.raises(
        WarehouseError, match=r"newsbeat\.duckdb: the file is damaged\. Move it away"
    ):
        Warehouse.open(settings, "test")


def test_a_torn_header_is_named_too(settings):
    Warehouse.open(settings, "test").close()
    whole = settings.database.read_bytes()
    settings.database.write_bytes(whole[:8] + bytes(3 * 4096 - 8) + whole[3 * 4096 :])
    with pytest.raises(WarehouseError, match="damaged"):
        Warehouse.open(settings, "test")


@pytest.mark.skipif(os.geteuid() == 0, reason="root may write anywhere")
def test_a_folder_that_cannot_be_written_is_named(settings):
    settings.folder.mkdir(parents=True)
    settings.folder.chmod(0o500)
    with pytest.raises(WarehouseError, match="cannot be written"):
        Warehouse.open(settings, "test")


def test_a_file_in_the_place_of_the_folder_is_named(settings):
    settings.folder.parent.mkdir(parents=True)
    settings.folder.write_text("in the way")
    with pytest.raises(WarehouseError, match=str(settings.folder)):
        Warehouse.open(settings, "test")


def test_importing_the_writer_is_quick():
    code = "import tasks.warehouse, sys; assert 'pandas' not in sys.modules"
    assert subprocess.run([sys.executable, "-c", code], timeout=60).returncode == 0
