from __future__ import annotations

import asyncio
import contextlib
import datetime as dt
import functools
import gzip
import importlib.util
import itertools
import ssl
import struct
import time
import tracemalloc
from collections.abc import AsyncIterator, Callable, Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import brotli
import h2.config
import h2.connection
import h2.events
import httpcore
import pytest
import zstandard

from models.errors import (
    ConfigError,
    FetchError,
    PermanentFetchError,
    RefusedFetchError,
    TransientFetchError,
)
from models.records import Fetched, HttpRules, NotModified, Validators
from tasks.clock import Clock
from tasks.exchange import RateFloor
from tasks.fetch import Fetcher
from tasks.settings import AgentSettings, FetchSettings, Settings

_spec = importlib.util.spec_from_file_location(
    "certificates", Path(__file__).parents[2] / "benchmarks" / "parts" / "certificates.py"
)
assert _spec is not None
assert _spec.loader is not None
certificates = importlib.util.module_from_spec(_spec)
_spec.loader.exec_module(certificates)
make_certificate = certificates.make_certificate

HERE = HttpRules(allow_private=True)
PAGE = "<p>Текст</p>".encode() * 2000


def make_settings(**caps: Any) -> Settings:
    return Settings(home=Path("/nowhere"), fetch=FetchSettings(**caps))


@contextlib.asynccontextmanager
async def fetching(**caps: Any) -> AsyncIterator[Fetcher]:
    async with Fetcher(make_settings(**caps)) as fetcher:
        yield fetcher


@pytest.fixture
async def fetcher() -> AsyncIterator[Fetcher]:
    async with fetching() as running:
        yield running


async def read(fetcher: Fetcher, url: str, accept: Any = "page", **more: Any) -> Fetched:
    answer = await fetcher.fetch(url, rules=HERE, accept=accept, **more)
    assert isinstance(answer, Fetched)
    return answer


async def fail(fetcher: Fetcher, url: str, accept: Any = "page", **more: Any) -> FetchError:
    with pytest.raises(FetchError) as caught:
        await fetcher.fetch(url, rules=HERE, accept=accept, **more)
    assert caught.value.url == url
    return caught.value


# What comes back


async def test_a_page_comes_whole_with_its_headers_as_sent(site: Any, fetcher: Fetcher) -> None:
    site.add("/a?b=%D1%82", PAGE, ETag='"v1"', Last_Modified="Fri, 01 Mar 2024 12:00:00 GMT")
    page = await read(fetcher, site.url("/a?b=%D1%82#part"))
    assert (page.status, page.body, page.wire_bytes) == (200, PAGE, len(PAGE))
    assert page.url == page.final_url == site.url("/a?b=%D1%82#part")
    assert ("ETag", '"v1"') in page.headers
    assert page.validators == Validators(
        '"v1"', "Fri, 01 Mar 2024 12:00:00 GMT", site.url("/a?b=%D1%82")
    )
    assert page.content_type == "text/html"
    assert [hop.status for hop in page.hops] == [200]
    assert 0 < page.elapsed_s < 5
    assert abs(page.fetched_at - dt.datetime.now(dt.UTC)) < dt.timedelta(seconds=5)


async def test_the_agent_names_itself_and_asks_for_codings(site: Any) -> None:
    site.add("/", PAGE)
    settings = replace(make_settings(), agent=AgentSettings(contact="desk@example.org"))
    async with Fetcher(settings) as fetcher:
        await read(fetcher, site.url())
    headers = site.requests[0].headers
    assert headers["user-agent"] == "newsbeat/0.1 (+desk@example.org)"
    assert headers["accept-encoding"] == "gzip, deflate, br, zstd"
    assert "cookie" not in headers
    assert "if-none-match" not in headers


async def test_the_moment_of_a_fetch_is_the_clocks(site: Any) -> None:
    site.add("/", PAGE)
    then = dt.datetime(2016, 5, 1, tzinfo=dt.UTC)
    settings = replace(make_settings(), clock=Clock.starting_at(then, 60.0))
    async with Fetcher(settings) as fetcher:
        page = await read(fetcher, site.url())
    assert dt.timedelta(0) <= page.fetched_at - then < dt.timedelta(minutes=10)


@pytest.mark.report("xroche/httrack#556")
@pytest.mark.parametrize(
    ("name", "pack"),
    [("gzip", gzip.compress), ("br", brotli.compress), ("zstd", zstandard.compress)],
)
async def test_codings_are_undone(
    site: Any, fetcher: Fetcher, name: str, pack: Callable[[bytes], bytes]
) -> None:
    packed = pack(PAGE)
    site.add("/", packed, Content_Encoding=name)
    page = await read(fetcher, site.url())
    assert (page.body, page.wire_bytes) == (PAGE, len(packed))


@pytest.mark.report("xroche/httrack#556")
async def test_an_unknown_coding_is_permanent_and_named(site: Any, fetcher: Fetcher) -> None:
    site.add("/", PAGE, Content_Encoding="compress")
    error = await fail(fetcher, site.url())
    assert isinstance(error, PermanentFetchError)
    assert "'compress'" in error.reason


async def test_damaged_compressed_data_is_transient(site: Any, fetcher: Fetcher) -> None:
    site.add("/", b"<html>plain</html>", Content_Encoding="gzip")
    error = await fail(fetcher, site.url())
    assert isinstance(error, TransientFetchError)
    assert "gzip data is damaged" in error.reason


async def test_a_kept_connection_serves_the_next_fetch(site: Any, fetcher: Fetcher) -> None:
    site.add("/", PAGE)
    site.add("/gone", b"gone", status="410 Gone")
    site.add("/old", b"moved", status="301 Moved", Location="/")
    for _ in range(3):
        await read(fetcher, site.url("/old"))
        await fail(fetcher, site.url("/gone"))
    await asyncio.gather(*(read(fetcher, site.url()) for _ in range(2)))
    assert site.n_connections <= 2


async def test_a_kept_connection_that_died_is_replaced(site: Any, fetcher: Fetcher) -> None:
    answers = itertools.cycle([[b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok"], [b""]])
    site.answers["/"] = lambda request: next(answers)
    for _ in range(3):
        assert (await read(fetcher, site.url())).body == b"ok"
    assert site.n_connections == 3


async def test_a_server_that_hangs_up_at_once_is_asked_once(site: Any, fetcher: Fetcher) -> None:
    site.answers["/"] = [b""]
    error = await fail(fetcher, site.url())
    assert isinstance(error, TransientFetchError)
    assert error.reason == "it hung up without an answer"
    assert len(site.requests) == 1


# Bodies that are not what they seem


@pytest.mark.report("psf/requests#4956")
async def test_a_body_shorter_than_announced_is_no_page(site: Any, fetcher: Fetcher) -> None:
    site.answers["/"] = [
        b"HTTP/1.1 200 OK\r\nContent-Length: 10000\r\n\r\n",
        b"only 14 bytes.",
        b"",
    ]
    error = await fail(fetcher, site.url())
    assert isinstance(error, TransientFetchError)
    assert error.reason == "the answer broke off after 14 of 10000 bytes"


async def test_a_chunked_body_without_its_end_is_no_page(site: Any, fetcher: Fetcher) -> None:
    head = b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n"
    site.answers["/"] = [head, b"5\r\nhello\r\n", b""]
    error = await fail(fetcher, site.url())
    assert isinstance(error, TransientFetchError)
    assert "broke off after 5 bytes" in error.reason


async def test_a_body_without_length_ends_with_the_connection(site: Any, fetcher: Fetcher) -> None:
    site.answers["/"] = [b"HTTP/1.1 200 OK\r\n\r\n", PAGE, b""]
    assert (await read(fetcher, site.url())).body == PAGE


def endless(request: Any) -> Iterator[bytes]:
    yield b"HTTP/1.1 200 OK\r\nContent-Type: text/html\r\n\r\n"
    while True:
        yield b"and so on " * 1000


@pytest.mark.report("bda-research/node-crawler#371")
async def test_an_endless_body_is_stopped(site: Any) -> None:
    site.answers["/"] = endless
    async with fetching(max_bytes=200_000) as fetcher:
        error = await fail(fetcher, site.url())
    assert isinstance(error, PermanentFetchError)
    assert error.reason == "larger than 200000 bytes"


async def test_a_body_announced_too_large_is_not_read(site: Any) -> None:
    site.answers["/"] = [b"HTTP/1.1 200 OK\r\nContent-Length: 999999999\r\n\r\n", 30.0]
    async with fetching() as fetcher:
        error = await fail(fetcher, site.url())
    assert "larger than" in error.reason


@pytest.mark.report("xroche/httrack#556")
@pytest.mark.parametrize(
    ("name", "pack"),
    [
        ("gzip", gzip.compress),
        ("br", functools.partial(brotli.compress, quality=4)),
        ("zstd", zstandard.compress),
    ],
)
@pytest.mark.parametrize(
    ("caps", "words"),
    [({"max_inflate_ratio": 50.0}, "inflates"), ({"max_inflate_ratio": 1e9}, "larger than")],
)
async def test_a_bomb_does_not_fill_the_memory(
    site: Any, name: str, pack: Callable[[bytes], bytes], caps: dict[str, float], words: str
) -> None:
    site.add("/", pack(bytes(64 * 2**20)), Content_Encoding=name)
    async with fetching(max_bytes=5 * 2**20, **caps) as fetcher:
        tracemalloc.start()
        try:
            error = await fail(fetcher, site.url())
            _, peak_bytes = tracemalloc.get_traced_memory()
        finally:
            tracemalloc.stop()
    assert isinstance(error, PermanentFetchError)
    assert words in error.reason
    assert peak_bytes < 24 * 2**20


@pytest.mark.report("encode/httpx#1450")
async def test_a_drip_meets_the_deadline(site: Any) -> None:
    head = b"HTTP/1.1 200 OK\r\nContent-Length: 1000\r\n\r\n"
    site.answers["/"] = [head, *([b"x", 0.05] * 1000)]
    async with fetching(total_timeout_s=0.4) as fetcher:
        began = time.monotonic()
        error = await fail(fetcher, site.url())
    assert isinstance(error, TransientFetchError)
    assert error.reason == "no whole answer within 0.4 s"
    assert time.monotonic() - began < 3


@pytest.mark.report("encode/httpx#1450")
async def test_headers_that_drip_meet_the_deadline(site: Any) -> None:
    site.answers["/"] = [b"HTTP/1.1 200 OK\r\n", *([b"X: y\r\n", 0.05] * 1000)]
    async with fetching(total_timeout_s=0.4) as fetcher:
        assert "no whole answer" in (await fail(fetcher, site.url())).reason


async def test_a_silent_server_is_transient(site: Any) -> None:
    site.answers["/"] = [30.0]
    async with fetching(read_timeout_s=0.2) as fetcher:
        error = await fail(fetcher, site.url())
    assert isinstance(error, TransientFetchError)
    assert error.reason == "silent for 0.2 s"


@pytest.mark.report("encode/httpx#1450")
def test_the_rate_is_taken_over_windows() -> None:
    floor = RateFloor(100.0, now=0.0, window_s=10.0)
    assert floor.check(1, now=9.9)
    assert floor.check(999, now=10.0)
    assert floor.check(0, now=19.0)
    assert not floor.check(5, now=20.0)


async def test_cancelling_leaves_the_fetcher_usable(site: Any, fetcher: Fetcher) -> None:
    site.answers["/slow"] = [b"HTTP/1.1 200 OK\r\nContent-Length: 9\r\n\r\n", 30.0]
    site.add("/", PAGE)
    task = asyncio.create_task(read(fetcher, site.url("/slow")))
    await asyncio.sleep(0.1)
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task
    assert (await read(fetcher, site.url())).body == PAGE


# Types


@pytest.mark.report("bda-research/node-crawler#371")
async def test_a_song_is_refused_before_it_is_read(site: Any, fetcher: Fetcher) -> None:
    site.answers["/"] = [b"HTTP/1.1 200 OK\r\nContent-Type: audio/mpeg\r\n\r\n", 30.0]
    began = time.monotonic()
    error = await fail(fetcher, site.url(), "listing")
    assert isinstance(error, PermanentFetchError)
    assert error.reason == "it is audio/mpeg, not a feed, sitemap or list"
    assert time.monotonic() - began < 5


@pytest.mark.parametrize("kind", ["application/octet-stream", "text/plain", "text/html", None])
async def test_a_feed_is_read_under_a_wrong_name(
    site: Any, fetcher: Fetcher, kind: str | None
) -> None:
    site.add("/", b"<rss/>", kind=kind)
    assert (await read(fetcher, site.url(), "listing")).body == b"<rss/>"


async def test_nameless_bytes_that_are_no_markup_are_refused(site: Any, fetcher: Fetcher) -> None:
    site.add("/", b"ID3\x03" + bytes(5000), kind="application/octet-stream")
    error = await fail(fetcher, site.url(), "listing")
    assert isinstance(error, PermanentFetchError)
    assert "application/octet-stream, and no text" in error.reason


async def test_a_gzipped_sitemap_is_unwrapped(site: Any, fetcher: Fetcher) -> None:
    site.add("/sitemap.xml.gz", gzip.compress(b"<urlset/>"), kind="application/x-gzip")
    assert (await read(fetcher, site.url("/sitemap.xml.gz"), "listing")).body == b"<urlset/>"


async def test_of_a_huge_robots_txt_the_first_part_is_read(site: Any, fetcher: Fetcher) -> None:
    site.answers["/robots.txt"] = endless
    page = await read(fetcher, site.url("/robots.txt"), "robots")
    assert 500 * 1024 <= len(page.body) < 2**20


async def test_headers_beyond_the_cap_are_refused(site: Any, fetcher: Fetcher) -> None:
    site.add("/", PAGE, X_Long="y" * 70_000)
    assert "headers of 7" in (await fail(fetcher, site.url())).reason
    site.add("/", PAGE, X_Long="y" * 500_000)
    assert isinstance(await fail(fetcher, site.url()), TransientFetchError)


# Statuses


@pytest.mark.parametrize("status", ["404 Not Found", "410 Gone", "401 No", "403 No", "451 No"])
async def test_a_refusal_by_the_site_is_permanent(site: Any, fetcher: Fetcher, status: str) -> None:
    site.add("/", b"sorry", status=status)
    error = await fail(fetcher, site.url())
    assert isinstance(error, PermanentFetchError)
    assert not isinstance(error, RefusedFetchError)
    assert error.status == int(status[:3])


@pytest.mark.parametrize("status", ["408 T", "425 T", "429 T", "500 T", "503 T", "521 T"])
async def test_an_answer_that_may_pass_is_transient(
    site: Any, fetcher: Fetcher, status: str
) -> None:
    site.add("/", b"", status=status, Retry_After="90")
    error = await fail(fetcher, site.url())
    assert isinstance(error, TransientFetchError)
    assert (error.status, error.retry_after_s) == (int(status[:3]), 90.0)


async def test_a_date_to_retry_after_is_taken_from_the_servers_own_clock(
    site: Any, fetcher: Fetcher
) -> None:
    site.add(
        "/",
        status="503 Busy",
        Date="Fri, 01 Mar 2024 12:00:00 GMT",
        Retry_After="Fri, 01 Mar 2024 12:05:00 GMT",
    )
    error = await fail(fetcher, site.url())
    assert isinstance(error, TransientFetchError)
    assert error.retry_after_s == 300.0


async def test_a_part_of_a_page_is_no_page(site: Any, fetcher: Fetcher) -> None:
    site.add("/", b"half", status="206 Partial Content")
    assert isinstance(await fail(fetcher, site.url()), TransientFetchError)


async def test_a_stream_that_is_no_http_is_transient(site: Any, fetcher: Fetcher) -> None:
    site.answers["/"] = [b"ICY 200 OK\r\nicy-name: radio\r\n\r\n", b""]
    error = await fail(fetcher, site.url())
    assert isinstance(error, TransientFetchError)
    assert "no proper HTTP" in error.reason


# Validators


async def test_validators_are_sent_and_304_is_not_modified(site: Any, fetcher: Fetcher) -> None:
    site.answers["/"] = [b'HTTP/1.1 304 Not Modified\r\nETag: "v2"\r\n\r\n']
    answer = await fetcher.fetch(
        site.url(), rules=HERE, accept="listing", validators=Validators('"v1"', "then")
    )
    assert isinstance(answer, NotModified)
    assert answer.validators == Validators('"v2"', "then", site.url())
    assert site.requests[0].headers["if-none-match"] == '"v1"'
    assert site.requests[0].headers["if-modified-since"] == "then"
    site.add("/", PAGE)
    await read(fetcher, site.url())
    assert site.n_connections == 1


async def test_304_to_a_plain_question_is_an_error(site: Any, fetcher: Fetcher) -> None:
    site.answers["/"] = [b"HTTP/1.1 304 Not Modified\r\n\r\n"]
    assert isinstance(await fail(fetcher, site.url()), TransientFetchError)


async def test_validators_go_to_the_address_that_gave_them_and_no_other(
    site: Any, fetcher: Fetcher
) -> None:
    site.add("/feed", status="302 Found", Location="/new")
    site.add("/new", PAGE, ETag='"n"')
    page = await read(fetcher, site.url("/feed"), "listing")
    await read(fetcher, site.url("/feed"), "listing", validators=page.validators)
    assert [request.headers.get("if-none-match") for request in site.requests] == [
        None,
        None,
        None,
        '"n"',
    ]


async def test_validators_without_an_address_belong_to_the_first_hop(
    site: Any, fetcher: Fetcher
) -> None:
    site.add("/feed", status="302 Found", Location="/portal")
    site.add("/portal", PAGE)
    await read(fetcher, site.url("/feed"), validators=Validators('"v1"'))
    assert [request.headers.get("if-none-match") for request in site.requests] == ['"v1"', None]


@pytest.mark.parametrize("etag", ['"a\r\nX: y"', '"я"', ""])
async def test_a_damaged_validator_is_left_out(site: Any, fetcher: Fetcher, etag: str) -> None:
    site.add("/", PAGE)
    await read(fetcher, site.url(), validators=Validators(etag))
    assert "if-none-match" not in site.requests[0].headers


async def test_a_validator_beyond_ascii_comes_back_as_it_was(site: Any, fetcher: Fetcher) -> None:
    site.answers["/"] = [b'HTTP/1.1 200 OK\r\nETag: "\xe9t\xe9"\r\nContent-Length: 0\r\n\r\n']
    page = await read(fetcher, site.url())
    await read(fetcher, site.url(), validators=page.validators)
    assert site.requests[1].headers["if-none-match"] == '"\xe9t\xe9"'


# Redirects


@pytest.mark.parametrize("status", [301, 302, 303, 307, 308])
async def test_redirects_are_followed_and_kept(site: Any, fetcher: Fetcher, status: int) -> None:
    site.add("/a/b", status=f"{status} Moved", Location="../c d?x=é")
    site.add("/c%20d?x=%C3%A9", PAGE)
    page = await read(fetcher, site.url("/a/b"))
    assert page.final_url == site.url("/c%20d?x=%C3%A9")
    assert [(hop.url, hop.status) for hop in page.hops] == [
        (site.url("/a/b"), status),
        (page.final_url, 200),
    ]


@pytest.mark.report("miniflux/v2#1512")
async def test_a_loop_is_named(site: Any, fetcher: Fetcher) -> None:
    site.add("/a", status="302 Found", Location="/b")
    site.add("/b", status="302 Found", Location="/a")
    error = await fail(fetcher, site.url("/a"))
    assert isinstance(error, PermanentFetchError)
    loop = f"{site.url('/a')} → {site.url('/b')} → {site.url('/a')}"
    assert error.reason == f"redirects in a loop: {loop}"
    assert site.paths == ["/a", "/b"]


async def test_a_loop_with_ever_new_cookies_ends_too(site: Any, fetcher: Fetcher) -> None:
    count = itertools.count()
    site.answers["/a"] = lambda request: [
        b"HTTP/1.1 302 Found\r\nLocation: /a\r\nContent-Length: 0\r\n"
        b"Set-Cookie: n=%d\r\n\r\n" % next(count)
    ]
    error = await fail(fetcher, site.url("/a"))
    assert "in a loop" in error.reason
    assert len(site.requests) == FetchSettings().max_hops + 1


@pytest.mark.report("miniflux/v2#1512")
async def test_a_cookie_set_on_the_way_comes_back_and_is_then_forgotten(
    site: Any, fetcher: Fetcher
) -> None:
    def door(request: Any) -> list[bytes]:
        if request.headers.get("cookie") == "seen=yes":
            return [b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok"]
        return [b"HTTP/1.1 302 Found\r\nLocation: /consent\r\nContent-Length: 0\r\n\r\n"]

    site.answers["/"] = door
    site.add("/consent", status="302 Found", Location="/", Set_Cookie="seen=yes; Path=/")
    assert (await read(fetcher, site.url())).body == b"ok"
    assert site.paths == ["/", "/consent", "/"]
    await read(fetcher, site.url())
    assert "cookie" not in site.requests[3].headers


async def test_a_cookie_in_any_characters_comes_back(site: Any, fetcher: Fetcher) -> None:
    head = "HTTP/1.1 302 Found\r\nLocation: /b\r\nContent-Length: 0\r\nSet-Cookie: a=я\r\n\r\n"
    site.answers["/a"] = [head.encode()]
    site.add("/b", PAGE)
    await read(fetcher, site.url("/a"))
    assert site.requests[1].headers["cookie"] == "a=я".encode().decode("latin-1")


async def test_a_cookie_stays_with_the_host_that_set_it(
    site: Any, other_site: Any, fetcher: Fetcher
) -> None:
    goal = other_site.url("/", host="localhost")
    site.add("/", status="302 Found", Location=goal, Set_Cookie="a=b")
    other_site.add("/", PAGE)
    await read(fetcher, site.url())
    assert "cookie" not in other_site.requests[0].headers


async def test_too_many_redirects_end(site: Any) -> None:
    for n in range(10):
        site.add(f"/{n}", status="302 Found", Location=f"/{n + 1}")
    async with fetching(max_hops=3) as fetcher:
        error = await fail(fetcher, site.url("/0"))
    assert error.reason == f"more than 3 redirects, the last to {site.url('/4')}"
    assert site.paths == ["/0", "/1", "/2", "/3"]


@pytest.mark.parametrize(
    "location", ["ftp://example.org/x", "file:///etc/passwd", "javascript:alert(1)", "data:,x"]
)
async def test_only_http_is_followed(site: Any, fetcher: Fetcher, location: str) -> None:
    site.add("/", status="302 Found", Location=location)
    error = await fail(fetcher, site.url())
    assert isinstance(error, RefusedFetchError)
    assert "not http or https" in error.reason


@pytest.mark.parametrize("location", ["http://", "http://a b/", "//[::g]/", "http://x:99999/"])
async def test_a_redirect_to_no_address_is_permanent(
    site: Any, fetcher: Fetcher, location: str
) -> None:
    site.add("/", status="302 Found", Location=location)
    error = await fail(fetcher, site.url())
    assert isinstance(error, PermanentFetchError)
    assert (error.status, error.final_url) == (302, site.url())


async def test_a_redirect_without_an_address_is_permanent(site: Any, fetcher: Fetcher) -> None:
    site.add("/", status="302 Found")
    assert "without an address" in (await fail(fetcher, site.url())).reason


async def test_the_body_of_a_redirect_is_not_waited_for(site: Any, fetcher: Fetcher) -> None:
    head = b"HTTP/1.1 302 Found\r\nLocation: /b\r\nContent-Length: 90000\r\n\r\n"
    site.answers["/a"] = [head, b"x" * 40_000, 30.0]
    site.add("/b", PAGE)
    began = time.monotonic()
    await read(fetcher, site.url("/a"))
    assert time.monotonic() - began < 5


async def test_every_hop_is_checked_before_it_is_asked(site: Any, fetcher: Fetcher) -> None:
    site.add("/a", status="302 Found", Location="/b")
    seen: list[tuple[str, int]] = []

    async def check_hop(url: str) -> None:
        seen.append((url, len(site.requests)))
        if url.endswith("/b"):
            raise RefusedFetchError(url, "not there")

    with pytest.raises(RefusedFetchError, match="not there"):
        await fetcher.fetch(site.url("/a"), rules=HERE, accept="page", check_hop=check_hop)
    assert seen == [(site.url("/a"), 0), (site.url("/b"), 1)]


async def test_waiting_for_leave_is_not_the_servers_slowness(site: Any) -> None:
    site.add("/", PAGE)

    async def check_hop(url: str) -> None:
        await asyncio.sleep(0.5)

    async with fetching(total_timeout_s=0.4) as fetcher:
        page = await read(fetcher, site.url(), check_hop=check_hop)
    assert page.elapsed_s < 0.4


# Where we do not go


@pytest.mark.parametrize("url", ["ftp://example.org/", "file:///etc/passwd"])
async def test_other_schemes_are_refused(fetcher: Fetcher, url: str) -> None:
    assert isinstance(await fail(fetcher, url), RefusedFetchError)


async def test_an_address_with_a_password_is_refused(fetcher: Fetcher) -> None:
    assert "password" in (await fail(fetcher, "http://user:secret@localhost/")).reason


@pytest.mark.parametrize("url", ["", "example.org", "http://", "http://a b/"])
async def test_what_is_no_address_is_permanent(fetcher: Fetcher, url: str) -> None:
    assert isinstance(await fail(fetcher, url), PermanentFetchError)


@pytest.mark.parametrize("host", ["127.0.0.1", "localhost", "2130706433", "0x7f.1", "[::1]"])
async def test_a_private_address_is_refused_however_it_is_spelled(
    fetcher: Fetcher, host: str
) -> None:
    with pytest.raises(RefusedFetchError, match="loopback") as caught:
        await fetcher.fetch(f"http://{host}:9/", accept="page")
    assert caught.value.url == f"http://{host}:9/"


async def test_a_name_that_leads_inside_is_refused() -> None:
    async def resolve(host: str, port: int) -> list[str]:
        return ["10.0.0.7"]

    settings = replace(make_settings(), agent=AgentSettings(contact="desk@example.org"))
    async with Fetcher(settings, resolve=resolve) as fetcher:
        with pytest.raises(RefusedFetchError, match=r"10\.0\.0\.7 is a private address"):
            await fetcher.fetch("https://inside.example/", accept="page")


class PublicWeb(httpcore.AnyIOBackend):
    """Plays the public net: whatever address is connected to, a site on loopback answers."""

    def __init__(self, port: int) -> None:
        self.port = port
        self.made: list[str] = []

    async def connect_tcp(
        self, host: str, port: int, *args: Any, **kwargs: Any
    ) -> httpcore.AsyncNetworkStream:
        self.made.append(host)
        return await super().connect_tcp("127.0.0.1", self.port)


@contextlib.asynccontextmanager
async def fetching_in_public(
    site: Any, *answers: list[str]
) -> AsyncIterator[tuple[Fetcher, PublicWeb]]:
    """Start a fetcher with a contact, whose resolver gives `answers` one after the other."""
    left = list(answers)

    async def resolve(host: str, port: int) -> list[str]:
        return left.pop(0)

    settings = replace(make_settings(), agent=AgentSettings(contact="desk@example.org"))
    network = PublicWeb(site.port)
    async with Fetcher(settings, resolve=resolve, network=network) as fetcher:
        yield fetcher, network


@pytest.mark.report("fastladder/fastladder#575")
@pytest.mark.parametrize(
    "location", ["http://169.254.169.254/latest", "http://[::1]:8080/", "http://0/", "//10.1/x"]
)
async def test_a_redirect_inside_is_refused(site: Any, location: str) -> None:
    site.add("/", status="302 Found", Location=location)
    async with fetching_in_public(site, ["93.184.216.34"]) as (fetcher, network):
        with pytest.raises(RefusedFetchError, match="does not allow") as caught:
            await fetcher.fetch("http://news.example/", accept="page")
    assert caught.value.url == "http://news.example/"
    assert caught.value.final_url != caught.value.url
    assert network.made == ["93.184.216.34"]


@pytest.mark.report("fastladder/fastladder#575")
async def test_a_name_that_turns_inside_between_hops_is_refused(site: Any) -> None:
    site.add("/", status="302 Found", Location="http://rebinding.example:81/")
    public, inside = ["93.184.216.34"], ["127.0.0.1"]
    async with fetching_in_public(site, public, inside) as (fetcher, network):
        with pytest.raises(RefusedFetchError, match="loopback"):
            await fetcher.fetch("http://rebinding.example/", accept="page")
    assert network.made == public


async def test_a_connection_for_one_source_is_not_another_ones(site: Any) -> None:
    site.add("/", PAGE)
    async with fetching() as fetcher:
        await read(fetcher, site.url())
        with pytest.raises(RefusedFetchError):
            await fetcher.fetch(site.url(), accept="page")


async def test_connect_to_leads_any_host_to_one_place(site: Any, fetcher: Fetcher) -> None:
    site.add("/", PAGE)
    rules = HttpRules(allow_private=True, connect_to=f"127.0.0.1:{site.port}")
    page = await fetcher.fetch("http://news.example/", rules=rules, accept="page")
    assert isinstance(page, Fetched)
    assert site.requests[0].headers["host"] == "news.example"
    with pytest.raises(RefusedFetchError):
        await fetcher.fetch(
            "http://news.example/", rules=replace(rules, allow_private=False), accept="page"
        )


async def test_a_proxy_from_the_environment_is_not_used(
    site: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("HTTP_PROXY", "http://127.0.0.1:9")
    monkeypatch.setenv("ALL_PROXY", "http://127.0.0.1:9")
    site.add("/", PAGE)
    async with fetching() as fetcher:
        await read(fetcher, site.url())


async def test_without_a_contact_only_this_machine_is_asked(fetcher: Fetcher) -> None:
    with pytest.raises(ConfigError, match="NEWSBEAT_AGENT_CONTACT") as caught:
        await fetcher.fetch("https://news.example/", accept="page")
    assert (caught.value.key, caught.value.file) == ("agent.contact", "/nowhere/newsbeat.toml")
    rules = HttpRules(connect_to="198.51.100.1:80")
    with pytest.raises(ConfigError):
        await fetcher.fetch("http://localhost/", rules=rules, accept="page")


# Below HTTP


async def test_a_closed_port_is_transient(site: Any, make_site: Any, fetcher: Fetcher) -> None:
    async with make_site() as gone:
        url = gone.url()
    error = await fail(fetcher, url)
    assert isinstance(error, TransientFetchError)
    assert "no connection" in error.reason


async def test_a_name_that_does_not_resolve_is_transient() -> None:
    async def resolve(host: str, port: int) -> list[str]:
        raise OSError(-2, "Name or service not known")

    settings = replace(make_settings(), agent=AgentSettings(contact="desk@example.org"))
    async with Fetcher(settings, resolve=resolve) as fetcher:
        error = await fail(fetcher, "http://gone.example/x")
    assert isinstance(error, TransientFetchError)
    assert "gone.example does not resolve" in error.reason


async def test_a_slow_look_up_meets_the_connect_timeout() -> None:
    async def resolve(host: str, port: int) -> list[str]:
        await asyncio.sleep(30)
        return []

    settings = make_settings(connect_timeout_s=0.2)
    settings = replace(settings, agent=AgentSettings(contact="desk@example.org"))
    async with Fetcher(settings, resolve=resolve) as fetcher:
        assert "looking up" in (await fail(fetcher, "http://slow.example/")).reason


async def test_a_reset_connection_is_transient(fetcher: Fetcher) -> None:
    def reset(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        sock = writer.get_extra_info("socket")
        sock.setsockopt(1, 13, struct.pack("ii", 1, 0))  # SO_LINGER 0: close with a reset
        writer.transport.abort()

    server = await asyncio.start_server(reset, "127.0.0.1", 0)
    async with server:
        port = server.sockets[0].getsockname()[1]
        error = await fail(fetcher, f"http://127.0.0.1:{port}/")
    assert isinstance(error, TransientFetchError)


# TLS and HTTP/2


async def test_a_certificate_nobody_signed_is_permanent_and_named(
    make_site: Any, tmp_path: Path, fetcher: Fetcher
) -> None:
    server, _ = make_certificate(tmp_path)
    async with make_site(server) as site:
        error = await fail(fetcher, site.url(host="localhost"))
    assert isinstance(error, PermanentFetchError)
    assert "certificate is not valid (self-signed certificate)" in error.reason


@pytest.mark.parametrize(
    ("is_expired", "host", "words"),
    [(True, "localhost", "expired"), (False, "127.0.0.1", "IP address mismatch")],
)
async def test_a_certificate_that_does_not_fit_is_permanent_and_named(
    make_site: Any, tmp_path: Path, is_expired: bool, host: str, words: str
) -> None:
    server, pem = make_certificate(tmp_path, is_expired=is_expired)
    trust = ssl.create_default_context(cafile=str(pem))
    async with make_site(server) as site, Fetcher(make_settings(), tls=trust) as fetcher:
        error = await fail(fetcher, site.url(host=host))
    assert isinstance(error, PermanentFetchError)
    assert words in error.reason


async def test_silence_on_a_tls_connection_is_silence(make_site: Any, tmp_path: Path) -> None:
    server, pem = make_certificate(tmp_path)
    trust = ssl.create_default_context(cafile=str(pem))
    settings = make_settings(read_timeout_s=0.2)
    async with make_site(server) as site, Fetcher(settings, tls=trust) as fetcher:
        site.answers["/"] = [30.0]
        assert (await fail(fetcher, site.url(host="localhost"))).reason == "silent for 0.2 s"


async def test_a_handshake_that_cannot_work_is_permanent_and_named(fetcher: Fetcher) -> None:
    def speak_plainly(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        writer.write(b"HTTP/1.1 400 Bad Request\r\n\r\n")
        writer.close()

    server = await asyncio.start_server(speak_plainly, "127.0.0.1", 0)
    async with server:
        port = server.sockets[0].getsockname()[1]
        error = await fail(fetcher, f"https://127.0.0.1:{port}/")
    assert isinstance(error, PermanentFetchError)
    assert "WRONG_VERSION_NUMBER" in error.reason


# A ServerHello of TLS 1.2 as servers sent it before renegotiation was made safe.
OLD_HELLO = bytes.fromhex("160303002a 02000026 0303") + bytes(32) + bytes.fromhex("00 c02f 00")


@contextlib.asynccontextmanager
async def old_server() -> AsyncIterator[str]:
    async def greet(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await reader.read(65_536)
        writer.write(OLD_HELLO)
        await reader.read(65_536)
        writer.close()

    server = await asyncio.start_server(greet, "127.0.0.1", 0)
    async with server:
        yield f"https://127.0.0.1:{server.sockets[0].getsockname()[1]}/"


@pytest.mark.report("encode/httpx#3298")
async def test_a_server_of_long_ago_is_named_with_the_way_to_it(fetcher: Fetcher) -> None:
    async with old_server() as url:
        error = await fail(fetcher, url)
    assert isinstance(error, PermanentFetchError)
    assert "UNSAFE_LEGACY_RENEGOTIATION_DISABLED" in error.reason
    assert 'http.tls = "legacy"' in error.reason


@pytest.mark.report("encode/httpx#3298")
async def test_a_source_may_connect_as_servers_did_long_ago_and_others_do_not(
    fetcher: Fetcher,
) -> None:
    lenient = replace(HERE, tls="legacy")
    async with old_server() as url:
        with pytest.raises(FetchError) as caught:
            await fetcher.fetch(url, rules=lenient, accept="page")
        assert "LEGACY" not in caught.value.reason
        assert "LEGACY" in (await fail(fetcher, url)).reason


async def test_a_lenient_profile_still_checks_certificates(
    make_site: Any, tmp_path: Path, fetcher: Fetcher
) -> None:
    server, _ = make_certificate(tmp_path)
    async with make_site(server) as site:
        with pytest.raises(PermanentFetchError, match="certificate is not valid"):
            await fetcher.fetch(
                site.url(host="localhost"), rules=replace(HERE, tls="legacy"), accept="page"
            )


async def serve_http2(
    reader: asyncio.StreamReader, writer: asyncio.StreamWriter, body: bytes, headers: Any
) -> None:
    """Answer every request on one HTTP/2 connection with the same body."""
    state = h2.connection.H2Connection(h2.config.H2Configuration(client_side=False))
    state.initiate_connection()
    with contextlib.suppress(OSError, h2.exceptions.ProtocolError):
        while True:
            writer.write(state.data_to_send())
            data = await reader.read(65536)
            if not data:
                break
            for event in state.receive_data(data):
                if isinstance(event, h2.events.RequestReceived):
                    assert event.stream_id is not None
                    state.send_headers(event.stream_id, [(":status", "200"), *headers])
                    for start in range(0, len(body), 16_000):
                        state.send_data(event.stream_id, body[start : start + 16_000])
                    if ("content-length", "99999") not in headers:
                        state.end_stream(event.stream_id)
    writer.close()


@contextlib.asynccontextmanager
async def http2_site(folder: Path, body: bytes, headers: Any) -> AsyncIterator[tuple[str, Fetcher]]:
    server_tls, pem = make_certificate(folder)
    server_tls.set_alpn_protocols(["h2"])
    trust = ssl.create_default_context(cafile=str(pem))

    async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await serve_http2(reader, writer, body, headers)

    server = await asyncio.start_server(serve, "127.0.0.1", 0, ssl=server_tls)
    port = server.sockets[0].getsockname()[1]
    async with server:
        async with Fetcher(
            make_settings(max_bytes=50_000, read_timeout_s=1.0), tls=trust
        ) as fetcher:
            yield f"https://localhost:{port}/", fetcher
        await asyncio.sleep(0.05)


async def test_http2_is_spoken_where_the_server_does(tmp_path: Path) -> None:
    packed = brotli.compress(PAGE)
    headers = [("content-type", "text/html"), ("content-encoding", "br"), ("etag", '"h2"')]
    async with http2_site(tmp_path, packed, headers) as (url, fetcher):
        pages = await asyncio.gather(*(read(fetcher, url) for _ in range(3)))
    assert {(page.http_version, page.body) for page in pages} == {("HTTP/2", PAGE)}
    assert pages[0].validators.etag == '"h2"'


async def test_a_refused_http2_answer_does_not_spoil_the_next(tmp_path: Path) -> None:
    async with http2_site(tmp_path, b"x" * 60_000, [("content-type", "text/html")]) as (url, get):
        for _ in range(3):
            assert "larger than" in (await fail(get, url)).reason


async def test_an_http2_body_that_breaks_off_is_transient(tmp_path: Path) -> None:
    headers = [("content-type", "text/html"), ("content-length", "9999")]
    async with http2_site(tmp_path, b"short", headers) as (url, fetcher):
        assert isinstance(await fail(fetcher, url), TransientFetchError)
