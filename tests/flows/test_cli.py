"""Every command: its help, its exit codes, and what it says when something is wrong."""

from __future__ import annotations

import csv
import io
import json
import os
import re
import shlex
import signal
import socket
import subprocess
import sys
import threading
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner, Result

from flows.cli import main
from flows.commands.running import say_moved
from flows.page import make_page_server
from flows.supervisor import running_supervisor
from tasks.catalogue import read_catalogue
from tasks.clock import Clock
from tasks.prefect_server import find_free_port
from tasks.replay.history import Fault, RecordedWeb, write_catalogue
from tasks.replay.server import ServedWeb, serve_in_thread
from tasks.settings import Settings, read_settings
from tasks.warehouse import Warehouse

ROOT = Path(__file__).parents[2]
HEAVY = {
    "prefect", "duckdb", "trafilatura", "numpy", "scipy", "pandas", "numba", "statsmodels",
    "great_expectations", "httpx", "lxml", "feedparser", "rich", "uvicorn", "sqlalchemy",
}  # fmt: skip
HELP_CPU_S = 0.3

Run = Callable[..., Result]


def plain_environment() -> dict[str, str]:
    """Return our environment without what concerns newsbeat and Prefect."""
    return {
        name: text
        for name, text in os.environ.items()
        if not name.startswith(("NEWSBEAT_", "PREFECT_"))
    }


@pytest.fixture
def run(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Run:
    """Runs a command in this process, in the test's own folder."""
    for name in os.environ:
        if name.startswith(("NEWSBEAT_", "PREFECT_")):
            monkeypatch.delenv(name)
    monkeypatch.chdir(tmp_path)
    return lambda *arguments, **given: CliRunner().invoke(main, arguments, **given)


@dataclass
class Home:
    """A home folder whose only sources lie on a recorded web."""

    folder: Path
    served: ServedWeb
    settings: Settings


@pytest.fixture
def home(tmp_path: Path, make_recorded: Any, make_stepped: Any) -> Iterator[Home]:
    lantern = make_recorded(source="lantern", host="lantern.example", title="The Lantern")
    web = RecordedWeb((make_recorded(), lantern), make_recorded().entries[3].published_at)
    clock = Clock.starting_at(web.start, 1.0)
    port = find_free_port()
    (tmp_path / "newsbeat.toml").write_text(
        f'clock = "{clock.spell()}"\n[agent]\ncontact = "tests@newsbeat.example"\n'
        f"[prefect]\nport = {port}\n",
        encoding="utf-8",
    )
    with serve_in_thread(web, clock) as served:
        write_catalogue(web.sources(served.port, 300.0), tmp_path / "data" / "sources")
        yield Home(tmp_path, served, read_settings(tmp_path, {}))


def said(result: Result) -> str:
    """Return the one sentence a failed command says."""
    assert result.exit_code == 1, result.output
    lines = result.stderr.strip().splitlines()
    assert len(lines) == 1, lines
    assert lines[0].startswith("newsbeat: ")
    return lines[0]


# Help


def test_every_command_has_help_with_an_example(run: Run) -> None:
    assert {"demo", "up", "down", "worker", "deploy", "add", "poll", "inspect", "status", "sql",
            "doctor"} <= set(main.commands)  # fmt: skip
    for name in main.commands:
        result = run(name, "--help")
        assert result.exit_code == 0
        assert "Example:" in result.output, name
        assert f"newsbeat {name}" in result.output or "NEWSBEAT_" in result.output, name


def test_the_options_of_every_example_are_there() -> None:
    for name, command in main.commands.items():
        known = {option for item in command.params for option in item.opts}
        example = (command.help or "").partition("Example:")[2]
        uses = re.findall(rf"newsbeat {name}\b(.*)", example)
        assert uses or name == "worker", name
        for use in uses:
            words = shlex.split(use.partition(" | ")[0].partition(" < ")[0])
            assert {word for word in words if word.startswith("--")} <= known, use


def test_help_and_version_are_answered_and_wrong_use_is_2(run: Run) -> None:
    assert run("-h").exit_code == run("--help").exit_code == run("--version").exit_code == 0
    for wrong in (["nonsense"], ["poll"], ["status", "--nonsense"], ["inspect", "x", "--kind", "y"],
                  ["demo", "--minutes", "soon"], ["demo", "--data", "/nowhere"]):  # fmt: skip
        assert run(*wrong).exit_code == 2, wrong


def test_help_loads_nothing_heavy() -> None:
    code = "import sys, flows.cli; print(*{name.partition('.')[0] for name in sys.modules})"
    done = subprocess.run(
        [sys.executable, "-P", "-c", code], capture_output=True, text=True, check=True, cwd=ROOT
    )
    assert HEAVY & set(done.stdout.split()) == set()


def cpu_of(command: list[str]) -> float:
    """Return the processor seconds a command takes."""
    with subprocess.Popen(command, stdout=subprocess.DEVNULL, cwd=ROOT) as process:
        _, status, usage = os.wait4(process.pid, 0)
        process.returncode = os.waitstatus_to_exitcode(status)
    assert process.returncode == 0
    return usage.ru_utime + usage.ru_stime


def test_help_takes_less_than_a_third_of_a_second_of_processor_time() -> None:
    command = [sys.executable, "-P", "-m", "flows.cli", "--help"]
    # The least of several: a busy machine makes the same work look dearer.
    assert min(cpu_of(command) for _ in range(5)) < HELP_CPU_S


# Settings


def test_a_home_that_does_not_exist_is_named(run: Run) -> None:
    assert "no such folder" in said(run("status", "--home", "nowhere"))


def test_a_wrong_setting_names_file_key_value_and_what_is_allowed(run: Run, tmp_path: Path) -> None:
    (tmp_path / "newsbeat.toml").write_text("[fetch]\nmax_hops = 'many'\n")
    sentence = said(run("status"))
    for part in ("newsbeat.toml", "fetch.max_hops", "many", "a whole number"):
        assert part in sentence


# Polling


def test_a_poll_says_what_it_found_and_when_and_why_the_next_is(run: Run, home: Home) -> None:
    result = run("poll", "harbour")
    assert result.exit_code == 0, result.output
    assert "harbour: 4 new of 4 listed, 4 articles stored" in result.output
    assert "next in" in result.output
    again = run("poll", "harbour")
    assert again.exit_code == 0
    assert "nothing new (304)" in again.output


def test_a_poll_as_json_holds_all_of_it(run: Run, home: Home) -> None:
    answer = json.loads(run("poll", "harbour", "--json").stdout)
    assert (answer["source"], answer["outcome"], answer["poll_id"]) == (
        "harbour",
        "new",
        "harbour#1",
    )
    assert answer["entries_new"] == answer["articles_stored"] == len(answer["articles"]) == 4
    assert answer["next_due_at"] > "2025"
    assert answer["why"].startswith("next in")


def test_a_poll_of_a_source_that_fails_is_exit_code_1(run: Run, home: Home) -> None:
    home.served.app.faults.append(Fault("status", where="index", status=500))
    result = run("poll", "harbour")
    assert result.exit_code == 1
    assert "failed: HTTP 500" in result.output
    assert "next in" in result.output


def test_an_unknown_source_names_those_it_is_near_to(run: Run, home: Home) -> None:
    assert "did you mean harbour" in said(run("poll", "harbuor"))


def test_a_broken_entry_is_named_when_it_is_polled_and_the_others_still_work(
    run: Run, home: Home
) -> None:
    file = home.folder / "data" / "sources" / "mine.toml"
    file.write_text('[[source]]\nsource = "moor"\ntitle = "M"\nurl = "nowhere"\nkind = "feed"\n')
    sentence = said(run("poll", "moor"))
    assert "moor" in sentence
    assert "url = 'nowhere' is not allowed" in sentence
    assert run("poll", "harbour").exit_code == 0


def write_private(home: Home, served: str, kind: str, rest: str = "") -> None:
    """Write a source `mine` of this machine into the catalogue."""
    file = home.folder / "data" / "sources" / "mine.toml"
    entry = f'[[source]]\nsource = "mine"\nurl = "{served}"\nkind = "{kind}"\n{rest}'
    file.write_text(entry, encoding="utf-8")


def test_a_source_of_ones_own_network_is_told_how_it_is_allowed(run: Run, home: Home) -> None:
    write_private(home, f"http://127.0.0.1:{home.served.port}/rss", "feed")
    result = run("poll", "mine")
    assert result.exit_code == 1
    assert "allow_private = true in its [source.http]" in result.stdout


class CutOff(BaseHTTPRequestHandler):
    """Serves a feed that ends in its first entry."""

    def do_GET(self) -> None:
        body = b"<rss><channel><item><title>broken" if self.path == "/rss" else b""
        self.send_response(200 if body else 404)
        self.send_header("Content-Type", "application/rss+xml")
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, *_: Any) -> None:
        """Say nothing."""


def test_a_feed_of_which_nothing_could_be_read_does_not_pass_for_a_quiet_one(
    run: Run, home: Home
) -> None:
    with ThreadingHTTPServer(("127.0.0.1", 0), CutOff) as server:
        threading.Thread(target=server.serve_forever, daemon=True).start()
        address = f"http://127.0.0.1:{server.server_port}/rss"
        write_private(home, address, "feed", "[source.http]\nallow_private = true\n")
        # The same bytes again are no news, but still nobody knows what they hold.
        results = [run("poll", "mine") for _ in range(2)]
        server.shutdown()
    for result in results:
        assert "mine: nothing listed: not well-formed XML" in result.stdout
        assert "1 entry has no address" in result.stdout


@pytest.mark.parametrize(
    ("name", "says"), [("Big Name!", "a name is 2 to 63"), ("harbour", "there already")]
)
def test_a_name_is_checked_before_anything_is_fetched(
    run: Run, home: Home, name: str, says: str
) -> None:
    result = run("add", "http://127.0.0.1:9/", "--allow-private", "--name", name)
    assert says in said(result)
    assert "looking at" not in result.stdout


def test_nobody_outside_is_asked_without_a_contact(run: Run, home: Home) -> None:
    (home.folder / "newsbeat.toml").write_text("")
    file = home.folder / "data" / "sources" / "mine.toml"
    file.write_text('[[source]]\nsource = "moor"\ntitle = "M"\nurl = "https://moor.example/"\n')
    result = run("poll", "moor")
    assert result.exit_code == 1
    assert "contact" in result.output


def test_a_second_writer_is_told_who_the_first_is(run: Run, home: Home) -> None:
    with Warehouse.open(home.settings, "newsbeat worker"):
        sentence = said(run("poll", "harbour"))
    assert f"newsbeat worker (pid {os.getpid()} on " in sentence
    assert "one writer at a time" in sentence
    assert run("poll", "harbour").exit_code == 0, "the first is gone"


# Asking


@pytest.fixture
def collected(run: Run, home: Home) -> Home:
    assert run("poll", "harbour").exit_code == 0
    return home


def test_sql_answers_as_table_csv_and_json(run: Run, collected: Home) -> None:
    query = "SELECT source, count(*) AS n, NULL AS nothing FROM articles GROUP BY ALL"
    table = run("sql", query).stdout
    assert "harbour" in table
    assert "(1 row)" in table
    rows = list(csv.DictReader(io.StringIO(run("sql", query, "--csv").stdout)))
    assert rows == [{"source": "harbour", "n": "4", "nothing": ""}]
    assert json.loads(run("sql", query, "--json").stdout) == [
        {"source": "harbour", "n": 4, "nothing": None}
    ]


def test_sql_is_read_from_standard_input(run: Run, collected: Home) -> None:
    result = run("sql", "--json", input="SELECT 6 * 7 AS answer\n")
    assert json.loads(result.stdout) == [{"answer": 42}]


def test_wrong_sql_is_one_sentence(run: Run, collected: Home) -> None:
    sentence = said(run("sql", "SELECT FROM nowhere WHERE"))
    assert "newsbeat.duckdb" in sentence
    assert "did you mean" in said(run("sql", "FROM artikles")).lower()


@pytest.mark.parametrize(
    "query",
    ["DELETE FROM articles", "DROP TABLE polls", "CREATE TABLE x AS SELECT 1", "PRAGMA version",
     "COPY articles TO 'x.csv'", "SELECT 1; DELETE FROM articles"],
)  # fmt: skip
def test_sql_that_writes_is_refused(run: Run, collected: Home, query: str) -> None:
    assert run("sql", query).exit_code == 1
    assert json.loads(run("sql", "SELECT count(*) AS n FROM articles", "--json").stdout) == [
        {"n": 4}
    ]


def test_sql_reads_no_file_of_this_machine(run: Run, collected: Home) -> None:
    (collected.folder / "secret.csv").write_text("a,b\n1,2\n")
    assert run("sql", "FROM 'secret.csv'").exit_code == 1


def test_sql_is_answered_while_a_writer_works(run: Run, collected: Home) -> None:
    with Warehouse.open(collected.settings, "newsbeat worker") as warehouse:
        warehouse.serve()
        command = [sys.executable, "-P", "-m", "flows.cli", "sql", "--csv"]
        done = subprocess.run(
            [*command, "SELECT count(*) AS n FROM articles"],
            capture_output=True, text=True, cwd=collected.folder, env=plain_environment(),
        )  # fmt: skip
    assert done.stdout == "n\n4\n", done.stderr


def test_status_as_json_has_every_source_and_what_is_wrong(run: Run, collected: Home) -> None:
    report = json.loads(run("status", "--json").stdout)
    assert {"now", "is_live", "broken", "late", "possible_losses", "sources"} <= set(report)
    assert report["is_live"] is False
    by_name = {row["source"]: row for row in report["sources"]}
    assert set(by_name) == {"harbour", "lantern"}
    assert by_name["harbour"]["n_articles"] == 4
    assert by_name["lantern"]["n_polls"] == 0
    assert run("status").exit_code == 0


def test_before_the_first_poll_the_way_out_is_named(run: Run, home: Home) -> None:
    for command in (["status"], ["sql", "FROM articles"]):
        sentence = said(run(*command))
        assert "there is no warehouse yet" in sentence
        assert "newsbeat poll" in sentence


def test_the_page_alone_says_that_its_port_is_taken(run: Run, tmp_path: Path) -> None:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
        (tmp_path / "newsbeat.toml").write_text(f"[page]\nport = {port}\n")
        settings = read_settings(tmp_path, {})
        with make_page_server(settings) as page:
            assert say_moved(page, settings) == f" (port {port} is taken)"


# Inspecting

FEED = """<?xml version="1.0"?><rss version="2.0"><channel><title>The Tram Letter</title>
<item><title>Tram 4 is late</title><link>/trams/4</link><guid>t4</guid>
<pubDate>Tue, 04 Mar 2025 07:00:00 +0300</pubDate></item></channel></rss>"""


def test_a_feed_file_is_shown_as_our_parser_reads_it(run: Run, tmp_path: Path) -> None:
    (tmp_path / "feed.xml").write_text(FEED)
    result = run("inspect", "feed.xml", "--base-url", "https://trams.example/rss", "--json")
    found = json.loads(result.stdout)
    assert (found["format"], found["title"]) == ("rss 2.0", "The Tram Letter")
    (entry,) = found["entries"]
    assert entry["url"] == "https://trams.example/trams/4"
    assert entry["published_at"].startswith("2025-03-04T04:00:00")
    assert {"id", "url", "title", "published_at", "published_precision", "published_basis",
            "summary", "authors"} <= set(entry)  # fmt: skip
    text = run("inspect", "feed.xml", "--base-url", "https://trams.example/rss").stdout
    assert "Tram 4 is late" in text


@pytest.mark.parametrize("kind", ["feed", "sitemap", "list", "article", "robots"])
def test_a_page_that_is_no_such_thing_is_one_sentence(run: Run, tmp_path: Path, kind: str) -> None:
    (tmp_path / "page").write_bytes(b"\x00\x01\x02 nothing at all")
    result = run("inspect", "page", "--kind", kind)
    assert result.exit_code in ({0, 1} if kind in ("robots", "list") else {1})
    assert "Traceback" not in result.output


def test_what_reads_an_html_page_is_named_where_a_feed_was_expected(
    run: Run, tmp_path: Path
) -> None:
    (tmp_path / "page.html").write_text("<!DOCTYPE html><html><body>Hello</body></html>")
    assert "--kind list or --kind article" in said(run("inspect", "page.html"))


def test_a_robots_txt_is_explained_for_an_address_only(run: Run, tmp_path: Path) -> None:
    (tmp_path / "robots.txt").write_text("User-agent: *\nDisallow: /\n")
    assert "--url ADDRESS" in said(run("inspect", "robots.txt", "--kind", "robots"))


def test_a_listing_without_an_entry_says_so(run: Run, tmp_path: Path) -> None:
    (tmp_path / "feed.xml").write_text("<rss><channel><item><title>broken")
    text = run("inspect", "feed.xml").stdout
    assert "0 entries:" in text
    assert "warning: 1 entry has no address" in text


def test_a_file_that_is_not_there_is_named(run: Run) -> None:
    assert "nowhere.xml: not readable as a file" in said(run("inspect", "nowhere.xml"))


def test_the_rules_of_a_robots_txt_are_explained(run: Run, tmp_path: Path) -> None:
    (tmp_path / "robots.txt").write_text("User-agent: *\nDisallow: /private\nCrawl-delay: 5\n")
    asked = ["inspect", "robots.txt", "--kind", "robots", "--agent", "newsbeat", "--json", "--url"]
    answer = json.loads(run(*asked, "https://trams.example/private/x").stdout)
    assert answer["allowed"] is False
    assert answer["rule"] == "Disallow: /private"
    assert answer["crawl_delay"] == 5.0
    assert json.loads(run(*asked, "https://trams.example/a").stdout)["allowed"] is True


# Doctor


def test_doctor_finds_a_good_home_good(run: Run, collected: Home) -> None:
    result = run("doctor", "--json")
    findings = json.loads(result.stdout)
    assert result.exit_code == 0, findings
    assert all(finding["state"] != "bad" for finding in findings)
    looked_at = {finding["what"] for finding in findings}
    assert {"Python", "prefect", "duckdb", "settings", "agent", "catalogue", "disk", "warehouse",
            "embedded PostgreSQL", "Prefect"} <= looked_at  # fmt: skip
    assert "4 articles of 2 sources" in run("doctor").stdout


def test_doctor_names_what_is_bad_and_the_way_out(
    run: Run, collected: Home, tmp_path: Path
) -> None:
    port = find_free_port()
    (tmp_path / "newsbeat.toml").write_text(f'[prefect]\napi_url = "http://127.0.0.1:{port}/api"\n')
    (tmp_path / "data" / "sources" / "mine.toml").write_text('[[source]]\nsource = "MOOR"\n')
    collected.settings.database.write_bytes(b"no database")
    result = run("doctor")
    assert result.exit_code == 1
    for part in ("BAD   Prefect", "BAD   warehouse", "left out: ", "MOOR"):
        assert part in result.stdout, part


def test_doctor_survives_settings_that_cannot_be_read(run: Run, tmp_path: Path) -> None:
    (tmp_path / "newsbeat.toml").write_text("[nonsense\n")
    result = run("doctor")
    assert result.exit_code == 1
    assert "BAD   settings" in result.stdout


# The server


def run_apart(folder: Path, *arguments: str, **environment: str) -> Result:
    """Run a command as a process of its own."""
    done = subprocess.run(
        [sys.executable, "-P", "-m", "flows.cli", *arguments],
        capture_output=True, cwd=folder, env=plain_environment() | environment, timeout=120,
    )  # fmt: skip
    return Result(CliRunner(), done.stdout, done.stderr, done.stdout, None, done.returncode, None)


@pytest.mark.parametrize("command", ["worker", "deploy"])
def test_a_server_that_does_not_answer_is_named_with_the_way_out(
    run: Run, home: Home, command: str
) -> None:
    sentence = said(run(command))
    assert f"http://127.0.0.1:{home.settings.prefect.port}/api" in sentence
    assert "does not answer" in sentence
    assert "newsbeat up" in sentence


def test_up_says_whose_port_it_is_and_leaves_nothing_running(
    run: Run, home: Home, reachable_folder: Path, new_name: Any
) -> None:
    folder = reachable_folder / new_name("taken")
    folder.mkdir()
    settings = replace(home.settings, home=folder)
    # The recorded web itself is the other program.
    (folder / "newsbeat.toml").write_text(f"[prefect]\nport = {home.served.port}\n")
    write_catalogue(read_catalogue(home.settings).sources, settings.sources_folder)
    sentence = said(run_apart(folder, "up"))
    assert f"127.0.0.1:{home.served.port}: the port is taken by another program" in sentence
    assert "prefect.port" in sentence
    assert running_supervisor(settings) is None
    assert not (settings.folder / "postgres" / "postmaster.pid").exists()


def test_a_server_of_your_own_that_is_away_is_named(run: Run, home: Home) -> None:
    address = f"http://127.0.0.1:{find_free_port()}/api"
    sentence = said(run_apart(home.folder, "up", NEWSBEAT_PREFECT_API_URL=address))
    assert address in sentence
    assert "does not answer" in sentence


@pytest.mark.server
def test_deploy_shows_progress_and_what_it_did(prefect_server: str, home: Home) -> None:
    result = run_apart(home.folder, "deploy", NEWSBEAT_PREFECT_API_URL=prefect_server)
    assert result.exit_code == 0, result.output
    assert "2/2 lantern" in result.output
    assert "2 deployments made or renewed, 0 as they were" in result.output


@pytest.mark.server
def test_the_worker_works_and_stops_cleanly_when_it_is_told_to(
    prefect_server: str, home: Home
) -> None:
    command = [sys.executable, "-P", "-m", "flows.cli", "worker"]
    environment = plain_environment() | {"NEWSBEAT_PREFECT_API_URL": prefect_server}
    with subprocess.Popen(
        command,
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
        text=True,
        cwd=home.folder,
        env=environment,
    ) as worker:
        assert worker.stdout is not None
        try:
            lines = iter(worker.stdout.readline, "")
            assert any(line.startswith("worker ready: 2 sources") for line in lines)
            poll = run_apart(home.folder, "poll", "harbour")
            assert f"newsbeat worker (pid {worker.pid} on " in said(poll)
        finally:
            worker.send_signal(signal.SIGTERM)
        rest = worker.stdout.read()
    assert worker.returncode == 0
    assert rest.endswith("worker stopped\n")
