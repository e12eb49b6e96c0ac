"""Keyword rules, read from ``data/keywords/*.toml``.

One file holds many rules, and what they have in common::

    [defaults]
    languages = ["en"]
    mode = "lemma"

    [[rule]]
    rule = "dam-failure"
    level = 1
    all = ["dam", ["break", "burst", "give way"]]
    near = 8

A wrong rule is left out and reported with its file, line, name and key; all the others
work. That holds for broken TOML too: a slip in one rule must not silence the rest.
"""

from __future__ import annotations

import re
import tomllib
from collections.abc import Mapping
from dataclasses import dataclass
from importlib import resources
from importlib.resources.abc import Traversable
from pathlib import Path
from typing import Any

from models.errors import ConfigError
from models.triage.matcher import Matcher
from models.triage.rules import KEYS, Rule, read_rule
from tasks.settings import Settings
from tasks.tomlfiles import Stamp, read_stamp, split_tables, syntax_problem

KEYWORDS = "keywords"

_KEY_LINE = re.compile(r"\s*([\w-]+)\s*=")


@dataclass(frozen=True, slots=True)
class Rulebook:
    """All rules that can be used, and what is wrong with the others.

    Attributes
    ----------
    rules
        In order of files, then of lines.
    problems
        One for each rule left out.
    place
        Folder or file they were read from.
    is_packaged
        Whether those are the rules that come with newsbeat.
    """

    rules: tuple[Rule, ...]
    problems: tuple[ConfigError, ...]
    place: str = ""
    is_packaged: bool = False

    def matcher(self) -> Matcher:
        """Return the rules made ready; thousands of them take a second or two."""
        return Matcher(self.rules)


def read_rulebook(settings: Settings | None = None, place: Path | None = None) -> Rulebook:
    """Return every valid rule, and every problem of the rest.

    Parameters
    ----------
    settings
        Name the user's own folder, ``data/keywords`` at home. Where it is missing, the
        rules that come with newsbeat are read; the two are never mixed.
    place
        A file or folder to read instead.

    Raises
    ------
    ConfigError
        If `place` does not exist.
    """
    own = place or (settings.keywords_folder if settings else None)
    if place is not None and not place.exists():
        raise ConfigError(str(place), "", None, "no such file or folder of keyword rules")
    found: Traversable = resources.files("data") / KEYWORDS
    is_packaged = own is None or not own.exists()
    if own is not None and not is_packaged:
        found = own
    rules: list[Rule] = []
    problems: list[ConfigError] = []
    for file in _files(found):
        good, wrong = _read_file(file)
        rules += good
        problems += wrong
    unique, repeated = _split_repeated(rules)
    return Rulebook(tuple(unique), (*problems, *repeated), str(found), is_packaged)


def rulebook_stamp(settings: Settings) -> Stamp:
    """Return what changes whenever somebody writes in the user's own rules; empty without any."""
    return read_stamp(lambda: _files(settings.keywords_folder))


def _files(place: Traversable) -> list[Traversable]:
    if place.is_file():
        return [place]
    if not place.is_dir():
        return []
    inside = sorted(place.iterdir(), key=lambda file: file.name)
    return [file for file in inside if file.name.endswith(".toml") and file.name[0] not in "._"]


def _read_file(file: Traversable) -> tuple[list[Rule], list[ConfigError]]:
    try:
        text = file.read_bytes().decode("utf-8-sig").replace("\r\n", "\n")
    except (OSError, UnicodeDecodeError) as error:
        return [], [ConfigError(str(file), "", None, f"not readable: {error}")]
    return read_text(str(file), text)


def read_text(file: str, text: str) -> tuple[list[Rule], list[ConfigError]]:
    """Return the rules of one keyword file, and what is wrong with the others.

    Parameters
    ----------
    file
        Its name, for messages.
    text
        What it holds.
    """
    rules: list[Rule] = []
    problems: list[ConfigError] = []
    defaults: Mapping[str, Any] = {}
    for line, chunk in split_tables(text, "rule"):
        if not chunk.strip():
            continue
        try:
            parsed = tomllib.loads(chunk)
        except tomllib.TOMLDecodeError as error:
            problems.append(syntax_problem(file, line, error, _whose(chunk)))
            continue
        given, tables, strays = parsed.pop("defaults", None), parsed.pop("rule", []), list(parsed)
        if given is not None:
            defaults, wrong = _read_defaults(file, line, given)
            problems += wrong
        for key in strays:
            allowed = "a file holds [[rule]] tables, and [defaults] before them"
            problems.append(ConfigError(f"{file}:{line}", key, parsed[key], allowed))
        if not isinstance(tables, list):
            allowed = "a rule begins with a line [[rule]], in two pairs of brackets"
            problems.append(ConfigError(f"{file}:{line}", "rule", "…", allowed))
            continue
        for table in tables:
            try:
                rules.append(read_rule({**defaults, **table}, _Places(file, line, chunk)))
            except ConfigError as error:
                problems.append(error)
    return rules, problems


@dataclass(frozen=True, slots=True)
class _Places:
    """Finds the line of a key in the part of a file that holds one rule."""

    file: str
    line: int
    chunk: str

    def __call__(self, key: str) -> str:
        """Return file and line."""
        for offset, line in enumerate(self.chunk.splitlines()):
            if (written := _KEY_LINE.match(line)) and written[1] == key:
                return f"{self.file}:{self.line + offset}"
        return f"{self.file}:{self.line}"


def _read_defaults(file: str, line: int, given: Any) -> tuple[Mapping[str, Any], list[ConfigError]]:
    allowed = tuple(key for key in KEYS if key not in ("rule", "any", "all"))
    if not isinstance(given, dict):
        return {}, [ConfigError(f"{file}:{line}", "defaults", given, "it must be a table")]
    problems = [
        ConfigError(f"{file}:{line}", f"defaults.{key}", given[key], f"keys: {', '.join(allowed)}")
        for key in given
        if key not in allowed
    ]
    return {key: value for key, value in given.items() if key in allowed}, problems


def _whose(chunk: str) -> str:
    """Return the name of a rule that cannot be read, as a message begins with it."""
    named = re.search(r'^\s*rule\s*=\s*"?([^"\n]+)', chunk, re.MULTILINE)
    return f"rule {named[1]}: " if named else ""


def _split_repeated(rules: list[Rule]) -> tuple[list[Rule], list[ConfigError]]:
    first: dict[str, Rule] = {}
    problems = []
    for rule in rules:
        known = first.setdefault(rule.rule, rule)
        if known is not rule:
            allowed = f"the name is taken by {known.place}"
            problems.append(ConfigError(rule.place, f"{rule.rule}.rule", rule.rule, allowed))
    return list(first.values()), problems
