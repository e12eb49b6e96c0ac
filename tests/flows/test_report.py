"""`newsbeat report` and its nightly flow, over two weeks of a small invented press."""

from __future__ import annotations

import asyncio
import contextlib
import csv
import io
import json
import shutil
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import duckdb
import pytest
from click.testing import CliRunner, Result

from flows.cli import main
from flows.daily import make_sheets, render_report, write_day_report
from flows.duties import REPORT, deploy_duty
from flows.page import StatusPages
from flows.worker import Worker
from models.errors import ConfigError, NewsbeatError
from tasks.clock import Clock
from tasks.orchestrator import Orchestrator
from tasks.replay.sample import SAMPLE_START
from tasks.settings import ReportSettings, Settings
from tasks.warehouse import Warehouse

POOL = "newsbeat-report-tests"
START = SAMPLE_START


@pytest.fixture
def settings(tmp_path: Path, fortnight: Path) -> Settings:
    settings = Settings(home=tmp_path)
    shutil.copytree(fortnight, settings.folder)
    return settings


def report(settings: Settings, *words: str) -> Result:
    return CliRunner().invoke(main, ["report", "--home", str(settings.home), *words])


def test_the_report_of_today_names_what_happened(settings):
    found = json.loads(report(settings, "--day", "today", "--json").output)
    sections = found["sections"]
    assert {row["source"] for row in sections["hits"] if row["level"] == 1} <= {"harbour"}
    assert {row["source"] for row in sections["outlets"]} >= {"harbour", "spit", "quay"}
    assert {row["tag"] for row in sections["tags"]} == {"local", "port", "world"}
    assert sections["checks"][0]["drifted"] is True
    assert all(row["n_neither"] == 0 for row in sections["coverage"])
    assert len(sections["days"]) == 15


def test_by_default_it_is_of_yesterday_and_lies_in_a_folder_of_that_day(settings):
    result = report(settings)
    yesterday = (datetime.now(UTC) - timedelta(days=1)).date()
    folder = settings.home / "data" / "reports" / yesterday.isoformat()
    assert result.exit_code == 0
    assert str(folder / "report.html") in result.output
    names = {path.name for path in folder.iterdir()}
    assert {"report.md", "report.html", "status.html", "hits.csv", "hits.parquet"} <= names


def test_twice_is_as_once(settings):
    folder = settings.home / "out"
    first = write_day_report(settings, None, folder)
    names = sorted(path.name for path in folder.iterdir())
    assert write_day_report(settings, None, folder).report.lines == first.report.lines
    assert sorted(path.name for path in folder.iterdir()) == names


def test_tables_read_back_as_they_were(settings):
    written = write_day_report(settings, None, settings.home / "out")
    for sheet in make_sheets(written.report):
        path = written.folder / f"{sheet.name}.parquet"
        rows = duckdb.sql(f"SELECT * FROM '{path}'").fetchall()
        assert len(rows) == len(sheet.rows)
        with (written.folder / f"{sheet.name}.csv").open(encoding="utf-8-sig", newline="") as file:
            head, *lines = list(csv.reader(file))
        assert head == [name for name, _ in sheet.columns]
        assert len(lines) == len(sheet.rows)


def test_no_cell_of_a_table_is_a_formula(settings):
    written = write_day_report(settings, None, settings.home / "out")
    cells = [
        cell
        for path in written.folder.glob("*.csv")
        for row in csv.reader(io.StringIO(path.read_text(encoding="utf-8-sig"), newline=""))
        for cell in row
    ]
    assert [cell for cell in cells if "HYPERLINK" in cell]
    assert [cell for cell in cells if cell[:1] in ("=", "+", "@", "\t")] == []


def test_its_page_needs_no_other_file_and_holds_no_markup_of_strangers(settings):
    written = write_day_report(settings, None, settings.home / "out")
    for name in ("report.html", "status.html"):
        page = (written.folder / name).read_text(encoding="utf-8")
        assert "<script" not in page
        assert "<img" not in page
        assert 'src="' not in page
        assert 'href="/' not in page
        assert "default-src &#39;none&#39;; style-src &#39;sha256-" in page
    assert render_report(written.report).count("<h1>") == 1


def test_it_is_read_through_the_worker_where_one_runs(settings):
    with Warehouse.open(settings, "newsbeat worker") as warehouse:
        warehouse.serve()
        assert write_day_report(settings).report.section("outlets").rows


@pytest.mark.parametrize(
    ("words", "says"),
    [
        (["--day", "2026-02-30"], "a day is written 2026-03-01"),
        (["--day", "soon"], "a day is written 2026-03-01"),
    ],
)
def test_a_day_that_is_none_is_refused(settings, words, says):
    result = report(settings, *words)
    assert result.exit_code == 1
    assert says in result.output


def test_a_day_before_everything_is_an_empty_report(settings):
    found = json.loads(report(settings, "--day", "2001-01-01", "--json").output)
    assert found["lines"][-1] == "Nothing was collected on that day."


def test_a_zone_that_is_none_is_refused_by_name(settings):
    with pytest.raises(ConfigError, match=r"report\.timezone.*Europe/Berlin"):
        write_day_report(
            Settings(home=settings.home, report=ReportSettings(timezone="Mars/Olympus"))
        )


def test_an_empty_warehouse_says_what_to_do(tmp_path):
    settings = Settings(home=tmp_path)
    Warehouse.open(settings, "test").close()
    with pytest.raises(NewsbeatError, match="nothing was collected yet"):
        write_day_report(settings)


def test_a_folder_that_cannot_be_written_is_said(settings):
    (settings.home / "out").write_text("a file")
    result = report(settings, "--out", str(settings.home / "out" / "deeper"))
    assert result.exit_code == 1
    assert "cannot be written" in result.output


def test_reports_are_on_the_status_page(settings):
    pages = StatusPages(settings)
    assert "None yet" in str(pages.answer("/reports", {}).body)
    written = write_day_report(settings)
    day = written.folder.name
    assert f'href="/reports/{day}/report.html"' in str(pages.answer("/reports", {}).body)
    page = pages.answer(f"/reports/{day}/report.html", {})
    assert (page.status, "style-src 'sha256-" in page.policy) == (200, True)
    table = pages.answer(f"/reports/{day}/hits.csv", {})
    assert table.file_name == f"{day}-hits.csv"


@pytest.mark.parametrize(
    "path",
    ["2026-03-01/../../newsbeat.toml", "../newsbeat.toml", "2026-03-01/report.html", "", "x.html"],
)
def test_only_files_of_reports_are_sent(settings, path):
    (settings.home / "newsbeat.toml").write_text("", encoding="utf-8")
    assert StatusPages(settings).answer(f"/reports/{path}", {}).status == 404


async def read_artifact(orchestrator: Orchestrator, run_id: Any) -> dict[str, Any]:
    body = {"artifacts": {"flow_run_id": {"any_": [str(run_id)]}}}
    rows = (await orchestrator.client.request("POST", "/artifacts/filter", json=body)).json()
    return next(row for row in rows if row["key"] == "report")


@pytest.mark.server
async def test_the_worker_writes_it_beside_its_polls_and_shows_it_in_prefect(
    prefect_server, open_newsroom, make_recorded, new_name, worker_settings
):
    name = new_name("reported")
    recorded = make_recorded(source=name, host=f"{name}.example")
    sections = {"worker": worker_settings()}
    async with (
        open_newsroom(recorded, clock=Clock.starting_at(START, 1.0), **sections) as room,
        Orchestrator(POOL) as orchestrator,
    ):
        await room.polled(name)
        room.collector.warehouse.serve()
        worker = Worker(room.settings, room.collector, orchestrator)
        await worker.prepare()
        task = asyncio.create_task(worker.run())
        try:
            run_id = await orchestrator.start_run(REPORT.deployment)
            async with asyncio.timeout(90):
                while (outcome := await orchestrator.read_outcome(run_id)) is None:
                    await asyncio.sleep(0.2)
            state, words = outcome
            assert state == "completed", words
            assert words.startswith("News of ")
            artifact = await read_artifact(orchestrator, run_id)
            assert artifact["data"].startswith("# News of ")
            assert f"| {name} |" in artifact["data"]
            assert list((room.settings.home / "data" / "reports").glob("*/report.html"))
        finally:
            task.cancel()
            with contextlib.suppress(asyncio.CancelledError):
                await task


@pytest.mark.server
async def test_it_is_deployed_for_every_night(prefect_server):
    async with Orchestrator(POOL) as orchestrator:
        await orchestrator.ensure_work_pool()
        deployment_id = await deploy_duty(orchestrator, REPORT, "00:20")
        found = await orchestrator.client.read_deployment(deployment_id)
        assert [item.schedule.cron for item in found.schedules] == ["20 0 * * *"]
