"""The status page, over two weeks of a small invented press."""

from __future__ import annotations

import json
import re
import shutil
import time
from collections.abc import Callable, Iterator
from dataclasses import replace
from html.parser import HTMLParser
from pathlib import Path

import httpx
import pytest
from click.testing import CliRunner

from flows.cli import main
from flows.page import StatusPages, make_page_server
from models.errors import ConfigError
from tasks.checks import document_address, write_document
from tasks.settings import BudgetSettings, PageSettings, Settings
from tasks.warehouse import Warehouse

PATHS = [
    "/", "/sources", "/source/harbour", "/source/spit", "/source/quay", "/reports", "/feeds",
    "/no/such",
]  # fmt: skip


class Seen(HTMLParser):
    """What a browser makes of a page, as far as it matters here."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.tags: list[tuple[str, dict[str, str | None]]] = []
        self.words: list[str] = []
        self.feed(text)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.append((tag, dict(attrs)))

    def handle_data(self, data: str) -> None:
        self.words.append(data)

    def all(self, tag: str) -> list[dict[str, str | None]]:
        return [attributes for name, attributes in self.tags if name == tag]

    @property
    def text(self) -> str:
        return " ".join(" ".join(self.words).split())


@pytest.fixture
def settings(tmp_path: Path, fortnight: Path) -> Settings:
    """A home with two weeks in it, in which nothing runs."""
    settings = Settings(home=tmp_path, page=PageSettings(port=0))
    shutil.copytree(fortnight, settings.folder)
    return settings


@pytest.fixture
def pages(settings: Settings) -> StatusPages:
    return StatusPages(settings)


def seen(pages: StatusPages, path: str, **query: str) -> Seen:
    answer = pages.answer(path, query)
    assert isinstance(answer.body, str)
    return Seen(answer.body)


def part(page: Seen, start: str, end: str) -> str:
    return page.text.partition(start)[2].partition(end)[0]


def until(condition: Callable[[], bool], seconds: float = 30.0) -> None:
    """Wait for what the page will say once it has been read anew."""
    end = time.monotonic() + seconds
    while not condition():
        assert time.monotonic() < end, "it was not read anew"
        time.sleep(0.2)


def test_the_first_screen_says_what_broke_what_is_late_and_what_was_lost(pages):
    page = seen(pages, "/")
    assert part(page, "Broken", "Late").startswith(" 2 lantern failing: HTTP 503")
    assert "tide drifted, the text is wrong: the text consists of links" in page.text
    assert "quay all 30 entries listed were new" in part(page, "Lost", "How late")
    assert "harbour Storm flood closes the old harbour bridge" in part(page, "At once", "Broken")
    # Without a worker nothing is late: it is said that there is none.
    assert "No worker runs here" in page.text


def test_every_chart_has_a_name_and_its_figures_as_a_table(pages):
    page = seen(pages, "/")
    titles = {each["id"] for each in page.all("title") if "id" in each}
    charts = page.all("svg")
    assert len(charts) == 8
    assert {each["aria-labelledby"] for each in charts} == titles
    assert page.text.count("The same in figures") == 8


def test_the_findings_of_a_check_are_served_as_they_were_written(settings, pages):
    assert "All findings" not in seen(pages, "/source/tide").text
    document = "<html><style>td{color:red}</style><td>F_S fired</td></html>"
    for is_drifted in (False, True):
        write_document(settings, "tide", document, drifted=is_drifted)
    page = seen(pages, "/source/tide")
    links = {each["href"] for each in page.all("a") if "/checks/" in each["href"]}
    assert links == {"/checks/tide.html", "/checks/tide-drifted.html"}
    answer = pages.answer("/checks/tide-drifted.html", {})
    assert (answer.status, answer.body) == (200, document.encode())
    assert "script-src" not in answer.policy
    assert answer.policy.startswith("default-src 'none'; style-src 'unsafe-inline'")
    for name in ("none.html", "../newsbeat.duckdb", "..%2fnewsbeat.duckdb", "tide.tmp", ""):
        assert pages.answer(f"/checks/{name}", {}).status == 404


def test_a_link_to_findings_leads_where_people_can_open_them(settings):
    name = write_document(settings, "tide", "<html></html>", drifted=False)
    assert Path(document_address(settings, name)).read_text(encoding="utf-8") == "<html></html>"
    served = replace(settings, page=PageSettings(url="https://news.example/beat/"))
    assert document_address(served, name) == "https://news.example/beat/checks/tide.html"


@pytest.mark.parametrize("path", PATHS)
def test_a_page_runs_nothing_and_loads_nothing_from_elsewhere(pages, path):
    page = seen(pages, path)
    assert [each.get("src") for each in page.all("script")] == ["/page.js"]
    assert page.all("img") == page.all("iframe") == page.all("style") == []
    for tag, attributes in page.tags:
        assert not [name for name in attributes if name.startswith("on")], (tag, attributes)
        assert "style" not in attributes
        if tag == "link":
            assert str(attributes["href"]).startswith("/")


@pytest.mark.parametrize("path", ["/", "/sources", "/source/spit"])
def test_hostile_titles_are_only_text(pages, path):
    page = seen(pages, path)
    assert not [each for each in page.all("a") if "javascript" in str(each.get("href")).lower()]
    words = '<script>alert("title")</script>' if path != "/" else "spit"
    assert words in page.text


@pytest.mark.parametrize("path", PATHS)
def test_a_page_is_well_built_for_those_who_hear_it(pages, path):
    page = seen(pages, path)
    assert page.all("html")[0]["lang"] == "en"
    assert len(page.all("h1")) == len(page.all("main")) == 1
    ids = [str(attributes["id"]) for _, attributes in page.tags if attributes.get("id")]
    assert len(ids) == len(set(ids))
    for name in ("aria-labelledby", "for"):
        pointed = {str(about[name]) for _, about in page.tags if about.get(name)}
        assert pointed <= set(ids)
    for region in page.all("div"):
        if region.get("role") == "region":
            assert region["aria-label"]
            assert region["tabindex"] == "0"
    assert all(each.get("scope") in ("col", "row") for each in page.all("th"))


def test_the_page_of_a_source_tells_its_last_polls_and_why_the_next_is_when_it_is(pages):
    page = seen(pages, "/source/lantern")
    assert "failing, 9 failures in a row" in page.text
    assert part(page, "Why then", "Lag") == " next in 6 min: 0.8 entries expected, a busy hour "
    assert page.text.count("next in 10 min: 0.8 entries expected") == 30
    assert '"price": 120.0' in page.text
    assert "HTTP 503" in page.text
    assert "explains 42 %: the weekly profile explained most" in page.text


def test_held_back_articles_and_strange_pages_are_marked(pages):
    page = seen(pages, "/source/tide")
    assert "held back" in page.text
    assert "four times the links of any page before" in page.text
    assert "drifted links, paragraph length 40 100" in page.text
    assert "The text is wrong : the text consists of links" in page.text


def test_a_lag_over_its_target_is_late(settings):
    pages = StatusPages(replace(settings, budget=BudgetSettings(target_lag_s=1.0)))
    (settings.home / "data" / "sources").mkdir(parents=True)
    (settings.home / "data" / "sources" / "own.toml").write_text(
        '[[source]]\nsource = "harbour"\ntitle = "H"\nurl = "https://harbour.example/feed"\n'
        "[source.poll]\ntarget_lag_s = 60\n",
        encoding="utf-8",
    )
    page = seen(pages, "/")
    assert "wanted 1 min" in part(page, "Late", "Lost")
    assert "wanted 1 min" in seen(pages, "/source/harbour").text


def test_sources_are_found_filtered_and_ordered(pages):
    def rows(**query: str) -> list[str]:
        page = seen(pages, "/sources", **query)
        links = [str(each.get("href")) for each in page.all("a")]
        return [link.removeprefix("/source/") for link in links if link.startswith("/source/")]

    assert rows() == sorted(rows()) == ["harbour", "lantern", "moor", "quay", "spit", "tide"]
    assert rows(q="прилива") == ["tide"]
    assert rows(state="failing") == ["lantern"]
    assert set(rows(state="troubled")) == {"lantern", "tide", "quay"}
    assert rows(sort="next poll")[0] == "moor"
    assert rows(state="nonsense", sort="'; DROP TABLE polls", page="-7") == rows()


@pytest.mark.parametrize("name", ["nobody", "x' OR 1=1 --", "<script>", "../page.css", "\x00", "я"])
def test_a_source_that_is_not_there_is_not_found(pages, name):
    assert pages.answer(f"/source/{name}", {}).status == 404


def test_the_standing_is_there_for_programs(pages):
    found = json.loads(pages.answer("/status.json", {}).body)
    assert found["broken"] == ["lantern", "tide"]


def test_an_empty_home_says_what_to_do(tmp_path):
    answer = StatusPages(Settings(home=tmp_path)).answer("/", {})
    assert answer.status == 503
    assert "there is no warehouse yet" in Seen(str(answer.body)).text


def test_a_file_that_a_worker_is_about_to_open_is_left_alone(settings):
    answer = StatusPages(settings, is_watched=True).answer("/", {})
    assert answer.status == 503
    assert "It is being started" in Seen(str(answer.body)).text


@pytest.fixture
def served(settings: Settings) -> Iterator[tuple[Settings, Warehouse]]:
    with Warehouse.open(settings, "newsbeat worker") as warehouse:
        warehouse.serve()
        yield settings, warehouse


def test_beside_a_worker_it_is_live_and_says_what_is_late(served):
    settings, warehouse = served
    pages = StatusPages(settings, is_watched=True)
    page = seen(pages, "/")
    assert re.search(r"moor its poll is overdue by \d\d min", page.text)
    assert "No worker" not in page.text
    # What was read is shown again for a moment, and then read again.
    warehouse.query("UPDATE schedule SET due_at = due_at + INTERVAL 2 HOUR")
    assert "overdue" in seen(pages, "/").text
    until(lambda: "overdue" not in seen(pages, "/").text)


def test_when_the_worker_goes_the_last_standing_stays_with_a_warning(served):
    settings, warehouse = served
    pages = StatusPages(settings, is_watched=True)
    assert "alarm" not in str(pages.answer("/", {}).body)
    warehouse.close()
    until(lambda: "the worker does not run yet, or has died" in seen(pages, "/").text)
    assert "lantern failing: HTTP 503" in seen(pages, "/").text


def test_it_is_served_over_http(settings):
    with make_page_server(settings) as server:
        answer = httpx.get(server.url, trust_env=False)
    assert answer.status_code == 200
    assert "lantern" in answer.text


def test_up_refuses_to_show_the_page_to_the_world_before_it_starts_anything(tmp_path, monkeypatch):
    (tmp_path / "newsbeat.toml").write_text(
        '[agent]\ncontact = "a@b.example"\n[page]\nhost = "0.0.0.0"\n', encoding="utf-8"
    )
    result = CliRunner().invoke(main, ["up", "--home", str(tmp_path)])
    assert result.exit_code == 1
    assert "without a token the page is for this machine alone" in result.output
    assert not (tmp_path / "data" / "warehouse" / "postgres").exists()


def test_a_short_token_is_refused(tmp_path):
    from tasks.settings import read_settings

    with pytest.raises(ConfigError, match="16 printable characters"):
        read_settings(tmp_path, {"NEWSBEAT_PAGE_TOKEN": "short"})
