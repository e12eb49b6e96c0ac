from __future__ import annotations

import re
import tomllib
from importlib.resources import files

import pytest

from models.invented import Phrasebook, invent_article, invent_title, parse_phrasebook

LANGUAGES = ["de", "en", "ru", "zh"]


def read(language: str) -> Phrasebook:
    text = (files("data") / "sample" / "phrases" / f"{language}.toml").read_text(encoding="utf-8")
    return parse_phrasebook(language, tomllib.loads(text))


@pytest.mark.parametrize("language", LANGUAGES)
def test_every_article_is_whole_and_its_own(language: str) -> None:
    phrasebook = read(language)
    articles = [invent_article(phrasebook, seed) for seed in range(400)]
    assert len({article.text for article in articles}) == 400
    for article in articles:
        assert 3 <= len(article.paragraphs) <= 12
        assert len(article.text) > (200 if language == "zh" else 400)
        assert not re.search(r"[{}]", article.text + article.title)
        assert len(set(article.paragraphs)) == len(article.paragraphs)


@pytest.mark.parametrize("language", LANGUAGES)
def test_the_same_seed_writes_the_same_article(language: str) -> None:
    phrasebook = read(language)
    assert invent_article(phrasebook, 5) == invent_article(phrasebook, 5)
    assert invent_article(phrasebook, 5) != invent_article(phrasebook, 6)


@pytest.mark.parametrize("language", LANGUAGES)
def test_a_title_alone_is_the_articles_title(language: str) -> None:
    phrasebook = read(language)
    for seed in range(50):
        assert invent_title(phrasebook, seed) == invent_article(phrasebook, seed).title


def test_topics_narrow_what_is_written_about() -> None:
    phrasebook = read("en")
    race = next(story for story in phrasebook.stories if story.topic == "race")
    openings = {re.split(r"\{", title)[0] for title in race.titles}
    for seed in range(50):
        title = invent_title(phrasebook, seed, ("race",))
        assert any(title.startswith(opening) for opening in openings)


@pytest.mark.parametrize("language", LANGUAGES)
def test_every_slot_has_words(language: str) -> None:
    phrasebook = read(language)
    sentences = [*phrasebook.common]
    for story in phrasebook.stories:
        sentences += [*story.titles, *story.sentences]
    slots = {slot for sentence in sentences for slot in re.findall(r"\{(\w+)\}", sentence)}
    assert slots <= {*phrasebook.names, "n", "big", "hour"}
    assert len(phrasebook.sections) == 5
