"""Every rule in docs/rules.md is right, and finds what the page says it finds."""

import dataclasses
import json
import re
from pathlib import Path

import pytest

from models.triage.matcher import Matcher, Passage
from models.triage.rules import KEYS
from tasks.rulebook import read_text
from tasks.settings import Settings, read_settings
from tasks.warehouse import Warehouse

ROOT = Path(__file__).parents[1]
PAGE = (ROOT / "docs" / "rules.md").read_text(encoding="utf-8")
ALERTS = (ROOT / "docs" / "alerts.md").read_text(encoding="utf-8")
EXAMPLES = re.findall(r"```toml\n(.*?)```\n\n\| text \| found \|\n\|---\|---\|\n(.*?)\n\n", PAGE, re.DOTALL)  # fmt: skip  # noqa: E501


@pytest.mark.parametrize("number", range(len(EXAMPLES)))
def test_an_example_finds_what_its_table_says(number):
    toml, table = EXAMPLES[number]
    rules, problems = read_text("example.toml", toml)
    assert problems == []
    matcher = Matcher(rules)
    for line in table.splitlines():
        _, text, found, _ = (cell.strip() for cell in line.split("|"))
        places = sorted(
            (place.start, place.matched)
            for match in matcher.match(Passage.of_file(text))
            for place in match.places
        )
        assert ", ".join(matched for _, matched in places) == found, text


def test_every_rule_of_the_page_is_an_example():
    assert len(EXAMPLES) == PAGE.count("```toml") >= 9


def test_the_answer_shown_is_the_answer():
    toml = next(toml for toml, _ in EXAMPLES if "gas-explosion" in toml)
    rules, _ = read_text("example.toml", toml)
    (match,) = Matcher(rules).match(Passage.of_file("О взрывах газа"))
    shown = json.loads(PAGE.split("```json\n")[1].split("```")[0])
    assert shown == {"level": 2, "hits": match.as_json()}


def test_every_key_is_in_the_table():
    table = PAGE.split("## All keys")[1].split("\n## ")[0]
    named = [key for line in table.splitlines() if line.startswith("| `")
             for key in re.findall(r"`(\w+)`", line.split("|")[1])]  # fmt: skip
    assert sorted(named) == sorted(KEYS)


def test_the_queries_of_the_page_are_answered(tmp_path):
    queries = re.findall(r"```sql\n(.*?)```", ALERTS, re.DOTALL)
    with Warehouse.open(Settings(home=tmp_path), "test") as warehouse:
        assert [warehouse.query(query) for query in queries] == [[], []]


def test_the_channels_of_the_page_are_accepted(tmp_path):
    example = ALERTS.split("```toml\n")[1].split("```")[0]
    (tmp_path / "newsbeat.toml").write_text(example, encoding="utf-8")
    settings = read_settings(tmp_path, {})
    assert set(settings.channels) == {"desk", "mail", "energy"}
    assert all(dataclasses.is_dataclass(channel) for channel in settings.channels.values())
