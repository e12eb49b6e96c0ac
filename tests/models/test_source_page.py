"""The page of a source in Prefect: what it says, and that publishers' words stay words."""

from dataclasses import replace
from datetime import UTC, datetime, timedelta

import pytest

from models.records import RecentPoll, Schedule, Source
from models.source_page import (
    Headline,
    SourcePage,
    describe_standing,
    last_headlines,
    render_source_page,
)

NOW = datetime(2026, 3, 5, 12, tzinfo=UTC)
SOURCE = Source("harbour", "The Harbour | Courier", "https://harbour.example/feed.xml", "feed")
SCHEDULE = Schedule(
    source="harbour",
    cycle=7,
    due_at=NOW + timedelta(minutes=4),
    reason="next in 4 min: every 5 min",
)
POLL = RecentPoll(
    poll_id="harbour#6",
    started_at=NOW - timedelta(minutes=1),
    finished_at=NOW - timedelta(seconds=58),
    outcome="new",
    http_status=200,
    reason="",
    entries_listed=40,
    entries_new=2,
    articles_stored=2,
    possible_loss=False,
    index_bytes=3000,
    article_bytes=1500,
    mean_lag_s=150.0,
    next_due_at=NOW + timedelta(minutes=4),
    next_reason="next in 4 min: every 5 min",
)
EMPTY = replace(
    POLL, outcome="not_modified", http_status=304, entries_new=0, articles_stored=0, mean_lag_s=None
)
PAGE = SourcePage(SOURCE, SCHEDULE, (POLL, EMPTY), NOW)
FAILING = replace(
    PAGE,
    schedule=replace(
        SCHEDULE, state="failing", consecutive_failures=3, last_success_at=NOW - timedelta(hours=2)
    ),
    polls=(replace(EMPTY, outcome="failed", http_status=503, reason="HTTP 503"), POLL),
)


def test_a_page_says_state_next_poll_lag_and_traffic():
    text = render_source_page(PAGE)
    assert "- **State** well" in text
    assert "- **Next poll** 2026-03-05 12:04:00 UTC (next in 4 min: every 5 min)" in text
    assert "- **Publication lag** 2.5 min on average over these polls" in text
    assert "- **Traffic** 0.01 MB in 2 polls, 1 of them with nothing new" in text
    assert "| 03-05 11:59:00 | new | 40 | 2 | 2 | 4.5 | 2.0 s |  |" in text
    assert "not_modified 304" in text


def test_a_failing_source_says_since_when_and_why():
    text = render_source_page(FAILING)
    assert "**failing** (3 failures in a row, last good poll 2026-03-05 10:00:00 UTC)" in text
    assert "failed 503" in text
    assert describe_standing(FAILING) == "failing: HTTP 503; next in 4 min: every 5 min"


def test_a_standing_is_one_line():
    assert describe_standing(PAGE) == "well; lag 2.5 min; next in 4 min: every 5 min"
    assert describe_standing(replace(PAGE, polls=(EMPTY,))) == "well; next in 4 min: every 5 min"


def test_headlines_are_links_and_never_markup():
    headlines = (
        Headline("Ferry [late](https://evil.example)", "https://harbour.example/a>b", NOW),
        Headline("", "javascript:alert(1)", None),
    )
    text = render_source_page(replace(PAGE, headlines=headlines))
    assert (
        "- 03-05 12:00 [Ferry &#91;late&#93;(https://evil.example)](<https://harbour.example/a%3Eb>)"
        in text
    )
    assert "- undated (no title)" in text
    assert "javascript" not in text


def test_a_table_survives_a_title_with_a_bar():
    assert "# The Harbour &#124; Courier" in render_source_page(PAGE)


def test_a_replay_says_that_its_times_are_recorded():
    assert "60 times as fast" in render_source_page(replace(PAGE, speed=60.0))
    assert "times as fast" not in render_source_page(PAGE)


def test_a_page_leads_to_the_deployment():
    path = "/deployments/deployment/1"
    assert f"]({path})" in render_source_page(replace(PAGE, deployment_path=path))
    assert "deployment" not in render_source_page(PAGE)


def test_the_newest_headlines_are_kept_and_undated_ones_come_last():
    def headline(hours: int | None) -> Headline:
        at = None if hours is None else NOW - timedelta(hours=hours)
        return Headline(f"{hours}", "https://harbour.example/", at)

    found = last_headlines([headline(3), headline(None), headline(1), headline(2)], limit=3)
    assert [item.title for item in found] == ["1", "2", "3"]
    assert last_headlines([headline(None), headline(5)])[-1].published_at is None


@pytest.mark.report("jocmp/capyreader#1677")
def test_a_day_without_a_time_is_not_buried_under_the_times_of_that_day():
    day = datetime(2026, 3, 5, tzinfo=UTC)
    seen_last, seen_first = (Headline(name, "", day, "day") for name in ("late", "early"))
    timed = Headline("timed", "", day + timedelta(hours=9), "instant")
    before = Headline("before", "", day - timedelta(hours=1), "instant")
    order = last_headlines([seen_last, timed, seen_first, before, Headline("undated", "", None)])
    assert [headline.title for headline in order] == ["late", "early", "timed", "before", "undated"]
