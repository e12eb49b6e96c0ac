"""Channels, profiles and boards, polled through to the warehouse."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from datetime import datetime, timedelta
from email.utils import format_datetime
from html import escape
from typing import Any

import pytest

from models.records import ExtractRules, HttpRules, Kind, Source
from tasks.catalogue import Catalogue

MINUTE = timedelta(minutes=1)


@pytest.fixture
def open_channel(open_newsroom: Any, site: Any) -> Callable[..., Any]:
    """Opens a newsroom whose only source is a channel on the test's own site."""

    def open_one(kind: Kind, url: str, **rules: Any) -> Any:
        source = Source(
            "harbour",
            "The Harbour",
            url,
            kind=kind,
            http=HttpRules(allow_private=True, connect_to=f"127.0.0.1:{site.port}", min_gap_s=0.0),
            extract=ExtractRules(**rules),
        )
        return open_newsroom(change=lambda _: source)

    return open_one


# Telegram


def telegram_post(number: int, at: datetime, inner: str = "", classes: str = "") -> str:
    shown = inner or f"<div class='tgme_widget_message_text js-message_text'>Post {number}</div>"
    return (
        f"<div class='tgme_widget_message_wrap'><div class='tgme_widget_message {classes}'"
        f" data-post='Harbour_News/{number}'><div class='tgme_widget_message_bubble'>{shown}"
        f"<a class='tgme_widget_message_date' href='https://t.me/Harbour_News/{number}'>"
        f"<time datetime='{at.isoformat()}'>x</time></a></div></div></div>"
    )


def telegram_page(posts: list[str], before: int | None = None) -> bytes:
    more = (
        f"<a class='tme_messages_more' data-before='{before}'"
        f" href='/s/harbour_news?before={before}'></a>"
        if before
        else ""
    )
    return (
        "<!doctype html><div class='tgme_channel_info'>"
        "<div class='tgme_channel_info_header_title'>Harbour News</div></div>"
        f"<section class='tgme_channel_history'>{more}{''.join(posts)}</section>"
    ).encode()


def channel(room: Any, first: int, last: int, before: int | None = None) -> bytes:
    """Return the preview with the posts from `first` to `last`, one a minute up to now."""
    now = room.clock.now()
    posts = [telegram_post(n, now - (1000 - n) * MINUTE) for n in range(first, last + 1)]
    return telegram_page(posts, before)


async def test_a_telegram_channel_is_collected_from_its_preview_and_no_page_is_fetched(
    open_channel: Any, site: Any
) -> None:
    async with open_channel("telegram", "http://tg.example/harbour_news") as room:
        site.add("/s/harbour_news", channel(room, 1, 20))
        result = await room.polled()
        assert (result.poll.outcome, result.poll.articles_stored) == ("new", 20)
        assert room.rows(
            "SELECT url, title, text, kind, extraction, published_basis FROM articles"
            " ORDER BY published_at DESC LIMIT 1"
        ) == [("https://t.me/Harbour_News/20", "Post 20", "Post 20", "article", "entry", "listing")]
        assert set(site.paths) == {"/robots.txt", "/s/harbour_news"}
        site.add("/s/harbour_news", channel(room, 2, 21))
        again = await room.polled()
        assert (again.poll.entries_new, again.poll.overlap) == (1, True)


async def test_an_edited_post_becomes_a_version(open_channel: Any, site: Any) -> None:
    async with open_channel("telegram", "http://tg.example/s/harbour_news") as room:
        at = room.clock.now() - MINUTE
        site.add("/s/harbour_news", telegram_page([telegram_post(1, at)]))
        await room.polled()
        text = "<div class='js-message_text'>The pier is <b>open</b><br>again</div>"
        site.add("/s/harbour_news", telegram_page([telegram_post(1, at, text)]))
        result = await room.polled()
        assert (result.poll.entries_new, len(result.relisted)) == (0, 1)
        assert room.rows("SELECT version, text FROM articles") == [(2, "The pier is open\nagain")]


@pytest.mark.report("RSS-Bridge/rss-bridge#4207")
async def test_a_post_that_the_preview_does_not_show_is_marked_and_never_empties_a_text(
    open_channel: Any, site: Any
) -> None:
    hidden = "<div class='message_media_not_supported_wrap'>Please open Telegram</div>"
    async with open_channel("telegram", "http://tg.example/harbour_news") as room:
        at = room.clock.now() - MINUTE
        posts = [telegram_post(1, at, hidden), telegram_post(2, at)]
        site.add("/s/harbour_news", telegram_page(posts))
        await room.polled()
        rows = room.rows("SELECT text, kind, warnings FROM articles ORDER BY url")
        assert rows == [
            (None, "empty", ["its content is not in the web preview"]),
            ("Post 2", "article", []),
        ]
        site.add("/s/harbour_news", telegram_page([telegram_post(2, at, hidden)]))
        await room.polled()
        assert room.rows("SELECT version, text FROM articles WHERE url LIKE '%/2'") == [
            (1, "Post 2")
        ]


@pytest.mark.report("DIYgod/RSSHub#11436")
async def test_a_video_with_a_caption_is_its_caption_and_says_that_it_is_a_video(
    open_channel: Any, site: Any
) -> None:
    video = (
        "<a class='tgme_widget_message_video_player not_supported'>"
        "<div class='message_media_not_supported_wrap'><div"
        " class='message_media_not_supported_label'>Media is too big</div></div></a>"
        "<div class='js-message_text'>The new ferry comes in.</div>"
    )
    async with open_channel("telegram", "http://tg.example/harbour_news") as room:
        page = telegram_page([telegram_post(1, room.clock.now(), video)])
        site.add("/s/harbour_news", page)
        await room.polled()
        assert room.rows("SELECT title, text FROM articles") == [
            ("The new ferry comes in.", "The new ferry comes in.")
        ]
        assert room.rows("SELECT media FROM entries") == [(["video"],)]


async def test_older_pages_are_read_back_to_what_is_known(open_channel: Any, site: Any) -> None:
    async with open_channel("telegram", "http://tg.example/harbour_news") as room:
        site.add("/s/harbour_news", channel(room, 1, 20, before=1))
        await room.polled()
        assert "/s/harbour_news?before=1" not in site.paths, "the first poll takes what is shown"
        site.add("/s/harbour_news", channel(room, 51, 70, before=51))
        site.add("/s/harbour_news?before=51", channel(room, 31, 50, before=31))
        site.add("/s/harbour_news?before=31", channel(room, 11, 30, before=11))
        result = await room.polled()
        assert (result.poll.entries_new, result.poll.overlap, result.poll.possible_loss) == (
            50,
            True,
            False,
        )
        assert room.rows("SELECT count(*) FROM articles") == [(70,)]
        assert "/s/harbour_news?before=11" not in site.paths


async def test_a_page_of_older_posts_that_fails_costs_nothing_that_was_found(
    open_channel: Any, site: Any
) -> None:
    async with open_channel("telegram", "http://tg.example/harbour_news") as room:
        site.add("/s/harbour_news", channel(room, 1, 20))
        await room.polled()
        site.add("/s/harbour_news", channel(room, 51, 70, before=51))
        site.add("/s/harbour_news?before=51", status="500 Oops")
        result = await room.polled()
        assert (result.poll.outcome, result.poll.entries_new) == ("new", 20)
        assert result.poll.possible_loss


LANDING = (
    "<!doctype html><title>Telegram: View @harbour_news</title><div class='tgme_page'>"
    "<div class='tgme_page_title'>Harbour</div><div class='tgme_page_extra'>{}</div></div>"
)


@pytest.mark.report("DIYgod/RSSHub#12571")
@pytest.mark.parametrize(
    ("extra", "says"),
    [
        ("7 120 subscribers", "web preview switched off"),
        ("301 members, 12 online", "a Telegram group"),
        ("", "no Telegram channel of this name"),
    ],
)
async def test_a_channel_without_a_preview_has_a_status_of_its_own_until_it_shows_one(
    open_channel: Any, site: Any, extra: str, says: str
) -> None:
    async with open_channel("telegram", "http://tg.example/harbour_news") as room:
        site.add("/s/harbour_news", status="302 Found", Location="/harbour_news")
        site.add("/harbour_news", LANDING.format(extra).encode())
        for _ in range(3):
            room.step(hours=2)
            result = await room.polled()
        assert (result.poll.outcome, result.schedule.state) == ("failed", "gone")
        assert says in result.poll.reason
        assert says in room.rows("SELECT text FROM notices")[0][0]
        site.add("/s/harbour_news", channel(room, 1, 3))
        room.step(hours=2)
        assert (await room.polled()).schedule.state == "active"
        assert room.rows("SELECT count(*) FROM notices WHERE closed_at IS NULL") == [(0,)]


@pytest.mark.report("DIYgod/RSSHub#12571")
async def test_a_channel_whose_posts_are_withheld_is_no_quiet_one(
    open_channel: Any, site: Any
) -> None:
    async with open_channel("telegram", "http://tg.example/harbour_news") as room:
        site.add("/s/harbour_news", telegram_page([]))
        result = await room.polled()
        assert (result.poll.outcome, result.poll.reason) == (
            "failed",
            "this Telegram channel shows no post on the web",
        )


@pytest.mark.report("RSS-Bridge/rss-bridge#4207")
async def test_a_quotation_is_text_and_what_a_post_answers_to_is_not(
    open_channel: Any, site: Any
) -> None:
    inner = (
        "<a class='tgme_widget_message_reply'><div class='tgme_widget_message_text"
        " js-message_reply_text'>Is it open?</div></a>"
        "<div class='tgme_widget_message_text js-message_text'><blockquote expandable>The pier"
        " stays closed</blockquote>says the <i class='emoji'><b>⚓</b></i> master</div>"
    )
    async with open_channel("telegram", "http://tg.example/harbour_news") as room:
        page = telegram_page([telegram_post(1, room.clock.now(), inner)])
        site.add("/s/harbour_news", page)
        await room.polled()
        assert room.rows("SELECT kind, title, text FROM articles") == [
            ("article", "The pier stays closed", "The pier stays closed\n\nsays the ⚓ master")
        ]


async def test_channels_that_show_nothing_do_not_put_the_others_of_their_host_on_hold(
    open_newsroom: Any, site: Any
) -> None:
    http = HttpRules(allow_private=True, connect_to=f"127.0.0.1:{site.port}", min_gap_s=0.0)
    first = Source("harbour", "x", "http://tg.example/harbour_news", kind="telegram", http=http)
    async with open_newsroom(change=lambda _: first) as room:
        closed = [
            replace(first, source=f"closed-{n}", url=f"http://tg.example/closed_{n}")
            for n in range(4)
        ]
        await room.collector.take_catalogue(Catalogue((first, *closed), ()))
        for number in range(4):
            site.add(f"/s/closed_{number}", status="302 Found", Location=f"/closed_{number}")
            site.add(f"/closed_{number}", LANDING.format("7 subscribers").encode())
        site.add("/s/harbour_news", channel(room, 1, 3))
        for source in closed:
            result = await room.polled(source.source)
            assert "switched off" in result.poll.reason
        assert (await room.polled()).poll.outcome == "new"


# Feeds of posts


def rss(items: str) -> bytes:
    return f"<rss version='2.0'><channel><title>x</title>{items}</channel></rss>".encode()


def mastodon_feed(at: datetime) -> bytes:
    text = escape("<p>The pier is closed.<br>Ferries go from the east quay.</p>")
    return (
        "<rss version='2.0' xmlns:media='http://search.yahoo.com/mrss/'><channel><title>x</title>"
        "<item><guid isPermaLink='true'>https://social.example/@harbour/111</guid>"
        f"<link>https://social.example/@harbour/111</link><pubDate>{format_datetime(at)}</pubDate>"
        f"<description>{text}</description>"
        "<media:content url='https://files.example/1.jpg' type='image/jpeg' medium='image'/>"
        "</item></channel></rss>"
    ).encode()


def bluesky_feed(at: datetime) -> bytes:
    return rss(
        "<item><link>https://bsky.app/profile/harbour.example/post/3k</link>"
        "<description>The pier &lt;old&gt; is closed.&#xA;Ferries go east. 5 &lt; 7</description>"
        f"<pubDate>{at:%d %b %Y %H:%M +0000}</pubDate>"
        "<guid isPermaLink='false'>at://did:plc:abc/app.bsky.feed.post/3k</guid></item>"
        "<item><link>https://bsky.app/profile/harbour.example/post/3j</link>"
        "<description>[contains quote post or other embedded content]</description>"
        f"<pubDate>{at:%d %b %Y %H:%M +0000}</pubDate>"
        "<guid isPermaLink='false'>at://did:plc:abc/app.bsky.feed.post/3j</guid></item>"
    )


def reddit_feed(at: datetime) -> bytes:
    tail = (
        ' submitted by <a href="https://www.reddit.com/user/ada">/u/ada</a>'
        ' <span><a href="{}">[link]</a></span>'
        ' <span><a href="https://www.reddit.com/r/harbours/comments/1/">[comments]</a></span>'
    )
    told = "<div class='md'><p>The pier is closed.</p></div>" + tail.format("https://r.example/")
    linked = tail.format("https://news.example/pier?a=1&amp;b=2")
    return (
        "<feed xmlns='http://www.w3.org/2005/Atom'>"
        + "".join(
            f"<entry><id>t3_{number}</id><title>{title}</title><author><name>/u/ada</name></author>"
            f"<link href='https://www.reddit.com/r/harbours/comments/{number}/'/>"
            f"<published>{at.isoformat()}</published><updated>{at.isoformat()}</updated>"
            f"<content type='html'>{escape(content)}</content></entry>"
            for number, title, content in ((1, "Closed", told), (2, "Look", linked))
        )
        + "</feed>"
    ).encode()


def youtube_feed(at: datetime, views: int = 1) -> bytes:
    updated = at + views * MINUTE
    return (
        "<feed xmlns='http://www.w3.org/2005/Atom' xmlns:yt='http://www.youtube.com/xml/schemas/2015'"
        " xmlns:media='http://search.yahoo.com/mrss/'><title>Harbour TV</title>"
        "<entry><id>yt:video:abcdefghijk</id><yt:videoId>abcdefghijk</yt:videoId>"
        "<title>The pier from above</title>"
        "<link rel='alternate' href='https://www.youtube.com/watch?v=abcdefghijk'/>"
        f"<published>{at.isoformat()}</published><updated>{updated.isoformat()}</updated>"
        "<media:group><media:title>The pier from above</media:title>"
        "<media:description>A flight over the closed pier.</media:description>"
        f"<media:community><media:statistics views='{views}'/></media:community></media:group>"
        "</entry></feed>"
    ).encode()


FEEDS: dict[str, tuple[Kind, str, str, Callable[[datetime], bytes]]] = {
    "mastodon": ("mastodon", "/@harbour", "/@harbour.rss", mastodon_feed),
    "bluesky": (
        "bluesky",
        "/profile/harbour.example",
        "/profile/harbour.example/rss",
        bluesky_feed,
    ),
    "reddit": ("reddit", "/r/harbours/", "/r/harbours/new/.rss", reddit_feed),
    "youtube": ("youtube", "/channel/UC1", "/feeds/videos.xml?channel_id=UC1", youtube_feed),
}

STORED = {
    "mastodon": [
        (
            "https://social.example/@harbour/111",
            "The pier is closed.",
            "The pier is closed.\nFerries go from the east quay.",
            ["photo"],
        )
    ],
    "bluesky": [
        (
            "https://bsky.app/profile/harbour.example/post/3j",
            "(embedded)",
            None,
            ["embedded"],
        ),
        (
            "https://bsky.app/profile/harbour.example/post/3k",
            "The pier <old> is closed.",
            "The pier <old> is closed.\nFerries go east. 5 < 7",
            [],
        ),
    ],
    "reddit": [
        (
            "https://www.reddit.com/r/harbours/comments/1/",
            "Closed",
            "The pier is closed.",
            [],
        ),
        (
            "https://www.reddit.com/r/harbours/comments/2/",
            "Look",
            "https://news.example/pier?a=1&b=2",
            [],
        ),
    ],
    "youtube": [
        (
            "https://www.youtube.com/watch?v=abcdefghijk",
            "The pier from above",
            "A flight over the closed pier.",
            ["video"],
        )
    ],
}


@pytest.mark.report("milanmdev/bsky.rss#15")
@pytest.mark.parametrize("name", FEEDS)
async def test_posts_of_a_service_are_collected_from_the_address_people_copy(
    open_channel: Any, site: Any, name: str
) -> None:
    kind, path, public, feed = FEEDS[name]
    async with open_channel(kind, f"http://service.example{path}") as room:
        at = (room.clock.now() - MINUTE).replace(second=0, microsecond=0)
        site.add(public, feed(at), kind="application/xml")
        result = await room.polled()
        assert result.poll.outcome == "new"
        assert (
            room.rows(
                "SELECT a.url, a.title, a.text, e.media FROM articles a JOIN entries e"
                " USING (entry_id) ORDER BY a.url"
            )
            == STORED[name]
        )
        assert room.rows("SELECT DISTINCT extraction, published_at FROM articles") == [
            ("entry", at)
        ]
        assert site.paths == ["/robots.txt", public]


async def test_the_public_address_itself_is_polled_as_it_is(open_channel: Any, site: Any) -> None:
    for kind, _, public, feed in FEEDS.values():
        async with open_channel(kind, f"http://service.example{public}") as room:
            site.add(public, feed(room.clock.now() - MINUTE), kind="application/xml")
            await room.polled()
        assert site.paths[-1] == public


async def test_a_video_that_is_watched_is_no_edited_one(open_channel: Any, site: Any) -> None:
    public = FEEDS["youtube"][2]
    async with open_channel("youtube", f"http://service.example{public}") as room:
        at = room.clock.now() - MINUTE
        for views in (1, 20, 300):
            site.add(public, youtube_feed(at, views), kind="application/xml")
            result = await room.polled()
        assert (result.poll.entries_new, result.relisted) == (0, ())


@pytest.mark.report("MissionSquad/mcp-rss#11")
async def test_a_service_that_wants_quiet_is_left_alone_by_all_its_boards(
    open_newsroom: Any, site: Any
) -> None:
    http = HttpRules(allow_private=True, connect_to=f"127.0.0.1:{site.port}", min_gap_s=0.0)
    harbours = Source("harbour", "x", "http://r.example/r/harbours", kind="reddit", http=http)
    async with open_newsroom(change=lambda _: harbours) as room:
        piers = replace(harbours, source="piers", url="http://r.example/r/piers")
        await room.collector.take_catalogue(Catalogue((harbours, piers), ()))
        site.add("/r/harbours/new/.rss", b"", status="429 Too Many Requests", Retry_After="600")
        site.add("/r/piers/new/.rss", reddit_feed(room.clock.now()), kind="application/xml")
        result = await room.polled()
        assert (result.poll.outcome, result.poll.http_status) == ("failed", 429)
        assert "429" in result.poll.reason
        assert "XML" not in result.poll.reason
        assert result.schedule.due_at - room.clock.now() > timedelta(minutes=9)
        other = await room.polled("piers")
        assert other.poll.outcome == "failed"
        assert "/r/piers/new/.rss" not in site.paths
        room.step(minutes=11)
        assert (await room.polled("piers")).poll.outcome == "new"


# Boards


BOARD_FEEDS = {
    "phpbb": (
        "<feed xmlns='http://www.w3.org/2005/Atom'><entry>"
        "<id>http://board.example/viewtopic.php?t=5&amp;p=9&amp;sid={sid}#p9</id>"
        "<link href='http://board.example/viewtopic.php?f=2&amp;t=5&amp;p=9&amp;sid={sid}#p9'/>"
        "<title type='html'>Piers &#8226; Re: The pier is closed</title><published>{at}</published>"
        "<content type='html'>{text}&lt;p&gt;Statistics: Posted by &lt;a href='x'&gt;ada&lt;/a&gt;"
        " — today&lt;/p&gt;&lt;hr /&gt;</content></entry></feed>"
    ),
    "vbulletin": (
        "<rss version='2.0' xmlns:content='http://purl.org/rss/1.0/modules/content/'><channel>"
        "<item><title>The pier is closed</title>"
        "<link>http://board.example/showthread.php?t=5&amp;s={sid}&amp;goto=newpost</link>"
        "<guid isPermaLink='true'>http://board.example/showthread.php?t=5&amp;s={sid}</guid>"
        "<description>Ferries...</description><content:encoded>{text}</content:encoded>"
        "<pubDate>{at}</pubDate></item></channel></rss>"
    ),
    "xenforo": (
        "<rss version='2.0' xmlns:content='http://purl.org/rss/1.0/modules/content/'><channel>"
        "<item><title>{title}</title><link>http://board.example/threads/{slug}.5/</link>"
        "<guid>http://board.example/threads/{slug}.5/</guid><pubDate>{at}</pubDate>"
        "<content:encoded>{text}</content:encoded></item></channel></rss>"
    ),
    "discourse": (
        "<rss version='2.0'><channel><item><title>{title}</title>"
        "<description>{text}&lt;p&gt;3 posts - 2 participants&lt;/p&gt;&lt;p&gt;&lt;a href='x'&gt;"
        "Read full topic&lt;/a&gt;&lt;/p&gt;</description><pubDate>{at}</pubDate>"
        "<link>http://board.example/t/{slug}/5</link><guid isPermaLink='true'>"
        "http://board.example/t/{slug}/5</guid></item></channel></rss>"
    ),
}


@pytest.mark.parametrize("software", BOARD_FEEDS)
async def test_a_thread_of_a_board_stays_one_whatever_session_or_headline_its_address_holds(
    open_channel: Any, site: Any, software: str
) -> None:
    feed = BOARD_FEEDS[software]
    text = escape("<div>Ferries go from the <b>east</b> quay.<br>Until Friday.</div>")
    async with open_channel("feed", "http://board.example/feed", method="listing") as room:
        at = room.clock.now() - MINUTE
        stamp = at.isoformat() if "Atom" in feed else format_datetime(at)

        def publish(sid: str, slug: str) -> None:
            body = feed.format(sid=sid, slug=slug, title="The pier", text=text, at=stamp)
            site.add("/feed", body.encode(), kind="application/xml")

        publish("0123456789abcdef0123456789abcdef", "the-pier")
        await room.polled()
        publish("fedcba9876543210fedcba9876543210", "the-pier-is-closed")
        result = await room.polled()
        assert result.poll.entries_new == 0
        assert room.rows("SELECT count(*), any_value(text) FROM articles") == [
            (1, "Ferries go from the east quay.\nUntil Friday.")
        ]
        assert site.paths == ["/robots.txt", "/feed", "/feed"]


async def test_a_board_without_a_feed_is_collected_as_a_list_of_threads(
    open_channel: Any, site: Any
) -> None:
    def board(sid: str, *threads: int) -> bytes:
        rows = "".join(
            f"<li class='row'><a class='topictitle' href='./viewtopic.php?f=2&amp;t={number}"
            f"&amp;sid={sid}'>Why the pier number {number} is closed again</a>"
            f"<a href='./memberlist.php?mode=viewprofile&amp;u=7&amp;sid={sid}'>ada</a></li>"
            for number in threads
        )
        return f"<html><body><ul class='topiclist'>{rows}</ul></body></html>".encode()

    thread = "".join(f"<p>On day {day} the pier was closed and people asked why.</p>" for day in
                     range(9))  # fmt: skip
    async with open_channel("list", "http://board.example/viewforum.php?f=2") as room:
        site.add("/viewforum.php?f=2", board("0123456789abcdef0123456789abcdef", 101, 102, 103))
        site.add("*", f"<html><body><article>{thread}</article></body></html>".encode())
        assert (await room.polled()).poll.entries_new == 3
        site.add("/viewforum.php?f=2", board("fedcba9876543210fedcba9876543210", 104, 101, 102))
        result = await room.polled()
        assert (result.poll.entries_new, result.poll.overlap) == (1, True)
        assert room.rows("SELECT count(*) FROM articles WHERE text LIKE 'On day 0%'") == [(4,)]


async def test_a_list_that_is_all_news_is_read_back_page_by_page(
    open_channel: Any, site: Any
) -> None:
    def listed(first: int, last: int, older: int) -> bytes:
        links = "".join(
            f"<li><h2><a href='/2026/03/story-{number}'>The story of the pier, part {number}</a>"
            "</h2></li>"
            for number in range(last, first - 1, -1)
        )
        pager = f"<a class='next' href='/latest?page={older}'>Older</a>"
        return f"<html><body><ul>{links}</ul>{pager}</body></html>".encode()

    story = "".join(f"<p>On day {day} the pier was closed and people asked why.</p>" for day in
                    range(9))  # fmt: skip
    async with open_channel("list", "http://press.example/latest") as room:
        site.add("*", f"<html><body><article>{story}</article></body></html>".encode())
        site.add("/latest", listed(101, 110, 2))
        await room.polled()
        assert "/latest?page=2" not in site.paths
        site.add("/latest", listed(121, 130, 2))
        site.add("/latest?page=2", listed(108, 120, 3))
        result = await room.polled()
        assert (result.poll.entries_new, result.poll.overlap) == (20, True)
        assert not result.poll.possible_loss
        assert "/latest?page=3" not in site.paths


async def test_threads_pinned_to_the_top_of_a_board_hide_no_gap(
    open_channel: Any, site: Any
) -> None:
    def board(*numbers: int, older: int) -> bytes:
        rows = "".join(
            f"<li><a href='/viewtopic.php?t={number}'>Why pier number {number} is closed</a></li>"
            for number in (1001, 1002, *numbers)
        )
        pager = f"<a rel='next' href='/viewforum.php?f=2&amp;start={older}'>Next</a>"
        return f"<html><body><ul>{rows}</ul>{pager}</body></html>".encode()

    story = "".join(f"<p>On day {day} the pier was closed and people asked why.</p>" for day in
                    range(9))  # fmt: skip
    async with open_channel("list", "http://board.example/viewforum.php?f=2") as room:
        site.add("*", f"<html><body><article>{story}</article></body></html>".encode())
        site.add("/viewforum.php?f=2", board(*range(1110, 1100, -1), older=25))
        await room.polled()
        site.add("/viewforum.php?f=2", board(*range(1125, 1115, -1), older=25))
        site.add("/viewforum.php?f=2&start=25", board(*range(1115, 1105, -1), older=50))
        result = await room.polled()
        assert (result.poll.entries_new, result.poll.overlap) == (15, True)
        site.add("/viewforum.php?f=2", board(1126, *range(1125, 1116, -1), older=25))
        n_requests = len(site.paths)
        assert (await room.polled()).poll.entries_new == 1
        assert site.paths[n_requests:] == ["/viewforum.php?f=2", "/viewtopic.php?t=1126"]
        site.add("/viewforum.php?f=2", board(*range(1160, 1150, -1), older=25))
        site.add("/viewforum.php?f=2&start=25", status="500 Oops")
        result = await room.polled()
        assert (result.poll.entries_new, result.poll.possible_loss) == (10, True)
