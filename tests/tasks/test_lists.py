import contextlib
import tarfile
from collections import Counter
from datetime import UTC, datetime
from pathlib import Path

import duckdb
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from models.errors import ParseError
from models.identity import url_key
from models.records import Listing, ListRules
from tasks.lists import parse_list, registered_domain

NOW = datetime(2024, 5, 6, 12, 0, tzinfo=UTC)
URL = "https://www.vesti.example/"
SAMPLE = Path(__file__).parents[1] / "samples" / "listing.ru.html"
COLLECTION = Path(__file__).parents[2].parent / "shared" / "data" / "B_html"


def parse(body: bytes | str, rules: ListRules | None = None, url: str = URL) -> Listing:
    raw = body.encode() if isinstance(body, str) else body
    return parse_list(raw, url=url, rules=rules, timezone="Europe/Moscow", now=NOW)


def page(links: str, head: str = "") -> str:
    return f"<html><head>{head}</head><body><ul>{links}</ul></body></html>"


def teaser(href: str, title: str = "Дождь прекратился к вечеру, сообщили синоптики") -> str:
    return f"<li class='n'><a href='{href}'>{title}</a></li>"


def test_articles_of_a_front_page_are_found_and_nothing_else() -> None:
    listing = parse(SAMPLE.read_bytes())
    assert (listing.format, listing.title) == ("list page", "Вести города: лента")
    assert [(entry.url, entry.title) for entry in listing.entries] == [
        (
            "https://www.vesti.example/2024/05/06/most-otkryt-101.html?utm_source=main",
            "Мост открыт после проверки, движение пущено",
        ),
        (
            "https://www.vesti.example/lenta/100-yarmarka",
            "Ярмарка переехала на площадь у вокзала",
        ),
        ("https://www.vesti.example/news/?id=99&cHash=ab12", "Дождь прекратился"),
        (
            "https://blog.vesti.example/2024/05/05/kolonka-98.html",
            "Колонка: почему мы ждали этот мост десять лет",
        ),
    ]


def test_dates_of_the_blocks_are_read() -> None:
    dates = [
        (entry.published_at, entry.published_precision)
        for entry in parse(SAMPLE.read_bytes()).entries
    ]
    assert dates == [
        (datetime(2024, 5, 6, 9, 30, tzinfo=UTC), "minute"),
        (datetime(2024, 5, 6, 8, 5, tzinfo=UTC), "instant"),
        (datetime(2024, 5, 5, 18, 40, tzinfo=UTC), "minute"),
        (None, None),
    ]


def test_rules_override_the_generic_way() -> None:
    rules = ListRules(links="div.item h3 a", url_pattern=r"/2024/", date="span.item__date")
    listing = parse(SAMPLE.read_bytes(), rules)
    assert [entry.url for entry in listing.entries] == [
        "https://www.vesti.example/2024/05/06/most-otkryt-101.html",
        "https://blog.vesti.example/2024/05/05/kolonka-98.html",
    ]
    assert listing.entries[0].published_basis == "rule"


def test_selector_of_a_block_means_the_links_inside() -> None:
    listing = parse(page(teaser("/a") + teaser("/b")), ListRules(links="li.n"))
    assert len(listing.entries) == 2


@pytest.mark.parametrize(
    "rules", [ListRules(links="li["), ListRules(url_pattern="("), ListRules(date="::")]
)
def test_rule_that_cannot_be_read_is_named(rules: ListRules) -> None:
    with pytest.raises(ParseError, match="of its rules"):
        parse(page(teaser("/a")), rules)


def test_rules_that_match_nothing_are_told() -> None:
    listing = parse(page(teaser("/a")), ListRules(links="article a"))
    assert listing.warnings == ("the rules of the source match no link of this page",)


def test_page_without_articles_is_empty_with_a_warning() -> None:
    listing = parse(page("<li><a href='/sport/'>Спорт</a></li><li><a href='/tv/'>ТВ</a></li>"))
    assert listing.entries == ()
    assert listing.warnings == ("none of 2 own links looks like an article's",)


def test_page_without_any_link_says_so() -> None:
    assert parse(page("<p>hello</p>")).warnings == ("no link to another page of its own site",)


def test_strangers_are_dropped_even_if_they_name_the_domain() -> None:
    links = (
        teaser("https://vesti.example.evil.test/2024/05/06/long-story-11111.html")
        + teaser("https://evil.test/vesti.example/2024/05/06/long-story-22222.html")
        + teaser("https://notvesti.example/2024/05/06/long-story-33333.html")
        + teaser("https://m.vesti.example/2024/05/06/long-story-44444.html")
    )
    assert [entry.url for entry in parse(page(links)).entries] == [
        "https://m.vesti.example/2024/05/06/long-story-44444.html"
    ]


@pytest.mark.report("scrapy/scrapy#7690")
def test_base_far_down_in_the_head_counts() -> None:  # bug 82
    head = f"<style>{'a{}' * 3000}</style><base href='https://www.vesti.example/deep/'>"
    listing = parse(page(teaser("story-of-the-day-12345.html"), head))
    assert listing.entries[0].url == "https://www.vesti.example/deep/story-of-the-day-12345.html"


def test_base_of_a_stranger_does_not_make_strangers_ours() -> None:
    head = "<base href='https://evil.test/'>"
    assert parse(page(teaser("story-of-the-day-12345.html"), head)).entries == ()


@pytest.mark.report("FreshRSS/FreshRSS#4220")
def test_entities_in_links_are_decoded_once() -> None:  # bug 85
    listing = parse(page(teaser("/index.php?id=5831&amp;cHash=ab&amp;amp=1")))
    assert listing.entries[0].url == "https://www.vesti.example/index.php?id=5831&cHash=ab&amp=1"


def test_links_that_act_on_a_forum_thread_are_no_entries() -> None:
    links = (
        teaser("/viewtopic.php?f=1&t=194998")
        + teaser("/posting.php?mode=quote&f=1&p=2729870")
        + teaser("/report.php?p=5768670")
    )
    assert [entry.url for entry in parse(page(links)).entries] == [
        "https://www.vesti.example/viewtopic.php?f=1&t=194998"
    ]


def test_link_to_the_page_itself_is_no_entry() -> None:
    url = "https://www.vesti.example/news/all-the-news-12345"
    assert parse(page(teaser(url) + teaser("#top")), url=url).entries == ()


def test_legacy_encoding_is_read() -> None:
    body = page(teaser("/news/12345-dozhd"), "<meta charset='windows-1251'>").encode("cp1251")
    assert (parse(body).entries[0].title or "").startswith("Дождь")


@pytest.mark.parametrize(
    ("body", "reason"),
    [
        (b"  ", "the answer is empty"),
        (b'{"a": 1}', "no HTML page"),
        (b"<?xml version='1.0'?><rss version='2.0'/>", "a feed or sitemap instead"),
    ],
)
def test_what_is_no_list_page_is_named(body: bytes, reason: str) -> None:
    with pytest.raises(ParseError, match=reason):
        parse(body)


@pytest.mark.parametrize(
    ("url", "domain"),
    [
        ("https://news.bbc.example.co.uk/a", "example.co.uk"),
        ("http://127.0.0.1:8000/a", "127.0.0.1"),
        ("http://localhost:8000/a", "localhost"),
        ("http://новости.рф/a", "xn--b1amnebsh.xn--p1ai"),
        ("no address", ""),
    ],
)
def test_registered_domain(url: str, domain: str) -> None:
    assert registered_domain(url) == domain


def test_sites_on_a_replayed_web_with_made_up_hosts_are_their_own() -> None:
    links = teaser("http://other.test/2024/05/06/a-long-story-55555.html") + teaser(
        "/2024/05/06/a-long-story-44444.html"
    )
    listing = parse(page(links), url="http://daily.test/")
    assert [entry.url for entry in listing.entries] == [
        "http://daily.test/2024/05/06/a-long-story-44444.html"
    ]


@settings(max_examples=100, deadline=None)
@given(st.text(max_size=300))
def test_any_text_ends_in_entries_or_in_our_error(text: str) -> None:
    with contextlib.suppress(ParseError):
        parse(f"<a href='{text}'>{text}</a>{text}")


@pytest.mark.real
@pytest.mark.slow
@pytest.mark.skipif(not COLLECTION.exists(), reason="the real collections are absent")
def test_what_is_found_on_real_front_pages_is_what_changes() -> None:
    """Links seen in one monthly snapshot only are articles, those in a third of them are not."""
    precision, recall = [], []
    for snapshots in monthly_snapshots(n_months=8).values():
        chosen, links = [], []
        for site, body in snapshots:
            url = f"https://www.{site}/"
            chosen.append({url_key(e.url) for e in parse(body, url=url).entries})
            every = parse(body, ListRules(links="a[href]"), url)
            links.append({url_key(e.url): e.title or "" for e in every.entries})
        seen = Counter(key for page_links in links for key in page_links)
        found = [key for keys in chosen for key in keys]
        fresh = [
            (key, key in keys)
            for keys, page_links in zip(chosen, links, strict=True)
            for key, title in page_links.items()
            if seen[key] == 1 and len(title) >= 30
        ]
        precision.append(sum(seen[key] <= 2 for key in found) / len(found))
        recall.append(sum(hit for _, hit in fresh) / len(fresh))
    assert sum(precision) / len(precision) >= 0.93
    assert sum(recall) / len(recall) >= 0.93


def monthly_snapshots(n_months: int) -> dict[str, list[tuple[str, bytes]]]:
    rows = duckdb.sql(
        f"SELECT site, archive, member FROM read_csv('{COLLECTION / 'index.csv'}') "
        "WHERE dataset = 'de-frontpages' AND date > '2022-02-02' "
        "AND site NOT IN ('spiegeldaily.de', 'zeitfuerdieschule.de') ORDER BY site, date"
    ).fetchall()
    by_site: dict[str, list[tuple[str, str]]] = {}
    for site, archive, member in rows:
        by_site.setdefault(site, []).append((archive, member))
    found: dict[str, list[tuple[str, bytes]]] = {}
    for site, places in by_site.items():
        wanted = {member for _, member in places[:: max(len(places) // n_months, 1)][:n_months]}
        with tarfile.open(COLLECTION / places[0][0], "r:xz") as files:
            bodies = [files.extractfile(m) for m in files if m.name in wanted]
            found[site] = [(site, data.read()) for data in bodies if data is not None]
    return found
