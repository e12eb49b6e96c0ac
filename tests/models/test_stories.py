"""Who told it first: like headlines are one story, unlike ones are not."""

import time
from datetime import UTC, datetime, timedelta

import pytest

from models.stories import Headline, group_stories, rank_movers

START = datetime(2026, 3, 1, 8, tzinfo=UTC)


def told(*titles, minutes=10):
    return [
        Headline(f"s{at}", title, START + timedelta(minutes=at * minutes))
        for at, title in enumerate(titles)
    ]


@pytest.mark.parametrize(
    "titles",
    [
        ("Storm flood closes the old harbour bridge", "Old harbour bridge closed: storm flood"),
        ("Паводок закрыл старый мост в гавани", "В гавани паводок закрыл старый мост: подробности"),
        ("港口大桥因风暴关闭", "因风暴港口大桥关闭至周五"),
        ("Sturmflut: Hafenbrücke bis Freitag gesperrt", "Hafenbrücke bis Freitag gesperrt"),
        ("ПАВОДОК ЗАКРЫЛ СТАРЫЙ МОСТ", "Паводок закрыл старый мост"),
    ],
)
def test_like_headlines_are_one_story(titles):
    (story,) = group_stories(told(*titles))
    assert story.sources == ["s0", "s1"]
    assert story.lead_s == 600.0


@pytest.mark.parametrize(
    "titles",
    [
        ("Storm flood closes the old harbour bridge", "Council votes on the new harbour budget"),
        ("Morning news", "Morning news of the town hall and its surroundings"),
        ("Weather", "Weather"),
        ("", ""),
        ("🜁🜁🜁", "🜁🜁🜁"),
    ],
    ids=["unlike", "one much longer", "one word", "nothing", "no letters"],
)
def test_unlike_or_short_headlines_are_not(titles):
    assert len(group_stories(told(*titles))) == 2


def test_the_earliest_is_first_in_whatever_order_they_come():
    headlines = told(*["Storm flood closes the old harbour bridge"] * 4)
    (story,) = group_stories(reversed(headlines))
    assert story.first.source == "s0"


def test_the_same_words_days_later_are_another_story():
    title = "Storm flood closes the old harbour bridge"
    stories = group_stories(told(title, title, minutes=3 * 24 * 60))
    assert len(stories) == 2


def test_a_source_that_repeats_itself_is_not_second():
    title = "Storm flood closes the old harbour bridge"
    headlines = [Headline("a", title, START), Headline("a", title, START + timedelta(hours=1))]
    (story,) = group_stories(headlines)
    assert story.lead_s is None
    assert rank_movers([story]) == []


def test_movers_are_ranked_by_how_often_they_were_first():
    one = told("Storm flood closes the old harbour bridge", "Storm flood closes harbour bridge")
    two = told("Ferry strike ends after nine long days", "Ferry strike ends after nine days")
    movers = rank_movers(group_stories([*one, *two]))
    assert [(mover.source, mover.n_first, mover.n_shared) for mover in movers] == [
        ("s0", 2, 2),
        ("s1", 0, 2),
    ]


def test_a_day_of_many_headlines_is_grouped_in_seconds():
    titles = [
        f"Word{n % 997} of place{n % 313} meets item{n % 211} about {n % 89}" for n in range(20_000)
    ]
    began = time.process_time()
    group_stories(told(*titles, minutes=0.05))
    assert time.process_time() - began < 15.0
