"""The documentation says what is there, and what is there is documented."""

import dataclasses
import re
import shlex
import subprocess
import tomllib
import typing
from pathlib import Path

import click
import pytest

from flows import cli
from models.records import ExtractRules, HttpRules, Kind, ListRules, PollRules, Source
from models.triage.ladder import Channel
from tasks.catalogue import read_catalogue
from tasks.replay.sample import sample_web
from tasks.settings import Settings, read_settings
from tasks.warehouse import Warehouse
from tasks.warehouse_reader import open_reader

ROOT = Path(__file__).parents[1]
SETTINGS_PAGE = (ROOT / "docs" / "settings.md").read_text(encoding="utf-8")
PAGES = sorted([*ROOT.glob("*.md"), *(ROOT / "docs").glob("*.md")])
README = (ROOT / "README.md").read_text(encoding="utf-8")
README_QUERIES = re.findall(r"```sql\n(.*?)```", README, re.DOTALL)
SECTIONS = [
    item.name
    for item in dataclasses.fields(Settings)
    if item.name not in {"home", "clock", "channels"}
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


def test_every_key_of_a_channel_is_documented():
    text = SETTINGS_PAGE.split("## `[channels.NAME]`")[1].split("\n## ")[0]
    written = re.findall(r"^\| `(\w+)` \|", text, re.MULTILINE)
    assert written == [item.name for item in dataclasses.fields(Channel) if item.name != "name"]


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


SOURCES_PAGE = (ROOT / "docs" / "sources.md").read_text(encoding="utf-8")


def test_the_sources_of_the_sources_page_are_accepted_and_show_every_kind(tmp_path):
    examples = re.findall(r"```toml\n(.*?)```", SOURCES_PAGE, re.DOTALL)
    for number, example in enumerate(examples):
        (tmp_path / f"{number}.toml").write_text(example, encoding="utf-8")
    catalogue = read_catalogue(tmp_path)
    assert [str(problem) for problem in (*catalogue.problems, *catalogue.warnings)] == []
    assert {source.kind for source in catalogue.sources} == set(typing.get_args(Kind))
    for kind in typing.get_args(Kind):
        assert f"| `{kind}` |" in SOURCES_PAGE


def test_the_query_of_the_sources_page_is_answered(tmp_path):
    (query,) = re.findall(r"```sql\n(.*?)```", SOURCES_PAGE, re.DOTALL)
    settings = Settings(home=tmp_path)
    Warehouse.open(settings, "test").close()
    with open_reader(settings) as reader:
        assert reader.query(query).columns == ("source", "url", "title", "media")


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


@pytest.mark.parametrize("page", ["README.md", "CHANGELOG.md"])
def test_a_page_counts_the_catalogue_right(page):
    sources = read_catalogue().sources
    n_countries = len({source.country for source in sources})
    text = " ".join((ROOT / page).read_text(encoding="utf-8").split())
    assert f"{len(sources)} sources from {n_countries} countries" in text


def test_the_readme_counts_the_newsrooms_of_the_demo_right():
    web = sample_web(hours=1.0)
    assert (len(web.history), len({source.language for source in web.history})) == (12, 4)
    assert "twelve invented newsrooms publish in four languages" in " ".join(README.split())


@pytest.mark.parametrize("number", range(len(README_QUERIES)))
def test_a_query_of_the_readme_is_answered(number, tmp_path):
    settings = Settings(home=tmp_path)
    Warehouse.open(settings, "test").close()
    with open_reader(settings) as reader:
        assert reader.query(README_QUERIES[number]).columns


def test_the_pictures_of_the_readme_are_small():
    pictures = re.findall(r"!\[[^\]]+\]\(([^)]+)\)", README)
    assert len(pictures) == 4
    for picture in pictures:
        data = (ROOT / picture).read_bytes()
        assert data.startswith(b"\x89PNG")
        assert len(data) < 200_000, picture


def test_the_readme_maps_every_folder():
    named = set(re.findall(r"`(\w+)/`", README.split("## Where things are")[1].split("\n## ")[0]))
    listed = subprocess.run(
        ["git", "ls-tree", "-d", "--name-only", "HEAD"], cwd=ROOT, capture_output=True, text=True
    )
    if listed.returncode:
        pytest.skip("not a git checkout")
    folders = {name for name in listed.stdout.split() if not name.startswith(".")}
    assert named == folders


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_links_between_pages_lead_somewhere(page):
    text = page.read_text(encoding="utf-8")
    links = re.findall(r"\]\((?!https?://|#|mailto:)([^)#\s]+)", text)
    assert [link for link in links if not (page.parent / link).exists()] == []


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_links_into_pages_meet_a_heading(page):
    text = page.read_text(encoding="utf-8")
    for target, anchor in re.findall(r"\]\((?!https?://)([^)#\s]*)#([^)\s]+)\)", text):
        headings = re.findall(r"^#+ (.*)$", (page.parent / target).read_text("utf-8"), re.MULTILINE)
        assert anchor in {anchor_of(heading) for heading in headings}, f"{target}#{anchor}"


def anchor_of(heading):
    """Return the anchor that code hosts give to a heading."""
    return re.sub(r"[^\w\- ]", "", heading.lower()).replace(" ", "-")


def test_documented_make_targets_exist():
    makefile = (ROOT / "Makefile").read_text(encoding="utf-8")
    targets = set(re.findall(r"^([a-z]+):", makefile, re.MULTILINE))
    named = {
        target
        for page in PAGES
        for target in re.findall(r"[`$&] ?make ([a-z]+)", page.read_text(encoding="utf-8"))
    }
    assert named <= targets
    assert {"demo", "test", "check", "format", "clean"} <= targets


@pytest.mark.parametrize("page", [*PAGES, ROOT / "Makefile"], ids=lambda page: page.name)
def test_documented_commands_exist_with_their_options(page):
    for line in documented_commands(page.read_text(encoding="utf-8")):
        words = shlex.split(line)
        command = cli.main.commands.get(words[0])
        if isinstance(command, click.Group):
            command = command.commands.get(words[1])
        assert command, f"newsbeat {line}: there is no such command"
        options = {name for item in command.params for name in item.opts}
        given = {word.partition("=")[0] for word in words if word.startswith("--")}
        assert given - {"--help"} <= options, f"newsbeat {line}"


def documented_commands(text):
    """Return what is typed after ``newsbeat`` in code blocks and inline code, and by make demo."""
    typed = re.findall(r"^[$#] newsbeat ([a-z].*?)(?:\s+#.*)?$", text, re.MULTILINE)
    typed += re.findall(r"`newsbeat ([a-z][^`]*)`", text)
    typed += [
        f"demo {arguments}" for arguments in re.findall(r"make demo ARGS=\"?([^\"`\n]*)", text)
    ]
    return [re.split(r" [<>|] ", line)[0] for line in typed]


def test_the_documented_commands_are_found():
    commands = documented_commands(README)
    names = {line.split()[0] for line in commands}
    assert {"demo", "add", "poll", "up", "down", "status", "doctor", "sql"} <= names
    assert "demo --keep" in commands
    assert "add https://news.example/ --name example --timezone Europe/Moscow" in commands


def test_every_command_has_help_with_an_example():
    for name, command in cli.main.commands.items():
        assert "Example:" in (command.help or ""), name
        assert f"newsbeat {name}" in command.help, name


def test_the_settings_file_of_the_readme_is_accepted(tmp_path):
    line = re.search(r"^\$ printf '(.*)' > newsbeat.toml$", README, re.MULTILINE)
    text = line[1].replace("\\n", "\n")
    (tmp_path / "newsbeat.toml").write_text(text, encoding="utf-8")
    assert read_settings(tmp_path, {}).agent.contact == "you@example.org"
