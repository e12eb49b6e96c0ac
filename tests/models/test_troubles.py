"""What broke, what is late, what was lost: each said once, and gone when it is mended."""

from dataclasses import replace
from datetime import UTC, datetime, timedelta

import pytest

from models.overview import Drift, Hit, LagOfSource, Loss, Notice, Overview, with_targets
from models.records import SourceStatus
from models.troubles import describe_cards, make_cards

NOW = datetime(2026, 3, 5, 12, tzinfo=UTC)
HOUR = timedelta(hours=1)


def status(source, **changes):
    fields = {
        "title": source, "kind": "feed", "state": "active", "reason": "every 5 min",
        "due_at": NOW + HOUR, "consecutive_failures": 0, "last_success_at": NOW - HOUR,
        "last_outcome": "new", "last_reason": "", "last_poll_at": NOW, "n_polls": 1,
        "n_entries": 1, "n_articles": 1, "n_articles_24h": 1, "n_pending": 0, "mean_lag_s": 1.0,
        "median_lag_s": 1.0, "n_possible_losses": 0, "total_bytes": 1,
    }  # fmt: skip
    return SourceStatus(source, **(fields | changes))


def hit(**changes):
    fields = {
        "hit_at": NOW - HOUR, "level": 1, "rule": "floods", "source": "daily", "title": "Flood",
        "url": "https://x.example/", "matched": "Flood", "sentence": "", "explanation": "",
    }  # fmt: skip
    return Hit(**(fields | changes))


def notice(**changes):
    fields = {
        "notice_id": "n", "kind": "hit", "subject": "Flood in town", "source": "daily", "level": 1,
        "channel": "mail", "raised_at": NOW - HOUR, "sent_at": NOW - HOUR, "closed_at": None,
        "error": None,
    }  # fmt: skip
    return Notice(**(fields | changes))


def drift(**changes):
    fields = {"standing": "text", "since_at": NOW - HOUR, "reason": "it consists of links"}
    return Drift("tide", **(fields | changes))


def cards(broken=(), late=(), **about):
    overview = Overview(now=NOW, **about)
    return {card.name: card.troubles for card in make_cards(overview, broken, late)}


def test_all_is_well_where_nothing_is_wrong():
    found = make_cards(Overview(now=NOW), (), ())
    assert describe_cards(found, 12) == "All 12 sources are well"


def test_sources_that_were_not_read_last_time_do_not_pass_for_well():
    found = make_cards(Overview(now=NOW), (), ())
    assert describe_cards(found, 12, 2) == "2 of 12 sources could not be read last time"


def test_a_failing_source_is_broken_since_its_last_good_poll():
    (trouble,) = cards([status("daily", state="failing", last_reason="HTTP 503")])["broken"]
    assert (trouble.source, trouble.words) == ("daily", "failing: HTTP 503")
    assert trouble.since == NOW - HOUR


@pytest.mark.parametrize(
    ("standing", "words", "command"),
    [
        ("text", "drifted, the text is wrong: it consists of links", "newsbeat reextract tide"),
        ("layout", "drifted, the layout changed: it consists of links", "newsbeat accept tide"),
    ],
)
def test_a_drifted_source_is_named_once_with_what_changed_and_the_way_out(standing, words, command):
    found = cards([status("tide", state="drifted")], drifts=(drift(standing=standing),))
    (trouble,) = found["broken"]
    assert (trouble.words, trouble.command) == (words, command)
    assert trouble.since == NOW - HOUR


def test_a_drifted_source_that_fails_is_both():
    found = cards([status("tide", state="failing")], drifts=(drift(),))
    assert len(found["broken"]) == 2


@pytest.mark.parametrize(
    ("about", "n"),
    [
        ({"closed_at": None}, 1),
        ({"closed_at": NOW}, 0),
        ({"closed_at": None, "source": "failing"}, 0),
    ],
    ids=["open", "closed", "said already"],
)
def test_an_open_notice_is_trouble_until_it_is_closed(about, n):
    found = cards([status("failing", state="failing")], notices=(notice(kind="silence", **about),))
    assert len(found["broken"]) == 1 + n


def test_notices_that_cannot_be_sent_are_trouble_of_their_channel():
    unsent = notice(sent_at=None, error="no answer")
    (trouble,) = cards(notices=(unsent, replace(unsent, notice_id="m")))["broken"]
    assert trouble.words == "2 notices could not be sent to mail: no answer"


def test_a_hit_at_once_is_shown_once_for_all_channels_until_it_is_closed():
    both = (notice(), notice(notice_id="m", channel="chat"))
    assert len(cards(notices=both)["urgent"]) == 1
    closed = tuple(replace(each, closed_at=NOW) for each in both)
    assert cards(notices=closed, hits=(hit(),))["urgent"] == ()


def test_without_notices_hits_at_once_of_the_last_day_are_shown_once_each():
    hits = (hit(), hit(source="other"), hit(title="B", level=2), hit(hit_at=NOW - 30 * HOUR))
    (trouble,) = cards(hits=hits)["urgent"]
    assert trouble.words == "Flood (floods)"


def test_an_overdue_poll_is_late():
    (trouble,) = cards(late=[status("moor", due_at=NOW - HOUR)])["late"]
    assert trouble.words == "its poll is overdue by 1 h"


def test_a_lag_over_its_target_is_late_and_one_without_target_is_not():
    lags = [LagOfSource("slow", 9, 60.0, 90.0, 900.0), LagOfSource("free", 9, 60.0, 90.0, 9000.0)]
    known = with_targets(lags, {"slow": 300.0})
    (trouble,) = cards(lags=known)["late"]
    assert trouble.words == "articles come 15 min late, wanted 5 min"
    assert [lag.source for lag in known] == ["slow", "free"]


def test_a_possible_loss_is_news_for_a_day():
    loss = Loss("quay", NOW - HOUR, NOW - 4 * HOUR, 30, 30)
    (trouble,) = cards(losses=(loss, replace(loss, started_at=NOW - 25 * HOUR)))["lost"]
    assert "all 30 entries listed were new, 3 h after" in trouble.words
