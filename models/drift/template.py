"""A real page turned into a mould: its layout kept, its article and teasers to be filled in.

Detectors are measured on pages of known truth. A mould keeps one real page's markup, marks
the box its text stands in, and lets everything vary that varies on a site from page to
page: the article, linked headlines, parts that come and go.
"""

from __future__ import annotations

import copy
import re
from collections.abc import Sequence
from dataclasses import dataclass
from html import escape
from typing import Literal

import numpy as np
from lxml import etree
from lxml.html import HtmlElement, document_fromstring, tostring

OPEN, CLOSE = "\ue000", "\ue001"
"""Private-use characters around the name of a slot: no page holds them."""

MAX_TEASERS = 40
MAX_OPTIONAL = 6
BOX_SHARE = 0.75
"""Share of the text that the box must hold."""

_SLOT = re.compile(f"{OPEN}([^{OPEN}{CLOSE}]+){CLOSE}")
_NOT_WORD = re.compile(r"[\W_]+")
_BLOCKS = frozenset(
    {"p", "h2", "h3", "h4", "h5", "li", "blockquote", "pre", "div", "td", "ul", "ol", "figure"}
)
_RENAMED_TAGS = {"div": "section", "section": "div", "article": "div", "main": "div"}
_KEY_CHARS = 40
_MAX_SCRIPT = 200


@dataclass(frozen=True, slots=True)
class Story:
    """An article to fill in.

    Attributes
    ----------
    title, description
        Headline and summary.
    paragraphs
        The text.
    """

    title: str
    description: str
    paragraphs: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Habits:
    """How the articles of one site vary.

    Attributes
    ----------
    mean_paragraphs, spread
        Middle and logarithmic spread of the number of paragraphs.
    short_share
        Share of very short articles.
    link_share, figure_share, heading_share
        Chance of a link in a paragraph, and of a figure or a heading before one.
    read_also_share
        Share of articles with a line that points to another one.
    has_comments, links_extras
        Whether readers' comments follow, and whether foreign lines are links.
    optional
        Chance that each of the parts that come and go is there.
    paywall
        The line after which a paying reader reads on.
    """

    mean_paragraphs: float
    spread: float
    short_share: float
    link_share: float
    figure_share: float
    heading_share: float
    read_also_share: float
    has_comments: bool
    links_extras: bool
    optional: tuple[float, ...]
    paywall: str


@dataclass(frozen=True, slots=True)
class Template:
    """A page's markup, cut at its slots.

    Attributes
    ----------
    site
        Where the page is from.
    language
        Of its articles.
    pieces
        Markup and names of slots, in turns.
    renamed
        The same with other class names and other container tags.
    paragraph
        Opening tag of its paragraphs.
    n_optional
        Parts that come and go.
    """

    site: str
    language: str
    pieces: tuple[str, ...]
    renamed: tuple[str, ...]
    paragraph: str
    n_optional: int


def cut_template(
    markup: str, text: str, title: str, *, site: str, language: str, rng: np.random.Generator
) -> Template | None:
    """Return the template of an article page, or nothing where its text has no one box.

    Parameters
    ----------
    markup, text, title
        The page, and what was extracted from it.
    site, language
        Where it is from.
    rng
        Chooses the parts that come and go.
    """
    tree = _parse(markup)
    if tree is None:
        return None
    _lighten(tree)
    blocks = _blocks_with(tree, text)
    box = _box(blocks)
    if box is None:
        return None
    inside = [block for block in blocks if box in (block, *block.iterancestors())]
    paragraph = next((block for block in inside if block.tag == "p"), None)
    _open_slot(box, inside)
    _mark_titles(tree, title)
    _mark_teasers(tree, box)
    n_optional = _mark_optional(tree, box, rng)
    renamed = _rename(copy.deepcopy(tree))
    name = (paragraph.get("class") or "") if paragraph is not None else ""
    return Template(
        site=site,
        language=language,
        pieces=tuple(_SLOT.split(tostring(tree, encoding="unicode"))),
        renamed=tuple(_SLOT.split(tostring(renamed, encoding="unicode"))),
        paragraph=f'<p class="{escape(name)}">' if name else "<p>",
        n_optional=n_optional,
    )


def _parse(markup: str) -> HtmlElement | None:
    try:
        return document_fromstring(re.sub(r"^\s*<\?xml[^>]*>", "", markup))
    except (etree.ParserError, etree.XMLSyntaxError, ValueError):
        return None


def _lighten(tree: HtmlElement) -> None:
    """Empty scripts, styles and drawings: nothing here reads them."""
    etree.strip_tags(tree, etree.Comment, etree.ProcessingInstruction)
    for element in tree.iter("script", "style", "svg", "noscript"):
        linked = "ld+json" in (element.get("type") or "")
        if linked:
            element.text = '{"@type": "NewsArticle"}' if "Article" in (element.text or "") else "{}"
        elif element.tag != "script" or len(element.text or "") > _MAX_SCRIPT:
            tail = element.tail
            element.clear()
            element.tail = tail


def _key(text: str) -> str:
    return _NOT_WORD.sub("", text.lower())[:_KEY_CHARS]


def _blocks_with(tree: HtmlElement, text: str) -> list[HtmlElement]:
    """Return the innermost blocks that hold a line of the text."""
    wanted = {key for key in map(_key, text.splitlines()) if len(key) > 12}
    found = []
    for element in tree.iter(*_BLOCKS):
        if any(child.tag in _BLOCKS for child in element):
            continue
        if _key(element.text_content()) in wanted:
            found.append(element)
    return found


def _box(blocks: Sequence[HtmlElement]) -> HtmlElement | None:
    """Return the innermost element that holds most of the text."""
    held: dict[HtmlElement, int] = {}
    for block in blocks:
        size = len(block.text_content())
        for element in block.iterancestors():
            held[element] = held.get(element, 0) + size
    if not held:
        return None
    most = BOX_SHARE * max(held.values())
    enough = [element for element, size in held.items() if size >= most]
    return max(enough, key=lambda element: len(list(element.iterancestors())))


def _open_slot(box: HtmlElement, blocks: Sequence[HtmlElement]) -> None:
    top = blocks[0]
    while top.getparent() is not box:
        top = top.getparent()
    slot = etree.Element("span")
    slot.text = f"{OPEN}body{CLOSE}"
    box.insert(box.index(top), slot)
    for block in blocks:
        block.drop_tree()
    end = etree.Element("span")
    end.text = f"{OPEN}after{CLOSE}"
    box.addnext(end)
    end.tail, box.tail = box.tail, None


def _mark_titles(tree: HtmlElement, title: str) -> None:
    for element in [*tree.iter("title"), *list(tree.iter("h1"))[:1]]:
        tail = element.tail
        attributes = dict(element.attrib)
        element.clear()
        element.attrib.update(attributes)
        element.text, element.tail = f"{OPEN}title{CLOSE}", tail
    for meta in tree.iter("meta"):
        name = (meta.get("property") or meta.get("name") or "").lower()
        if name.endswith("title"):
            meta.set("content", f"{OPEN}title{CLOSE}")
        elif name.endswith("description"):
            meta.set("content", f"{OPEN}description{CLOSE}")
    key = _key(title)
    for element in tree.iter("a", "span", "h2", "div", "p"):
        if len(key) > 12 and not len(element) and _key(element.text or "") == key:
            element.text = f"{OPEN}title{CLOSE}"


def _mark_teasers(tree: HtmlElement, box: HtmlElement) -> None:
    n_teasers = 0
    for link in tree.iter("a"):
        if n_teasers == MAX_TEASERS:
            return
        if len(link) or len((link.text or "").strip()) < 25 or box in link.iterancestors():
            continue
        if OPEN not in (link.text or ""):
            link.text = f"{OPEN}teaser{CLOSE}"
            n_teasers += 1


def _mark_optional(tree: HtmlElement, box: HtmlElement, rng: np.random.Generator) -> int:
    """Mark some parts of the page that come and go."""
    kept = {box, *box.iterancestors()}
    parts: list[HtmlElement] = []
    for element in tree.iter("div", "section", "aside", "ul", "figure"):
        if element in kept or any(part in element.iterancestors() for part in (box, *parts)):
            continue
        size = sum(1 for _ in element.iter())
        if 3 <= size <= 60 and f"{OPEN}title" not in element.text_content():
            parts.append(element)
    picked = rng.permutation(len(parts))[:MAX_OPTIONAL]
    for number, at in enumerate(sorted(picked.tolist())):
        element = parts[at]
        for name, put in ((f"if{number}", element.addprevious), (f"fi{number}", element.addnext)):
            mark = etree.Element("mark")
            mark.text = f"{OPEN}{name}{CLOSE}"
            put(mark)
        end = element.getnext()
        end.tail, element.tail = element.tail, None
    return len(picked)


def _rename(tree: HtmlElement) -> HtmlElement:
    """Give every class another name, and containers another tag."""
    for element in tree.iter():
        if not isinstance(element.tag, str):
            continue
        if element.get("class"):
            names = element.get("class").split()
            element.set("class", " ".join(f"{name[::-1].strip('-_')}-nw" for name in names))
        if element.tag in _RENAMED_TAGS:
            element.tag = _RENAMED_TAGS[element.tag]
    return tree


Layout = Literal["own", "renamed"]


def fill(
    template: Template,
    story: Story,
    body: str,
    after: str,
    teasers: Sequence[str],
    present: Sequence[bool],
    layout: Layout = "own",
) -> str:
    """Return a page: the template with an article and everything around it.

    Parameters
    ----------
    template
        The layout.
    story
        Headline and summary.
    body, after
        Markup in the box, and behind it.
    teasers
        Headlines of other articles, used in turn.
    present
        Which of the parts that come and go are there.
    layout
        As found, or with other names.
    """
    values = {
        "title": escape(story.title),
        "description": escape(story.description),
        "body": body,
        "after": after,
    }
    pieces = template.pieces if layout == "own" else template.renamed
    written, hidden, n_teasers = [], -1, 0
    for at, piece in enumerate(pieces):
        if at % 2 == 0:
            if hidden < 0:
                written.append(piece)
        elif piece.startswith("if"):
            if hidden < 0 and not present[int(piece[2:])]:
                hidden = int(piece[2:])
        elif piece.startswith("fi"):
            hidden = -1 if hidden == int(piece[2:]) else hidden
        elif hidden < 0 and piece == "teaser":
            written.append(escape(teasers[n_teasers % len(teasers)]))
            n_teasers += 1
        elif hidden < 0:
            written.append(values[piece])
    return "".join(written)
