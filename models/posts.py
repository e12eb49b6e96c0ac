"""Posts: entries that are their own article, with no headline and no page worth fetching.

A post's text comes with the listing. What is missing is a headline, so a label is derived
from its beginning; what is too much are the words that boards and services add to every
post of a feed.
"""

from __future__ import annotations

import re
from dataclasses import replace

from models.plaintext import collapse_spaces, plain_paragraphs
from models.records import Entry, Kind, Listing

LABEL_CHARS = 100
"""About a headline's length."""

POST_CHARS = 100_000
"""Longer than any post; a feed that brings more is cut."""

_SENTENCE_END = re.compile(r"(?<=[.!?…])[\"'»”)]*\s|[。！？]")
_ADDRESS = re.compile(r"https?://\S+")
_FURNITURE = re.compile(
    r"\s*(?:"
    r"submitted by\s+/?u/\S+(?:\s+to\s+/?r/\S+)?|\[link\]|\[comments\]"  # Reddit
    r"|\d+ posts? - \d+ participants?|Read full topic"  # Discourse
    r"|Statistics: Posted by[^\n]*"  # phpBB
    r"|\[contains quote post or other embedded content\]"  # Bluesky
    r")\s*\Z"
)
_EMBEDDED = "[contains quote post or other embedded content]"
_LINKED = re.compile(r"<a\s[^>]*href=\"([^\"]+)\"[^>]*>\s*\[link\]")
_NOTHING_SHOWN = "the listing shows no text of it"


def as_posts(listing: Listing, kind: Kind) -> Listing:
    """Return a listing whose entries carry their whole text as summary, and all have a title."""
    return replace(listing, entries=tuple(_as_post(entry, kind) for entry in listing.entries))


def _as_post(entry: Entry, kind: Kind) -> Entry:
    told = _told(entry, kind)
    text = without_furniture(told)
    media = entry.media
    if kind == "reddit" and not text:
        found = _LINKED.search(entry.content or "")
        text = found[1].replace("&amp;", "&") if found else ""
    if kind == "youtube":
        media = media or ("video",)
    if _EMBEDDED in told:
        media = (*media, "embedded")
    return replace(
        entry,
        title=entry.title or derive_label(text, media),
        summary=text[:POST_CHARS] or None,
        content=None,
        media=media,
        note=entry.note or (None if text else _NOTHING_SHOWN),
        # Counts of views and likes make a new "update" with every poll; texts are compared.
        updated_at=None if kind == "youtube" else entry.updated_at,
    )


def _told(entry: Entry, kind: Kind) -> str:
    if not entry.content:
        return entry.summary or ""
    if kind == "bluesky":
        # Its posts are plain text: what looks like markup was typed so.
        return "\n".join(collapse_spaces(line) for line in entry.content.split("\n")).strip()
    return plain_paragraphs(entry.content)


def without_furniture(text: str) -> str:
    r"""Return the text of a post without what boards add at the end of every one.

    Examples
    --------
    >>> without_furniture("The pier is open.\nsubmitted by /u/harbour [link] [comments]")
    'The pier is open.'
    """
    before = None
    while before != text:
        before, text = text, _FURNITURE.sub("", text)
    return text


def derive_label(text: str | None, media: tuple[str, ...] = ()) -> str:
    """Return what to call a post that has no headline: its first sentence, or what it carries.

    Examples
    --------
    >>> derive_label("Ferries stop at noon. The pier is closed until Friday.")
    'Ferries stop at noon.'
    >>> derive_label("", ("photo", "photo"))
    '(photo)'
    >>> derive_label(None)
    '(no text)'
    """
    lines = [line for line in (text or "").split("\n") if line.strip()]
    if not lines:
        return f"({', '.join(dict.fromkeys(media)) or 'no text'})"
    line = next((words for line in lines if (words := _words(line))), collapse_spaces(lines[0]))
    end = _SENTENCE_END.search(line)
    if end and end.end() >= LABEL_CHARS // 5:
        line = line[: end.end()].strip()
    if len(line) <= LABEL_CHARS:
        return line
    cut = line[:LABEL_CHARS]
    return f"{cut.rpartition(' ')[0] if ' ' in cut[LABEL_CHARS // 2 :] else cut} …"


def _words(line: str) -> str:
    """Return a line without its addresses, empty where nothing else stands in it."""
    bare = collapse_spaces(_ADDRESS.sub(" ", line))
    return bare if any(mark.isalnum() for mark in bare) else ""
