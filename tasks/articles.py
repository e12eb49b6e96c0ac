"""Article pages to text, by trafilatura; a source's own selectors come first.

Settings are the library's defaults without comments. On four collections with truth they
were the best or within half a point of it; `fast` and `favor_recall` gain on one set what
they lose on another, and deduplication remembers pages across calls, so that the same
page would not always give the same text.
"""

from __future__ import annotations

import logging
import re
import time
from collections.abc import Callable
from dataclasses import dataclass, replace
from datetime import datetime
from unicodedata import normalize

import trafilatura
from lxml.html import HtmlElement
from selectolax.lexbor import LexborHTMLParser, LexborNode, SelectolaxError
from trafilatura.external import try_readability
from trafilatura.metadata import extract_metadata
from trafilatura.settings import Document

from models.declared import (
    DeclaredDate,
    Head,
    canonical_url,
    declared_date,
    declared_language,
    declared_text,
    declared_title,
    is_part_of_number,
    read_head,
    site_names,
    visible_date,
    without_site_name,
)
from models.decoding import decode_bytes
from models.drift.features import PageFeatures, describe_page
from models.errors import ParseError
from models.likeness import sign_text
from models.moments import is_plausible, read_moment
from models.pageclass import is_list, is_unpaid, read_clues, read_words
from models.plaintext import collapse_spaces, drop_controls, plain_title, weigh
from models.records import Article, ExtractRules, Method, PageClass, PageMeasures
from models.walls import LONG_LINE, Said, find_invitation, find_wall

MIN_TEXT_CHARS = 20
"""Less is a caption or a button, not an article; a Chinese character counts for two."""

_BLOCKS = "p,h2,h3,h4,h5,li,blockquote,pre"
_BOXES = "div,section,article,td,dd"  # paragraphs of pages that know no <p>
_LINE = "\u2028"
_END_CHARS, _AFTER_CHARS = 40, 600
_SUMMARY_CHARS = 60
_COMMENTS = re.compile(
    r"\b(?:comments?|replies|responses|discussion|kommentare?|antworten|commentaires|réponses|"
    r"comentarios|respuestas|comentários|respostas|komentarze|yorum(?:lar)?)\b|"
    r"коммент|обсужд|ответ(?:ы|ов|а)?\b|评论|回复|コメント|التعليقات",
    re.IGNORECASE,
)
_BINARY = {
    b"%PDF": "a PDF",
    b"\x89PNG": "an image",
    b"\xff\xd8\xff": "an image",
    b"GIF8": "an image",
    b"RIFF": "a media file",
    b"PK\x03\x04": "a ZIP archive",
    b"\x1f\x8b": "a gzip archive",
    b"ID3": "a sound file",
}

for _name in ("trafilatura", "htmldate", "courlan"):
    # What they log are single pages that hold nothing; the record says that already.
    logging.getLogger(_name).setLevel(logging.CRITICAL + 1)


def extract_article(
    body: bytes,
    *,
    url: str,
    content_type: str | None = None,
    rules: ExtractRules | None = None,
    language: str | None = None,
    timezone: str = "UTC",
    now: datetime,
) -> Article:
    """Return the article on a page.

    Parameters
    ----------
    body
        The HTML page as it came.
    url
        Address that answered.
    content_type
        HTTP header; only its charset counts.
    rules
        The source's selectors of title, text and date.
    language
        The source's language, for pages that do not state theirs.
    timezone
        IANA zone of the publisher, for dates that state none.
    now
        The present, to refuse absurd dates by.

    Returns
    -------
    Article
        With a `kind` other than ``"article"``, a `reason` and no text where the page is a
        wall, a list of articles, or holds no text worth the name.

    Raises
    ------
    ParseError
        If the answer is empty, no HTML page, or breaks the extractor.

    Notes
    -----
    About 30 ms for a page of 100 KB, 200 ms and more for very long ones. A hostile page
    can take minutes: :mod:`tasks.extraction` puts a limit on that.
    """
    started = time.process_time()
    _refuse_binary(body, url)
    decoded = decode_bytes(body, content_type)
    # One spelling of each accented letter, whichever the page uses.
    markup = normalize("NFC", drop_controls(decoded.text)[0])
    try:
        page = _read_page(markup, url)
        article = _extract(page, rules or ExtractRules(), language, timezone, now)
    except (ParseError, MemoryError):
        raise
    except Exception as error:  # any page may come, and none may stop the others
        raise ParseError(url, f"the extractor broke: {type(error).__name__}: {error}") from error
    signature = sign_text(article.title, article.text)
    extracted = time.process_time()
    profile = describe_page(markup, article.text, title=article.title)
    return replace(
        article if article.kind == "article" else replace(article, text=None),
        warnings=(*decoded.warnings, *article.warnings),
        cpu_s=extracted - started,
        measures=_measures(profile),
        profile=profile.to_bytes(),
        profile_cpu_s=time.process_time() - extracted,
        signature=signature,
    )


def _measures(page: PageFeatures) -> PageMeasures:
    return PageMeasures(
        page.page_bytes,
        page.text_bytes,
        page.n_paragraphs,
        page.paragraph_variance,
        *page.tag_counts,
    )


def _refuse_binary(body: bytes, url: str) -> None:
    if not body.strip():
        raise ParseError(url, "the answer is empty")
    for magic, what in _BINARY.items():
        if body.startswith(magic):
            raise ParseError(url, f"{what} instead of an HTML page")


@dataclass(frozen=True, slots=True)
class _Page:
    url: str
    text: str
    tree: HtmlElement
    head: Head


def _read_page(text: str, url: str) -> _Page:
    tree = trafilatura.load_html(text) if "<" in text else None
    if tree is None:
        raise ParseError(url, "no HTML page")
    _drop_threads(tree)
    return _Page(url, text, tree, read_head(tree))


def _drop_threads(tree: HtmlElement) -> None:
    """Take out comments that fold away: the extractor knows them by their classes only."""
    for element in list(tree.iter("details")):
        summary = element.find("summary")
        said = "" if summary is None else "".join(summary.itertext())[:_SUMMARY_CHARS]
        if _COMMENTS.search(f"{said} {element.get('class') or ''} {element.get('id') or ''}"):
            element.drop_tree()


def _extract(
    page: _Page, rules: ExtractRules, language: str | None, zone: str, now: datetime
) -> Article:
    ruled = _by_rules(page, rules)
    date = _ruled_date(ruled, zone, now) or declared_date(page.tree, page.head, zone, now)
    method = None if ruled.text else rules.method
    found = _by_trafilatura(page, now, method)
    date = date or visible_date(page.tree, zone, now) or _guessed_date(found.date, page, zone, now)
    text = ruled.text or found.text
    title = ruled.title or declared_title(page.head) or found.title
    said = _read_said(page, title, text)
    kind, reason = _classify(page, said, date.basis if date else None, is_ruled=bool(ruled.text))
    warnings = [*ruled.warnings, *found.warnings, *filter(None, [reason or _cut_short(said)])]
    return Article(
        title=without_site_name(title, site_names(page.head), page.url) if title else None,
        text=text,
        authors=found.authors,
        language=declared_language(page.tree, page.head) or language,
        published_at=date.moment.at if date else None,
        published_precision=date.moment.precision if date else None,
        published_basis=date.basis if date else None,
        canonical_url=canonical_url(page.tree, page.head, page.url),
        kind=kind,
        reason=reason,
        extraction="css" if ruled.text else found.way,
        warnings=tuple(warnings),
    )


# --- what kind of page it is ---------------------------------------------------------


def _read_said(page: _Page, title: str | None, text: str | None) -> Said:
    whole = read_words(page.tree)
    last = next((line for line in (text or "").splitlines()[::-1] if weigh(line) >= LONG_LINE), "")
    end = collapse_spaces(last)[-_END_CHARS:]
    at = whole.rfind(end) if end else -1
    after = whole[at + len(end) :][:_AFTER_CHARS] if at >= 0 else ""
    return Said(title or "", text, after, whole, is_unpaid(page.head))


def _classify(
    page: _Page, said: Said, basis: str | None, *, is_ruled: bool
) -> tuple[PageClass, str]:
    """Return what a page is, and why it is no article.

    Where a source's own selector finds the text the page is no list: people looked at it.
    """
    words = find_wall(said)
    if words:
        return "wall", f'a wall stands before the article: "{words}"'
    if weigh(said.text or "") < MIN_TEXT_CHARS:
        return "empty", "the page holds no article text"
    if not is_ruled and is_list(read_clues(page.tree, page.head, page.url, basis)):
        return "list", "the page is a list of articles, not one"
    return "article", ""


def _cut_short(said: Said) -> str | None:
    words = find_invitation(said) if said.is_unpaid else None
    return f'the page shows a part, and invites to pay for the rest: "{words}"' if words else None


# --- the source's own rules ----------------------------------------------------------


@dataclass(frozen=True, slots=True)
class _Ruled:
    title: str | None = None
    text: str | None = None
    date: str | None = None
    warnings: tuple[str, ...] = ()


def _by_rules(page: _Page, rules: ExtractRules) -> _Ruled:
    if not (rules.title or rules.text or rules.date):
        return _Ruled()
    parsed = LexborHTMLParser(page.text)
    warnings: list[str] = []
    found: dict[str, str | None] = {}
    for part, selector in (("title", rules.title), ("text", rules.text), ("date", rules.date)):
        nodes = _select(parsed, selector, part, page.url) if selector else []
        read = {"title": _title_of, "text": _text_of, "date": _date_of}[part]
        found[part] = (read(nodes) or None) if nodes else None
        if selector and not found[part]:
            warnings.append(f"the {part} selector {selector!r} matches nothing")
    return _Ruled(found["title"], found["text"], found["date"], tuple(warnings))


def _select(page: LexborHTMLParser, selector: str, part: str, url: str) -> list[LexborNode]:
    try:
        return list(page.css(selector))
    except SelectolaxError as error:
        reason = f"the {part} selector {selector!r} of its rules cannot be read"
        raise ParseError(url, reason) from error


def _title_of(nodes: list[LexborNode]) -> str:
    said = nodes[0].attributes.get("content")
    return plain_title(said) if said else collapse_spaces(nodes[0].text(separator=" "))


def _date_of(nodes: list[LexborNode]) -> str:
    attributes = nodes[0].attributes
    said = attributes.get("datetime") or attributes.get("content")
    return said or collapse_spaces(nodes[0].text(separator=" "))


def _text_of(nodes: list[LexborNode]) -> str:
    """Return the paragraphs of the selected elements, one a line."""
    lines: list[str] = []
    for node in nodes:
        for hidden in node.css("script,style,noscript,template,form,button"):
            hidden.decompose()
        for line_break in node.css("br"):
            line_break.insert_before(_LINE)
        blocks = _leaves(node, _BLOCKS) or _leaves(node, _BOXES) or [node]
        parts = (part for block in blocks for part in block.text().split(_LINE))
        lines.extend(map(collapse_spaces, parts))
    return "\n".join(dict.fromkeys(line for line in lines if line))


def _leaves(node: LexborNode, kinds: str) -> list[LexborNode]:
    """Return the elements of some kinds below a node that hold none of them themselves."""
    inside = [block for block in node.css(kinds) if block.mem_id != node.mem_id]
    return [
        block
        for block in inside
        if not any(inner.mem_id != block.mem_id for inner in block.css(kinds))
    ]


def _ruled_date(ruled: _Ruled, zone: str, now: datetime) -> DeclaredDate | None:
    moment = read_moment(ruled.date, zone) if ruled.date else None
    return DeclaredDate(moment, "rule") if moment and is_plausible(moment, now) else None


# --- trafilatura ---------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class _Found:
    title: str | None
    text: str | None
    date: str | None
    authors: tuple[str, ...]
    way: str
    warnings: tuple[str, ...] = ()


def _by_trafilatura(page: _Page, now: datetime, method: Method | None) -> _Found:
    """Return what the generic way finds; no text where no `method` is given."""
    metadata, warnings = _metadata(page, now)
    text, way = None, "trafilatura"
    if method is not None:
        text, way, oddities = _text_by(page, method)
        warnings += oddities
    authors = (collapse_spaces(name) for name in (metadata.author or "").split(";"))
    return _Found(
        title=collapse_spaces(metadata.title or "") or None,
        text=text,
        date=metadata.date,
        authors=tuple(dict.fromkeys(name for name in authors if name)),
        way=way,
        warnings=warnings,
    )


def _metadata(page: _Page, now: datetime) -> tuple[Document, tuple[str, ...]]:
    """Return what the library makes of a page's head; nothing where that breaks it."""
    dates = {
        "original_date": True,
        "extensive_search": False,
        "max_date": f"{now:%Y-%m-%d}",
    }
    try:
        return extract_metadata(page.tree, page.url, date_config=dates), ()
    except Exception as error:  # noqa: BLE001 - an odd date is no reason to lose the text
        return Document(), (f"its metadata broke the reader: {type(error).__name__}: {error}",)


def _text_by(page: _Page, method: Method) -> tuple[str | None, str, tuple[str, ...]]:
    """Return the text, how it was got, and what was odd about that."""
    if method in ("auto", "listing"):
        return _main_text(page), "trafilatura", ()
    text = _OTHER_WAYS[method](page)
    if text:
        return text, method, ()
    return _main_text(page), "trafilatura", (f"the way {method!r} finds no text",)


def _main_text(page: _Page, *, precise: bool = False, generous: bool = False) -> str | None:
    document = trafilatura.bare_extraction(
        page.tree,
        url=page.url,
        include_comments=False,
        with_metadata=False,
        favor_precision=precise,
        favor_recall=generous,
    )
    return (getattr(document, "text", None) or "").strip() or None


def _readable_text(page: _Page) -> str | None:
    summary = try_readability(page.tree)
    blocks = summary.iter(*_BLOCKS.split(","))
    lines = [collapse_spaces(block.text_content()) for block in blocks]
    return "\n".join(dict.fromkeys(line for line in lines if line)) or None


def _baseline_text(page: _Page) -> str | None:
    return trafilatura.baseline(page.text)[1].strip() or None


_OTHER_WAYS: dict[Method, Callable[[_Page], str | None]] = {
    "precise": lambda page: _main_text(page, precise=True),
    "generous": lambda page: _main_text(page, generous=True),
    "json-ld": lambda page: declared_text(page.head),
    "readable": _readable_text,
    "baseline": _baseline_text,
}


def _guessed_date(text: str | None, page: _Page, zone: str, now: datetime) -> DeclaredDate | None:
    moment = read_moment(text, zone) if text else None
    if moment is None or text is None or not is_plausible(moment, now):
        return None
    if is_part_of_number(text, read_words(page.tree)) and text[:4] not in page.url:
        return None
    return DeclaredDate(moment, "htmldate")
