"""One poll of one source against a recorded web, and against a site that misbehaves."""

from __future__ import annotations

import asyncio
import re
from collections import Counter
from collections.abc import Callable
from dataclasses import replace
from datetime import timedelta
from email.utils import format_datetime
from typing import Any

import pytest

from models.records import Article, Fetched, Source
from tasks.pages import read_page
from tasks.replay.history import RecordedEntry, StoredPage
from tasks.replay.sample import sample_web
from tasks.settings import ExtractSettings, FetchSettings, WorkerSettings

MINUTE = timedelta(minutes=1)


async def test_the_first_poll_stores_all_that_is_listed(open_newsroom: Any) -> None:
    async with open_newsroom() as room:
        result = await room.polled()
        poll = result.poll
        assert (poll.outcome, poll.http_status, poll.cycle) == ("new", 200, 1)
        assert (poll.entries_listed, poll.entries_new, poll.articles_stored) == (4, 4, 4)
        assert sorted(room.urls()) == sorted(room.listed())
        assert (poll.overlap, poll.possible_loss) == (None, False)
        assert poll.index_bytes > 0
        assert poll.article_bytes > 0
        assert result.schedule.cycle == 2
        assert result.schedule.due_at > room.clock.now()
        (row,) = room.rows("SELECT outcome, entries_new, next_due_at FROM polls")
        assert row == ("new", 4, result.schedule.due_at)
        (lags,) = room.rows(
            "SELECT count(*) FILTER (is_backlog), count(publication_lag_s) FROM articles"
        )
        assert lags == (4, 4)


async def test_every_fetched_page_is_kept_as_it_came(open_newsroom: Any) -> None:
    async with open_newsroom() as room:
        result = await room.polled()
        assert len(result.pages) == 5
        for page in result.pages:
            body = read_page(room.settings.warc_folder, page)
            assert len(body) == page.bytes > 0
        rows = room.rows("SELECT count(*) FROM articles JOIN pages USING (page_id)")
        assert rows == [(4,)]


async def test_nothing_new_is_304_and_costs_next_to_nothing(open_newsroom: Any) -> None:
    async with open_newsroom() as room:
        await room.polled()
        room.step(minutes=5)
        poll = (await room.polled()).poll
        assert (poll.outcome, poll.http_status, poll.cycle) == ("not_modified", 304, 2)
        assert (poll.index_bytes, poll.article_bytes, poll.entries_new) == (0, 0, 0)
        assert poll.overlap is True
        assert room.served.app.counts["harbour"].index_not_modified == 1


async def test_the_same_body_is_nothing_new_where_no_validators_are_given(
    open_newsroom: Any, make_recorded: Any
) -> None:
    async with open_newsroom(make_recorded(validators="none")) as room:
        await room.polled()
        room.step(minutes=5)
        result = await room.polled()
        assert (result.poll.outcome, result.poll.http_status) == ("empty", 200)
        assert result.poll.index_bytes > 0
        assert result.pages == ()


async def test_new_entries_are_found_and_the_known_ones_left_alone(open_newsroom: Any) -> None:
    async with open_newsroom() as room:
        await room.polled()
        room.step(hours=2)
        poll = (await room.polled()).poll
        assert (poll.entries_listed, poll.entries_new, poll.articles_stored) == (6, 2, 2)
        assert (poll.overlap, poll.possible_loss) == (True, False)
        assert sorted(room.urls()) == sorted(room.listed())
        assert room.served.app.counts["harbour"].articles == 6
        assert room.rows("SELECT count(*) FROM articles WHERE NOT is_backlog") == [(2,)]


async def test_a_window_that_moved_on_is_a_possible_loss(open_newsroom: Any) -> None:
    async with open_newsroom() as room:
        await room.polled()
        room.step(hours=20)
        poll = (await room.polled()).poll
        assert (poll.entries_new, poll.overlap, poll.possible_loss) == (6, False, True)
        assert len(room.listed()) - len(room.urls()) == 2
        assert room.rows("SELECT source FROM possible_losses") == [("harbour",)]


async def test_articles_that_fail_for_now_are_owed_and_fetched_later(open_newsroom: Any) -> None:
    async with open_newsroom() as room:
        room.fault("status", where="article", status=500)
        first = await room.polled()
        assert (first.poll.outcome, first.poll.entries_new) == ("new", 4)
        assert (first.poll.articles_stored, len(first.pending)) == (0, 4)
        assert {item.attempts for item in first.pending} == {1}
        room.mend()
        too_soon = await room.polled()
        assert too_soon.poll.articles_stored == 0
        room.step(minutes=2)
        second = await room.polled()
        assert second.poll.outcome == "not_modified"
        assert second.poll.articles_stored == 4
        assert sorted(room.urls()) == sorted(room.listed())
        assert room.rows("SELECT count(*) FROM pending_articles") == [(0,)]


async def test_an_article_tried_often_enough_is_stood_in_for_by_its_listing(
    open_newsroom: Any,
) -> None:
    async with open_newsroom(extract=ExtractSettings(retry_base_s=60.0, max_attempts=2)) as room:
        room.fault("status", where="article", status=500)
        await room.polled()
        room.step(minutes=2)
        await room.polled()
        rows = room.rows("SELECT DISTINCT extraction, kind, warnings FROM articles")
        assert rows == [("listing", "empty", ["HTTP 500 Internal Server Error, 2 times"])]
        assert sorted(room.urls()) == sorted(room.listed())
        room.mend()
        room.step(minutes=10)
        assert (await room.polled()).poll.articles_stored == 0


@pytest.mark.parametrize("status", [404, 410])
async def test_a_page_that_is_gone_is_stood_in_for_at_once(open_newsroom: Any, status: int) -> None:
    async with open_newsroom() as room:
        room.fault("status", where="article", status=status)
        result = await room.polled()
        assert (result.poll.articles_stored, result.pending) == (4, ())
        titles = room.rows("SELECT title FROM articles WHERE extraction = 'listing' ORDER BY 1")
        assert titles[0] == ("Story number 0 of the harbour",)
        assert len(titles) == 4


async def test_a_poll_fetches_no_more_than_its_share_and_owes_the_rest(open_newsroom: Any) -> None:
    async with open_newsroom(extract=ExtractSettings(articles_per_poll=3)) as room:
        first = await room.polled()
        assert (first.poll.entries_new, first.poll.articles_stored) == (4, 3)
        room.step(hours=1)
        second = await room.polled()
        assert (second.poll.entries_new, second.poll.articles_stored) == (1, 2)
        assert sorted(room.urls()) == sorted(room.listed())


async def test_a_failed_poll_says_why_and_sets_the_next(open_newsroom: Any) -> None:
    async with open_newsroom() as room:
        room.fault("status", where="index", status=500)
        result = await room.polled()
        assert (result.poll.outcome, result.poll.http_status) == ("failed", 500)
        assert "500" in result.poll.reason
        assert result.schedule.due_at > room.clock.now()
        assert result.schedule.consecutive_failures == 1
        assert room.rows("SELECT count(*) FROM entries") == [(0,)]
        room.mend()
        good = await room.polled()
        assert (good.poll.outcome, good.schedule.consecutive_failures) == ("new", 0)


async def test_a_source_that_goes_on_failing_is_called_so_and_asked_less_often(
    open_newsroom: Any,
) -> None:
    async with open_newsroom() as room:
        await room.polled()
        room.fault("status", where="index", status=500)
        waits = []
        for _ in range(4):
            room.step(hours=3)
            result = await room.polled()
            waits.append((result.schedule.due_at - result.poll.finished_at).total_seconds())
        assert result.schedule.state == "failing"
        assert waits[3] > waits[2] > waits[1] > waits[0]
        room.mend()
        good = await room.polled()
        assert good.schedule.state == "active"
        # The validators of the time before the failures must not hide what came since.
        assert good.poll.entries_new > 0


async def test_a_server_that_asks_to_wait_is_left_alone_as_long(open_newsroom: Any) -> None:
    async with open_newsroom() as room:
        room.fault("status", where="index", status=429, retry_after_s=3600)
        result = await room.polled()
        wait = result.schedule.due_at - result.poll.finished_at
        assert timedelta(minutes=59) < wait < timedelta(minutes=61)
        assert "the server asked to wait 1 h" in result.schedule.reason
        room.mend()
        room.step(hours=1, minutes=1)
        assert (await room.polled()).poll.outcome == "new"


async def test_an_answer_that_breaks_off_stores_nothing_of_itself(open_newsroom: Any) -> None:
    async with open_newsroom() as room:
        room.fault("cut", where="index")
        assert (await room.polled()).poll.outcome == "failed"
        assert room.rows("SELECT count(*) FROM entries") == [(0,)]
        room.mend()
        room.fault("cut", where="article")
        result = await room.polled()
        assert (len(result.pending), result.poll.articles_stored) == (4, 0)
        room.mend()
        room.step(minutes=2)
        await room.polled()
        assert sorted(room.urls()) == sorted(room.listed())


async def test_a_slow_listing_is_given_up_and_the_next_poll_set(open_newsroom: Any) -> None:
    caps = FetchSettings(host_gap_s=0.0, total_timeout_s=0.5)
    async with open_newsroom(fetch=caps) as room:
        room.fault("slow", where="index", wait_s=5.0)
        result = await room.polled()
        assert result.poll.outcome == "failed"
        assert "0.5 s" in result.poll.reason
        assert result.schedule.cycle == 2


async def test_a_poll_that_takes_too_long_keeps_what_it_has_and_owes_the_rest(
    open_newsroom: Any,
) -> None:
    async with open_newsroom(worker=WorkerSettings(poll_timeout_s=1.0)) as room:
        room.fault("slow", where="article", wait_s=8.0)
        result = await room.polled()
        # The listing was read: a source with slow pages is not a failing one.
        assert (result.poll.outcome, result.poll.reason) == ("new", "")
        assert (len(result.entries), len(result.pending)) == (4, 4)
        assert {(owed.attempts, owed.reason) for owed in result.pending} == {
            (0, "no time was left for it")
        }
        room.mend()
        room.step(minutes=5)
        assert (await room.polled()).poll.articles_stored == 4
        assert sorted(room.urls()) == sorted(room.listed())


async def test_an_error_of_ours_on_one_page_does_not_cost_the_others(open_newsroom: Any) -> None:
    async with open_newsroom() as room:
        whole = room.collector.extraction

        class TripsOverOne:
            async def extract(self, fetched: Fetched, source: Source, now: Any) -> Article:
                if fetched.url.endswith("story-2"):
                    raise ZeroDivisionError("by nothing")
                return await whole.extract(fetched, source, now)

        room.collector.extraction = TripsOverOne()
        result = await room.polled()
        assert (result.poll.outcome, result.poll.articles_stored) == ("new", 3)
        (owed,) = result.pending
        assert owed.reason == "internal error: ZeroDivisionError: by nothing"
        room.collector.extraction = whole
        room.step(minutes=2)
        await room.polled()
        assert sorted(room.urls()) == sorted(room.listed())


async def test_an_error_of_ours_on_a_listing_is_a_failed_poll(open_newsroom: Any) -> None:
    async with open_newsroom() as room:
        whole = room.collector.fetcher

        class Broken:
            async def fetch(self, *_: Any, **__: Any) -> Fetched:
                raise ZeroDivisionError("by nothing")

            def held(self, _: str) -> None:
                return None

        room.collector.fetcher = Broken()
        result = await room.polled()
        assert result.poll.reason == "internal error: ZeroDivisionError: by nothing"
        assert result.schedule.cycle == 2
        room.collector.fetcher = whole
        assert (await room.polled()).poll.outcome == "new"


async def test_a_cycle_is_polled_once(open_newsroom: Any) -> None:
    async with open_newsroom() as room:
        room.fault("slow", where="index", wait_s=0.3)
        first, second = await asyncio.gather(room.poll(cycle=1), room.poll(cycle=1))
        assert (first is None) != (second is None)
        assert await room.poll(cycle=1) is None
        assert await room.poll(cycle=3) is None
        assert (await room.poll(cycle=2)).poll.cycle == 2
        by_hand = await room.poll()
        assert by_hand.poll.poll_id == "harbour#3"


async def test_a_poll_that_is_stopped_stores_nothing_and_can_be_made_again(
    open_newsroom: Any,
) -> None:
    async with open_newsroom() as room:
        room.fault("slow", where="article", wait_s=5.0)
        task = asyncio.create_task(room.poll(cycle=1))
        while not room.served.app.counts["harbour"].faults:
            await asyncio.sleep(0.02)
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task
        assert room.rows("SELECT count(*) FROM entries") == [(0,)]
        room.mend()
        assert (await room.poll(cycle=1)).poll.outcome == "new"
        assert sorted(room.urls()) == sorted(room.listed())


async def test_every_source_of_the_sample_is_read_to_the_last_entry(open_newsroom: Any) -> None:
    history = sample_web(hours=6.0, backlog_hours=0.5).history
    history = [replace(source, latency_s=0.0) for source in history]
    async with open_newsroom(*history) as room:
        names = [source.source for source in history]
        for _ in range(2):
            results = await asyncio.gather(*(room.polled(name) for name in names))
            for result in results:
                name = result.poll.source
                assert sorted(room.urls(name)) == sorted(room.listed(name)), name
                assert not result.poll.possible_loss
            room.step(minutes=40)
        kinds = room.rows("SELECT DISTINCT kind FROM sources ORDER BY 1")
        assert kinds == [("feed",), ("list",), ("sitemap",)]
        poor = room.rows(
            "SELECT source, url, extraction, length(text) FROM articles"
            " WHERE extraction = 'listing' OR length(text) < 200"
            " OR title IS NULL OR published_at IS NULL"
        )
        assert poor == []


async def test_two_collectors_make_the_same_of_the_same_web(
    open_newsroom: Any, make_recorded: Any, tmp_path: Any
) -> None:
    found = []
    for home in (tmp_path / "one", tmp_path / "two"):
        home.mkdir()
        async with open_newsroom(make_recorded(), home=home) as room:
            for _ in range(3):
                await room.polled()
                room.step(hours=1)
            found.append(
                room.rows(
                    "SELECT entry_id, article_id, url, title, text, published_at, version"
                    " FROM articles ORDER BY url"
                )
            )
    assert len(found[0]) == 6
    assert found[0] == found[1]


# A site whose every byte the test decides.

TEXT = "The harbour was busy that day, and the town talked of little else than the new bridge. "


def article_page(title: str, body: str = TEXT * 8) -> bytes:
    paragraphs = "".join(f"<p>{body}</p>" for _ in range(3))
    return (
        f"<html lang='en'><head><title>{title}</title></head><body><article><h1>{title}</h1>"
        f"{paragraphs}</article></body></html>"
    ).encode()


def feed_of(room: Any, names: list[str], title: Callable[[str], str] = str.title) -> bytes:
    at = format_datetime(room.clock.now() - MINUTE)
    items = "".join(
        f"<item><title>{title(name)}</title><link>http://press.example/{name}</link>"
        f"<guid>{name}</guid><description>About {name}.</description><pubDate>{at}</pubDate></item>"
        for name in names
    )
    return f"<rss version='2.0'><channel><title>Press</title>{items}</channel></rss>".encode()


async def test_an_edited_article_becomes_a_version(open_press: Any, site: Any) -> None:
    async with open_press() as room:
        names = ["bridge", "tram"]
        site.add("/feed", feed_of(room, names), kind="application/rss+xml")
        site.add("/bridge", article_page("Bridge"))
        site.add("/tram", article_page("Tram"))
        await room.polled()
        site.add("/feed", feed_of(room, names, lambda name: f"{name.title()} (updated)"))
        site.add("/bridge", article_page("Bridge", TEXT * 8 + "It opens on Monday."))
        result = await room.polled()
        assert (result.poll.entries_new, len(result.relisted)) == (0, 2)
        versions = room.rows(
            "SELECT a.url, v.version, v.text LIKE '%Monday%' FROM article_versions v"
            " JOIN articles a USING (article_id) ORDER BY ALL"
        )
        assert versions == [
            ("http://press.example/bridge", 1, False),
            ("http://press.example/bridge", 2, True),
            ("http://press.example/tram", 1, False),
        ]
        assert sorted(room.urls()) == ["http://press.example/bridge", "http://press.example/tram"]


async def test_an_edit_that_a_slow_poll_could_not_read_is_owed(open_press: Any, site: Any) -> None:
    async with open_press(worker=WorkerSettings(poll_timeout_s=1.0)) as room:
        site.add("/feed", feed_of(room, ["bridge"]))
        site.add("/bridge", article_page("Bridge"))
        await room.polled()
        site.add("/feed", feed_of(room, ["bridge"], lambda name: f"{name} (updated)"))
        site.answers["/bridge"] = [5.0]
        assert len((await room.polled()).pending) == 1
        site.add("/bridge", article_page("Bridge", TEXT * 8 + "It opens on Monday."))
        await room.polled()
        assert room.rows("SELECT version, text LIKE '%Monday%' FROM articles") == [(2, True)]


async def test_an_edit_whose_page_is_gone_leaves_the_text_we_have(
    open_press: Any, site: Any
) -> None:
    async with open_press() as room:
        site.add("/feed", feed_of(room, ["bridge"]))
        site.add("/bridge", article_page("Bridge"))
        await room.polled()
        site.add("/feed", feed_of(room, ["bridge"], lambda name: f"{name} (updated)"))
        site.add("/bridge", status="404 Not Found")
        result = await room.polled()
        assert result.pending == ()
        assert room.rows("SELECT version, extraction FROM articles") == [(1, "trafilatura")]


async def test_an_entry_listed_anew_each_time_is_not_owed_for_ever(
    open_press: Any, site: Any
) -> None:
    async with open_press(extract=ExtractSettings(retry_base_s=60.0, max_attempts=3)) as room:
        site.add("/bridge", status="500 Oops")
        for number in range(3):
            site.add("/feed", feed_of(room, ["bridge"], lambda _, n=number: f"{n} comments"))
            result = await room.polled()
            room.step(minutes=10)
        assert (result.poll.articles_stored, result.pending) == (1, ())
        assert room.rows("SELECT title, extraction FROM articles") == [("2 comments", "listing")]


@pytest.mark.report("tontof/kriss_feed#440")
async def test_a_web_page_instead_of_a_feed_is_a_failure_and_no_empty_poll(
    open_press: Any, site: Any
) -> None:
    async with open_press() as room:
        site.add("/feed", article_page("We are being rebuilt"))
        result = await room.polled()
        assert (result.poll.outcome, result.poll.http_status) == ("failed", 200)
        assert "HTML" in result.poll.reason
        assert result.schedule.validators.etag is None
        assert result.schedule.due_at > room.clock.now()
        assert len(result.pages) == 1, "the page is kept: it is the evidence"
        site.add("/feed", feed_of(room, ["bridge"]))
        site.add("/bridge", article_page("Bridge"))
        assert (await room.polled()).poll.outcome == "new"


async def test_robots_txt_refuses_a_listing(open_press: Any, site: Any) -> None:
    async with open_press() as room:
        site.add("/robots.txt", b"User-agent: *\nDisallow: /feed\n", kind="text/plain")
        result = await room.polled()
        assert (result.poll.outcome, result.poll.http_status) == ("refused", None)
        assert result.poll.reason == "robots.txt says 'Disallow: /feed'"
        assert result.schedule.due_at > room.clock.now()
        assert site.paths == ["/robots.txt"]


async def test_robots_txt_refuses_an_article_and_its_listing_stands_in(
    open_press: Any, site: Any
) -> None:
    async with open_press() as room:
        site.add("/robots.txt", b"User-agent: *\nDisallow: /bridge\n", kind="text/plain")
        site.add("/feed", feed_of(room, ["bridge", "tram"]))
        site.add("/tram", article_page("Tram"))
        result = await room.polled()
        assert (result.poll.outcome, result.poll.articles_stored) == ("new", 2)
        rows = room.rows("SELECT title, text FROM articles WHERE extraction = 'listing'")
        assert rows == [("Bridge", "About bridge.")]
        assert "/bridge" not in site.paths


async def test_a_page_without_an_article_is_stood_in_for(open_press: Any, site: Any) -> None:
    async with open_press() as room:
        site.add("/feed", feed_of(room, ["bridge", "tram"]))
        site.add("/bridge", b"%PDF-1.7", kind="application/pdf")
        site.add("/tram", b"<html><body><nav><a href='/'>Home</a></nav></body></html>")
        await room.polled()
        rows = room.rows("SELECT title, extraction, page_id IS NOT NULL FROM articles ORDER BY 1")
        assert rows == [("Bridge", "listing", False), ("Tram", "listing", True)]


@pytest.mark.report("nextcloud/news#714")
async def test_a_wall_is_never_an_article_nor_a_version(open_press: Any, site: Any) -> None:
    async with open_press() as room:
        site.add("/feed", feed_of(room, ["bridge"]))
        site.add("/bridge", article_page("Bridge", "We and our partners use cookies. Accept all."))
        await room.polled()
        rows = room.rows("SELECT kind, extraction, text, quarantined, warnings[1] FROM articles")
        assert rows == [
            ("wall", "listing", "About bridge.", False,
             'a wall stands before the article: "We and our partners use cookies"')
        ]  # fmt: skip
        assert room.rows("SELECT gate, suspicious FROM page_verdicts") == [("wall", True)]
        assert room.rows("SELECT count(*) FROM article_versions WHERE text LIKE '%cookies%'") == [
            (0,)
        ]
        site.add("/feed", feed_of(room, ["bridge"], str.upper))
        site.add("/bridge", article_page("Bridge"))
        await room.polled()
        assert room.rows("SELECT kind, extraction, version FROM articles") == [
            ("article", "trafilatura", 2)
        ]


async def test_a_wall_before_an_article_we_have_leaves_its_text(open_press: Any, site: Any) -> None:
    async with open_press() as room:
        site.add("/feed", feed_of(room, ["bridge"]))
        site.add("/bridge", article_page("Bridge"))
        await room.polled()
        site.add("/feed", feed_of(room, ["bridge"], str.upper))
        site.add("/bridge", article_page("Bridge", "Please verify that you are human."))
        await room.polled()
        assert room.rows("SELECT kind, version, count(*) FROM articles GROUP BY ALL") == [
            ("article", 1, 1)
        ]


async def test_a_stand_in_without_a_summary_is_no_version(open_press: Any, site: Any) -> None:
    async with open_press() as room:
        listing = feed_of(room, ["bridge"]).replace(
            b"<description>About bridge.</description>", b""
        )
        site.add("/feed", listing)
        site.add("/bridge", article_page("Bridge", "Please enable JavaScript to read this."))
        await room.polled()
        assert room.rows("SELECT kind, text FROM articles") == [("wall", None)]
        assert room.rows("SELECT count(*) FROM article_versions") == [(0,)]


async def test_an_empty_feed_is_empty_and_no_loss(open_press: Any, site: Any) -> None:
    async with open_press() as room:
        site.add("/feed", feed_of(room, []))
        first = await room.polled()
        assert (first.poll.outcome, first.poll.entries_listed) == ("empty", 0)
        site.add("/feed", feed_of(room, ["bridge"]))
        site.add("/bridge", article_page("Bridge"))
        second = await room.polled()
        assert second.poll.outcome == "new"


SITEMAP_NS = 'xmlns="http://www.sitemaps.org/schemas/sitemap/0.9"'


async def test_news_in_the_sitemap_of_an_index_that_stays_the_same_is_found(
    open_press: Any, site: Any
) -> None:
    """An index that lists the same sitemaps says nothing of what is new in them."""

    def of_kind_sitemap(source: Source) -> Source:
        return replace(source, kind="sitemap")

    def sitemap(room: Any, *names: str) -> bytes:
        at = (room.clock.now() - MINUTE).isoformat()
        urls = "".join(
            f"<url><loc>http://press.example/{name}</loc><lastmod>{at}</lastmod></url>"
            for name in names
        )
        return f"<urlset {SITEMAP_NS}>{urls}</urlset>".encode()

    index = (
        f"<sitemapindex {SITEMAP_NS}><sitemap><loc>http://press.example/news.xml</loc></sitemap>"
        "</sitemapindex>"
    ).encode()
    async with open_press(of_kind_sitemap) as room:
        for name in ("bridge", "tram"):
            site.add(f"/{name}", article_page(name.title()))
        site.add("/feed", index, kind="application/xml", ETag='"one"')
        site.add("/news.xml", sitemap(room, "bridge"), kind="application/xml")
        assert (await room.polled()).poll.entries_new == 1
        site.add("/news.xml", sitemap(room, "tram", "bridge"), kind="application/xml")
        assert (await room.polled()).poll.entries_new == 1
        assert len(room.urls()) == 2


@pytest.mark.report("GateNLP/ultimate-sitemap-parser#73")
@pytest.mark.report("eliasdabbas/advertools#107")
async def test_sitemaps_that_lead_back_to_one_another_are_read_once(
    open_press: Any, site: Any
) -> None:
    def index(*names: str) -> bytes:
        listed = "".join(
            f"<sitemap><loc>http://press.example/{name}</loc></sitemap>" for name in names
        )
        return f"<sitemapindex {SITEMAP_NS}>{listed}</sitemapindex>".encode()

    async with open_press(lambda source: replace(source, kind="sitemap")) as room:
        at = (room.clock.now() - MINUTE).isoformat()
        site.add("/bridge", article_page("Bridge"))
        site.add("/feed", index("feed", "back.xml", "inner.xml"), kind="application/xml")
        site.add("/back.xml", status="302 Found", Location="/feed")
        site.add("/inner.xml", index("feed", "inner.xml", "news.xml"), kind="application/xml")
        site.add(
            "/news.xml",
            f"<urlset {SITEMAP_NS}><url><loc>http://press.example/bridge</loc>"
            f"<lastmod>{at}</lastmod></url></urlset>".encode(),
            kind="application/xml",
        )
        assert (await room.polled()).poll.entries_new == 1
        counts = Counter(site.paths)
        assert counts["/feed"] == 2, "once itself, once as where the redirect leads"
        assert counts["/inner.xml"] == counts["/news.xml"] == counts["/back.xml"] == 1


async def test_indexes_without_end_cost_a_few_requests(open_press: Any, site: Any) -> None:
    def index(request: Any) -> list[Any]:
        n = int(re.sub(r"\D", "", request.path) or 0)
        listed = "".join(
            f"<sitemap><loc>http://press.example/{3 * n + each}.xml</loc></sitemap>"
            for each in (1, 2, 3)
        )
        body = f"<sitemapindex {SITEMAP_NS}>{listed}</sitemapindex>"
        head = f"HTTP/1.1 200 OK\r\nContent-Type: text/xml\r\nContent-Length: {len(body)}\r\n\r\n"
        return [(head + body).encode()]

    async with open_press(lambda source: replace(source, kind="sitemap")) as room:
        site.answers["*"] = index
        assert (await room.polled()).poll.outcome == "empty"
        assert 1 < len([path for path in site.paths if path.endswith(".xml")]) <= 6


@pytest.mark.report("dgtlmoon/changedetection.io#962")
async def test_a_page_that_is_empty_for_once_is_no_change(open_press: Any, site: Any) -> None:
    async with open_press() as room:
        site.add("/feed", feed_of(room, ["bridge"]))
        site.add("/bridge", article_page("Bridge"))
        await room.polled()
        empty = b"<html><body><nav><a href='/'>Home</a></nav></body></html>"
        for title, body in ((str.upper, empty), (str.lower, article_page("Bridge"))):
            site.add("/feed", feed_of(room, ["bridge"], title))
            site.add("/bridge", body)
            await room.polled()
        assert room.rows("SELECT kind, version FROM articles") == [("article", 1)]
        assert room.rows("SELECT count(*) FROM article_versions") == [(1,)]


async def test_a_real_looking_page_in_a_legacy_encoding_is_read(
    open_newsroom: Any, make_recorded: Any
) -> None:
    body = article_page("Мост открыт", "Город отметил открытие моста большим праздником. " * 8)
    body = body.decode().encode("windows-1251")
    page = StoredPage(body, "text/html; charset=windows-1251")
    start = make_recorded().entries[0].published_at
    entries = (RecordedEntry(start, "/most", "Мост открыт", page),)
    source = make_recorded(entries=entries, language="ru", encoding="windows-1251")
    async with open_newsroom(source) as room:
        await room.polled()
        rows = room.rows("SELECT title, text LIKE '%открытие моста%' FROM articles")
        assert rows == [("Мост открыт", True)]
