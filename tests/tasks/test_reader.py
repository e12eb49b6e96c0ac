"""Readers: the same answers beside a running worker and without one, and only answers."""

import subprocess
import sys
import time
from datetime import UTC, datetime

import duckdb
import pytest

from models.errors import WarehouseError
from tasks.settings import Settings
from tasks.warehouse import Warehouse
from tasks.warehouse_reader import attach_live, open_reader

SERVE = """
w = Warehouse.open(settings, 'newsbeat worker')
w.sync_sources([Source('daily', "The Daily's", 'https://daily.example/')],
               datetime(2026, 3, 1, tzinfo=UTC))
w.serve()
print('serving', flush=True)
"""
WAIT = "input()\nw.close()\nprint('closed', flush=True)\n"
KEEP_WRITING = """
at = datetime(2026, 3, 1, tzinfo=UTC)
for cycle in range(1, 1_000_000):
    entries = tuple(NewEntry(f'{cycle}-{n}', Entry('https://x/', 'T'), 'f') for n in range(5))
    poll = Poll(f'daily#{cycle}', 'daily', cycle, at, at, at, 'new', 200, '', 5, 5, 0, True, False,
                1, 1, 0.0, Decision(at, 'r', 'fixed', {}))
    w.store_poll(PollResult(poll, Schedule('daily', at, 'r', cycle=cycle + 1), entries))
"""


@pytest.fixture(scope="module", params=["live", "file"])
def reader(request, launch, tmp_path_factory):
    """A reader of one warehouse, once through a worker, once of the file it left."""
    settings = Settings(home=tmp_path_factory.mktemp(request.param))
    worker = launch(settings, SERVE + WAIT)
    assert worker.said() == "serving"
    if request.param == "file":
        worker.go_on()
        assert worker.said() == "closed"
        worker.process.wait(20)
    with open_reader(settings) as opened:
        assert opened.is_live == (request.param == "live")
        yield opened
    worker.kill()


@pytest.fixture(scope="module")
def served(launch, tmp_path_factory):
    """Settings of a warehouse that a worker serves."""
    settings = Settings(home=tmp_path_factory.mktemp("served"))
    worker = launch(settings, SERVE + WAIT)
    assert worker.said() == "serving"
    yield settings
    worker.kill()


@pytest.mark.parametrize(
    ("sql", "rows"),
    [
        ("SELECT source, title FROM sources", [("daily", "The Daily's")]),
        ("FROM sources SELECT weight", [(1.0,)]),
        ("WITH x AS (SELECT 1 AS y) SELECT y FROM x;", [(1,)]),
        ("VALUES (1, 'it''s')", [(1, "it's")]),
        ("-- why\nSELECT tags FROM sources", [([],)]),
        ("SELECT count(*) FROM lag_by_source_day", [(0,)]),
        ("SELECT read_at FROM sources", [(datetime(2026, 3, 1, tzinfo=UTC),)]),
        ("SELECT read_at::VARCHAR FROM sources", [("2026-03-01 00:00:00+00",)]),
    ],
)
def test_what_reads_is_answered(reader, sql, rows):
    assert list(reader.query(sql).rows) == rows


@pytest.mark.parametrize(
    "sql", ["SHOW TABLES", "DESCRIBE polls", "SUMMARIZE sources", "EXPLAIN SELECT 1"]
)
def test_what_describes_is_answered(reader, sql):
    table = reader.query(sql)
    assert table.rows
    assert table.to_dicts()[0].keys() == set(table.columns)


@pytest.mark.parametrize(
    "sql",
    [
        "DELETE FROM sources",
        "INSERT INTO sources SELECT * FROM sources",
        "WITH x AS (SELECT 1) INSERT INTO entry_heads SELECT 'a', 1, 'b' FROM x",
        "UPDATE sources SET title = 'x'",
        "CREATE TABLE t (a INTEGER)",
        "CREATE TEMP TABLE t (a INTEGER)",
        "DROP VIEW source_health",
        "COPY sources TO '/tmp/out.csv'",
        "ATTACH '/tmp/out.duckdb'",
        "SET threads = 1",
        "PRAGMA database_size",
        "CHECKPOINT",
        "CALL force_checkpoint()",
        "LOAD httpfs",
        "EXPLAIN ANALYZE DELETE FROM sources",
        "explain delete from sources",
        "BEGIN",
        "SELECT * FROM quack_stop('quack:127.0.0.1:1')",
        "SELECT * FROM query('SELECT 1')",
        "SELECT * FROM \"quack_query\"('a', 'b')",
    ],
)
def test_what_does_more_than_read_is_refused(reader, sql):
    with pytest.raises(WarehouseError, match="only statements that read are answered"):
        reader.query(sql)
    assert list(reader.query("SELECT count(*) FROM sources").rows) == [(1,)]


@pytest.mark.parametrize("sql", ["SELECT 1; DROP TABLE polls", "", "  -- nothing"])
def test_one_statement_at_a_time(reader, sql):
    with pytest.raises(WarehouseError, match=r"one statement at a time, not [02]"):
        reader.query(sql)


@pytest.mark.parametrize("sql", ["SELECT * FROM read_text('/etc/hostname')", "FROM '/etc/passwd'"])
def test_no_other_file_of_the_machine_is_reached(reader, sql):
    with pytest.raises(WarehouseError):
        reader.query(sql)


@pytest.mark.parametrize(
    ("sql", "says"),
    [
        ("SELEC 1", 'syntax error at or near "SELEC"'),
        (
            "SELECT * FROM artcles",
            'Table with name artcles does not exist; did you mean "articles"',
        ),
        ("SELECT nosuch FROM polls", '"nosuch" not found'),
        ("SELECT *\nFROM polls\nWHERE disk_full", '"disk_full" not found'),
        ("SELECT error('file corrupt')", "file corrupt"),
        ("SELECT CAST('x' AS INTEGER)", "Could not convert string 'x' to INT32"),
    ],
)
def test_a_mistake_is_named_in_one_line(reader, sql, says):
    with pytest.raises(WarehouseError) as caught:
        reader.query(sql)
    text = str(caught.value)
    assert says in text
    assert "\n" not in text
    assert "docs/sql.md" in text
    assert "token" not in text


def test_status_is_told_by_a_reader_too(reader):
    (row,) = reader.read_status(datetime(2026, 3, 1, tzinfo=UTC))
    assert (row.source, row.title, row.state) == ("daily", "The Daily's", "active")


# DuckDB 1.5.5 calls pandas 3.1 in a way that pandas is about to drop.
@pytest.mark.filterwarnings("ignore:The inplace keyword")
def test_a_notebook_attaches_it_and_has_its_own_tables_beside(reader):
    with attach_live(reader.settings) as connection:
        assert connection.execute("SELECT source FROM newsbeat.sources").fetchall() == [("daily",)]
        connection.execute("CREATE TABLE mine AS SELECT 'daily' AS source, 7 AS score")
        joined = "SELECT title, score FROM newsbeat.sources JOIN mine USING (source)"
        assert connection.execute(joined).fetchall() == [("The Daily's", 7)]
        frame = connection.execute("FROM newsbeat.source_health").df()
        assert list(frame["source"]) == ["daily"]


@pytest.mark.parametrize(
    "sql",
    [
        "INSERT INTO newsbeat.entry_heads VALUES ('a', 1, 'b')",
        "CREATE TABLE newsbeat.t (a INTEGER)",
        "DROP TABLE newsbeat.polls",
        "DELETE FROM newsbeat.sources",
        "FROM newsbeat.query('DELETE FROM sources')",
    ],
)
def test_attaching_does_not_open_a_way_to_write(served, sql):
    with attach_live(served) as connection:
        with pytest.raises(duckdb.Error):
            connection.execute(sql).fetchall()
        assert connection.execute("SELECT count(*) FROM newsbeat.sources").fetchall() == [(1,)]
        assert connection.execute("SELECT count(*) FROM newsbeat.entry_heads").fetchall() == [(0,)]


def test_a_wrong_token_is_turned_away(settings, other):
    import duckdb

    worker = other(SERVE + WAIT)
    worker.said()
    with (
        open_reader(settings) as reader,
        pytest.raises(duckdb.Error, match="Authentication failed"),
    ):
        reader._connection.execute(
            f"FROM quack_query('{reader.endpoint.address}', 'SELECT 1', "
            "token = 'guessed', disable_ssl = true)"
        ).fetchall()


@pytest.mark.report("Maxteabag/sqlit#80")
def test_a_reader_sees_whole_polls_while_the_worker_writes(settings, other):
    worker = other(SERVE + KEEP_WRITING)
    worker.said()
    counts = []
    with open_reader(settings) as reader:
        for _ in range(30):
            sql = "SELECT (SELECT count(*) FROM polls), (SELECT count(*) FROM entries)"
            counts += reader.query(sql).rows
    assert all(n_entries == 5 * n_polls for n_polls, n_entries in counts)
    assert counts[-1][0] > counts[0][0]
    assert worker.process.poll() is None


def test_a_killed_worker_s_endpoint_misleads_nobody(settings, other):
    worker = other(SERVE + WAIT)
    worker.said()
    with open_reader(settings) as reader:
        worker.kill()
        with pytest.raises(WarehouseError, match=r"has stopped\. Ask again"):
            reader.query("SELECT 1")
    assert (settings.folder / "endpoint.json").exists()
    with open_reader(settings) as reader:
        assert not reader.is_live
        assert list(reader.query("SELECT source FROM sources").rows) == [("daily",)]


def test_a_writer_that_does_not_serve_is_named(settings):
    with Warehouse.open(settings, "newsbeat poll"):
        started = time.monotonic()
        with pytest.raises(
            WarehouseError, match=r"in use by newsbeat poll \(pid .*answers no queries"
        ):
            open_reader(settings)
        assert time.monotonic() - started < 10


def test_a_reader_waits_for_a_worker_that_is_starting(settings, other):
    slow = (
        "w = Warehouse.open(settings, 'newsbeat worker')\nprint('open', flush=True)\n"
        "time.sleep(0.7)\nw.serve()\ninput()"
    )
    worker = other(slow)
    worker.said()
    with open_reader(settings) as reader:
        assert reader.is_live


def test_readers_do_not_keep_a_worker_from_starting(settings, other):
    Warehouse.open(settings, "test").close()
    asking = (
        "from tasks.duck.lease import read_holder\nprint('asking', flush=True)\n"
        "while True: read_holder(settings.folder)"
    )
    other(asking).said()
    for _ in range(20):
        Warehouse.open(settings, "test").close()


def test_a_file_held_by_another_program_is_named(settings, other):
    Warehouse.open(settings, "test").close()
    foreign = other(
        "import duckdb\n"
        "connection = duckdb.connect(str(settings.database))\n"
        "print('open', flush=True)\n"
        "input()"
    )
    foreign.said()
    with pytest.raises(WarehouseError, match=f"PID {foreign.process.pid}"):
        open_reader(settings)


def test_no_warehouse_yet_says_what_to_do(tmp_path):
    with pytest.raises(WarehouseError, match=r"there is no warehouse yet.*newsbeat up"):
        open_reader(Settings(home=tmp_path))
    assert list(tmp_path.iterdir()) == []


def test_reading_does_not_load_pandas(settings):
    Warehouse.open(settings, "test").close()
    code = f"""
import sys
from pathlib import Path
from tasks.settings import Settings
from tasks.warehouse_reader import open_reader
with open_reader(Settings(home=Path({str(settings.home)!r}))) as reader:
    reader.query("SELECT * FROM sources")
assert "pandas" not in sys.modules
"""
    assert subprocess.run([sys.executable, "-c", code], timeout=60).returncode == 0


# For minutes, whoever asked having long left.
ENDLESS = (
    "SELECT count(*) FROM range(1000000) a, range(100000000) b WHERE (a.range*b.range) % 7 = 3"
)


def test_a_query_that_never_ends_is_known_and_does_not_keep_the_worker_from_ending(settings, other):
    worker = other(
        SERVE
        + "input()\nseconds, query = w.longest_query()\nprint(seconds > 0.5, query, flush=True)\n"
        + WAIT
    )
    assert worker.said() == "serving"
    ask = (
        f"from tasks.warehouse_reader import open_reader; open_reader(settings).query({ENDLESS!r})"
    )
    asking = other(ask)
    time.sleep(2.0)
    asking.kill()
    worker.go_on()
    assert worker.said() == f"True {ENDLESS}"
    worker.go_on()
    assert worker.said() == "closed"
    assert worker.process.wait(20) == 0


def test_no_query_runs_where_none_is_asked(settings, other):
    worker = other(SERVE + "print(w.longest_query(), flush=True)\n" + WAIT)
    assert worker.said() == "serving"
    assert worker.said() == "(0.0, '')"
    worker.go_on()
    assert worker.said() == "closed"
