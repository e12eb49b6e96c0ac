"""A saved search: which articles somebody wants to see, and how words are looked for."""

from __future__ import annotations

import dataclasses
import re
import typing
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from models.errors import ConfigError
from models.triage.words import is_unspaced

NAME = re.compile(r"[a-z0-9][a-z0-9-]{0,63}")

MOST_ITEMS, MOST_DAYS = 500, 366


@dataclass(frozen=True, slots=True)
class SavedSearch:
    """What somebody wants to see of the articles as they come in.

    All that is set must hold; what is left out holds for every article.

    Attributes
    ----------
    search
        Its name: lower-case letters, digits, dashes.
    any, all, none
        Words or phrases of title or text: one of them, every one, none of them. A star at
        the end stands for any ending.
    sources, tags, languages, rules
        One of them: names of sources, their tags, languages of the text, keyword rules that
        hit it.
    level
        A hit of that level or a more urgent one; 0 asks for none.
    days, limit
        How far back, and how many articles at most, the newest first.
    """

    search: str
    title: str = ""
    any: tuple[str, ...] = ()
    all: tuple[str, ...] = ()
    none: tuple[str, ...] = ()
    sources: tuple[str, ...] = ()
    tags: tuple[str, ...] = ()
    languages: tuple[str, ...] = ()
    rules: tuple[str, ...] = ()
    level: int = 0
    days: int = 30
    limit: int = 50

    @property
    def heading(self) -> str:
        """What it is called for people."""
        return self.title or self.search


BUILT_IN = (
    SavedSearch("all", "Everything that comes in"),
    SavedSearch("urgent", "Hits of the levels 1 and 2", level=2),
)
"""Searches that are there without being written down; one of the same name replaces them."""

_BOUNDS = {"level": (0, 5), "days": (1, MOST_DAYS), "limit": (1, MOST_ITEMS)}


def read_search(where: str, name: str, given: Any) -> SavedSearch:
    """Return the search that a table describes.

    Parameters
    ----------
    where
        File it stands in, for messages.

    Raises
    ------
    ConfigError
        If the name, a key or a value is not allowed.
    """
    if not NAME.fullmatch(name):
        allowed = "a search's name is lower-case letters, digits and dashes"
        raise ConfigError(where, name, name, allowed)
    if not isinstance(given, Mapping):
        raise ConfigError(where, name, given, "a search is a table: [name]")
    hints = typing.get_type_hints(SavedSearch)
    known = [item.name for item in dataclasses.fields(SavedSearch) if item.name != "search"]
    values: dict[str, Any] = {}
    for key, value in given.items():
        if key not in known:
            raise ConfigError(where, f"{name}.{key}", value, f"keys are {', '.join(known)}")
        values[key] = _convert(where, f"{name}.{key}", value, hints[key])
    return SavedSearch(name, **values)


def _convert(where: str, key: str, value: Any, wanted: Any) -> Any:
    if wanted is str:
        if not isinstance(value, str):
            raise ConfigError(where, key, value, "it must be text")
        return value
    if wanted is int:
        least, most = _BOUNDS[key.rpartition(".")[2]]
        if isinstance(value, bool) or not isinstance(value, int) or not least <= value <= most:
            raise ConfigError(where, key, value, f"it must be a number from {least} to {most}")
        return value
    texts = [value] if isinstance(value, str) else value
    if not isinstance(texts, list) or not all(isinstance(each, str) and each for each in texts):
        raise ConfigError(where, key, value, 'it must be a list of texts: ["tram", "bus*"]')
    return tuple(texts)


def pattern_of(term: str) -> str:
    r"""Return a regular expression (RE2) that finds a word or phrase, in any case of letters.

    Words end where letters and digits of any script do. What has letters of a script
    without blanks is found wherever it stands.

    Examples
    --------
    >>> pattern_of("tram line"), pattern_of("flood*"), pattern_of("港口")
    ('(?i)(^|[^\\pL\\pN])tram\\s+line($|[^\\pL\\pN])', '(?i)(^|[^\\pL\\pN])flood', '(?i)港口')
    """
    is_open = term.endswith("*")
    words = r"\s+".join(re.escape(word) for word in term.rstrip("*").split())
    if is_unspaced(term):
        return f"(?i){words}"
    ending = "" if is_open else r"($|[^\pL\pN])"
    return rf"(?i)(^|[^\pL\pN]){words}{ending}"
