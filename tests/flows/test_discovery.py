from datetime import UTC, datetime, timedelta
from email.utils import format_datetime

import pytest

from flows.discovery import MAX_FEEDS, discover, read_with
from models.discovery import make_source, suggest_name
from models.errors import PermanentFetchError, UnlistedError
from models.records import Fetched
from tasks.extraction import ExtractionPool
from tasks.settings import ExtractSettings

NOW = datetime(2026, 3, 5, 12, tzinfo=UTC)
SITE = "https://news.example"


def rss(hours, title="The Example", path="story"):
    items = "".join(
        f"<item><title>Story {hour}</title><link>{SITE}/{path}/{hour}</link>"
        f"<pubDate>{format_datetime(NOW - timedelta(hours=hour))}</pubDate></item>"
        for hour in hours
    )
    channel = f"<channel><title>{title}</title>{items}</channel>"
    return f'<?xml version="1.0"?><rss version="2.0">{channel}</rss>'


def news_sitemap(hours):
    urls = "".join(
        f"<url><loc>{SITE}/story/{hour}</loc><news:news><news:publication_date>"
        f"{(NOW - timedelta(hours=hour)).isoformat()}</news:publication_date>"
        f"<news:title>Story {hour}</news:title></news:news></url>"
        for hour in hours
    )
    return (
        '<?xml version="1.0" encoding="UTF-8"?>'
        '<urlset xmlns="http://www.sitemaps.org/schemas/sitemap/0.9"'
        f' xmlns:news="http://www.google.com/schemas/sitemap-news/0.9">{urls}</urlset>'
    )


def index_of(*children):
    inner = "".join(f"<sitemap><loc>{child}</loc></sitemap>" for child in children)
    return (
        f'<sitemapindex xmlns="http://www.sitemaps.org/schemas/sitemap/0.9">{inner}</sitemapindex>'
    )


def front_page(head="", n_links=12):
    links = "".join(
        f'<li><a href="/2026/03/05/a-story-with-a-name-{n}">'
        f"A story with a long enough name, {n}</a></li>"
        for n in range(n_links)
    )
    return (
        f'<html lang="de"><head><title>Example front page</title>{head}</head>'
        f"<body><nav><a href='/about'>About us</a></nav><main><ul>{links}</ul></main></body></html>"
    )


def alternate(href, title="", kind="application/rss+xml"):
    return f'<link rel="alternate" type="{kind}" href="{href}" title="{title}">'


class Web:
    """A few pages, and a record of what was asked for."""

    def __init__(self, pages):
        self.pages = {
            (path if "://" in path else SITE + path): body for path, body in pages.items()
        }
        self.asked = []

    async def fetch(self, url):
        self.asked.append(url)
        if url not in self.pages:
            raise PermanentFetchError(url, "not found", 404)
        body = self.pages[url]
        kind = "text/html" if body.startswith(("<html", "<!doctype")) else "application/xml"
        return Fetched(
            url=url,
            final_url=url,
            status=200,
            headers=(("Content-Type", kind),),
            body=body.encode(),
            fetched_at=NOW,
            elapsed_s=0.1,
            wire_bytes=len(body),
            content_type=kind,
        )

    async def look(self, url=f"{SITE}/"):
        return await discover(url, self.fetch, now=NOW)

    async def discover(self, url=f"{SITE}/"):
        return (await self.look(url)).found


async def test_the_address_of_a_feed_is_taken_as_it_is():
    web = Web({"/rss": rss(range(10))})
    (candidate,) = await web.discover(f"{SITE}/rss")
    assert candidate.kind == "feed"
    assert candidate.url == f"{SITE}/rss"
    assert candidate.title == "The Example"
    assert candidate.n_entries == candidate.n_dated == 10
    assert web.asked == [f"{SITE}/rss"]


async def test_the_address_of_a_sitemap_is_taken_as_it_is():
    (candidate,) = await Web({"/news.xml": news_sitemap(range(5))}).discover(f"{SITE}/news.xml")
    assert candidate.kind == "sitemap"


async def test_a_feed_the_page_names_is_found_and_usual_addresses_are_not_tried():
    web = Web({"/": front_page(alternate("/feeds/all")), "/feeds/all": rss(range(20))})
    best, *others = await web.discover()
    assert (best.kind, best.url) == ("feed", f"{SITE}/feeds/all")
    assert best.found_by == "named by the page"
    assert best.language == "de"
    assert [other.kind for other in others] == ["list"]
    assert set(web.asked) == {f"{SITE}/", f"{SITE}/feeds/all", f"{SITE}/robots.txt"}


@pytest.mark.report("lwindolf/liferea#87")
async def test_the_base_of_the_page_holds_for_its_feeds():
    head = f'<base href="{SITE}/de/">' + alternate("feed.rss")
    web = Web({"/": front_page(head), "/de/feed.rss": rss([1])})
    assert (await web.discover())[0].url == f"{SITE}/de/feed.rss"


@pytest.mark.report("lwindolf/liferea#87")
@pytest.mark.parametrize(
    ("base", "href", "address"),
    [
        ("", "feed.rss", "/feed.rss"),
        ("", "/feed.rss", "/feed.rss"),
        ("", "//news.example/feed.rss", "/feed.rss"),
        ('<base href="news/">', "feed.rss", "/news/feed.rss"),
        ('<base target="_blank"><base href="/de/">', "feed.rss", "/de/feed.rss"),
        ('<base href="/de/">', "/feed.rss", "/feed.rss"),
        ('<base href="javascript:x()">', "feed.rss", "/feed.rss"),
    ],
)
async def test_a_relative_feed_is_found_where_a_browser_would(base, href, address):
    web = Web({"/": front_page(base + alternate(href)), address: rss([1])})
    assert (await web.discover())[0].url == SITE + address


async def test_full_texts_are_better_than_the_same_entries_without():
    full = rss(range(20)).replace(
        "<pubDate>", f"<description>{'word ' * 400}</description><pubDate>"
    )
    head = alternate("/teasers") + alternate("/full")
    web = Web({"/": front_page(head), "/teasers": rss(range(20)), "/full": full})
    best = (await web.discover())[0]
    assert best.url == f"{SITE}/full"
    assert best.text_chars == 1999


async def test_what_was_tried_in_vain_is_named_with_the_reason():
    head = alternate("/gone") + alternate("/page") + alternate("/empty")
    web = Web({"/": front_page(head), "/page": "<html>Sorry!</html>", "/empty": rss([])})
    misses = {miss.url.removeprefix(SITE): miss for miss in (await web.look()).misses}
    assert misses["/gone"].reason == "not found"
    assert misses["/page"].reason == "an HTML page instead of a feed"
    assert misses["/empty"].reason == "it lists nothing"
    assert misses["/gone"].found_by == "named by the page"


TELEGRAM = (
    "<!doctype html><div class='tgme_channel_info'><div class='tgme_channel_info_header_title'>"
    "Harbour</div></div><div class='tgme_widget_message' data-post='harbour/7'>"
    "<div class='js-message_text'>The pier is open.</div><a class='tgme_widget_message_date'>"
    "<time datetime='2026-03-05T11:00:00+00:00'></time></a></div>"
)


async def test_a_channel_is_known_by_its_host_and_looked_at_where_it_is_public():
    web = Web({"https://t.me/s/harbour": TELEGRAM})
    (candidate,) = await web.discover("t.me/harbour")
    assert (candidate.kind, candidate.url) == ("telegram", "https://t.me/harbour")
    assert (candidate.title, candidate.n_dated) == ("Harbour", 1)
    assert web.asked == ["https://t.me/s/harbour"]
    source = make_source(candidate)
    assert (source.source, source.kind) == ("harbour", "telegram")


@pytest.mark.report("DIYgod/RSSHub#12571")
async def test_a_channel_that_shows_nothing_is_refused_with_the_reason():
    page = "<!doctype html><div class='tgme_page'><div class='tgme_page_extra'>7 subscribers</div>"
    with pytest.raises(UnlistedError, match="web preview switched off"):
        await Web({"https://t.me/s/harbour": page}).discover("https://t.me/harbour")


async def test_the_channel_behind_a_handle_is_found():
    page = (
        "<html><head><link rel='canonical' href='https://www.youtube.com/channel/UC1'></head>"
        "<body>Harbour TV</body></html>"
    )
    feed = "https://www.youtube.com/feeds/videos.xml?channel_id=UC1"
    web = Web({"https://www.youtube.com/@harbour": page, feed: rss([1], title="Harbour TV")})
    best = (await web.discover("https://www.youtube.com/@harbour"))[0]
    assert (best.kind, best.url) == ("youtube", feed)
    assert make_source(best).source == "uc1"


async def test_a_profile_of_mastodon_is_known_by_its_feed():
    feed = rss([1, 2]).replace("<title>Story 1</title>", "").replace("<title>Story 2</title>", "")
    head = alternate(f"{SITE}/@harbour.rss")
    web = Web({"/@harbour": front_page(head, 0), "/@harbour.rss": feed})
    best = (await web.discover(f"{SITE}/@harbour"))[0]
    assert (best.kind, best.url) == ("mastodon", f"{SITE}/@harbour.rss")
    assert make_source(best).source == "harbour"


BOARDS = {
    "phpBB": ("<html><body id='phpbb'>", "/forum/feed.php"),
    "vBulletin": (
        "<html><head><meta name='generator' content='vBulletin 3.8.11'></head><body>",
        "/forum/external.php?type=RSS2",
    ),
    "XenForo": ("<html id='XF'><body>", "/forum/forums/-/index.rss"),
    "Discourse": (
        "<html><head><meta name='generator' content='Discourse 3.1 - x'></head><body>",
        "/forum/latest.rss",
    ),
}


@pytest.mark.parametrize("software", BOARDS)
async def test_the_feed_of_a_board_is_found_and_its_posts_are_their_own_articles(software):
    page, feed = BOARDS[software]
    posts = rss([1, 2]).replace("<pubDate>", f"<description>{'word ' * 40}</description><pubDate>")
    best = (await Web({"/forum/": page, feed: posts}).discover(f"{SITE}/forum/"))[0]
    assert (best.url, best.found_by) == (SITE + feed, f"where {software} has it")
    assert make_source(best).extract.method == "listing"


async def test_a_board_whose_feed_brings_no_texts_has_its_threads_fetched():
    page, feed = BOARDS["phpBB"]
    best = (await Web({"/forum/": page, feed: rss([1, 2])}).discover(f"{SITE}/forum/"))[0]
    assert make_source(best).extract.method == "auto"


async def test_a_living_feed_is_better_than_a_sleeping_one_and_a_long_one_than_a_short_one():
    names = ["/asleep", "/short", "/long"]
    web = Web(
        {
            "/": front_page("".join(map(alternate, names))),
            "/asleep": rss(range(9000, 9040)),
            "/short": rss([0.1, 0.2], path="b"),
            "/long": rss(range(40), path="c"),
        }
    )
    found = [one.url.removeprefix(SITE) for one in await web.discover() if one.kind == "feed"]
    assert found == ["/long", "/short", "/asleep"]


async def test_feeds_of_comments_are_left_out():
    head = alternate("/comments/feed", "Comments") + alternate("/feed", "News")
    web = Web({"/": front_page(head), "/feed": rss([1]), "/comments/feed": rss(range(40))})
    assert [one.url for one in await web.discover() if one.kind == "feed"] == [f"{SITE}/feed"]


async def test_a_news_sitemap_is_found_through_robots_and_through_an_index():
    web = Web(
        {
            "/": front_page(),
            "/robots.txt": f"User-agent: *\nSitemap: {SITE}/index.xml\n",
            "/index.xml": index_of(f"{SITE}/archive-1999.xml", f"{SITE}/news.xml"),
            "/news.xml": news_sitemap(range(30)),
        }
    )
    best = (await web.discover())[0]
    assert (best.kind, best.url) == ("sitemap", f"{SITE}/news.xml")
    assert f"{SITE}/archive-1999.xml" not in web.asked


@pytest.mark.report("GateNLP/ultimate-sitemap-parser#29")
async def test_a_robots_txt_that_names_itself_as_a_sitemap_is_passed_over():
    named = f"User-agent: *\nSitemap: {SITE}/robots.txt\nSitemap: {SITE}/news.xml\n"
    web = Web({"/": front_page(), "/robots.txt": named, "/news.xml": news_sitemap(range(30))})
    search = await web.look()
    assert [one.url for one in search.found if one.kind == "sitemap"] == [f"{SITE}/news.xml"]
    assert web.asked.count(f"{SITE}/robots.txt") <= 2


async def test_usual_addresses_are_tried_where_nothing_is_named():
    best = (await Web({"/": front_page(), "/rss.xml": rss(range(10))}).discover())[0]
    assert (best.url, best.found_by) == (f"{SITE}/rss.xml", "a usual address")


async def test_the_page_itself_is_the_last_resort():
    (candidate,) = await Web({"/": front_page()}).discover()
    assert (candidate.kind, candidate.url) == ("list", f"{SITE}/")
    assert candidate.n_entries == 12
    assert candidate.title == "Example front page"


async def test_a_page_without_any_list_gives_nothing():
    assert await Web({"/": "<html><body><p>Hello.</p></body></html>"}).discover() == []


async def test_an_address_without_a_scheme_is_asked_for_over_https():
    web = Web({"/": front_page(), "https://news.example": front_page()})
    await web.discover("news.example")
    assert web.asked[0] == "https://news.example"


async def test_an_address_that_cannot_be_had_is_an_error():
    with pytest.raises(PermanentFetchError):
        await Web({}).discover()


async def test_a_page_with_hundreds_of_feeds_costs_few_requests():
    head = "".join(alternate(f"/feed/{n}") for n in range(300))
    web = Web({"/": front_page(head)} | {f"/feed/{n}": rss([n / 10]) for n in range(300)})
    await web.discover()
    assert sum("/feed/" in url for url in web.asked) == MAX_FEEDS


async def test_a_broken_feed_is_passed_over():
    head = alternate("/broken") + alternate("/good")
    web = Web({"/": front_page(head), "/broken": "<html>Sorry!</html>", "/good": rss([1])})
    found = await web.discover()
    assert [one.url for one in found if one.kind == "feed"] == [f"{SITE}/good"]


async def test_the_evidence_reads_as_a_sentence():
    (candidate,) = await Web({"/rss": rss(range(1, 51))}).discover(f"{SITE}/rss")
    assert candidate.evidence == "rss 2.0, 50 entries, newest 60 min old, reaches back 49 h"


async def test_a_candidate_becomes_a_source_with_a_free_name():
    (candidate,) = await Web({"/rss": rss([1], title=" The \n Example ")}).discover(f"{SITE}/rss")
    source = make_source(candidate, taken=["news"])
    assert (source.source, source.title, source.kind) == ("news-2", "The Example", "feed")
    assert source.url == f"{SITE}/rss"


@pytest.mark.parametrize(
    ("url", "name"),
    [
        ("https://www.example.com/", "example"),
        ("https://news.example.com.au/rss", "example"),
        ("https://city.example.org/", "example-city"),
        ("https://новости.рф/", "xn-b1amnebsh"),
        ("http://127.0.0.1:8080/rss", "host-127-0-0-1"),
        ("http://localhost/", "localhost"),
        ("https://t.co/", "source-t"),
    ],
)
def test_a_name_is_made_from_the_host(url, name):
    assert suggest_name(url) == name


async def test_a_page_that_hangs_its_reader_is_a_miss_and_the_search_goes_on():
    hanging = "<html>" + "<div>" * 200_000
    web = Web({"/": hanging, "/rss": rss(range(5))})
    async with ExtractionPool(ExtractSettings(timeout_s=1.0), keeps_spare=False) as pool:
        found = await discover(f"{SITE}/", web.fetch, now=NOW, read=read_with(pool))
    assert [candidate.url for candidate in found.found] == [f"{SITE}/rss"]
    assert any("longer than 1 s" in miss.reason for miss in found.misses)
