"""What judges a source's pages is chosen by a setting, and takes up its own state only."""

import importlib.util
from datetime import UTC, datetime
from pathlib import Path

import pytest

from flows.watching import open_watch
from models.drift.reference import build_reference
from models.drift.slides_watch import SlidesWatch
from models.drift.watch import Watch
from models.errors import ConfigError
from models.records import ReferenceModel
from tasks.settings import read_settings

_spec = importlib.util.spec_from_file_location(
    "drift_site", Path(__file__).parents[1] / "models" / "drift_site.py"
)
site = importlib.util.module_from_spec(_spec)
_spec.loader.exec_module(site)

NOW = datetime(2026, 1, 1, tzinfo=UTC)


def reference_of(n_pages):
    state = build_reference(site.make_pages(n_pages)).to_bytes()
    return ReferenceModel("tide", NOW, n_pages, "evidence", state, 0.0, "", {})


def test_evidence_is_gathered_by_default():
    assert isinstance(open_watch(reference_of(30), None), Watch)


@pytest.mark.parametrize("surface", ["ellipsoid", "sphere", "box"])
def test_a_surface_of_the_slides_can_judge_in_its_place(surface):
    watch = open_watch(reference_of(30), None, surface)
    assert isinstance(watch, SlidesWatch)
    watch.judge(site.make_pages(1, "redesign")[0], "new")
    again = open_watch(reference_of(30), watch.to_bytes(), surface)
    assert again.to_bytes() == watch.to_bytes()


def test_a_surface_waits_for_twenty_pages():
    assert isinstance(open_watch(reference_of(12), None, "ellipsoid"), Watch)


@pytest.mark.parametrize(("before", "after"), [("evidence", "box"), ("box", "evidence")])
def test_another_detector_starts_anew(before, after, caplog):
    model = reference_of(30)
    watch = open_watch(model, None, before)
    watch.judge(site.make_pages(1)[0], "page")
    other = open_watch(model, watch.to_bytes(), after)
    assert other.n_pages == 0
    assert "starts anew" in caplog.text


def test_an_unknown_detector_is_refused(tmp_path):
    (tmp_path / "newsbeat.toml").write_text("[drift]\ndetector = 'crystal ball'\n")
    with pytest.raises(ConfigError, match="ellipsoid"):
        read_settings(tmp_path, {})
