"""The recorded web: what it lists, serves, breaks and counts."""

from __future__ import annotations

import gzip
import os
import re
import subprocess
import sys
import time
import tomllib
from collections.abc import Iterator
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from pathlib import Path

import httpx
import pytest
import trafilatura

from models.errors import ConfigError
from tasks.clock import Clock
from tasks.replay.history import (
    Fault,
    InventedPage,
    RecordedEntry,
    RecordedSource,
    RecordedWeb,
    Redesign,
    StoredPage,
    first_of_backlog,
    read_moment,
    write_catalogue,
)
from tasks.replay.pages import article_of, layout_names, make_article_page
from tasks.replay.recording import read_recording
from tasks.replay.sample import SAMPLE_START, sample_web
from tasks.replay.server import ServedWeb, serve_in_process, serve_in_thread

REAL = Path(__file__).parents[2].parent / "shared" / "data"
START = SAMPLE_START
HOUR = timedelta(hours=1)


def still_at(moment: datetime) -> Clock:
    """Return a clock that hardly moves."""
    return Clock(speed=1e-6, anchor_wall=time.time(), anchor_at=moment.timestamp())


def make_source(n_entries: int = 8, **changes: object) -> RecordedSource:
    """Return a source that publishes on the hour, the first two before the start."""
    fields: dict[str, object] = {
        "source": "harbour",
        "title": "The Harbour",
        "host": "harbour.example",
        "kind": "feed",
        "window": 4,
        "latency_s": 0.0,
        "entries": tuple(
            RecordedEntry(
                START + (number - 1) * HOUR, f"/story-{number}", f"T{number}", invented(number)
            )
            for number in range(n_entries)
        ),
    }
    return RecordedSource(**(fields | changes))  # type: ignore[arg-type]


def invented(number: int) -> InventedPage:
    return InventedPage(number)


@pytest.fixture
def served() -> Iterator[ServedWeb]:
    with serve_in_thread(RecordedWeb((make_source(),), START), still_at(START)) as web:
        yield web


def get(web: ServedWeb, path: str, host: str = "harbour.example", **headers: str) -> httpx.Response:
    named = {"host": host} | {key.replace("_", "-"): text for key, text in headers.items()}
    return httpx.get(f"http://127.0.0.1:{web.port}{path}", headers=named)


def move(web: ServedWeb, moment: datetime) -> None:
    web.app.clock = still_at(moment)


def listed_in(response: httpx.Response) -> list[int]:
    """Return the story numbers a listing names, in its order."""
    found = re.findall(r"/story-(\d+)", response.text)
    return [int(number) for number in dict.fromkeys(found)]


@pytest.mark.parametrize("path", ["/feed.xml", "/news-sitemap.xml", "/"])
def test_a_listing_grows_with_the_clock_up_to_its_window(served: ServedWeb, path: str) -> None:
    assert listed_in(get(served, path)) == [1, 0]
    move(served, START + HOUR - timedelta(seconds=1))
    assert listed_in(get(served, path)) == [1, 0]
    move(served, START + HOUR)
    assert listed_in(get(served, path)) == [2, 1, 0]
    move(served, START + 4 * HOUR)
    assert listed_in(get(served, path)) == [5, 4, 3, 2]


@pytest.mark.parametrize("path", ["/feed.xml", "/news-sitemap.xml", "/"])
def test_nothing_new_is_304_by_either_validator(served: ServedWeb, path: str) -> None:
    first = get(served, path)
    assert get(served, path, if_none_match=first.headers["etag"]).status_code == 304
    since = first.headers["last-modified"]
    assert get(served, path, if_modified_since=since).status_code == 304
    move(served, START + HOUR)
    assert get(served, path, if_none_match=first.headers["etag"]).status_code == 200
    assert get(served, path, if_modified_since=since).status_code == 200


def test_an_etag_that_differs_outweighs_the_date(served: ServedWeb) -> None:
    since = get(served, "/feed.xml").headers["last-modified"]
    answer = get(served, "/feed.xml", if_none_match='"old"', if_modified_since=since)
    assert answer.status_code == 200


@pytest.mark.parametrize(
    ("habit", "sent"),
    [
        ("both", {"etag", "last-modified"}),
        ("etag", {"etag"}),
        ("modified", {"last-modified"}),
        ("none", set()),
    ],
)
def test_a_source_sends_the_validators_it_has(habit: str, sent: set[str]) -> None:
    web = RecordedWeb((make_source(validators=habit),), START)
    with serve_in_thread(web, still_at(START)) as served:
        headers = get(served, "/feed.xml").headers
    assert {"etag", "last-modified"} & set(headers) == sent


def test_an_article_is_404_until_it_is_published_and_then_stays_the_same(
    served: ServedWeb,
) -> None:
    assert get(served, "/story-2").status_code == 404
    move(served, START + HOUR)
    first = get(served, "/story-2")
    assert first.status_code == 200
    move(served, START + 30 * HOUR)
    assert get(served, "/story-2").content == first.content
    assert get(served, "/no-such-story").status_code == 404


def test_the_query_belongs_to_the_address() -> None:
    entries = (RecordedEntry(START, "/news.php?id=7", "Seven", invented(7)),)
    with serve_in_thread(
        RecordedWeb((make_source(entries=entries),), START), still_at(START)
    ) as served:
        assert get(served, "/news.php?id=7").status_code == 200
        assert get(served, "/news.php?id=8").status_code == 404


def test_hosts_are_told_apart_and_strangers_refused() -> None:
    other = replace(make_source(), source="lantern", host="lantern.example", title="The Lantern")
    with serve_in_thread(RecordedWeb((make_source(), other), START), still_at(START)) as served:
        assert "The Lantern" in get(served, "/feed.xml", "lantern.example").text
        assert "The Lantern" in get(served, "/feed.xml", f"LANTERN.example:{served.port}").text
        assert "The Harbour" in get(served, "/feed.xml").text
        assert get(served, "/feed.xml", "stranger.example").status_code == 404


def test_robots_txt_allows_articles_and_names_the_sitemap(served: ServedWeb) -> None:
    robots = get(served, "/robots.txt")
    assert robots.headers["content-type"].startswith("text/plain")
    assert "Sitemap: http://harbour.example/news-sitemap.xml" in robots.text


@pytest.mark.parametrize(
    ("encoding", "language"),
    [("windows-1251", "ru"), ("koi8-r", "ru"), ("gb18030", "zh"), ("iso-8859-1", "de")],
)
@pytest.mark.parametrize("path", ["/feed.xml", "/", "/story-0"])
def test_legacy_encodings_are_in_the_bytes(encoding: str, language: str, path: str) -> None:
    source = make_source(encoding=encoding, language=language, layout="tables", front="table")
    with serve_in_thread(RecordedWeb((source,), START), still_at(START)) as served:
        answer = get(served, path)
    assert answer.headers["content-type"].endswith(f"charset={encoding}")
    assert encoding.encode() in answer.content.lower()
    text = answer.content.decode(encoding)
    if path == "/story-0":
        paragraph = article_of(source, invented(0)).paragraphs[0]
        assert paragraph[:20].encode(encoding, "xmlcharrefreplace").decode(encoding) in text
        with pytest.raises(UnicodeDecodeError):
            answer.content.decode("utf-8")


def test_what_an_encoding_lacks_becomes_a_reference() -> None:
    entries = (RecordedEntry(START, "/a", "Snow ☃ and \x08 control", invented(1)),)
    source = make_source(entries=entries, encoding="windows-1251")
    with serve_in_thread(RecordedWeb((source,), START), still_at(START)) as served:
        assert b"Snow &#9731; and  control" in get(served, "/feed.xml").content


def test_gzip_is_used_where_accepted_and_counted(served: ServedWeb) -> None:
    plain = get(served, "/story-0", accept_encoding="identity")
    with httpx.stream(
        "GET",
        f"http://127.0.0.1:{served.port}/story-0",
        headers={"host": "harbour.example", "accept-encoding": "gzip"},
    ) as response:
        wire = b"".join(response.iter_raw())
    assert "content-encoding" not in plain.headers
    assert gzip.decompress(wire) == plain.content
    counts = served.app.counts["harbour"]
    assert counts.article_bytes == len(wire) + len(plain.content)


def test_head_tells_the_length_and_sends_no_body(served: ServedWeb) -> None:
    answer = httpx.head(
        f"http://127.0.0.1:{served.port}/story-0", headers={"host": "harbour.example"}
    )
    assert answer.status_code == 200
    assert int(answer.headers["content-length"]) > 0
    assert served.app.counts["harbour"].articles == 0


def test_statistics_say_what_was_served(served: ServedWeb) -> None:
    first = get(served, "/feed.xml")
    get(served, "/feed.xml", if_none_match=first.headers["etag"])
    get(served, "/story-0")
    get(served, "/story-7")
    get(served, "/robots.txt")
    said = httpx.get(f"http://127.0.0.1:{served.port}/_replay/statistics").json()
    counts = said["sources"]["harbour"]
    assert counts["requests"] == 5
    assert (counts["index_full"], counts["index_not_modified"]) == (1, 1)
    assert (counts["articles"], counts["not_found"], counts["robots"]) == (1, 1, 1)
    assert counts["served"] == 2
    assert said["totals"] == counts
    listed = httpx.get(f"http://127.0.0.1:{served.port}/_replay/served").json()
    assert listed == {
        "harbour": ["http://harbour.example/story-0", "http://harbour.example/story-1"]
    }


def test_listed_holds_what_scrolled_off_and_not_what_was_gone_before() -> None:
    web = RecordedWeb((make_source(n_entries=12),), START + 5 * HOUR)
    urls = web.listed(START + 7 * HOUR)["harbour"]
    assert urls == {f"http://harbour.example/story-{number}" for number in range(3, 9)}
    assert len(web.listed(START + 7 * HOUR, since=START - 24 * HOUR)["harbour"]) == 9


@pytest.mark.parametrize(("status", "after"), [(503, 120), (500, None), (429, 30), (410, None)])
def test_status_faults_answer_so_while_they_last(
    served: ServedWeb, status: int, after: int | None
) -> None:
    fault = Fault("status", status=status, retry_after_s=after, until_at=START + HOUR)
    served.app.faults.append(fault)
    answer = get(served, "/feed.xml")
    assert answer.status_code == status
    assert answer.headers.get("retry-after") == (None if after is None else str(after))
    move(served, START + HOUR)
    assert get(served, "/feed.xml").status_code == 200
    assert served.app.counts["harbour"].faults == 1


def test_a_fault_befalls_only_its_host_and_place(served: ServedWeb) -> None:
    served.app.faults += [
        Fault("status", host="elsewhere.example"),
        Fault("status", where="article", status=500),
    ]
    assert get(served, "/feed.xml").status_code == 200
    assert get(served, "/story-0").status_code == 500


def test_a_fault_of_every_second_request_spares_the_others(served: ServedWeb) -> None:
    served.app.faults.append(Fault("status", every=2))
    assert [get(served, "/feed.xml").status_code for _ in range(4)].count(503) == 2


@pytest.mark.parametrize("where", ["index", "article"])
def test_a_cut_answer_breaks_off(served: ServedWeb, where: str) -> None:
    served.app.faults.append(Fault("cut", where=where))  # type: ignore[arg-type]
    with pytest.raises(httpx.RemoteProtocolError):
        get(served, "/feed.xml" if where == "index" else "/story-0")
    assert served.app.counts["harbour"].served == set()


@pytest.mark.parametrize("kind", ["slow", "drip"])
def test_slow_answers_come_late_but_whole(served: ServedWeb, kind: str) -> None:
    whole = get(served, "/story-0").content
    served.app.faults.append(Fault(kind, wait_s=0.3))  # type: ignore[arg-type]
    began = time.monotonic()
    assert get(served, "/story-0").content == whole
    assert time.monotonic() - began >= 0.28


def test_a_wrong_content_type_is_claimed(served: ServedWeb) -> None:
    served.app.faults.append(Fault("content_type", content_type="text/plain"))
    assert get(served, "/feed.xml").headers["content-type"] == "text/plain"


def test_a_changing_etag_never_gives_304(served: ServedWeb) -> None:
    served.app.faults.append(Fault("changing_etag"))
    first = get(served, "/feed.xml").headers["etag"]
    assert get(served, "/feed.xml", if_none_match=first).status_code == 200


def test_a_stuck_etag_hides_news(served: ServedWeb) -> None:
    served.app.faults.append(Fault("stuck_etag"))
    first = get(served, "/feed.xml").headers["etag"]
    move(served, START + 3 * HOUR)
    assert get(served, "/feed.xml", if_none_match=first).status_code == 304


def test_unreadable_validators_never_give_304(served: ServedWeb) -> None:
    served.app.faults.append(Fault("bad_validators"))
    sent = get(served, "/feed.xml").headers
    assert sent["last-modified"] == "yesterday"
    again = get(
        served, "/feed.xml", if_none_match=sent["etag"], if_modified_since=sent["last-modified"]
    )
    assert again.status_code == 200


def test_faults_can_be_sent_in_and_taken_away(served: ServedWeb) -> None:
    address = f"http://127.0.0.1:{served.port}/_replay/faults"
    until = (START + HOUR).isoformat()
    httpx.post(address, json={"kind": "status", "status": 502, "until_at": until})
    assert get(served, "/feed.xml").status_code == 502
    httpx.delete(address)
    assert get(served, "/feed.xml").status_code == 200


@pytest.mark.parametrize(
    "given", [{"kind": "staus"}, {"kind": "cut", "where": "page"}, {"kind": "cut", "colour": 1}]
)
def test_faults_there_are_none_of_are_refused(served: ServedWeb, given: dict[str, object]) -> None:
    address = f"http://127.0.0.1:{served.port}/_replay/faults"
    assert httpx.post(address, json=given).status_code == 400
    assert served.app.faults == []


def test_a_redesign_changes_pages_and_their_validators() -> None:
    source = make_source(redesigns=(Redesign(START + HOUR, "tables", front="table"),))
    with serve_in_thread(RecordedWeb((source,), START), still_at(START)) as served:
        before, front_before = get(served, "/story-0"), get(served, "/")
        move(served, START + HOUR)
        after, front_after = get(served, "/story-0"), get(served, "/")
    assert "<article>" in before.text
    assert "<TABLE" in after.text
    assert before.headers["etag"] != after.headers["etag"]
    assert "river" in front_before.text
    assert "<TABLE" in front_after.text
    assert article_of(source, invented(0)).paragraphs[0] in after.text


def test_pages_kept_as_found_are_served_byte_for_byte() -> None:
    body = b"<meta charset=windows-1251>\xef\xf0\xe8\xe2\xe5\xf2"
    source = make_source(
        entries=(RecordedEntry(START, "/old", "Old", StoredPage(body)),),
        redesigns=(Redesign(START, "tables"),),
    )
    with serve_in_thread(RecordedWeb((source,), START), still_at(START)) as served:
        answer = get(served, "/old")
    assert answer.content == body
    assert answer.headers["content-type"] == "text/html"


WHOLE = [name for name in layout_names() if not name.endswith("_half")]
"""Layouts that show all of their text."""


@pytest.mark.parametrize("layout", WHOLE)
@pytest.mark.parametrize("language", ["en", "ru", "de", "zh"])
def test_each_layout_gives_its_true_text_to_an_extractor(layout: str, language: str) -> None:
    source = make_source(n_entries=12, language=language, layout=layout)
    found = 0
    paragraphs = 0
    for number in range(6, 12):
        body = make_article_page(source, number, layout).body
        text = "".join((trafilatura.extract(body) or "").split())
        truth = article_of(source, InventedPage(number)).paragraphs
        found += sum("".join(paragraph.split()) in text for paragraph in truth)
        paragraphs += len(truth)
    assert found >= 0.9 * paragraphs


def test_there_are_a_dozen_layouts() -> None:
    assert len(layout_names()) >= 12


def test_the_sample_has_all_kinds_languages_and_legacy_encodings() -> None:
    web = sample_web(hours=3.0)
    assert len(web.history) == 12
    assert {each.kind for each in web.history} == {"feed", "sitemap", "list"}
    assert {each.feed_format for each in web.history} == {"rss", "atom"}
    assert {each.language for each in web.history} == {"ru", "en", "zh", "de"}
    encodings = {each.encoding for each in web.history}
    assert {"windows-1251", "koi8-r", "gb18030", "iso-8859-1"} <= encodings
    assert len({each.layout for each in web.history}) == 12
    for each in web.history:
        assert each.host.endswith(".example")
        assert len(each.window_at(web.start)) >= 10
        assert len({entry.path for entry in each.entries}) == len(each.entries)


def test_the_sample_is_the_same_for_the_same_seed() -> None:
    assert sample_web(hours=2.0) == sample_web(hours=2.0)
    assert sample_web(hours=2.0) != sample_web(hours=2.0, seed=2)


def test_more_than_twelve_sources_are_numbered_copies_with_lives_of_their_own() -> None:
    web = sample_web(hours=2.0, n_sources=30)
    assert len({each.source for each in web.history}) == 30
    assert len({each.host for each in web.history}) == 30
    assert web.history[0].times != web.history[12].times
    assert web.history[24].source == f"{web.history[0].source}-3"


def test_a_backlog_is_by_time_but_never_nearly_empty() -> None:
    times = [START - timedelta(hours=hour) for hour in range(40, -10, -2)]
    assert START - times[first_of_backlog(times, START, 30.0)] == 30 * HOUR
    assert START - times[first_of_backlog(times, START, 2.0)] == 18 * HOUR
    assert first_of_backlog(times[-8:], START, 2.0) == 0


def test_the_catalogue_is_written_so_that_a_collector_reaches_it(tmp_path: Path) -> None:
    web = sample_web(hours=1.0)
    path = write_catalogue(web.sources(8123, interval_s=240.0), tmp_path / "sources")
    written = tomllib.loads(path.read_text(encoding="utf-8"))["source"]
    assert [table["source"] for table in written] == [each.source for each in web.history]
    table = written[1]
    assert table["http"] == {
        "allow_private": True,
        "connect_to": "127.0.0.1:8123",
        "min_gap_s": 0.0,
    }
    assert table["poll"]["interval_s"] == 240.0
    assert table["extract"]["text"] == "td.newstext"
    assert {each["kind"] for each in written} == {"feed", "sitemap", "list"}


def test_a_process_of_its_own_serves_and_ends_with_its_context() -> None:
    with serve_in_process(RecordedWeb((make_source(),), START), still_at(START)) as port:
        answer = httpx.get(f"http://127.0.0.1:{port}/feed.xml", headers={"host": "harbour.example"})
        assert listed_in(answer) == [1, 0]
    with pytest.raises(httpx.ConnectError):
        httpx.get(f"http://127.0.0.1:{port}/feed.xml")


def test_the_serving_process_ends_when_its_maker_is_killed(tmp_path: Path) -> None:
    script = tmp_path / "maker.py"
    script.write_text(
        "import os, time\n"
        "from tasks.clock import Clock\n"
        "from tasks.replay.sample import sample_web\n"
        "from tasks.replay.server import serve_in_process\n"
        "if __name__ == '__main__':\n"
        "    with serve_in_process(sample_web(hours=1.0), Clock()) as port:\n"
        "        print(port, flush=True)\n"
        "        time.sleep(60)\n"
    )
    repository = str(Path(__file__).parents[2])
    environment = os.environ | {"PYTHONPATH": repository}
    with subprocess.Popen(
        [sys.executable, str(script)], stdout=subprocess.PIPE, text=True, env=environment
    ) as maker:
        assert maker.stdout is not None
        port = int(maker.stdout.readline())
        httpx.get(f"http://127.0.0.1:{port}/_replay/statistics")
        maker.kill()
        maker.wait()
    deadline = time.monotonic() + 10.0
    while time.monotonic() < deadline:
        try:
            httpx.get(f"http://127.0.0.1:{port}/_replay/statistics", timeout=1.0)
        except httpx.TransportError:
            return
        time.sleep(0.1)
    pytest.fail("the serving process outlived its maker")


def test_a_taken_port_is_one_clear_error(served: ServedWeb) -> None:
    with (
        pytest.raises(ConfigError, match="stop what uses it or name another"),
        serve_in_thread(served.app.web, Clock(), served.port),
    ):
        pass


@pytest.mark.parametrize("make", [False, True])
def test_a_folder_without_recordings_says_what_is_expected(tmp_path: Path, make: bool) -> None:
    folder = tmp_path / "data"
    if make:
        (folder / "B_html").mkdir(parents=True)
        (folder / "B_html" / "index.csv").write_text("site\n")
    with pytest.raises(ConfigError, match=r"A_timestamps/events\.parquet") as caught:
        read_recording(folder)
    assert str(folder) in str(caught.value)


def test_a_broken_folder_is_a_clear_error(tmp_path: Path) -> None:
    for name in ("A_timestamps/events.parquet", "A_timestamps/sources.csv", "B_html/index.csv"):
        path = tmp_path / name
        path.parent.mkdir(exist_ok=True)
        path.write_text("nonsense\n1\n")
    with pytest.raises(ConfigError, match="not readable as a folder of recordings"):
        read_recording(tmp_path)


def run_by_hand(*arguments: str) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-m", "tasks.replay", *arguments]
    repository = Path(__file__).parents[2]
    return subprocess.run(command, capture_output=True, text=True, cwd=repository, timeout=60)


def test_served_by_hand_it_says_what_is_wrong_and_fails(tmp_path: Path) -> None:
    without_data = run_by_hand("--data", str(tmp_path / "nowhere"))
    assert without_data.returncode == 1
    assert without_data.stderr.count("\n") == 1
    assert "A_timestamps/sources.csv" in without_data.stderr
    assert run_by_hand("--start", "yesterday").returncode == 2
    assert run_by_hand("--help").returncode == 0


def test_moments_are_read_as_utc() -> None:
    assert read_moment("2025-03-04T07:00:00") == datetime(2025, 3, 4, 7, tzinfo=UTC)
    assert read_moment("2025-03-04T10:00:00+03:00") == datetime(2025, 3, 4, 7, tzinfo=UTC)


@pytest.fixture(scope="module")
def recording() -> RecordedWeb:
    if not (REAL / "B_html" / "index.csv").is_file():
        pytest.skip(f"no recordings at {REAL}")
    return read_recording(REAL, hours=4.0)


@pytest.mark.real
def test_a_recording_plays_a_dozen_sources_and_their_pages(recording: RecordedWeb) -> None:
    assert len(recording.history) >= 12
    assert {each.kind for each in recording.history} == {"feed", "sitemap", "list"}
    assert len({each.language for each in recording.history}) >= 3
    for each in recording.history:
        assert each.host.endswith(".example")
        assert len({entry.path for entry in each.entries}) == len(each.entries)
        assert len(each.window_at(recording.start)) >= 10
        assert all(entry.title for entry in each.entries)
        assert all(entry.published_at.microsecond == 0 for entry in each.entries)


@pytest.mark.real
def test_each_recorded_source_has_the_pages_of_a_site_of_its_own(recording: RecordedWeb) -> None:
    pages = [
        {entry.page.body for entry in each.entries if isinstance(entry.page, StoredPage)}
        for each in recording.history
    ]
    assert sum(bool(bodies) for bodies in pages) >= 8
    for at, bodies in enumerate(pages):
        for others in pages[at + 1 :]:
            assert not bodies & others
    assert sum(len(bodies) for bodies in pages) > 300


@pytest.mark.real
def test_recorded_times_are_the_real_ones_moved_by_whole_days(recording: RecordedWeb) -> None:
    duckdb = pytest.importorskip("duckdb")
    each = recording.history[0]
    rows = duckdb.execute(
        "SELECT epoch_ms(published_at) // 1000 FROM read_parquet(?) WHERE source = ?",
        [str(REAL / "A_timestamps" / "events.parquet"), each.title],
    ).fetchall()
    real = {int(stamp) for (stamp,) in rows}
    first = each.entries[0].published_at
    shifts = {
        day
        for day in range(-4000, 4000)
        if int((first - timedelta(days=day)).timestamp()) in real
        and all(int((at - timedelta(days=day)).timestamp()) in real for at in each.times)
    }
    assert shifts


@pytest.mark.real
def test_a_recording_is_served_and_much_of_it_can_be_extracted(recording: RecordedWeb) -> None:
    good = tried = 0
    with serve_in_thread(recording, still_at(recording.start)) as served:
        for each in recording.history:
            assert get(served, "/feed.xml", each.host).status_code == 200
            number = each.window_at(recording.start)[-1]
            answer = get(served, each.entries[number].path, each.host)
            page = each.entries[number].page
            assert isinstance(page, StoredPage)
            assert answer.content == page.body
            tried += 1
            good += len(trafilatura.extract(answer.content) or "") > 200
    assert good >= 0.7 * tried
