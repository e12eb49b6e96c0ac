"""Raw pages: what is written is read back, whatever happens in between."""

import gzip
import re
import subprocess
import sys
import threading
from dataclasses import replace
from datetime import UTC, datetime, timedelta

import pytest
from warcio.archiveiterator import ArchiveIterator

from models.errors import WarehouseError
from models.records import Fetched
from tasks.clock import Clock
from tasks.pages import PageStore, read_page
from tasks.settings import Settings, WarehouseSettings

BODY = "<html><body>Привет, мир. 你好。</body></html>".encode("cp1251", "xmlcharrefreplace")


def fetched(body: bytes = BODY, **changes: object) -> Fetched:
    answer = Fetched(
        url="https://daily.example/a",
        final_url="https://daily.example/a.html",
        status=200,
        headers=(
            ("Content-Type", "text/html; charset=windows-1251"),
            ("Content-Encoding", "br"),
            ("Transfer-Encoding", "chunked"),
            ("Set-Cookie", "a=1"),
            ("Set-Cookie", "b=2"),
            ("X-Odd", "line one\r\n line two"),
        ),
        body=body,
        fetched_at=datetime.now(UTC),
        elapsed_s=0.2,
        wire_bytes=40,
        http_version="HTTP/2",
    )
    return replace(answer, **changes)


@pytest.fixture
def store(settings):
    opened = PageStore(settings, "test")
    yield opened
    opened.close()


def records(settings: Settings) -> list[tuple[str, dict[str, str], list[tuple[str, str]], bytes]]:
    """Return type, WARC fields, HTTP headers and body of every record, digests checked."""
    found = []
    for path in sorted(settings.warc_folder.rglob("*.warc.gz")):
        with path.open("rb") as file:
            for record in ArchiveIterator(file, check_digests="raise"):
                http = record.http_headers.headers if record.http_headers else []
                body = record.content_stream().read()
                found.append((record.rec_type, dict(record.rec_headers.headers), http, body))
    return found


def test_a_page_is_read_back_as_it_was_fetched(store, settings):
    page = store.store(fetched(), "daily")
    assert (page.source, page.url, page.status) == ("daily", "https://daily.example/a.html", 200)
    assert page.bytes == len(BODY)
    assert read_page(settings.warc_folder, page) == BODY


@pytest.mark.parametrize("body", [b"", b"\r\n\r\n", b"WARC/1.1\r\n", bytes(range(256)) * 40])
def test_any_bytes_come_back(store, settings, body):
    pages = [store.store(fetched(), "daily"), store.store(fetched(body), "daily")]
    assert [read_page(settings.warc_folder, page) for page in pages] == [BODY, body]


def test_the_file_is_warc_1_1_with_the_headers_as_sent(store, settings):
    store.store(fetched(), "daily")
    (about, _, _, text), (kind, page_fields, headers, body) = records(settings)
    assert (about, kind, body) == ("warcinfo", "response", BODY)
    assert b"software: newsbeat" in text
    assert page_fields["WARC-Target-URI"] == "https://daily.example/a.html"
    assert page_fields["X-Requested-URI"] == "https://daily.example/a"
    assert page_fields["WARC-Payload-Digest"].startswith("sha256:")
    assert re.fullmatch(r"\d{4}-\d\d-\d\dT[\d:]{8}\.\d{6}Z", page_fields["WARC-Date"])
    # What described the bytes on the wire is kept, but no longer claims to be true.
    assert headers == [
        ("Content-Type", "text/html; charset=windows-1251"),
        ("X-Archive-Orig-Content-Encoding", "br"),
        ("X-Archive-Orig-Transfer-Encoding", "chunked"),
        ("Set-Cookie", "a=1"),
        ("Set-Cookie", "b=2"),
        ("X-Odd", "line one  line two"),
        ("Content-Length", str(len(BODY))),
    ]


def test_the_same_bytes_again_are_a_short_record_and_the_same_place(store, settings):
    first = store.store(fetched(), "daily")
    again = store.store(fetched(), "daily")
    other = store.store(fetched(b"other"), "daily")
    assert again.page_id != first.page_id
    assert (again.warc_file, again.warc_offset) == (first.warc_file, first.warc_offset)
    assert read_page(settings.warc_folder, again) == BODY
    assert read_page(settings.warc_folder, other) == b"other"
    kinds = [(kind, body) for kind, _, _, body in records(settings)[1:]]
    assert kinds == [("response", BODY), ("revisit", b""), ("response", b"other")]
    assert records(settings)[2][1]["WARC-Refers-To"] == records(settings)[1][1]["WARC-Record-ID"]


def test_a_visit_that_found_nothing_new_can_go_unrecorded(settings):
    store = PageStore(settings, write_revisits=False)
    store.store(fetched(), "daily")
    store.store(fetched(), "daily")
    store.close()
    assert [kind for kind, *_ in records(settings)] == ["warcinfo", "response"]


def test_page_ids_are_unique_and_sort_by_time(settings):
    start = datetime(2026, 3, 1, tzinfo=UTC)
    stores = [PageStore(settings), PageStore(settings)]
    pages = [
        stores[n % 2].store(fetched(f"{n}".encode(), fetched_at=start + timedelta(seconds=n)), "a")
        for n in range(30)
    ]
    for store in stores:
        store.close()
    ids = [page.page_id for page in pages]
    assert ids == sorted(set(ids))


def test_every_start_has_a_file_of_its_own(settings):
    for _ in range(2):
        store = PageStore(settings)
        store.store(fetched(), "daily")
        store.close()
    assert len(list(settings.warc_folder.rglob("*.warc.gz"))) == 2


def test_a_store_that_stores_nothing_makes_no_file(settings):
    store = PageStore(settings)
    store.flush()
    store.close()
    assert not settings.warc_folder.exists()


@pytest.mark.report("duckdb/duckdb#12286")
def test_a_new_day_opens_a_new_folder_and_deletes_those_past_retention(tmp_path):
    clock = Clock.starting_at(datetime(2026, 3, 10, 23, 59, 59, tzinfo=UTC), speed=20.0)
    settings = Settings(tmp_path, warehouse=WarehouseSettings(warc_days=7), clock=clock)
    for day in ("2026-03-02", "2026-03-03", "2026-03-04", "notes"):
        (settings.warc_folder / day).mkdir(parents=True)
    store = PageStore(settings)
    first = store.store(fetched(), "daily")
    assert sorted(path.name for path in settings.warc_folder.iterdir()) == [
        "2026-03-03", "2026-03-04", "2026-03-10", "notes",
    ]  # fmt: skip
    while clock.now().day == 10:
        pass
    second = store.store(fetched(), "daily")
    store.close()
    assert [first.warc_file[:10], second.warc_file[:10]] == ["2026-03-10", "2026-03-11"]
    # The second day's page must not lean on a file that is deleted a day sooner.
    assert read_page(settings.warc_folder, second) == BODY
    assert not (settings.warc_folder / "2026-03-03").exists()


def test_a_page_past_retention_is_a_clear_error(store, settings):
    page = store.store(fetched(), "daily")
    (settings.warc_folder / page.warc_file).unlink()
    with pytest.raises(WarehouseError, match="no longer kept"):
        read_page(settings.warc_folder, page)


@pytest.mark.parametrize("harm", ["cut", "flip", "other offset", "other digest"])
def test_damage_is_noticed(store, settings, harm):
    page = store.store(fetched(BODY * 50), "daily")
    path = settings.warc_folder / page.warc_file
    data = bytearray(path.read_bytes())
    if harm == "cut":
        path.write_bytes(data[: page.warc_offset + 100])
    elif harm == "flip":
        data[-30] ^= 0xFF
        path.write_bytes(data)
    elif harm == "other offset":
        page = replace(page, warc_offset=page.warc_offset + 7)
    else:
        page = replace(page, sha256="0" * 64)
    with pytest.raises(WarehouseError, match="is damaged"):
        read_page(settings.warc_folder, page)


def test_a_kill_tears_at_most_the_last_record(settings, other):
    code = """
from tasks.pages import PageStore
import hashlib
store = PageStore(settings)
for n in range(100000):
    body = hashlib.sha256(str(n).encode()).digest() * 3000
    at = datetime.now(UTC)
    page = store.store(Fetched(f'https://x/{n}', f'https://x/{n}', 200, (), body, at, 0.1, 1), 'x')
    print(page.warc_file, page.warc_offset, page.sha256, flush=True)
"""
    from models.records import Page

    victim = other(code)
    said = [victim.said() for _ in range(40)]
    victim.kill()
    store = PageStore(settings)
    after = store.store(fetched(), "daily")
    store.close()
    for line in said:
        file, offset, digest = line.split()
        page = Page("p", "x", "https://x/", after.fetched_at, 200, 1, digest, file, int(offset))
        assert len(read_page(settings.warc_folder, page)) == 96_000
    assert read_page(settings.warc_folder, after) == BODY


def test_several_threads_may_store_while_another_flushes(store, settings):
    pages, failures = [], []

    def work(name: int) -> None:
        try:
            for n in range(25):
                pages.append(store.store(fetched(f"{name}-{n}".encode() * 100), "daily"))
                store.flush()
        except Exception as error:
            failures.append(error)

    threads = [threading.Thread(target=work, args=(name,)) for name in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(30)
    assert not failures
    assert len({read_page(settings.warc_folder, page) for page in pages}) == 100


def test_a_full_disk_leaves_the_file_whole(settings, other):
    code = """
import resource, secrets
from tasks.pages import PageStore, read_page
from models.errors import WarehouseError
resource.setrlimit(resource.RLIMIT_FSIZE, (50_000, 50_000))
store, pages = PageStore(settings), []
def page(n):
    body = secrets.token_bytes(n)
    return Fetched('https://x/', f'https://x/{n}', 200, (), body, datetime.now(UTC), 0.1, 1)
try:
    while True:
        pages.append(store.store(page(9_000), 'x'))
except WarehouseError as error:
    print(error, flush=True)
pages.append(store.store(page(100), 'x'))
store.close()
print([len(read_page(settings.warc_folder, page)) for page in pages], flush=True)
"""
    small = other(code)
    assert re.search("raw pages cannot be written: .*Free some space", small.said())
    assert small.said() == "[9000, 9000, 9000, 9000, 9000, 100]"
    assert [kind for kind, *_ in records(settings)] == ["warcinfo"] + ["response"] * 6


def test_other_tools_can_unpack_the_file(store, settings):
    page = store.store(fetched(), "daily")
    store.flush()
    whole = gzip.decompress((settings.warc_folder / page.warc_file).read_bytes())
    assert whole.count(b"WARC/1.1\r\n") == 2
    command = [
        sys.executable,
        "-m",
        "warcio.cli",
        "check",
        str(settings.warc_folder / page.warc_file),
    ]
    checked = subprocess.run(command, capture_output=True, text=True, timeout=60)
    assert (checked.returncode, checked.stdout) == (0, "")
