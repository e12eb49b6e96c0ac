import tarfile
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from models.errors import ParseError
from models.records import Entry, Listing
from tasks.feeds import MAX_ENTRIES, parse_feed

NOW = datetime(2024, 5, 7, 12, 0, tzinfo=UTC)
URL = "https://news.example/feeds/all.xml"
SAMPLES = Path(__file__).parents[1] / "samples"
COLLECTION = Path(__file__).parents[2].parent / "shared" / "data" / "C_feeds"


def parse(body: bytes | str, content_type: str | None = None, timezone: str = "UTC") -> Listing:
    raw = body.encode() if isinstance(body, str) else body
    return parse_feed(raw, url=URL, content_type=content_type, timezone=timezone, now=NOW)


def rss(items: str, prolog: str = "", channel: str = "", attributes: str = "") -> str:
    return (
        f"{prolog}<rss version='2.0' {attributes}><channel><title>News</title>{channel}{items}"
        "</channel></rss>"
    )


def item(inner: str = "", title: str = "Rain ends", link: str = "https://news.example/1") -> str:
    return f"<item><title>{title}</title><link>{link}</link>{inner}</item>"


def only(listing: Listing) -> Entry:
    (entry,) = listing.entries
    return entry


def test_rss_is_read() -> None:
    listing = parse((SAMPLES / "feed.rss.xml").read_bytes(), timezone="Europe/Moscow")
    assert (listing.format, listing.title, listing.ttl_s) == ("rss 2.0", "Вести города", 900.0)
    first, second = listing.entries
    assert first == Entry(
        url="https://vesti.example/news/101?from=main",
        title="Мост открыт & проверен",
        guid="vesti-101",
        published_at=datetime(2024, 5, 6, 9, 30, tzinfo=UTC),
        published_precision="instant",
        published_basis="pubDate",
        summary="Движение пущено утром. Очередей нет.",
        authors=("Ирина Примерова",),
    )
    assert second.url == "https://vesti.example/news/100"
    assert second.published_at == datetime(2024, 5, 6, 8, 5, tzinfo=UTC)
    assert second.published_precision == "minute"
    assert listing.warnings == ()


def test_atom_is_read() -> None:
    listing = parse((SAMPLES / "feed.atom.xml").read_bytes())
    assert (listing.format, listing.title) == ("atom 1.0", "Beispielblatt")
    first, second = listing.entries
    assert first == Entry(
        url="https://blatt.example/stadt/bruecke-2024",
        title="Brücke <neu> eröffnet",
        guid="tag:blatt.example,2024:1",
        published_at=datetime(2024, 5, 6, 6, 0, tzinfo=UTC),
        published_precision="instant",
        published_basis="published",
        updated_at=datetime(2024, 5, 6, 7, 15, tzinfo=UTC),
        summary="Der Verkehr rollt.",
        authors=("Erika Beispiel",),
    )
    assert second.title == "Markt wieder offen"
    assert second.published_basis == "updated"
    assert second.authors == ("Redaktion",)


def test_rdf_is_read() -> None:
    listing = parse(
        "<rdf:RDF xmlns:rdf='http://www.w3.org/1999/02/22-rdf-syntax-ns#'"
        " xmlns='http://purl.org/rss/1.0/' xmlns:dc='http://purl.org/dc/elements/1.1/'>"
        "<channel rdf:about='https://news.example/'><title>News</title></channel>"
        "<item rdf:about='https://news.example/1'><title>Rain</title>"
        "<link>https://news.example/1</link><dc:date>2024-05-06</dc:date></item></rdf:RDF>"
    )
    assert listing.format == "rss 1.0"
    assert only(listing).published_precision == "day"


def test_json_feed_is_read() -> None:
    listing = parse(
        '{"version": "https://jsonfeed.org/version/1.1", "title": "News", "items": [{"id": 7,'
        '"url": "/7", "title": "Rain", "content_html": "<p>It <b>ends</b>.</p>",'
        '"date_published": "2024-05-06T10:00:00+02:00", "authors": [{"name": "A"}]}]}'
    )
    entry = only(listing)
    assert listing.format == "json feed 1.1"
    assert (entry.url, entry.guid, entry.summary) == ("https://news.example/7", "7", "It ends.")
    assert entry.published_at == datetime(2024, 5, 6, 8, 0, tzinfo=UTC)


@pytest.mark.parametrize(
    ("written", "title"),
    [
        pytest.param(
            "<![CDATA[R&uuml;ckblick]]>",
            "Rückblick",
            id="entity in CDATA",
            marks=pytest.mark.report("simplepie/simplepie#575"),
        ),
        pytest.param(
            "guide to &lt;head&gt; elements",
            "guide to <head> elements",
            id="a word in angle brackets",
            marks=pytest.mark.report("feedbin/feedbin#232"),
        ),
        pytest.param("A &lt;b&gt;big&lt;/b&gt; day", "A big day", id="escaped markup"),
        pytest.param("A <b>big</b> day", "A big day", id="markup not escaped"),
        pytest.param("AT&T and R&D", "AT&T and R&D", id="bare ampersands"),
        pytest.param("AT&amp;amp;T", "AT&T", id="escaped twice"),
        pytest.param("Over&nbsp;&hellip; &mdash; now", "Over … — now", id="undeclared entities"),
        pytest.param("  over\n  two lines ", "over two lines", id="white space"),
        pytest.param("1 &lt; 2", "1 < 2", id="less than"),
        pytest.param("A&lt;script>x()&lt;/script> day", "A day", id="script"),
        pytest.param("&lt;blink>Big&lt;/blink> day", "Big day", id="a tag that is closed again"),
    ],
)
def test_title_becomes_plain_text(written: str, title: str) -> None:
    assert only(parse(rss(item(title=written)))).title == title


@pytest.mark.parametrize(
    ("link", "url"),
    [
        pytest.param("/a/1", "https://news.example/a/1", id="relative"),
        pytest.param(
            "https://other.example/a",
            "https://other.example/a",
            id="absolute",
            marks=pytest.mark.report("nextcloud/news#752"),
        ),
        pytest.param("\n https://news.example/a\n", "https://news.example/a", id="spaces"),
        pytest.param(
            "<![CDATA[https://news.example/?a=1&b=2]]>", "https://news.example/?a=1&b=2", id="CDATA"
        ),
        pytest.param("//cdn.example/a", "https://cdn.example/a", id="no scheme"),
    ],
)
def test_link_becomes_absolute(link: str, url: str) -> None:
    assert only(parse(rss(item(link=link)))).url == url


@pytest.mark.report("nextcloud/news#752")
def test_atom_link_that_is_absolute_is_left_alone() -> None:
    feed = (
        "<feed xmlns='http://www.w3.org/2005/Atom' xml:base='https://news.example/sub/'><entry>"
        "<id>1</id><title>T</title><link rel='self' href='/no'/><link rel='alternate'"
        " href='https://news.example/yes'/></entry></feed>"
    )
    assert only(parse(feed)).url == "https://news.example/yes"


def test_relative_atom_link_is_resolved_by_its_bases() -> None:
    feed = (
        "<feed xmlns='http://www.w3.org/2005/Atom' xml:base='/sub/'>"
        "<entry xml:base='deep/'><title>T</title><link href='a'/></entry></feed>"
    )
    assert only(parse(feed)).url == "https://news.example/sub/deep/a"


def test_guid_stands_in_for_a_link_only_if_it_is_one() -> None:
    feed = rss(
        "<item><title>A</title><guid>https://news.example/a</guid></item>"
        "<item><title>B</title><guid isPermaLink='false'>https://news.example/b</guid></item>"
        "<item><title>C</title><guid>c</guid></item>"
    )
    listing = parse(feed)
    assert [entry.title for entry in listing.entries] == ["A"]
    assert "2 entries have no address" in listing.warnings
    one = parse(rss("<item><title>C</title><guid>c</guid></item>"))
    assert one.warnings == ("1 entry has no address",)


def dated(written: str, timezone: str = "UTC") -> Listing:
    return parse(rss(item(f"<pubDate>{written}</pubDate>")), timezone=timezone)


@pytest.mark.parametrize("how", ["mode='base64'", "type='application/octet-stream'"])
def test_atom_title_in_base64_is_read(how: str) -> None:
    feed = (
        "<feed xmlns='http://purl.org/atom/ns#'><entry><link href='/1'/>"
        f"<title {how}> UmFpbiA8Yj5lbmRzPC9iPg== </title></entry></feed>"
    )
    assert only(parse(feed)).title == "Rain ends"


def test_author_is_found_whatever_the_case_of_its_namespace() -> None:
    names = "xmlns:itunes='http://www.itunes.com/DTDs/PodCast-1.0.dtd'"
    feed = rss(item("<itunes:author>Vera Example</itunes:author>"), attributes=names)
    assert only(parse(feed)).authors == ("Vera Example",)


def test_entry_without_an_address_is_kept_for_those_who_ask() -> None:
    feed = rss("<item><title>Rain ends</title></item>").encode()
    assert parse_feed(feed, url=URL, now=NOW).entries == ()
    listing = parse_feed(feed, url=URL, now=NOW, keep_unaddressed=True)
    assert only(listing).title == "Rain ends"


@pytest.mark.report("kurtmckee/feedparser#33")
def test_two_digit_year_is_of_this_century() -> None:
    entry = only(dated("Thu, 03 Sep 15 00:01:01 +0200"))
    assert entry.published_at == datetime(2015, 9, 2, 22, 1, 1, tzinfo=UTC)


@pytest.mark.report("Ranchero-Software/NetNewsWire#2109")
def test_month_before_day_is_understood() -> None:
    entry = only(dated("Mon, May 25 2020 04:45:26 +0000"))
    assert entry.published_at == datetime(2020, 5, 25, 4, 45, 26, tzinfo=UTC)


def test_date_without_a_zone_is_read_in_the_sources_zone() -> None:
    entry = only(dated("2024-05-06 12:30:00", timezone="Asia/Shanghai"))
    assert entry.published_at == datetime(2024, 5, 6, 4, 30, tzinfo=UTC)


@pytest.mark.report("witochandra/webfeed#66")
def test_date_in_words_is_read_in_the_language_the_feed_declares() -> None:
    inner = "<pubDate>ma, 06 toukokuuta 2024 12:30:00 GMT</pubDate>"
    listing = parse(rss(item(inner), channel="<language>fi</language>"))
    assert only(listing).published_at == datetime(2024, 5, 6, 12, 30, tzinfo=UTC)
    assert only(parse(rss(item(inner)))).published_at is None


@pytest.mark.report("mediacloud/web-search#1147")
@pytest.mark.parametrize("year", ["1246", "1970", "2099"])
def test_absurd_date_is_refused_with_a_warning(year: str) -> None:
    listing = dated(f"{year}-05-06T00:00:00Z")
    assert only(listing).published_at is None
    assert "1 dates are" in listing.warnings[0]


def test_unreadable_date_is_told() -> None:
    assert dated("next Tuesday").warnings == ("1 dates are not readable, such as 'next Tuesday'",)


@pytest.mark.report("fossar/selfoss#1452")
def test_future_date_is_kept_as_declared() -> None:
    assert only(dated("2024-05-08T12:00:00Z")).published_at == NOW + timedelta(days=1)


@pytest.mark.report("jocmp/capyreader#1677")
def test_midnight_on_every_entry_means_days() -> None:
    items = "".join(
        item(f"<pubDate>Mon, 0{day} May 2024 00:00:00 GMT</pubDate>", link=f"/{day}")
        for day in (1, 2, 3)
    )
    assert {entry.published_precision for entry in parse(rss(items)).entries} == {"day"}


def test_update_time_stamped_by_the_server_is_left_out() -> None:
    entries = "".join(
        f"<entry><title>T</title><link href='/{n}'/><updated>2024-05-07T11:59:00Z</updated></entry>"
        for n in range(3)
    )
    listing = parse(f"<feed xmlns='http://www.w3.org/2005/Atom'>{entries}</feed>")
    assert {(entry.updated_at, entry.published_at) for entry in listing.entries} == {(None, None)}


RUSSIAN = "Дождь прекратился к вечеру, сообщили синоптики"


@pytest.mark.parametrize(
    ("prolog", "encoding", "content_type"),
    [
        pytest.param(
            "<?xml version='1.0' encoding='windows-1251'?>",
            "cp1251",
            None,
            id="single quotes",
            marks=pytest.mark.report("Athou/commafeed#681"),
        ),
        pytest.param(
            "\n\n<?xml version='1.0' encoding='windows-1251'?>",
            "cp1251",
            None,
            id="a line before the prolog",
            marks=pytest.mark.report("Novik/ruTorrent#3170"),
        ),
        pytest.param(
            "<?xml version='1.0' encoding='windows-1251'?>",
            "utf-8",
            None,
            id="a prolog that lies",
            marks=pytest.mark.report("Novik/ruTorrent#3170"),
        ),
        pytest.param(
            "<?xml version='1.0' encoding='koi8-r'?>",
            "koi8-r",
            "text/xml",
            id="text/xml",
            marks=pytest.mark.report("wking/rss2email#18"),
        ),
        pytest.param(
            "<?xml version='1.0'?>",
            "utf-8-sig",
            "text/xml; charset=us-ascii",
            id="a mark first",
            marks=pytest.mark.report("mmcdole/gofeed#26"),
        ),
        pytest.param(
            "<?xml version='1.0' encoding='utf-8'?>",
            "cp1251",
            "text/xml; charset=windows-1251",
            id="header",
        ),
        pytest.param("<?xml version='1.0' encoding='utf-16'?>", "utf-16", None, id="utf-16"),
    ],
)
def test_cyrillic_survives(prolog: str, encoding: str, content_type: str | None) -> None:
    body = rss(item(f"<description>{RUSSIAN}</description>", title=RUSSIAN), prolog)
    entry = only(parse(body.encode(encoding), content_type))
    assert (entry.title, entry.summary) == (RUSSIAN, RUSSIAN)


@pytest.mark.report("matrix-org/matrix-hookshot#1108")
def test_latin1_declared_twice_is_honoured() -> None:
    body = rss(item(title="Café"), "<?xml version='1.0' encoding='ISO-8859-1'?>").encode("latin-1")
    assert only(parse(body, "application/xml; charset=ISO-8859-1")).title == "Café"


@pytest.mark.report("martinrotter/rssguard#1403")
def test_lines_before_the_prolog_are_tolerated() -> None:
    assert only(parse(rss(item(), "\n \n<?xml version='1.0'?>"))).title == "Rain ends"


def test_text_before_the_prolog_is_tolerated_with_a_warning() -> None:
    listing = parse(rss(item(), "<br />\n<b>Warning</b>: cache\n<?xml version='1.0'?>"))
    assert only(listing).title == "Rain ends"
    assert "before the document" in listing.warnings[0]


@pytest.mark.report("FreshRSS/FreshRSS#3395")
def test_nul_bytes_are_dropped_and_counted() -> None:
    listing = parse(rss(item(title="Rain\x00 en\x0bds")))
    assert only(listing).title == "Rain ends"
    assert listing.warnings == ("2 control characters dropped",)


@pytest.mark.report("FreshRSS/FreshRSS#3390")
def test_prefix_nobody_declared_does_not_lose_the_feed() -> None:
    listing = parse(rss(item("<media:thumbnail url='x'/><dc:creator>A</dc:creator>") + item()))
    assert len(listing.entries) == 2
    assert listing.entries[0].authors == ("A",)


@pytest.mark.report("FreshRSS/FreshRSS#1352")
def test_text_after_the_root_is_passed_over_with_a_warning() -> None:
    listing = parse(rss(item()) + "<br/><b>Warning</b>: something at line 3")
    assert only(listing).title == "Rain ends"
    assert "not well-formed" in listing.warnings[0]


def test_feed_cut_short_gives_what_came() -> None:
    whole = rss(item(link="/1") + item(link="/2") + item(link="/3"))
    listing = parse(whole[: whole.index("/3")])
    assert [entry.url for entry in listing.entries][:2] == [
        "https://news.example/1",
        "https://news.example/2",
    ]


@pytest.mark.report("tontof/kriss_feed#440")
@pytest.mark.parametrize(
    ("body", "reason"),
    [
        (b"", "the answer is empty"),
        (b" \n\xef\xbb\xbf", "the answer is empty"),
        (b"<!DOCTYPE html><html><body>Sorry</body></html>", "an HTML page instead of a feed"),
        (b"<?xml version='1.0'?>\n<!-- x --><html xmlns='x'/>", "an HTML page instead of a feed"),
        (b'{"error": "limit"}', "JSON, but no JSON Feed"),
        (b"Too many requests", "no XML in it"),
        (b"<opml><body/></opml>", "no feed: the root element is <opml>"),
    ],
)
def test_what_is_no_feed_is_named(body: bytes, reason: str) -> None:
    with pytest.raises(ParseError) as caught:
        parse(body)
    assert caught.value.reason == reason


@pytest.mark.parametrize(
    "around",
    [
        pytest.param("<!DOCTYPE html PUBLIC '-//W3C//DTD XHTML 1.0//EN' 'x'>\n{}", id="doctype"),
        pytest.param("<html><head/><body><!-- x -->{}</body></html>", id="frame"),
    ],
)
def test_feed_inside_an_html_page_is_read_and_named_as_such(around: str) -> None:
    listing = parse(around.format(rss(item())))
    assert only(listing).title == "Rain ends"
    assert listing.warnings == ("a feed inside an HTML page",)


def test_html_page_that_talks_of_feeds_is_none() -> None:
    with pytest.raises(ParseError, match="an HTML page instead of a feed"):
        parse("<html><body><pre>&lt;rss>&lt;channel></pre><rss>no channel</rss></body></html>")


def test_script_inside_an_xhtml_title_is_no_text() -> None:
    title = (
        "<title type='xhtml'><div xmlns='http://www.w3.org/1999/xhtml'>Rain"
        "<script>x()</script> ends<style>b {}</style> today</div></title>"
    )
    feed = (
        f"<feed xmlns='http://www.w3.org/2005/Atom'><entry><link href='/1'/>{title}</entry></feed>"
    )
    assert only(parse(feed)).title == "Rain ends today"


def test_comment_that_nobody_closed_does_not_swallow_the_title() -> None:
    title = "&lt;!-- y --&gt;Ra&lt;!-- -- x &gt;in ends"
    assert only(parse(rss(item(title=title)))).title == "Rain ends"


def test_entities_are_found_behind_comments() -> None:
    doctype = "<!-- A&T <b>x</b> -->\n<!DOCTYPE rss [<!ENTITY id 'tag:news.example,'>]>"
    assert only(parse(rss(item("<guid>&id;1</guid>"), doctype))).guid == "tag:news.example,1"


def test_items_of_an_atom_feed_are_entries() -> None:
    inner = "<item><title>T</title><link href='/1'/></item>"
    assert only(parse(f"<feed xmlns='http://www.w3.org/2005/Atom'>{inner}</feed>")).title == "T"


def test_authors_of_a_json_feed_stand_in_for_its_items() -> None:
    listing = parse(
        '{"version": "1.1", "authors": [{"name": "Desk"}], "items": [{"id": "1", "url": "/1"},'
        '{"id": "2", "url": "/2", "author": {"name": "A"}, "authors": [{"name": "B"}]}]}'
    )
    assert [entry.authors for entry in listing.entries] == [("Desk",), ("A", "B")]


def test_feed_without_entries_is_empty_and_not_an_error() -> None:
    assert parse(rss("")).entries == ()


@pytest.mark.report("rowanmanning/feed-parser#256")
def test_thousands_of_ordinary_entities_are_no_bomb() -> None:
    doctype = "<!DOCTYPE rss [<!ENTITY dash '&#8212;'><!ENTITY co 'Example &amp; Co'>]>"
    listing = parse(rss(item(title="&dash;&co; " * 3000), doctype))
    assert (only(listing).title or "").startswith("—Example & Co —Example")


@pytest.mark.report("lwindolf/liferea#867")
@pytest.mark.parametrize("cut", [False, True], ids=["whole", "cut short"])
def test_a_feed_of_twenty_two_megabytes_is_read_as_far_as_it_came(cut: bool) -> None:
    text = "Long text of a long letter. " * 1000
    items = [item(f"<description>{text}</description>", link=f"/{n}") for n in range(500)]
    one_node = item(f"<description>{text * 400}</description>", link="/huge")
    body = rss(one_node + "".join(items)).encode()
    assert len(body) > 22_000_000
    listing = parse(body[: len(body) // 2] if cut else body)
    assert listing.entries[0].url == "https://news.example/huge"
    assert len(listing.entries) == 501 or (cut and len(listing.entries) > 20)
    assert any("not well-formed" in warning for warning in listing.warnings) == cut


@pytest.mark.report("Tiendil/feeds.fun#171")
@pytest.mark.parametrize("newest", ["first", "last"])
def test_of_an_archive_of_letters_the_newest_are_taken(newest: str) -> None:
    written = "<pubDate>{:%a, %d %b %Y %H:%M:%S} GMT</pubDate>"
    items = [
        item(written.format(NOW - timedelta(hours=n)), link=f"/{n}") for n in range(MAX_ENTRIES + 9)
    ]
    listing = parse(rss("".join(items if newest == "first" else items[::-1])))
    urls = {entry.url for entry in listing.entries}
    assert len(urls) == MAX_ENTRIES
    assert "https://news.example/0" in urls


def bomb(levels: int = 12) -> str:
    lines = "".join(f"<!ENTITY l{n} '{f'&l{n - 1};' * 10}'>" for n in range(1, levels))
    return f"<!DOCTYPE rss [<!ENTITY l0 'lol'>{lines}]>"


@pytest.mark.parametrize(
    "doctype",
    [
        pytest.param(bomb(), id="billion laughs"),
        pytest.param(f"<!DOCTYPE rss [<!ENTITY l11 '{'A' * 50_000}'>]>", id="quadratic"),
    ],
)
def test_entity_bomb_is_refused_at_once(doctype: str) -> None:
    with pytest.raises(ParseError, match="bomb"):
        parse(rss(item(title="&l11;" * 200), doctype))


@pytest.mark.parametrize(
    "reference",
    ["&#xD800;", "&#56320;", "&#0;", "&#x110000;", "&#x1F;", "&#xFFFF;", "&#" + "9" * 5000 + ";"],
)
def test_reference_to_no_character_costs_that_character_only(reference: str) -> None:
    title = only(parse(rss(item(title=f"One {reference} two")))).title or ""
    assert (title[:4], title[-4:]) == ("One ", " two")
    assert title.encode("utf-8")


def test_of_tags_without_end_the_first_are_read() -> None:
    many = "<a/>" * 1_100_000
    listing = parse(rss(item(title="One") + many + item(title="Two")))
    assert [entry.title for entry in listing.entries] == ["One"]
    assert any("only its first 1000000 tags" in warning for warning in listing.warnings)


def test_more_values_than_a_feed_has_are_refused() -> None:
    body = '{"version": "1", "items": [' + "{}," * 1_100_000 + "{}]}"
    with pytest.raises(ParseError, match="more than 2000000 values"):
        parse(body)


def test_more_references_than_a_feed_has_are_refused() -> None:
    with pytest.raises(ParseError, match="more than 2000000 entities"):
        parse(rss(item(title="&x;" * 2_100_000)))


@pytest.mark.slow
@pytest.mark.report("lwindolf/liferea#867")
def test_feed_of_twenty_two_megabytes_is_read() -> None:
    long = "<description>" + "One sentence of an article's text. " * 600 + "</description>"
    items = "".join(
        f"<item><link>https://a.example/{number}</link>{long}</item>" for number in range(1100)
    )
    body = rss(items)
    assert len(body) > 22_000_000
    assert len(parse(body).entries) == 1100


def test_entity_that_holds_itself_is_inert() -> None:
    doctype = "<!DOCTYPE rss [<!ENTITY a 'x&b;'><!ENTITY b 'y&a;'>]>"
    assert only(parse(rss(item(title="&a;"), doctype))).title


def test_external_entities_are_never_read(tmp_path: Path) -> None:
    secret = tmp_path / "secret"
    secret.write_text("secret")
    doctype = (
        f"<!DOCTYPE rss SYSTEM 'http://127.0.0.1:9/x.dtd' [<!ENTITY x SYSTEM '{secret.as_uri()}'>"
        "<!ENTITY % p SYSTEM 'http://127.0.0.1:9/p'> %p;]>"
    )
    assert "secret" not in (only(parse(rss(item(title="a &x; b"), doctype))).title or "")


def test_deep_nesting_is_survived() -> None:
    parse(rss(item(f"<description>{'<a>' * 50_000}</description>")))


@pytest.mark.parametrize(
    ("channel", "ttl_s"),
    [
        ("<ttl>60</ttl>", 3600.0),
        ("<ttl>soon</ttl>", None),
        (
            "<sy:updatePeriod>hourly</sy:updatePeriod><sy:updateFrequency>4</sy:updateFrequency>",
            900.0,
        ),
    ],
)
def test_publishers_hint_is_read(channel: str, ttl_s: float | None) -> None:
    sy = "xmlns:sy='http://purl.org/rss/1.0/modules/syndication/'"
    assert parse(rss(item(), channel=channel, attributes=sy)).ttl_s == ttl_s


@settings(max_examples=150, deadline=None)
@given(st.binary(max_size=200), st.integers(0, 2000), st.integers(0, 30))
def test_damaged_feeds_end_in_entries_or_in_our_error(noise: bytes, place: int, cut: int) -> None:
    body = (SAMPLES / "feed.rss.xml").read_bytes()
    damaged = body[:place] + noise + body[place + cut :]
    try:
        listing = parse(damaged)
    except ParseError:
        return
    assert all(entry.url.startswith("http") for entry in listing.entries)


def collected(archive: str) -> Iterator[tuple[str, bytes]]:
    with tarfile.open(COLLECTION / "feeds" / archive, "r:xz") as files:
        for member in files:
            data = files.extractfile(member)
            if data is not None and member.name.endswith((".xml", ".rss", ".atom")):
                yield member.name, data.read()


@pytest.mark.real
@pytest.mark.skipif(not COLLECTION.exists(), reason="the real collections are absent")
@pytest.mark.parametrize(
    ("archive", "least_share"),
    [
        ("feedparser.tar.xz", 0.99),
        ("gofeed.tar.xz", 0.99),
        ("feed-rs.tar.xz", 0.97),
        ("rss-parser.tar.xz", 1.0),
        ("wechat-feeds.tar.xz", 1.0),
        ("feedvalidator.tar.xz", 0.8),
    ],
)
def test_real_feeds_are_read_and_the_rest_refused(archive: str, least_share: float) -> None:
    n_files = n_read = 0
    for _, body in collected(archive):
        n_files += 1
        try:
            parse(body)
        except ParseError:
            continue
        n_read += 1
    assert n_read / n_files >= least_share


@pytest.mark.parametrize(
    "feed",
    [
        (
            "<feed xmlns='http://www.w3.org/2005/Atom'><link rel='self' href='/f'/>"
            "<link rel='next' href='/f?page=2'/><entry><id>1</id></entry></feed>"
        ),
        (
            "<rss xmlns:atom='http://www.w3.org/2005/Atom'><channel>"
            "<link>https://a.example/</link><atom:link rel='prev-archive' href='f?page=2'/>"
            "<item><guid>1</guid></item></channel></rss>"
        ),
        '{"version": "https://jsonfeed.org/version/1.1", "items": [], "next_url": "/f?page=2"}',
    ],
)
def test_a_feed_in_pages_says_where_its_older_entries_are(feed: str) -> None:
    listing = parse_feed(feed.encode(), url="https://a.example/f", now=NOW)
    assert listing.older == "https://a.example/f?page=2"


def test_a_feed_of_one_page_leads_nowhere() -> None:
    feed = (
        "<rss><channel><link>https://a.example/</link><item><guid>1</guid></item></channel></rss>"
    )
    assert parse_feed(feed.encode(), url="https://a.example/f", now=NOW).older is None
