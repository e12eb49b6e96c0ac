"""Sets of pages are compared with the reference, as the slides do it and as we do."""

import importlib.util
from pathlib import Path

import numpy as np
import pytest
from scipy.stats import entropy

from models.drift.adwin import Adwin
from models.drift.deferred import (
    CRITERIA,
    WindowReference,
    check_window,
    choose_thresholds,
    divergence,
    sturges_edges,
)
from models.drift.features import describe_page
from models.drift.reference import Reference, build_reference
from models.drift.slides import SURFACES, SelfCheck, SurfaceModel, cluster_by_samples
from models.drift.slides_watch import SlidesWatch
from models.errors import InsufficientDataError

_spec = importlib.util.spec_from_file_location(
    "drift_site", Path(__file__).with_name("drift_site.py")
)
site = importlib.util.module_from_spec(_spec)
_spec.loader.exec_module(site)

REFERENCE = WindowReference.of(site.make_pages(200))


def test_a_correct_window_passes():
    check = check_window(REFERENCE, site.make_pages(40, seed=2))
    assert not check.is_drift
    assert check.n_fired == 0
    assert [criterion.name for criterion in check.criteria] == [*CRITERIA, "T"]


@pytest.mark.parametrize("kind", ["redesign", "half", "teasers"])
def test_a_changed_window_is_found_with_its_column(kind):
    check = check_window(REFERENCE, site.make_pages(40, kind, seed=2))
    assert check.is_drift
    assert check.n_fired >= (kind != "redesign")
    assert check.leading_column in check.columns


def test_an_empty_window_passes_nothing():
    with pytest.raises(InsufficientDataError):
        check_window(REFERENCE, [])


@pytest.mark.parametrize(
    "pages",
    [
        site.make_pages(1, seed=3),
        [describe_page("", None)] * 5,
        [describe_page("<p>x</p>", "x")] * 3,
        site.make_pages(40, "empty"),
        [describe_page("<p>" + "rain " * 90_000, "rain " * 90_000)] * 2,
    ],
    ids=["one page", "nothing", "one value", "no text", "outside the bins"],
)
def test_divergences_are_finite_whatever_comes(pages):
    for criterion in check_window(REFERENCE, pages).criteria:
        assert np.isfinite(criterion.statistic)
        assert criterion.statistic >= 0.0
        assert np.isfinite(criterion.threshold)


def test_a_divergence_can_be_computed_again_from_its_arrays():
    for criterion in check_window(REFERENCE, site.make_pages(25, "half", seed=4)).criteria:
        low, high = criterion.tail_weights
        expected = np.array([low, *criterion.reference_weights, high])
        below, above = criterion.test_tails
        observed = np.array([below, *criterion.test_weights, above])
        if criterion.name == "T":
            expected, observed = expected[1:-1], observed[1:-1]
        assert expected.sum() == pytest.approx(1.0)
        assert (expected > 0).all()
        assert observed.sum() == pytest.approx(1.0)
        assert criterion.statistic == pytest.approx(entropy(observed, expected), abs=1e-12)


@pytest.mark.parametrize("rule", ["simple", "universal", "bootstrap"])
def test_thresholds_fall_as_the_test_set_grows(rule):
    few, many = (choose_thresholds(REFERENCE, n, rule) for n in (5, 60))
    assert (few[:4] > many[:4]).all()


def test_a_reference_of_equal_pages_has_one_bin():
    pages = [describe_page("<p>x</p>", "x")] * 12
    check = check_window(WindowReference.of(pages), pages)
    assert not check.is_drift
    assert check.n_fired == 0
    assert len(sturges_edges(np.full(12, 3.0))) == 2


def test_equal_shares_do_not_diverge():
    shares = np.array([0.25, 0.75])
    assert divergence(shares, shares) == 0.0
    assert divergence(np.array([1.0, 0.0]), shares) == pytest.approx(np.log(4.0))


# --- the slides' surfaces ------------------------------------------------------------


def test_sampled_clustering_finds_clusters_that_lie_apart():
    rng = np.random.default_rng(0)
    centres = rng.uniform(-50, 50, (4, 3))
    points = np.concatenate([centre + rng.normal(size=(50, 3)) for centre in centres])
    groups = cluster_by_samples(points, 4, rng)
    assert [len(set(groups[at * 50 : at * 50 + 50])) for at in range(4)] == [1, 1, 1, 1]
    assert len(set(groups)) == 4


@pytest.mark.parametrize("surface", SURFACES)
def test_a_surface_holds_the_pages_it_was_put_round(surface):
    pages = site.make_pages(60)
    model = SurfaceModel.fit(pages, surface)
    assert not any(model.is_suspicious(page) for page in pages)


@pytest.mark.parametrize("surface", SURFACES)
def test_pages_of_another_kind_lie_outside(surface):
    model = SurfaceModel.fit(site.make_pages(200), surface)
    other = [describe_page("<p>Please wait.</p>" * 3, "Please wait.")] * 5
    assert all(model.is_suspicious(page) for page in other)


def test_surfaces_need_some_pages():
    with pytest.raises(InsufficientDataError):
        SurfaceModel.fit(site.make_pages(12))


def test_equal_pages_have_a_surface():
    page = site.make_pages(1)[0]
    assert not SurfaceModel.fit([page] * 30).is_suspicious(page)


def test_the_self_check_alarms_above_a_tenth():
    check = SelfCheck()
    assert [check.add(suspicious=True) for _ in range(6)] == [False] * 5 + [True]


def test_adwin_is_quiet_on_a_steady_stream_and_finds_a_step():
    rng = np.random.default_rng(1)
    adwin = Adwin()
    assert not any(adwin.add(value) for value in rng.uniform(0.4, 0.5, 400))
    assert any(adwin.add(value) for value in rng.uniform(0.6, 0.7, 60))


def test_the_slides_watch_takes_the_same_reference_and_calls():
    reference = build_reference(site.make_pages(240))
    watch = SlidesWatch(reference)
    for at, page in enumerate(site.make_pages(50, seed=2)):
        watch.judge(page, f"right {at}")
    before = watch.verdict()
    for at, page in enumerate(site.make_pages(20, "redesign", seed=2)):
        watch.judge(page, f"new {at}")
    drift = watch.verdict()
    assert drift is not None
    assert drift.evidence >= 4.0
    assert before is None or before.evidence < drift.evidence
    resumed = SlidesWatch.from_bytes(watch.to_bytes(), Reference.from_bytes(reference.to_bytes()))
    assert resumed.to_bytes() == watch.to_bytes()
    assert resumed.verdict() == drift
