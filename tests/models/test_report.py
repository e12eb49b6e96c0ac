"""The report of a day: the same rows for people and for programs."""

import json
import re
from dataclasses import replace
from datetime import UTC, date, datetime, timedelta

import pytest

from models.daybook import Coverage, DayCount, DayFacts, HeldArticle, LevelCount, OutletCount, Span
from models.overview import Hit
from models.report import make_report, render_markdown

DAY = date(2026, 3, 1)
SPAN = Span.of(DAY, "UTC", 14)
LATER = datetime(2026, 3, 2, 1, tzinfo=UTC)
HARM = "</td><script>alert(1)</script> | `x` [a](javascript:alert(1)) \x1b[31m\nred"


def facts(**changes):
    count = DayCount(DAY, 100, 5, 240.0, 600.0, 700, 3, 20.5, 0)
    days = (replace(count, day=DAY - timedelta(days=1), n_articles=80), count)
    return replace(DayFacts(SPAN, usual_days=14.0, days=days), **changes)


def hit(**changes):
    fields = {
        "hit_at": SPAN.since + timedelta(hours=8), "level": 1, "rule": "floods", "source": "daily",
        "title": "Flood", "url": "https://x.example/a", "matched": "Flood", "sentence": "",
        "explanation": "",
    }  # fmt: skip
    return Hit(**(fields | changes))


def test_a_quiet_day_says_so_in_every_section():
    report = make_report(facts(), LATER)
    assert report.lines == (
        "Coverage: no trouble on record.",
        "100 articles of 5 sources (usually 80), median lag 4 min; 700 polls, 20.5 MB.",
    )
    text = render_markdown(report)
    assert text.startswith("# News of Sunday 1 March 2026\n")
    for section in report.sections:
        assert f"## {section.title}\n" in text
        assert section.nothing
        assert section.nothing in text or section.rows


def test_the_worst_comes_first():
    report = make_report(
        facts(
            levels=(LevelCount(1, 2, 2, 1, 0.1),),
            coverage=(Coverage("daily", 9, 7, 0, 0, 1, 1),),
            held=(HeldArticle("daily", "T", "https://x.example/", LATER, "odd"),),
        ),
        LATER,
    )
    assert report.lines[:3] == (
        "2 hits of level 1, at once.",
        "1 listed entry neither stored nor owed.",
        "Coverage: 1 article held back.",
    )


def test_a_day_without_anything_says_so():
    report = make_report(DayFacts(SPAN), LATER)
    assert report.lines[-1] == "Nothing was collected on that day."
    assert "No day before to compare with." in render_markdown(report)


def test_a_day_that_is_not_over_says_so():
    assert "It is not over yet." in make_report(facts(), SPAN.since).zone_words
    assert "not over" not in make_report(facts(), LATER).zone_words


@pytest.mark.parametrize("harm", [HARM, "=1+1", "a|b", "<b>", "\\| \\", "![](https://x.example)"])
def test_hostile_titles_are_only_text_in_markdown(harm):
    text = render_markdown(
        make_report(
            facts(hits=(hit(title=harm, url="javascript:alert(1)"), hit(title=harm))), LATER
        )
    )
    section = text.split("## What matters")[1].split("\n## ")[0]
    rows = [line for line in section.splitlines() if line.startswith("| 1 ")]
    assert len(rows) == 2
    # As many cells as the head has, and no markup that the publisher wrote.
    assert {row.count("|") for row in rows} == {7}
    assert not re.search(r"<(?!https://x\.example/a>)|\]\(<?javascript|\x1b|`|!\[", section)
    assert "(<https://x.example/a>)" in rows[1]
    assert "](" not in rows[0]


def test_an_address_cannot_leave_its_brackets():
    text = render_markdown(
        make_report(facts(hits=(hit(url="https://x.example/a>) <b>|c\\"),)), LATER)
    )
    assert "(<https://x.example/a%3E) %3Cb%3E%7Cc%5C>)" in text


def test_people_see_the_first_rows_and_files_have_all():
    report = make_report(facts(hits=[hit()] * 31), LATER)
    assert len(report.section("hits").rows) == 31
    assert "… and 1 more: `hits.csv`" in render_markdown(report)


def test_every_row_has_a_cell_for_every_column():
    report = make_report(
        facts(
            hits=(hit(),),
            outlets=(OutletCount("daily", "D", 3, 2.0, None, None, 0, 0),),
        ),
        LATER,
    )
    for section in report.sections:
        names = [column.name for column in section.columns]
        assert len(names) == len(set(names))
        assert all(len(row) == len(names) for row in section.rows)
        assert {column.link for column in section.columns} - {""} <= set(names)


def test_a_report_is_plain_json():
    found = json.loads(json.dumps(make_report(facts(hits=(hit(),)), LATER).as_json()))
    assert found["day"] == "2026-03-01"
    assert found["sections"]["hits"][0]["hit_at"] == "2026-03-01T08:00:00+00:00"


def test_a_replay_says_that_it_is_one():
    assert "A replay, 60 times as fast" in render_markdown(make_report(facts(), LATER, 60.0))


@pytest.mark.parametrize(
    ("day", "hours"), [(date(2026, 3, 29), 23), (date(2026, 10, 25), 25), (DAY, 24)]
)
def test_a_day_is_as_long_as_its_zone_makes_it(day, hours):
    span = Span.of(day, "Europe/Berlin", 14)
    assert (span.until - span.since) == timedelta(hours=hours)
