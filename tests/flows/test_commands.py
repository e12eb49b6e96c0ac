"""What people read on the command line, and what a wrong use is answered."""

from __future__ import annotations

import io
import json
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from email.utils import format_datetime
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner
from rich.console import Console
from rich.text import Text

from flows.cli import main
from flows.commands.adding import _ask_which
from flows.commands.asking import ask
from flows.commands.rebuilding import Rebuilt
from flows.commands.reporting import StatusReport
from flows.commands.running import Stopped, stopping_afterwards, stopping_on_signals
from flows.commands.screen import Column, Screen, fit_table, spell_command
from flows.supervisor import running_supervisor
from models.errors import NewsbeatError
from models.records import Incident, SourceStatus
from tasks.catalogue import read_catalogue
from tasks.changetally import ChangeTally
from tasks.clock import Clock
from tasks.prefect_server import find_free_port
from tasks.replay.history import RecordedSource, RecordedWeb, write_catalogue
from tasks.replay.server import serve_in_thread
from tasks.settings import read_settings
from tasks.warehouse import Warehouse

NOW = datetime(2026, 3, 5, 12, tzinfo=UTC)


def status_of(source: str, **changes: Any) -> SourceStatus:
    fields: dict[str, Any] = {
        "title": source.title(),
        "kind": "feed",
        "state": "active",
        "reason": "next in 5 min: every 5 min",
        "due_at": NOW + timedelta(minutes=3),
        "consecutive_failures": 0,
        "last_success_at": NOW - timedelta(minutes=2),
        "last_outcome": "new",
        "last_reason": "",
        "last_poll_at": NOW - timedelta(minutes=2),
        "n_polls": 20,
        "n_entries": 40,
        "n_articles": 1234,
        "n_articles_24h": 40,
        "n_pending": 0,
        "mean_lag_s": 150.0,
        "median_lag_s": 150.0,
        "n_possible_losses": 0,
        "total_bytes": 10_000,
    }
    return SourceStatus(source=source, **(fields | changes))


def shown(renderable: Any, width: int) -> list[str]:
    console = Console(width=width, file=io.StringIO())
    console.print(renderable)
    file = console.file
    assert isinstance(file, io.StringIO)
    return [line.rstrip() for line in file.getvalue().splitlines()]


WELL = StatusReport((status_of("harbour"), status_of("lantern")), NOW, is_live=True)
TROUBLED = StatusReport(
    (
        status_of("harbour", state="failing", last_reason="HTTP 503", last_outcome="failed"),
        status_of("lantern", due_at=NOW - timedelta(minutes=30)),
        status_of("moor", n_possible_losses=1),
    ),
    NOW,
    is_live=True,
)


# Tables and lines


@pytest.mark.parametrize("width", [60, 80, 100, 200])
def test_a_status_fits_every_terminal_and_cuts_no_name(width):
    lines = shown(WELL.table(width), width)
    assert max(map(len, lines)) <= width
    assert lines[0].split()[0] == "source"
    assert lines[2].startswith("harbour")
    assert "1,234" in lines[2]
    assert "in 3 min" in lines[2]
    assert "…" not in "".join(lines)


def test_a_wide_status_says_why():
    assert "every 5 min" in shown(WELL.table(200), 200)[2]
    assert "every 5 min" not in shown(WELL.table(80), 80)[2]


def test_columns_of_least_worth_go_first():
    columns = [
        Column("name", ["a"]),
        Column("often", ["1"], worth=2),
        Column("rare", ["2"], worth=1),
    ]
    assert shown(fit_table(columns, 20), 20)[0].split() == ["name", "often", "rare"]
    assert shown(fit_table(columns, 12), 12)[0].split() == ["name", "often"]
    assert shown(fit_table(columns, 6), 6)[0].split() == ["name"]


def test_a_table_is_measured_in_cells_not_letters():
    columns = [Column("title", ["云海快讯"]), Column("dropped", ["x"], worth=1)]
    assert shown(fit_table(columns, 10), 10)[2] == "云海快讯"


def test_a_status_names_what_is_broken_late_and_perhaps_lost():
    text = "\n".join(shown(TROUBLED, 200))
    assert "3 sources, 1 broken, 1 late, 1 with possible loss" in text
    assert "broken  harbour: HTTP 503, last good poll 2 min ago" in text
    assert "late    lantern: due 30 min ago" in text
    assert "lost?   moor: 1 poll found no entry known before" in text


def test_a_status_names_what_stands_of_hosts_and_of_our_own_line():
    begun_at = NOW - timedelta(minutes=40)
    stands = (
        Incident("outage", "", begun_at, "4 domains fell silent at once: it is our own line"),
        Incident("held", "platform.example", begun_at, "left alone until 13:00 UTC: HTTP 429"),
        Incident("failing", "harbour", begun_at, "said once already"),
    )
    report = replace(TROUBLED, incidents=stands)
    text = "\n".join(shown(report, 200))
    assert "outage  4 domains fell silent at once: it is our own line, since 40 min ago" in text
    assert "held    platform.example: left alone until 13:00 UTC: HTTP 429" in text
    assert "said once already" not in text
    assert [one["kind"] for one in report.as_json()["incidents"]] == ["outage", "held", "failing"]


def test_without_a_worker_nothing_is_late_and_nothing_comes_next():
    report = StatusReport(TROUBLED.rows, NOW, is_live=False)
    text = "\n".join(shown(report, 200))
    assert "no worker runs here" in text
    assert "late" not in text
    assert "next poll" not in text


def test_one_line_says_all_is_well():
    assert WELL.in_one_line() == (
        "2026-03-05 12:00 UTC  2 sources, all well; 2,468 articles, 40 polls, lag 2.5 min"
    )


def test_a_source_that_was_not_read_last_time_does_not_pass_for_well():
    walled = status_of("walled", last_outcome="failed", last_reason="HTTP 403 Forbidden")
    shut = status_of("shut", last_outcome="refused", last_reason="robots.txt says 'Disallow: /'")
    report = StatusReport((*WELL.rows, walled, shut), NOW, is_live=True)
    text = "\n".join(shown(report, 200))
    assert "4 sources, 2 not read last time;" in text
    assert "failed  walled: HTTP 403 Forbidden" in text
    assert "refused shut: robots.txt says" in text
    assert report.as_json()["unread"] == ["walled", "shut"]


def test_of_many_that_were_not_read_last_time_only_some_are_named():
    rows = tuple(status_of(f"s{number}", last_outcome="failed") for number in range(20))
    text = "\n".join(shown(StatusReport(rows, NOW, is_live=False), 200))
    assert "… and 12 more not read last time" in text


@pytest.mark.parametrize(
    ("first_look_at", "says"),
    [
        (None, "no page was seen to compare with"),
        (NOW, "no page was seen to compare with"),
        (NOW - timedelta(minutes=1), "not found in the 50 pages since"),
    ],
)
def test_a_demo_that_started_too_late_does_not_pass_for_one_that_missed_a_rebuilding(
    first_look_at, says
):
    tally = ChangeTally(None, 50, 0, 0, 0, 0, 0, 0, "", is_open=False)
    site = Rebuilt("harbour", "redesigned", NOW, tally, tally, first_look_at=first_look_at)
    assert says in "\n".join(site.in_lines())
    assert bool(list(site.problems)) == ("not found" in says)


def test_where_nobody_can_be_asked_which_find_it_is_the_way_out_is_named():
    found: list[Any] = ["a feed", "a list"]
    with (
        CliRunner().isolation(input=""),
        pytest.raises(NewsbeatError, match="--yes takes the first"),
    ):
        _ask_which(found)


def test_sql_shows_numbers_and_times_as_people_read_them(tmp_path):
    settings = read_settings(tmp_path, {})
    Warehouse.open(settings, "test").close()
    query = (
        "SELECT 'a' AS word, 2 / 3 AS share, 12345.678::DOUBLE AS s,"
        " TIMESTAMPTZ '2026-03-05 12:00:00.25Z' AS at"
    )
    assert ask(settings, query).splitlines() == [
        "word   share        s  at",
        "----  ------  -------  -------------------",
        "a     0.6667  12345.7  2026-03-05 12:00:00",
        "(1 row)",
    ]
    assert "0.6666666666666666" in ask(settings, query, "csv")


# The screen


def test_elsewhere_than_in_a_terminal_lines_are_plain():
    console = Console(width=40, file=io.StringIO())
    with Screen(console=console) as screen:
        screen.say("starting …")
        screen.move(Text("this moves"))
        screen.say("a line of more than forty letters is left whole, addresses too")
    assert isinstance(console.file, io.StringIO)
    assert console.file.getvalue() == (
        "starting …\na line of more than forty letters is left whole, addresses too\n"
    )


def test_in_a_terminal_a_step_gives_way_to_what_comes_next():
    console = Console(width=60, file=io.StringIO(), force_terminal=True)
    with Screen(console=console) as screen:
        screen.say("starting …")
        screen.move(Text("this moves"))
        screen.say("this stays")
    assert isinstance(console.file, io.StringIO)
    assert "this stays" in console.file.getvalue()
    assert console.file.getvalue().count("\x1b[?25h") == 1, "the cursor is back"


def test_a_quiet_screen_says_nothing():
    console = Console(file=io.StringIO(), force_terminal=True)
    with Screen(quiet=True, console=console) as screen:
        screen.say("starting …")
        screen.move(Text("this moves"))
    assert isinstance(console.file, io.StringIO)
    assert console.file.getvalue() == ""


def test_a_command_is_spelled_as_it_can_be_typed(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    monkeypatch.delenv("NEWSBEAT_HOME", raising=False)
    monkeypatch.setattr(sys, "argv", [str(tmp_path / ".venv" / "bin" / "newsbeat")])
    monkeypatch.setenv("PATH", "/nowhere")
    assert spell_command(tmp_path, "status") == ".venv/bin/newsbeat status"
    assert spell_command(tmp_path / "demo", "sql", "FROM polls") == (
        '.venv/bin/newsbeat sql "FROM polls" --home demo'
    )
    monkeypatch.setenv("NEWSBEAT_HOME", str(tmp_path / "demo"))
    assert spell_command(tmp_path / "demo", "up") == ".venv/bin/newsbeat up"


def test_a_signal_waits_for_the_end_of_a_query():
    done = []

    def query() -> None:
        with stopping_afterwards():
            signal.raise_signal(signal.SIGINT)
            done.append("query")

    with stopping_on_signals():
        with pytest.raises(Stopped):
            query()
        with pytest.raises(Stopped):
            signal.raise_signal(signal.SIGTERM)
    assert done == ["query"]


# Wrong use


@pytest.fixture
def run(tmp_path, monkeypatch) -> Callable[..., Any]:
    """Runs a command in a home folder of the test; gives its exit code and its words."""
    for name in ("NEWSBEAT_HOME", "NEWSBEAT_AGENT_CONTACT", "PREFECT_API_URL"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.chdir(tmp_path)
    return lambda *arguments: CliRunner().invoke(main, arguments)


def test_up_without_a_contact_says_in_one_sentence_what_to_do(run, tmp_path):
    result = run("up")
    assert result.exit_code == 1
    assert result.stderr.count("\n") == 1
    assert "newsbeat.toml" in result.stderr
    assert 'contact = "you@example.org" under [agent]' in result.stderr
    assert list(tmp_path.iterdir()) == [], "nothing half-written"


def test_up_with_an_empty_catalogue_says_how_to_add(run, tmp_path):
    (tmp_path / "data" / "sources").mkdir(parents=True)
    result = run("up")
    assert result.exit_code == 1
    assert "no source to collect; add one: newsbeat add URL" in result.stderr


def test_up_with_nothing_but_a_wrong_entry_names_what_is_wrong(run, tmp_path):
    folder = tmp_path / "data" / "sources"
    folder.mkdir(parents=True)
    (folder / "mine.toml").write_text('[[source]]\nsource = "mine"\nurl = "nowhere"\n')
    result = run("up")
    assert result.exit_code == 1
    assert "mine.toml:3: url = 'nowhere' is not allowed" in result.stderr


def test_an_unknown_source_names_near_misses(run):
    result = run("poll", "bbc-wrld")
    assert result.exit_code == 1
    assert "there is no source 'bbc-wrld'" in result.stderr


def test_commands_before_the_first_poll_say_what_to_do(run):
    for command in (["status"], ["sql", "FROM polls"]):
        result = run(*command)
        assert result.exit_code == 1
        assert "there is no warehouse yet" in result.stderr


def test_down_where_nothing_runs_is_no_failure(run):
    result = run("down")
    assert (result.exit_code, result.stdout) == (0, "nothing was running here\n")


# Adding


@pytest.fixture
def publisher(site: Any) -> Any:
    """A site that names its feed."""
    items = "".join(
        f"<item><title>Tram {number} is late</title><link>{site.url(f'/{number}.html')}</link>"
        f"<pubDate>{format_datetime(datetime.now(UTC) - timedelta(hours=number))}</pubDate></item>"
        for number in range(5)
    )
    feed = f'<rss version="2.0"><channel><title>The Tram Letter</title>{items}</channel></rss>'
    link = '<link rel="alternate" type="application/rss+xml" href="/feed.xml">'
    site.add("/", f"<html><head>{link}</head><body>News</body></html>".encode())
    site.add("/feed.xml", feed.encode(), kind="application/rss+xml")
    return site


async def add(
    publisher: Any, home: Path, *options: str, path: str = "/"
) -> subprocess.CompletedProcess[str]:
    import asyncio

    url = publisher.url(path)
    command = [sys.executable, "-P", "-m", "flows.cli", "add", url, "--yes", *options]
    return await asyncio.to_thread(
        subprocess.run, command, cwd=home, capture_output=True, text=True, check=False, timeout=60
    )


async def test_the_first_source_added_says_that_the_catalogue_that_ships_is_out(
    publisher, tmp_path
):
    result = await add(
        publisher, tmp_path, "--allow-private", "--name", "trams", "--timezone", "Europe/Moscow"
    )
    assert result.returncode == 0, result.stderr
    assert "added trams (feed, " in result.stdout
    shipped = len(read_catalogue().sources)
    assert f"the {shipped} sources that come with it no longer" in " ".join(result.stdout.split())
    assert "try it      newsbeat poll trams" in result.stdout
    (source,) = read_catalogue(tmp_path / "data" / "sources").sources
    assert (source.source, source.timezone, source.kind) == ("trams", "Europe/Moscow", "feed")

    publisher.add("/other.xml", publisher.answers["/feed.xml"][0].partition(b"\r\n\r\n")[2])
    again = await add(publisher, tmp_path, "--allow-private", path="/other.xml")
    assert again.returncode == 0, again.stderr
    assert "no longer" not in again.stdout


async def test_a_source_that_is_refused_leaves_the_catalogue_that_ships_in_play(
    publisher, tmp_path
):
    result = await add(publisher, tmp_path, "--allow-private", "--timezone", "Europe/Moskow")
    assert result.returncode == 1
    assert "did you mean Europe/Moscow?" in result.stderr
    assert not (tmp_path / "data").exists()


async def test_an_address_of_your_own_network_is_added_when_you_say_so(publisher, tmp_path):
    result = await add(publisher, tmp_path)
    assert result.returncode == 1
    assert "say --allow-private" in result.stderr
    assert publisher.requests == []


async def test_adding_shows_what_speaks_for_each_find_and_refuses_a_double(publisher, tmp_path):
    result = await add(publisher, tmp_path, "--allow-private")
    assert result.returncode == 0, result.stderr
    table = [line.split() for line in result.stdout.splitlines()]
    heading = next(words for words in table if words[:1] == ["kind"])
    assert {"entries", "newest", "reaches", "text", "address"} <= set(heading)
    row = next(words for words in table if words[:2] == ["1", "feed"])
    assert {"5", publisher.url("/feed.xml")} <= set(row)
    again = await add(publisher, tmp_path, "--allow-private")
    assert again.returncode == 1
    assert "watches it already" in again.stderr


async def test_a_feed_that_robots_txt_forbids_is_named_where_nothing_else_is_there(
    publisher, tmp_path
):
    publisher.add("/robots.txt", b"User-agent: *\nDisallow: /feed.xml\n", kind="text/plain")
    result = await add(publisher, tmp_path, "--allow-private", "--json")
    assert result.returncode == 1
    assert f"it names {publisher.url('/feed.xml')}, but: robots.txt says" in result.stderr
    assert not (tmp_path / "data").exists()


# Up and down


@contextmanager
def newsbeat_up(home: Path) -> Iterator[subprocess.Popen[str]]:
    command = [sys.executable, "-P", "-m", "flows.cli", "up"]
    with subprocess.Popen(command, cwd=home, stdout=subprocess.PIPE, text=True) as process:
        try:
            yield process
        finally:
            if process.poll() is None:
                process.send_signal(signal.SIGINT)


def ask_in(home: Path, *arguments: str) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-P", "-m", "flows.cli", *arguments]
    return subprocess.run(command, cwd=home, capture_output=True, text=True, check=False)


@pytest.mark.slow
@pytest.mark.timeout(400)
def test_up_collects_is_asked_meanwhile_and_is_stopped_by_down(
    reachable_folder: Path,
    new_name: Callable[[str], str],
    make_recorded: Callable[..., RecordedSource],
) -> None:
    home = reachable_folder / new_name("up")
    home.mkdir()
    web = RecordedWeb((make_recorded(),), make_recorded().entries[3].published_at)
    clock = Clock.starting_at(web.start, 1.0)
    (home / "newsbeat.toml").write_text(
        f'clock = "{clock.spell()}"\n[prefect]\nport = {find_free_port()}\n', encoding="utf-8"
    )
    with serve_in_thread(web, clock) as served:
        # The home's own folder `data` must not pass for our package of that name.
        write_catalogue(web.sources(served.port, 60.0), home / "data" / "sources")
        with newsbeat_up(home) as up:
            wait_for_articles(home, 4)
            assert "newsbeat is already up" in ask_in(home, "up").stderr
            assert "Quick run" in ask_in(home, "poll", "harbour").stderr
            assert ask_in(home, "doctor").returncode == 0
            down = ask_in(home, "down")
            said, _ = up.communicate(timeout=60)
    assert (down.returncode, down.stdout.splitlines()[-1]) == (0, "stopped")
    assert up.returncode == 0
    assert "/deployments" in said
    assert "1 source, all well" in said
    assert said.endswith("stopped; everything collected is in the warehouse\n")
    assert running_supervisor(read_settings(home)) is None


def wait_for_articles(home: Path, wanted: int, patience_s: float = 120.0) -> None:
    end = time.monotonic() + patience_s
    while time.monotonic() < end:
        answer = ask_in(home, "status", "--json")
        if answer.returncode == 0:
            rows = json.loads(answer.stdout)["sources"]
            if sum(row["n_articles"] for row in rows) >= wanted:
                return
        time.sleep(2)
    raise AssertionError(f"not {wanted} articles within {patience_s:g} s")
