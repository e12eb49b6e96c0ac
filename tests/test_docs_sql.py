"""Every query and every piece of code in docs/sql.md runs and has something to show.

The queries of the other pages run.
"""

import re
import shutil
import subprocess
import sys
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest

from models.records import (
    Article,
    Decision,
    Entry,
    NewEntry,
    Page,
    PendingArticle,
    Poll,
    PollResult,
    Schedule,
    Source,
    StoredArticle,
)
from tasks.settings import Settings
from tasks.warehouse import Warehouse
from tasks.warehouse_reader import open_reader

ROOT = Path(__file__).parents[1]
PAGE = (ROOT / "docs" / "sql.md").read_text(encoding="utf-8")
QUERIES = re.findall(r"### (\d+)\. .*?```sql\n(.*?)```", PAGE, re.DOTALL)
PYTHON = re.findall(r"```python\n(.*?)```", PAGE, re.DOTALL)
ELSEWHERE = [
    (path.name, sql)
    for path in (ROOT / "README.md", *sorted((ROOT / "docs").glob("*.md")))
    if path.name != "sql.md"
    for sql in re.findall(r"```sql\n(.*?)```", path.read_text(encoding="utf-8"), re.DOTALL)
]
START = datetime(2026, 3, 1, 8, 0, tzinfo=UTC)


def store_story(warehouse: Warehouse) -> None:
    """Three sources over some hours: one is first, one follows, one is broken."""
    sources = [
        Source("daily", "The Daily", "https://daily.example/feed", timezone="Europe/Berlin"),
        Source("echo", "The Echo", "https://echo.example/feed"),
        Source("broken", "Broken News", "https://broken.example/feed"),
    ]
    warehouse.sync_sources(sources, START)
    store_poll(warehouse, "broken", 1, START)
    for cycle in range(1, 7):
        store_poll(warehouse, "daily", cycle, START + timedelta(hours=cycle))
        store_poll(warehouse, "echo", cycle, START + timedelta(hours=cycle, minutes=20))
        store_failure(warehouse, cycle + 1, START + timedelta(hours=cycle, minutes=30))


def store_poll(warehouse: Warehouse, source: str, cycle: int, at: datetime) -> None:
    name = f"{source}-{cycle}"
    url = f"https://{source}.example/{cycle}"
    listed = Entry(url, f"River rises past mark number {cycle}", None, at - timedelta(minutes=9))
    page = Page(f"page-{name}", source, url, at, 200, 5, "00", "2026-03-01/x.warc.gz", 7)
    text = "The river rose. " * 30
    articles = [article(name, source, url, listed.published_at, text, at, page)]
    pending = []
    if cycle == 4:
        # The article of an hour ago was edited, and one page does not come.
        before = f"{source}-{cycle - 1}"
        articles.append(article(before, source, url, None, text + "Edited.", at, page))
        pending.append(PendingArticle(f"owed-{name}", url, "T", None, at, 1, at, "no answer"))
    entries = [NewEntry(f"entry-{name}", listed, "f")]
    entries += [NewEntry(item.entry_id, Entry(url, "T"), "f") for item in pending]
    poll = Poll(
        f"{source}#{cycle}", source, cycle, at, at, at, "new", 200, "", 20, len(entries),
        len(articles), cycle != 5, cycle == 5, 20_000, 90_000, 0.1,
        Decision(at + timedelta(hours=1), "every hour", "fixed", {"interval_s": 3600}),
    )  # fmt: skip
    schedule = Schedule(source, poll.decision.due_at, "r", cycle=cycle + 1, last_success_at=at)
    warehouse.store_poll(
        PollResult(poll, schedule, tuple(entries), (), (page,), tuple(articles), tuple(pending))
    )


def article(
    name: str,
    source: str,
    url: str,
    published_at: datetime | None,
    text: str,
    at: datetime,
    page: Page,
) -> StoredArticle:
    cycle = name.rpartition("-")[2]
    made = Article(f"River rises past mark number {cycle}", text)
    return StoredArticle(
        f"article-{name}", f"entry-{name}", url, made, published_at, "listing", at, page
    )


def store_failure(warehouse: Warehouse, cycle: int, at: datetime) -> None:
    poll = Poll(
        f"broken#{cycle}", "broken", cycle, at, at, at, "failed", 503, "answered 503", 0, 0, 0,
        None, False, 300, 0, 0.01, Decision(at + timedelta(hours=1), "retry", "fixed", {}),
    )  # fmt: skip
    schedule = Schedule("broken", at, "retry", "failing", cycle + 1, cycle - 1)
    warehouse.store_poll(PollResult(poll, schedule))


@pytest.fixture(scope="module")
def settings(tmp_path_factory) -> Settings:
    settings = Settings(home=tmp_path_factory.mktemp("docs"))
    with Warehouse.open(settings, "test") as warehouse:
        store_story(warehouse)
    return settings


@pytest.fixture(scope="module")
def reader(settings):
    with open_reader(settings) as opened:
        yield opened


def test_there_are_ten_questions():
    assert [int(number) for number, _ in QUERIES] == list(range(1, 11))


@pytest.mark.parametrize(("number", "sql"), QUERIES)
def test_a_question_has_an_answer(reader, number, sql):
    table = reader.query(sql)
    assert table.rows, f"question {number} shows nothing"
    empty = [
        column
        for index, column in enumerate(table.columns)
        if all(row[index] is None for row in table.rows)
    ]
    assert empty == []


@pytest.mark.parametrize(("page", "sql"), ELSEWHERE)
def test_a_query_of_another_page_runs(reader, page, sql):
    assert reader.query(sql).columns


def answer(reader, number: int) -> list[dict[str, object]]:
    return reader.query(dict(QUERIES)[str(number)]).to_dicts()


def test_the_first_is_told(reader):
    rows = answer(reader, 2)
    assert {(row["first"], row["second"], row["minutes_later"]) for row in rows} >= {
        ("daily", "echo", 20)
    }
    assert all(row["first"] == "daily" for row in rows if row["minutes_later"] == 20)


def test_the_ledger_balances(reader):
    rows = {row["source"]: row for row in answer(reader, 3)}
    assert rows["daily"] == {"source": "daily", "listed": 7, "stored": 6, "owed": 1, "neither": 0}


def test_an_edit_is_told(reader):
    edits = answer(reader, 5)
    assert len(edits) == 2
    assert all(row["version"] == 2 and row["characters_added"] == len("Edited.") for row in edits)


def test_only_the_broken_source_is_broken(reader):
    (row,) = answer(reader, 7)
    assert (row["source"], row["consecutive_failures"]) == ("broken", 6)


def test_every_question_is_answered_the_same_by_the_worker(settings, reader, tmp_path):
    copy = Settings(home=tmp_path)
    copy.folder.mkdir(parents=True)
    shutil.copy(settings.database, copy.database)
    worker = start_worker(copy)
    try:
        with open_reader(copy) as through_worker:
            assert through_worker.is_live
            for _, sql in QUERIES:
                assert through_worker.query(sql).columns == reader.query(sql).columns
                assert len(through_worker.query(sql).rows) == len(reader.query(sql).rows)
    finally:
        worker.kill()
        worker.wait(10)
        worker.stdout.close()


def start_worker(settings: Settings) -> "subprocess.Popen[str]":
    code = (
        "import time\nfrom pathlib import Path\nfrom tasks.settings import Settings\n"
        "from tasks.warehouse import Warehouse\n"
        f"w = Warehouse.open(Settings(home=Path({str(settings.home)!r})), 'worker')\n"
        "w.serve()\nprint('serving', flush=True)\ntime.sleep(60)\n"
    )
    worker = subprocess.Popen(
        [sys.executable, "-c", code], stdout=subprocess.PIPE, text=True, cwd=ROOT
    )
    assert worker.stdout.readline().strip() == "serving"
    return worker


@pytest.mark.parametrize("code", PYTHON, ids=["attach_live", "by hand"])
def test_the_notebook_code_runs_beside_a_worker(settings, tmp_path, code):
    copy = Settings(home=tmp_path)
    copy.folder.mkdir(parents=True)
    shutil.copy(settings.database, copy.database)
    worker = start_worker(copy)
    try:
        checked = code + "assert len(frame) > 0\n"
        path = f"import sys; sys.path.insert(0, {str(ROOT)!r})\n"
        run = subprocess.run(
            [sys.executable, "-c", path + checked], cwd=tmp_path, capture_output=True, text=True,
            timeout=60,
        )  # fmt: skip
        assert run.returncode == 0, run.stderr
    finally:
        worker.kill()
        worker.wait(10)
        worker.stdout.close()


def test_the_diagram_shows_tables_and_columns_that_exist(reader):
    diagram = PAGE.split("```mermaid\n")[1].split("```")[0]
    kinds = {
        (table, column): kind.replace("TIMESTAMP WITH TIME ZONE", "TIMESTAMPTZ").partition("(")[0]
        for table, column, kind in reader.query(
            "SELECT table_name, column_name, data_type FROM duckdb_columns() WHERE NOT internal"
        ).rows
    }
    tables = re.findall(r"^    (\w+) \{\n(.*?)^    \}", diagram, re.DOTALL | re.MULTILINE)
    for table, lines in tables:
        for kind, column in re.findall(r"^ +(\w+) (\w+)", lines, re.MULTILINE):
            assert kinds[table, column] == kind, (table, column)
    shown = {table for table, _ in tables} | {"entry_heads", "article_heads", "schema_migrations"}
    rows = reader.query("SELECT table_name FROM duckdb_tables()").rows
    assert shown == {name for (name,) in rows}


def test_every_view_is_listed(reader):
    listed = re.findall(r"^\| `(\w+)` \|", PAGE, re.MULTILINE)
    rows = reader.query("SELECT view_name FROM duckdb_views() WHERE NOT internal").rows
    assert set(listed) == {name for (name,) in rows}
