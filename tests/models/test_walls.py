"""Walls and stories in ten languages: the words are in tests/samples/walls.toml."""

import tomllib
from pathlib import Path

import pytest

from models.walls import Said, find_invitation, find_wall

WORDS = tomllib.loads(
    (Path(__file__).parents[1] / "samples" / "walls.toml").read_text(encoding="utf-8")
)
WALLS = ("consent", "captcha", "javascript", "login", "blocked")


@pytest.mark.parametrize("kind", WALLS)
@pytest.mark.parametrize("language", WORDS)
def test_a_page_that_says_only_what_walls_say_is_one(language: str, kind: str) -> None:
    said = WORDS[language][kind]
    assert find_wall(Said("News", said)) is not None
    assert find_wall(Said("News", None, whole=f"News {said}")) is not None


@pytest.mark.parametrize("language", WORDS)
def test_a_story_with_a_banner_is_no_wall(language: str) -> None:
    words = WORDS[language]
    text = "\n".join([words["banner"], *words["paragraphs"]])
    assert find_wall(Said(words["title"], text)) is None


@pytest.mark.parametrize("language", WORDS)
def test_a_story_of_one_paragraph_is_none_either(language: str) -> None:
    words = WORDS[language]
    text = f"{words['paragraphs'][0]} {words['paragraphs'][1]}\n{words['banner']}"
    assert find_wall(Said(words["title"], text)) is None


@pytest.mark.parametrize("language", WORDS)
def test_a_teaser_before_a_paywall_is_one(language: str) -> None:
    words = WORDS[language]
    teaser = "\n".join(words["paragraphs"][:2])
    assert find_wall(Said(words["title"], teaser, after=words["paywall"])) is not None
    assert find_wall(Said(words["title"], f"{teaser}\n{words['paywall']}")) is not None


@pytest.mark.parametrize("language", WORDS)
def test_a_whole_story_before_an_offer_is_none(language: str) -> None:
    words = WORDS[language]
    said = Said(words["title"], "\n".join(words["paragraphs"]), after=words["paywall"])
    assert find_wall(said) is None
    assert find_invitation(said) is not None


@pytest.mark.parametrize("language", WORDS)
def test_a_short_story_is_none_where_nobody_asks_to_pay(language: str) -> None:
    words = WORDS[language]
    assert find_wall(Said(words["title"], "\n".join(words["paragraphs"][:2]))) is None


def test_a_teaser_that_only_search_engines_are_told_of_is_a_wall() -> None:
    words = WORDS["en"]
    teaser = "\n".join(words["paragraphs"][:2])
    assert find_wall(Said(words["title"], teaser, is_unpaid=True)) == "not accessible for free"
    whole = "\n".join(words["paragraphs"])
    assert find_wall(Said(words["title"], whole, is_unpaid=True)) is None


def test_a_consent_page_that_prints_all_its_purposes_is_a_wall() -> None:
    lines = [
        "We and our 230 partners store information on your device to show you news for free.",
        *(
            f"Purpose {n}: partners may use cookies on your device to measure advertising."
            for n in range(40)
        ),
    ]
    assert find_wall(Said("Your choice", "\n".join(lines))) is not None


def test_an_article_about_cookies_is_none() -> None:
    text = (
        "The court ruled that a button to accept all cookies must stand beside one to refuse.\n"
        "For the publisher that means a redesign of forty sites before the end of the year, its "
        "lawyer said after the hearing, and he expects that others will have to follow soon.\n"
        "The association that had sued called the ruling a relief for everybody who had been "
        "looking for the second button since the law came into force six years ago."
    )
    assert find_wall(Said("Court rules on buttons", text)) is None
