"""One pass over a page's markup: tag paths, counts, facts, and where each text stands.

The parser reports tags as it meets them and no tree is built; that keeps the pass at a few
milliseconds. Class names are cut down to what survives a new build of the same design:
digits and hash-like endings (``Body-sc-1a2b3c``, ``post-12345``) go.
"""

from __future__ import annotations

import re
from bisect import bisect_right
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any
from zlib import crc32

from lxml import etree

LINK_TAGS = frozenset({"a", "area"})
IMAGE_TAGS = frozenset({"img", "picture", "svg", "figure", "video", "canvas"})
FORMAT_TAGS = frozenset(
    {"b", "i", "u", "s", "em", "strong", "font", "small", "big", "sub", "sup", "span", "br", "hr",
     "mark", "q", "cite", "code", "abbr", "time", "ins", "del", "strike", "tt", "center", "wbr"}
)  # fmt: skip
BLOCK_TAGS = frozenset(
    {"p", "div", "h1", "h2", "h3", "h4", "h5", "h6", "ul", "ol", "li", "dl", "dt", "dd", "table",
     "tr", "td", "th", "tbody", "thead", "blockquote", "pre", "section", "article", "aside",
     "header", "footer", "nav", "main", "figcaption", "address", "form", "fieldset", "details",
     "summary"}
)  # fmt: skip
TAG_CLASSES = ("links", "blocks", "formatting", "images", "others")

FACTS = (
    "og_article", "linked_data", "linked_article", "h1", "one_h1", "article_tag", "main_tag",
    "time_tag", "canonical", "published_meta", "author_meta", "feed_link", "card_meta",
    "article_body", "password", "form", "video", "iframe", "description", "language",
)  # fmt: skip
"""Yes/no facts of a page, in the order of their bits."""

MAX_TAGS = 60_000
"""What comes later on a page is not looked at: pages made to tie up a parser end here."""

_CONTAINERS = frozenset(
    {"div", "td", "th", "section", "article", "aside", "header", "footer", "nav", "main", "form",
     "body", "table", "figure", "details", "fieldset", "center"}
)  # fmt: skip
_UNSEEN = frozenset({"script", "style", "noscript", "template", "title", "select", "textarea"})
_NOT_WORD = re.compile(r"[\W_]+")
_HASHLIKE = re.compile(r"^(?=.*\d)(?=.*[a-zA-Z])[a-zA-Z0-9]{4,}$|^\d+$|^[A-Z][a-z]?[A-Z]\w{2,4}$")
_DIGITS = re.compile(r"\d+")
_FACT_BIT = {name: 1 << place for place, name in enumerate(FACTS)}
_PLACE_LEVELS = 4
_PLACE_CHARS = 200
_MAX_TEXT = 400_000


def stable_class(names: str) -> str:
    """Return the first class name that a new build of the design would keep, or ``""``.

    Examples
    --------
    >>> stable_class("story story--lead"), stable_class("Body-sc-1a2b3c x")
    ('story', 'Body-sc')
    >>> stable_class("post-48213"), stable_class("1a2b3c")
    ('post', '')
    """
    for name in names.split()[:4]:
        parts = [part for part in re.split(r"[-_]+", name[:60]) if part]
        kept = "-".join(part for part in parts if not _HASHLIKE.match(part))
        kept = _DIGITS.sub("", kept)
        if kept:
            return kept
    return ""


@dataclass(slots=True)
class Found:
    """Where one line of extracted text stands on the page."""

    start: int
    length: int
    container: int
    link_share: float


@dataclass(slots=True)
class PageScan:
    """What one pass over a page found; use :func:`scan_page`."""

    tag_counts: list[int] = field(default_factory=lambda: [0, 0, 0, 0, 0])
    paths: set[int] = field(default_factory=set)
    facts: int = 0
    title: str = ""
    headline: str = ""
    description: str = ""
    letters: str = ""
    _starts: list[int] = field(default_factory=list)
    _marks: list[tuple[int, int]] = field(default_factory=list)
    _linked: list[int] = field(default_factory=list)
    _containers: list[tuple[int, str]] = field(default_factory=list)

    def find(self, line: str, cursor: int) -> Found | None:
        """Return where a line of text stands, looking from `cursor` on first."""
        key = _NOT_WORD.sub("", line.lower())
        if not key:
            return None
        for probe, shift in ((key[:40], 0), (key[len(key) // 2 :][:32], len(key) // 2)):
            at = self.letters.find(probe, cursor)
            at = at if at >= 0 else self.letters.find(probe)
            if at >= 0:
                start = max(at - shift, 0)
                chunk = max(bisect_right(self._starts, at) - 1, 0)
                linked = self._links_before(start + len(key)) - self._links_before(start)
                return Found(start, len(key), self._marks[chunk][0], linked / len(key))
        return None

    def _links_before(self, offset: int) -> int:
        chunk = bisect_right(self._starts, offset) - 1
        if chunk < 0:
            return 0
        inside = offset - self._starts[chunk] if self._marks[chunk][1] else 0
        return self._linked[chunk] + inside

    def place(self, container: int) -> str:
        """Return the place of a container for people: its last few levels."""
        levels: list[str] = []
        while container >= 0 and len(levels) < _PLACE_LEVELS:
            container, token = self._containers[container]
            levels.append(token)
        return " > ".join(reversed(levels))[-_PLACE_CHARS:]


def scan_page(markup: str) -> PageScan:
    """Return what one pass over a page's markup finds.

    Never raises for what a page holds: a page that cannot be parsed has no paths.
    """
    reader = _Reader()
    parser = etree.HTMLParser(target=reader, encoding="utf-8", huge_tree=True)
    try:
        parser.feed(markup.encode("utf-8", "replace"))
        parser.close()
    except (_Enough, etree.ParseError, etree.LxmlError, ValueError, AssertionError):
        pass
    return reader.finish()


class _Enough(Exception):  # noqa: N818 - a signal, not an error
    pass


class _Reader:
    """Parser target: called back for every tag and text."""

    def __init__(self) -> None:
        self.scan = PageScan()
        self._keys: list[tuple[str, int, int, int]] = [("", 0, 0, -1)]
        self._tokens: dict[tuple[str, str], bytes] = {}
        self._hidden = 0
        self._in_link = 0
        self._offset = 0
        self._n_linked = 0
        self._chunks: list[str] = []
        self._catching = ""
        self._caught: dict[str, list[str]] = {"title": [], "h1": []}
        self._n_tags = 0
        self._n_h1 = 0

    def start(self, tag: Any, attributes: Any) -> None:
        self._n_tags += 1
        if self._n_tags > MAX_TAGS:
            raise _Enough
        _, parent, grandparent, container = self._keys[-1]
        token = self._token(tag, attributes.get("class") or "")
        own = crc32(token)
        path = crc32(token, parent * 31 + grandparent & 0xFFFFFFFF)
        self.scan.paths.add(path)
        self._count(tag)
        if tag in _CONTAINERS:
            self.scan._containers.append((container, token.decode()))
            container = len(self.scan._containers) - 1
        self._keys.append((tag, own, parent, container))
        if tag in _UNSEEN:
            self._hidden += 1
        elif tag == "a":
            self._in_link += 1
        if tag in self._caught and not self._caught[tag]:
            self._catching = tag
        self._note(tag, attributes)

    def _token(self, tag: str, names: str) -> bytes:
        key = (tag, names)
        token = self._tokens.get(key)
        if token is None:
            stable = stable_class(names) if names and tag not in ("html", "body") else ""
            token = f"{tag}.{stable}".encode() if stable else tag.encode()
            self._tokens[key] = token
        return token

    def _count(self, tag: str) -> None:
        counts = self.scan.tag_counts
        if tag in LINK_TAGS:
            counts[0] += 1
        elif tag in BLOCK_TAGS:
            counts[1] += 1
        elif tag in FORMAT_TAGS:
            counts[2] += 1
        elif tag in IMAGE_TAGS:
            counts[3] += 1
        else:
            counts[4] += 1

    def _note(self, tag: str, attributes: Mapping[str, str]) -> None:
        note = _NOTES.get(tag)
        if note is not None:
            note(self, attributes)
        if attributes.get("itemprop") == "articleBody":
            self._fact("article_body")

    def _fact(self, name: str) -> None:
        self.scan.facts |= _FACT_BIT[name]

    def _note_meta(self, attributes: Mapping[str, str]) -> None:
        name = (attributes.get("property") or attributes.get("name") or "").lower()
        content = attributes.get("content") or ""
        if not content.strip():
            return
        if name == "og:type" and "article" in content.lower():
            self._fact("og_article")
        elif name in ("description", "og:description"):
            self._fact("description")
            self.scan.description = self.scan.description or content
        elif name == "og:title":
            self.scan.headline = content
        elif name == "article:published_time":
            self._fact("published_meta")
        elif name in ("author", "article:author"):
            self._fact("author_meta")
        elif name.startswith("twitter:"):
            self._fact("card_meta")

    def _note_link(self, attributes: Mapping[str, str]) -> None:
        if attributes.get("rel") == "canonical":
            self._fact("canonical")
        elif "rss+xml" in (attributes.get("type") or ""):
            self._fact("feed_link")

    def _note_script(self, attributes: Mapping[str, str]) -> None:
        if "ld+json" in (attributes.get("type") or ""):
            self._fact("linked_data")
            self._catching = "ld"

    def _note_input(self, attributes: Mapping[str, str]) -> None:
        if (attributes.get("type") or "").lower() == "password":
            self._fact("password")

    def _note_h1(self, _attributes: Mapping[str, str]) -> None:
        self._n_h1 += 1

    def _note_html(self, attributes: Mapping[str, str]) -> None:
        if attributes.get("lang"):
            self._fact("language")

    def end(self, tag: Any) -> None:
        while len(self._keys) > 1:
            opened = self._keys.pop()[0]
            if opened in _UNSEEN:
                self._hidden -= 1
            elif opened == "a":
                self._in_link -= 1
            if opened == tag:
                break
        if tag == self._catching or (tag == "script" and self._catching == "ld"):
            self._catching = ""

    def data(self, data: Any) -> None:
        text = str(data)
        if self._catching == "ld":
            if "Article" in text:
                self._fact("linked_article")
            return
        if self._catching:
            self._caught[self._catching].append(text)
        if self._hidden or text.isspace() or self._offset > _MAX_TEXT:
            return
        letters = _NOT_WORD.sub("", text.lower())
        if not letters:
            return
        scan, linked = self.scan, self._in_link > 0
        scan._starts.append(self._offset)
        scan._marks.append((self._keys[-1][3], linked))
        scan._linked.append(self._n_linked)
        self._chunks.append(letters)
        self._offset += len(letters)
        if linked:
            self._n_linked += len(letters)

    def comment(self, text: Any) -> None:
        """Comments say nothing."""

    def close(self) -> None:
        """Part of the parser's protocol."""

    def finish(self) -> PageScan:
        scan = self.scan
        scan.letters = "".join(self._chunks)
        if not scan._starts:
            scan._starts, scan._marks, scan._linked = [0], [(-1, 0)], [0]
        title, heading = ("".join(self._caught[tag]).strip() for tag in ("title", "h1"))
        scan.title = title
        scan.headline = scan.headline or heading or title
        if self._n_h1:
            self._fact("h1")
        if self._n_h1 == 1:
            self._fact("one_h1")
        return scan


_Note = Callable[[_Reader, Mapping[str, str]], None]


def _noting(name: str) -> _Note:
    return lambda reader, _attributes: reader._fact(name)


_NOTES: dict[str, _Note] = {
    "meta": _Reader._note_meta,
    "link": _Reader._note_link,
    "script": _Reader._note_script,
    "input": _Reader._note_input,
    "html": _Reader._note_html,
    "h1": _Reader._note_h1,
    "article": _noting("article_tag"),
    "main": _noting("main_tag"),
    "time": _noting("time_tag"),
    "form": _noting("form"),
    "video": _noting("video"),
    "iframe": _noting("iframe"),
}
