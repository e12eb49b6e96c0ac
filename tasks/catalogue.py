"""The catalogue: the sources to watch, read from ``data/sources/*.toml``.

One file holds one source at its top level, or many as ``[[source]]``::

    [[source]]
    source = "example-news"
    title = "Example News"
    url = "https://news.example/rss.xml"
    kind = "feed"
    language = "en"
    timezone = "Europe/London"
    country = "GB"
    tags = ["world"]

    [source.poll]
    min_interval_s = 120

A wrong entry is left out and reported with its file, line, key and value; all the
others load. That holds for broken TOML too: a slip in one entry must not silence
the rest of its file.
"""

from __future__ import annotations

import dataclasses
import difflib
import fcntl
import math
import os
import re
import tempfile
import tomllib
import typing
import zoneinfo
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from functools import cache
from importlib import resources
from importlib.resources.abc import Traversable
from pathlib import Path
from typing import Any, Literal

import ada_url
import tomlkit
from selectolax.lexbor import LexborHTMLParser, SelectolaxError

from models.errors import ConfigError
from models.identity import url_key
from models.intensity.estimator import ESTIMATORS
from models.kinds import POSTS, as_polled, public_address
from models.polling.choice import POLICIES
from models.records import ExtractRules, HttpRules, Kind, ListRules, PollRules, Source
from tasks.settings import Settings, convert_value
from tasks.tomlfiles import Stamp, read_stamp, split_tables, syntax_problem

ADDED_FILE = "added.toml"
IMPORTED_FILE = "imported.toml"

MOST_ENTRIES = 100_000

_ESTIMATORS = ("auto", *ESTIMATORS)

LONGEST_SPAN_S = 366 * 86_400.0

_TABLE_LINE = re.compile(r"\s*\[+\s*(?:source\s*\.\s*)?([\w.-]+)\s*\]+")
_KEY_LINE = re.compile(r"\s*([\w.-]+)\s*=")


@dataclass(frozen=True, slots=True)
class Catalogue:
    """All sources that can be watched, and what is wrong with the others.

    Attributes
    ----------
    sources
        In order of files, then of lines.
    problems
        One per wrong key; the entries they stand in are left out of `sources`.
    warnings
        About entries that did load, such as one address listed twice.
    folder
        Where it was read from.
    is_packaged
        Whether that is the catalogue that comes with newsbeat.
    """

    sources: tuple[Source, ...]
    problems: tuple[ConfigError, ...]
    warnings: tuple[ConfigError, ...] = ()
    folder: str = ""
    is_packaged: bool = False


def catalogue_folder(folder: Path | None) -> Traversable:
    """Return `folder` where it exists, and the catalogue that comes with newsbeat otherwise."""
    if folder is not None and folder.is_dir():
        return folder
    return resources.files("data") / "sources"


def read_catalogue(folder: Settings | Path | None = None) -> Catalogue:
    """Return every valid source of a catalogue folder, and every problem of the rest.

    Parameters
    ----------
    folder
        Folder of the user's own catalogue, or the settings that name it. Where it is
        None or missing, the catalogue that comes with newsbeat is read. The two are
        never mixed: what runs is what one folder says.
    """
    own = folder.sources_folder if isinstance(folder, Settings) else folder
    place = catalogue_folder(own)
    problems: list[ConfigError] = []
    sources: list[Source] = []
    for file in _catalogue_files(place):
        found, wrong = _read_file(file)
        sources += found
        problems += wrong
    unique, repeated = _split_repeated_names(sources)
    return Catalogue(
        sources=tuple(_without_lines(unique)),
        problems=(*problems, *repeated),
        warnings=tuple(_repeated_addresses(unique)),
        folder=str(place),
        is_packaged=place is not own,
    )


def catalogue_stamp(settings: Settings) -> Stamp:
    """Return what changes whenever somebody writes in the user's own catalogue.

    Costs a look at the folder, not a reading. Empty where the folder is missing.
    """
    return read_stamp(lambda: _catalogue_files(settings.sources_folder))


def write_source(folder: Path, source: Source) -> Path:
    """Append `source` to ``added.toml`` of a catalogue folder, and return that file.

    As `write_sources` does.
    """
    return write_sources(folder, [source], ADDED_FILE)


def write_sources(folder: Path, sources: Sequence[Source], name: str) -> Path:
    """Append sources to a file of a catalogue folder, and return that file.

    What people wrote in the file, comments too, stays as it is. The new text takes the
    place of the old in one step, so a crash leaves one or the other whole.

    Parameters
    ----------
    folder
        Catalogue folder; made where missing.
    sources
        At least one.
    name
        Of the file.

    Raises
    ------
    ConfigError
        If a source is not valid, its name is taken, or the file cannot take it. The file
        is then untouched.
    """
    path = folder / name
    if not folder.is_dir():
        # An empty folder would silence the catalogue that comes with newsbeat.
        _check_written(path, _appended(path, sources), sources)
    try:
        folder.mkdir(parents=True, exist_ok=True)
        with _only_writer(folder):
            _check_names_free(folder, sources)
            text = _appended(path, sources)
            _check_written(path, text, sources)
            _replace(path.resolve(), text)
    except OSError as error:
        allowed = f"nothing was added, the file cannot be written: {error.strerror}"
        raise ConfigError(str(path), "", None, allowed) from error
    return path


# Sources as the cells of a table


def source_from_texts(texts: Mapping[str, str], tags: Sequence[str], where: str) -> Source:
    """Return the source whose keys are given as text, those of its tables dotted.

    Parameters
    ----------
    texts
        Keys that no catalogue entry has are passed over.
    where
        File and line, for errors.

    Raises
    ------
    ConfigError
        If a value is not allowed.
    """
    entry: dict[str, Any] = {"tags": list(tags)} if tags else {}
    for key, text in texts.items():
        if key not in TEXT_KEYS:
            continue
        table, _, inner = key.rpartition(".")
        place = entry.setdefault(table, {}) if table else entry
        place[inner] = _from_text(key, text, where)
    reader = _EntryReader(where, 1, [])
    source = reader.read(entry, [])
    if source is None:
        first = reader.problems[0]
        raise ConfigError(where, first.key, first.value, first.allowed)
    return replace(source, file=where)


def check_timezone(timezone: str | None) -> None:
    """Check a zone that is given on the command line.

    Raises
    ------
    ConfigError
        If there is none of that name.
    """
    allowed = _check_timezone(timezone) if timezone else ""
    if allowed:
        raise ConfigError("--timezone", "timezone", timezone, allowed)


def is_name(text: str) -> bool:
    """Tell whether `text` may be the name of a source."""
    return not _CHECKS["source"](text)


def check_name(name: str) -> None:
    """Check a name that was given on the command line.

    Raises
    ------
    ConfigError
        If it may not be the name of a source.
    """
    if fault := _CHECKS["source"](name):
        raise ConfigError("--name", "source", name, fault)


def _from_text(key: str, text: str, where: str) -> Any:
    wanted = TEXT_KEYS[key]
    if wanted is bool:
        if text.lower() not in {"true", "false"}:
            raise ConfigError(where, key, text, "it is true or false")
        return text.lower() == "true"
    if wanted is float:
        try:
            return float(text)
        except ValueError as error:
            raise ConfigError(where, key, text, "it must be a number") from error
    return text


def source_texts(source: Source) -> dict[str, str]:
    """Return what differs from the defaults of a source, as `source_from_texts` reads it.

    Examples
    --------
    >>> source_texts(Source("a-b", "A", "https://a.example/", tags=("x", "y"), weight=2.0))
    {'source': 'a-b', 'title': 'A', 'url': 'https://a.example/', 'tags': 'x;y', 'weight': '2'}
    """
    texts = {}
    for key, value in _changed(source).items():
        inner = value if isinstance(value, dict) else {"": value}
        for name, each in inner.items():
            texts[f"{key}.{name}".rstrip(".")] = _as_text(each)
    return texts


def _as_text(value: Any) -> str:
    if isinstance(value, list):
        return ";".join(value)
    if isinstance(value, bool):
        return "true" if value else "false"
    return f"{value:.12g}" if isinstance(value, float) else str(value)


# Reading


def _catalogue_files(place: Traversable) -> list[Traversable]:
    files = [file for file in place.iterdir() if file.name.endswith(".toml")]
    return sorted(
        (file for file in files if not file.name.startswith(".")), key=lambda file: file.name
    )


def _read_file(file: Traversable) -> tuple[list[Source], list[ConfigError]]:
    try:
        text = file.read_bytes().decode("utf-8-sig")
    except OSError as error:
        return [], [ConfigError(str(file), "", None, f"not readable: {error.strerror}")]
    except UnicodeDecodeError as error:
        return [], [ConfigError(str(file), "", None, f"must be UTF-8 text: {error}")]
    return _read_text(str(file), text)


def _read_text(file: str, text: str) -> tuple[list[Source], list[ConfigError]]:
    """Return the sources of one file, each ``file`` with its line, and what is wrong."""
    sources: list[Source] = []
    problems: list[ConfigError] = []
    for line, chunk in split_tables(text.replace("\r\n", "\n"), "source"):
        try:
            parsed = tomllib.loads(chunk)
        except tomllib.TOMLDecodeError as error:
            problems.append(syntax_problem(file, line, error))
            continue
        for table, strays in _tables(parsed):
            reader = _EntryReader(file, line, chunk.split("\n"))
            source = reader.read(table, strays)
            problems += reader.problems
            if source is not None:
                sources.append(source)
    return sources, problems


def _tables(parsed: dict[str, Any]) -> list[tuple[dict[str, Any], list[str]]]:
    """Return the entries of one parsed chunk, each with the keys that stand outside of it."""
    many = parsed.get("source")
    if not isinstance(many, list) or not all(isinstance(table, dict) for table in many):
        return [(parsed, [])] if parsed else []
    strays = [key for key in parsed if key != "source"]
    return [(table, strays) for table in many]


_POSTED_AT: dict[Kind, str] = {
    "telegram": "a channel is https://t.me/NAME; what needs an invitation cannot be read",
    "mastodon": "a profile is https://HOST/@NAME",
    "bluesky": "a profile is https://bsky.app/profile/NAME",
    "reddit": "a board is https://www.reddit.com/r/NAME, a person's posts are at /user/NAME",
    "youtube": "a channel is https://www.youtube.com/channel/ID; `newsbeat add` finds an @NAME's",
}

_HINTS: dict[Any, dict[str, Any]] = {
    kind: {key: hint for key, hint in typing.get_type_hints(kind).items() if key != "file"}
    for kind in (Source, PollRules, ListRules, ExtractRules, HttpRules)
}


def _bare_hint(hint: Any) -> Any:
    """Return the type a key's text is read as; whatever is no number or flag is text."""
    kinds = typing.get_args(hint) or (hint,)
    return next((kind for kind in (bool, float) if kind in kinds), str)


TEXT_KEYS: dict[str, Any] = {
    **{
        key: _bare_hint(hint)
        for key, hint in _HINTS[Source].items()
        if hint not in _HINTS and key != "tags"
    },
    **{
        f"{table}.{key}": _bare_hint(hint)
        for table, kind in _HINTS[Source].items()
        if kind in _HINTS
        for key, hint in _HINTS[kind].items()
    },
}
"""Every key of an entry but its tags, dotted, and what its text is read as."""


class _EntryReader:
    """Reads one entry, gathering every problem instead of stopping at the first."""

    def __init__(self, file: str, first_line: int, lines: list[str]) -> None:
        self.file = file
        self.first_line = first_line
        self.lines = lines
        self.problems: list[ConfigError] = []

    def read(self, table: Mapping[str, Any], strays: list[str]) -> Source | None:
        """Return the source, or None where anything in it is wrong."""
        for key in strays:
            self._wrong(key, "…", f"below [[source]] a table is written [source.{key}]")
        values = self._values(Source, table, "")
        for key in ("source", "url"):
            if key not in table:
                self._wrong(key, None, "every source needs one")
        self._check_kind(values)
        if self.problems:
            return None
        values.setdefault("title", values["source"])
        values["poll"] = self._poll_rules(values.get("poll", PollRules()), table.get("poll", {}))
        values["file"] = f"{self.file}:{self.first_line}"
        return None if self.problems else Source(**values)

    def _check_kind(self, values: Mapping[str, Any]) -> None:
        kind, url = values.get("kind", "auto"), values.get("url")
        if kind in POSTS and url and public_address(kind, url) is None:
            allowed = f"no public {kind} listing follows from it; {_POSTED_AT[kind]}"
            self._wrong("url", url, allowed)

    def _values(self, kind: type[Any], table: Mapping[str, Any], prefix: str) -> dict[str, Any]:
        wanted = _HINTS[kind]
        values: dict[str, Any] = {}
        for key, value in table.items():
            if key not in wanted:
                self._wrong(prefix + key, value, _unknown(key, list(wanted)))
                continue
            try:
                values[key] = self._value(prefix + key, value, wanted[key])
            except ConfigError as error:
                self._wrong(error.key, error.value, error.allowed)
        return values

    def _value(self, key: str, value: Any, wanted: Any) -> Any:
        if isinstance(wanted, type) and dataclasses.is_dataclass(wanted):
            if not isinstance(value, dict):
                raise ConfigError(self.file, key, value, f"it must be a table, [source.{key}]")
            return wanted(**self._values(wanted, value, f"{key}."))
        converted = _converted(key, value, wanted)
        check = _CHECKS.get(key)
        allowed = check(converted) if check else ""
        if allowed:
            raise ConfigError(self.file, key, value, allowed)
        return converted

    def _poll_rules(self, rules: PollRules, given: Mapping[str, Any]) -> PollRules:
        low, high = rules.min_interval_s, rules.max_interval_s
        if low > high:
            self._wrong("poll.min_interval_s", low, f"it must be at most max_interval_s, {high:g}")
        elif "interval_s" not in given:
            return replace(rules, interval_s=min(max(rules.interval_s, low), high))
        elif not low <= rules.interval_s <= high:
            allowed = f"it must be from min_interval_s, {low:g}, to max_interval_s, {high:g}"
            self._wrong("poll.interval_s", rules.interval_s, allowed)
        return rules

    def _wrong(self, key: str, value: object, allowed: str) -> None:
        where = f"{self.file}:{self.first_line + self._offset(key)}"
        self.problems.append(ConfigError(where, key, value, allowed))

    def _offset(self, key: str) -> int:
        """Return the line of `key` in the entry, counted from 0; 0 where it is not to be seen."""
        table = ""
        for offset, line in enumerate(self.lines):
            if header := _TABLE_LINE.match(line):
                table = "" if header[1] == "source" else f"{header[1]}."
                if table == f"{key}.":
                    return offset
            elif (written := _KEY_LINE.match(line)) and table + written[1] == key:
                return offset
        return 0


def _converted(key: str, value: Any, wanted: Any) -> Any:
    if typing.get_origin(wanted) is Literal:
        choices = typing.get_args(wanted)
        if value not in choices:
            raise ConfigError("", key, value, f"it is one of {', '.join(choices)}")
        return value
    if typing.get_origin(wanted) is tuple:
        if not isinstance(value, list) or not all(isinstance(item, str) for item in value):
            raise ConfigError("", key, value, 'it must be a list of texts, such as ["world"]')
        return tuple(item.strip() for item in value)
    if isinstance(value, str) and wanted in (float, int, bool):
        raise ConfigError("", key, value, "write it without quotation marks")
    converted = convert_value("", key, value, wanted)
    return converted.strip() if isinstance(converted, str) else converted


def _unknown(key: str, known: list[str]) -> str:
    return _suggestion(key, known) or f"there is no such key; keys are {', '.join(known)}"


def _suggestion(word: str, known: list[str]) -> str:
    near = difflib.get_close_matches(word, known, n=1, cutoff=0.6)
    return f"did you mean {near[0]}?" if near else ""


# What a value must be: each check returns what is allowed, "" where the value is


def _check_pattern(pattern: str, allowed: str) -> Callable[[str], str]:
    compiled = re.compile(pattern)
    return lambda text: "" if compiled.fullmatch(text) else allowed


def _check_positive(number: float) -> str:
    return "" if math.isfinite(number) and number > 0 else "it must be a number above 0"


def _check_span(number: float) -> str:
    allowed = "it must be a number above 0, of at most a year in seconds"
    return "" if math.isfinite(number) and 0 < number <= LONGEST_SPAN_S else allowed


def _check_not_negative(number: float) -> str:
    is_so = math.isfinite(number) and 0 <= number <= LONGEST_SPAN_S
    return "" if is_so else "it must be 0 or more, and at most a year in seconds"


_WEB_ADDRESS = re.compile(r"https?://[^/\x00-\x20\x7f<>\"][^\x00-\x20\x7f<>\"]*", re.IGNORECASE)


def _check_address(url: str) -> str:
    allowed = "it must be a whole address, such as https://news.example/rss.xml"
    try:
        parsed = ada_url.URL(url)
    except ValueError:
        return allowed
    is_web = parsed.protocol in {"http:", "https:"} and parsed.hostname
    return "" if is_web and _WEB_ADDRESS.fullmatch(url.strip()) else allowed


def _check_timezone(name: str) -> str:
    names = _timezones()
    if name in names:
        return ""
    near = _suggestion(name, sorted(names)) or "such as Europe/Moscow"
    return f"it must be a time zone of the IANA database; {near}"


@cache
def _timezones() -> frozenset[str]:
    return frozenset(zoneinfo.available_timezones())


def _check_tags(tags: tuple[str, ...]) -> str:
    allowed = "tags are up to 40 letters, digits, '-', '_' and '.', without spaces"
    if not all(re.fullmatch(r"\w[\w.-]{0,39}", tag) for tag in tags):
        return allowed
    return "" if len(set(tags)) == len(tags) else "each tag stands once"


def _check_selector(selector: str) -> str:
    try:
        LexborHTMLParser("<p>").css(selector)
    except SelectolaxError:
        return "it must be a CSS selector, such as 'main h2 > a'"
    return ""


def _check_regex(pattern: str) -> str:
    try:
        re.compile(pattern)
    except re.error as error:
        return f"it must be a regular expression: {error}"
    return ""


def _check_estimator(name: str) -> str:
    return "" if name in _ESTIMATORS else f"estimators are {', '.join(_ESTIMATORS)}"


def _check_count(number: int) -> str:
    return "" if 1 <= number <= MOST_ENTRIES else f"it must be from 1 to {MOST_ENTRIES:,}"


def _check_policy(name: str) -> str:
    return "" if name in POLICIES else f"policies are {', '.join(POLICIES)}"


_CHECKS: dict[str, Callable[[Any], str]] = {
    "source": _check_pattern(
        r"[a-z0-9][a-z0-9-]{1,62}",
        "a name is 2 to 63 lower-case letters, digits and dashes, and starts with no dash",
    ),
    "title": _check_pattern(
        r"[^\x00-\x1f\x7f]{1,200}", "a title is one line of up to 200 characters"
    ),
    "url": _check_address,
    "language": _check_pattern(
        r"[a-z]{2,3}(-[A-Za-z0-9]{2,8})*", "it must be a language code, such as ru or zh-Hans"
    ),
    "timezone": _check_timezone,
    "country": _check_pattern(r"[A-Z]{2}", "it must be a country code of two capitals, such as RU"),
    "tags": _check_tags,
    "weight": _check_positive,
    "max_entries": _check_count,
    "poll.policy": _check_policy,
    "poll.estimator": _check_estimator,
    "poll.interval_s": _check_span,
    "poll.min_interval_s": _check_span,
    "poll.max_interval_s": _check_span,
    "poll.target_lag_s": _check_span,
    "list.links": _check_selector,
    "list.url_pattern": _check_regex,
    "list.date": _check_selector,
    "extract.title": _check_selector,
    "extract.text": _check_selector,
    "extract.date": _check_selector,
    "http.connect_to": _check_pattern(
        r"[^\s/:]+:\d{1,5}|\[[0-9a-fA-F:]+\]:\d{1,5}", "it must be host:port"
    ),
    "http.min_gap_s": _check_not_negative,
}


# Between entries


def _split_repeated_names(sources: list[Source]) -> tuple[list[Source], list[ConfigError]]:
    first: dict[str, Source] = {}
    problems = []
    for source in sources:
        known = first.setdefault(source.source, source)
        if known is not source:
            allowed = f"the name is taken by {known.file}"
            problems.append(ConfigError(source.file, "source", source.source, allowed))
    return list(first.values()), problems


def _repeated_addresses(sources: list[Source]) -> Iterator[ConfigError]:
    first: dict[str, Source] = {}
    for source in sources:
        known = first.setdefault(url_key(as_polled(source).url), source)
        if known is not source:
            allowed = f"{known.source} ({known.file}) has the same address: it is asked twice"
            yield ConfigError(source.file, "url", source.url, allowed)


def _without_lines(sources: list[Source]) -> Iterator[Source]:
    for source in sources:
        yield replace(source, file=source.file.rpartition(":")[0])


# Writing


@contextmanager
def _only_writer(folder: Path) -> Iterator[None]:
    """Hold `folder` against a second writer, in this process or another."""
    handle = os.open(folder, os.O_RDONLY)
    try:
        fcntl.flock(handle, fcntl.LOCK_EX)
        yield
    finally:
        os.close(handle)


def _check_names_free(folder: Path, sources: Sequence[Source]) -> None:
    names = {source.source for source in sources}
    for known in read_catalogue(folder).sources:
        if known.source in names:
            allowed = "a source of this name is there already"
            raise ConfigError(known.file, "source", known.source, allowed)


def _appended(path: Path, sources: Sequence[Source]) -> str:
    try:
        text = path.read_text(encoding="utf-8-sig") if path.exists() else _HEADERS[path.name]
        document = tomllib.loads(text)
    except (UnicodeDecodeError, tomllib.TOMLDecodeError) as error:
        allowed = f"nothing was added, as the file is not readable as TOML: {error}"
        raise ConfigError(str(path), "", None, allowed) from error
    if not isinstance(document.get("source", []), list):
        allowed = "nothing was added: start its source with a line [[source]] to make room for more"
        raise ConfigError(str(path), "", None, allowed)
    return "\n\n".join([text.rstrip(), *(_spell(source).rstrip() for source in sources)]) + "\n"


_HEADERS = {
    ADDED_FILE: "# Sources added with `newsbeat add`. Yours to edit.\n",
    IMPORTED_FILE: "# Sources that came with `newsbeat import`. Yours to edit.\n",
}


def _spell(source: Source) -> str:
    """Return `source` as the TOML of one ``[[source]]``, without what is as by default."""
    table = tomlkit.table()
    table.update(_changed(source))
    tables = tomlkit.aot()
    tables.append(table)
    document = tomlkit.document()
    document.append("source", tables)
    return tomlkit.dumps(document)


def _changed(record: Any) -> dict[str, Any]:
    """Return the fields of a record that differ from their defaults, plain values first."""
    plain: dict[str, Any] = {}
    nested: dict[str, Any] = {}
    for item in dataclasses.fields(record):
        value = getattr(record, item.name)
        if dataclasses.is_dataclass(value):
            if inner := _changed(value):
                nested[item.name] = inner
        elif item.name != "file" and value is not None and value != item.default:
            plain[item.name] = list(value) if isinstance(value, tuple) else value
    return plain | nested


def _check_written(path: Path, text: str, sources: Sequence[Source]) -> None:
    """Raise unless the file, as it would be, holds `sources` and all it held before."""
    read, problems = _read_text(str(path), text)
    added = [source.source for source in read[len(read) - len(sources) :]]
    if added != [source.source for source in sources]:
        raise problems[-1] if problems else ConfigError(str(path), "", None, "nothing was added")


def _replace(path: Path, text: str) -> None:
    handle, name = tempfile.mkstemp(dir=path.parent, prefix=".added-", suffix=".new")
    try:
        with os.fdopen(handle, "w", encoding="utf-8") as file:
            file.write(text)
            file.flush()
            os.fsync(file.fileno())
        Path(name).chmod(path.stat().st_mode & 0o777 if path.exists() else 0o644)
        Path(name).replace(path)
    except BaseException:
        Path(name).unlink(missing_ok=True)
        raise
