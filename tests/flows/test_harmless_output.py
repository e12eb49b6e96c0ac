"""What publishers wrote is text wherever we show it: no terminal, page or spreadsheet obeys it."""

from __future__ import annotations

import csv
import io
import json
import logging
import re
import shutil
from datetime import UTC, datetime
from email import message_from_string
from email.policy import default
from html.parser import HTMLParser
from pathlib import Path
from xml.etree import ElementTree as ET

import pytest
from click.testing import CliRunner, Result
from rich.text import Text

from flows.cli import main
from flows.commands.screen import Column, SafeConsole, fit_table
from flows.page import StatusPages
from models.errors import ParseError
from models.harmless import escape_markdown, one_line, printable, spell_json, spreadsheet_cell
from models.triage.ladder import Draft, Notice
from models.triage.message import write_body, write_title
from tasks.channels import Channels
from tasks.settings import PageSettings, Settings
from tasks.warehouse import Warehouse

HOSTILE = (
    '=HYPERLINK("http://a.example")\x1b]0;owned\x07\x1b[31m\x1b[2J\x9b2J\u202egpj.exe\u2066\u200b'
    "\r\nBcc: all@a.example\r\n[/bold]<script>alert(1)</script>[x](javascript:alert(1))|`y`"
    "|\x7f\x08"
)
URL = "javascript:alert(1)//\x1b[31m\r\nX"
TABLES = {
    "articles": ("title", "text", "url"),
    "article_versions": ("title", "text"),
    "entries": ("title", "summary", "url"),
    "polls": ("reason",),
    "schedule": ("reason",),
    "sources": ("title",),
    "page_verdicts": ("reason",),
    "rule_hits": ("sentence", "matched", "explanation"),
    "notices": ("subject", "text"),
}


@pytest.fixture(scope="module")
def hostile_folder(fortnight: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A warehouse in which every word of publishers is an attack."""
    settings = Settings(home=tmp_path_factory.mktemp("hostile"))
    shutil.copytree(fortnight, settings.folder)
    with Warehouse.open(settings, "test") as warehouse:
        for table, columns in TABLES.items():
            for column in columns:
                text = URL if column == "url" else HOSTILE
                escaped = text.replace("'", "''")
                warehouse.query(f"UPDATE {table} SET {column} = '{escaped}'")
    return settings.folder


@pytest.fixture
def settings(tmp_path: Path, hostile_folder: Path) -> Settings:
    settings = Settings(home=tmp_path, page=PageSettings(port=0))
    shutil.copytree(hostile_folder, settings.folder)
    return settings


def run(settings: Settings, command: str, *words: str) -> Result:
    result = CliRunner().invoke(main, [command, "--home", str(settings.home), *words])
    assert result.exception is None or isinstance(result.exception, SystemExit), result.exception
    return result


def acting(text: str) -> set[str]:
    """Return the characters of a text that a terminal might obey."""
    return {mark for mark in text if not mark.isprintable() and mark != "\n"}


COMMANDS = [
    ("status",),
    ("status", "--json"),
    ("notices", "--hours", "999"),
    ("notices", "--hours", "999", "--json"),
    ("sql", "SELECT title, text, url FROM articles LIMIT 3"),
    ("sql", "--json", "SELECT title, text, url FROM articles LIMIT 3"),
    ("sql", "SELECT reason::INTEGER FROM polls"),
    ("report", "--day", "today"),
    ("report", "--day", "today", "--json"),
    ("doctor",),
    ("export", "--format", "atom", "--search", "all"),
    ("export", "--format", "json-feed", "--search", "all"),
]


@pytest.mark.parametrize("words", COMMANDS, ids=" ".join)
def test_no_command_prints_what_a_terminal_obeys(
    settings: Settings, words: tuple[str, ...]
) -> None:
    searches = settings.home / "data" / "searches.toml"
    searches.parent.mkdir(exist_ok=True)
    searches.write_text('[[search]]\nsearch = "all"\n', encoding="utf-8")
    result = run(settings, *words)
    assert result.output
    assert acting(result.output) == set()


@pytest.mark.parametrize("as_json", [False, True])
@pytest.mark.parametrize("kind", ["feed", "article", "list", "sitemap"])
def test_inspect_prints_nothing_that_a_terminal_obeys(
    settings: Settings, tmp_path: Path, kind: str, as_json: bool
) -> None:
    words = HOSTILE.replace("<", "&lt;")
    pages = {
        "feed": f"<rss><channel><title>{words}</title><item><title>{words}</title>"
        f"<link>https://a.example/1</link><guid>{words}</guid></item></channel></rss>",
        "article": f"<html><title>{words}</title><article>" + f"<p>{words}</p>" * 20,
        "list": "".join(f"<a href='/2024/05/06/{n}-x.html'>{n} {words}</a>" for n in range(9)),
        "sitemap": f"<urlset><url><loc>https://a.example/1</loc><x>{words}</x></url></urlset>",
    }
    file = tmp_path / "page"
    file.write_text(pages[kind], encoding="utf-8")
    result = run(settings, "inspect", str(file), "--kind", kind, *(["--json"] if as_json else []))
    assert acting(result.output) == set()
    if as_json:
        assert json.loads(result.stdout)


def test_half_a_surrogate_pair_ends_no_command(settings: Settings, tmp_path: Path) -> None:
    file = tmp_path / "feed.json"
    item = r'{"id": "\ud800", "url": "https://a.example/1", "title": "One \udfff two"}'
    file.write_text(f'{{"version": "1", "title": "\\ud83d", "items": [{item}]}}')
    for more in ((), ("--json",)):
        result = run(settings, "inspect", str(file), "--kind", "feed", *more)
        assert result.exit_code == 0
        assert acting(result.output) == set()


def test_match_prints_nothing_that_a_terminal_obeys(settings: Settings, tmp_path: Path) -> None:
    rules = tmp_path / "rules.toml"
    rules.write_text('[[rule]]\nrule = "x"\nlevel = 3\nmode = "substring"\nany = ["owned"]\n')
    file = tmp_path / "text"
    file.write_text(HOSTILE, encoding="utf-8")
    for more in ((), ("--json",)):
        result = run(settings, "match", str(file), "--rules", str(rules), *more)
        assert "owned" in result.output
        assert acting(result.output) == set()


def test_an_error_prints_nothing_that_a_terminal_obeys(settings: Settings) -> None:
    result = run(settings, "inspect", "/nowhere/\x1b[31m\u202e", "--kind", "feed")
    assert result.exit_code == 1
    assert "not readable" in result.output
    assert acting(result.output) == set()


def test_a_table_shows_brackets_as_they_are_and_no_controls() -> None:
    console = SafeConsole(width=80, file=io.StringIO(), force_terminal=False)
    console.print(fit_table([Column("title", ["[/red] \x1b[2J\u202e", "[bold]b"])], 80))
    console.print(Text(HOSTILE))
    assert isinstance(console.file, io.StringIO)
    shown = console.file.getvalue()
    assert "[/red]" in shown
    assert "[bold]b" in shown
    assert acting(shown) == set()


# Spreadsheets


@pytest.mark.parametrize("start", ["=", "+", "-", "@", "\t", "\r", "\n", "＝", "＋", "－", "＠"])
def test_a_cell_is_no_formula(start: str) -> None:
    assert spreadsheet_cell(f"{start}1+1") == f"'{start}1+1"


def cells_of(text: str) -> list[str]:
    return [cell for row in csv.reader(io.StringIO(text, newline="")) for cell in row]


def are_safe(cells: list[str]) -> bool:
    """Tell whether no cell begins as a formula; a number below zero is none."""
    suspects = [cell for cell in cells if cell.startswith(tuple("=+-@\t\r\n＝＋－＠"))]
    return all(re.fullmatch(r"-\d+(\.\d+)?(e-?\d+)?", cell) for cell in suspects)


@pytest.mark.parametrize("table", ["articles", "entries", "polls", "rule_hits", "notices"])
def test_no_export_holds_a_formula(settings: Settings, table: str) -> None:
    out = settings.home / "out.csv"
    run(settings, "export", "--format", "csv", "--what", table, "--out", str(out))
    cells = cells_of(out.read_text("utf-8"))
    assert are_safe(cells)
    if table != "notices":
        assert any(cell.startswith("'=HYPERLINK") for cell in cells)


def test_no_answer_in_csv_holds_a_formula(settings: Settings) -> None:
    query = "SELECT title, '＝1', '\n=1', '+1x' FROM articles LIMIT 3"
    assert are_safe(cells_of(run(settings, "sql", "--csv", query).stdout))


def test_no_table_of_a_report_holds_a_formula(settings: Settings) -> None:
    run(settings, "report", "--day", "today", "--out", str(settings.home / "out"))
    tables = list((settings.home / "out").rglob("*.csv"))
    assert tables
    assert all(are_safe(cells_of(table.read_text("utf-8"))) for table in tables)


# Pages and documents


class Tags(HTMLParser):
    def __init__(self, page: str) -> None:
        super().__init__()
        self.found: list[tuple[str, dict[str, str | None]]] = []
        self.feed(page)

    def handle_starttag(self, tag: str, attributes: list[tuple[str, str | None]]) -> None:
        self.found.append((tag, dict(attributes)))


def is_inert(page: str) -> bool:
    """Tell whether a page runs and links to nothing that came from a publisher."""
    found = Tags(page).found
    links = [str(value) for _, each in found for name, value in each.items() if name == "href"]
    scripts = [each.get("src") for tag, each in found if tag == "script"]
    has_handlers = any(name.startswith("on") for _, each in found for name in each)
    is_clean = not any(link.strip().lower().startswith("javascript") for link in links)
    return is_clean and not has_handlers and all(scripts)


def test_the_status_page_and_a_report_run_nothing(settings: Settings) -> None:
    pages = StatusPages(settings)
    run(settings, "report", "--day", "today", "--out", str(settings.home / "out"))
    shown = [str(pages.answer(path, {}).body) for path in ("/", "/sources", "/source/harbour")]
    shown += [path.read_text("utf-8") for path in (settings.home / "out").rglob("*.html")]
    assert len(shown) >= 4
    assert any("alert(1)" in page for page in shown)
    for page in shown:
        assert is_inert(page)
        assert "\x1b" not in page


def test_the_markdown_of_a_report_links_nowhere_a_publisher_chose(settings: Settings) -> None:
    run(settings, "report", "--day", "today", "--out", str(settings.home / "out"))
    (document,) = (settings.home / "out").rglob("*.md")
    text = document.read_text("utf-8")
    assert "alert" in text
    assert "](javascript" not in text
    assert "<script" not in text
    assert acting(text) == set()


def test_markdown_shows_markup_as_text() -> None:
    shown = escape_markdown(HOSTILE)
    assert acting(shown) == set()
    assert not set("<>`[]|*_\n") & set(shown)


@pytest.mark.parametrize("form", ["atom", "opml"])
def test_xml_is_well_formed_whatever_titles_hold(settings: Settings, form: str) -> None:
    (settings.home / "data" / "sources").mkdir(parents=True)
    title = '"Tele\\u0001gram \\u001b <&>\\"\'"'
    entry = f'[a]\nsource = "a"\ntitle = {title}\nurl = "https://a.example/"\nkind = "feed"\n'
    (settings.home / "data" / "sources" / "a.toml").write_text(entry, encoding="utf-8")
    (settings.home / "data" / "searches.toml").write_text('[[search]]\nsearch = "all"\n')
    words = ["--search", "all"] if form == "atom" else []
    result = run(settings, "export", "--format", form, *words)
    assert ET.fromstring(result.stdout).tag.endswith(("feed", "opml"))
    assert "javascript:" not in result.stdout.replace("[x](javascript:alert(1))", "")


# People and logs


def test_a_mails_subject_is_one_line() -> None:
    now = datetime(2024, 5, 7, tzinfo=UTC)
    notice = Notice("ab12", "hit", HOSTILE, "a", 1, "mail", HOSTILE, now, url=URL)
    draft = Draft("alert", (notice,))
    title = write_title(draft)
    # The space without width keeps a chat from ringing for whom a headline names.
    assert acting(title) <= {"\u200b"}
    assert not any(line.startswith("javascript:") for line in write_body(draft).splitlines())
    assert "\n" not in title
    mail = message_from_string(f"Subject: {title}\n\nx", policy=default)
    assert mail["Bcc"] is None


def test_a_log_line_is_one_line(caplog: pytest.LogCaptureFixture) -> None:
    channels = Channels({})
    with caplog.at_level(logging.WARNING, "newsbeat.alerts"):
        channels.send("nobody", HOSTILE, HOSTILE)
    (record,) = caplog.records
    assert acting(record.getMessage()) == set()
    assert "\n" not in record.getMessage()


def test_what_is_printable_is_left_alone() -> None:
    for text in ("Привет, мир", "中华国歌", "naïve — “quoted” €5", "שלום", "🎉"):
        assert printable(text) == one_line(text) == text
        assert json.loads(spell_json(text)) == text
    assert json.loads(spell_json({"a": HOSTILE})) == {"a": HOSTILE}


def test_an_error_survives_whatever_it_quotes() -> None:
    assert one_line(ParseError("https://a.example/\x1b", HOSTILE))
