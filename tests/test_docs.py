"""The documentation says what is there, and what is there is documented."""

import dataclasses
import re
import tomllib
from pathlib import Path

import pytest

from models.records import ExtractRules, HttpRules, ListRules, PollRules, Source
from tasks.catalogue import read_catalogue
from tasks.settings import Settings, read_settings

ROOT = Path(__file__).parents[1]
SETTINGS_PAGE = (ROOT / "docs" / "settings.md").read_text(encoding="utf-8")
SECTIONS = [
    item.name for item in dataclasses.fields(Settings) if item.name not in {"home", "clock"}
]


def documented(section: str) -> dict[str, str]:
    """Return ``{key: default}`` of the table of a section in docs/settings.md."""
    text = SETTINGS_PAGE.split(f"## `[{section}]`")[1].split("\n## ")[0]
    return dict(re.findall(r"^\| `(\w+)` \| `([^|]*)` \|", text, re.MULTILINE))


@pytest.mark.parametrize("section", SECTIONS)
def test_every_setting_is_documented_with_its_default(section, tmp_path):
    there = getattr(Settings(home=tmp_path), section)
    defaults = {item.name: getattr(there, item.name) for item in dataclasses.fields(there)}
    written = {key: tomllib.loads(f"x = {text}")["x"] for key, text in documented(section).items()}
    assert written == defaults


def test_no_section_is_documented_that_does_not_exist():
    assert re.findall(r"^## `\[(\w+)\]`", SETTINGS_PAGE, re.MULTILINE) == SECTIONS


def test_the_example_of_the_settings_page_is_accepted(tmp_path):
    example = SETTINGS_PAGE.split("```toml\n")[1].split("```")[0]
    (tmp_path / "newsbeat.toml").write_text(example, encoding="utf-8")
    assert read_settings(tmp_path, {}).fetch.host_gap_s == 2.0


def test_the_source_of_the_settings_page_is_accepted_and_shows_every_key(tmp_path):
    example = SETTINGS_PAGE.split("```toml\n")[2].split("```")[0]
    (tmp_path / "example.toml").write_text(example, encoding="utf-8")
    catalogue = read_catalogue(tmp_path)
    assert [str(problem) for problem in catalogue.problems] == []
    entry = tomllib.loads(example)["source"][0]
    tables = {"poll": PollRules, "list": ListRules, "extract": ExtractRules, "http": HttpRules}
    for name, kind in tables.items():
        assert set(entry[name]) == {item.name for item in dataclasses.fields(kind)}
    assert set(entry) == {item.name for item in dataclasses.fields(Source)} - {"file"}


def test_every_source_that_ships_is_valid():
    catalogue = read_catalogue()
    assert [str(problem) for problem in (*catalogue.problems, *catalogue.warnings)] == []


def test_the_catalogue_is_wide():
    sources = read_catalogue().sources
    languages = {(source.language or "").partition("-")[0] for source in sources}
    assert len(sources) >= 60
    assert len({source.country for source in sources}) >= 12
    assert {"ru", "zh", "en", "de", "fr", "es", "pt", "ar", "tr", "ja", "uk"} <= languages
    assert all(source.language and source.country and source.tags for source in sources)


def test_every_catalogue_file_says_that_its_addresses_were_not_tried():
    for file in (ROOT / "data" / "sources").glob("*.toml"):
        assert "no address here was tried" in file.read_text(encoding="utf-8"), file.name


def test_the_changelog_counts_the_catalogue_right():
    sources = read_catalogue().sources
    n_countries = len({source.country for source in sources})
    n_languages = len({source.language for source in sources})
    text = " ".join((ROOT / "CHANGELOG.md").read_text(encoding="utf-8").split())
    count = f"{len(sources)} sources from {n_countries} countries in {n_languages} languages"
    assert count in text


@pytest.mark.parametrize(
    "page", [ROOT / "README.md", *ROOT.glob("*.md"), *(ROOT / "docs").glob("*.md")], ids=str
)
def test_links_between_pages_lead_somewhere(page):
    text = page.read_text(encoding="utf-8")
    links = re.findall(r"\]\((?!https?://|#|mailto:)([^)#\s]+)", text)
    assert [link for link in links if not (page.parent / link).exists()] == []


def test_documented_make_targets_exist():
    makefile = (ROOT / "Makefile").read_text(encoding="utf-8")
    targets = set(re.findall(r"^([a-z]+):", makefile, re.MULTILINE))
    pages = [*ROOT.glob("*.md"), *(ROOT / "docs").glob("*.md")]
    named = {
        target
        for page in pages
        for target in re.findall(r"[`$&] ?make ([a-z]+)", page.read_text(encoding="utf-8"))
    }
    assert named <= targets
    assert {"demo", "test", "check", "format", "clean"} <= targets


def test_documented_commands_exist():
    cli = pytest.importorskip("flows.cli")
    pages = [*ROOT.glob("*.md"), *(ROOT / "docs").glob("*.md"), ROOT / "Makefile"]
    named = {
        command
        for page in pages
        for command in re.findall(r"[`$/] ?newsbeat ([a-z][a-z-]*)", page.read_text("utf-8"))
    }
    assert named - set(cli.main.commands) == set()
