"""Test suites of other feed parsers: their files, and what each says must come out.

What a suite says stands inside or beside its files:

- feedparser: a comment with an expression (``entries[0]['title'] == 'x'``), and the headers
  the file was answered with;
- gofeed, rss-parser, feed-rs: a JSON file beside the feed. Where it names several links of
  an entry that are all its page, each of them is right;
- feedvalidator: a comment that calls an element of an entry, or a whole feed, sound: what it
  holds, read strictly, is then the value. It says nothing of most files;
- feedjira: nothing in the collection. Its published specifications name values; their
  digests are in ``feedjira.json``, made by ``make_feedjira.py``.

The other collections hold files and no expectation.
"""

from __future__ import annotations

import ast
import html
import json
import re
import tarfile
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import dataclass, field
from email.utils import parsedate_to_datetime
from pathlib import Path
from typing import Any
from xml.etree import ElementTree as ET

from suites.readers import Answer
from suites.values import FEED, FIELDS, Digest, Either, Item, moment_of, plain

FOLDER = Path(__file__).parents[3] / "shared" / "data" / "C_feeds" / "feeds"
FEEDJIRA = Path(__file__).with_name("feedjira.json")
SUITES = (
    "feedparser", "gofeed", "rss-parser", "feed-rs", "feedjira", "feedvalidator", "rust-rss",
    "node-feedparser", "miniflux", "wechat-feeds",
)  # fmt: skip
BASE = "http://example.org/"
SERVED_AT = {"feedparser": "http://127.0.0.1:8097/"}
"""Where a suite serves its files from; its expectations name that address."""

Expected = dict[int, Item]
Files = dict[str, bytes]


@dataclass(frozen=True, slots=True)
class SuiteFile:
    """A file of a suite, and what the suite says of it: values by place and field."""

    path: str
    answer: Answer
    expected: Expected = field(default_factory=dict)


def read_suite(name: str) -> Iterator[SuiteFile]:
    """Yield the files of a suite, those that only hold expectations left out."""
    with tarfile.open(FOLDER / f"{name}.tar.xz", "r:xz") as archive:
        files = {
            member.name: content.read()
            for member in archive
            if member.isfile() and (content := archive.extractfile(member)) is not None
        }
    for path, body in files.items():
        if not _is_expectation(name, path):
            answer = _answer(name, path, body)
            expected = _expected(name, path, body, files)
            yield SuiteFile(path, answer, _asked(expected, body, answer.base))


def _is_expectation(name: str, path: str) -> bool:
    """Return whether a file says what another one holds."""
    if name == "gofeed":
        is_feed_in_json = "/json/" in path and not path.endswith("_expected.json")
        return path.endswith(".json") and not is_feed_in_json
    return path.endswith(".serde.json") or (name == "rss-parser" and path.startswith("output/"))


def _answer(name: str, path: str, body: bytes) -> Answer:
    headers = _told_headers(body) if name == "feedparser" else {}
    served_at = SERVED_AT.get(name, BASE)
    base = headers.get("content-location", "")
    return Answer(body, base if base.startswith("http") else served_at + path, headers)


def _told_headers(body: bytes) -> dict[str, str]:
    comment = body[:2000].partition(b"-->")[0]
    lines = re.findall(rb"^Header:\s*([\w-]+):[ \t]*(.*?)\s*$", comment, re.MULTILINE)
    return {name.decode().lower(): value.decode("latin-1") for name, value in lines}


def _expected(name: str, path: str, body: bytes, files: Files) -> Expected:
    stem, _, ending = path.rpartition(".")
    if name == "feedparser":
        return _in_expression(body)
    if name == "feedvalidator":
        return _in_verdict(body)
    if name == "feedjira":
        return _in_digests(path)
    beside = {
        "gofeed": f"{stem}_expected.json" if ending == "json" else f"{stem}.json",
        "rss-parser": f"output/{Path(stem).name}.json",
        "feed-rs": f"{stem}.serde.json",
    }.get(name)
    told = _in_json(files[beside]) if beside in files else {}
    return _without_made_up_ids(told, body) if name == "feed-rs" else told


def _without_made_up_ids(told: Expected, body: bytes) -> Expected:
    """Leave out identifiers that stand nowhere in the file: feed-rs makes them where none is."""
    text = html.unescape(body.decode("utf-8", "replace"))
    return {
        place: {key: value for key, value in item.items() if key != "id" or str(value) in text}
        for place, item in told.items()
    }


def _asked(expected: Expected, body: bytes, base: str) -> Expected:
    """Return what can be asked of a parser: values that say something, and stand in the file."""
    originals = _originals(body)
    asked: Expected = {}
    for place, item in expected.items():
        for name, value in item.items():
            if name not in FIELDS or value in (None, "") or not plain(str(value)):
                continue  # A title that is a picture says nothing.
            if name == "link" and value in originals:
                value = Either((value, originals[value]))  # noqa: PLW2901
            asked.setdefault(place, {})[name] = value
    return asked


def _originals(body: bytes) -> dict[str, str]:
    """Return the original address of each link that the same entry names beside it."""
    found = {}
    text = body.decode("utf-8", "replace")
    if "origLink" in text:
        for entry in re.findall(r"<(?:item|entry)\b.*?</(?:item|entry)>", text, re.DOTALL):
            original = re.search(r"origLink>\s*(.*?)\s*<", entry)
            links = re.findall(r"<link>\s*(.*?)\s*</link>|<link\b[^>]*href=[\"'](.*?)[\"']", entry)
            for link in (one or other for one, other in links if original):
                found[link] = original[1] if original else ""
    return found


# --- feedparser -------------------------------------------------------------------------

_NAMES = {"published_parsed": "date", "updated_parsed": "date", "guid": "id"}


def _in_expression(body: bytes) -> Expected:
    """Return what a comment of feedparser's says: ``entries[0]['title'] == 'x'``."""
    found = re.search(rb"Expect:\s*(.*?)\s*(?:-->|\n\s*\n)", body, re.DOTALL)
    items: Expected = {}
    with suppress(SyntaxError, UnicodeDecodeError):
        tree = ast.parse(found.group(1).decode() if found else "None", mode="eval")
        for node in ast.walk(tree):
            if isinstance(node, ast.Compare) and isinstance(node.ops[0], ast.Eq):
                with suppress(ValueError):
                    _note(items, _steps(node.left), ast.literal_eval(node.comparators[0]))
    return items


def _steps(node: ast.expr) -> list[Any]:
    """Return ``["entries", 0, "title"]`` for the expression that says so."""
    if isinstance(node, ast.Subscript) and isinstance(node.slice, ast.Constant):
        return [*_steps(node.value), node.slice.value]
    if isinstance(node, ast.Attribute):
        return [*_steps(node.value), node.attr]
    return [node.id] if isinstance(node, ast.Name) else []


def _note(items: Expected, steps: list[Any], value: Any) -> None:
    match steps:
        case ["feed", "title"] | ["feed", "title_detail", "value"]:
            items.setdefault(FEED, {})["title"] = value
        case ["entries", int(place), "title_detail", "value"]:
            items.setdefault(place, {})["title"] = value
        case ["entries", int(place), "author_detail", "name"] | [
            "entries", int(place), "authors", 0, "name"
        ]:  # fmt: skip
            items.setdefault(place, {})["author"] = value
        case ["entries", int(place), str(name)]:
            name = _NAMES.get(name, name)
            value = moment_of(value) if name == "date" else value
            items.setdefault(place, {})[name] = value


# --- JSON beside the feed ---------------------------------------------------------------


def _in_json(text: bytes) -> Expected:
    """Return what a JSON file says: gofeed's, rss-parser's and feed-rs's are much alike."""
    try:
        told = json.loads(text)
    except ValueError:
        return {}
    told = told.get("feed", told)
    rows = told.get("items") or told.get("entries") or []
    items = {place: _item_in_json(row) for place, row in enumerate(rows)}
    return items | {FEED: {"title": _text_of(told.get("title"))}}


def _item_in_json(row: Item) -> Item:
    guid = row.get("guid") or row.get("id")
    dates = ("publishedParsed", "pubDateParsed", "isoDate", "published", "updatedParsed", "updated")
    moments = (moment_of(row[name]) for name in dates if isinstance(row.get(name), str))
    return {
        "title": _text_of(row.get("title")),
        "link": _link_of(row),
        "id": guid.get("value") if isinstance(guid, dict) else guid,
        "date": next((at for at in moments if at), None),
        "author": _author_of(row),
    }


def _text_of(value: Any) -> Any:
    return value.get("content") if isinstance(value, dict) else value


def _link_of(row: Item) -> Any:
    if isinstance(row.get("link"), str):
        several = [link for link in row.get("links") or () if isinstance(link, str)]
        return Either((row["link"], *several)) if several else row["link"]
    links = [link for link in row.get("links") or () if isinstance(link, dict)]
    pages = [link for link in links if link.get("rel") in (None, "", "alternate")]
    return pages[0].get("href") if pages else None


def _author_of(row: Item) -> Any:
    people = row.get("authors") or ()
    author = row.get("author") or row.get("creator") or row.get("dc:creator")
    author = author or next((one for one in people if one), None)
    return author.get("name") if isinstance(author, dict) else author


# --- feedvalidator ----------------------------------------------------------------------

_VERDICT = re.compile(
    r"Expect:\s*(?:(?P<all>!Error\b)|ValidHttpGUID|(?:Valid|!(?!Valid|Missing))\w*"
    r"\{parent:(?:item|entry),element:(?P<element>[\w:]+)\})"
)
_ELEMENTS = {
    "title": "title", "link": "link", "guid": "id", "id": "id", "published": "date",
    "pubDate": "date", "dc:date": "date", "updated": "date",
}  # fmt: skip
"""What elements of an entry say; of several dates the first named here counts."""

_DUBLIN_CORE = "http://purl.org/dc/elements/1.1/"


def _in_verdict(body: bytes) -> Expected:
    """Return the values of what a comment of feedvalidator's calls sound: an element, or all."""
    found = _VERDICT.search(body[:3000].decode("utf-8", "replace"))
    if found is None:
        return {}
    elements = list(_ELEMENTS) if found["all"] else [found["element"] or "guid"]
    try:
        root = ET.fromstring(body)
    except ET.ParseError:
        return {}
    entries = [node for node in root.iter() if _bare(node) in ("item", "entry")]
    return {place: _sound_values(entry, elements) for place, entry in enumerate(entries)}


def _sound_values(entry: ET.Element, elements: list[str]) -> Item:
    values: Item = {}
    for element in elements:
        kind, name = _ELEMENTS.get(element, ""), element.rpartition(":")[2]
        space = _DUBLIN_CORE if element.startswith("dc:") else entry.tag.rpartition("}")[0][1:]
        named = [node for node in entry if node.tag == (f"{{{space}}}{name}" if space else name)]
        texts = ["".join(node.itertext()).strip() for node in named]
        if kind and len(texts) == 1 and texts[0]:
            value = _strict_moment(texts[0]) if kind == "date" else texts[0]
            values.setdefault(kind, value)
    return values


def _bare(node: ET.Element) -> str:
    return node.tag.rpartition("}")[2]


def _strict_moment(text: str) -> Any:
    with suppress(ValueError, TypeError):
        return moment_of(text) or parsedate_to_datetime(text)
    return None


# --- feedjira ---------------------------------------------------------------------------


def _in_digests(path: str) -> Expected:
    told = json.loads(FEEDJIRA.read_text(encoding="utf-8")) if FEEDJIRA.exists() else {}
    return {
        int(place): {name: Digest(digest) for name, digest in item.items()}
        for place, item in told.get(path, {}).items()
    }
