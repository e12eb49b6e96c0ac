"""Files to mutate, and the ways they are mutated: what a fuzz run feeds to ``inspect``.

Everything follows from a seed, so that a finding can be made again from its number alone.
"""

from __future__ import annotations

import functools
import gzip
import random
import re
import tarfile
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from tasks.replay.pages import (
    make_article_page,
    make_feed,
    make_front,
    make_robots,
    make_sitemap,
)
from tasks.replay.sample import sample_web

NOW = datetime(2024, 5, 7, 12, 0, tzinfo=UTC)
MAX_BYTES = 256 * 1024
"""Mutants grow no larger: what takes long is found as well in a small file."""

ROOT = Path(__file__).parents[2]
COLLECTION = ROOT.parent / "shared" / "data" / "C_feeds"
COLLECTED = {
    "feed": ("feeds", "xml-attacks"),
    "sitemap": ("sitemaps",),
    "list": ("index-pages", "forums"),
    "article": ("index-pages",),
    "robots": ("robots",),
    "telegram": ("telegram",),
}
MAX_COLLECTED = 400
"""Files of the collection that are used for one kind, evenly chosen."""

OWN: dict[str, tuple[bytes, ...]] = {
    "feed": (
        (
            b'{"version":"https://jsonfeed.org/version/1.1","title":"T","items":[{"id":"1","url":'
            b'"https://a.example/1","title":"One","date_published":"2024-05-06T10:00:00Z","authors":'
            b'[{"name":"A"}],"content_html":"<p>x</p>","tags":["t"]},{"id":2,"external_url":"/2"}]}'
        ),
        (
            b'<?xml version="1.0"?><rdf:RDF xmlns:rdf="http://www.w3.org/1999/02/22-rdf-syntax-ns#"'
            b' xmlns="http://purl.org/rss/1.0/" xmlns:dc="http://purl.org/dc/elements/1.1/"><channel'
            b' rdf:about="https://a.example/"><title>T</title></channel><item rdf:about='
            b'"https://a.example/1"><title>One &amp; two</title><link>https://a.example/1</link>'
            b"<dc:date>2024-05-06T10:00:00+02:00</dc:date><dc:creator>A</dc:creator></item></rdf:RDF>"
        ),
        (
            b'<!DOCTYPE rss [<!ENTITY a "ten chars "><!ENTITY b "&a;&a;&a;"><!ENTITY c SYSTEM '
            b'"file:///etc/passwd">]><rss version="2.0"><channel><item><title>&b;&c;</title><link>'
            b"https://a.example/1</link><pubDate>Mon, 06 May 2024 10:00:00 EST</pubDate></item>"
            b"</channel></rss>"
        ),
        (
            b'<feed version="0.3" xmlns="http://purl.org/atom/ns#" xml:base="https://a.example/x/">'
            b'<entry><title mode="base64">T25l</title><link rel="alternate" type="text/html" '
            b'href="../1"/><id>tag:a.example,2024:1</id><issued>2024-05-06T10:00Z</issued><author>'
            b"<name>A</name></author></entry></feed>"
        ),
    ),
    "sitemap": (
        (
            b"<sitemapindex><sitemap><loc>https://a.example/1.xml</loc><lastmod>2024-05-06</lastmod>"
            b"</sitemap><sitemap><loc>/2.xml.gz</loc></sitemap></sitemapindex>"
        ),
        b"https://a.example/1\nhttps://a.example/2\n",
    ),
    "robots": (
        (
            b"User-agent: newsbeat\nAllow: /a/*.html$\nDisallow: /a\nCrawl-delay: 2.5\n\n"
            b"User-agent: *\nDisallow: */private/*\nAllow: /%D0%B0\nSitemap: https://a.example/s.xml\n"
        ),
    ),
    "telegram": (
        (
            b'<html><body><section class="tgme_channel_history">'
            b'<div class="tgme_widget_message_wrap"><div class="tgme_widget_message" '
            b'data-post="channel/12"><div class="tgme_widget_message_text js-message_text" '
            b'dir="auto">First line<br/>second <a href="https://a.example/">link</a></div>'
            b'<a class="tgme_widget_message_date" href="https://t.me/channel/12"><time '
            b'datetime="2024-05-06T10:00:00+00:00">10:00</time></a></div></div></section>'
            b"</body></html>"
        ),
    ),
}
TOKENS: tuple[bytes, ...] = (
    b"\x00", b"\xff\xfe", b"\xef\xbb\xbf", b"\x1b$B", b"<!--", b"-->", b"<![CDATA[", b"]]>",
    b"<?xml", b"<?xml version='1.0' encoding='utf-16'?>",
    b"<?xml version='1.0' encoding='utf-7'?>", b"?>", b"<!DOCTYPE a [", b"<!ENTITY a '&a;&b;'>",
    b"<!ENTITY b '&a;&a;'>", b"<!ENTITY % p SYSTEM 'f:'>", b"&a;", b"&b;", b"&amp;", b"&#0;",
    b"&#xD800;", b"&#x110000;", b"&#99999999999;", b"&nbsp", b"&", b"<", b">", b'"', b"'", b"=",
    b"</", b"/>", b"<script>", b"<style>", b"<base href='//[::1'>", b"<item>", b"</item>",
    b"<entry>", b"<div>", b"<p>", b"<b>", b"<table><tr><td>", b"<a href='/1'>", b"<svg>",
    b"<math>", b"<template>", b"<select>", b"<details>", b"<title>", b"<time datetime='0'>",
    b" xml:base='http://['", b" xmlns='x'", b" xmlns:a=''", b"a:", b" type='xhtml'", b" href=''",
    b"http://", b"https://[::1]/", b"javascript:", b"http://\xd1\x82.example:99999/", b"%", b"%zz",
    b"0", b"-1", b"9" * 40, b"1e999", b"NaN", b"null", b"[", b"{", b"}", b"]", b'"\\ud800"',
    b"0000-00-00", b"9999-12-31T24:00:60+24:60", b"0001-01-01T00:00:00+14:00",
    b"31 Feb 2024 25:61", b"1970-01-01", b"00:00", b"\xe2\x80\xae", b"\xed\xa0\x80",
    b"\xf4\x90\x80\x80", b"\xcc\x81" * 50, b"User-agent: *", b"Disallow: /" + b"*" * 60 + b"$",
    b"Allow: /", b"\r", b"\n\n", b"\x0c", b"\x85",
)  # fmt: skip
CONTENT_TYPES = (
    None, "text/html", "text/xml; charset=utf-8", "text/html; charset=windows-1251", "x; charset=",
    "text/html; charset=utf-7", "text/html; charset=utf-16", "application/xml; charset=rot13",
    "text/xml; charset=punycode", "text/html; charset=" + "a" * 300, "text/html; charset=hz",
)  # fmt: skip
ADDRESSES = (
    "https://a.example/", "https://a.example/x/y.xml?z#f", "http://xn--e1aybc.xn--e1aybc:33/",
    "http://192.0.2.1/", "https://a.example/" + "x/" * 300,
)  # fmt: skip
ZONES = ("UTC", "Europe/Moscow", "America/New_York", "Pacific/Apia")
_PIECES = re.compile(rb"(<[^<>]*>|[^<>\s]+|\s+|.)", re.DOTALL)
_NUMBERS = re.compile(rb"\d+")
_CHARSETS = ("utf-16", "utf-16-be", "utf-32", "cp1251", "koi8-r", "gb18030", "shift_jis", "utf-7")


@dataclass(frozen=True, slots=True)
class Mutant:
    """One file to look at, and what is said beside it."""

    body: bytes
    kind: str
    options: dict[str, Any] = field(default_factory=dict)


@functools.cache
def seeds_of(kind: str) -> tuple[bytes, ...]:
    """Return the files that mutants of `kind` are made of: ours, and the collection's."""
    ours = [*OWN.get(kind, ()), *_rendered(kind)]
    ours += [path.read_bytes() for path in sorted((ROOT / "tests" / "samples").glob("*.*ml"))]
    return tuple(ours + _collected(kind))


def _rendered(kind: str) -> Iterator[bytes]:
    """Yield pages of the web that ships with newsbeat."""
    for source in sample_web(hours=6.0).history:
        window = range(min(len(source.entries), 8))
        if kind == "feed":
            yield make_feed(source, window).body
        elif kind == "sitemap":
            yield make_sitemap(source, window).body
        elif kind == "robots":
            yield make_robots(source).body
        elif kind == "list":
            yield from (make_front(source, window, each).body for each in ("cards", "river"))
        elif kind == "article":
            yield make_article_page(source, 0, source.layout).body


def _collected(kind: str) -> list[bytes]:
    names = [
        path
        for folder in COLLECTED.get(kind, ())
        for path in sorted((COLLECTION / folder).glob("*.tar.xz"))
    ]
    found: list[bytes] = []
    for path in names:
        with tarfile.open(path) as archive:
            members = [each for each in archive if each.isfile() and each.size <= MAX_BYTES]
            step = max(len(members) * len(names) // MAX_COLLECTED, 1)
            files = (archive.extractfile(each) for each in members[::step])
            found += [file.read() for file in files if file]
    return found


def make_mutant(kind: str, number: int, seed: int = 1) -> Mutant:
    """Return the mutant of that number: the same for the same arguments and seeds."""
    rng = random.Random(f"{seed} {kind} {number}")
    body = rng.choice(seeds_of(kind))
    for _ in range(rng.choice((1, 1, 2, 3, 5, 9))):
        body = rng.choice(MUTATIONS)(body, rng, kind)[:MAX_BYTES]
    return Mutant(body, kind, options_of(rng, kind))


def options_of(rng: random.Random, kind: str) -> dict[str, Any]:
    """Return what `inspect` may be told beside a file."""
    return {
        "base_url": rng.choice(ADDRESSES),
        "content_type": rng.choice(CONTENT_TYPES),
        "zone": rng.choice(ZONES),
    }


# --- mutations -----------------------------------------------------------------------


def _place(body: bytes, rng: random.Random) -> int:
    return rng.randrange(len(body) + 1)


def flip_bytes(body: bytes, rng: random.Random, kind: str) -> bytes:
    """Change a few bytes to any others."""
    changed = bytearray(body)
    for _ in range(rng.randint(1, 8) if changed else 0):
        changed[rng.randrange(len(changed))] = rng.randrange(256)
    return bytes(changed)


def insert_token(body: bytes, rng: random.Random, kind: str) -> bytes:
    """Put in a word that means something to some parser, once or many times over."""
    at = _place(body, rng)
    return body[:at] + rng.choice(TOKENS) * rng.choice((1, 1, 1, 2, 50, 3000)) + body[at:]


def cut(body: bytes, rng: random.Random, kind: str) -> bytes:
    """Break off, or lose a piece from the middle."""
    first, last = sorted((_place(body, rng), _place(body, rng)))
    return rng.choice((body[:first], body[last:], body[:first] + body[last:]))


def repeat(body: bytes, rng: random.Random, kind: str) -> bytes:
    """Say a piece again, up to many times."""
    first = _place(body, rng)
    last = min(first + rng.choice((3, 20, 100, 1000)), len(body))
    return body[:last] + body[first:last] * rng.choice((1, 2, 30, 1000)) + body[last:]


def shuffle_pieces(body: bytes, rng: random.Random, kind: str) -> bytes:
    """Drop, double or swap tags and words."""
    pieces = _PIECES.findall(body)
    for _ in range(rng.randint(1, 12) if pieces else 0):
        one, two = rng.randrange(len(pieces)), rng.randrange(len(pieces))
        match rng.randrange(3):
            case 0:
                pieces[one], pieces[two] = pieces[two], pieces[one]
            case 1:
                pieces[one] = b""
            case _:
                pieces[one] += pieces[two]
    return b"".join(pieces)


def nest(body: bytes, rng: random.Random, kind: str) -> bytes:
    """Put everything, or a piece, inside many of one tag."""
    tag = rng.choice((b"div", b"b", b"item", b"entry", b"a", b"p", b"table", b"ul", b"x:y", b"svg"))
    depth, at = rng.choice((2, 50, 5000)), _place(body, rng)
    closing = b"</" + tag + b">" if rng.random() < 0.5 else b""
    return body[:at] + (b"<" + tag + b">") * depth + body[at:] + closing * depth


def splice(body: bytes, rng: random.Random, kind: str) -> bytes:
    """Go on as another file does."""
    other = rng.choice(seeds_of(kind))
    return body[: _place(body, rng)] + other[_place(other, rng) :]


def reencode(body: bytes, rng: random.Random, kind: str) -> bytes:
    """Write the text in another encoding, its declaration left as it was."""
    return body.decode("utf-8", "replace").encode(rng.choice(_CHARSETS), "replace")


def change_numbers(body: bytes, rng: random.Random, kind: str) -> bytes:
    """Put other numbers in: dates, counts, references to characters."""
    others = (b"0", b"1", b"00", b"99", b"60", b"24", b"2147483648", b"9" * 20, b"0x1", b"\xd9\xa3")
    share = rng.choice((0.01, 0.1, 1.0))
    return _NUMBERS.sub(
        lambda found: rng.choice(others) if rng.random() < share else found[0], body
    )


def crowd_attributes(body: bytes, rng: random.Random, kind: str) -> bytes:
    """Give one tag very many attributes."""
    at = body.find(b">", _place(body, rng))
    many = b"".join(b" a%d='%d'" % (n, n) for n in range(rng.choice((5, 500, 4000))))
    return body if at < 0 else body[:at] + many + body[at:]


def zip_up(body: bytes, rng: random.Random, kind: str) -> bytes:
    """Wrap in gzip, whole or broken off."""
    packed = gzip.compress(body, 1, mtime=0)
    return packed if rng.random() < 0.7 else packed[: _place(packed, rng)]


def raw_bytes(body: bytes, rng: random.Random, kind: str) -> bytes:
    """Forget the file: bytes of no meaning."""
    return rng.randbytes(rng.choice((1, 10, 1000, 20_000)))


Mutation = Callable[[bytes, random.Random, str], bytes]
MUTATIONS: tuple[Mutation, ...] = (
    flip_bytes, insert_token, insert_token, insert_token, cut, repeat, shuffle_pieces,
    shuffle_pieces, nest, splice, reencode, change_numbers, crowd_attributes, zip_up, raw_bytes,
)  # fmt: skip
