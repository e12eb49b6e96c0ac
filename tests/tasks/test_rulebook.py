"""Keyword files: the right rules work, whatever stands beside them."""

from pathlib import Path

import pytest

from models.errors import ConfigError
from models.triage.matcher import Passage
from tasks.rulebook import read_rulebook, read_text, rulebook_stamp
from tasks.settings import Settings

MIXED = """
[defaults]
level = 3

[[rule]]
rule = "good"
any = ["dam"]

[[rule]]
rule = "bad-level"
level = 0
any = ["x"]

[[rule]]
rule = "bad-toml"
any = ["x"

[[rule]]
rule = "bad-regex"
mode = "regex"
any = ["fine", "(?!x)y"]

[[rule]]
rule = "good"
any = ["twice"]

[[rule]]
rule = "also-good"
level = 1
any = ["flood"]
"""


def test_wrong_rules_are_named_and_the_others_work(tmp_path):
    file = tmp_path / "mixed.toml"
    file.write_text(MIXED, encoding="utf-8")
    book = read_rulebook(place=file)
    assert [rule.rule for rule in book.rules] == ["good", "also-good"]
    assert [rule.level for rule in book.rules] == [3, 1]
    assert [str(problem).removeprefix(f"{file}:") for problem in book.problems] == [
        "11: bad-level.level = 0 is not allowed; it must be a whole number from 1 to 5",
        "14: rule bad-toml: not readable as TOML: Unclosed array",
        (
            "21: bad-regex.any = '(?!x)y' is not allowed; as a regular expression: invalid perl"
            " operator: (?!; look-around and back references are not taken, as they can explode"
        ),
        f"24: good.rule = 'good' is not allowed; the name is taken by {file}:6",
    ]
    assert len(book.matcher().match(Passage.of_file("the dam"))) == 1


def test_what_stands_outside_of_rules_is_named():
    rules, problems = read_text("f.toml", '[rule]\nrule = "x"\n')
    assert rules == []
    assert "[[rule]]" in str(problems[0])
    _, problems = read_text("f.toml", "level = 3\n[defaults]\nany = ['x']\n")
    assert [problem.key for problem in problems] == ["defaults.any", "level"]


def test_the_rules_that_ship_are_right():
    book = read_rulebook()
    assert book.problems == ()
    assert book.is_packaged
    assert len(book.rules) > 20
    assert {level for rule in book.rules for level in [rule.level]} == {1, 2, 3, 4, 5}
    assert {reach for rule in book.rules for reach in rule.scope.reach} == {"local", "trade"}


def test_rules_of_ones_own_take_the_place_of_those_that_ship(tmp_path):
    settings = Settings(home=tmp_path)
    assert read_rulebook(settings).is_packaged
    assert rulebook_stamp(settings) == ()
    settings.keywords_folder.mkdir(parents=True)
    (settings.keywords_folder / "own.toml").write_text(MIXED, encoding="utf-8")
    book = read_rulebook(settings)
    assert not book.is_packaged
    assert len(book.rules) == 2
    assert len(rulebook_stamp(settings)) == 1


def test_a_place_that_is_not_there_is_an_error():
    with pytest.raises(ConfigError, match="no such file"):
        read_rulebook(place=Path("/nowhere/rules.toml"))
