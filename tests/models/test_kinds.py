"""What people copy, and what is read in its place."""

from __future__ import annotations

import pytest

from models.identity import url_key
from models.kinds import REDDIT_GAP_S, as_polled, public_address, recognise, tells_whole
from models.posts import derive_label, without_furniture
from models.records import ExtractRules, HttpRules, Source


@pytest.mark.parametrize(
    ("kind", "url", "public"),
    [
        ("telegram", "https://t.me/harbour", "https://t.me/s/harbour"),
        ("telegram", "https://t.me/s/harbour", "https://t.me/s/harbour"),
        ("telegram", "https://t.me/harbour/512", "https://t.me/s/harbour"),
        ("telegram", "http://telegram.me/harbour/", "https://t.me/s/harbour"),
        ("telegram", "https://harbour.t.me", "https://t.me/s/harbour"),
        ("telegram", "https://t.me/s/harbour?before=7", "https://t.me/s/harbour"),
        ("telegram", "http://127.0.0.1:80/harbour", "http://127.0.0.1/s/harbour"),
        ("telegram", "https://t.me/+AbCdEfGh", None),
        ("telegram", "https://t.me/joinchat/AbCdEfGh", None),
        ("telegram", "https://t.me/", None),
        ("mastodon", "https://s.example/@harbour", "https://s.example/@harbour.rss"),
        ("mastodon", "https://s.example/@harbour.rss", "https://s.example/@harbour.rss"),
        ("mastodon", "https://s.example/@harbour/111", "https://s.example/@harbour.rss"),
        ("mastodon", "https://s.example/web/@harbour", "https://s.example/@harbour.rss"),
        ("mastodon", "https://s.example/@a@far.example", "https://far.example/@a.rss"),
        ("mastodon", "https://s.example/users/harbour", "https://s.example/users/harbour.rss"),
        ("mastodon", "https://s.example/tags/piers", "https://s.example/tags/piers.rss"),
        ("mastodon", "https://s.example/about", None),
        ("bluesky", "https://bsky.app/profile/a.example", "https://bsky.app/profile/a.example/rss"),
        (
            "bluesky",
            "https://bsky.app/profile/did:plc:abc/post/3k",
            "https://bsky.app/profile/did:plc:abc/rss",
        ),
        ("bluesky", "https://bsky.app/", None),
        ("reddit", "https://old.reddit.com/r/piers/", "https://www.reddit.com/r/piers/new/.rss"),
        ("reddit", "https://reddit.com/r/piers/top", "https://www.reddit.com/r/piers/top/.rss"),
        ("reddit", "https://www.reddit.com/u/ada", "https://www.reddit.com/user/ada/.rss"),
        ("reddit", "https://www.reddit.com/r/a/.rss", "https://www.reddit.com/r/a/.rss"),
        ("reddit", "https://www.reddit.com/", None),
        (
            "youtube",
            "https://youtube.com/channel/UC1/videos",
            "https://www.youtube.com/feeds/videos.xml?channel_id=UC1",
        ),
        (
            "youtube",
            "https://www.youtube.com/playlist?list=PL1",
            "https://www.youtube.com/feeds/videos.xml?playlist_id=PL1",
        ),
        ("youtube", "https://www.youtube.com/@harbour", None),
        ("feed", "https://t.me/harbour", "https://t.me/harbour"),
    ],
)
def test_the_public_listing_follows_from_the_address_people_copy(kind, url, public):
    assert public_address(kind, url) == public
    if public:
        assert public_address(kind, public) == public, "it is taken as it is"


@pytest.mark.parametrize(
    ("url", "kind"),
    [
        ("https://t.me/harbour", "telegram"),
        ("https://bsky.app/profile/a.example", "bluesky"),
        ("https://old.reddit.com/r/piers", "reddit"),
        ("https://m.youtube.com/@harbour", "youtube"),
        ("https://notreddit.com/r/piers", None),
        ("https://news.example/", None),
        ("no address", None),
    ],
)
def test_a_service_is_known_by_its_host(url, kind):
    assert recognise(url) == kind


def test_auto_is_read_as_what_its_host_says():
    polled = as_polled(Source("a", "", "https://t.me/harbour"))
    assert (polled.kind, polled.url) == ("telegram", "https://t.me/s/harbour")
    handle = Source("a", "", "https://www.youtube.com/@harbour")
    assert as_polled(handle) == handle


def test_reddit_is_asked_slowly_unless_the_source_says_otherwise():
    source = Source("a", "", "https://www.reddit.com/r/piers", kind="reddit")
    assert as_polled(source).http.min_gap_s == REDDIT_GAP_S
    own = Source("a", "", source.url, kind="reddit", http=HttpRules(min_gap_s=60.0))
    assert as_polled(own).http.min_gap_s == 60.0


def test_a_feed_is_its_own_article_where_its_entry_says_so():
    feed = Source("a", "", "https://news.example/feed", kind="feed")
    assert not tells_whole(feed)
    whole = Source("a", "", feed.url, kind="feed", extract=ExtractRules(method="listing"))
    assert tells_whole(whole)


@pytest.mark.report("milanmdev/bsky.rss#15")
@pytest.mark.parametrize(
    ("text", "label"),
    [
        ("Ferries stop at noon. The pier is closed.", "Ferries stop at noon."),
        ("No. The pier is open again today", "No. The pier is open again today"),
        ("https://a.example/long\n\nThe pier is open", "The pier is open"),
        ("https://a.example/long", "https://a.example/long"),
        (
            "码头自今日起关闭，渡轮改由东码头出发，请注意公告。周五恢复。",
            "码头自今日起关闭，渡轮改由东码头出发，请注意公告。",
        ),
        ("word " * 60, ("word " * 20).strip() + " …"),
        ("字" * 200, "字" * 100 + " …"),
        (None, "(no text)"),
    ],
)
def test_a_post_without_a_headline_gets_its_first_sentence(text, label):
    found = derive_label(text)
    assert found == label
    assert len(found) <= 102
    assert "\n" not in found


def test_what_boards_add_to_every_post_is_no_text_of_it():
    assert without_furniture("It is open.\n\n3 posts - 2 participants\n\nRead full topic") == (
        "It is open."
    )
    assert without_furniture("It is open.\n\nStatistics: Posted by ada — today") == "It is open."
    assert without_furniture("submitted by ada") == "submitted by ada"


@pytest.mark.parametrize(
    ("one", "other"),
    [
        ("https://b.example/threads/old-name.5/", "https://b.example/threads/new-name.5"),
        ("https://b.example/t/old-name/5", "https://b.example/t/new-name/5"),
        ("https://b.example/viewtopic.php?f=1&t=5", "https://b.example/viewtopic.php?t=5"),
        (
            "https://b.example/viewtopic.php?t=5&sid=0123456789abcdef0123456789abcdef",
            "https://b.example/viewtopic.php?t=5&sid=fedcba9876543210fedcba9876543210",
        ),
        ("https://b.example/showthread.php?5-Old", "https://b.example/showthread.php?5-New-name"),
        ("https://b.example/a;jsessionid=1F?x=1", "https://b.example/a?x=1"),
    ],
)
def test_a_thread_is_known_by_its_number(one, other):
    assert url_key(one) == url_key(other)


@pytest.mark.parametrize(
    ("one", "other"),
    [
        ("https://b.example/threads/a.5/", "https://b.example/threads/a.6/"),
        ("https://b.example/threads/a.5/page-2", "https://b.example/threads/a.5/"),
        ("https://b.example/t/a/5/2", "https://b.example/t/a/5"),
        ("https://b.example/viewtopic.php?p=5#p5", "https://b.example/viewtopic.php?p=6#p6"),
        ("https://b.example/viewtopic.php?t=5&start=20", "https://b.example/viewtopic.php?t=5"),
        ("https://news.example/?s=pier", "https://news.example/?s=ferry"),
    ],
)
def test_other_threads_posts_and_pages_stay_apart(one, other):
    assert url_key(one) != url_key(other)
