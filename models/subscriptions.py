"""Lists of sources that people bring along: OPML, tables, plain lists of addresses.

Every line stands for itself: what is wrong with one costs none of the others. OPML comes
from feed readers, whose notions of it differ: an ``xmlUrl`` makes a source whatever the
type says, an outline without an address is a folder, and folders are tags.
"""

from __future__ import annotations

import csv
import io
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import islice
from typing import Literal

from lxml import etree

from models.errors import ParseError
from models.harmless import one_line
from models.xmltree import local_name, read_xml

Form = Literal["opml", "csv", "list"]

_FOLDER_DEPTH = 8
_TAG_CHARS = 40
_TITLE_CHARS = 200
_DELIMITERS = ",;\t|"
_DELIMITER_LINE = re.compile(r"sep=([,;\t|])\s*\n", re.IGNORECASE)
"""How spreadsheets of some countries begin a table."""
_SPLIT_TAGS = re.compile(r"[;,/]")
_BARE_ADDRESS = re.compile(r"(?!\d+\.\d+$)[\w-]+(?:\.[\w-]+)*\.[^\W\d_][\w-]+(?::\d+)?(?:[/?#].*)?")
_APP_ADDRESS = re.compile(r"tg://resolve\?domain=(\w+)", re.IGNORECASE)
_OUTLINES = re.compile(r"<!--.*?(?:-->|\Z)|<(?:\w+:)?outline\b", re.DOTALL | re.IGNORECASE)
_LANGUAGE = re.compile(r"[a-z]{2,3}(?:-[A-Za-z0-9]{2,8})*")

_COLUMNS: dict[str, Sequence[str]] = {
    "url": (
        "xmlurl", "feedurl", "feed", "rss", "rssurl", "url", "address", "link", "htmlurl",
        "website", "site", "homepage", "адрес", "ссылка", "网址", "链接",
    ),
    "title": ("title", "name", "text", "label", "название", "名称", "标题"),
    "source": ("source", "slug"),
    "kind": ("kind",),
    "tags": ("tags", "tag", "category", "categories", "folder", "group", "теги", "标签"),
    "language": ("language", "lang", "язык", "语言"),
    "timezone": ("timezone", "tz"),
}  # fmt: skip
"""What columns are called, the best first, spaces and marks left out."""


@dataclass(frozen=True, slots=True)
class Wish:
    """A source that somebody's list asks for.

    Attributes
    ----------
    line
        Where it stands, counted from 1.
    values
        What the list says of it, by the keys of a catalogue entry, dotted for its tables;
        all of it text. ``url`` is among them.
    tags
        Tags and folders.
    """

    line: int
    values: Mapping[str, str]
    tags: tuple[str, ...] = ()

    @property
    def url(self) -> str:
        """Its address."""
        return self.values["url"]


@dataclass(frozen=True, slots=True)
class Slip:
    """A line of a list that makes no source, and why."""

    line: int
    text: str
    reason: str


@dataclass(slots=True)
class Wishes:
    """All that a list holds, in its order."""

    form: Form
    wanted: list[Wish] = field(default_factory=list)
    slips: list[Slip] = field(default_factory=list)


def read_wishes(text: str, name: str, form: Form | None = None) -> Wishes:
    r"""Return the sources that a list asks for.

    Parameters
    ----------
    text
        The list, decoded.
    name
        Of the file: its ending tells the form, where the text does not; and for errors.
    form
        What the list is; found out where None.

    Raises
    ------
    ParseError
        If the list as a whole cannot be read: broken off before its first outline, or no
        OPML at all.

    Examples
    --------
    >>> found = read_wishes("# mine\nhttps://a.example/feed The A\nnews\n", "sources.txt")
    >>> [(wish.line, wish.url) for wish in found.wanted], [slip.line for slip in found.slips]
    ([(2, 'https://a.example/feed')], [3])
    """
    text = text.lstrip("\ufeff").replace("\x00", "")
    form = form or guess_form(text, name)
    wishes = Wishes(form)
    for one in _read_opml(text, name) if form == "opml" else _READERS[form](text):
        if isinstance(one, Slip):
            wishes.slips.append(one)
        else:
            wishes.wanted.append(one)
    return wishes


def guess_form(text: str, name: str) -> Form:
    """Return what a list is, by its text, its name, and its first line.

    Examples
    --------
    >>> guess_form("<opml/>", "x"), guess_form("https://a.example/", "x"), guess_form("a;b", "x")
    ('opml', 'list', 'csv')
    """
    ending = name.rpartition(".")[2].lower()
    if text.lstrip().startswith("<") or ending in {"opml", "xml"}:
        return "opml"
    if ending in {"csv", "tsv"}:
        return "csv"
    lines = (line.strip() for line in text.split("\n"))
    first = next((line for line in lines if line and not line.startswith("#")), "")
    return "csv" if any(mark in first for mark in _DELIMITERS) else "list"


def tidy_address(text: str) -> str | None:
    """Return an address as it is fetched, None where `text` is none.

    Examples
    --------
    >>> tidy_address(" news.example/rss "), tidy_address("feed:https://a.example/rss")
    ('https://news.example/rss', 'https://a.example/rss')
    >>> tidy_address("tg://resolve?domain=harbour"), tidy_address("Daily News")
    ('https://t.me/harbour', None)
    """
    address = text.strip().strip("<>\"'").strip()
    if found := _APP_ADDRESS.match(address):
        return f"https://t.me/{found[1]}"
    for scheme in ("feed:", "rss:"):
        if address.lower().startswith(scheme):
            address = address[len(scheme) :].lstrip("/")
    if address.lower().startswith(("http://", "https://")):
        return address
    return f"https://{address}" if _BARE_ADDRESS.fullmatch(address) else None


def make_tag(name: str) -> str:
    """Return the name of a folder as a tag, which has no spaces.

    Examples
    --------
    >>> make_tag(" World news & more "), make_tag("Новости мира")
    ('World-news-more', 'Новости-мира')
    """
    return re.sub(r"[^\w.]+", "-", name).strip("-._")[:_TAG_CHARS].rstrip("-.")


def make_tags(names: Sequence[str]) -> tuple[str, ...]:
    """Return several names as tags, each once."""
    return tuple(dict.fromkeys(tag for name in names if (tag := make_tag(name))))


# --- OPML ----------------------------------------------------------------------------


def _read_opml(text: str, name: str) -> Iterator[Wish | Slip]:
    root = read_xml(text, name).root
    outlines = [node for node in root.iter() if local_name(node.tag) == "outline"]
    if local_name(root.tag) != "opml" and not outlines:
        raise ParseError(name, f"no OPML: the root element is <{local_name(root.tag)[:40]}>")
    lines = _outline_lines(text)
    for number, node in enumerate(outlines):
        line = lines[number] if len(lines) == len(outlines) else int(node.sourceline or 0)
        if one := _read_outline(node, line):
            yield one


def _outline_lines(text: str) -> list[int]:
    """Return the line of every outline: the tree's own count starts behind the prolog."""
    lines, line, seen = [], 1, 0
    for found in _OUTLINES.finditer(text):
        line += text.count("\n", seen, found.start())
        seen = found.start()
        if not found[0].startswith("<!"):
            lines.append(line)
    return lines


def _read_outline(node: etree._Element, line: int) -> Wish | Slip | None:
    """Return the source an outline is; None for a folder."""
    said = {
        local_name(key): one_line(value) for key, value in node.attrib.items() if str(value).strip()
    }
    title = said.get("title") or said.get("text") or ""
    is_leaf = not any(local_name(child.tag) == "outline" for child in node)
    written = said.get("xmlurl") or (said.get("url") or said.get("htmlurl") if is_leaf else None)
    if not written:
        is_blank = is_leaf and any(local_name(key) == "xmlurl" for key in node.attrib)
        return Slip(line, title, "no address") if is_blank else None
    address = tidy_address(written)
    if address is None:
        return Slip(line, written, "no web address")
    if said.get("type", "").lower() == "include" or address.lower().endswith(".opml"):
        return Slip(line, address, "another list of sources: import it by itself")
    values = {"url": address, "title": title[:_TITLE_CHARS]}
    if "xmlurl" in said:
        values["kind"] = "feed"
        if _own(node, "kind") and (page := tidy_address(said.get("htmlurl", ""))):
            # Of our own: the address people copy, which the feed follows from.
            values["url"] = page
    language = said.get("language", "").replace("_", "-")
    if _LANGUAGE.fullmatch(language):
        values["language"] = language
    for key in ("source", "kind", "timezone"):
        if own := _own(node, key):
            values[key] = own
    return Wish(line, {key: value for key, value in values.items() if value}, _tags(node, said))


def _own(node: etree._Element, key: str) -> str:
    """Return an attribute that newsbeat's own export adds."""
    return str(node.get(f"{{urn:newsbeat}}{key}") or node.get(f"newsbeat:{key}") or "").strip()


def _tags(node: etree._Element, said: Mapping[str, str]) -> tuple[str, ...]:
    folders = [
        str(outer.get("title") or outer.get("text") or "")
        for outer in islice(node.iterancestors(), _FOLDER_DEPTH)
        if local_name(outer.tag) == "outline"
    ]
    return make_tags([*reversed(folders), *_SPLIT_TAGS.split(said.get("category", ""))])


# --- tables --------------------------------------------------------------------------


def _read_table(text: str) -> Iterator[Wish | Slip]:
    rows = list(_rows(text))
    if not rows:
        return
    columns = _find_columns(rows[0][1])
    if columns:
        rows = rows[1:]
    for line, cells in rows:
        yield _read_row(line, cells, columns)


def _rows(text: str) -> Iterator[tuple[int, list[str]]]:
    """Yield the rows that hold anything, each with the line it starts in."""
    told = _DELIMITER_LINE.match(text)
    lines = [line for line in text.split("\n") if line.strip() and not line.startswith("#")]
    delimiter = told[1] if told else max(_DELIMITERS, key=(lines[0] if lines else "").count)
    reader = csv.reader(io.StringIO(text, newline=""), delimiter=delimiter, skipinitialspace=True)
    before = 0
    while True:
        try:
            cells = next(reader)
        except StopIteration:
            return
        except csv.Error as error:
            raise ParseError("the table", f"line {reader.line_num}: {error}") from error
        line, before = before + 1, reader.line_num
        if line == 1 and told:
            continue
        if any(cell.strip() for cell in cells) and not cells[0].startswith("#"):
            yield line, [_plain_cell(cell) for cell in cells]


def _plain_cell(cell: str) -> str:
    """Return a cell without the mark that keeps spreadsheets from taking it for a formula."""
    cell = cell.strip()
    return cell[1:] if cell[:1] == "'" and cell[1:2] in {"=", "+", "-", "@"} else cell


def _find_columns(cells: Sequence[str]) -> dict[str, list[int]]:
    """Return where each key stands by the first row, empty where that is no heading."""
    names = [cell.strip() for cell in cells]
    bare = [re.sub(r"[\W_]", "", name.lower()) for name in names]
    columns = {
        key: [bare.index(known) for known in synonyms if known in bare]
        for key, synonyms in _COLUMNS.items()
    }
    if not columns["url"]:
        return {}
    taken = {place for places in columns.values() for place in places}
    others = {name: [place] for place, name in enumerate(names) if name and place not in taken}
    return {key: places for key, places in columns.items() if places} | others


def _read_row(line: int, cells: list[str], columns: Mapping[str, list[int]]) -> Wish | Slip:
    def said(key: str) -> str:
        places = columns.get(key, [])
        return next((cells[n] for n in places if n < len(cells) and cells[n]), "")

    shown = " ".join(cell for cell in cells if cell)
    if not columns:
        return _read_bare_row(line, cells, shown)
    written = said("url")
    address = tidy_address(written) if written else None
    if address is None:
        return Slip(line, shown, "no web address" if written else "no address")
    values = {key: said(key) for key in columns if key != "tags" and said(key)}
    if "title" in values:
        values["title"] = one_line(values["title"])[:_TITLE_CHARS]
    tags = make_tags(_SPLIT_TAGS.split(said("tags")))
    return Wish(line, {**values, "url": address}, tags)


def _read_bare_row(line: int, cells: list[str], shown: str) -> Wish | Slip:
    """Return the source of a row under no heading: its first address, and first other words."""
    addresses = [(n, found) for n, cell in enumerate(cells) if (found := tidy_address(cell))]
    if not addresses:
        return Slip(line, shown, "no address")
    place, address = addresses[0]
    title = next((cell for n, cell in enumerate(cells) if n != place and _says(cell)), "")
    values = {"url": address, "title": one_line(title)[:_TITLE_CHARS]}
    return Wish(line, {key: value for key, value in values.items() if value})


def _says(cell: str) -> bool:
    return any(mark.isalpha() for mark in cell) and tidy_address(cell) is None


# --- plain lists ---------------------------------------------------------------------


def _read_lines(text: str) -> Iterator[Wish | Slip]:
    for number, line in enumerate(text.split("\n"), 1):
        written = line.strip()
        if not written or written.startswith("#"):
            continue
        first, _, title = written.partition(" ")
        address = tidy_address(first)
        if address is None:
            yield Slip(number, written, "no web address")
        else:
            values = {"url": address, "title": one_line(title)[:_TITLE_CHARS]}
            yield Wish(number, {key: value for key, value in values.items() if value})


_READERS = {"csv": _read_table, "list": _read_lines}
