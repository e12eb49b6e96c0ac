"""What kind of page was fetched where an article was expected.

An article is told from a list of articles by where the prose stands. In an article
paragraphs stand together; on a list each stands alone, beside the headline that links to
its story. Beside that counts what a page declares, and its address: a list lives at
``/`` or ``/sport/``, an article at an address with a slug or a number.
"""

from __future__ import annotations

import re
from collections import defaultdict
from dataclasses import dataclass, field

import ada_url
from lxml.html import HtmlElement

from models.declared import Head, declares_article
from models.plaintext import collapse_spaces, weigh
from models.walls import LONG_LINE

LIST_SCORE = 5
"""What this scores is a list. One point lower takes four times as many articles for lists."""

_HEADLINE_CHARS = (25, 250)
_MAX_DEPTH = 150
_PARAGRAPHS = frozenset({"p", "li", "dd", "blockquote", "pre"})
_SKIPPED = frozenset(
    {"script", "style", "template", "svg", "head", "noscript", "nav", "footer", "form", "button",
     "select", "textarea"}
)  # fmt: skip
_INLINE = frozenset(
    {"a", "abbr", "b", "bdi", "bdo", "big", "cite", "code", "del", "em", "font", "i", "img", "ins",
     "mark", "q", "s", "small", "span", "strike", "strong", "sub", "sup", "time", "tt", "u", "wbr",
     "br"}
)  # fmt: skip
_VAGUE_DATES = ("rule", "meta date", "time element", "visible text", "htmldate")
"""Lists have such dates too: of their last change, or of the first story on them."""
_UNSEEN = frozenset({"script", "style", "template", "head", "title"})
_LIST_TYPES = re.compile(r"CollectionPage|ItemList|SearchResultsPage")
_HUB_SEGMENT = re.compile(r"[a-z]{1,20}(?:[-_][a-z]{1,20})?", re.IGNORECASE)
_LATER_PAGE = re.compile(
    r"/(?:page|seite|pagina)[/-]?\d+/?$|[?&](?:page|paged|pagenum|start|offset)=\d+|"
    r"/(?:19|20)\d\d(?:/(?:0?[1-9]|1[0-2]))?/?$",
    re.IGNORECASE,
)
_INDEX_PAGE = re.compile(r"/(?:index|default|home|startseite)(?:\.\w{1,5})?$", re.IGNORECASE)


@dataclass(frozen=True, slots=True)
class Layout:
    """How prose and headlines stand on a page.

    Attributes
    ----------
    body_chars
        The most prose that stands in one place.
    n_paragraphs
        Paragraphs anywhere.
    n_teasers
        Of them, those that stand alone beside a headline that links elsewhere.
    n_headlines
        Addresses that are linked by as many words as a headline has.
    """

    body_chars: float = 0.0
    n_paragraphs: int = 0
    n_teasers: int = 0
    n_headlines: int = 0


@dataclass(slots=True)
class _Place:
    """What stands directly inside one element."""

    chars: float = 0.0
    n_paragraphs: int = 0
    n_headlines: int = 0


@dataclass(slots=True)
class _Scan:
    places: dict[HtmlElement, _Place] = field(default_factory=lambda: defaultdict(_Place))
    headlines: set[str] = field(default_factory=set)

    def visit(self, element: HtmlElement, depth: int = 0) -> bool:
        """Take an element into account; return whether it holds a headline."""
        if not isinstance(element.tag, str) or element.tag in _SKIPPED or depth > _MAX_DEPTH:
            return False
        if element.tag == "a" and element.get("href"):
            return self._visit_link(element)
        if element.tag not in _INLINE and self._is_paragraph(element):
            for child in element:
                if child.tag not in _INLINE and self.visit(child, depth + 1):
                    self.places[element].n_headlines += 1
            return False
        has_headline = False
        for child in element:
            if self.visit(child, depth + 1):
                has_headline = True
                self.places[element].n_headlines += 1
        return has_headline

    def _visit_link(self, link: HtmlElement) -> bool:
        least, most = _HEADLINE_CHARS
        if not least <= weigh(_text_of(link)) <= most:
            return False
        self.headlines.add(link.get("href"))
        return True

    def _is_paragraph(self, element: HtmlElement) -> bool:
        chars = weigh(collapse_spaces(_own_text(element)))
        if chars < LONG_LINE:
            return False
        linked = sum(weigh(_text_of(link)) for link in element.iter("a"))
        if linked >= chars / 2:
            return False
        parent = element.getparent()
        holder = parent if element.tag in _PARAGRAPHS and parent is not None else element
        place = self.places[holder]
        place.chars += chars
        place.n_paragraphs += 1
        return True


def _text_of(element: HtmlElement) -> str:
    return collapse_spaces("".join(element.itertext()))


def _own_text(element: HtmlElement) -> str:
    """Return the text of an element and of what is in line with it."""
    parts = [element.text or ""]
    for child in element:
        if child.tag in _INLINE:
            parts += [" "] if child.tag == "br" else child.itertext()
        parts.append(child.tail or "")
    return "".join(parts)


def read_words(tree: HtmlElement) -> str:
    """Return all that a page says, in one line, to those without scripts too."""
    parts: list[str] = []
    for element in tree.iter():
        if isinstance(element.tag, str) and element.tag not in _UNSEEN:
            parts.append(element.text or "")
        parts.append(element.tail or "")
    return collapse_spaces(" ".join(parts))


def is_unpaid(head: Head) -> bool:
    """Say whether an article tells search engines that it is not accessible for free."""
    if not declares_article(head):
        return False
    said = (str(item.get("isAccessibleForFree", "")).lower() for item in head.linked_data)
    return "false" in said


def read_layout(tree: HtmlElement) -> Layout:
    """Return how prose and headlines stand on a page.

    Notes
    -----
    About 5 ms for a page of 100 KB.
    """
    scan = _Scan()
    body = tree.find("body")
    scan.visit(tree if body is None else body)
    places = scan.places
    prose = [(element, place) for element, place in places.items() if place.n_paragraphs]
    n_teasers = 0
    for element, place in prose:
        above = places.get(element.getparent())
        is_beside = place.n_headlines or (above is not None and above.n_headlines)
        if is_beside and place.n_paragraphs <= 2:
            n_teasers += place.n_paragraphs
    return Layout(
        body_chars=max((_in_one_place(place) for _, place in prose), default=0.0),
        n_paragraphs=sum(place.n_paragraphs for _, place in prose),
        n_teasers=n_teasers,
        n_headlines=len(scan.headlines),
    )


def _in_one_place(place: _Place) -> float:
    """Return the prose of a place; that of one paragraph where headlines stand between them."""
    if place.n_headlines > max(place.n_paragraphs / 2, 1) and place.n_paragraphs < 4:
        return place.chars / place.n_paragraphs
    return place.chars


@dataclass(frozen=True, slots=True)
class Clues:
    """What of a page, beside its words, tells a list from an article.

    Attributes
    ----------
    url
        Address that answered.
    is_declared, is_dated
        The page calls itself one article; it states when it was published.
    n_list_types
        How often it calls itself a web site, a collection, or the result of a search.
    """

    layout: Layout
    url: str
    is_declared: bool = False
    is_dated: bool = False
    n_list_types: int = 0


def read_clues(tree: HtmlElement, head: Head, url: str, basis: str | None) -> Clues:
    """Return what tells whether a page is a list.

    Parameters
    ----------
    basis
        Where the page states its date, as :func:`~models.declared.declared_date` has it.
    """
    is_collection = any(_LIST_TYPES.search(str(item.get("@type"))) for item in head.linked_data)
    return Clues(
        layout=read_layout(tree),
        url=url,
        is_declared=declares_article(head),
        is_dated=bool(basis) and basis not in _VAGUE_DATES,
        n_list_types=is_collection + (head.meta.get("og:type", "").lower() == "website"),
    )


def is_list(clues: Clues) -> bool:
    """Say whether a page is a list of articles.

    Points are added up, so that nothing decides alone. They were set by reading what was
    judged wrongly among 2,500 pages; a page that calls itself an article is believed more
    than one that looks like a list, as an article taken for a list loses its text.

    Examples
    --------
    >>> front = Layout(body_chars=180, n_paragraphs=20, n_teasers=18, n_headlines=40)
    >>> is_list(Clues(front, "https://news.example/sport/"))
    True
    >>> story = Layout(body_chars=3200, n_paragraphs=24, n_teasers=6, n_headlines=40)
    >>> is_list(Clues(story, "https://news.example/2024/05/rain-ends-118.html"))
    False
    """
    return _list_score(clues) >= LIST_SCORE


def _list_score(clues: Clues) -> int:
    layout, place = clues.layout, score_address(clues.url)
    score = place or -1
    if clues.is_declared:
        score -= 2 if place else 4
    if clues.is_dated:
        score -= 1 if place else 2
    score += clues.n_list_types
    score += _step(layout.body_chars, ((300, 3), (500, 2), (800, 1), (2_000, 0)), -2)
    score += _step(layout.n_headlines, ((6, -3), (10, 0), (25, 1)), 2)
    if layout.n_teasers >= 8 and layout.n_teasers >= 0.75 * layout.n_paragraphs:
        score += 2
    if layout.n_paragraphs <= 1 and layout.body_chars < 160 and layout.n_headlines >= 10:
        score += 1
    return score


def _step(value: float, steps: tuple[tuple[int, int], ...], beyond: int) -> int:
    return next((score for below, score in steps if value < below), beyond)


def score_address(url: str) -> int:
    """Return how much an address looks like a list's: 3 home and later pages, 2 sections, 0.

    >>> [score_address(f"https://n.example/{path}") for path in ("", "sport/", "a/rain-ends-12")]
    [3, 2, 0]
    """
    try:
        parsed = ada_url.URL(url)
    except ValueError:
        return 0
    path, query = str(parsed.pathname), str(parsed.search)
    if _LATER_PAGE.search(path + query):
        return 3
    segments = [part for part in _INDEX_PAGE.sub("/", path).split("/") if part]
    if query:
        return 0
    if not segments:
        return 3
    is_section = len(segments) <= 2 and all(_HUB_SEGMENT.fullmatch(part) for part in segments)
    return 2 if is_section else 0
