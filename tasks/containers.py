"""Where the text of an article went when its page was rebuilt, as CSS that finds it.

The container of the text on good pages is known from the text itself. On pages of the new
layout every element that holds running text is a candidate, if it can be named by CSS and
stands on most of the pages. Those are tried first whose path of tags and classes is most
like the old one; whether the text found there is right, others must say.
"""

from __future__ import annotations

import difflib
import re
import statistics
from collections import defaultdict
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import trafilatura
from lxml.html import HtmlElement

from models.decoding import decode_bytes
from models.drift.pagescan import stable_class
from models.plaintext import collapse_spaces

LEAST_CHARS = 150
"""Less text is a teaser or a caption."""

SEEN_SHARE = 0.8
"""A container must stand on so many of the new pages."""

MOST_LINKED = 0.4
"""Of a container's text so much at most may be links: menus and lists of teasers are more."""

_NO_TEXT = frozenset({"script", "style", "noscript", "template", "head", "nav", "form", "button"})
_CONTAINERS = frozenset({"div", "section", "article", "main", "td", "span", "body"})
_NAME = re.compile(r"-?[A-Za-z_][\w-]*")


@dataclass(frozen=True, slots=True)
class _Place:
    """Where an element stands, and how much text it holds."""

    path: tuple[str, ...]
    n_chars: int


def find_containers(
    good: Sequence[tuple[bytes, str]], suspect: Sequence[bytes], limit: int = 5
) -> list[str]:
    """Return CSS selectors of what may hold the text on the suspect pages, likeliest first.

    Parameters
    ----------
    good
        Pages from before, each with the right text, a paragraph a line.
    suspect
        Pages of the new layout.
    """
    before = [place for body, text in good if (place := _place_of(body, text))]
    if not suspect:
        return []
    old_path = _commonest([place.path for place in before])
    size = statistics.median([place.n_chars for place in before]) if before else None
    found: dict[str, list[_Place]] = defaultdict(list)
    for body in suspect:
        for selector, place in _candidates(body).items():
            found[selector].append(place)
    ranked = [
        (_likeness(places, old_path, size), selector)
        for selector, places in found.items()
        if len(places) >= SEEN_SHARE * len(suspect)
    ]
    ranked.sort(key=lambda item: (-item[0], item[1]))
    return [selector for _, selector in ranked[:limit]]


def _likeness(places: Sequence[_Place], old_path: tuple[str, ...], size: float | None) -> float:
    """Return how like the old container others are: by path of tags and classes, and size."""
    path = _commonest([place.path for place in places])
    tags = difflib.SequenceMatcher(None, _tags(old_path), _tags(path)).ratio()
    words = _share_of_words(old_path, path)
    n_chars = statistics.median([place.n_chars for place in places])
    sized = min(n_chars, size) / max(n_chars, size) if size else 0.5
    return tags + words + 2.0 * sized


def _tags(path: Sequence[str]) -> list[str]:
    return [token.partition(".")[0] for token in path]


def _share_of_words(one: Sequence[str], other: Sequence[str]) -> float:
    """Return how many of the words in class names two paths share."""
    mine, theirs = (
        {word for token in path for word in re.split(r"[^a-z]+", token.lower()) if len(word) > 2}
        for path in (one, other)
    )
    return len(mine & theirs) / len(mine | theirs) if mine and theirs else 0.0


def _place_of(body: bytes, text: str) -> _Place | None:
    """Return the deepest element that holds most lines of a text."""
    lines = [collapse_spaces(line) for line in text.splitlines()]
    lines = [line for line in lines if len(line) > 20]
    tree = _tree(body)
    if tree is None or not lines:
        return None
    best: HtmlElement | None = None
    for element in tree.iter(*_CONTAINERS):
        held = collapse_spaces(element.text_content())
        if sum(line in held for line in lines) >= SEEN_SHARE * len(lines):
            best = element  # in document order, a later one that still holds them is deeper
    return _Place(_path(best), sum(map(len, lines))) if best is not None else None


def _candidates(body: bytes) -> dict[str, _Place]:
    """Return the containers of a page that hold running text, by selector; no twice-used ones."""
    tree = _tree(body)
    found: dict[str, list[_Place]] = defaultdict(list)
    for element in tree.iter(*_CONTAINERS) if tree is not None else ():
        n_chars, n_linked = _text_sizes(element)
        if n_chars < LEAST_CHARS or n_linked > MOST_LINKED * n_chars:
            continue
        place = _Place(_path(element), n_chars)
        for selector in _selectors(element):
            found[selector].append(place)
    return {selector: places[0] for selector, places in found.items() if len(places) == 1}


def _text_sizes(element: HtmlElement) -> tuple[int, int]:
    """Return how many characters of text an element holds, and how many of them are links."""
    n_chars = sum(len(text) for text in _texts(element))
    n_linked = sum(len(collapse_spaces(link.text_content())) for link in element.iter("a"))
    return n_chars, n_linked


def _texts(element: HtmlElement) -> Iterator[str]:
    if not isinstance(element.tag, str) or element.tag in _NO_TEXT:
        return
    if element.text and (text := collapse_spaces(element.text)):
        yield text
    for child in element:
        yield from _texts(child)
        if child.tail and (text := collapse_spaces(child.tail)):
            yield text


def _selectors(element: HtmlElement) -> Iterator[str]:
    """Yield CSS for an element that a new build of the page would keep."""
    identifier = element.get("id") or ""
    if _NAME.fullmatch(identifier) and not re.search(r"\d", identifier):
        yield f"{element.tag}#{identifier}"
    for name in (element.get("class") or "").split():
        if _NAME.fullmatch(name) and stable_class(name) == name:
            yield f"{element.tag}.{name}"
    for attribute in ("itemprop", "role"):
        if _NAME.fullmatch(value := element.get(attribute) or ""):
            yield f'{element.tag}[{attribute}="{value}"]'
    if element.tag in ("article", "main"):
        yield str(element.tag)


def _path(element: HtmlElement) -> tuple[str, ...]:
    steps = [element, *element.iterancestors()]
    return tuple(
        f"{step.tag}.{stable_class(step.get('class') or '')}".rstrip(".")
        for step in reversed(steps)
    )


def _commonest(paths: Sequence[tuple[str, ...]]) -> tuple[str, ...]:
    return max(set(paths), key=paths.count) if paths else ()


def _tree(body: bytes) -> HtmlElement | None:
    return trafilatura.load_html(decode_bytes(body).text)
