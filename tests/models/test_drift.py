"""Pages are described, watched against a reference, and changes of a site are told."""

import importlib.util
import json
from pathlib import Path

import numpy as np
import pytest

from models.drift.calibration import N_SCORES, SCORE_NAMES, Calibration, fit_calibration
from models.drift.channels import CHANNELS, RecentParagraphs
from models.drift.evidence import BET_MASK, MAX_LOG, Odds, bet
from models.drift.features import NUMBERS, PageFeatures, describe_page
from models.drift.pagescan import MAX_TAGS
from models.drift.reference import Reference, build_reference
from models.drift.watch import Watch
from models.errors import (
    ContaminatedReference,
    InsufficientDataError,
    ModelError,
    ParseError,
)

_spec = importlib.util.spec_from_file_location(
    "drift_site", Path(__file__).with_name("drift_site.py")
)
site = importlib.util.module_from_spec(_spec)
_spec.loader.exec_module(site)

REFERENCE = build_reference(site.make_pages(120))


def watch_pages(pages, reference=REFERENCE):
    watch = Watch(reference)
    judgements = [watch.judge(page, str(at)) for at, page in enumerate(pages)]
    return watch, judgements


def pages_to_alarm(pages, reference=REFERENCE):
    watch = Watch(reference)
    for at, page in enumerate(pages, start=1):
        watch.judge(page, str(at))
        if watch.verdict() is not None:
            return at, watch.verdict()
    return None, None


# --- features ------------------------------------------------------------------------


def test_a_page_is_described_by_the_counts_of_the_slides():
    page = "<body><div class='text'><p>Rain.</p><p>More rain fell.</p></div><img src=a></body>"
    features = describe_page(page, "Rain.\nMore rain fell.")
    assert features.page_bytes == len(page)
    assert features.text_bytes == len("Rain.More rain fell.")
    assert features.n_paragraphs == 2
    assert features.paragraph_variance == 25.0
    links, blocks, formatting, images, _ = features.tag_counts
    assert (links, blocks, formatting, images) == (0, 3, 0, 1)


def test_the_place_of_the_text_is_found_where_it_stands():
    features = site.make_pages(1)[0]
    assert features.place.endswith("article.story > div.body")
    assert features.place_shares[0] == pytest.approx(1.0)


def test_text_that_stands_nowhere_on_the_page_is_without_a_place():
    features = describe_page("<p>One thing.</p>", "Something else altogether, of some length.")
    assert features.place == ""
    assert features.numbers[NUMBERS.index("unplaced_share")] == 1.0


def test_features_survive_packing():
    features = site.make_pages(1)[0]
    packed = features.to_bytes()
    assert len(packed) < 4_000
    again = PageFeatures.from_bytes(packed)
    assert again.to_bytes() == packed
    assert again.place == features.place
    assert np.array_equal(again.numbers, features.numbers, equal_nan=True)


@pytest.mark.parametrize("packed", [b"", b"\x09" * 80, site.make_pages(1)[0].to_bytes()[:-9]])
def test_what_is_no_packed_page_is_refused(packed):
    with pytest.raises(ParseError):
        PageFeatures.from_bytes(packed)


@pytest.mark.parametrize(
    "page",
    [
        "",
        "plain words",
        "<div>" * 5_000,
        "<p>" + "x" * 500_000,
        "<a>" * (MAX_TAGS + 10),
        "\x00\ud800<p>\ufffe",
        b"\xff\xfe\x00<\x00",
        "<p class='" + "a-" * 50_000 + "'>",
    ],
    ids=["empty", "no tags", "deep", "long", "many", "odd letters", "bytes", "long class"],
)
def test_no_page_breaks_the_description(page):
    features = describe_page(page, "Some text\nand more")
    assert PageFeatures.from_bytes(features.to_bytes()).n_paragraphs == 2


def test_class_names_made_anew_by_a_build_are_the_same_paths():
    pages = [f"<div class='Body-sc-{n}a{n}b'><p class='p{n}'>Rain.</p></div>" for n in (1, 2)]
    one, two = (describe_page(page, "Rain.") for page in pages)
    assert np.array_equal(one.paths, two.paths)


# --- reference -----------------------------------------------------------------------


def test_a_reference_needs_nine_pages():
    with pytest.raises(InsufficientDataError):
        build_reference(site.make_pages(8))
    assert build_reference(site.make_pages(9)).n_pages == 9


@pytest.mark.parametrize("kind", ["same", "empty"])
def test_a_reference_that_is_wrong_already_is_refused(kind):
    with pytest.raises(ContaminatedReference):
        build_reference(site.make_pages(30, kind))


def test_a_reference_survives_packing():
    packed = REFERENCE.to_bytes()
    again = Reference.from_bytes(packed)
    assert again.to_bytes() == packed
    pages = site.make_pages(20, seed=5)
    assert [j.score for j in watch_pages(pages)[1]] == [
        j.score for j in watch_pages(pages, again)[1]
    ]


def test_a_reference_of_two_hundred_pages_is_small():
    assert len(build_reference(site.make_pages(200)).to_bytes()) < 200_000


def test_a_reference_of_another_version_is_refused():
    with pytest.raises(ParseError):
        Reference.from_bytes(b"not a reference")


# --- watch ---------------------------------------------------------------------------


def test_correct_pages_raise_no_alarm():
    watch, judgements = watch_pages(site.make_pages(300, seed=2))
    assert watch.verdict() is None
    assert max(judgement.evidence for judgement in judgements) < 4.0
    assert sum(judgement.suspicious for judgement in judgements) <= 6


@pytest.mark.parametrize("kind", ["redesign", "empty", "teasers", "same"])
def test_no_page_alarms_alone(kind):
    watch, _ = watch_pages([*site.make_pages(20, seed=3), *site.make_pages(1, kind)])
    assert watch.verdict() is None


@pytest.mark.report("flairNLP/fundus#163")
def test_a_redesign_with_the_right_text_changes_the_layout_only():
    at, drift = pages_to_alarm(site.make_pages(40, "redesign", seed=4))
    assert at <= 4
    assert drift.layout_changed
    assert not drift.text_wrong
    assert drift.group == "structure"
    assert drift.place_before.endswith("div.body")
    assert drift.place_after.endswith("section.copy")


@pytest.mark.parametrize(("kind", "within"), [("teasers", 6), ("same", 8), ("empty", 6)])
def test_a_wrong_text_in_the_old_layout_is_told(kind, within):
    at, drift = pages_to_alarm(site.make_pages(40, kind, seed=4))
    assert at <= within
    assert drift.text_wrong
    assert not drift.layout_changed


def test_half_the_text_is_missed_after_some_pages():
    at, drift = pages_to_alarm(site.make_pages(100, "half", seed=4))
    assert at <= 60
    assert drift.text_wrong, drift


def test_the_first_suspect_page_is_where_the_change_began():
    pages = [*site.make_pages(37, seed=6), *site.make_pages(5, "redesign", seed=6)]
    watch, _ = watch_pages(pages)
    assert abs(int(watch.verdict().first_suspect) - 37) <= 2


def test_a_watch_goes_on_after_a_restart_as_if_there_was_none():
    pages = [*site.make_pages(10, seed=7), *site.make_pages(6, "half", seed=7)]
    through, _ = watch_pages(pages)
    first, _ = watch_pages(pages[:12])
    resumed = Watch.from_bytes(first.to_bytes(), Reference.from_bytes(REFERENCE.to_bytes()))
    for at, page in enumerate(pages[12:], start=12):
        resumed.judge(page, str(at))
    assert resumed.to_bytes() == through.to_bytes()
    assert resumed.evidence == through.evidence


def test_two_layouts_at_once_are_both_normal():
    both = [page for pair in zip(*map(_half_and_half, (1, 2)), strict=True) for page in pair]
    reference = build_reference(both)
    mixed = [page for pair in zip(*map(_half_and_half, (3, 4)), strict=True) for page in pair]
    watch, _ = watch_pages(mixed, reference)
    assert watch.verdict() is None


def _half_and_half(seed):
    return [page for one in range(30) for page in _one_of_each(100 * seed + one)]


def _one_of_each(seed):
    return [*site.make_pages(1, seed=seed), *site.make_pages(1, "redesign", seed=seed + 50)]


def test_what_repeats_is_remembered_for_thirty_pages():
    pages = site.make_pages(32, seed=8)
    recent = RecentParagraphs(pages[:31])
    assert recent.share_of(pages[0]) == 0.0
    assert recent.share_of(pages[1]) == 1.0
    assert np.isnan(RecentParagraphs().share_of(pages[0]))


# --- evidence and calibration --------------------------------------------------------


def test_bets_on_fair_ranks_do_not_pay_on_the_average():
    rng = np.random.default_rng(0)
    known = np.full(N_SCORES, 200)
    paid = np.zeros(BET_MASK.shape)
    for _ in range(4_000):
        high = rng.random(N_SCORES)
        # The normal deviate of a fair rank.
        normal = rng.normal(size=N_SCORES)
        paid += np.exp(bet(Odds(high, 1.0 - high, normal), known))
    assert (paid / 4_000)[BET_MASK].mean() < 1.0
    assert (paid / 4_000)[BET_MASK].max() < 1.5


def test_no_bet_pays_more_than_a_hundred():
    tiny = np.full(N_SCORES, 1e-6)
    paid = bet(Odds(tiny, tiny, np.full(N_SCORES, 9.0)), np.full(N_SCORES, 200))
    assert paid.max() <= MAX_LOG


def test_a_score_that_is_not_known_says_nothing():
    nothing = np.full(N_SCORES, np.nan)
    assert not bet(Odds(nothing, nothing, nothing), np.full(N_SCORES, 200)).any()


def test_a_calibration_survives_json_and_knows_its_channels():
    rng = np.random.default_rng(0)
    scores = [rng.normal(size=(500, N_SCORES)) for _ in range(3)]
    fitted = fit_calibration({9: scores, 32: scores}, np.full(N_SCORES, 0.1))
    again = Calibration.from_json(json.loads(json.dumps(fitted.to_json())))
    high, low = again.for_size(40).p_values(np.full(N_SCORES, 2.0))
    assert high.mean() == pytest.approx(0.023, abs=0.01)
    assert low.min() == 1.0
    with pytest.raises(ModelError):
        Calibration.from_json({**fitted.to_json(), "scores": ["other"]})


def test_borrowed_tails_fall_as_scores_rise():
    tails = Calibration.cautious().for_size(9)
    shares = [tails.p_values(np.full(N_SCORES, score))[0][0] for score in np.linspace(-3, 30, 99)]
    assert shares == sorted(shares, reverse=True)
    assert shares[-1] > 0.0


def test_every_channel_is_named_and_explained_once():
    assert len({channel.name for channel in CHANNELS}) == len(CHANNELS)
    assert len({channel.words for channel in CHANNELS}) == len(CHANNELS)
    assert SCORE_NAMES[-3:] == ("joint_structure", "joint_place", "joint_text")
