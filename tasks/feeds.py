"""Feeds to entries: RSS 0.9x to 2.0, RDF, Atom 0.3 and 1.0, JSON Feed.

The fast reader walks the tree that lxml recovers. It exists because the feed libraries
hand out dates already converted: a date without a zone has become UTC and a day has
become an instant, and both then count as publication lag. Where the fast reader finds
fewer entries than the text opens, feedparser, the tolerant one, reads the text again and
the fuller answer wins. feedparser is given bytes, never an address, so it cannot fetch.
"""

from __future__ import annotations

import base64
import io
import json
import re
from collections.abc import Callable, Iterable, Iterator
from dataclasses import replace
from datetime import datetime
from functools import lru_cache
from itertools import islice
from typing import Any, TypeVar

import feedparser
from lxml import etree

from models.decoding import decode_bytes
from models.errors import ParseError
from models.listings import DateReader, mend_dates
from models.plaintext import absolute_url, collapse_spaces, literal_text, plain_text, plain_title
from models.records import Entry, Listing
from models.xmltree import (
    XmlDocument,
    feed_inside_html,
    inner_text,
    local_name,
    looks_like_html,
    namespace,
    read_xml,
)

MAX_ENTRIES = 20_000
"""Archives of mailing lists list more; those at the newer end are kept."""

MAX_JSON_VALUES = 2_000_000
"""JSON cannot be read in part; more values, at some 100 bytes each, are no feed."""

TOLERANT_CHARS = 500_000
"""The tolerant parser is slow, and slower than in proportion on what is hostile."""

SUMMARY_CHARS = 10_000
"""A summary is what a list shows; full texts in feeds are cut here."""

_ATOM = ("http://www.w3.org/2005/Atom", "http://purl.org/atom/ns#")
_RSS = (
    "http://purl.org/rss/1.0/",
    "http://purl.org/net/rss1.1#",
    "http://my.netscape.com/rdf/simple/0.9/",
    "http://channel.netscape.com/rdf/simple/0.9/",
    "http://backend.userland.com/rss2",
    "http://backend.userland.com/RSS2",
    "http://blogs.law.harvard.edu/tech/rss",
)
_PREFIXES = {
    **dict.fromkeys(_ATOM, "atom:"),
    "http://purl.org/dc/elements/1.1/": "dc:",
    "http://purl.org/dc/elements/1.0/": "dc:",
    "http://purl.org/dc/terms/": "dcterms:",
    "http://purl.org/rss/1.0/modules/content/": "content:",
    "http://purl.org/rss/1.0/modules/syndication/": "sy:",
    "http://rssnamespace.org/feedburner/ext/1.0": "feedburner:",
    "http://search.yahoo.com/mrss/": "media:",
    "http://search.yahoo.com/mrss": "media:",
    "http://www.itunes.com/dtds/podcast-1.0.dtd": "itunes:",
}
_BASE_DEPTH = 8
_AUTHOR_CHARS = 300
_XML_BASE = "{http://www.w3.org/XML/1998/namespace}base"
_XML_LANG = "{http://www.w3.org/XML/1998/namespace}lang"
_RDF_ABOUT = "{http://www.w3.org/1999/02/22-rdf-syntax-ns#}about"
_PERIODS_S = {
    "hourly": 3600.0,
    "daily": 86_400.0,
    "weekly": 604_800.0,
    "monthly": 2_592_000.0,
    "yearly": 31_536_000.0,
}
_OPENINGS = re.compile(r"<(?:\w+:)?(?:item|entry)(?=[\s>/])", re.IGNORECASE)
_NAME_IN_BRACKETS = re.compile(r"[^()]*@[^()]*\(([^()]+)\)\s*")

Fields = dict[str, list[etree._Element]]
T = TypeVar("T")


def parse_feed(
    body: bytes,
    *,
    url: str,
    content_type: str | None = None,
    timezone: str = "UTC",
    language: str | None = None,
    now: datetime,
    keep_unaddressed: bool = False,
) -> Listing:
    """Return what a feed lists.

    Parameters
    ----------
    body
        The feed as it came, content coding undone.
    url
        Address that answered: what relative links are relative to.
    content_type
        HTTP header; only its charset counts, servers name feeds anything.
    timezone
        IANA zone of the publisher, for dates that state none.
    language
        Of the publisher, for dates in words; where None, the one the feed declares.
    now
        The present, to refuse absurd dates by.
    keep_unaddressed
        Return entries without any address too, for those who look at feeds.

    Returns
    -------
    Listing
        Entries in the feed's order. Entries without any address are left out with a
        warning, for there is no article behind them.

    Raises
    ------
    ParseError
        If the answer is empty, an HTML page, or anything else that is no feed.

    Notes
    -----
    About 4 ms for 100 items. Feedparser, where it is needed, takes six times as long.
    """
    decoded = decode_bytes(body, content_type)
    text = decoded.text
    if not text.strip("\ufeff\x00 \t\r\n"):
        raise ParseError(url, "the answer is empty")
    warnings = list(decoded.warnings)
    if looks_like_html(text):
        text = _taken_out_of_html(text, url, warnings)
    dates = DateReader(timezone, now, language)
    if text.lstrip("\ufeff \t\r\n").startswith("{"):
        listing = _read_json_feed(text, url, dates)
    else:
        listing = _read_xml_feed(text, url, dates)
    listing = replace(listing, encoding=decoded.encoding, warnings=(*warnings, *listing.warnings))
    return _finished(listing, dates, keep_unaddressed)


def _taken_out_of_html(text: str, url: str, warnings: list[str]) -> str:
    inside = feed_inside_html(text)
    if inside is None:
        raise ParseError(url, "an HTML page instead of a feed")
    warnings.append("a feed inside an HTML page")
    return inside


def _finished(listing: Listing, dates: DateReader, keep_unaddressed: bool) -> Listing:
    entries = tuple(entry for entry in listing.entries if entry.url or keep_unaddressed)
    warnings = [*listing.warnings, *dates.warnings()]
    if len(entries) < len(listing.entries):
        n_left_out = len(listing.entries) - len(entries)
        has = "entry has" if n_left_out == 1 else "entries have"
        warnings.append(f"{n_left_out} {has} no address")
    entries, mended = mend_dates(entries, dates.zone, dates.now)
    return replace(
        listing,
        entries=entries,
        warnings=tuple(dict.fromkeys([*warnings, *mended])),
    )


# --- XML -----------------------------------------------------------------------------


def _read_xml_feed(text: str, url: str, dates: DateReader) -> Listing:
    document = read_xml(text, url)
    listing = _read_tree(document, url, dates)
    n_found = len(listing.entries) if listing else 0
    n_opened = sum(1 for _ in _OPENINGS.finditer(text))
    if listing and (document.is_whole or n_found >= n_opened):
        return listing
    tolerant_dates = DateReader(dates.zone, dates.now, dates.language)
    worth_it = n_opened > 0 and len(text) <= TOLERANT_CHARS
    tolerant = _read_tolerantly(text, url, tolerant_dates) if worth_it else None
    if tolerant and len(tolerant.entries) > n_found:
        dates.unreadable, dates.implausible = (
            tolerant_dates.unreadable,
            tolerant_dates.implausible,
        )
        return replace(tolerant, warnings=(*document.warnings, *tolerant.warnings))
    if listing:
        return listing
    raise ParseError(url, f"no feed: the root element is <{local_name(document.root.tag)[:40]}>")


def _read_tree(document: XmlDocument, url: str, dates: DateReader) -> Listing | None:
    root = document.root
    kind = local_name(root.tag)
    reader = {"rss": _read_rss, "rdf": _read_rss, "channel": _read_rss, "feed": _read_atom}
    if kind not in reader:
        return None
    listing = reader[kind](root, url, dates)
    return replace(listing, warnings=document.warnings)


@lru_cache(maxsize=2048)
def _field_name(tag: str, own: tuple[str, ...]) -> str:
    """Return a tag as a field's name: bare if it is of the format itself, else prefixed.

    A prefix that the feed forgot to declare is taken at its word.
    """
    space = namespace(tag)
    bare = tag.rpartition("}")[2].lower()
    if space in own or not space:
        return bare
    return (_PREFIXES.get(space) or _PREFIXES.get(space.lower(), f"{{{space}}}")) + bare


def _fields_of(element: etree._Element, own: tuple[str, ...]) -> Fields:
    fields: Fields = {}
    for child in element:
        if isinstance(child.tag, str):
            fields.setdefault(_field_name(child.tag, own), []).append(child)
    return fields


_GROUP = "media:group"


def _with_group(fields: Fields) -> Fields:
    """Return fields with those of a media group, where the entry has none such itself."""
    for group in fields.get(_GROUP, ())[:1]:
        inner = _fields_of(group, ())
        fields = {**{name: found for name, found in inner.items() if ":" in name}, **fields}
    return fields


def _media(fields: Fields) -> tuple[str, ...]:
    """Return what an entry carries besides text: photos, videos, sound."""
    nodes = [
        node for name in ("media:content", "enclosure", "link") for node in fields.get(name, ())
    ]
    told = (node for node in nodes if node.get("rel", "enclosure") == "enclosure")
    kinds = (node.get("medium") or (node.get("type") or "").partition("/")[0] for node in told)
    return tuple(dict.fromkeys(_MEDIA[kind.lower()] for kind in kinds if kind.lower() in _MEDIA))


_MEDIA = {"image": "photo", "video": "video", "audio": "audio"}


def _first(fields: Fields, *names: str) -> tuple[str, str] | None:
    """Return ``(name, text)`` of the first of the fields that says something."""
    for name in names:
        for element in fields.get(name, ()):
            text = inner_text(element).strip()
            if text:
                return name, text
    return None


def _first_text(fields: Fields, *names: str) -> str | None:
    found = _first(fields, *names)
    return found[1] if found else None


def _base_of(element: etree._Element, url: str) -> str:
    nodes = (element, *islice(element.iterancestors(), _BASE_DEPTH))
    bases = [node.get(_XML_BASE) for node in nodes if node.get(_XML_BASE)]
    for base in reversed(bases):
        url = absolute_url(base or "", url) or url
    return url


def _dates_of(
    dates: DateReader, fields: Fields, published: tuple[str, ...], updated: tuple[str, ...]
) -> dict[str, Any]:
    """Return the date fields of an :class:`Entry`; an update stands in for a publication."""
    found = _first_date(dates.read, fields, published)
    changed = _first_date(dates.read, fields, updated)
    refusal = dates.take_refusal()
    basis, moment = found or changed or (None, None)
    return {
        "published_at": moment.at if moment else None,
        "published_precision": moment.precision if moment else None,
        "published_basis": basis,
        "updated_at": changed[1].at if changed else None,
        "published_note": None if moment else refusal,
    }


def _first_date(
    read: Callable[[str], Any], fields: Fields, names: tuple[str, ...]
) -> tuple[str, Any] | None:
    """Return the first date that can be read; of a field given twice, the later statement."""
    for name in names:
        for element in reversed(fields.get(name, [])):
            moment = read(inner_text(element))
            if moment:
                return _BASIS.get(name, name), moment
    return None


_BASIS = {"pubdate": "pubDate", "atom:published": "published", "atom:updated": "updated"}


def _newest_of(items: list[T], read: Callable[[T], Entry]) -> tuple[Entry, ...]:
    """Return the entries of a listing, of a huge one those at the end where the newest are."""
    kept = items[:MAX_ENTRIES]
    if len(items) > MAX_ENTRIES:
        first, last = read(items[0]).published_at, read(items[-1]).published_at
        kept = items[-MAX_ENTRIES:] if first and last and last > first else kept
    return tuple(map(read, kept))


# --- RSS -----------------------------------------------------------------------------

_RSS_PUBLISHED = (
    "pubdate", "dc:date", "atom:published", "published", "dcterms:issued", "dcterms:created",
    "dc:date.taken", "date",
)  # fmt: skip
_RSS_UPDATED = ("atom:updated", "updated", "dcterms:modified", "modified", "lastbuilddate")


def _read_rss(root: etree._Element, url: str, dates: DateReader) -> Listing:
    own = (*_RSS, namespace(root.tag))
    channel = next((node for node in root.iter() if local_name(node.tag) == "channel"), root)
    fields = _fields_of(channel, own)
    dates.language = dates.language or _first_text(fields, "language", "dc:language")
    items = _items(root, channel, own)
    return Listing(
        format=_rss_format(root),
        entries=_newest_of(items, lambda item: _rss_entry(item, own, url, dates)),
        title=plain_title(_first_text(fields, "title", "dc:title") or "") or None,
        ttl_s=_ttl_s(fields),
        older=_older(fields, url),
    )


def _items(
    root: etree._Element, channel: etree._Element, own: tuple[str, ...]
) -> list[etree._Element]:
    """Return the items beside and inside the channel, else those that stand where the first does.

    An item inside an item is none: reading each with all it holds would take for ever.
    """
    near = [*root, *channel] if channel is not root else [*root]
    items = [node for node in near if _is_item(node, own)]
    first = None if items else next((node for node in root.iter() if _is_item(node, own)), None)
    parent = first.getparent() if first is not None else None
    return [node for node in parent if _is_item(node, own)] if parent is not None else items


def _is_item(node: etree._Element, own: tuple[str, ...]) -> bool:
    return isinstance(node.tag, str) and _field_name(node.tag, own) in {"item", "rss:item"}


def _rss_format(root: etree._Element) -> str:
    if local_name(root.tag) == "rdf":
        spaces = {namespace(node.tag) for node in root}
        return "rss 0.90" if any("netscape" in space for space in spaces) else "rss 1.0"
    return f"rss {collapse_spaces(root.get('version') or '2.0')[:10]}"


def _rss_entry(item: etree._Element, own: tuple[str, ...], url: str, dates: DateReader) -> Entry:
    fields = _with_group(_fields_of(item, own))
    title = _first_text(fields, "title", "dc:title", "atom:title", "media:title")
    summary = _first_text(
        fields, "description", "content:encoded", "atom:summary", "atom:content",
        "dc:description", "itunes:summary", "media:description",
    )  # fmt: skip
    guid = _first_text(fields, "guid", "atom:id", "dc:identifier") or item.get(_RDF_ABOUT)
    return Entry(
        url=_rss_link(item, fields, url),
        title=plain_title(title) or None if title else None,
        guid=guid,
        summary=_summary(summary),
        content=_first_text(fields, "content:encoded") or summary,
        media=_media(fields),
        authors=_rss_authors(fields),
        **_dates_of(dates, fields, _RSS_PUBLISHED, _RSS_UPDATED),
    )


def _rss_link(item: etree._Element, fields: Fields, url: str) -> str:
    base = _base_of(item, url)
    links = (absolute_url(candidate, base) for candidate in _rss_link_candidates(item, fields))
    return next((link for link in links if link), "")


def _rss_link_candidates(item: etree._Element, fields: Fields) -> Iterator[str]:
    """Yield what may be the article's address, the best first."""
    yield from _texts(fields, "feedburner:origlink", "link")
    for element in (*fields.get("link", ()), *fields.get("atom:link", ())):
        if element.get("rel", "alternate") == "alternate" and element.get("href"):
            yield str(element.get("href"))
    for element in fields.get("guid", ()):
        text = inner_text(element).strip()
        is_permalink = (element.get("isPermaLink") or "true").strip().lower() != "false"
        if is_permalink and text.lower().startswith(("http://", "https://")):
            yield text
    if item.get(_RDF_ABOUT):
        yield str(item.get(_RDF_ABOUT))
    for element in fields.get("enclosure", ()):
        if element.get("url"):
            yield str(element.get("url"))


def _texts(fields: Fields, *names: str) -> Iterator[str]:
    for name in names:
        for element in fields.get(name, ()):
            text = inner_text(element).strip()
            if text:
                yield text


def _rss_authors(fields: Fields) -> tuple[str, ...]:
    names = list(_texts(fields, "dc:creator", "author", "itunes:author", "dc:author"))
    for element in fields.get("atom:author", ()):
        names.extend(_person_names(element))
    return _unique(
        _NAME_IN_BRACKETS.sub(r"\1", plain_title(name[:_AUTHOR_CHARS])) for name in names
    )


def _summary(markup: str | None) -> str | None:
    return plain_text(markup)[:SUMMARY_CHARS] or None if markup else None


def _unique(names: Iterable[str]) -> tuple[str, ...]:
    return tuple(dict.fromkeys(name for name in map(collapse_spaces, names) if name))


def _address(link: str | None, url: str) -> str:
    return absolute_url(link, url) or "" if link else ""


def _older(fields: Fields, url: str) -> str | None:
    """Return the address of the entries before these, where a feed comes in pages (RFC 5005)."""
    for link in (*fields.get("link", ()), *fields.get("atom:link", ())):
        if (link.get("rel") or "").lower() in {"next", "prev-archive"}:
            address = absolute_url(link.get("href") or "", _base_of(link, url))
            return address if address != url else None
    return None


def _ttl_s(fields: Fields) -> float | None:
    """Return the publisher's own hint how often to look, in seconds."""
    minutes = _first_text(fields, "ttl")
    if minutes and minutes.isascii() and minutes.isdigit() and 0 < int(minutes) < 100_000:
        return int(minutes) * 60.0
    period = _PERIODS_S.get((_first_text(fields, "sy:updateperiod") or "").lower())
    if period is None:
        return None
    frequency = _first_text(fields, "sy:updatefrequency") or "1"
    per_period = int(frequency) if frequency.isascii() and frequency.isdigit() else 1
    return period / max(per_period, 1)


# --- Atom ----------------------------------------------------------------------------

_ATOM_PUBLISHED = ("published", "issued", "created", "dc:date", "dcterms:issued", "pubdate")
_ATOM_UPDATED = ("updated", "modified", "dcterms:modified")


def _read_atom(root: etree._Element, url: str, dates: DateReader) -> Listing:
    own = (*_ATOM, namespace(root.tag))
    fields = _fields_of(root, own)
    dates.language = dates.language or root.get(_XML_LANG)
    feed_authors = _unique(
        name for author in fields.get("author", ()) for name in _person_names(author)
    )
    version = "0.3" if "purl.org/atom" in namespace(root.tag) else "1.0"
    return Listing(
        format=f"atom {version}",
        entries=_newest_of(
            fields.get("entry") or fields.get("item") or [],
            lambda entry: _atom_entry(entry, own, url, dates, feed_authors),
        ),
        title=_atom_text(fields, "title"),
        ttl_s=_ttl_s(fields),
        older=_older(fields, url),
    )


def _atom_entry(
    element: etree._Element,
    own: tuple[str, ...],
    url: str,
    dates: DateReader,
    feed_authors: tuple[str, ...],
) -> Entry:
    fields = _with_group(_fields_of(element, own))
    guid = _first_text(fields, "id", "guid")
    summary = _first_text(fields, "summary", "content", "media:description")
    authors = (name for author in fields.get("author", ()) for name in _person_names(author))
    return Entry(
        url=_atom_link(fields, url),
        title=_atom_text(fields, "title") or _atom_text(fields, "media:title"),
        guid=guid,
        summary=_summary(summary),
        content=_first_text(fields, "content") or summary,
        media=_media(fields),
        authors=_unique(authors) or feed_authors,
        **_dates_of(dates, fields, _ATOM_PUBLISHED, _ATOM_UPDATED),
    )


def _atom_link(fields: Fields, url: str) -> str:
    original = _first_text(fields, "feedburner:origlink")
    if original:
        return _address(original, url)
    for link in sorted(fields.get("link", ()), key=_link_rank):
        address = absolute_url(link.get("href") or link.text or "", _base_of(link, url))
        if address and _link_rank(link) < _NO_ARTICLE:
            return address
    guid = _first_text(fields, "id", "guid") or ""
    return _address(guid, url) if guid.lower().startswith(("http://", "https://")) else ""


_NO_ARTICLE = 2


def _link_rank(link: etree._Element) -> int:
    """Order an entry's links: pages, other alternates, then what leads elsewhere."""
    relation = (link.get("rel") or "alternate").rpartition("/")[2]
    if relation != "alternate" or not (link.get("href") or link.text):
        return _NO_ARTICLE
    return 0 if (link.get("type") or "text/html").startswith(("text/html", "application/x")) else 1


def _atom_text(fields: Fields, name: str) -> str | None:
    for element in fields.get(name, ()):
        text = inner_text(element).strip()
        if not text:
            continue
        kind = (element.get("type") or "text").lower()
        if element.get("mode") == "base64" or kind == "application/octet-stream":
            text, kind = _from_base64(text), "html"
        is_markup = kind not in {"text", "text/plain", "xhtml", "application/xhtml+xml"}
        is_markup = is_markup or element.get("mode") == "escaped"
        return (plain_title(text) if is_markup else literal_text(text)) or None
    return None


def _from_base64(text: str) -> str:
    """Return what a text in base64 says, as Atom 0.3 allowed; itself where it is none."""
    try:
        return base64.b64decode(text, validate=False).decode("utf-8")
    except ValueError:
        return text


def _person_names(person: etree._Element) -> list[str]:
    names = [inner_text(child) for child in person if local_name(child.tag) == "name"]
    return names or ([] if len(person) else [inner_text(person)])


# --- JSON Feed -----------------------------------------------------------------------


def _read_json_feed(text: str, url: str, dates: DateReader) -> Listing:
    if sum(map(text.count, ",[{")) > MAX_JSON_VALUES:
        raise ParseError(url, f"JSON of more than {MAX_JSON_VALUES} values")
    try:
        feed = json.loads(text.lstrip("\ufeff"), strict=False)
    except (ValueError, RecursionError) as error:
        raise ParseError(url, f"no feed: broken JSON ({error})") from error
    items = feed.get("items") if isinstance(feed, dict) else None
    if not isinstance(items, list) or "version" not in feed:
        raise ParseError(url, "JSON, but no JSON Feed")
    version = str(feed["version"]).rstrip("/").rpartition("/")[2][:10]
    return Listing(
        format=f"json feed {version}",
        entries=_newest_of(
            [item for item in items if isinstance(item, dict)],
            lambda item: _json_entry(item, url, dates, _json_authors(feed)),
        ),
        title=collapse_spaces(str(feed.get("title") or "")) or None,
        older=_address(str(feed.get("next_url") or ""), url) or None,
    )


def _json_authors(said: dict[str, Any]) -> tuple[str, ...]:
    """Return the names of a feed's or item's authors, version 1.0's before version 1.1's."""
    stated = said.get("authors")
    people = [said.get("author"), *(stated if isinstance(stated, list) else ())]
    names = [person.get("name") for person in people if isinstance(person, dict)]
    return _unique(str(name) for name in names if name)


def _json_entry(
    item: dict[str, Any], url: str, dates: DateReader, feed_authors: tuple[str, ...]
) -> Entry:
    def said(*names: str) -> str | None:
        return next((str(item[name]) for name in names if item.get(name)), None)

    published, updated = dates.read(said("date_published")), dates.read(said("date_modified"))
    moment, refusal = published or updated, dates.take_refusal()
    return Entry(
        url=_address(said("url", "external_url"), url),
        title=literal_text(said("title") or "") or None,
        guid=said("id"),
        published_at=moment.at if moment else None,
        published_precision=moment.precision if moment else None,
        published_basis="date_published" if published else "date_modified" if updated else None,
        updated_at=updated.at if updated else None,
        summary=_summary(said("summary", "content_text", "content_html")),
        content=said("content_html", "content_text", "summary"),
        authors=_json_authors(item) or feed_authors,
        published_note=None if moment else refusal,
    )


# --- feedparser, the tolerant second --------------------------------------------------


def _read_tolerantly(text: str, url: str, dates: DateReader) -> Listing | None:
    try:
        parsed = feedparser.parse(
            io.BytesIO(text.encode("utf-8", "replace")),
            response_headers={
                "content-type": "application/xml; charset=utf-8",
                "content-location": url,
            },
            sanitize_html=False,
            resolve_relative_uris=False,
        )
    except Exception:  # noqa: BLE001 - it breaks on some of the very feeds it is here for
        return None
    if not parsed.get("version") and not parsed.entries:
        return None
    version = re.sub(r"^(rss|atom)(\d)(\d*)$", r"\1 \2.\3", parsed.get("version") or "feed")
    return Listing(
        format=version,
        entries=tuple(_tolerant_entry(dict(entry), url, dates) for entry in parsed.entries),
        title=plain_title(parsed.feed.get("title", "")) or None,
        warnings=("read by the tolerant parser",),
    )


def _tolerant_entry(entry: dict[str, Any], url: str, dates: DateReader) -> Entry:
    published, updated = dates.read(entry.get("published")), dates.read(entry.get("updated"))
    moment, refusal = published or updated, dates.take_refusal()
    return Entry(
        url=_address(entry.get("link"), url),
        title=plain_title(entry.get("title", "")) or None,
        guid=entry.get("id") or None,
        published_at=moment.at if moment else None,
        published_precision=moment.precision if moment else None,
        published_basis="published" if published else "updated" if updated else None,
        updated_at=updated.at if updated else None,
        summary=_summary(entry.get("summary")),
        content=next((str(one.get("value")) for one in entry.get("content", [])), None),
        authors=_unique(str(one.get("name", "")) for one in entry.get("authors", [])),
        published_note=None if moment else refusal,
    )
