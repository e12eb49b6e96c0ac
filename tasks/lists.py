"""List pages to entries: the block of article links on a front page, section or board.

Sources without a feed are collected so: of all links of a page, keep those of the
source's own registered domain that lead to articles. Telling them from navigation needs
no knowledge of the site. An article's address carries a number, a date or a long slug;
its link carries a headline, often inside a heading; and it stands in a block that is
repeated. A link is judged by the first two, then by its block: links that sit in the
page the same way are of a kind, and the majority decides about the doubtful ones.

Rules of a source override each part.
"""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Iterator
from dataclasses import dataclass, field
from datetime import datetime
from functools import lru_cache
from itertools import islice

import ada_url
from selectolax.lexbor import LexborHTMLParser, LexborNode, SelectolaxError
from tldextract import TLDExtract

from models.decoding import decode_bytes
from models.errors import ParseError
from models.identity import url_key
from models.listings import DateReader
from models.moments import Moment, is_plausible, read_moment, read_recent
from models.paging import PagerLink, choose_older, may_lead_on
from models.plaintext import absolute_url, collapse_spaces, first_tags, weigh
from models.records import Entry, Listing, ListRules

MIN_SCORE = 3
"""A link that scores this much is an article's on its own evidence."""

MAX_TAGS = 300_000
"""What comes after so many is not read. Front pages have some thousands."""

_DOUBTFUL_SCORE = 1
_STRONG_SCORE = 6
_MIN_BLOCK = 3
_MAX_LINKS = 3000
_BLOCK_DEPTH = 4
_ZONE_DEPTH = 30
_MAX_BLOCK_LINKS, _MAX_BLOCK_NODES = 12, 300
_HEADLINE_CHARS = 25
_SURE_SHARE, _FAIR_SHARE = 0.7, 0.3

_PAGER_DEPTH = 4
_PAGER_CHARS = 40
_PAGER_NAMES = re.compile(
    r"pagination|paginator|pager|pagenav|page-numbers|wp-pagenavi|nav-links|paging|pages\b",
    re.IGNORECASE,
)

_domains = TLDExtract(suffix_list_urls=(), cache_dir=None, include_psl_private_domains=True)

_HEAD_CHARS = 4096
_FEED_START = re.compile(
    r"\s*+(?:(?>(?:<\?.*?\?>|<!--.*?-->)\s*+))*+<(?:\w+:)?(?:rss|feed|rdf|urlset|sitemapindex)\b",
    re.IGNORECASE | re.DOTALL,
)
_NAVIGATION_TAGS = frozenset({"nav", "footer", "header", "form", "select", "button"})
_NAVIGATION_NAMES = re.compile(
    r"(?:^|[-_\s])(?:nav|navi|navigation|navbar|menu|submenu|footer|breadcrumbs?|pagination|pager|"
    r"paging|sitemap|toolbar|topbar|cookies?|consent|social|share|sharing|login|legal|tagcloud|"
    r"tags?|metanav|servicelinks?|sidebar-menu)(?:$|[-_\s])",
    re.IGNORECASE,
)
_HUB_SEGMENT = re.compile(
    r"(?:tags?|topics?|thema|themen?|themes?|series?|kolumnen?|columns?|index|default|category|categories|kategorie|rubrics?|rubrik|rubriken|"
    r"sections?|authors?|autor|autoren|people|persons?|profiles?|users?|members?|search|suche|"
    r"login|logout|signin|signup|register|registration|account|konto|subscribe|subscription|abo|"
    r"newsletter|about|about-us|ueber-uns|contacts?|kontakt|impressum|datenschutz|privacy|terms|"
    r"agb|cookies?|help|hilfe|faq|legal|imprint|advertising|werbung|reklama|mediadaten|jobs?|"
    r"karriere|career|gutscheine?|coupons?|vergleich|angebote|anzeigen?|microsites?|sponsored|shop|store|sitemap|rss|feeds?|apps?|widgets?|settings|archive|archiv)",
    re.IGNORECASE,
)
_NO_PAGE = re.compile(
    r"\.(?:jpe?g|png|gif|webp|svg|ico|css|js|json|xml|rss|atom|pdf|zip|gz|rar|exe|apk|mp[34]|m4a|"
    r"ogg|wav|webm|avi|docx?|xlsx?|pptx?)$",
    re.IGNORECASE,
)
_ACTION = re.compile(
    r"/(?:posting|reply|newreply|newthread|report|quote|editpost|private|memberlist|ucp|"
    r"share|print|send|redirect|go|out|click)(?:\.\w{2,5})?/?$",
    re.IGNORECASE,
)
_SERVICE_WORD = re.compile(
    r"nutzungsbedingungen|datenschutz|impressum|privacy|terms-(?:of|and)|cookie-|einwilligung|"
    r"advertis|subscri|customer|contact-us|newsletter|sign-?up",
    re.IGNORECASE,
)
_DATE_IN_PATH = re.compile(r"(?<!\d)(?:19|20)\d\d[/_.-]?(?:0?[1-9]|1[0-2])(?!\d{4,})")
_LONG_NUMBER = re.compile(r"\d{5,}|(?<![a-z])[0-9a-f]{8}-?[0-9a-f]{4,}", re.IGNORECASE)
_NUMBER = re.compile(r"(?<!\d)\d{3,4}(?!\d)")
_QUERY_ID = re.compile(
    r"(?:^|[?&])(?:\w*id|t|p|tid|topic|thread|article|news|nr)=\d+", re.IGNORECASE
)
_EXTENSION = re.compile(r"\.(?:s?html?|php|aspx?|jsp)$", re.IGNORECASE)
_SLUG_PART = re.compile(r"[-_+,.]|%20")
_READ_MORE = re.compile(
    r"(?:read|see|view|load|show)\s+(?:more|all)|mehr|weiterlesen|zum artikel|more|далее|подробнее|"
    r"читать далее|читать|ещё|еще|все|详情|更多|阅读全文|\d+|\W*",
    re.IGNORECASE,
)


@dataclass(slots=True)
class _Link:
    """All places of one address on the page, taken together."""

    url: str
    key: str
    node: LexborNode
    title: str = ""
    in_heading: bool = False
    in_content: bool = False
    blocks: list[str] = field(default_factory=list)
    score: int = 0


def parse_list(
    body: bytes,
    *,
    url: str,
    content_type: str | None = None,
    rules: ListRules | None = None,
    timezone: str = "UTC",
    language: str | None = None,
    now: datetime,
) -> Listing:
    """Return the articles that a list page links to.

    Parameters
    ----------
    body
        The HTML page as it came.
    url
        Address that answered: it tells which links are the source's own. A ``<base>``
        changes what relative links mean, not who the source is.
    content_type
        HTTP header; only its charset counts.
    rules
        What the catalogue says of the page: a selector of the links, a pattern of their
        addresses, a selector of their dates. The generic way fills what is not said.
    timezone
        IANA zone of the publisher.
    language
        Of the publisher, for dates in words; where None, the one the page declares.
    now
        The present, which "2 hours ago" is counted from.

    Returns
    -------
    Listing
        Entries in the order of the page, each address once, with the headline of the link
        and the date of its block where there is one.

    Raises
    ------
    ParseError
        If the answer is empty, no HTML, or a rule of the source cannot be read.

    Notes
    -----
    About 30 ms for a front page of 500 links.
    """
    rules = rules or ListRules()
    decoded = decode_bytes(body, content_type)
    if not decoded.text.strip():
        raise ParseError(url, "the answer is empty")
    if "<" not in decoded.text:
        raise ParseError(url, "no HTML page")
    if _FEED_START.match(decoded.text[:_HEAD_CHARS]):
        raise ParseError(url, "a feed or sitemap instead of a list page")
    text, is_cut = first_tags(decoded.text, MAX_TAGS)
    page = LexborHTMLParser(text)
    if rules.date:
        _select(page, rules.date, url)
    links = list(_own_links(page, url, rules))
    chosen = links if rules.links or rules.url_pattern else _article_links(links)
    dates = DateReader(timezone, now, language or _page_language(page))
    crowded: dict[int, bool] = {}
    cut = (f"only its first {MAX_TAGS} tags are read",) if is_cut else ()
    return Listing(
        format="list page",
        entries=tuple(_entry(link, rules, dates, crowded) for link in chosen),
        title=_page_title(page),
        encoding=decoded.encoding,
        warnings=(*decoded.warnings, *cut, *_warnings(links, chosen, rules), *dates.warnings()),
        older=find_older(page, url, _base_of(page, url)),
    )


def find_older(page: LexborHTMLParser, url: str, base: str) -> str | None:
    """Return the address of the page with the entries before these, where a pager leads there.

    Parameters
    ----------
    url
        Address of the page.
    base
        What its relative links are relative to.
    """
    own = registered_domain(url)
    links = []
    for node in page.css("link[rel~=next i][href], a[href]")[:_MAX_LINKS]:
        link = _pager_link(node, base)
        if link and registered_domain(link.url) == own:
            links.append(link)
    return choose_older(links, url, _current_page(page)) if links else None


def _pager_link(node: LexborNode, base: str) -> PagerLink | None:
    attributes = node.attributes
    told = collapse_spaces(node.text())
    said = told or attributes.get("aria-label") or attributes.get("title") or ""
    is_next = "next" in (attributes.get("rel") or "").lower().split()
    names = f"{_names_of(node)} {_names_of(node.parent) if node.parent else ''}"
    if len(said) > _PAGER_CHARS or not may_lead_on(said, names, is_next):
        return None
    address = absolute_url(attributes.get("href") or "", base)
    if address is None:
        return None
    around = [node, *islice(_ancestors(node), _PAGER_DEPTH)]
    in_pager = any(_PAGER_NAMES.search(_names_of(one)) for one in around)
    return PagerLink(address, said, names, is_next, in_pager)


def _current_page(page: LexborHTMLParser) -> int | None:
    for node in page.css(
        "[aria-current=page], [class*=current], [class*=active], [class*=selected]"
    ):
        told = collapse_spaces(node.text())[:_PAGER_CHARS]
        around = islice(_ancestors(node), _PAGER_DEPTH)
        if told.isdecimal() and any(_PAGER_NAMES.search(_names_of(one)) for one in around):
            return int(told)
    return None


def _ancestors(node: LexborNode) -> Iterator[LexborNode]:
    current = node.parent
    while current is not None and current.tag not in {"body", "html"}:
        yield current
        current = current.parent


def _names_of(node: LexborNode) -> str:
    return f"{node.attributes.get('class') or ''} {node.attributes.get('id') or ''}"


def _page_language(page: LexborHTMLParser) -> str | None:
    root = page.css_first("html")
    return root.attributes.get("lang") if root else None


def _page_title(page: LexborHTMLParser) -> str | None:
    node = page.css_first("title")
    return collapse_spaces(node.text()) or None if node else None


def _warnings(links: list[_Link], chosen: list[_Link], rules: ListRules) -> list[str]:
    if chosen:
        return []
    if rules.links or rules.url_pattern:
        return ["the rules of the source match no link of this page"]
    if not links:
        return ["no link to another page of its own site"]
    return [f"none of {len(links)} own links looks like an article's"]


# --- collecting ----------------------------------------------------------------------


def _own_links(page: LexborHTMLParser, url: str, rules: ListRules) -> Iterator[_Link]:
    """Yield the source's own links, each address once, in the order of the page."""
    base = _base_of(page, url)
    own, own_key = registered_domain(url), url_key(url)
    pattern = _pattern(rules, url)
    links: dict[str, _Link] = {}
    for node in _anchors(page, url, rules):
        address = absolute_url(node.attributes.get("href") or "", base)
        if address is None or registered_domain(address) != own:
            continue
        key = url_key(address)
        if key == own_key or (pattern and not pattern.search(address)):
            continue
        link = links.setdefault(key, _Link(address, key, node))
        _add_place(link, node)
    yield from links.values()


def _base_of(page: LexborHTMLParser, url: str) -> str:
    node = page.css_first("base[href]")
    return (absolute_url(node.attributes.get("href") or "", url) if node else None) or url


def _anchors(page: LexborHTMLParser, url: str, rules: ListRules) -> list[LexborNode]:
    if not rules.links:
        return page.css("a[href]")[:_MAX_LINKS]
    found = _select(page, rules.links, url)
    return [anchor for node in found for anchor in _anchors_at(node)][:_MAX_LINKS]


def _select(page: LexborHTMLParser, selector: str, url: str) -> list[LexborNode]:
    try:
        return list(page.css(selector))
    except SelectolaxError as error:
        raise ParseError(url, f"the selector {selector!r} of its rules cannot be read") from error


def _pattern(rules: ListRules, url: str) -> re.Pattern[str] | None:
    try:
        return re.compile(rules.url_pattern) if rules.url_pattern else None
    except re.error as error:
        raise ParseError(url, f"url_pattern {rules.url_pattern!r} of its rules: {error}") from error


def _anchors_at(node: LexborNode) -> list[LexborNode]:
    """Return the link a selected node is, holds, or stands in."""
    if node.tag == "a":
        return [node]
    inside = node.css("a[href]")
    if inside:
        return list(inside)
    parent = node.parent
    while parent is not None and parent.tag != "a":
        parent = parent.parent
    return [parent] if parent is not None else []


@lru_cache(maxsize=4096)
def _registered_domain_of_host(host: str) -> str:
    found = _domains(host).top_domain_under_public_suffix
    if found or ":" in host or host.replace(".", "").isdigit():
        return found or host
    # A suffix that the list does not know counts as one label, as the list itself rules.
    return ".".join(host.split(".")[-2:])


def registered_domain(url: str) -> str:
    """Return the domain that was registered for the host of `url`; an IP address is its own.

    Examples
    --------
    >>> registered_domain("https://m.news.example.co.uk/a")
    'example.co.uk'
    """
    try:
        return _registered_domain_of_host(ada_url.URL(url).hostname)
    except ValueError:
        return ""


def _add_place(link: _Link, node: LexborNode) -> None:
    heading, is_navigation, block = _surroundings(node)
    text = _link_text(node)
    if _better_title(text, heading, link):
        link.title, link.node = text, node
    link.in_heading = link.in_heading or heading
    link.in_content = link.in_content or not is_navigation
    link.blocks.append(block)


def _better_title(text: str, heading: bool, link: _Link) -> bool:
    if _READ_MORE.fullmatch(text):
        return False
    if heading != link.in_heading:
        return heading or not link.title
    return len(text) > len(link.title)


def _link_text(node: LexborNode) -> str:
    heading = node.css_first("h1,h2,h3,h4,h5")
    text = collapse_spaces((heading or node).text(separator=" "))
    if text:
        return text
    image = node.css_first("img[alt]")
    said = node.attributes.get("aria-label") or node.attributes.get("title")
    return collapse_spaces(said or (image.attributes.get("alt") if image else "") or "")


def _surroundings(node: LexborNode) -> tuple[bool, bool, str]:
    """Return whether a link is, or holds, a heading; is navigation; and the kind of its block."""
    heading = node.css_first("h1,h2,h3,h4,h5") is not None
    is_navigation, block = False, []
    current: LexborNode | None = node
    for depth in range(_ZONE_DEPTH):
        if current is None or current.tag in {"body", "html"}:
            break
        tag, names = current.tag or "", current.attributes.get("class") or ""
        if depth <= _BLOCK_DEPTH:
            block.append(f"{tag}.{names.split(' ', 1)[0]}")
            heading = heading or tag in {"h1", "h2", "h3", "h4", "h5"}
        is_navigation = is_navigation or _is_navigation(current, names)
        current = current.parent
    return heading, is_navigation, "<".join(block)


def _is_navigation(node: LexborNode, names: str) -> bool:
    if node.tag in _NAVIGATION_TAGS:
        # A teaser may be an <article> with a <header> of its own around the headline.
        return node.tag != "header" or node.parent is None or node.parent.tag != "article"
    return bool(_NAVIGATION_NAMES.search(f"{names} {node.attributes.get('id') or ''}"))


# --- judging -------------------------------------------------------------------------


def _article_links(links: list[_Link]) -> list[_Link]:
    """Return the links that lead to articles: the sure ones, and the like of them."""
    for link in links:
        link.score = _score(link)
    members: dict[str, list[_Link]] = defaultdict(list)
    for link in links:
        for block in set(link.blocks):
            members[block].append(link)
    sure_share = {
        block: sum(link.score >= MIN_SCORE for link in found) / len(found)
        for block, found in members.items()
        if len(found) >= _MIN_BLOCK
    }
    return [link for link in links if _is_article(link, sure_share)]


def _is_article(link: _Link, sure_share: dict[str, float]) -> bool:
    best = max((sure_share[block] for block in link.blocks if block in sure_share), default=None)
    if best is None:
        return link.score >= MIN_SCORE + 1
    if link.score >= _STRONG_SCORE:
        return True
    if link.score >= MIN_SCORE:
        return best >= _FAIR_SHARE
    return link.score >= _DOUBTFUL_SCORE and best >= _SURE_SHARE


def _score(link: _Link) -> int:
    path, query = _path_and_query(link.url)
    if _NO_PAGE.search(path) or _ACTION.search(path):
        return -9
    score = _address_score(path, query) + _title_score(link.title)
    score += link.in_heading
    score -= 0 if link.in_content else 3
    return score


def _path_and_query(url: str) -> tuple[str, str]:
    parsed = ada_url.URL(url)
    return str(parsed.pathname), str(parsed.search)


def _address_score(path: str, query: str) -> int:
    segments = [part for part in path.split("/") if part]
    if not segments and not query:
        return -9
    last = _EXTENSION.sub("", segments[-1]) if segments else ""
    n_words = sum(1 for part in _SLUG_PART.split(last) if part)
    score = 0
    has_query_id = _QUERY_ID.search(query) is not None
    if not has_query_id and any(_is_hub(part) for part in segments):
        score -= 3
    if _SERVICE_WORD.search(last):
        score -= 3
    if len(segments) == 1 and n_words <= 1 and last.isalpha() and not query:
        score -= 2
    if _DATE_IN_PATH.search(path):
        score += 2
    if _LONG_NUMBER.search(path) or has_query_id:
        score += 2
    elif _NUMBER.search(last):
        score += 1
    score += min(max(n_words - 2, 0), 2)
    if segments and len(segments[-1]) > len(last):
        score += 1
    return score


def _is_hub(segment: str) -> bool:
    return _HUB_SEGMENT.fullmatch(_EXTENSION.sub("", segment)) is not None


def _title_score(title: str) -> int:
    n_chars = weigh(title)
    for least, score in ((45, 3), (28, 2), (18, 1), (10, 0)):
        if n_chars >= least:
            return score
    return -2


# --- telling -------------------------------------------------------------------------


def _entry(link: _Link, rules: ListRules, dates: DateReader, crowded: dict[int, bool]) -> Entry:
    found = _date_of(link, rules, dates, crowded)
    return Entry(
        url=link.url,
        title=link.title or None,
        published_at=found[1].at if found else None,
        published_precision=found[1].precision if found else None,
        published_basis=found[0] if found else None,
    )


def _date_of(
    link: _Link, rules: ListRules, dates: DateReader, crowded: dict[int, bool]
) -> tuple[str, Moment] | None:
    """Return ``(basis, moment)`` of the date in a link's own block, the smallest that has one.

    `crowded` remembers of each block whether it holds others, for they are many to a block.
    """
    block: LexborNode | None = link.node
    for _ in range(_BLOCK_DEPTH + 1):
        if block is None or block.tag in {"body", "html", "main"}:
            return None
        if block.mem_id not in crowded:
            crowded[block.mem_id] = _holds_others(block)
        if crowded[block.mem_id]:
            return None
        found = _date_in(block, rules, dates)
        if found:
            return found
        block = block.parent
    return None


def _holds_others(block: LexborNode) -> bool:
    """Return whether a block holds the headlines of more than one article."""
    n_links = 0
    headlines: set[str | None] = set()
    for n_nodes, node in enumerate(block.traverse()):
        if n_nodes > _MAX_BLOCK_NODES or n_links > _MAX_BLOCK_LINKS or len(headlines) > 1:
            return True
        if node.tag == "a" and node.attributes.get("href"):
            n_links += 1
            if len(_link_text(node)) > _HEADLINE_CHARS:
                headlines.add(node.attributes["href"])
    return len(headlines) > 1


def _date_in(block: LexborNode, rules: ListRules, dates: DateReader) -> tuple[str, Moment] | None:
    if rules.date:
        node = block.css_first(rules.date)
        moment = _read(node, dates) if node else None
        return ("rule", moment) if moment else None
    for node in block.css(
        "time,[class*=date],[class*=time],[class*=Date],[itemprop=datePublished]"
    ):
        moment = _read(node, dates)
        if moment:
            return (node.tag or "date"), moment
    return None


def _read(node: LexborNode, dates: DateReader) -> Moment | None:
    attributes = node.attributes
    for said in (attributes.get("datetime"), attributes.get("content"), attributes.get("title")):
        moment = read_moment(said, dates.zone) if said else None
        if moment and is_plausible(moment, dates.now):
            return moment
    text = collapse_spaces(node.text(separator=" "))
    moment = read_moment(text, dates.zone) or read_recent(text, dates.zone, dates.now)
    moment = moment or dates.read_foreign(text)
    return moment if moment and is_plausible(moment, dates.now) else None
