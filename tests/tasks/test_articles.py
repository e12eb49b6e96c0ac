import json
import logging
import random
import re
import tarfile
from collections import Counter
from datetime import UTC, datetime
from pathlib import Path

import duckdb
import pytest
import trafilatura

from models.decoding import decode_bytes
from models.errors import ParseError
from models.records import Article, ExtractRules
from tasks.articles import extract_article

NOW = datetime(2024, 5, 7, 12, 0, tzinfo=UTC)
URL = "https://blatt.example/stadt/bruecke-2024.html?utm_source=feed"
SAMPLE = Path(__file__).parents[1] / "samples" / "article.de.html"
COLLECTION = Path(__file__).parents[2].parent / "shared" / "data" / "B_html"

PARAGRAPHS = [
    " ".join(paragraph.split())
    for paragraph in re.split(
        r"\n\n",
        """
    The rain that had kept the town indoors for a week ended on Monday evening, and the market
    square filled with people within the hour.

    Shopkeepers swept the water from their steps while children tried the deepest puddles, and a
    band that had been waiting since noon began to play.

    Forecasters expect a dry week with light winds from the west, though they warn that the river
    will keep rising until Wednesday morning.
    """,
    )
]
BODY = "".join(f"<p>{paragraph}</p>" for paragraph in PARAGRAPHS)


def extract(body: bytes | str, rules: ExtractRules | None = None, **more: str) -> Article:
    raw = body.encode() if isinstance(body, str) else body
    options = {"url": URL, "timezone": "Europe/Berlin", **more}
    return extract_article(raw, rules=rules, now=NOW, **options)


def page(head: str = "", body: str = BODY, title: str = "Rain ends") -> str:
    return (
        f"<html><head><title>{title}</title>{head}</head><body><article><h1>{title}</h1>{body}"
        "</article></body></html>"
    )


def test_article_page_is_read() -> None:
    article = extract(SAMPLE.read_bytes())
    assert article.title == "Brücke wieder offen: Stadt feiert"
    assert article.authors == ("Erika Beispiel",)
    assert article.language == "de"
    assert article.canonical_url == "https://blatt.example/stadt/bruecke-2024.html"
    assert (article.kind, article.extraction) == ("article", "trafilatura")
    assert article.text is not None
    assert "Umleitung durch das Wohngebiet" in article.text
    assert "Das hat aber wirklich lange gedauert" not in article.text
    assert article.cpu_s > 0


@pytest.mark.report("adbar/htmldate#196")
def test_declared_instant_is_kept_and_not_cut_to_the_day() -> None:  # bug 114
    article = extract(SAMPLE.read_bytes())
    assert article.published_at == datetime(2024, 5, 6, 6, 30, tzinfo=UTC)
    assert article.published_precision == "instant"
    assert article.published_basis == "json-ld datePublished"


def linked_data(text: str) -> str:
    return f"<script type='application/ld+json'>{text}</script>"


@pytest.mark.parametrize(
    ("head", "at", "basis"),
    [
        (
            "<meta property='article:published_time' content='2024-05-06T10:00:00Z'>",
            "2024-05-06T10:00",
            "meta article:published_time",
        ),
        (
            "<meta itemprop='datePublished' content='2024-05-06 12:00'>",
            "2024-05-06T10:00",
            "meta datepublished",
        ),
        (
            linked_data('{broken, "datePublished": "2024-05-06T10:00Z"}'),
            "2024-05-06T10:00",
            "json-ld datePublished",
        ),
        (
            linked_data('{"datePublished": "2024-05-06"}')
            + "<meta property='article:published_time' content='2024-05-06T10:00:00Z'>",
            "2024-05-06T10:00",
            "meta article:published_time",
        ),
        (
            "<meta property='article:published_time' content='1246-01-01T00:00:00Z'>",
            None,
            None,
        ),
    ],
)
def test_date_is_taken_from_the_best_statement(
    head: str, at: str | None, basis: str | None
) -> None:
    article = extract(page(head))
    assert article.published_at == (at and datetime.fromisoformat(at).replace(tzinfo=UTC))
    assert article.published_basis == basis


@pytest.mark.report("adbar/htmldate#156")
@pytest.mark.parametrize(
    ("line", "at", "precision"),
    [
        ("<div>30 Июля 2015</div>", datetime(2015, 7, 29, 22, tzinfo=UTC), "day"),
        ("<div>Опубликовано: 30 июля 2015</div>", datetime(2015, 7, 29, 22, tzinfo=UTC), "day"),
        ("<p>30 июля 2015, 14:05</p>", datetime(2015, 7, 30, 12, 5, tzinfo=UTC), "minute"),
        ("<span>Veröffentlicht: 6. Mai 2024</span>", datetime(2024, 5, 5, 22, tzinfo=UTC), "day"),
        ("<div>2024年5月6日</div>", datetime(2024, 5, 5, 22, tzinfo=UTC), "day"),
    ],
)
def test_a_date_that_stands_alone_under_the_headline_is_found(
    line: str, at: datetime, precision: str
) -> None:
    article = extract(page(body=line + BODY))
    assert (article.published_at, article.published_precision) == (at, precision)
    assert article.published_basis == "visible text"


def test_a_date_far_below_the_headline_is_another_storys() -> None:
    assert extract(page(body=BODY * 4 + "<div>30 July 2015</div>")).published_at is None


@pytest.mark.report("adbar/htmldate#8")
@pytest.mark.parametrize(
    "line",
    [
        "Phone: 2014-05-11-22",
        "Call +49 30 20150304 or 0211/2015-03-04-7",
        "Law 1234/2012, No. 12/05/2013-A",
        "Commercial register HRB 20120405",
        "See Regulation (EU) 2016/679 and § 5 of the Act, 2003 I 1102",
    ],
)
def test_numbers_of_phones_and_laws_are_no_dates(line: str) -> None:
    above, below = (
        extract(page(body=f"<p>{line}</p>{BODY}")),
        extract(page(body=f"{BODY}<p>{line}")),
    )
    assert (above.published_at, below.published_at) == (None, None)


@pytest.mark.report("codelucas/newspaper#1028")
def test_no_date_is_made_of_a_slug_and_the_real_one_is_found() -> None:
    url = "https://blatt.example/kali-linux-2026-1-release"
    assert extract(page(), url=url).published_at is None
    dated = extract(page(body=f"<p>Posted March 24, 2024</p>{BODY}"), url=url)
    assert dated.published_at == datetime(2024, 3, 23, 23, tzinfo=UTC)


def test_a_day_in_the_path_is_a_date_and_a_month_is_none() -> None:
    day = extract(page(), url="https://blatt.example/2014/04/17/rain-ends")
    assert day.published_at == datetime(2014, 4, 16, 22, tzinfo=UTC)
    month = extract(page(), url="https://blatt.example/2014/04/rain-ends")
    assert month.published_at is None


@pytest.mark.report("adbar/trafilatura#850")
@pytest.mark.parametrize("summary", ["Comments (2)", "3 replies", "12 комментариев", "2条评论"])
def test_comments_that_fold_away_are_not_in_the_text(summary: str) -> None:
    thread = (
        f"<details><summary>{summary}</summary><div><p>Anna wrote: I have never seen so many "
        "people in the square, it was a wonderful evening for all of us.</p><p>Bert wrote: That "
        "band plays out of tune every single time and still everybody dances.</p></div></details>"
    )
    text = extract(page(body=BODY + thread)).text or ""
    assert PARAGRAPHS[2] in text
    assert "wonderful evening" not in text
    assert "out of tune" not in text


def test_other_parts_that_fold_away_are_in_the_text() -> None:
    more = f"<details><summary>What happened before</summary><p>{PARAGRAPHS[1]}</p></details>"
    text = extract(page(body=f"<p>{PARAGRAPHS[0]}</p>{more}<p>{PARAGRAPHS[2]}</p>")).text or ""
    assert all(paragraph in text for paragraph in PARAGRAPHS)


def test_time_element_gives_the_date() -> None:
    article = extract(page(body=f"<time datetime='2024-05-06T12:00:00+02:00'>today</time>{BODY}"))
    assert article.published_at == datetime(2024, 5, 6, 10, 0, tzinfo=UTC)


@pytest.mark.report("intenthq/gander#18")
@pytest.mark.parametrize(
    ("title", "kept"),
    [
        ("Rain ends - Blatt", "Rain ends"),
        ("Rain ends | blatt.example", "Rain ends"),
        ("Blatt wins - Rain ends", "Blatt wins - Rain ends"),
        ("Blatt | Rain ends", "Rain ends"),
        ("Rain ends - Mayor relieved", "Rain ends - Mayor relieved"),
    ],
)
def test_only_the_sites_own_name_is_cut_from_a_title(title: str, kept: str) -> None:  # bug 112
    head = f"<meta property='og:title' content='{title}'>"
    assert extract(page(head)).title == kept


@pytest.mark.parametrize(
    ("canonical", "kept"),
    [
        pytest.param("/stadt/bruecke-2024.html", True, id="its own"),
        pytest.param(
            "https://blatt.example/",
            False,
            id="home page",
            marks=pytest.mark.report("php-embed/Embed#160"),
        ),
        pytest.param("https://blatt.example/stadt", False, id="section"),
        pytest.param("https://agentur.example/artikel/7", True, id="the original elsewhere"),
        pytest.param("javascript:void(0)", False, id="no address"),
    ],
)
def test_canonical_address_is_believed_only_if_it_can_be_one(canonical: str, kept: bool) -> None:
    found = extract(page(f"<link rel='canonical' href='{canonical}'>")).canonical_url
    assert (found is not None) == kept


def test_selectors_of_the_source_come_first() -> None:
    rules = ExtractRules(title="h2.head", text="div.story", date="span.when")
    body = (
        "<h2 class='head'>The other headline</h2><span class='when'>6.5.2024, 12:00 Uhr</span>"
        f"<div class='story'><script>x()</script>{BODY}<ul><li><p>One point</p></li></ul></div>"
    )
    article = extract(page("<meta name='date' content='2020-01-01'>", body), rules)
    assert article.title == "The other headline"
    assert article.text == "\n".join([*PARAGRAPHS, "One point"])
    assert article.published_at == datetime(2024, 5, 6, 10, 0, tzinfo=UTC)
    assert (article.extraction, article.published_basis) == ("css", "rule")


def test_selector_that_matches_nothing_gives_way_with_a_warning() -> None:
    article = extract(page(), ExtractRules(text="div.gone"))
    assert article.extraction == "trafilatura"
    assert article.warnings == ("the text selector 'div.gone' matches nothing",)


def test_selector_that_cannot_be_read_is_named() -> None:
    with pytest.raises(ParseError, match=r"the text selector 'div\[' of its rules"):
        extract(page(), ExtractRules(text="div["))


def test_page_without_text_is_empty() -> None:
    article = extract("<html><body><div id='app'></div><script>run()</script></body></html>")
    assert (article.kind, article.text) == ("empty", None)


def wall(words: str) -> str:
    links = "".join(f"<a href='/s{n}/'>Section</a>" for n in range(9))
    return f"<html><body><nav>{links}</nav><main><p>{words}</p></main></body></html>"


@pytest.mark.report("nextcloud/news#714")
@pytest.mark.parametrize(
    "words",
    [
        "Subscribe, or accept all cookies, so that we and our partners can show you advertising.",
        "Please verify that you are human by completing the captcha below.",
        "Please enable JavaScript in your browser to view this page.",
        "Log in to continue. Forgot your password?",
        "Access denied. You do not have permission to view this page.",
    ],
    ids=["consent", "captcha", "javascript", "login", "blocked"],
)
def test_a_wall_is_no_article_and_has_no_text(words: str) -> None:
    article = extract(wall(words))
    assert (article.kind, article.text) == ("wall", None)
    assert article.reason.startswith("a wall stands before the article")
    assert article.reason in article.warnings


def test_a_page_that_says_only_to_turn_scripts_on_is_a_wall() -> None:
    article = extract(
        "<html><body><noscript>You need to enable JavaScript to run this app.</noscript>"
        "<div id='root'></div></body></html>"
    )
    assert article.kind == "wall"


def test_a_story_with_a_cookie_banner_is_an_article() -> None:
    banner = "<div class='banner'><p>We use cookies. Accept all cookies</p></div>"
    article = extract(page(body=banner + BODY))
    assert article.kind == "article"
    assert PARAGRAPHS[2] in (article.text or "")


def test_a_teaser_of_two_paragraphs_before_a_paywall_is_a_wall() -> None:
    teaser = "".join(f"<p>{paragraph}</p>" for paragraph in PARAGRAPHS[:2])
    offer = "<div class='pay'><p>Subscribe now to continue reading this article.</p></div>"
    assert extract(page(body=teaser + offer)).kind == "wall"
    assert extract(page(body=teaser)).kind == "article"


def test_a_story_that_is_cut_further_down_says_so() -> None:
    said = '{"@type": "NewsArticle", "isAccessibleForFree": "False"}'
    offer = "<div class='pay'><p>Subscribe now to continue reading this article.</p></div>"
    article = extract(page(linked_data(said), BODY * 3 + offer))
    assert article.kind == "article"
    assert any("invites to pay for the rest" in warning for warning in article.warnings)


def front_page(head: str = "") -> str:
    teasers = "".join(
        f"<div class='teaser'><h3><a href='/2024/05/{n}.html'>{PARAGRAPHS[n % 3][:60]}</a></h3>"
        f"<p>{PARAGRAPHS[(n + 1) % 3]}</p></div>"
        for n in range(14)
    )
    return f"<html><head><title>Sport</title>{head}</head><body>{teasers}</body></html>"


def test_a_list_of_articles_is_no_article() -> None:
    article = extract(front_page(), url="https://blatt.example/sport/")
    assert (article.kind, article.text) == ("list", None)
    assert article.reason == "the page is a list of articles, not one"


def test_a_list_is_none_where_the_sources_own_selector_finds_the_text() -> None:
    rules = ExtractRules(text="div.teaser")
    assert extract(front_page(), rules, url="https://blatt.example/sport/").kind == "article"


def test_an_article_with_a_long_list_of_others_is_an_article() -> None:
    others = re.sub(r"</?(html|head|body|title)[^>]*>", "", front_page())
    assert extract(page(body=BODY * 2 + others)).kind == "article"


def test_accents_come_in_one_spelling() -> None:
    text = "Le caf\u00e9 du port rouvre lundi apre\u0300s onze semaines de travaux. "
    found = extract(page(body=f"<p>{text * 6}</p>", title="Cafe\u0301"))
    assert found.title == "Caf\u00e9"
    assert "apr\u00e8s" in (found.text or "")


@pytest.mark.report("codelucas/newspaper#341")
def test_paragraphs_in_separate_containers_are_all_kept() -> None:  # bug 107
    parts = "".join(f"<div class='part'><div><p>{text}</p></div></div>" for text in PARAGRAPHS)
    text = extract(page(body=parts)).text or ""
    assert all(paragraph in text for paragraph in PARAGRAPHS)


def test_legacy_encoding_is_read() -> None:
    russian = "Дождь, который неделю держал город дома, прекратился в понедельник вечером. " * 3
    body = page("<meta charset='koi8-r'>", f"<p>{russian}</p>" * 2, "Дождь прекратился")
    article = extract(body.encode("koi8-r"))
    assert article.title == "Дождь прекратился"
    assert "понедельник вечером" in (article.text or "")


def test_language_of_the_source_holds_where_the_page_states_none() -> None:
    assert extract(page(), language="en").language == "en"


@pytest.mark.parametrize(
    ("body", "reason"),
    [
        (b"", "the answer is empty"),
        (b"%PDF-1.7 ...", "a PDF instead of an HTML page"),
        (b"\x89PNG\r\n", "an image instead of an HTML page"),
        (b'{"error": 1}', "no HTML page"),
    ],
)
def test_what_is_no_page_is_named(body: bytes, reason: str) -> None:
    with pytest.raises(ParseError, match=reason):
        extract(body)


def test_nothing_is_logged(caplog: pytest.LogCaptureFixture) -> None:
    with caplog.at_level(logging.DEBUG):
        extract("<html><body></body></html>")
    assert [r for r in caplog.records if r.name.startswith(("trafilatura", "htmldate"))] == []


@pytest.mark.parametrize("seed", range(40))
def test_damaged_pages_end_in_an_article_or_in_our_error(seed: int) -> None:
    rng = random.Random(seed)
    body = bytearray(SAMPLE.read_bytes())
    for _ in range(rng.randrange(1, 60)):
        place = rng.randrange(len(body))
        body[place : place + rng.randrange(4)] = rng.randbytes(rng.randrange(4))
    try:
        assert extract(bytes(body)).kind in {"article", "list", "wall", "empty"}
    except ParseError as error:
        assert "broke" not in error.reason  # noqa: PT017


@pytest.mark.real
@pytest.mark.skipif(not COLLECTION.exists(), reason="the real collections are absent")
@pytest.mark.parametrize("dataset", ["article-extraction-benchmark", "readability"])
def test_text_is_no_worse_than_plain_trafilatura(dataset: str) -> None:
    ours, plain = [], []
    for body, truth in pages_with_truth(dataset, n_pages=30):
        wanted = words(re.sub(r"<[^>]*>", " ", truth))
        ours.append(f1(wanted, words(extract(body).text or "")))
        found = trafilatura.bare_extraction(
            decode_bytes(body).text, include_comments=False, with_metadata=False
        )
        plain.append(f1(wanted, words(getattr(found, "text", None) or "")))
    assert sum(ours) >= sum(plain) - 1e-9
    assert sum(ours) / len(ours) > 0.85


@pytest.mark.real
@pytest.mark.skipif(not COLLECTION.exists(), reason="the real collections are absent")
def test_real_dates_and_titles_are_found() -> None:
    n_pages = n_dates = n_titles = 0
    for body, truth in pages_with_truth("fundus", n_pages=40):
        stated = [v for v in json.loads(truth).values() if isinstance(v, dict)]
        dates = [_aware(v["publishing_date"]) for v in stated if v.get("publishing_date")]
        if not dates:
            continue
        article = extract_article(body, url=URL, now=datetime(2027, 1, 1, tzinfo=UTC))
        n_pages += 1
        n_dates += article.published_at in dates
        n_titles += any(article.title == v.get("title") for v in stated)
    # Where a site has several layouts the truth may be of another page than the one stored.
    assert n_dates / n_pages >= 0.65
    assert n_titles / n_pages >= 0.55


@pytest.mark.real
@pytest.mark.skipif(not COLLECTION.exists(), reason="the real collections are absent")
@pytest.mark.parametrize(
    ("dataset", "n_articles"), [("article-extraction-benchmark", 40), ("fundus", 39)]
)
def test_real_articles_are_taken_for_articles(dataset: str, n_articles: int) -> None:
    pages = pages_with_truth(dataset, n_pages=40)
    assert sum(extract(body).kind == "article" for body, _ in pages) >= n_articles


@pytest.mark.real
@pytest.mark.skipif(not COLLECTION.exists(), reason="the real collections are absent")
@pytest.mark.parametrize(
    ("site", "path"),
    [("heise.de", "thema/IT"), ("welt.de", "politik/"), ("spiegel.de", "politik/")],
)
def test_real_sections_are_taken_for_lists(site: str, path: str) -> None:
    bodies = captures_of(site, n_captures=5)
    kinds = [extract(body, url=f"https://www.{site}/{path}").kind for body in bodies]
    assert kinds == ["list"] * 5


def captures_of(site: str, n_captures: int) -> list[bytes]:
    rows = duckdb.sql(
        f"SELECT archive, member FROM read_csv('{COLLECTION / 'index.csv'}') "
        f"WHERE dataset = 'de-frontpages' AND site = '{site}' ORDER BY md5(member) "
        f"LIMIT {n_captures}"
    ).fetchall()
    members = {member for _, member in rows}
    with tarfile.open(COLLECTION / rows[0][0], "r:xz") as files:
        found = [files.extractfile(each) for each in files if each.name in members]
        return [data.read() for data in found if data is not None]


def _aware(text: str) -> datetime:
    at = datetime.fromisoformat(text).replace(microsecond=0)
    return at if at.tzinfo else at.replace(tzinfo=UTC)


def words(text: str) -> Counter[str]:
    return Counter(re.findall(r"[\u3400-\u9fff]|\w+", text.lower()))


def f1(wanted: Counter[str], found: Counter[str]) -> float:
    shared = sum((wanted & found).values())
    return 2 * shared / (sum(wanted.values()) + sum(found.values())) if shared else 0.0


def pages_with_truth(dataset: str, n_pages: int) -> list[tuple[bytes, str]]:
    rows = duckdb.sql(
        f"SELECT archive, member, truth_member FROM read_csv('{COLLECTION / 'index.csv'}') "
        f"WHERE dataset = '{dataset}' AND truth_member IS NOT NULL ORDER BY md5(member) "
        f"LIMIT {n_pages}"
    ).fetchall()
    found = []
    for archive in {row[0] for row in rows}:
        pairs = {row[1]: row[2] for row in rows if row[0] == archive}
        wanted, bodies = {*pairs, *pairs.values()}, {}
        with tarfile.open(COLLECTION / archive, "r:xz") as files:
            for member in files:
                data = files.extractfile(member) if member.name in wanted else None
                if data is not None:
                    bodies[member.name] = data.read()
        found += [(bodies[a], bodies[b].decode("utf-8", "replace")) for a, b in pairs.items()]
    return found
