"""Who is who: keys of addresses, ids of entries and articles, digests of texts.

An address is fetched as the publisher wrote it, but compared by its *key*, from
which everything is removed that does not choose the page: scheme, default port,
fragment, tracking parameters, trailing slash. An entry is known by its guid
where the publisher gives a usable one, otherwise by the key of its link.
"""

from __future__ import annotations

import hashlib
import re
import unicodedata
from collections import Counter
from collections.abc import Collection, Iterable, Sequence

import ada_url

from models.boards import is_session, settled_path, settled_query
from models.records import Entry, Identity, NewEntry

ID_DIGITS = 20
"""80 bits: two of a billion ids are alike with a chance of one in two million."""

_TRACKING_PREFIXES = ("utm_", "at_campaign", "at_medium", "mtm_", "pk_", "hsa_")
_TRACKING_WORDS = """
_ga _gl _hsenc _hsmi _openstat cmpid dclid epik fbclid fb_action_ids fb_action_types fb_ref
fb_source gbraid gclid gclsrc guccounter guce_referrer guce_referrer_sig igsh igshid mc_cid mc_eid
mkt_tok msclkid ncid ocid oly_anon_id oly_enc_id rb_clickid s_cid srsltid twclid vero_conv vero_id
wbraid wickedid wt_mc xtor yclid ymclid ysclid
"""
_TRACKING_PARAMETERS = frozenset(_TRACKING_WORDS.split())
_SOURCE_PARAMETERS = frozenset({"from", "ref", "source", "src"})
"""Often the section or author; dropped only where they say that a feed was the way here."""

_COPY_HOST = re.compile(r"^(?:(?:www|m|mobile|amp|touch|wap)\.)+(?=[^.]+\.)")
_AMP_ENDING = re.compile(r"\.amp(\.html?)?$", re.IGNORECASE)
_AMP_PARAMETER = re.compile(r"amp(?:=(?:1|true)?)?|output(?:type)?=amp", re.IGNORECASE)
_SPACES = re.compile(r"\s+")


def url_key(url: str) -> str:
    """Return what two addresses of the same page have in common.

    Dropped: the scheme (http and https are one), user and password, a default port, the
    fragment (unless it is a route, ``#!…`` or ``#/…``), tracking parameters, sessions, what
    of a board's thread may change, an empty query, and the slashes that end the path. The
    host is in lower-case punycode. Order, case and doubles of the other parameters are
    kept: they may choose the page.

    Parameters
    ----------
    url
        An absolute address. Text that is none is its own key, spaces trimmed.

    Examples
    --------
    >>> url_key("HTTPS://News.Example:443/a/?id=7&utm_source=x#top")
    'news.example/a?id=7'
    >>> url_key("http://пример.рф")
    'xn--e1afmkfd.xn--p1ai'
    """
    try:
        parsed = ada_url.URL(url.strip())
    except ValueError:
        return _SPACES.sub(" ", url.strip())
    if parsed.protocol not in {"http:", "https:"}:
        return str(parsed.href)
    path = settled_path(parsed.pathname.rstrip("/"))
    query = _kept_query(parsed.search, parsed.pathname)
    fragment = parsed.hash if parsed.hash.startswith(("#!", "#/")) else ""
    return f"{parsed.host.removesuffix('.')}{path}{query}{fragment}"


def page_key(url: str) -> str:
    """Return what the copies of a page made for telephones have in common with it.

    The :func:`url_key` without ``www``, ``m``, ``mobile`` and ``amp`` before the host, and
    without what asks for AMP. Two pages may share it, so it is compared together with the
    headline, and never fetched.

    Examples
    --------
    >>> page_key("https://amp.news.example/a/7/amp/?outputType=amp")
    'news.example/a/7'
    >>> page_key("https://m.news.example/a/7.amp.html")
    'news.example/a/7.html'
    """
    address, mark, query = url_key(url).partition("?")
    host, *path = address.split("/")
    parts = [_COPY_HOST.sub("", host), *(part for part in path if part.lower() != "amp")]
    parts[-1] = _AMP_ENDING.sub(r"\1", parts[-1])
    kept = [part for part in query.split("&") if not _AMP_PARAMETER.fullmatch(part)]
    return "/".join(parts) + (mark + "&".join(kept) if any(kept) else "")


def _kept_query(search: str, path: str) -> str:
    parts = search.removeprefix("?").split("&")
    kept = [part for part in parts if part and not _tracks(part) and not is_session(part)]
    kept = settled_query(path, kept)
    return f"?{'&'.join(kept)}" if kept else ""


def _tracks(part: str) -> bool:
    name, _, value = part.partition("=")
    name = name.lower()
    if name in _SOURCE_PARAMETERS:
        return value.lower() == "rss"
    return name in _TRACKING_PARAMETERS or name.startswith(_TRACKING_PREFIXES)


def repeated_guids(entries: Iterable[Entry]) -> frozenset[str]:
    """Return the guids that a listing gives to more than one address.

    Some publishers write one guid on every item. An entry listed twice, with the same
    guid and the same address, does not count.
    """
    links = {(entry.guid, url_key(entry.url)) for entry in entries if entry.guid}
    counts = Counter(guid for guid, _ in links if guid)
    return frozenset(guid for guid, count in counts.items() if count > 1)


def entry_key(
    source: str, entry: Entry, repeated: Collection[str] = (), policy: Identity = "auto"
) -> str:
    """Return the text by which `entry` is known among the entries of `source`.

    The guid, where there is one that its listing does not repeat; an address as guid goes
    through :func:`url_key`, so that a move to https changes nothing. Otherwise the key of
    the link.

    Parameters
    ----------
    source
        Short name of the source: the same guid elsewhere is another entry.
    repeated
        Guids not to be trusted, from :func:`repeated_guids`.
    policy
        ``guid`` and ``link`` take these alone, ``title-date`` headline and date; what an
        entry lacks, the others stand in for. A guid that is repeated is never taken.

    Examples
    --------
    >>> entry_key("daily", Entry("https://daily.example/a", guid="tag:1"))
    'daily guid:tag:1'
    >>> entry_key("daily", Entry("https://daily.example/a", guid="tag:1"), {"tag:1"})
    'daily link:daily.example/a'
    >>> entry_key("daily", Entry("https://daily.example/a", guid="tag:1"), policy="link")
    'daily link:daily.example/a'
    """
    guid = (entry.guid or "").strip()
    link = url_key(entry.url)
    if policy == "title-date" and entry.title and entry.published_at:
        at = entry.published_at.isoformat()
        return f"{source} title:{_settled(entry.title).casefold()} {at}"
    if not guid or guid in repeated or policy in ("link", "title-date"):
        return f"{source} link:{link}"
    if guid.lower().startswith(("http://", "https://")):
        key = url_key(guid)
        return f"{source} link:{link}" if key == link else f"{source} guid:{key}"
    return f"{source} guid:{guid}"


def entry_id(
    source: str, entry: Entry, repeated: Collection[str] = (), policy: Identity = "auto"
) -> str:
    """Return the id of an entry: a digest of its :func:`entry_key`."""
    return short_id(entry_key(source, entry, repeated, policy))


def article_id(source: str, url: str) -> str:
    """Return the id of the article at `url`: a digest of the source and the address's key."""
    return short_id(f"{source} article:{url_key(url)}")


def short_id(text: str) -> str:
    """Return the first 20 hex digits of the SHA-256 of `text`."""
    return text_sha256(text)[:ID_DIGITS]


def text_sha256(text: str) -> str:
    """Return the SHA-256 of `text` in UTF-8, as 64 hex digits."""
    return hashlib.sha256(text.encode("utf-8", "surrogatepass")).hexdigest()


def listing_fingerprint(entry: Entry) -> str:
    """Return a digest that changes when the listing of an entry says something new.

    It covers title, summary and ``updated_at``. White space and the way a letter is
    composed are not news.
    """
    updated = entry.updated_at.isoformat() if entry.updated_at else ""
    parts = (_settled(entry.title), _settled(entry.summary), updated)
    return short_id("\x00".join(parts))


def _settled(text: str | None) -> str:
    return _SPACES.sub(" ", unicodedata.normalize("NFKC", text or "")).strip()


def identify(source: str, entries: Sequence[Entry], policy: Identity = "auto") -> list[NewEntry]:
    """Return the entries of one listing with their ids, each once, in the listing's order.

    Of entries with one id the first is kept, and of a page and its copies for telephones
    under one headline the page. Two entries with different guids and one address stay two:
    live blogs list their updates so.

    Parameters
    ----------
    source
        Short name of the source.
    entries
        All entries of the listing: a guid is judged by the whole of it.
    policy
        What the source's entries are known by.
    """
    repeated = repeated_guids(entries)
    known: dict[str, NewEntry] = {}
    for entry in _without_copies(entries):
        key = entry_id(source, entry, repeated, policy)
        known.setdefault(key, NewEntry(key, entry, listing_fingerprint(entry)))
    return list(known.values())


def _without_copies(entries: Sequence[Entry]) -> list[Entry]:
    best: dict[tuple[str, str], tuple[bool, str]] = {}
    told = []
    for entry in entries:
        address, page = url_key(entry.url), page_key(entry.url)
        twin, rank = (page, _settled(entry.title)), (address.removeprefix("www.") != page, address)
        best[twin] = min(best.get(twin, rank), rank)
        told.append((twin, rank))
    return [
        entry
        for entry, (twin, rank) in zip(entries, told, strict=True)
        if not twin[1] or rank == best[twin]
    ]
