"""The drift bench runs whole on a folder of made-up pages."""

import importlib.util
import json
from pathlib import Path

import numpy as np
import pytest
from click.testing import CliRunner

from flows.cli import main

_spec = importlib.util.spec_from_file_location(
    "drift_site", Path(__file__).parents[1] / "models" / "drift_site.py"
)
site = importlib.util.module_from_spec(_spec)
_spec.loader.exec_module(site)


def write_pages(folder):
    rng = np.random.default_rng(3)
    for name in ("tide", "hill", "mill", "dune", "ford"):
        shell = site.SHELL.replace('"story"', f'"{name}"').replace('"body"', f'"{name}-text"')
        (folder / name).mkdir()
        for number in range(5):
            title, paragraphs = site.make_story(rng)
            while len(paragraphs) < 7:
                title, paragraphs = site.make_story(rng)
            body = "".join(f"<p>{paragraph}</p>" for paragraph in paragraphs)
            aside = "".join(f"<a href='/{n}'>{site.sentence(rng, 6)}</a>" for n in range(4))
            page = shell.format(title=title, body=body, aside=aside)
            (folder / name / f"{number}.html").write_text(page, encoding="utf-8")


@pytest.mark.slow
def test_the_bench_prints_the_agreed_json(tmp_path):
    write_pages(tmp_path)
    asked = ["drift-bench", str(tmp_path), "--sites", "2", "--reference", "20", "--correct", "40"]
    result = CliRunner().invoke(main, [*asked, "--kind", "lazy", "--kind", "rename", "--json"])
    assert result.exit_code == 0, result.output
    detectors = json.loads(result.stdout)["detectors"]
    ours = detectors[0]
    assert ours["detector"] == "evidence"
    assert ours["pages_ok"] == 80
    assert {kind["kind"] for kind in ours["kinds"]} == {"lazy", "rename"}
    assert ours["redesigns"] == {"n": 0, "found": 0, "median_pages": None, "false_alarms": 0}


def test_an_unknown_breakage_is_named(tmp_path):
    write_pages(tmp_path)
    result = CliRunner().invoke(main, ["drift-bench", str(tmp_path), "--kind", "fire"])
    assert result.exit_code != 0
    assert "rename" in result.output


def test_a_folder_without_pages_is_named(tmp_path):
    result = CliRunner().invoke(main, ["drift-bench", str(tmp_path)])
    assert result.exit_code != 0
    assert str(tmp_path) in result.output.replace("\n", "")
