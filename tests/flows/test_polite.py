from __future__ import annotations

import asyncio
import time
from collections.abc import AsyncIterator
from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest

from flows.polite import PoliteFetcher
from models.errors import PermanentFetchError, RefusedFetchError, TransientFetchError
from models.holds import DEFAULT_HOLD_S
from models.records import Fetched, HttpRules, NotModified, Source, Validators
from tasks.clock import Clock
from tasks.settings import FetchSettings, Settings

SPEED = 100.0
ROBOTS = b"User-agent: *\nDisallow: /private\n"


def make_settings(speed: float = SPEED, **caps: Any) -> Settings:
    clock = Clock.starting_at(datetime(2024, 3, 1, tzinfo=UTC), speed)
    return Settings(home=Path("/nowhere"), fetch=FetchSettings(**caps), clock=clock)


@pytest.fixture
async def polite() -> AsyncIterator[PoliteFetcher]:
    async with PoliteFetcher(make_settings()) as running:
        yield running


def source_of(site: Any, **rules: Any) -> Source:
    return Source("here", "Here", site.url("/"), http=HttpRules(allow_private=True, **rules))


async def test_robots_txt_is_asked_once_and_obeyed(site: Any, polite: PoliteFetcher) -> None:
    site.add("/robots.txt", ROBOTS, kind="text/plain")
    site.add("/news", b"news")
    source = source_of(site, min_gap_s=0.0)
    answers = await asyncio.gather(*(polite.fetch(site.url("/news"), source) for _ in range(5)))
    assert all(isinstance(answer, Fetched) for answer in answers)
    with pytest.raises(RefusedFetchError) as caught:
        await polite.fetch(site.url("/private/x"), source)
    assert caught.value.reason == "robots.txt says 'Disallow: /private'"
    assert site.paths == ["/robots.txt", *["/news"] * 5]


async def test_robots_txt_is_asked_again_when_it_is_old(site: Any) -> None:
    site.add("/robots.txt", b"", kind="text/plain")
    site.add("/news", b"news")
    async with PoliteFetcher(make_settings(robots_ttl_s=5.0, host_gap_s=0.0)) as polite:
        await polite.fetch(site.url("/news"), source_of(site))
        site.add("/robots.txt", b"User-agent: newsbeat\nDisallow: /", kind="text/plain")
        await polite.fetch(site.url("/news"), source_of(site))
        await asyncio.sleep(6 / SPEED)
        with pytest.raises(RefusedFetchError):
            await polite.fetch(site.url("/news"), source_of(site))


@pytest.mark.report("flairNLP/fundus#967")
@pytest.mark.parametrize("status", ["401 No", "403 No", "404 None", "410 Gone"])
async def test_a_denied_or_missing_robots_txt_allows(
    site: Any, polite: PoliteFetcher, status: str
) -> None:
    site.add("/robots.txt", b"", status=status)
    site.add("/private", b"news")
    await polite.fetch(site.url("/private"), source_of(site))


async def test_robots_txt_that_redirects_for_ever_allows(site: Any, polite: PoliteFetcher) -> None:
    site.add("/robots.txt", status="302 Found", Location="/robots.txt")
    site.add("/news", b"news")
    await polite.fetch(site.url("/news"), source_of(site, min_gap_s=0.0))


async def test_robots_txt_is_followed_over_five_redirects_and_to_another_host(
    site: Any, other_site: Any, polite: PoliteFetcher
) -> None:
    site.add("/robots.txt", status="301 Moved", Location="/1")
    for hop in range(1, 5):
        site.add(f"/{hop}", status="302 Found", Location=f"/{hop + 1}")
    site.add("/5", status="307 Temporary", Location=other_site.url("/rules"))
    other_site.add("/rules", ROBOTS, kind="text/plain")
    site.add("/news", b"news")
    source = source_of(site, min_gap_s=0.0)
    await polite.fetch(site.url("/news"), source)
    with pytest.raises(RefusedFetchError, match="Disallow: /private"):
        await polite.fetch(site.url("/private"), source)


async def test_robots_txt_out_of_reach_stops_for_now_and_is_not_asked_at_every_page(
    site: Any, polite: PoliteFetcher
) -> None:
    site.add("/robots.txt", status="500 Oops")
    site.add("/news", b"news")
    source = source_of(site, min_gap_s=0.0)
    for _ in range(3):
        with pytest.raises(TransientFetchError, match=r"robots\.txt cannot be read for now .*500"):
            await polite.fetch(site.url("/news"), source)
    assert site.paths == ["/robots.txt"]
    site.add("/robots.txt", ROBOTS)
    await asyncio.sleep(130 / SPEED)
    await polite.fetch(site.url("/news"), source)


async def test_rules_once_read_hold_while_the_file_is_out_of_reach(site: Any) -> None:
    site.add("/robots.txt", ROBOTS)
    site.add("/news", b"news")
    async with PoliteFetcher(make_settings(robots_ttl_s=1.0, host_gap_s=0.0)) as polite:
        await polite.fetch(site.url("/news"), source_of(site))
        site.add("/robots.txt", status="500 Oops")
        await asyncio.sleep(2 / SPEED)
        await polite.fetch(site.url("/news"), source_of(site))
        with pytest.raises(RefusedFetchError):
            await polite.fetch(site.url("/private"), source_of(site))
    assert site.paths == ["/robots.txt", "/news", "/robots.txt", "/news"]


async def test_every_hop_is_asked_of_its_own_robots_txt(
    site: Any, other_site: Any, polite: PoliteFetcher
) -> None:
    site.add("/go", status="302 Found", Location=other_site.url("/private"))
    other_site.add("/robots.txt", ROBOTS)
    other_site.add("/private", b"secret")
    with pytest.raises(RefusedFetchError) as caught:
        await polite.fetch(site.url("/go"), source_of(site))
    assert (caught.value.url, caught.value.final_url) == (
        site.url("/go"),
        other_site.url("/private"),
    )
    assert other_site.paths == ["/robots.txt"]


async def test_robots_txt_is_fetched_by_the_rules_of_the_source(
    site: Any, polite: PoliteFetcher
) -> None:
    site.add("/robots.txt", ROBOTS)
    site.add("/news", b"news")
    source = source_of(site, connect_to=f"127.0.0.1:{site.port}")
    await polite.fetch("http://news.example/news", source)
    assert [request.headers["host"] for request in site.requests] == ["news.example"] * 2


async def test_a_private_address_is_refused_as_such(site: Any, polite: PoliteFetcher) -> None:
    source = Source("here", "Here", site.url("/"))
    with pytest.raises(RefusedFetchError, match="loopback address"):
        await polite.fetch(site.url("/news"), source)


async def test_hops_keep_the_hosts_pace_in_clock_time(site: Any, polite: PoliteFetcher) -> None:
    moments: list[float] = []

    def note(request: Any) -> list[bytes]:
        moments.append(time.monotonic() * SPEED)
        return [b"HTTP/1.1 302 Found\r\nLocation: /b\r\nContent-Length: 0\r\n\r\n"]

    site.answers["/a"] = note
    site.add("/b", b"news")
    site.add("/robots.txt", b"User-agent: *\nCrawl-delay: 4\n")
    began = time.monotonic() * SPEED
    await polite.fetch(site.url("/a"), source_of(site))
    ended = time.monotonic() * SPEED
    assert moments[0] - began >= 0.9
    assert ended - moments[0] >= 3.9


async def test_a_fast_clock_does_not_wait_in_wall_time(site: Any) -> None:
    site.add("/news", b"news")
    async with PoliteFetcher(make_settings(speed=600.0)) as polite:
        began = time.monotonic()
        for _ in range(30):
            await polite.fetch(site.url("/news"), source_of(site))
        assert time.monotonic() - began < 2.0


@pytest.mark.parametrize(
    ("headers", "wait_s"), [({"Retry_After": "300"}, 300.0), ({}, DEFAULT_HOLD_S)]
)
async def test_a_host_that_says_too_many_is_left_alone_by_all(
    site: Any, polite: PoliteFetcher, headers: dict[str, str], wait_s: float
) -> None:
    site.add("/a", status="429 Too Many Requests", **headers)
    site.add("/b", b"news")
    with pytest.raises(TransientFetchError, match="429"):
        await polite.fetch(site.url("/a"), source_of(site))
    n_asked = len(site.requests)
    began = time.monotonic() * SPEED
    if wait_s > 60:
        with pytest.raises(TransientFetchError, match="left alone") as caught:
            await polite.fetch(site.url("/b"), source_of(site))
        assert caught.value.url == site.url("/b")
        assert caught.value.retry_after_s == pytest.approx(wait_s, abs=60)
        assert len(site.requests) == n_asked
    else:
        await polite.fetch(site.url("/b"), source_of(site))
        assert time.monotonic() * SPEED - began >= wait_s * 0.9


async def test_a_busy_server_is_left_alone_only_if_it_asks(
    site: Any, polite: PoliteFetcher
) -> None:
    site.add("/a", status="503 Busy")
    site.add("/b", b"news")
    with pytest.raises(TransientFetchError):
        await polite.fetch(site.url("/a"), source_of(site))
    await polite.fetch(site.url("/b"), source_of(site))


async def test_a_turn_is_given_back_whatever_happens(site: Any) -> None:
    site.add("/gone", status="410 Gone")
    site.answers["/slow"] = [30.0]
    site.add("/news", b"news")
    settings = make_settings(host_connections=1, host_gap_s=0.0)
    async with PoliteFetcher(settings) as polite:
        with pytest.raises(PermanentFetchError):
            await polite.fetch(site.url("/gone"), source_of(site))
        task = asyncio.create_task(polite.fetch(site.url("/slow"), source_of(site)))
        await asyncio.sleep(0.1)
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task
        await asyncio.wait_for(polite.fetch(site.url("/news"), source_of(site)), 5)


async def test_who_gives_up_on_robots_txt_does_not_stop_the_others(site: Any) -> None:
    site.answers["/robots.txt"] = [0.2, b"HTTP/1.1 404 None\r\nContent-Length: 0\r\n\r\n"]
    site.add("/news", b"news")
    async with PoliteFetcher(make_settings(host_gap_s=0.0)) as polite:
        first = asyncio.create_task(polite.fetch(site.url("/news"), source_of(site)))
        second = asyncio.create_task(polite.fetch(site.url("/news"), source_of(site)))
        await asyncio.sleep(0.1)
        first.cancel()
        assert isinstance(await asyncio.wait_for(second, 5), Fetched)


async def test_validators_pass_through(site: Any, polite: PoliteFetcher) -> None:
    site.answers["/feed"] = [b"HTTP/1.1 304 Not Modified\r\n\r\n"]
    answer = await polite.fetch(
        site.url("/feed"), source_of(site), validators=Validators('"v"'), accept="listing"
    )
    assert isinstance(answer, NotModified)


async def test_the_rules_of_a_site_can_be_read(site: Any, polite: PoliteFetcher) -> None:
    site.add("/robots.txt", ROBOTS)
    rules = await polite.robots(site.url("/news"), source_of(site))
    assert rules.explain(site.url("/private"), "newsbeat").rule == "Disallow: /private"


async def test_sources_with_other_ways_of_connecting_do_not_share_robots_txt(
    site: Any, other_site: Any, polite: PoliteFetcher
) -> None:
    other_site.add("/robots.txt", b"User-agent: *\nDisallow: /\n")
    site.add("/news", b"news")
    inside = source_of(site, connect_to=f"127.0.0.1:{site.port}")
    outside = replace(inside, http=replace(inside.http, connect_to=f"127.0.0.1:{other_site.port}"))
    await polite.fetch("http://news.example/news", inside)
    with pytest.raises(RefusedFetchError):
        await polite.fetch("http://news.example/news", outside)
