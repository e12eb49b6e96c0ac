"""`match`, `rules try`, `notices` and `ack`, on a small collection."""

from __future__ import annotations

import json

import pytest
from click.testing import CliRunner

from flows.alerting import Alerter
from flows.cli import main
from flows.commands.noticing import acknowledge, list_notices
from flows.commands.trying import read_span, try_rules
from models.errors import ConfigError
from tasks.settings import AlertSettings

RULES = """
[[rule]]
rule = "all-news"
level = 1
mode = "lemma"
any = ["{word}"]

[[rule]]
rule = "broken"
level = 0
any = ["x"]
"""


def run(*words: str, text: str = "") -> str:
    result = CliRunner().invoke(main, list(words), input=text, catch_exceptions=False)
    assert result.exit_code == 0, result.output
    return result.stdout


def test_match_prints_what_the_contract_says(tmp_path):
    rules = tmp_path / "r.toml"
    rules.write_text(RULES.format(word="dam"), encoding="utf-8")
    answer = json.loads(
        run("match", "-", "--rules", str(rules), "--json", "--home", str(tmp_path), text="Two dams")
    )
    assert answer == {
        "level": 1,
        "hits": [
            {
                "rule": "all-news",
                "level": 1,
                "matched": "dams",
                "start": 4,
                "end": 8,
                "mode": "lemma",
                "sentence": "Two dams",
                "why": '"dams" is a form of "dam"',
            }
        ],
    }
    assert json.loads(run("match", "-", "--json", "--home", str(tmp_path), text="Calm")) == {
        "level": None,
        "hits": [],
    }


def test_match_shows_no_control_characters(tmp_path):
    rules = tmp_path / "r.toml"
    rules.write_text(RULES.format(word="dam"), encoding="utf-8")
    shown = run(
        "match", "-", "--rules", str(rules), "--home", str(tmp_path), text="dam \x1b[31mred"
    )
    assert "\x1b" not in shown


@pytest.mark.parametrize("span", ["", "30", "d", "-3d", "3m"])
def test_a_wrong_span_is_told(span):
    with pytest.raises(ConfigError, match="is no span"):
        read_span(span)


async def test_rules_are_tried_on_what_was_collected_and_alerts_are_answered(
    open_newsroom, tmp_path
):
    rules = tmp_path / "data" / "keywords" / "r.toml"
    rules.parent.mkdir(parents=True)
    async with open_newsroom(alerts=AlertSettings()) as newsroom:
        await newsroom.polled()
        ((title,),) = newsroom.rows("SELECT title FROM articles LIMIT 1")
        word = max(title.split(), key=len)
        rules.write_text(RULES.format(word=word), encoding="utf-8")
        await newsroom.collector.triage.reload()
        settings, total = newsroom.settings, newsroom.rows("SELECT count(*) FROM articles")[0][0]
    report = try_rules(settings, rules, "30d")
    (tried,) = report.tried
    assert report.n_articles == total > 1
    assert 1 <= tried.n_articles < total + 1
    assert word in " ".join(example.sentence for example in tried.examples)
    assert tried.cost_us is not None
    assert len(report.problems) == 1
    assert report.as_json()["rules"][0]["examples"][0]["source"] == "harbour"


async def test_a_notice_is_listed_and_answered(open_newsroom, tmp_path):
    rules = tmp_path / "data" / "keywords" / "r.toml"
    rules.parent.mkdir(parents=True)
    rules.write_text('[[rule]]\nrule = "r"\nlevel = 1\nmode = "regex"\nany = ["[a-z]{3}"]\n')
    async with open_newsroom() as newsroom:
        await newsroom.polled()
        newsroom.step(hours=1)
        await newsroom.polled()
        await Alerter(newsroom.collector).settle()
        settings = newsroom.settings
    (notice,) = list_notices(settings).notices
    assert list_notices(settings).as_json()[0]["state"] == "unanswered"
    assert notice.channel == "log"
    with pytest.raises(ConfigError, match="no notice is called"):
        acknowledge(settings, "zzz")
    assert "acknowledged" in acknowledge(settings, notice.notice_id[:5])
    assert list_notices(settings).as_json()[0]["state"].startswith("acknowledged by")
