"""Measure the feed parser on corpora that bring their own expectations.

``python benchmarks/corpus.py [--show-wrong N]``

Ours, feedparser and fastfeedparser (``pip install fastfeedparser``; left out where it is not
there) read the same files in one run. Per corpus: the share of files read, of those in which
any of the three finds an entry; and where the corpus says what a title, link, identifier,
date or author must be, the share of these that came out right. Needs the shared collection.
"""

from __future__ import annotations

import ast
import html
import json
import re
import sys
import tarfile
import warnings
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import suppress
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import click
import feedparser

sys.path.insert(0, str(Path(__file__).parent))

from rig import markdown_table

from models.errors import ParseError
from models.plaintext import absolute_url
from tasks.feeds import parse_feed

FOLDER = Path(__file__).parents[2] / "shared" / "data" / "C_feeds" / "feeds"
CORPORA = (
    "feedparser", "gofeed", "rss-parser", "feed-rs", "feedjira", "feedvalidator", "rust-rss",
    "node-feedparser", "wechat-feeds",
)  # fmt: skip
BASE = "http://example.org/"
NOW = datetime(2026, 6, 1, tzinfo=UTC)
FIELDS = ("title", "link", "id", "date", "author")

Item = dict[str, Any]
Parser = Callable[[bytes], list[Item]]


def read_with_ours(body: bytes) -> list[Item]:
    """Return the entries as `parse_feed` has them, those without an address too."""
    with suppress(ParseError):
        listing = parse_feed(body, url=BASE, now=NOW, keep_unaddressed=True)
        return [
            {
                "title": entry.title,
                "link": entry.url,
                "id": entry.guid,
                "date": entry.published_at or entry.updated_at,
                "author": ", ".join(entry.authors),
            }
            for entry in listing.entries
        ]
    return []


def read_with_feedparser(body: bytes) -> list[Item]:
    """Return the entries as feedparser has them."""
    found = feedparser.parse(body, response_headers={"content-location": BASE})
    return [
        {
            "title": entry.get("title"),
            "link": entry.get("link"),
            "id": entry.get("id"),
            "date": _of_struct(entry.get("published_parsed") or entry.get("updated_parsed")),
            "author": entry.get("author"),
        }
        for entry in found.entries
    ]


def read_with_fastfeedparser(body: bytes) -> list[Item]:
    """Return the entries as fastfeedparser has them."""
    import fastfeedparser

    try:
        found = fastfeedparser.parse(body)
    except Exception:  # noqa: BLE001 - it raises many kinds, and none of its own
        return []
    return [
        {
            "title": entry.get("title"),
            "link": entry.get("link"),
            "id": entry.get("id"),
            "date": _of_text(entry.get("published") or entry.get("updated")),
            "author": entry.get("author"),
        }
        for entry in found.entries
    ]


def expected_in_comment(body: bytes) -> dict[int, Item]:
    """Return what a file of feedparser's says of its entries: ``entries[0]['title'] == 'x'``."""
    found = re.search(rb"Expect:\s*(.*?)\s*(?:-->|\n\s*\n)", body, re.DOTALL)
    items: dict[int, Item] = {}
    names = {"published_parsed": "date", "updated_parsed": "date"}
    with suppress(SyntaxError, UnicodeDecodeError):
        tree = ast.parse(found.group(1).decode() if found else "None", mode="eval")
        for node in ast.walk(tree):
            if isinstance(node, ast.Compare) and isinstance(node.ops[0], ast.Eq):
                with suppress(AttributeError, ValueError, TypeError):
                    place = node.left.value.slice.value  # type: ignore[attr-defined]
                    name = node.left.slice.value  # type: ignore[attr-defined]
                    is_entry = node.left.value.value.id == "entries"  # type: ignore[attr-defined]
                    value = ast.literal_eval(node.comparators[0])
                    name = names.get(name, name)
                    if is_entry and name in FIELDS:
                        value = _of_struct(value) if name == "date" else value
                        items.setdefault(place, {})[name] = value
    return items


def expected_in_json(text: bytes) -> dict[int, Item]:
    """Return what a JSON file beside a feed says of its entries (gofeed, rss-parser)."""
    try:
        told = json.loads(text)
    except ValueError:
        return {}
    told = told.get("feed", told)
    rows = told.get("items") or told.get("entries") or []
    return {place: _expected_item(row) for place, row in enumerate(rows)}


def _expected_item(row: Item) -> Item:
    link, guid = row.get("link"), row.get("guid") or row.get("id")
    author = row.get("author") or row.get("creator") or row.get("dc:creator")
    date = row.get("publishedParsed") or row.get("pubDateParsed") or row.get("isoDate")
    return {
        "title": row.get("title"),
        "link": link if isinstance(link, str) else None,
        "id": guid.get("value") if isinstance(guid, dict) else guid,
        "date": _of_text(date),
        "author": author.get("name") if isinstance(author, dict) else author,
    }


@dataclass
class Tally:
    """What one parser made of a corpus."""

    read: int = 0
    right: Counter[str] = field(default_factory=Counter)
    wrong: list[str] = field(default_factory=list)


@click.command()
@click.option("--show-wrong", default=0, help="Print so many of our wrong values per corpus.")
def main(show_wrong: int) -> None:
    """Print the share of files read and of expected values right, per corpus and parser."""
    if not FOLDER.exists():
        raise SystemExit(f"needs the shared collection at {FOLDER}")
    warnings.simplefilter("ignore")
    parsers: dict[str, Parser] = {"ours": read_with_ours, "feedparser": read_with_feedparser}
    with suppress(ImportError):
        import fastfeedparser  # noqa: F401

        parsers["fastfeedparser"] = read_with_fastfeedparser
    rows = []
    for corpus in CORPORA:
        tallies, n_files, asked = measure(corpus, parsers)
        for name, tally in tallies.items():
            shares = [_share(tally.right[each], asked[each]) for each in FIELDS]
            whole = _share(tally.right.total(), asked.total())
            rows.append([corpus, name, str(n_files), _share(tally.read, n_files), whole, *shares])
        for line in tallies["ours"].wrong[:show_wrong]:
            click.echo(f"{corpus}: {line}", err=True)
    click.echo(markdown_table(["corpus", "parser", "files", "read", "right", *FIELDS], rows))


def measure(corpus: str, parsers: dict[str, Parser]) -> tuple[dict[str, Tally], int, Counter[str]]:
    """Return each parser's tally, the files that hold entries, and the values asked for."""
    tallies, asked, n_files = {name: Tally() for name in parsers}, Counter[str](), 0
    for path, body, expected in _read_corpus(corpus):
        results = {name: parse(body) for name, parse in parsers.items()}
        if not any(results.values()):
            continue
        n_files += 1
        for name, items in results.items():
            tallies[name].read += bool(items)
        for place, wanted in expected.items():
            for each in FIELDS:
                if wanted.get(each) in (None, "") or not _plain(str(wanted[each])):
                    continue  # A title that is a picture says nothing.
                asked[each] += 1
                for name, items in results.items():
                    got = items[place].get(each) if place < len(items) else None
                    if _alike(each, got, wanted[each]):
                        tallies[name].right[each] += 1
                    else:
                        tallies[name].wrong.append(f"{path} {each}: {got!r} not {wanted[each]!r}")
    return tallies, n_files, asked


def _read_corpus(corpus: str) -> Iterator[tuple[str, bytes, dict[int, Item]]]:
    with tarfile.open(FOLDER / f"{corpus}.tar.xz", "r:xz") as archive:
        files = {
            member.name: content.read()
            for member in archive
            if member.isfile() and (content := archive.extractfile(member)) is not None
        }
    for path, body in files.items():
        if corpus == "feedparser":
            yield path, body, expected_in_comment(body)
        elif not _is_expectation(corpus, path):
            stem = re.sub(r"\.\w+$", "", path).replace("input/", "output/")
            beside = files.get(f"{stem}.json") if _is_expectation(corpus, f"{stem}.json") else None
            yield path, body, expected_in_json(beside) if beside else {}


def _is_expectation(corpus: str, path: str) -> bool:
    """Return whether a file says what another one holds."""
    if corpus == "gofeed":
        return path.endswith(".json") and "/json/" not in path
    return corpus == "rss-parser" and path.startswith("output/")


def _alike(name: str, got: Any, wanted: Any) -> bool:
    if got is None:
        return False
    if name == "date":
        return isinstance(got, datetime) and abs(got - wanted) < timedelta(seconds=1)
    if name == "link":
        return absolute_url(str(got), BASE) == absolute_url(str(wanted), BASE)
    if name == "author":
        # An address beside the name is nobody's to keep.
        return _name_only(_plain(str(got))) == _name_only(_plain(str(wanted)))
    return _plain(str(got)) == _plain(str(wanted))


def _plain(text: str) -> str:
    """Return text without markup: what a title says, whichever way it was written."""
    without = re.sub(r"</?[a-zA-Z][^<>]*>", "", html.unescape(html.unescape(text)))
    return " ".join(without.split())


def _name_only(author: str) -> str:
    return " ".join(re.sub(r"\(?<?\S+@\S+>?\)?", " ", author).split()).strip("() ") or author


def _of_struct(value: Any) -> datetime | None:
    with suppress(TypeError, ValueError):
        return datetime(*tuple(value)[:6], tzinfo=UTC)
    return None


def _of_text(text: Any) -> datetime | None:
    with suppress(TypeError, ValueError):
        at = datetime.fromisoformat(str(text))
        return at if at.tzinfo else at.replace(tzinfo=UTC)
    return None


def _share(part: int, whole: int) -> str:
    return f"{100 * part / whole:.1f} %" if whole else ""


if __name__ == "__main__":
    main()
