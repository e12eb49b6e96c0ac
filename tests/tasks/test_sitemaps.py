import gzip
import re
import tarfile
import zlib
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest

from models.errors import ParseError
from models.records import Listing
from tasks.sitemaps import parse_sitemap

NOW = datetime(2024, 5, 7, 12, 0, tzinfo=UTC)
URL = "https://news.example/sitemap.xml"
COLLECTION = Path(__file__).parents[2].parent / "shared" / "data" / "C_feeds"
SCHEMA = "http://www.sitemaps.org/schemas/sitemap/0.9"
NEWS = "http://www.google.com/schemas/sitemap-news/0.9"


def parse(body: bytes | str, timezone: str = "UTC") -> Listing:
    raw = body.encode() if isinstance(body, str) else body
    return parse_sitemap(raw, url=URL, timezone=timezone, now=NOW)


def urlset(pages: str) -> str:
    return f"<urlset xmlns='{SCHEMA}' xmlns:n='{NEWS}'>{pages}</urlset>"


def page(loc: str, inner: str = "") -> str:
    return f"<url><loc>\n https://news.example/{loc} </loc>{inner}</url>"


def news(title: str, date: str) -> str:
    return (
        "<n:news><n:publication><n:name>News</n:name><n:language>en</n:language></n:publication>"
        f"<n:publication_date>{date}</n:publication_date><n:title>{title}</n:title></n:news>"
    )


def test_news_sitemap_is_read() -> None:
    listing = parse(urlset(page("1", news("Rain &amp; wind end", "2024-05-07T09:30:00+03:00"))))
    (entry,) = listing.entries
    assert listing.format == "news sitemap"
    assert (entry.url, entry.title) == ("https://news.example/1", "Rain & wind end")
    assert entry.published_at == datetime(2024, 5, 7, 6, 30, tzinfo=UTC)
    assert entry.published_basis == "news:publication_date"


@pytest.mark.report("mediacloud/backend#45")
def test_old_news_stays_but_old_pages_go() -> None:  # bug 104
    listing = parse(
        urlset(
            page("1", news("Old news", "2024-04-01"))
            + page("1924/old", "<lastmod>1999-05-06</lastmod>")
            + page("undated")
            + page("2", "<lastmod>2024-05-06T10:00:00Z</lastmod>")
        )
    )
    assert [entry.url for entry in listing.entries] == [
        "https://news.example/1",
        "https://news.example/2",
    ]
    assert "2 pages without a recent date are left out" in listing.warnings


def test_lastmod_without_a_zone_is_read_in_the_publishers() -> None:
    listing = parse(urlset(page("2", "<lastmod>2024-05-06 10:00</lastmod>")), "Asia/Tokyo")
    assert listing.entries[0].published_at == datetime(2024, 5, 6, 1, 0, tzinfo=UTC)


@pytest.mark.report("Edirom/WeGA-WebApp#111")
def test_two_stamps_in_one_lastmod_do_not_lose_the_page() -> None:  # bug 103
    listing = parse(urlset(page("2", "<lastmod>2024-05-06T10:00Z 2024-05-06T11:00Z</lastmod>")))
    assert [entry.url for entry in listing.entries] == ["https://news.example/2"]


@pytest.mark.report("eliasdabbas/advertools#107")
def test_index_gives_children_once_the_latest_first_and_never_itself() -> None:  # bug 99
    listing = parse(
        f"<sitemapindex xmlns='{SCHEMA}'>"
        "<sitemap><loc>/old.xml</loc><lastmod>2020-01-01</lastmod></sitemap>"
        "<sitemap><loc>/undated.xml</loc></sitemap>"
        "<sitemap><loc>/today.xml</loc><lastmod>2024-05-07</lastmod></sitemap>"
        f"<sitemap><loc>/undated.xml</loc></sitemap><sitemap><loc>{URL}</loc></sitemap>"
        "</sitemapindex>"
    )
    assert listing.children == (
        "https://news.example/today.xml",
        "https://news.example/undated.xml",
    )
    assert listing.format == "sitemap index"


def test_gzipped_sitemap_is_read() -> None:
    body = gzip.compress(urlset(page("1", news("Rain", "2024-05-07"))).encode())
    assert len(parse(body).entries) == 1


def test_gzip_that_inflates_without_end_is_refused() -> None:
    packer = zlib.compressobj(9, zlib.DEFLATED, 31)
    chunk = b"\x00" * 2**20
    body = b"".join(packer.compress(chunk) for _ in range(110)) + packer.flush()
    with pytest.raises(ParseError, match="more than 100 MiB"):
        parse(body)


@pytest.mark.parametrize(
    ("body", "reason"),
    [
        (b"", "the answer is empty"),
        (b"<!doctype html><p>Sorry", "an HTML page instead of a sitemap"),
        (b"<rss version='2.0'/>", "a feed instead of a sitemap; its kind is feed"),
        (b"<other/>", "no sitemap: the root element is <other>"),
        (b"Disallow: /", "no sitemap: plain text without addresses"),
        (b"\x1f\x8bjunk", "damaged gzip"),
    ],
)
def test_what_is_no_sitemap_is_named(body: bytes, reason: str) -> None:
    with pytest.raises(ParseError, match=reason):
        parse(body)


def test_text_sitemap_lists_nothing_recent() -> None:
    listing = parse("https://news.example/1\nhttps://news.example/2\n")
    assert (listing.format, listing.entries) == ("text sitemap", ())


@pytest.mark.parametrize(
    ("prefix", "declared"),
    [
        pytest.param("", "xmlns='http://www.google.com/schemas/sitemap/0.84'", id="an old name"),
        pytest.param("", "xmlns='https://www.sitemaps.org/schemas/sitemap/0.9/'", id="https"),
        pytest.param("", "", id="none"),
        pytest.param("sm:", f"xmlns:sm='{SCHEMA}'", id="a prefix"),
        pytest.param("sm:", "", id="a prefix nobody declared"),
    ],
)
def test_a_sitemap_is_one_whatever_its_namespace(prefix: str, declared: str) -> None:
    listing = parse(
        f"<{prefix}urlset {declared}><{prefix}url><{prefix}loc>https://news.example/1</{prefix}loc>"
        f"<{prefix}lastmod>2024-05-06</{prefix}lastmod></{prefix}url></{prefix}urlset>"
    )
    assert [entry.url for entry in listing.entries] == ["https://news.example/1"]


def test_a_picture_of_a_page_is_not_its_address() -> None:
    picture = "<i:image><i:loc>https://news.example/1.jpg</i:loc></i:image>"
    listing = parse(
        f"<urlset xmlns='{SCHEMA}' xmlns:i='http://www.google.com/schemas/sitemap-image/1.1'><url>"
        f"{picture}<loc>https://news.example/1</loc><lastmod>2024-05-06</lastmod></url></urlset>"
    )
    assert [entry.url for entry in listing.entries] == ["https://news.example/1"]


REAL = {
    "crawler-commons/atom.xml": ("feed", 0),
    "crawler-commons/do-not-visit.txt": ("text sitemap", 1),
    "crawler-commons/extension/pagemaps-sitemap.xml": ("sitemap", 2),
    "crawler-commons/extension/shinpaideshou-news-sitemap.xml": ("news sitemap", 3),
    "crawler-commons/extension/sitemap-images.xml": ("sitemap", 1),
    "crawler-commons/extension/sitemap-mobile.xml": ("sitemap", 3),
    "crawler-commons/extension/sitemap-videos-tvshow.xml": ("sitemap", 1),
    "crawler-commons/extension/sitemap-videos.xml": ("sitemap", 3),
    "crawler-commons/sitemap.badns.xml": ("sitemap", 2),
    "crawler-commons/sitemap.ns.xml": ("sitemap", 2),
    "crawler-commons/sitemap.txt": ("text sitemap", 2),
    "crawler-commons/sitemap.txt.gz": ("text sitemap", 5),
    "usp/atom0.3.xml": ("feed", 0),
    "usp/atom1.0.xml": ("feed", 0),
    "usp/google-image.xml": ("sitemap", 2),
    "usp/google-news.xml": ("news sitemap", 2),
    "usp/hreflang.xml": ("sitemap", 2),
    "usp/plaintext.txt": ("text sitemap", 2),
    "usp/simple-index.xml": ("sitemap index", 2),
}
"""What each file is, and how many pages or sitemaps it names, counted by reading it."""


@pytest.mark.real
@pytest.mark.skipif(not COLLECTION.exists(), reason="the real collections are absent")
@pytest.mark.parametrize("name", REAL)
def test_every_page_of_a_real_sitemap_is_listed_or_told_to_be_left_out(name: str) -> None:
    archive, _, member = name.partition("/")
    with tarfile.open(COLLECTION / "sitemaps" / f"{archive}.tar.xz", "r:xz") as files:
        file = files.extractfile(member)
        assert file is not None
        body = file.read()
    kind, n_named = REAL[name]
    if kind == "feed":
        with pytest.raises(ParseError, match="a feed instead of a sitemap; its kind is feed"):
            parse(body)
        return
    listing = parse_sitemap(body, url=URL, now=NOW, recent=timedelta(days=30_000))
    left_out = sum(int(found[0]) for text in listing.warnings if (found := re.match(r"\d+", text)))
    assert listing.format == kind
    assert len(listing.entries) + len(listing.children) + left_out == n_named


@pytest.mark.real
@pytest.mark.skipif(not COLLECTION.exists(), reason="the real collections are absent")
def test_no_real_sitemap_is_forgotten() -> None:
    names = set()
    for archive in (COLLECTION / "sitemaps").glob("*.tar.xz"):
        with tarfile.open(archive, "r:xz") as files:
            stem = archive.name.removesuffix(".tar.xz")
            names |= {f"{stem}/{each.name}" for each in files if each.isfile()}
    assert names == set(REAL)
