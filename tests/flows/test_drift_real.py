"""On real pages: a redesign is found with nine pages known, and features cost little."""

import time
from datetime import UTC, datetime
from pathlib import Path

import pytest

from models.drift.features import describe_page
from models.drift.reference import build_reference
from models.drift.watch import Watch
from tasks.articles import extract_article
from tasks.calibration import read_calibration
from tasks.corpus import list_pages, read_pages

FOLDER = Path(__file__).parents[2].parent / "shared" / "data" / "B_html"
NOW = datetime(2026, 1, 1, tzinfo=UTC)
MAX_FEATURES_S = 0.025

pytestmark = [
    pytest.mark.real,
    pytest.mark.skipif(not FOLDER.is_dir(), reason="the collection of real pages is not here"),
]


@pytest.fixture(scope="module")
def years():
    """Return the features of one site's pages by year, and the seconds each took."""
    wanted = [
        page
        for page in list_pages(FOLDER)
        if page.dataset == "big9-epochs" and page.site == "nypost.com"
    ]
    found, seconds = {}, []
    for page, body in read_pages(FOLDER, wanted):
        article = extract_article(body, url="https://news.example/story", now=NOW)
        started = time.process_time()
        features = describe_page(body, article.text, title=article.title)
        seconds.append(time.process_time() - started)
        found.setdefault(page.date, []).append(features)
    return found, seconds


@pytest.mark.parametrize(
    ("before", "after"), [("2005", "2009"), ("2009", "2013"), ("2013", "2017")]
)
def test_a_real_redesign_is_found_and_its_text_is_not_blamed(years, before, after):
    pages = years[0]
    watch = Watch(build_reference(pages[before][:9], read_calibration()))
    watch.judge(pages[before][9], "own")
    assert watch.verdict() is None
    for number, page in enumerate(pages[after]):
        watch.judge(page, str(number))
        if watch.verdict() is not None:
            break
    drift = watch.verdict()
    assert drift is not None
    assert number < 6
    assert drift.layout_changed
    assert not drift.text_wrong


def test_the_features_of_a_page_cost_little(years):
    seconds = sorted(years[1])
    assert seconds[len(seconds) // 2] < MAX_FEATURES_S
