"""What a day has more of than the days before."""

from datetime import UTC, datetime

import pytest

from models.novelty import Title, find_new_words, find_spike

AT = datetime(2026, 3, 1, 8, tzinfo=UTC)


@pytest.mark.parametrize(
    ("count", "usual", "before", "is_spike"),
    [
        (40, 4.0, 5.0, True),
        (40, 38.0, 5.0, False),
        (40, 4.0, 38.0, False),
        (4, 0.0, 0.0, False),
        (9, 0.0, 0.0, True),
        (7, 5.0, 5.0, False),
    ],
    ids=["far more", "always busy then", "busy day", "too few", "where nothing was", "chance"],
)
def test_a_spike_is_more_than_both_baselines(count, usual, before, is_spike):
    assert (find_spike("daily", AT, count, usual, before) is not None) == is_spike


def titles(language, of_day, before=()):
    return [
        *(Title(text, f"s{at}", language, True) for at, text in enumerate(of_day)),
        *(Title(text, f"s{at}", language, False) for at, text in enumerate(before)),
    ]


USUAL = {
    "en": ["The council talks", "The mayor speaks", "The match ends"] * 20,
    "ru": ["Совет обсуждает бюджет", "Мэр выступил", "Матч окончен"] * 20,
    "zh": ["市议会讨论预算", "市长讲话", "比赛结束"] * 20,
}


@pytest.mark.parametrize(
    ("language", "of_day", "word"),
    [
        ("en", ["Flood hits town", "Floods reach the port", "Flooding in the north"], "flood"),
        ("ru", ["Паводок пришёл", "Ущерб от паводка", "Готовы к паводку"], "паводок"),
        ("zh", ["洪水袭击港口", "洪水来袭", "北方洪水"], "洪水"),
    ],
)
def test_a_word_of_the_day_is_found_in_all_its_forms(language, of_day, word):
    found = find_new_words(titles(language, of_day, USUAL[language]))
    assert found[0].n_headlines == 3
    assert found[0].word.startswith(word[:4])
    assert found[0].example in of_day


def test_what_is_said_every_day_is_not_new():
    of_day = ["The council talks", "The mayor speaks", "The match ends"] * 2
    assert find_new_words(titles("en", of_day, USUAL["en"])) == []


def test_what_one_source_repeats_is_not_news():
    ones = [Title("Flood hits town", "one", "en", True)] * 9
    assert find_new_words([*ones, *titles("en", [], USUAL["en"])]) == []


def test_numbers_and_short_words_are_not_counted():
    assert find_new_words(titles("en", ["2026 is it"] * 5, USUAL["en"])) == []
