"""Reprints are known for what they are, in four languages, and no two subjects for one."""

import random
from datetime import UTC, datetime, timedelta

import numpy as np
import pytest

from models.likeness import ALIKE, LEAST_RUNS, Likenesses, likeness, sign_text

AT = datetime(2026, 3, 20, 9, 30, tzinfo=UTC)
HOUR = timedelta(hours=1)

WORDS = {
    "en": "harbour council bridge river night mayor school tram market money winter storm train",
    "de": "hafen rat brücke fluss nacht schule straßenbahn markt geld winter sturm zug dächer",
    "ru": "гавань совет мост река ночь мэр школа трамвай рынок деньги зима шторм поезд крыша",
    "zh": "港口议会大桥河流夜晚市长学校电车市场资金冬天风暴火车屋顶居民警方记者报道星期道路",
}


def write(language: str, seed: int, n_sentences: int = 24) -> list[str]:
    """Return the sentences of an invented article."""
    rng = random.Random(seed)
    if language == "zh":
        return ["".join(rng.choices(WORDS["zh"], k=18)) + "。" for _ in range(n_sentences)]
    stems = WORDS[language].split()
    words = [f"{stem}{tail}" for stem in stems for tail in ("", "s", "en", "ов", "er", "у", "ung")]
    return [" ".join(rng.choices(words, k=14)).capitalize() + "." for _ in range(n_sentences)]


def reworded(text: str, share: float) -> str:
    """Return a text with some of its words (or pairs of characters) replaced."""
    rng, unit = random.Random(3), text.split(" ")
    if len(unit) < 20:
        pairs = [text[at : at + 2] for at in range(0, len(text), 2)]
        return "".join("另外" if rng.random() < share else pair for pair in pairs)
    return " ".join("otherwise" if rng.random() < share else word for word in unit)


EDITS = {
    "cut": lambda own, other: " ".join(own[: len(own) * 6 // 10]),
    "another beginning": lambda own, other: " ".join(other[:2] + own[1:]),
    "a frame": lambda own, other: " ".join(other[:2] + own + other[-2:]),
    "another order": lambda own, other: " ".join(own[12:] + own[:12]),
    "reworded": lambda own, other: reworded(" ".join(own), 0.08),
    "all of it": lambda own, other: reworded(" ".join(other[:2] + own[2:19]), 0.04),
}


@pytest.mark.parametrize("language", WORDS)
@pytest.mark.parametrize("edit", EDITS)
def test_a_reprint_is_alike_however_it_was_edited(language, edit):
    own, other = write(language, 1), write(language, 2)
    whole = sign_text("Its own headline", " ".join(own))
    reprint = sign_text("Something else", EDITS[edit](own, other))
    assert likeness(whole, reprint) > ALIKE


@pytest.mark.parametrize("language", WORDS)
def test_texts_of_one_vocabulary_are_not_alike(language):
    signatures = [sign_text("", " ".join(write(language, seed))) for seed in range(30)]
    shares = [likeness(one, two) for one in signatures for two in signatures if one is not two]
    assert max(shares) < ALIKE / 2


def test_the_likeness_is_the_share_of_common_runs():
    one = [f"w{at}" for at in range(401)]
    for kept in (100, 200, 300):
        other = one[: kept + 1] + [f"x{at}" for at in range(400 - kept)]
        share = kept / (800 - kept)
        found = likeness(sign_text("", " ".join(one)), sign_text("", " ".join(other)))
        assert found == pytest.approx(share, abs=0.12)


def test_a_text_that_says_too_little_has_no_signature():
    assert sign_text("Photo", "By our reporter.") is None
    assert sign_text(None, None) is None
    assert sign_text("", " ".join(f"w{at}" for at in range(LEAST_RUNS + 1))) is not None


def test_case_marks_and_width_change_nothing():
    text = "Сне\u0301г идёт в городе и на реке, ｓｎｏｗ falls on the town and on the river today."
    plain = "снег идет в городе и на реке, snow FALLS on the town and on the river today"
    assert likeness(sign_text("", text), sign_text("", plain)) == pytest.approx(1.0)


def add(index, name, text="", title="", at=AT, source="a"):
    return index.add(name, source, title, sign_text(title, text), at)


def test_a_reprint_joins_the_story_of_what_it_is_likest():
    index = Likenesses(48 * HOUR)
    own, other = write("en", 1), write("en", 2)
    first = add(index, "1", " ".join(own))
    assert (first.story_id, first.resembles, first.similarity) == ("1", None, None)
    assert add(index, "2", " ".join(other), source="b").story_id == "2"
    copy = add(index, "3", " ".join(own[:16]), source="c")
    assert (copy.story_id, copy.resembles) == ("1", "1")
    assert copy.similarity > 0.5
    # A copy of the copy tells the story of the first.
    again = add(index, "4", " ".join(own[:12]), source="d")
    assert (again.story_id, again.resembles) == ("1", "3")


def test_the_same_long_headline_is_enough_and_a_short_one_is_not():
    index = Likenesses(48 * HOUR)
    add(index, "1", " ".join(write("en", 1)), "The river breaks its banks")
    add(index, "2", " ".join(write("en", 2)), "Weather")
    found = add(index, "3", " ".join(write("en", 3)), "THE RIVER breaks its banks!")
    assert (found.story_id, found.resembles) == ("1", "1")
    assert found.similarity < ALIKE
    assert add(index, "4", " ".join(write("en", 4)), "Weather").resembles is None
    assert add(index, "5", "", "The river breaks its banks").story_id == "1"


def test_what_was_seen_too_long_ago_is_another_story():
    index = Likenesses(48 * HOUR)
    text = " ".join(write("ru", 1))
    add(index, "1", text, "Река вышла из берегов")
    late = add(index, "2", text, "Река вышла из берегов", at=AT + 49 * HOUR)
    assert (late.story_id, late.resembles) == ("2", None)


def test_an_edit_stays_in_its_story_and_is_not_like_itself():
    index = Likenesses(48 * HOUR)
    own = write("en", 1)
    add(index, "1", " ".join(own))
    edited = add(index, "1", " ".join(own[:-1]))
    assert (edited.story_id, edited.resembles) == ("1", None)
    add(index, "2", " ".join(own))
    rewritten = add(index, "2", " ".join(write("en", 5)))
    assert rewritten.story_id == "1"
    assert len(index) == 2


def test_memory_is_bounded_and_the_newest_stay():
    index = Likenesses(timedelta(days=30), most=3000)
    rng = np.random.default_rng(1)
    names = [str(number) for number in range(9000)]
    for number, name in enumerate(names):
        index.add(name, "a", "", rng.bytes(128), AT + number * timedelta(seconds=1))
    assert len(index) <= 3000
    assert index.n_bytes <= 3000 * 136
    text = " ".join(write("en", 1))
    add(index, "mine", text, at=AT + 3 * HOUR)
    assert add(index, "other", text, at=AT + 3 * HOUR).story_id == "mine"


def test_what_is_out_of_date_makes_room_first():
    index = Likenesses(HOUR, most=100_000)
    rng = np.random.default_rng(1)
    for number in range(4000):
        index.add(str(number), "a", "", rng.bytes(128), AT + number * timedelta(minutes=1))
    assert index.n_bytes <= 1024 * 136
