"""XML from strangers as a tree: recovered where it is broken, inert where it is hostile.

The document type is taken off before the parser sees the text, so nothing external is
ever loaded and no entity can multiply: the entities it declares, and HTML's named ones
that feeds use undeclared, are put in as text, up to a limit on the amplification.
"""

from __future__ import annotations

import html.entities
import re
from collections.abc import Iterator
from dataclasses import dataclass

from lxml import etree

from models.errors import ParseError
from models.plaintext import drop_controls, first_tags

MAX_AMPLIFICATION = 5
"""Entities may make a document this many times as long; a bomb wants thousands."""
FREE_EXPANSION_CHARS = 100_000

MAX_TAGS = 1_000_000
"""What comes after so many is not read: each costs a quarter of a kilobyte of memory. The
largest sitemap that the protocol allows has 400,000, with its closing ones."""

MAX_REFERENCES = 2_000_000
"""Entities and bare ampersands in a document with unusual ones; each costs 100 bytes."""

FIELD_CHARS = 100_000
"""More of one field's text is not read: what is shown of it is a tenth of that at most."""

_HEAD_CHARS = 16_384
_HTML_START = re.compile(
    r"\s*+(?:(?>(?:<\?xml\b[^>]*>|<!--.*?-->)\s*+))*+<(?:!doctype\s+html\b|html\b)",
    re.IGNORECASE | re.DOTALL,
)
_ROOT = re.compile(r"<(?:\w+:)?(?:rss|feed|rdf|urlset|sitemapindex|channel)\b", re.IGNORECASE)
_PROLOG = re.compile(r"<\?xml\b.*?>", re.IGNORECASE | re.DOTALL)
_DOCTYPE = re.compile(
    r"(?>(?:[\s\ufeff]|<\?.*?\?>|<!--.*?-->)*+)<!DOCTYPE\b", re.IGNORECASE | re.DOTALL
)
_FEED_ROOT = re.compile(
    r"<(?:(?P<rss>(?:\w+:)?(?:rss|rdf))\b[^<>]*>(?:\s|<!--.*?-->)*+<(?:\w+:)?channel\b"
    r"|(?P<atom>(?:\w+:)?feed)\b[^<>]*\bxmlns(?::\w+)?\s*=\s*[\"']"
    r"http://(?:www\.w3\.org/2005/Atom|purl\.org/atom/ns#)[\"'])",
    re.IGNORECASE | re.DOTALL,
)
_SUBSET_TOKEN = re.compile(r"\"[^\"]*\"|'[^']*'|<!--.*?(?:-->|\Z)|[\[\]>]", re.DOTALL)
_ENTITY = re.compile(r"<!ENTITY\s+([\w:.-]+)\s+(?:\"([^\"]*)\"|'([^']*)')\s*>")
_CHARACTER = re.compile(r"&#(?:x([0-9a-fA-F]{1,6})|(\d{1,7}));")
_NUMBERED = re.compile(r"&#(?:[xX]([0-9a-fA-F]+)|([0-9]+));")
_UNUSUAL = re.compile(r"&(?!(?:amp|lt|gt|quot|apos|#\d+|#x[0-9a-fA-F]+);)")
_REFERENCE = re.compile(
    r"<!\[CDATA\[.*?(?:\]\]>|\Z)|<!--.*?(?:-->|\Z)"
    r"|&(?:(?:amp|lt|gt|quot|apos|#\d+|#x[0-9a-fA-F]+);|([\w.:-]{1,64});)?",
    re.DOTALL,
)
_INNER_REFERENCE = re.compile(r"&([\w.:-]{1,64});")
_PREDEFINED = frozenset({"amp", "lt", "gt", "quot", "apos"})
_MAX_NESTING = 8
_MOST_DIGITS = 20


@dataclass(frozen=True, slots=True)
class XmlDocument:
    """A document's tree, and what was wrong with it.

    Attributes
    ----------
    is_whole
        False where the parser met errors and left something out or guessed.
    """

    root: etree._Element
    warnings: tuple[str, ...] = ()
    is_whole: bool = True


def looks_like_html(text: str) -> bool:
    """Return whether a document opens as an HTML page, XHTML included.

    Examples
    --------
    >>> looks_like_html("<!DOCTYPE html><title>Sorry</title>"), looks_like_html("<rss/>")
    (True, False)
    """
    return _HTML_START.match(text[:_HEAD_CHARS].lstrip("\ufeff")) is not None


def feed_inside_html(text: str) -> str | None:
    """Return the feed that an HTML page holds, None where it holds none.

    Some servers put the document type or the frame of a web page around a feed, and so do
    browsers that show one.

    Examples
    --------
    >>> feed_inside_html("<html><body><rss><channel/></rss></body></html>")
    '<rss><channel/></rss>'
    """
    root = _FEED_ROOT.search(text[:_HEAD_CHARS])
    if root is None:
        return None
    closing = text.rfind(f"</{root['rss'] or root['atom']}")
    end = text.find(">", closing)
    return text[root.start() : end + 1] if closing > root.start() and end > 0 else None


def read_xml(text: str, url: str) -> XmlDocument:
    r"""Return the tree of an XML text, recovered as far as it goes.

    Control characters are dropped, text before the document and after its root is passed
    over, bare ``&`` are kept as text; each with a warning where something was lost.

    Parameters
    ----------
    text
        The whole document, decoded. What its prolog says of an encoding is ignored.
    url
        Where it came from, for errors.

    Raises
    ------
    ParseError
        If there is no element in it, or its entities are a bomb.

    Examples
    --------
    >>> read_xml("\n<?xml version='1.0'?><a>AT&T &nbsp;</a>", "https://a.example/").root.text
    'AT&T \xa0'
    """
    warnings: list[str] = []
    text, n_controls = drop_controls(text)
    if n_controls:
        warnings.append(f"{n_controls} control characters dropped")
    text = _from_document_start(text, warnings)
    text = _NUMBERED.sub(_legal_reference, text) if "&#" in text else text
    text, entities = _without_doctype(text)
    text = _with_references_as_text(text, entities, url)
    text, is_cut = first_tags(text, MAX_TAGS)
    if is_cut:
        warnings.append(f"only its first {MAX_TAGS} tags are read")
    root, errors = _parse(text)
    if root is None:
        raise ParseError(url, "no XML in it" if text.strip() else "the document is empty")
    warnings.extend(errors)
    return XmlDocument(root, tuple(warnings), is_whole=not errors)


def _from_document_start(text: str, warnings: list[str]) -> str:
    head = text[:_HEAD_CHARS]
    prolog, root = head.lower().find("<?xml"), _ROOT.search(head)
    starts = [prolog] if prolog >= 0 else []
    starts += [root.start()] if root and not 0 <= prolog < root.start() else []
    if starts and _DOCTYPE.match(head):
        starts.append(0)
    start = min(starts, default=max(head.find("<"), 0))
    if text[:start].strip("\ufeff \t\r\n"):
        warnings.append(f"{start} characters before the document passed over")
    closing = _PROLOG.match(text, start, start + _HEAD_CHARS) if prolog == start else None
    return text[closing.end() if closing else start :]


def _without_doctype(text: str) -> tuple[str, dict[str, str]]:
    """Take the document type off; return the entities it declares, external ones left out."""
    opening = _DOCTYPE.match(text, 0, _HEAD_CHARS)
    if opening is None:
        return text, {}
    depth = 0
    for token in _SUBSET_TOKEN.finditer(text, opening.end()):
        depth += {"[": 1, "]": -1}.get(token[0], 0)
        if token[0] == ">" and depth <= 0:
            subset = text[opening.end() : token.start()]
            return text[token.end() :], _declared_entities(subset)
    return "", {}


def _declared_entities(subset: str) -> dict[str, str]:
    entities: dict[str, str] = {}
    for name, double, single in _ENTITY.findall(subset):
        entities.setdefault(name, _CHARACTER.sub(_character, double or single))
    return entities


def _character(match: re.Match[str]) -> str:
    number = int(match[1], 16) if match[1] else int(match[2])
    return chr(number) if number < 0x110000 and not 0xD800 <= number < 0xE000 else ""


def _legal_reference(match: re.Match[str]) -> str:
    """Return a numbered reference as it is, but for those to what is no character.

    The parser, recovering, takes half of a surrogate pair for one, and then cannot say it.
    """
    digits, base = (match[1], 16) if match[1] else (match[2], 10)
    number = int(digits, base) if len(digits) < _MOST_DIGITS else 0
    is_legal = number >= 0x20 or number in (0x9, 0xA, 0xD)
    is_legal = is_legal and not 0xD800 <= number < 0xE000 and number < 0x110000
    return match[0] if is_legal and number not in (0xFFFE, 0xFFFF) else "\ufffd"


class _Expander:
    """Puts entities in as text and keeps count of what that adds."""

    def __init__(self, entities: dict[str, str], budget: int, url: str) -> None:
        self.entities = entities
        self.budget = budget
        self.url = url
        self.known: dict[str, str] = {}

    def replace(self, match: re.Match[str]) -> str:
        if match[1] is None:
            return "&amp;" if match[0] == "&" else match[0]
        return self.spend(self.expand(match[1], 0))

    def spend(self, text: str) -> str:
        self.budget -= len(text)
        if self.budget < 0:
            raise ParseError(self.url, "its XML entities multiply without end (a bomb)")
        return text

    def expand(self, name: str, depth: int) -> str:
        if name not in self.known:
            self.known[name] = self._expanded(name, depth)
        return self.known[name]

    def _expanded(self, name: str, depth: int) -> str:
        if name in _PREDEFINED:
            return f"&{name};"
        if name in self.entities and depth < _MAX_NESTING:
            return self.spend(
                _INNER_REFERENCE.sub(
                    lambda inner: self.spend(self.expand(inner[1], depth + 1)), self.entities[name]
                )
            )
        return html.entities.html5.get(f"{name};", f"&amp;{name};")


def _with_references_as_text(text: str, entities: dict[str, str], url: str) -> str:
    if not _UNUSUAL.search(text):
        return text
    if text.count("&") > MAX_REFERENCES:
        raise ParseError(url, f"it holds more than {MAX_REFERENCES} entities")
    budget = MAX_AMPLIFICATION * len(text) + FREE_EXPANSION_CHARS
    return _REFERENCE.sub(_Expander(entities, budget, url).replace, text)


def _parse(text: str) -> tuple[etree._Element | None, list[str]]:
    parser = etree.XMLParser(
        encoding="utf-8",
        recover=True,
        resolve_entities=False,
        no_network=True,
        load_dtd=False,
        huge_tree=True,
        remove_comments=True,
        remove_pis=True,
    )
    try:
        root = etree.fromstring(text.encode("utf-8", "replace"), parser)
    except etree.XMLSyntaxError:
        return None, []
    errors = [error for error in parser.error_log if error.level_name == "FATAL"]
    if not errors:
        return root, []
    first = f"{errors[0].message.strip()} (line {errors[0].line})"
    return root, [f"not well-formed XML, {len(errors)} errors, the first: {first}"]


def local_name(tag: object) -> str:
    """Return a tag's name in lower case, without namespace or prefix.

    Examples
    --------
    >>> local_name("{http://www.w3.org/2005/Atom}Feed"), local_name("rdf:RDF")
    ('feed', 'rdf')
    """
    name = tag if isinstance(tag, str) else ""
    return name.rpartition("}")[2].rpartition(":")[2].lower()


def namespace(tag: object) -> str:
    """Return a tag's namespace, ``""`` where it has none."""
    name = tag if isinstance(tag, str) else ""
    return name[1:].partition("}")[0] if name.startswith("{") else ""


def inner_text(element: etree._Element) -> str:
    """Return the text of an element and of all inside it, scripts and styles left out.

    Of a very long one the first 100,000 characters.
    """
    if len(element) == 0:
        return str(element.text or "")[:FIELD_CHARS]
    has_hidden = next(element.iter("{*}script", "{*}style"), None) is not None
    texts = _shown_texts(element) if has_hidden else map(str, element.itertext())
    parts, n_chars = [], 0
    for part in texts:
        parts.append(part)
        n_chars += len(part)
        if n_chars >= FIELD_CHARS:
            break
    return "".join(parts)[:FIELD_CHARS]


def _shown_texts(element: etree._Element) -> Iterator[str]:
    walk = etree.iterwalk(element, events=("start", "end"))
    for event, node in walk:
        if event == "end":
            yield str(node.tail or "") if node is not element else ""
        elif local_name(node.tag) in {"script", "style"}:
            walk.skip_subtree()
        else:
            yield str(node.text or "")
