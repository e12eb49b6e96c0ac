"""`newsbeat import`: lists of sources in, line by line, and out again as they were."""

from __future__ import annotations

import asyncio
import json
from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner, Result

from flows.cli import main
from flows.commands.importing import import_sources
from models.first_poll import choose_first_poll
from models.records import Source
from tasks.catalogue import read_catalogue, write_sources
from tasks.settings import AgentSettings, FetchSettings, Settings


@pytest.fixture
def home(tmp_path: Path) -> Path:
    (tmp_path / "data" / "sources").mkdir(parents=True)
    return tmp_path


def run(home: Path, *words: str, stdin: str | None = None) -> Result:
    return CliRunner().invoke(main, [*words, "--home", str(home)], input=stdin)


def bring(home: Path, text: str | bytes, name: str = "list.opml", *words: str) -> Result:
    path = home / name
    path.write_bytes(text if isinstance(text, bytes) else text.encode())
    return run(home, "import", str(path), *words)


def sources(home: Path) -> list[Source]:
    catalogue = read_catalogue(home / "data" / "sources")
    assert [str(problem) for problem in catalogue.problems] == []
    return [replace(source, file="") for source in catalogue.sources]


def opml(*outlines: str) -> str:
    return (
        '<?xml version="1.0" encoding="utf-8"?>\n<!DOCTYPE opml [\n<!ENTITY co "Co.">\n]>\n'
        '<opml version="1.0">\n<head><title>Mine</title></head>\n<body>\n'
        + "\n".join(outlines)
        + "\n</body></opml>\n"
    )


# OPML


@pytest.mark.report("fossar/selfoss#1475")
def test_an_address_alone_makes_a_source_whatever_the_type_says(home):
    result = bring(
        home,
        opml(
            '<outline text="One" xmlUrl="https://one.example/rss"/>',
            '<outline text="Two" type="whatever" xmlurl="https://two.example/rss"/>',
            '<outline text="Three" type="RSS" XMLURL="https://three.example/rss"/>',
        ),
    )
    assert result.exit_code == 0, result.output
    assert [(source.title, source.kind) for source in sources(home)] == [
        ("One", "feed"),
        ("Two", "feed"),
        ("Three", "feed"),
    ]


@pytest.mark.report("lwindolf/liferea#914")
def test_an_outline_without_an_address_is_a_folder_and_folders_become_tags(home):
    result = bring(
        home,
        opml(
            '<outline text="World news" type="rss">',
            '<outline text="Europe &amp; more" type="folder">',
            '<outline text="One" xmlUrl="https://one.example/rss" category="/Politics,daily"/>',
            "</outline>",
            '<outline text="Empty" type="rss"/>',
            "</outline>",
        ),
    )
    assert result.exit_code == 0, result.output
    (source,) = sources(home)
    assert source.tags == ("World-news", "Europe-more", "Politics", "daily")


@pytest.mark.report("scripting/feedlandSupport#121")
def test_what_is_wrong_with_one_line_costs_none_of_the_others(home):
    write_sources(
        home / "data" / "sources",
        [Source("there", "There", "https://there.example/rss", kind="feed")],
        "added.toml",
    )
    result = bring(
        home,
        opml(
            '<outline text="One" xmlUrl="https://one.example/rss"/>',
            '<outline text="Bad" xmlUrl="no address at all"/>',
            '<outline text="Blank" xmlUrl=" "/>',
            '<outline text="Again" xmlUrl="http://one.example/rss?utm_source=x"/>',
            "<!-- <outline xmlUrl='https://hidden.example/'/> -->",
            '<outline text="There" xmlUrl="https://THERE.example/rss/"/>',
            '<outline text="Last" xmlUrl=" https://last.example/rss "/>',
        ),
    )
    assert result.exit_code == 1
    assert [source.source for source in sources(home)] == ["there", "one", "last"]
    assert result.output.splitlines()[:6] == [
        "line 9: no source: no address at all: no web address",
        "line 10: no source: Blank: no address",
        "line 11: named twice: http://one.example/rss?utm_source=x: the address of one",
        "line 13: there already: https://THERE.example/rss/: the address of there",
        "6 sources in the list: 2 imported, 1 there already, 1 named twice, 2 no source",
        f"written to {home}/data/sources/imported.toml",
    ]


def test_a_list_imported_twice_changes_nothing(home):
    text = opml('<outline text="One" xmlUrl="https://one.example/rss"/>')
    bring(home, text)
    before = (home / "data" / "sources" / "imported.toml").read_text("utf-8")
    result = bring(home, text)
    assert result.exit_code == 0
    assert "1 there already" in result.output
    assert (home / "data" / "sources" / "imported.toml").read_text("utf-8") == before


def test_an_opml_file_can_do_no_harm(home):
    secret = home / "secret"
    secret.write_text("hunter2", encoding="utf-8")
    text = (
        f'<!DOCTYPE opml [<!ENTITY x SYSTEM "file://{secret}"><!ENTITY a "aaaaaaaaaa">'
        + "".join(
            f'<!ENTITY a{n} "&a{n - 1 if n else ""};&a{n - 1 if n else ""};">' for n in range(7)
        )
        + ']><opml><body><outline text="&x;" xmlUrl="https://one.example/&x;"/>'
        '<outline text="&#27;[31m&lt;script&gt;" xmlUrl="https://two.example/"/></body></opml>'
    )
    result = bring(home, text)
    written = (home / "data" / "sources" / "imported.toml").read_text("utf-8")
    assert "hunter2" not in result.output + written
    assert "\x1b" not in result.output + written
    bomb = text.replace("&x;", "&a6;" * 50_000, 1)
    assert "bomb" in bring(home, bomb, "bomb.opml").output


def test_a_broken_opml_file_gives_what_can_be_read_of_it(home):
    text = opml(
        '<outline text="A & B" xmlUrl="https://one.example/rss?a=1&b=2"/>',
        '<outline text="Two" xmlUrl="https://two.example/rss"/>',
    ).partition("\n</body>")[0]
    result = bring(home, text)
    assert result.exit_code == 0, result.output
    assert [source.url for source in sources(home)] == [
        "https://one.example/rss?a=1&b=2",
        "https://two.example/rss",
    ]


def test_old_encodings_are_read(home):
    text = opml('<outline text="Новости" xmlUrl="https://one.example/rss"/>')
    text = text.replace("utf-8", "windows-1251")
    bring(home, text.encode("cp1251"))
    assert sources(home)[0].title == "Новости"


def test_a_file_that_is_no_list_is_named(home):
    assert "no OPML: the root element is <html>" in bring(home, "<html></html>").output
    result = run(home, "import", str(home / "nowhere.opml"))
    assert result.exit_code == 1
    assert "not readable" in result.output


# Tables


def test_a_table_is_read_by_its_headings_and_names_stay(home):
    result = bring(
        home,
        "Name;Feed URL;Source;Tags;Language;Timezone;weight;poll.min_interval_s;Owner\n"
        "The Pier;https://pier.example/rss;pier-news;local, sea;en;Europe/London;2;120;Ada\n"
        '"Ferry; and more";ferry.example/rss;;;ru;;;;\n',
        "sources.csv",
        "--tag",
        "my region",
    )
    assert result.exit_code == 0, result.output
    pier, ferry = sources(home)
    assert (pier.source, pier.title, pier.timezone, pier.weight) == (
        "pier-news",
        "The Pier",
        "Europe/London",
        2.0,
    )
    assert (pier.tags, pier.poll.min_interval_s) == (("local", "sea", "my-region"), 120.0)
    assert (ferry.source, ferry.title, ferry.url) == (
        "ferry",
        "Ferry; and more",
        "https://ferry.example/rss",
    )


def test_a_wrong_cell_is_named_with_its_line(home):
    result = bring(
        home,
        "url,timezone,weight\nhttps://a.example/,Europe/Moskow,\nhttps://b.example/,,heavy\n"
        "https://c.example/,,\n,,\n,UTC,1\n",
        "sources.csv",
    )
    assert result.exit_code == 1
    told = result.output
    assert "line 2: no source: https://a.example/: timezone 'Europe/Moskow'" in told
    assert "did you mean Europe/Moscow?" in told
    assert "line 3: no source: https://b.example/: weight 'heavy': it must be a number" in told
    assert "line 6: no source: UTC 1: no address" in told
    assert [source.url for source in sources(home)] == ["https://c.example/"]


def test_a_table_without_headings_is_read_by_what_stands_in_it(home):
    bring(home, "1\tThe Pier\thttps://pier.example/\n2\tFerry\thttps://ferry.example/\n", "x.tsv")
    assert [(source.title, source.kind) for source in sources(home)] == [
        ("The Pier", "auto"),
        ("Ferry", "auto"),
    ]


def test_a_column_of_outlets_is_no_column_of_names(home):
    table = "id,source,url\n1,BBC News,https://a.example/\n2,BBC News,https://b.example/\n"
    table += "3,Новости,https://c.example/\n4,own-name,https://d.example/\n"
    result = bring(home, table.encode("utf-16"), "sources.csv")
    assert result.exit_code == 0, result.output
    assert [(source.source, source.title) for source in sources(home)] == [
        ("bbc-news", "BBC News"),
        ("bbc-news-2", "BBC News"),
        ("source", "Новости"),
        ("own-name", "own-name"),
    ]


def test_a_name_that_is_taken_is_not_given_away(home):
    result = bring(
        home,
        "source,url\npier,https://a.example/\npier,https://b.example/\n,https://pier.example/\n",
        "sources.csv",
    )
    assert "line 3: no source: https://b.example/: the name 'pier' is taken" in result.output
    assert [source.source for source in sources(home)] == ["pier", "pier-2"]


def test_a_list_from_elsewhere_does_not_open_ones_own_network(home):
    table = "url,http.allow_private,http.connect_to\nhttps://a.example/,true,127.0.0.1:22\n"
    bring(home, table, "sources.csv")
    assert sources(home)[0].http == Source("x", "", "").http
    result = bring(home, table.replace("a.example", "b.example"), "b.csv", "--allow-private")
    assert result.exit_code == 0
    assert sources(home)[1].http.allow_private


# Plain lists


@pytest.mark.report("RSS-Bridge/rss-bridge#4520")
def test_a_plain_list_is_an_address_a_line(home):
    text = (
        "# what we read\n\n  https://one.example/rss \nt.me/harbour The Harbour\n"
        "feed:https://two.example/rss\nnews\nhttps://bad example/\n<https://three.example/>\n"
    )
    result = bring(home, text, "list.txt", "--json")
    assert result.exit_code == 1
    found = json.loads(result.output)
    assert [line["line"] for line in found["lines"] if line["fate"] == "bad"] == [6]
    assert [(source.url, source.kind, source.title) for source in sources(home)] == [
        ("https://one.example/rss", "auto", "one"),
        ("https://t.me/harbour", "telegram", "The Harbour"),
        ("https://two.example/rss", "auto", "two"),
        ("https://bad", "auto", "example/"),
        ("https://three.example/", "auto", "three"),
    ]


def test_standard_input_is_read_and_nothing_is_written_where_that_is_asked_for(home):
    result = run(home, "import", "-", "--dry-run", stdin="https://one.example/\n")
    assert "1 source in the list: 1 would be imported" in result.output
    assert sources(home) == []


@pytest.mark.parametrize(
    "text", ['<opml version="2.0"><body/></opml>', '<?xml version="1.0"?><opml version="2.0"><bo']
)
def test_a_list_without_any_source_is_no_success(home, text):
    result = bring(home, text)
    assert result.exit_code == 1
    assert "no source in the list; --format" in result.output


def test_keys_that_open_ones_own_network_are_said_where_they_are_not_taken(home):
    table = "url,http.allow_private\nhttps://one.example/rss,true\n"
    assert "http.allow_private of the list not taken: that needs --allow-private" in (
        bring(home, table, "list.csv", "--dry-run").output
    )
    assert "not taken" not in bring(home, table, "list.csv", "--allow-private").output
    assert [source.http.allow_private for source in sources(home)] == [True]


def test_a_zone_that_does_not_exist_is_said_once(home):
    result = bring(home, "a.example\nb.example\n", "x.txt", "--timezone", "Europe/Moskow")
    assert result.exit_code == 1
    assert result.output.count("did you mean Europe/Moscow?") == 1
    assert sources(home) == []


def test_the_first_import_says_that_the_catalogue_that_ships_is_out(tmp_path):
    result = bring(tmp_path, "https://one.example/\n", "list.txt")
    assert f"the {len(read_catalogue().sources)} sources that come with it no longer" in (
        result.output
    )


# Out and in again


def test_the_catalogue_comes_back_from_a_table_as_it_was(tmp_path, home):
    (home / "data" / "sources" / "own.toml").write_text(
        """
        [[source]]
        source = "odd-one"
        title = "=1+1 and \\"more\\", =2"
        url = "https://odd.example/list?a=1&b=2"
        kind = "list"
        tags = ["a-b", "новости"]
        weight = 0.25
        reach = "trade"
        [source.list]
        links = "main h2 > a"
        url_pattern = "/20\\\\d\\\\d/"
        [source.extract]
        method = "listing"
        [source.http]
        allow_private = true
        min_gap_s = 5.5
        """,
        encoding="utf-8",
    )
    write_sources(
        home / "data" / "sources",
        [replace(source, file="") for source in read_catalogue().sources],
        "imported.toml",
    )
    table = run(home, "export", "--format", "csv", "--what", "catalogue").output
    assert not [line for line in table.splitlines() if line.startswith("=") or ",=" in line]
    (tmp_path / "again" / "data" / "sources").mkdir(parents=True)
    result = bring(tmp_path / "again", table, "sources.csv", "--allow-private")
    assert result.exit_code == 0, result.output
    by_name = {source.source: source for source in sources(home)}
    assert {source.source: source for source in sources(tmp_path / "again")} == by_name
    assert len(by_name) > 100


def test_the_catalogue_comes_back_from_opml_with_names_kinds_zones_and_tags(tmp_path, home):
    kept = [
        *(replace(source, file="") for source in read_catalogue().sources),
        Source("harbour", "Harbour <TV> & more", "https://t.me/harbour", kind="telegram"),
        Source("ada", "Ada", "https://s.example/@ada", kind="mastodon", timezone="Asia/Tokyo"),
        Source("latest", "Latest", "https://l.example/latest", kind="list", tags=("новости",)),
    ]
    write_sources(home / "data" / "sources", kept, "imported.toml")
    text = run(home, "export", "--format", "opml").output
    assert 'xmlUrl="https://s.example/@ada.rss" htmlUrl="https://s.example/@ada"' in text
    (tmp_path / "again" / "data" / "sources").mkdir(parents=True)
    assert bring(tmp_path / "again", text).exit_code == 0

    def told(source: Source) -> tuple[Any, ...]:
        return (source.source, source.title, source.url, source.kind, source.timezone,
                source.language, source.tags)  # fmt: skip

    assert list(map(told, sources(tmp_path / "again"))) == list(map(told, kept))


# With the network


def net_settings(home: Path) -> Settings:
    return Settings(
        home=home,
        agent=AgentSettings(contact="tests@newsbeat.example"),
        fetch=FetchSettings(host_gap_s=0.0, total_timeout_s=10.0),
    )


RSS = (
    b"<rss version='2.0'><channel><title>The Pier</title><item><title>Open</title>"
    b"<link>http://pier.example/open</link></item></channel></rss>"
)


@pytest.mark.report("scripting/feedlandSupport#121")
@pytest.mark.report("mediacloud/backend#189")
async def test_checked_addresses_are_tried_and_those_that_fail_are_told_apart(
    home, site, other_site
):
    site.add("/rss", RSS, kind="application/rss+xml")
    site.add("/old", status="301 Moved", Location="/rss")
    site.add("/new", RSS.replace(b"Pier", b"Ferry"), kind="application/rss+xml")
    site.add("/moved", status="301 Moved", Location="/new")
    link = b"<link rel='alternate' type='application/rss+xml' href='/third'>"
    site.add("/home", b"<html><head><title>T</title>" + link + b"</head></html>")
    site.add("/third", RSS.replace(b"Pier", b"Third"), kind="application/rss+xml")
    other_site.add("/page", b"<html><p>Nothing here.</p></html>")
    urls = [site.url(path) for path in ("/rss", "/old", "/moved", "/home")]
    urls += [other_site.url("/page"), site.url("/gone")]
    rows = [*(f"{url},true" for url in urls), f"{site.url('/rss?x=1')},"]
    table = "\n".join(["url,http.allow_private", *rows])
    (home / "list.csv").write_text(table, encoding="utf-8")
    told: list[tuple[int, int]] = []
    report = await asyncio.to_thread(
        import_sources,
        net_settings(home),
        home / "list.csv",
        check=True,
        allow_private=True,
        tell=lambda done, total: told.append((done, total)),
    )
    assert [(line.number, line.fate) for line in report.lines] == [
        (2, "imported"),
        (3, "twice"),
        (4, "imported"),
        (5, "imported"),
        (6, "failed"),
        (7, "failed"),
        (8, "failed"),
    ]
    assert [(source.url, source.title, source.kind) for source in sources(home)] == [
        (site.url("/rss"), "The Pier", "feed"),
        (site.url("/new"), "The Ferry", "feed"),
        (site.url("/third"), "The Third", "feed"),
    ]
    reasons = {line.number: line.words for line in report.lines}
    assert "no feed, news sitemap or list" in reasons[6]
    assert "404" in reasons[7]
    assert "private" in reasons[8] or "loopback" in reasons[8]
    assert told[-1] == (7, 7)


async def test_without_check_nothing_is_fetched(home, site):
    (home / "list.txt").write_text(site.url("/rss"), encoding="utf-8")
    report = await asyncio.to_thread(import_sources, net_settings(home), home / "list.txt")
    assert report.is_good
    assert site.requests == []


def test_first_polls_after_an_import_are_spread():
    now = datetime(2026, 3, 1, tzinfo=UTC)
    firsts = sorted(
        (choose_first_poll(f"source-{n}", 300, 600.0, now) - now).total_seconds()
        for n in range(300)
    )
    assert firsts[-1] < 600
    busiest = max(
        sum(1 for at in firsts if start <= at < start + 10) for start in range(0, 600, 10)
    )
    assert busiest <= 15
