"""What a page, or a robots.txt, says about where a site's listings are."""

from __future__ import annotations

import re
from dataclasses import dataclass

from selectolax.lexbor import LexborHTMLParser

from models.decoding import decode_bytes
from models.kinds import public_address, recognise
from models.plaintext import absolute_url

_FEED_TYPES = ("application/rss+xml", "application/atom+xml", "application/rdf+xml")
_LOOSE_FEED_TYPES = ("application/xml", "text/xml", "application/feed+json")
_FEED_WORDS = re.compile(r"\b(rss|atom|feed)\b", re.IGNORECASE)
_COMMENTS = re.compile(r"comment|kommentar|коммент", re.IGNORECASE)
_LANGUAGE = re.compile(r"[a-z]{2,3}(-[A-Za-z0-9]{2,8})*")
_SITEMAP_LINE = re.compile(r"^[ \t]*sitemap[ \t]*:[ \t]*(\S+)", re.IGNORECASE | re.MULTILINE)


@dataclass(frozen=True, slots=True)
class PageLinks:
    """Where a page says its feeds are.

    Attributes
    ----------
    feeds
        Absolute addresses in the order of the page, feeds of comments left out.
    language
        The page's own ``lang``, where it is well formed.
    board
        The forum software that made it, where one did.
    base
        What its relative links are relative to.
    """

    feeds: tuple[str, ...]
    title: str | None = None
    language: str | None = None
    board: str | None = None
    base: str = ""


def find_feed_links(body: bytes, url: str, content_type: str | None = None) -> PageLinks:
    """Return the feeds a page names: ``<link rel=alternate>`` first, then links to feeds.

    Examples
    --------
    >>> page = b'<base href="/de/"><link rel="alternate" type="application/rss+xml" href="rss">'
    >>> find_feed_links(page, "https://news.example/").feeds
    ('https://news.example/de/rss',)
    """
    tree = LexborHTMLParser(decode_bytes(body, content_type).text)
    base = _base(tree, url)
    links = [*_named_feeds(tree), *_linked_feeds(tree), *_channel_feeds(tree, url)]
    feeds = dict.fromkeys(found for link in links if (found := absolute_url(link, base)))
    html = tree.css_first("html")
    language = (html.attributes.get("lang") or "").strip() if html else ""
    title = tree.css_first("head > title")
    return PageLinks(
        feeds=tuple(feed for feed in feeds if feed != url),
        title=" ".join(title.text().split()) or None if title else None,
        language=language if _LANGUAGE.fullmatch(language) else None,
        board=_board(tree),
        base=base,
    )


def find_sitemap_lines(robots: bytes, url: str) -> tuple[str, ...]:
    r"""Return the sitemaps a robots.txt names, those of news first.

    >>> find_sitemap_lines(b"Sitemap: /all.xml\nSITEMAP: /news.xml", "https://n.example/robots.txt")
    ('https://n.example/news.xml', 'https://n.example/all.xml')
    """
    links = _SITEMAP_LINE.findall(decode_bytes(robots).text)
    found = dict.fromkeys(address for link in links if (address := absolute_url(link, url)))
    return tuple(sorted(found, key=lambda address: not names_news(address)))


def names_news(url: str) -> bool:
    """Tell whether a sitemap's own path speaks of news (the host's does not count)."""
    return "news" in url.partition("://")[2].partition("/")[2].lower()


def _base(tree: LexborHTMLParser, url: str) -> str:
    base = tree.css_first("base[href]")
    return absolute_url(base.attributes.get("href") or "", url) or url if base else url


def _named_feeds(tree: LexborHTMLParser) -> list[str]:
    links = []
    for link in tree.css('link[rel~="alternate" i][href]'):
        kind = (link.attributes.get("type") or "").lower().strip()
        href = link.attributes.get("href") or ""
        title = link.attributes.get("title") or ""
        is_feed = kind.startswith(_FEED_TYPES) or (
            kind.startswith(_LOOSE_FEED_TYPES) and _FEED_WORDS.search(f"{href} {title}")
        )
        if is_feed and not _COMMENTS.search(f"{href} {title}"):
            links.append(href)
    return links


def _linked_feeds(tree: LexborHTMLParser) -> list[str]:
    """Return links of the page's text that look like feeds: many sites have no other."""
    hrefs = (link.attributes.get("href") or "" for link in tree.css("a[href]"))
    return [href for href in hrefs if _looks_like_feed(href)]


def _looks_like_feed(href: str) -> bool:
    path = href.partition("?")[0].partition("#")[0].lower().rstrip("/")
    ends = path.endswith((".rss", "/rss", "/rss.xml", "/feed", "/feed.xml", "/atom.xml", ".atom"))
    return ends and not _COMMENTS.search(href)


def _channel_feeds(tree: LexborHTMLParser, url: str) -> list[str]:
    """Return the feed of the YouTube channel a page is about, which it may name in no link."""
    if recognise(url) != "youtube":
        return []
    named = tree.css_first('meta[itemprop="identifier"], meta[itemprop="channelId"]')
    canonical = tree.css_first('link[rel="canonical"][href*="/channel/"]')
    said = [f"/channel/{named.attributes.get('content') or ''}"] if named else []
    said += [canonical.attributes.get("href") or ""] if canonical else []
    addresses = (absolute_url(link, url) for link in said)
    feeds = (public_address("youtube", address) for address in addresses if address)
    return [feed for feed in feeds if feed]


def _board(tree: LexborHTMLParser) -> str | None:
    """Return the forum software that made a page, by what each leaves in its head."""
    generator = tree.css_first('meta[name="generator" i]')
    made_by = (generator.attributes.get("content") or "").lower() if generator else ""
    for software, mark in _BOARD_MARKS.items():
        if software.lower() in made_by or tree.css_first(mark) is not None:
            return software
    return None


_BOARD_MARKS = {
    "phpBB": "body#phpbb, #phpbb",
    "vBulletin": "body#vb-page-body",
    "XenForo": "html#XF, html#XenForo",
    "Discourse": "meta[name='discourse_theme_id'], #data-discourse-setup",
}
