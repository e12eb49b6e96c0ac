"""Which entries of a listing are new, whatever its publisher does to dates and identifiers."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest

from flows.commands.examining import examine
from flows.poll import poll_source
from models.records import HttpRules, Source

TEXT = "<p>The harbour was busy that day, and the town talked of little else.</p>" * 9
TOKEN = "http://press.example/rss/CBMi2AVBVV95cUxNQVQ0V0RQWF"


@dataclass(frozen=True)
class Item:
    """An item of a feed, as its publisher writes it now."""

    title: str
    link: str
    guid: str | None = None
    date: str | None = None
    summary: str = ""

    def markup(self) -> str:
        parts = [f"<title>{self.title}</title><link>{self.link}</link>"]
        parts += [f"<guid isPermaLink='false'>{self.guid}</guid>"] if self.guid else []
        parts += [f"<pubDate>{self.date}</pubDate>"] if self.date else []
        parts += [f"<description>{self.summary}</description>"] if self.summary else []
        return f"<item>{''.join(parts)}</item>"


def publish(site: Any, items: Sequence[Item]) -> None:
    """Put up a feed of these items, and a page behind each."""
    body = "".join(item.markup() for item in items)
    site.add("/feed", f"<rss><channel>{body}</channel></rss>".encode(), kind="text/xml")
    for item in items:
        page = f"<!doctype html><title>{item.title}</title><h1>{item.title}</h1>{TEXT}"
        site.add(item.link.partition("press.example")[2], page.encode())


def link(path: str) -> str:
    return f"http://press.example/{path}"


def written(at: datetime) -> str:
    return at.strftime("%a, %d %b %Y %H:%M:%S GMT")


@pytest.mark.report("fossar/selfoss#1452")
@pytest.mark.report("danmactough/node-feedparser#85")
async def test_a_date_ahead_is_kept_as_declared_beside_the_first_sight(
    open_press: Any, site: Any
) -> None:
    async with open_press() as room:
        ahead = room.clock.now().replace(microsecond=0) + timedelta(hours=5)
        publish(site, [Item("A bridge", link("bridge"), date=written(ahead))])
        await room.polled()
        publish(site, [
            Item("A tram", link("tram"), date=written(ahead)),
            Item("A bridge", link("bridge"), date=written(ahead)),
        ])  # fmt: skip
        await room.polled()
        rows = room.rows("SELECT published_at, first_seen_at, published_note FROM entries")
        assert {declared for declared, _, _ in rows} == {ahead}
        assert all(seen < ahead for _, seen, _ in rows)
        assert {note for _, _, note in rows} == {"declared 5 h ahead of when it was first seen"}
        assert room.rows("SELECT publication_lag_s FROM articles") == [(None,), (None,)]


@pytest.mark.report("mediacloud/web-search#1147")
async def test_an_implausible_date_is_refused_and_the_reason_kept(
    open_press: Any, site: Any
) -> None:
    async with open_press() as room:
        years = {"bridge": "1246-05-06T00:00:00Z", "tram": "Thu, 01 Jan 1970 00:00:00 GMT"}
        publish(site, [Item(name, link(name), date=date) for name, date in years.items()])
        await room.polled()
        assert room.rows(
            "SELECT title, published_at, published_note FROM entries ORDER BY title"
        ) == [(name, None, f"implausible: {date}") for name, date in years.items()]


@pytest.mark.report("brief-rss/brief#294")
async def test_undated_entries_are_new_once_and_changed_only_by_what_they_say(
    open_press: Any, site: Any
) -> None:
    async with open_press() as room:
        items = [Item("A bridge", link("bridge")), Item("A tram", link("tram"))]
        publish(site, items)
        await room.polled()
        before = room.rows("SELECT entry_id, first_seen_at FROM entries ORDER BY entry_id")
        room.step(hours=1)
        publish(site, items[::-1])
        assert (await room.polled()).poll.outcome == "empty"
        publish(site, [replace(items[0], summary="It is open."), items[1]])
        result = await room.polled()
        assert [item.entry.title for item in result.relisted] == ["A bridge"]
        after = room.rows("SELECT entry_id, first_seen_at FROM entries ORDER BY entry_id")
        assert after == before


@pytest.mark.report("OpenCTI-Platform/opencti#15231")
@pytest.mark.report("dlt-hub/dlt#2269")
async def test_entries_of_one_moment_and_late_ones_are_found_whenever_they_are_listed(
    open_press: Any, site: Any
) -> None:
    async with open_press() as room:
        at = room.clock.now().replace(microsecond=0) - timedelta(hours=1)
        items = [Item(name, link(name), date=written(at)) for name in ("bridge", "tram", "market")]
        publish(site, items[:2])
        assert len((await room.polled()).entries) == 2
        late = Item("school", link("school"), date=written(at - timedelta(hours=9)))
        publish(site, [*items, late])
        assert [new.entry.title for new in (await room.polled()).entries] == ["market", "school"]


@pytest.mark.report("miniflux/v2#4197")
@pytest.mark.report("feedbin/support#416")
@pytest.mark.parametrize("guid", ["article", None], ids=["one guid on all", "no guid"])
async def test_entries_without_a_usable_guid_are_known_by_their_links(
    open_press: Any, site: Any, guid: str | None
) -> None:
    async with open_press() as room:
        items = [Item(f"Story {n}", link(f"s{n}?utm_source=rss"), guid) for n in range(10)]
        publish(site, items)
        assert len((await room.polled()).entries) == 10
        publish(site, [replace(item, link=item.link.partition("?")[0]) for item in items[::-1]])
        assert (await room.polled()).poll.outcome == "empty"


@pytest.mark.report("miniflux/v2#2358")
async def test_a_headline_edited_inside_its_identifier_is_a_version_of_its_article(
    open_press: Any, site: Any
) -> None:
    async with open_press() as room:
        other = Item("Council votes on schools", link("council-votes-on-schools-771235"))
        names = ["gate-of-the-harbour-jams-771234", "gate-of-the-harbour-open-again-771234"]
        first, edited = (
            Item(title, link(name), link(name))
            for title, name in zip(
                ["Gate of the harbour jams", "Gate of the harbour open again"], names, strict=True
            )
        )
        publish(site, [first, other])
        await room.polled()
        publish(site, [edited, other])
        result = await room.polled()
        assert (result.poll.outcome, len(result.relisted)) == ("empty", 1)
        assert room.rows("SELECT count(*) FROM entries") == [(2,)]
        query = "SELECT title, version FROM articles ORDER BY version, title"
        assert room.rows(query) == [(other.title, 1), (edited.title, 2)]
        publish(site, [edited, other])
        assert (await room.polled()).poll.outcome == "empty"
        assert site.paths.count(f"/{names[1]}") == 1


@pytest.mark.report("Athou/commafeed#1755")
async def test_a_fresh_token_in_every_link_and_guid_makes_no_new_entries(
    open_press: Any, site: Any
) -> None:
    async with open_press() as room:
        date = written(room.clock.now() - timedelta(hours=2))

        def listed(poll: int) -> list[Item]:
            stays = Item("Rain ends - The Herald", f"{TOKEN}0", "CBMi0", date)
            token = f"{TOKEN}{poll}Xy"
            return [stays, Item("Trains late - The Courier", token, f"CBMi{poll}Xy", date)]

        publish(site, listed(1))
        assert len((await room.polled()).entries) == 2
        for poll in (2, 3):
            publish(site, listed(poll))
            result = await room.polled()
            assert (result.poll.outcome, result.relisted) == ("empty", ())
        assert room.rows("SELECT count(*) FROM articles") == [(2,)]


@pytest.mark.report("stackernews/stacker.news#138")
async def test_the_copy_for_telephones_listed_later_is_the_page_we_have(
    open_press: Any, site: Any
) -> None:
    async with open_press() as room:
        page, other = Item("A bridge", link("bridge")), Item("A tram", link("tram"))
        publish(site, [page, other])
        await room.polled()
        publish(site, [Item("A bridge", link("amp/bridge")), other])
        assert (await room.polled()).poll.outcome == "empty"
        publish(site, [Item("A bridge is closed", link("amp/bridge")), other])
        assert len((await room.polled()).entries) == 1, "another headline may be another page"


async def test_identity_stays_when_a_source_gives_its_entries_other_identifiers(
    open_press: Any, site: Any
) -> None:
    async with open_press() as room:
        items = [Item(f"Story {n}", link(f"s{n}")) for n in range(4)]
        publish(site, items)
        await room.polled()
        fresh = Item("Story 9", link("s9"), "tag:9")
        publish(site, [fresh, *(replace(item, guid=f"tag:{item.link}") for item in items)])
        result = await room.polled()
        assert [new.entry.title for new in result.entries] == ["Story 9"]
        assert not result.relisted


@pytest.mark.parametrize(
    ("identity", "n_new"), [("auto", 0), ("link", 0), ("title-date", 0), ("guid", 1)]
)
async def test_a_source_may_say_what_its_entries_are_known_by(
    open_press: Any, site: Any, identity: str, n_new: int
) -> None:
    async with open_press(lambda source: replace(source, identity=identity)) as room:
        date = written(datetime(2024, 5, 6, 9, 30, tzinfo=UTC))
        stays = Item("A tram", link("tram"), "tag:tram", date)
        publish(site, [Item("A bridge", link("bridge"), "tag:1", date), stays])
        await room.polled()
        publish(site, [Item("A bridge", link("bridge"), "tag:2", date), stays])
        assert len((await room.polled()).entries) == n_new


async def test_identity_stays_when_a_source_is_told_to_be_known_by_something_else(
    open_press: Any, site: Any
) -> None:
    async with open_press() as room:
        date = written(room.clock.now() - timedelta(hours=2))
        items = [Item(f"Story {n}", link(f"s{n}"), f"tag:{n}", date) for n in range(4)]
        publish(site, items)
        await room.polled()
        told = room.collector.source("harbour")
        for n, policy in enumerate(("link", "title-date", "auto"), start=4):
            items.append(Item(f"Story {n}", link(f"s{n}"), f"tag:{n}", date))
            publish(site, items)
            changed = replace(told, identity=policy)
            result = await poll_source(room.collector, changed)
            assert result is not None
            assert [new.entry.title for new in result.entries] == [f"Story {n}"]


@pytest.mark.report("mediacloud/backend#189")
async def test_sources_that_turn_out_to_read_one_list_are_named(
    open_newsroom: Any, make_recorded: Any, site: Any, tmp_path: Path
) -> None:
    http = HttpRules(allow_private=True, connect_to=f"127.0.0.1:{site.port}", min_gap_s=0.0)
    paths = {"harbour": "/feed", "quay": "/old-feed", "pier": "/other-feed"}

    def beside_each_other(recorded: Source) -> Source:
        url = f"http://press.example{paths[recorded.source]}"
        return Source(recorded.source, recorded.source, url, kind="feed", http=http)

    history = [make_recorded(source=name, host=f"{name}.example") for name in paths]
    publish(site, [Item("A bridge", link("bridge"))])
    site.answers["/other-feed"] = site.answers["/feed"]
    site.add("/old-feed", status="302 Found", Location="http://press.example/feed")
    async with open_newsroom(*history, change=beside_each_other) as room:
        for name in paths:
            await room.polled(name)
        shared = [("http://press.example/feed", ["harbour", "quay"])]
        assert room.rows("SELECT url, sources FROM shared_lists") == shared
    told = [finding.detail for finding in examine(tmp_path) if finding.what == "source"]
    assert told == [
        "harbour and quay read one list, http://press.example/feed: asked and counted twice"
    ]


@pytest.mark.report("Tiendil/feeds.fun#171")
@pytest.mark.parametrize("oldest_first", [False, True])
async def test_a_source_may_be_capped_and_the_newest_of_its_entries_are_taken(
    open_press: Any, site: Any, oldest_first: bool
) -> None:
    async with open_press(lambda source: replace(source, max_entries=5)) as room:
        now = room.clock.now()
        items = [
            Item(f"Letter {n}", link(f"l{n}"), date=written(now - timedelta(hours=n)))
            for n in range(1, 60)
        ]
        publish(site, items[::-1] if oldest_first else items)
        result = await room.polled()
        assert {new.entry.title for new in result.entries} == {f"Letter {n}" for n in range(1, 6)}
        assert result.poll.entries_listed == 5


async def test_relative_links_of_a_feed_follow_its_content_location(
    open_press: Any, site: Any
) -> None:
    async with open_press() as room:
        publish(site, [Item("A bridge", link("deep/bridge"))])
        body = (
            b"<rss><channel><item><title>A bridge</title><link>bridge</link></item></channel></rss>"
        )
        site.add("/feed", body, kind="text/xml", Content_Location="/deep/feed.xml")
        assert [new.entry.url for new in (await room.polled()).entries] == [link("deep/bridge")]
        site.add("/feed", body + b" ", kind="text/xml", Content_Location="http://other.example/x/")
        assert [new.entry.url for new in (await room.polled()).entries] == [link("bridge")]
