"""Saved searches, read from ``data/searches.toml`` in the home folder: a table for each."""

from __future__ import annotations

import tomllib

from models.errors import ConfigError
from models.search import BUILT_IN, SavedSearch, read_search
from tasks.settings import Settings

FILE = "searches.toml"


def read_searches(settings: Settings) -> tuple[dict[str, SavedSearch], list[ConfigError]]:
    """Return the searches there are, by name, and what is wrong with the others.

    Those that come with newsbeat are among them.
    """
    path = settings.home / "data" / FILE
    found = {search.search: search for search in BUILT_IN}
    try:
        tables = tomllib.loads(path.read_text(encoding="utf-8-sig"))
    except FileNotFoundError:
        return found, []
    except (tomllib.TOMLDecodeError, UnicodeDecodeError, OSError) as error:
        return found, [ConfigError(str(path), "", None, f"not readable as TOML: {error}")]
    problems = []
    for name, table in tables.items():
        try:
            found[name] = read_search(str(path), name, table)
        except ConfigError as problem:
            problems.append(problem)
    return found, problems
