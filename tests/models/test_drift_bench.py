"""Real pages become moulds, made sites break, and what detectors make of it is counted."""

import importlib.util
from pathlib import Path

import numpy as np
import pytest

from models.drift.bench import (
    Tally,
    count_false_alarms,
    run_kinds,
    run_redesign,
    run_stream,
)
from models.drift.contenders import Always, FewCharacters, Never, set_to_work
from models.drift.faults import CAUSES, KINDS, Newsroom, draw_habits, make_page
from models.drift.features import describe_page
from models.drift.newsrooms import agreement, in_drawn_order, read_story, stories_for
from models.drift.template import CLOSE, OPEN, Story, cut_template

_spec = importlib.util.spec_from_file_location(
    "drift_site", Path(__file__).with_name("drift_site.py")
)
site = importlib.util.module_from_spec(_spec)
_spec.loader.exec_module(site)


def make_room(seed=0):
    rng = np.random.default_rng(seed)
    stories = []
    for _ in range(60):
        title, paragraphs = site.make_story(rng)
        stories.append(Story(title, paragraphs[0][:100], tuple(paragraphs)))
    templates = []
    for shell, name in ((site.SHELL, "tide.example"), (site.REDESIGN, "hill.example")):
        title, paragraphs = site.make_story(rng)
        body = "".join(f"<p class='par'>{paragraph}</p>" for paragraph in paragraphs)
        aside = "".join(f"<a href='/{n}'>{site.sentence(rng, 6)}</a>" for n in range(4))
        markup = shell.format(title=title, body=body, aside=f"<div>{aside}</div>")
        text = "\n".join(paragraphs)
        templates.append(cut_template(markup, text, title, site=name, language="en", rng=rng))
    return Newsroom(templates[0], templates[1], draw_habits(templates[0], rng), tuple(stories))


ROOM = make_room()


# --- moulds and breakages ------------------------------------------------------------


def test_a_page_becomes_a_mould_that_holds_no_text_of_it():
    slots = set(ROOM.template.pieces[1::2])
    assert {"title", "body", "after", "teaser"} <= slots
    assert ROOM.template.paragraph == '<p class="par">'


def test_a_page_without_a_box_of_text_makes_no_mould():
    rng = np.random.default_rng(0)
    for markup in ("", "<p>Nothing of it here</p>"):
        assert (
            cut_template(markup, "Some other text.", "Title", site="a", language="", rng=rng)
            is None
        )


@pytest.mark.parametrize("kind", ["ok", *KINDS])
def test_a_made_page_is_the_same_for_the_same_chance(kind):
    one, two = (make_page(ROOM, 3, kind, np.random.default_rng(5)) for _ in range(2))
    assert one == two
    assert OPEN not in one.markup
    assert CLOSE not in one.markup


def test_a_correct_page_holds_its_article_in_the_box():
    page = make_page(ROOM, 3, "ok", np.random.default_rng(5))
    features = describe_page(page.markup, page.truth)
    assert features.place.endswith("article.story > div.body")
    assert features.numbers[list(site_numbers()).index("unplaced_share")] < 0.05


def site_numbers():
    from models.drift.features import NUMBERS

    return NUMBERS


def test_breakages_do_what_they_say():
    rng = np.random.default_rng(6)
    pages = {kind: make_page(ROOM, 4, kind, rng).markup for kind in ("ok", *KINDS)}
    right = ROOM.stories[4].paragraphs[0][:40]
    assert right in pages["ok"]
    assert right in pages["rename"]
    assert 'class="body"' not in pages["rename"]
    assert right in pages["redesign"]
    assert "section" in pages["redesign"]
    assert right not in pages["lazy"]
    assert right not in pages["mojibake"]
    assert pages["tail"].count("Read also") >= 8
    assert ROOM.habits.paywall in pages["teaser"]
    assert len(pages["captcha"]) < 500
    assert set(CAUSES) == set(KINDS)


# --- material ------------------------------------------------------------------------


def test_short_and_lopsided_texts_are_no_material():
    lines = ["This is a line of some forty characters, or more."] * 30
    assert read_story("A headline of some length", "\n".join(lines)) is not None
    assert read_story("A headline of some length", "\n".join(lines[:3])) is None
    assert read_story("A headline of some length", "\n".join([*lines, "x" * 9_000])) is None
    assert read_story("Short", "\n".join(lines)) is None


def test_a_site_of_a_rare_language_prints_another_ones_articles():
    story = Story("Title", "", ("Text",))
    many = {"en": [story] * 130, "da": [story] * 2}
    rng = np.random.default_rng(0)
    assert len(stories_for("da", many, rng)) == 130


def test_sites_are_drawn_in_the_same_order_for_the_same_seed():
    sites = [f"{n}.example" for n in range(9)]
    assert in_drawn_order(sites, 1) == in_drawn_order(reversed(sites), 1)
    assert in_drawn_order(sites, 1) != in_drawn_order(sites, 2)
    assert agreement("", "") == 1.0


# --- counting ------------------------------------------------------------------------

PAGES = site.make_pages(200)
CORRECT = site.make_pages(80, seed=2)


def test_dummies_are_what_they_say():
    assert count_false_alarms(Always(), CORRECT).false_alarms == len(CORRECT)
    assert count_false_alarms(Never(), CORRECT).false_alarms == 0
    assert count_false_alarms(FewCharacters(), CORRECT).false_alarms == 0
    assert run_stream(Always(), CORRECT, CORRECT[:5], [True] * 5) == (1, "")
    assert run_stream(Never(), CORRECT, CORRECT[:5], [True] * 5) == (None, "")


def test_a_delay_is_counted_from_the_first_broken_page():
    empty = site.make_pages(3, "empty")
    after = [*CORRECT[:4], *empty]
    assert run_stream(FewCharacters(), [], after, [False] * 4 + [True] * 3) == (1, "")


def test_all_detectors_are_measured_alike():
    contenders = set_to_work(PAGES, None)
    names = [contender.name for contender in contenders]
    assert names[0] == "evidence"
    assert {"always", "never", "< 200 characters", "ADWIN on text size"} <= set(names)
    assert {"slides: box", "slides: ellipsoid", "slides: sphere"} <= set(names)
    broken = {"redesign": site.make_pages(40, "redesign", seed=3)}
    for contender in contenders:
        tally = count_false_alarms(contender, CORRECT)
        tally.add(
            run_kinds(
                contender, CORRECT, broken, share=1.0, n_streams=1, rng=np.random.default_rng(1)
            )
        )
        told = tally.as_json(contender.name)
        assert list(told) == [
            "detector", "pages_ok", "false_alarms", "kinds", "redesigns", "cpu_ms_per_page",
        ]  # fmt: skip
        assert told["pages_ok"] == len(CORRECT)
        assert [kind["kind"] for kind in told["kinds"]] == ["redesign"]
    ours = run_kinds(
        contenders[0], CORRECT, broken, share=1.0, n_streams=2, rng=np.random.default_rng(1)
    ).by_kind()[0]
    assert ours["found_share"] == 1.0
    assert ours["median_pages"] <= 4
    assert ours["cause_right_share"] == 1.0


def test_surfaces_are_left_out_where_pages_are_few():
    names = [contender.name for contender in set_to_work(PAGES[:10], None)]
    assert "slides: box" not in names


def test_a_real_redesign_is_counted_apart():
    ours = set_to_work(PAGES[:9], None)[0]
    tally = run_redesign(ours, PAGES[9:20], site.make_pages(20, "redesign", seed=3))
    assert tally.redesign_false_alarms == 0
    assert tally.as_json("ours")["redesigns"]["n"] == 1
    assert tally.pages_ok == 0


def test_no_false_alarm_in_many_pages_bounds_their_share():
    assert Tally(pages_ok=3_000).false_alarm_bound == pytest.approx(1e-3, rel=0.01)
    assert Tally(pages_ok=10, false_alarms=10).false_alarm_bound == 1.0


def test_a_missed_stream_counts_in_the_quantiles():
    tally = run_kinds(
        Never(), CORRECT, {"half": CORRECT}, share=0.5, n_streams=3, rng=np.random.default_rng(0)
    )
    assert tally.by_kind() == [
        {
            "kind": "half",
            "streams": 3,
            "found_share": 0.0,
            "median_pages": None,
            "p90_pages": None,
            "cause_right_share": None,
        }
    ]
