"""What an article page declares of itself: dates, site name, headline, address, language.

Publishers state these for search engines and social networks, in JSON-LD, ``meta`` tags
and microdata. They are exact where the visible page is vague: a date in JSON-LD has its
time of day, the one under the headline says "yesterday".
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any
from zoneinfo import ZoneInfo

import ada_url
from lxml.html import HtmlElement

from models.identity import url_key
from models.moments import Moment, is_plausible, read_moment
from models.plaintext import absolute_url, collapse_spaces, plain_title

_MAX_LD_CHARS = 500_000
_MAX_LD_DEPTH = 12
_ARTICLE_TYPE = re.compile(r"article|posting|report|review|newsitem", re.IGNORECASE)
_SITE_TYPES = frozenset({"WebSite", "Organization", "NewsMediaOrganization"})
_LD_DATE = re.compile(r'"datePublished"\s*:\s*"([^"]{4,60})"')
_META_DATES = (
    "article:published_time", "og:article:published_time", "og:published_time",
    "mediator_published_time", "datepublished", "date_published", "article.published",
    "parsely-pub-date", "sailthru.date", "dc.date.issued", "dcterms.issued", "dcterms.created",
    "dc.date", "dc.date.created", "pubdate", "publishdate", "publish-date", "publish_date",
    "publication_date", "citation_publication_date", "date",
)  # fmt: skip
_BREAK = re.compile(r"[\r\n]+|<br\s*/?>|</p>|</div>|</h[1-6]>", re.IGNORECASE)
_LANGUAGE = re.compile(r"[a-z]{2,3}(?=$|[-_])", re.IGNORECASE)
_SEPARATED = re.compile(r"\s+(?:[-–—|•·:»]|::|//)\s+")
_UMLAUTS = str.maketrans({"ä": "ae", "ö": "oe", "ü": "ue", "ß": "ss"})
_MIN_LABEL = 4
_HEAD_OF_TEXT_CHARS, _MOST_AFTER = 800, 150
_DATE_LINE_CHARS, _DATE_LINE_PARTS = 60, 4
_LABEL = re.compile(r"^[^\W\d]{3,20}(?: [^\W\d]{2,12})?\s*:\s*")
_SAME_DAY = timedelta(hours=36)


@dataclass(frozen=True, slots=True)
class Head:
    """What a page's ``meta`` tags and JSON-LD say, in the order of the page.

    Attributes
    ----------
    meta
        Contents by lower-case ``property``, ``name`` or ``itemprop``; the first of each.
    linked_data
        JSON-LD objects, those that describe an article first.
    linked_text
        JSON-LD as text, for what is no valid JSON.
    """

    meta: dict[str, str]
    linked_data: tuple[dict[str, Any], ...]
    linked_text: str


@dataclass(frozen=True, slots=True)
class DeclaredDate:
    """A publication date and where the page states it."""

    moment: Moment
    basis: str


def read_head(tree: HtmlElement) -> Head:
    """Return what the page declares in ``meta`` tags and JSON-LD."""
    meta: dict[str, str] = {}
    for element in tree.iter("meta"):
        content = collapse_spaces(element.get("content") or "")
        for attribute in ("property", "name", "itemprop"):
            name = (element.get(attribute) or "").strip().lower()
            if name and content:
                meta.setdefault(name, content)
    scripts = [
        (script.text or "")[:_MAX_LD_CHARS]
        for script in tree.iter("script")
        if "ld+json" in (script.get("type") or "").lower()
    ]
    found = [item for script in scripts for item in _linked_objects(script)]
    found.sort(key=lambda item: not _is_article(item))
    return Head(meta, tuple(found), "\n".join(scripts))


def _linked_objects(script: str) -> list[dict[str, Any]]:
    try:
        data = json.loads(script.strip().removesuffix(";"), strict=False)
    except (ValueError, RecursionError):
        return []
    return list(_objects_in(data, 0))


def _objects_in(data: object, depth: int) -> Iterator[dict[str, Any]]:
    if depth > _MAX_LD_DEPTH:
        return
    if isinstance(data, dict):
        yield data
        for value in data.values():
            yield from _objects_in(value, depth + 1)
    elif isinstance(data, list):
        for value in data:
            yield from _objects_in(value, depth + 1)


def _kinds(item: dict[str, Any]) -> list[str]:
    stated = item.get("@type")
    return [str(kind) for kind in (stated if isinstance(stated, list) else [stated])]


def _is_article(item: dict[str, Any]) -> bool:
    return any(_ARTICLE_TYPE.search(kind) for kind in _kinds(item))


def declares_article(head: Head) -> bool:
    """Say whether a page calls itself one article, not a list of several."""
    if head.meta.get("og:type", "").lower() in ("article", "news", "news.article"):
        return True
    return sum(_is_article(item) for item in head.linked_data) == 1


def declared_date(tree: HtmlElement, head: Head, zone: str, now: datetime) -> DeclaredDate | None:
    """Return the publication date a page declares, the most trusted statement first.

    Where that one knows the day only, a finer statement of the same day is preferred.

    Parameters
    ----------
    tree, head
        The page, and :func:`read_head` of it.
    zone
        IANA zone of the publisher, for dates that state none.
    now
        The present, to refuse absurd dates by.
    """
    best: DeclaredDate | None = None
    for basis, text in _stated_dates(tree, head):
        moment = read_moment(text, zone)
        if moment is None or not is_plausible(moment, now):
            continue
        finer = moment.precision != "day"
        if best is None or (finer and abs(moment.at - best.moment.at) < _SAME_DAY):
            best = DeclaredDate(moment, basis)
        if best.moment.precision != "day":
            return best
    return best


def _stated_dates(tree: HtmlElement, head: Head) -> Iterator[tuple[str, str]]:
    for item in head.linked_data:
        if isinstance(item.get("datePublished"), str):
            yield "json-ld datePublished", item["datePublished"]
    if not head.linked_data:
        for text in _LD_DATE.findall(head.linked_text):
            yield "json-ld datePublished", text
    for name in _META_DATES:
        if name in head.meta:
            yield f"meta {name}", head.meta[name]
    for element in tree.xpath("//*[contains(@itemprop, 'datePublished')]")[:3]:
        said = element.get("content") or element.get("datetime") or element.text_content()
        yield "itemprop datePublished", said
    times = tree.xpath("//time[@datetime][@pubdate or ancestor::article or ancestor::main]")
    for element in (times or tree.xpath("//time[@datetime]"))[:1]:
        yield "time element", element.get("datetime")


def visible_date(tree: HtmlElement, zone: str, now: datetime) -> DeclaredDate | None:
    """Return the date that stands alone under the headline, in whatever language.

    Only an element that says nothing else counts, but for a label such as "Published:";
    it must stand after the headline, and before the first paragraphs are over.
    """
    n_chars = 0
    for element in _after_headline(tree)[:_MOST_AFTER]:
        if len(element) > _DATE_LINE_PARTS:
            continue
        said = collapse_spaces("".join(element.itertext()))
        n_chars += len(element.text or "")
        if n_chars > _HEAD_OF_TEXT_CHARS:
            return None
        if not 6 <= len(said) <= _DATE_LINE_CHARS or not any(char.isdigit() for char in said):
            continue
        moment = read_moment(_LABEL.sub("", said), zone)
        if moment is None or not is_plausible(moment, now):
            continue
        if not is_part_of_number(f"{moment.at.astimezone(ZoneInfo(zone)):%Y-%m-%d}", said):
            return DeclaredDate(moment, "visible text")
    return None


def _after_headline(tree: HtmlElement) -> list[HtmlElement]:
    headlines = tree.findall(".//h1")
    kinds = " or ".join(f"self::{tag}" for tag in ("div", "p", "span", "time", "small", "li", "td"))
    return headlines[0].xpath(f"following::*[{kinds}]") if len(headlines) == 1 else []


def is_part_of_number(day: str, words: str) -> bool:
    """Say whether the digits of a day stand in a text only inside longer numbers.

    Phone numbers, file numbers and paragraphs of laws are read as dates else.

    Examples
    --------
    >>> is_part_of_number("2014-05-11", "Phone 2014-05-11-22")
    True
    >>> is_part_of_number("2014-05-11", "On 11.5.2014 in Rome")
    False
    """
    year, month, date = (part.lstrip("0") for part in day[:10].split("-"))
    spelt = (
        rf"{year}[-./ ]?0?{month}[-./ ]?0?{date}",
        rf"0?{date}[-./ ]?0?{month}[-./ ]?(?:20)?{year[-2:]}",
        rf"0?{month}[-./ ]?0?{date}[-./ ]?(?:20)?{year[-2:]}",
    )
    found = [match for form in spelt for match in re.finditer(form, words)]
    alone = (
        re.fullmatch(r"[^\d./-]?", words[max(match.start() - 1, 0) : match.start()])
        and not re.match(r"\d|[-./]\w", words[match.end() : match.end() + 2])
        and not match[0].isdigit()
        for match in found
    )
    return bool(found) and not any(alone)


def declared_text(head: Head) -> str | None:
    """Return the article's text as the page states it in JSON-LD, a paragraph a line."""
    for item in head.linked_data:
        said = item.get("articleBody")
        if isinstance(said, str) and said.strip():
            lines = (collapse_spaces(line) for line in _BREAK.split(said))
            return "\n".join(plain_title(line) for line in lines if line) or None
    return None


def site_names(head: Head) -> set[str]:
    """Return the names by which the page calls its own site, case folded."""
    names = {head.meta.get(name, "") for name in ("og:site_name", "application-name")}
    for item in head.linked_data:
        publisher = item.get("publisher")
        if isinstance(publisher, dict) and isinstance(publisher.get("name"), str):
            names.add(publisher["name"])
        if _SITE_TYPES.intersection(_kinds(item)) and isinstance(item.get("name"), str):
            names.add(item["name"])
    return {collapse_spaces(name).casefold() for name in names if name.strip()}


def _is_site_name(text: str, names: set[str], url: str) -> bool:
    """Return whether `text` is one of the names, the host, or the host's name spelt out."""
    name = text.strip().casefold()
    if name in names:
        return True
    try:
        host = str(ada_url.URL(url).hostname)
    except ValueError:
        return False
    squeezed = "".join(char for char in name.translate(_UMLAUTS) if char.isalnum())
    labels = {label.replace("-", "") for label in host.split(".") if len(label) >= _MIN_LABEL}
    return squeezed in labels or name in {host, host.removeprefix("www.")}


def without_site_name(title: str, names: set[str], url: str) -> str:
    """Return a headline without a last or first part that is just the site's name.

    Anything else after a dash is part of the headline.

    Examples
    --------
    >>> without_site_name("Rain ends - Daily Example", set(), "https://dailyexample.com/a")
    'Rain ends'
    >>> without_site_name("Rain ends - for now", {"daily example"}, "https://example.com/a")
    'Rain ends - for now'
    """
    parts = list(_SEPARATED.finditer(title))
    if parts and _is_site_name(title[parts[-1].end() :], names, url):
        return title[: parts[-1].start()].strip()
    if parts and _is_site_name(title[: parts[0].start()], names, url):
        return title[parts[0].end() :].strip()
    return title


def declared_title(head: Head) -> str | None:
    """Return the headline that the page gives to social networks."""
    for name in ("og:title", "twitter:title"):
        title = plain_title(head.meta.get(name, ""))
        if title:
            return title
    return None


def declared_language(tree: HtmlElement, head: Head) -> str | None:
    """Return the page's language as it states it, such as ``"ru"``."""
    stated = (tree.get("lang"), head.meta.get("og:locale"), head.meta.get("language"))
    for text in stated:
        match = _LANGUAGE.match(text.strip()) if text else None
        if match:
            return match[0].lower()
    return None


def canonical_url(tree: HtmlElement, head: Head, url: str) -> str | None:
    """Return the address that the page calls its own, or None where it names none in earnest.

    Some sites give the home page or a section as the canonical address of every article;
    taken at its word, all articles would be one.
    """
    links = tree.xpath(
        "//link[contains(concat(' ', translate(@rel, 'C', 'c'), ' '), ' canonical ')]"
    )
    stated = [link.get("href") for link in links[:1]] + [head.meta.get("og:url")]
    for href in stated:
        address = absolute_url(href, url) if href and href.strip() else None
        if address and not _is_parent(address, url):
            return address
    return None


def _is_parent(address: str, url: str) -> bool:
    """Return whether `address` is the home page or a section above `url`."""
    canonical, own = url_key(address), url_key(url)
    path = canonical.partition("/")[2]
    if not path:
        return own != canonical
    is_above = own.startswith(f"{canonical}/") and not any(char.isdigit() for char in path)
    return is_above and path.count("/") == 0 and "-" not in path
