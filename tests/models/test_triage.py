"""The matcher: what rules find, where, and how they say why."""

import random
import time
import tomllib
import unicodedata
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from models.errors import ConfigError
from models.triage.folding import fold, folded_text
from models.triage.ladder import Raising
from models.triage.matcher import Matcher, Passage
from models.triage.rules import Rule, Scope, Term, read_rule
from models.triage.scope import Burst, Origin, raise_levels


def rule_of(**table):
    return read_rule({"rule": "r", "level": 3} | table, lambda key: f"rules.toml:{key}")


def matched(text, title=None, origin=None, **table):
    """Return the words one rule finds."""
    passage = Passage.of(title, text) if title is not None else Passage.of_file(text)
    found = Matcher([rule_of(**table)]).match(passage, origin)
    return [place.matched for match in found for place in match.places]


FOUND = {
    "word": ({"any": ["dam"]}, "The Dam broke", ["Dam"]),
    "word has borders": ({"any": ["dam"]}, "Madame and damage", []),
    "digits are of the word": ({"any": ["covid"]}, "covid19 and covid-19", ["covid"]),
    "star ends a word": ({"any": ["япон*"]}, "Японская компания", ["Японская"]),
    "star begins a word": ({"any": ["*quake"]}, "An earthquake, quakes", ["earthquake"]),
    "substring": ({"any": ["газ"], "mode": "substring"}, "магазин", ["газ"]),
    "a sign": ({"any": ["⚡"], "mode": "substring"}, "⚡Срочно", ["⚡"]),
    "phrase over lines": (
        {"any": ["oil spill"], "mode": "phrase"},
        "oil \n spill",
        ["oil \n spill"],
    ),
    "phrase wants its order": ({"any": ["oil spill"], "mode": "phrase"}, "spill oil", []),
    "lemma ru": ({"any": ["наводнение"], "mode": "lemma"}, "после наводнений", ["наводнений"]),
    "lemma of several words": (
        {"any": ["взрыв газа"], "mode": "lemma"},
        "о взрывах газа и взрыве, газе",
        ["взрывах газа"],
    ),
    "lemma en": (
        {"any": ["strike"], "mode": "lemma"},
        "It struck; striking; strikes",
        ["struck", "striking", "strikes"],
    ),
    "lemma de": (
        {"any": ["Brand"], "mode": "lemma", "languages": ["de"]},
        "Zwei Brände",
        ["Brände"],
    ),
    "lemma zh is a phrase": ({"any": ["洪水"], "mode": "lemma"}, "遭遇洪水灾害", ["洪水"]),
    "case": ({"any": ["US"], "case": True}, "tell us of the US", ["US"]),
    "regex": (
        {"any": [r"\bБПЛА\w*"], "mode": "regex"},
        "бпла, анти-БПЛАшный",
        ["бпла", "БПЛАшный"],
    ),
    "regex with case": (
        {"any": ["[A-Z]{3}-[0-9]+"], "mode": "regex", "case": True},
        "abc-1 ABC-22",
        ["ABC-22"],
    ),
    "regex over an odd letter": (
        {"any": ["[A-Z]{3}"], "mode": "regex", "case": True},
        "Straße ﬁn ABC",
        ["ABC"],
    ),
    "all": ({"all": ["dam", ["burst", "break"]]}, "the dam will break", ["dam", "break"]),
    "all but one": ({"all": ["dam", "burst"]}, "the dam holds", []),
    "none": ({"any": ["dam"], "none": ["drill"]}, "a dam drill", []),
    "near": ({"all": ["a1", "b1"], "near": 2}, "a1 x b1", ["a1", "b1"]),
    "not near": ({"all": ["a1", "b1"], "near": 2}, "a1 x y b1", []),
    "near takes the closest": (
        {"all": ["a1", "b1"], "near": 3},
        "a1 x x x x x A1 b1",
        ["A1", "b1"],
    ),
    "except": ({"any": ["中华"], "except": ["中华路"]}, "中华路与中华", ["中华"]),
    "look-alikes are asked for": ({"any": ["теракт"], "lookalikes": True}, "тepaкт", ["тepaкт"]),
    "and not found else": ({"any": ["теракт"]}, "тepaкт", []),
    "look-alike forms": (
        {"any": ["взрыв"], "mode": "lemma", "lookalikes": True},
        "о взpывe",
        ["взpывe"],
    ),
    "longest is told": (
        {"any": ["газ", "газ сжиженный"], "mode": "phrase"},
        "газ сжиженный",
        ["газ сжиженный"],
    ),
}


@pytest.mark.parametrize("name", FOUND)
def test_a_rule_finds(name):
    table, text, expected = FOUND[name]
    assert matched(text, **table) == expected


# The bug log's rows on keywords, by number


@pytest.mark.report("diwenne/openreply#16")
def test_124_letters_of_every_script_survive():
    text = "হ্যালো বন্যা, فيضان, 洪水, पानी"
    for word in ("বন্যা", "فيضان", "洪水", "पानी"):
        assert matched(text, any=[word]) == [word]


@pytest.mark.report("snowballstem/snowball#65")
def test_125_yo_and_ye_are_one_letter_in_every_form():
    for term in ("мёд", "мед"):
        assert matched("мёдом, меда", any=[term], mode="lemma") == ["мёдом", "меда"]


@pytest.mark.report("imotov/elasticsearch-analysis-morphology#39")
def test_127_an_adjective_is_no_form_of_its_noun_but_a_star_finds_both():
    assert matched("японский посол", any=["Япония"], mode="lemma") == []
    assert matched("японский, Японии", any=["япон*"]) == ["японский", "Японии"]


@pytest.mark.report("imotov/elasticsearch-analysis-morphology#44")
def test_128_the_exact_form_outranks_and_ambiguity_is_told():
    (match,) = Matcher([rule_of(any=["сталь"], mode="lemma")]).match(
        Passage.of_file("цены стали выше, сталь дороже")
    )
    first, second = match.places
    assert "it may also be a form of стать (98%)" in first.why
    assert second.why == 'the word "сталь" as written'
    text = "цены стали выше, сталь дороже"
    assert matched(text, any=["сталь"], mode="lemma", unambiguous=True) == ["сталь"]


@pytest.mark.report("imotov/elasticsearch-analysis-morphology#44")
def test_128_a_noun_is_not_taken_for_the_verb_it_looks_like():
    assert matched("спортсмен метал диск", any=["металл"], mode="lemma") == []


@pytest.mark.report("NVIDIA/garak#1867")
@pytest.mark.parametrize(
    "spelling",
    ["ａｔｔａｃｋ", "att\u200dack", "at\u00adtack", "\ufeffattack", "ATTACK", "att\u2060ack"],
)
def test_129_full_width_and_invisible_marks_hide_nothing(spelling):
    found = Matcher([rule_of(any=["attack"])]).match(Passage.of_file(f"an {spelling} on us"))
    place = found[0].first
    assert folded_text(place.matched) == "attack"
    assert f"an {spelling} on us"[place.start : place.end].strip("\ufeff") == spelling.strip(
        "\ufeff"
    )


@pytest.mark.report("luckyPipewrench/pipelock#89")
def test_130_look_alikes_are_a_pass_of_their_own_and_told():
    (match,) = Matcher([rule_of(any=["apple"], lookalikes=True)]).match(
        Passage.of_file("Buy аpple now")
    )
    assert match.first.why == '"аpple" is "apple" written with look-alike letters of another script'
    assert matched("сор на полу", any=["cop"], lookalikes=True) == []


@pytest.mark.report("wangfenjin/simple#49")
def test_132_chinese_is_matched_contiguously():
    assert matched("国家的国歌", any=["国国"], mode="phrase") == []
    assert matched("中华国歌奏响", any=["国歌"], mode="phrase") == ["国歌"]


# Places


@pytest.mark.parametrize(
    "text",
    [
        "до\u0301ма … взры\u00adв\u200b  и\u0306од № 5 ﬁnal взрыв",
        "Ⅻ взры\u0301в\n\n\nвзрыв",
        "straße взрыв ＦＵＬＬ взрыв",
    ],
)
def test_places_are_those_of_the_original(text):
    found = Matcher([rule_of(any=["взрыв"])]).match(Passage.of_file(text))
    for place in found[0].places:
        assert place.matched == text[place.start : place.end]
        assert folded_text(place.matched) == "взрыв"


@given(st.text(max_size=60), st.text(max_size=60))
def test_a_word_is_found_wherever_it_stands(before, after):
    text = f"{before} паводок {after}"
    passage = Passage.of(None, text)
    found = Matcher([rule_of(any=["паводок"])]).match(passage)
    place = next(place for match in found for place in match.places)
    assert folded_text(place.matched) == "паводок"
    assert passage.text[place.start : place.end] == place.matched


@given(st.text(max_size=80))
def test_every_folded_character_has_a_place(text):
    folded = fold(text)
    for at in range(len(folded.text)):
        start, end = folded.span(at, at + 1)
        assert 0 <= start < end <= len(text)


def test_composed_and_decomposed_letters_are_alike():
    text = unicodedata.normalize("NFD", "Большой йод")
    assert matched(text, any=["йод"]) == [unicodedata.normalize("NFD", "йод")]


def test_where_tells_the_title_from_the_text():
    assert matched("dam", title="dam", any=["dam"], where="title") == ["dam"]
    (match,) = Matcher([rule_of(any=["dam"], where="text")]).match(Passage.of("dam", "the dam"))
    assert [place.start for place in match.places] == [8]


# Many rules


def test_many_rules_cost_little_more_than_few():
    words = [f"word{number}" for number in range(5000)]
    few, many = (
        Matcher(Rule(word, 3, any=(Term(word, "word"),)) for word in words[:n]) for n in (10, 5000)
    )
    text = Passage.of_file("nothing of all this is in here " * 50)

    def cost(matcher):
        began = time.process_time()
        for _ in range(50):
            matcher.match(text)
        return time.process_time() - began

    cost(few), cost(many)
    assert cost(many) < 5 * cost(few)


def test_all_rules_agree_with_a_plain_loop():
    rng = random.Random(3)
    letters = "абв "
    words = ["".join(rng.choices("абв", k=rng.randint(2, 4))) for _ in range(60)]
    matcher = Matcher(Rule(f"{at}", 3, any=(Term(word, "word"),)) for at, word in enumerate(words))
    for _ in range(100):
        text = "".join(rng.choices(letters, k=60))
        found = {match.rule.rule for match in matcher.match(Passage.of(None, text))}
        assert found == {f"{at}" for at, word in enumerate(words) if word in text.split()}


def test_a_pattern_that_explodes_elsewhere_takes_no_time():
    began = time.process_time()
    assert matched("a" * 5000 + "!", any=["(a+)+b"], mode="regex") == []
    assert time.process_time() - began < 1.0


def test_a_place_is_given_its_sentence():
    text = "Quiet at night. At No. 5 Mill Lane a dam broke! Nobody was hurt."
    (match,) = Matcher([rule_of(any=["dam"])]).match(Passage.of_file(text))
    assert match.sentence == "At No. 5 Mill Lane a dam broke!"


def test_a_match_says_all_it_needed():
    (match,) = Matcher([rule_of(all=["dam", "burst"], none=["drill"], near=5)]).match(
        Passage.of_file("The dam has burst")
    )
    assert match.why == (
        "all 2 things the rule wants are there, within 2 words (5 allowed), nothing it excludes is"
    )
    assert match.as_json()[0] == {
        "rule": "r",
        "level": 3,
        "matched": "dam",
        "start": 4,
        "end": 7,
        "mode": "word",
        "sentence": "The dam has burst",
        "why": f'the word "dam" as written; {match.why}',
    }


# Wrong rules

WRONG = {
    "no name": ({"rule": ""}, "rule", "needs a name"),
    "level": ({"level": 9}, "level", "whole number from 1 to 5"),
    "unknown key": ({"anny": ["x"]}, "anny", "did you mean any"),
    "nothing to look for": ({"none": ["x"]}, "any", "needs something to look for"),
    "mode": ({"any": ["x"], "mode": "fuzzy"}, "mode", "one of word, lemma"),
    "empty term": ({"any": ["\u200b"]}, "any", "1 to 500 characters"),
    "marks only": ({"any": ["!!!"]}, "any", "letter or digit"),
    "look-behind": ({"any": ["(?<=a)b"], "mode": "regex"}, "any", "can explode"),
    "back reference": ({"any": [r"(a)\1"], "mode": "regex"}, "any", "can explode"),
    "huge pattern": ({"any": ["((a{100}){100}){100}"], "mode": "regex"}, "any", "memory"),
    "empty match": ({"any": ["a*"], "mode": "regex"}, "any", "empty text"),
    "one letter": ({"any": ["a"], "mode": "substring"}, "any", "everywhere"),
    "near alone": ({"any": ["a"], "near": 3}, "near", "two things"),
    "reach": ({"any": ["a"], "reach": ["global"]}, "reach", "wide, local, trade"),
    "forms unknown": ({"any": ["вибух"], "mode": "lemma", "languages": ["uk"]}, "any", "no forms"),
}  # fmt: skip


@pytest.mark.parametrize("name", WRONG)
def test_a_wrong_rule_names_place_and_remedy(name):
    table, key, words = WRONG[name]
    with pytest.raises(ConfigError) as raised:
        rule_of(**table)
    assert raised.value.file == f"rules.toml:{key}"
    assert words in str(raised.value)


# Scope and level


@pytest.mark.parametrize(
    ("scope", "holds"),
    [
        (Scope(), True),
        (Scope(sources=("harbour",)), True),
        (Scope(sources=("other",)), False),
        (Scope(tags=("world", "port")), True),
        (Scope(tags=("sport",)), False),
        (Scope(languages=("en",)), True),
        (Scope(languages=("ru",)), False),
        (Scope(countries=("FR",)), False),
        (Scope(reach=("trade",)), False),
    ],
)
def test_a_rule_holds_in_its_scope_alone(scope, holds):
    origin = Origin("harbour", ("port",), "en-GB", "GB", "local", 1.0)
    rule = Rule("r", 3, any=(Term("dam", "word"),), scope=scope)
    assert bool(Matcher([rule]).match(Passage.of("dam", ""), origin)) is holds


def levels(rules, weight=1.0, bursts=None):
    matches = Matcher(rules).match(Passage.of("dam", "burst flood"))
    raised = raise_levels(matches, weight, bursts or {}, Raising())
    return {match.rule.rule: match.level for match in raised}


def some_rule(name, word, level=4, raise_to=2):
    return Rule(name, level, any=(Term(word, "word"),), raise_to=raise_to)


def test_an_important_source_raises_by_one_level():
    assert levels([some_rule("a", "dam")], weight=3.0) == {"a": 3}
    assert levels([some_rule("a", "dam")], weight=2.9) == {"a": 4}


def test_rules_that_hit_together_raise_one_another():
    rules = [some_rule(word, word) for word in ("dam", "burst", "flood")]
    assert set(levels(rules).values()) == {3}


def test_a_burst_of_hits_raises_and_says_what_is_usual():
    matches = Matcher([some_rule("a", "dam")]).match(Passage.of("dam", ""))
    (match,) = raise_levels(matches, 1.0, {"a": Burst(12, (1, 0, 2, 1))}, Raising())
    assert match.level == 3
    assert match.why == (
        "raised from level 4 to 3: 12 hits in the last hour, where 1.0 are usual at this hour"
    )


def test_nothing_is_raised_past_what_its_rule_allows():
    burst = {"a": Burst(50, (0,) * 14)}
    assert levels([some_rule("a", "dam", 3)], weight=9.0, bursts=burst) == {"a": 2}
    assert levels([some_rule("a", "dam", 3, raise_to=1)], weight=9.0, bursts=burst) == {"a": 1}
    assert levels([some_rule("a", "dam", 3, raise_to=5)], weight=9.0, bursts=burst) == {"a": 3}


FORMS = tomllib.loads(
    (Path(__file__).parents[2] / "benchmarks" / "parts" / "inflections.toml").read_text("utf-8")
)


@pytest.mark.parametrize(
    ("word", "forms"),
    [(word, line.split()) for table in FORMS.values() for word, line in table.items()],
    ids=[word for table in FORMS.values() for word in table],
)
def test_every_form_of_a_table_written_by_hand_is_found(word, forms):
    matcher = Matcher([rule_of(any=[word], mode="lemma")])
    missed = [form for form in forms if not matcher.match(Passage.of_file(form))]
    # The dictionary has рост, but of its plural only роста.
    assert missed == (["росты"] if word == "рост" else [])


def test_an_exception_holds_in_every_form():
    table = {"any": ["пожарный"], "except": ["пожарная безопасность"], "mode": "lemma"}
    assert matched("о пожарной безопасности и пожарных", **table) == ["пожарных"]


def test_a_heap_of_combining_marks_takes_no_time():
    began = time.process_time()
    assert matched("a" + "\u0300\u0316" * 200_000 + " dam", any=["dam"]) == ["dam"]
    assert time.process_time() - began < 5.0


def test_a_megabyte_of_text_takes_no_time():
    rules = [some_rule(f"r{n}", f"word{n}") for n in range(500)]
    text = " ".join(f"word{n % 700}" for n in range(120_000))
    began = time.process_time()
    assert len(Matcher(rules).match(Passage.of(None, text))) == 500
    assert time.process_time() - began < 20.0


def test_another_word_of_the_same_stem_is_no_form():
    assert matched("organisation, evacuation, university", any=["organ", "evacuate", "universe"],
                   mode="lemma") == []  # fmt: skip
