"""Polls when our own machine, or a publisher's bytes, do what nobody foresaw."""

from __future__ import annotations

import errno
import json
import time
from dataclasses import replace
from typing import Any

import pytest

from models.errors import WarehouseError


def add_feed(site: Any, title: str = "A bridge") -> None:
    """Publish one article, with half a character in every field that can hold one."""
    item = {
        "id": "1\udfff",
        "url": "http://press.example/bridge",
        "title": title,
        "content_text": "\ud83d",
    }
    feed = {"version": "https://jsonfeed.org/version/1", "title": "\ud800", "items": [item]}
    site.add("/feed", json.dumps(feed).encode(), kind="application/feed+json")
    text = "".join(
        f"<p>On day {day} the harbour was busy &#xD83D; and the town talked of the bridge.</p>"
        for day in range(9)
    )
    page = (
        f"<!doctype html><title>{title} &#xDC00;</title><article><h1>{title}</h1>{text}</article>"
    )
    site.add("/bridge", page.encode("utf-8", "replace"))


async def test_half_characters_do_not_keep_a_source_from_being_stored(
    open_press: Any, site: Any
) -> None:
    async with open_press() as room:
        add_feed(site, "A bridge \ud83d")
        assert (await room.polled()).poll.articles_stored == 1
        add_feed(site, "Another title \udc00")
        assert (await room.polled()).poll.articles_stored == 1
        assert room.rows("SELECT title FROM entries") == [("A bridge \ufffd",)]
        assert room.rows("SELECT extraction, version FROM articles") == [("trafilatura", 2)]


async def test_a_poll_that_the_database_does_not_take_is_a_failed_one_and_its_source_goes_on(
    open_press: Any, site: Any
) -> None:
    async with open_press() as room:
        add_feed(site)
        whole = room.collector.warehouse.store_poll
        room.collector.warehouse.store_poll = lambda result: whole(_spoiled(result))
        result = await room.polled()
        assert result.poll.outcome == "failed"
        assert result.poll.reason.startswith("what it found could not be stored: ")
        assert room.rows("SELECT outcome, entries_new FROM polls") == [("failed", 0)]
        assert room.rows("SELECT count(*) FROM entries") == [(0,)]
        room.collector.warehouse.store_poll = whole
        assert (await room.polled()).poll.articles_stored == 1


def _spoiled(result: Any) -> Any:
    """Return a result of which one value is none that the database knows."""
    entries = tuple(replace(item, fingerprint=None) for item in result.entries)
    return replace(result, entries=entries)


class FullDisk:
    """A store of raw pages on a disk that is full."""

    def store(self, *_: Any) -> None:
        full = OSError(errno.ENOSPC, "No space left on device")
        raise WarehouseError("warc", "raw pages cannot be written", "Free some space") from full


@pytest.mark.parametrize("where", ["listing", "article"])
async def test_a_full_disk_is_not_held_against_the_source(
    open_press: Any, site: Any, where: str
) -> None:
    async with open_press() as room:
        add_feed(site)
        whole = room.collector.pages
        room.collector.pages = FullDisk()
        if where == "article":
            room.collector.pages.store = lambda answer, source: (
                whole.store(answer, source)
                if "feed" in answer.url
                else FullDisk.store(room.collector.pages)
            )
            room.collector.pages.flush = whole.flush
        for _ in range(3):
            with pytest.raises(WarehouseError, match="cannot be written"):
                await room.poll(cycle=1)
        assert room.rows("SELECT count(*) FROM polls") == [(0,)]
        assert room.rows("SELECT consecutive_failures, state, cycle FROM schedule") == [
            (0, "active", 1)
        ]
        room.collector.pages = whole
        assert (await room.poll(cycle=1)).poll.articles_stored == 1
        assert room.rows("SELECT attempts FROM pending_articles") == []


async def test_a_claim_that_cannot_be_taken_back_on_disk_holds_up_nobody(
    open_press: Any, site: Any
) -> None:
    async with open_press() as room:
        add_feed(site)
        warehouse = room.collector.warehouse
        whole = warehouse.store_poll, warehouse.end_claim

        def refuse(*_: Any) -> None:
            raise WarehouseError("newsbeat.duckdb", "the disk is full", "Free some space")

        def forget(source: str) -> None:
            warehouse._claimed.discard(source)
            refuse()

        warehouse.store_poll, warehouse.end_claim = refuse, forget
        with pytest.raises(WarehouseError, match="full"):
            await room.poll(cycle=1)
        assert room.rows("SELECT lease_until IS NOT NULL FROM schedule") == [(True,)]
        warehouse.store_poll, warehouse.end_claim = whole
        assert (await room.poll(cycle=1)).poll.articles_stored == 1
        assert room.rows("SELECT lease_until FROM schedule") == [(None,)]


async def test_a_server_cannot_silence_its_source_for_years(open_press: Any, site: Any) -> None:
    async with open_press() as room:
        site.add("/feed", status="503 Service Unavailable", Retry_After="1e300")
        result = await room.polled()
        assert result.poll.outcome == "failed"
        assert (result.schedule.due_at - room.clock.now()).days <= 7


async def test_a_huge_listing_is_parsed_beside_the_loop(open_press: Any, site: Any) -> None:
    async with open_press() as room:
        item = "<item><title>Story {0}</title><link>http://press.example/{0}</link></item>"
        body = "".join(item.format(number) for number in range(60_000))
        site.add("/feed", f"<rss><channel>{body}</channel></rss>".encode(), kind="text/xml")
        before_s = time.thread_time()
        result = await room.polled()
        loop_s = time.thread_time() - before_s
        assert result.poll.entries_listed == 500
        assert loop_s < result.poll.cpu_s


async def test_identifiers_made_up_anew_do_not_make_the_list_new(
    open_press: Any, site: Any
) -> None:
    async with open_press() as room:

        def publish(poll: int, names: list[str]) -> None:
            items = "".join(
                f"<item><title>{name}</title><link>http://press.example/{name}</link>"
                f"<guid>{poll}-{name}</guid></item>"
                for name in names
            )
            site.add("/feed", f"<rss><channel>{items}</channel></rss>".encode(), kind="text/xml")

        text = "<p>The harbour was busy that day, and the town talked of little else.</p>" * 9
        names = ["bridge", "tram", "market", "school"]
        for name in [*names, "ferry"]:
            site.add(f"/{name}", f"<!doctype html><h1>{name}</h1>{text}".encode())
        publish(1, names)
        assert len((await room.polled()).entries) == 4
        publish(2, ["ferry", *names[:3]])
        result = await room.polled()
        assert [item.entry.title for item in result.entries] == ["ferry"]
        assert (result.poll.overlap, result.poll.possible_loss) == (True, False)
        publish(3, ["ferry", *names[:3]])
        assert (await room.polled()).poll.outcome == "empty"
        assert room.rows("SELECT count(*) FROM entries") == [(5,)]
        assert site.paths.count("/bridge") == 1


async def test_an_article_that_is_as_before_does_not_count_as_stored(
    open_press: Any, site: Any
) -> None:
    async with open_press() as room:
        add_feed(site)
        page = site.answers["/bridge"]
        assert (await room.polled()).poll.articles_stored == 1
        add_feed(site, "Another title, in the list alone")
        site.answers["/bridge"] = page
        assert (await room.polled()).poll.articles_stored == 0
        assert site.paths.count("/bridge") == 2
        assert room.rows("SELECT articles_stored FROM polls ORDER BY cycle") == [(1,), (0,)]
