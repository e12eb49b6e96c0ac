"""`newsbeat export`: everything out, and back in as it was."""

from __future__ import annotations

import csv
import dataclasses
import io
import json
import shutil
import tomllib
import xml.etree.ElementTree as ET
from pathlib import Path

import duckdb
import pytest
from click.testing import CliRunner, Result

from flows.cli import main
from flows.exporting import TABLES, export_table
from flows.page import StatusPages
from models.search import SavedSearch
from tasks.catalogue import read_catalogue
from tasks.searches import read_searches
from tasks.settings import Settings
from tasks.warehouse import Warehouse

ENTRY = "{http://www.w3.org/2005/Atom}entry"


@pytest.fixture
def settings(tmp_path: Path, fortnight: Path) -> Settings:
    settings = Settings(home=tmp_path)
    shutil.copytree(fortnight, settings.folder)
    return settings


def export(settings: Settings, *words: str) -> Result:
    return CliRunner().invoke(main, ["export", "--home", str(settings.home), *words])


def count(settings: Settings, table: str) -> int:
    with Warehouse.open(settings, "test") as warehouse:
        return int(warehouse.query(f"SELECT count(*) FROM {table}")[0][0])


@pytest.mark.parametrize("table", TABLES)
def test_every_table_is_written_whole_in_every_form(settings, table):
    expected = count(settings, table)
    for form in ("csv", "jsonl", "parquet"):
        path = settings.home / f"{table}.{form}"
        assert export_table(settings, table, path, form) == expected
    assert duckdb.sql(f"FROM '{settings.home / table}.parquet'").fetchall() is not None
    lines = (settings.home / f"{table}.jsonl").read_text("utf-8").splitlines()
    assert len([json.loads(line) for line in lines]) == expected


def test_a_table_is_the_same_through_a_worker(settings):
    before = export(settings, "--format", "csv", "--what", "articles").stdout
    assert before.count("\n") > 4000
    with Warehouse.open(settings, "newsbeat worker") as warehouse:
        warehouse.serve()
        assert export(settings, "--format", "csv", "--what", "articles").stdout == before


def test_no_cell_of_a_table_is_a_formula(settings):
    text = export(settings, "--format", "csv").stdout
    rows = list(csv.DictReader(io.StringIO(text, newline="")))
    assert [row["title"] for row in rows if row["title"].startswith("'=HYPERLINK")]
    assert not [cell for row in rows for cell in row.values() if cell[:1] in ("=", "+", "@")]


def test_only_the_last_days_are_written_where_that_is_asked_for(settings):
    text = export(settings, "--format", "jsonl", "--since", "1d").stdout
    assert 0 < len(text.splitlines()) < count(settings, "articles") / 5


@pytest.mark.parametrize(
    ("words", "says"),
    [
        (["--format", "csv", "--what", "secrets"], "none of articles"),
        (["--format", "csv", "--what", "x; DROP TABLE polls"], "none of articles"),
        (["--format", "csv", "--what", "sources", "--since", "1d"], "of no time"),
        (["--format", "csv", "--since", "soon"], "no span"),
        (["--format", "atom", "--search", "nothing"], "none of all, urgent"),
    ],
)
def test_a_wrong_wish_is_named(settings, words, says):
    result = export(settings, *words)
    assert result.exit_code == 1
    assert says in result.output


def test_the_catalogue_goes_out_as_opml(settings):
    outlines = ET.fromstring(export(settings, "--format", "opml").stdout).iter("outline")
    assert len(list(outlines)) == len(read_catalogue(settings).sources)


def titles(settings: Settings, search: str) -> list[str]:
    found = json.loads(export(settings, "--format", "json-feed", "--search", search).stdout)
    return [item["title"] for item in found["items"]]


def test_a_saved_search_finds_by_word_tag_rule_and_level(settings):
    (settings.home / "data" / "searches.toml").write_text(
        """
        [floods]
        any = ["flood*", "паводок"]
        none = ["budget"]
        [bridge]
        all = ["harbour", "bridge"]
        tags = ["port"]
        [chinese]
        any = "大桥"
        limit = 3
        [ruled]
        rules = ["floods"]
        level = 1
        """,
        encoding="utf-8",
    )
    assert set(titles(settings, "floods")) == {
        "Storm flood closes the old harbour bridge until Friday"
    }
    assert titles(settings, "bridge")
    assert len(titles(settings, "chinese")) == 3
    assert titles(settings, "ruled")
    assert len(titles(settings, "all")) == 50


def test_a_wrong_search_is_named_and_the_others_work(settings):
    (settings.home / "data" / "searches.toml").write_text(
        '[good]\nany = ["flood*"]\n[bad]\nwords = ["x"]\n', encoding="utf-8"
    )
    assert titles(settings, "good")
    assert "keys are title, any" in export(settings, "--format", "atom", "--search", "bad").output
    assert "keys are title, any" in str(StatusPages(settings).answer("/feeds", {}).body)


def test_feeds_are_on_the_status_page(settings):
    pages = StatusPages(settings)
    assert 'href="/feed/urgent.atom"' in str(pages.answer("/feeds", {}).body)
    answer = pages.answer("/feed/urgent.atom", {})
    assert answer.content_type.startswith("application/atom+xml")
    assert list(ET.fromstring(str(answer.body)).iter(ENTRY))
    assert json.loads(pages.answer("/feed/all.json", {}).body)["items"]
    assert pages.answer("/feed/nobody.atom", {}).status == 404
    assert pages.answer("/feed/../all.atom", {}).status == 404


def test_what_is_held_back_is_in_no_feed(settings):
    found = json.loads(StatusPages(settings).answer("/feed/all.json", {}).body)
    ids = {item["id"].rpartition(":")[2] for item in found["items"]}
    with Warehouse.open(settings, "test") as warehouse:
        held = warehouse.query("SELECT article_id FROM articles WHERE quarantined")
    assert not ids & {article_id for (article_id,) in held}


def test_the_search_of_the_documentation_is_accepted_and_shows_every_key(settings):
    text = (Path(__file__).parents[2] / "docs" / "export.md").read_text(encoding="utf-8")
    example = text.split("```toml\n")[1].split("```")[0]
    (settings.home / "data" / "searches.toml").write_text(example, encoding="utf-8")
    searches, problems = read_searches(settings)
    assert problems == []
    assert searches["harbour"].languages == ("en", "ru", "zh")
    keys = {item.name for item in dataclasses.fields(SavedSearch)} - {"search"}
    assert set(tomllib.loads(example)["harbour"]) == keys
    assert titles(settings, "harbour") == []
