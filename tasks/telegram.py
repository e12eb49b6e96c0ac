"""Public previews of Telegram channels (``t.me/s/NAME``) to entries.

A channel that lets itself be read on the web shows its last twenty posts there, text and
all, to anybody. What a post holds is told by its parts, never by the words on the page:
those come in the reader's language.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from datetime import datetime

from selectolax.lexbor import LexborHTMLParser, LexborNode

from models.decoding import decode_bytes
from models.errors import ParseError, UnlistedError
from models.listings import DateReader
from models.plaintext import absolute_url, collapse_spaces, first_tags, plain_paragraphs
from models.posts import derive_label
from models.records import Entry, Listing

NOT_SHOWN = "its content is not in the web preview"

MAX_POSTS = 200
"""Telegram shows twenty; of a page that holds many more, the last are read."""

MAX_TAGS = 30_000
"""Twenty posts take some two thousand."""

_DEPTH = 30
_POST = re.compile(r"\w+/(\d+)", re.ASCII)
_BEFORE = re.compile(r"[?&]before=\d+")
_MEDIA = {
    "photo": ".tgme_widget_message_photo_wrap",
    "video": ".tgme_widget_message_video_player, .tgme_widget_message_video_wrap,"
    " .tgme_widget_message_roundvideo_player",
    "voice": ".tgme_widget_message_voice_player, .tgme_widget_message_voice",
    "document": ".tgme_widget_message_document_wrap, .tgme_widget_message_document",
    "sticker": ".tgme_widget_message_sticker_wrap, .tgme_widget_message_sticker",
    "poll": ".tgme_widget_message_poll",
    "location": ".tgme_widget_message_location_wrap, .tgme_widget_message_location",
    "contact": ".tgme_widget_message_contact_wrap",
}


def parse_telegram(
    body: bytes,
    *,
    url: str,
    content_type: str | None = None,
    timezone: str = "UTC",
    now: datetime,
) -> Listing:
    """Return the posts that a channel's web preview shows, the oldest first, as the page does.

    Parameters
    ----------
    body
        The page as it came.
    url
        Address that answered.
    content_type
        HTTP header; only its charset counts.
    timezone
        IANA zone, for dates that state none (Telegram's do).
    now
        The present.

    Returns
    -------
    Listing
        An entry a post; an album is one post. Notices such as "pinned a message" are left
        out. `older` leads to the posts before these.

    Raises
    ------
    UnlistedError
        If the answer is Telegram's page about somebody who shows no posts on the web: a
        group, a person, a channel with the preview switched off or withheld, nobody at all.
    ParseError
        If it is no page of Telegram's.
    """
    decoded = decode_bytes(body, content_type)
    page = LexborHTMLParser(first_tags(decoded.text, MAX_TAGS)[0])
    found = page.css(".tgme_widget_message[data-post]")
    messages = [one for one in found if not _is_inside(one, "tgme_widget_message")][-MAX_POSTS:]
    if not messages:
        raise _unlisted(page, url)
    dates = DateReader(timezone, now)
    entries = tuple(entry for message in messages if (entry := _entry(message, dates)))
    warnings = [*decoded.warnings, *dates.warnings()]
    if hidden := sum(entry.note is not None for entry in entries):
        warnings.append(f"not in the web preview: {hidden} of {len(entries)} posts")
    return Listing(
        format="telegram preview",
        entries=entries,
        title=_text_at(page, ".tgme_channel_info_header_title, .tgme_header_title"),
        encoding=decoded.encoding,
        warnings=tuple(warnings),
        older=_older(page, url),
    )


def _unlisted(page: LexborHTMLParser, url: str) -> ParseError:
    """Return the error for a page without posts: whose it is, and why it shows none."""
    if page.css_first(".tgme_channel_info, .tgme_channel_history") is not None:
        return UnlistedError(url, "this Telegram channel shows no post on the web")
    if page.css_first(".tgme_page") is None:
        return ParseError(url, "no page of a Telegram channel")
    # Who asks for no language is answered in English.
    extra = (_text_at(page, ".tgme_page_extra") or "").lower()
    if "member" in extra or "online" in extra:
        return UnlistedError(url, "a Telegram group: only channels have a public web preview")
    if "subscriber" in extra:
        return UnlistedError(url, "this Telegram channel has its public web preview switched off")
    return UnlistedError(url, "no Telegram channel of this name has a public web preview")


def _entry(message: LexborNode, dates: DateReader) -> Entry | None:
    place = message.attributes.get("data-post") or ""
    if not _POST.fullmatch(place) or "service_message" in (message.attributes.get("class") or ""):
        return None
    text = "\n\n".join(part for part in (_text(message), _poll(message)) if part)
    media = tuple(name for name, where in _MEDIA.items() if message.css_first(where))
    stamp = message.css_first(".tgme_widget_message_date time[datetime]")
    moment = dates.read(stamp.attributes.get("datetime")) if stamp else None
    return Entry(
        url=f"https://t.me/{place}",
        title=derive_label(text, media),
        guid=place.lower(),
        published_at=moment.at if moment else None,
        published_precision=moment.precision if moment else None,
        published_basis="time" if moment else None,
        summary=text or None,
        authors=tuple(_authors(message)),
        media=media,
        note=None if text or media else NOT_SHOWN,
    )


def _text(message: LexborNode) -> str:
    """Return the post's own words, quotations among them; not those it answers to."""
    node = message.css_first(".js-message_text")
    if node is None:
        shown = message.css(".tgme_widget_message_text")
        outside = (one for one in shown if not _is_inside(one, "tgme_widget_message_reply"))
        node = next(outside, None)
    return plain_paragraphs(node.html or "") if node is not None else ""


def _is_inside(node: LexborNode, name: str) -> bool:
    """Tell whether a node stands, not too deep, in one of a class."""
    current = node.parent
    for _ in range(_DEPTH):
        if current is None:
            return False
        if name in (current.attributes.get("class") or "").split():
            return True
        current = current.parent
    return False


def _poll(message: LexborNode) -> str:
    asked = message.css(".tgme_widget_message_poll_question, .tgme_widget_message_poll_option_text")
    return "\n".join(collapse_spaces(node.text()) for node in asked)


def _authors(message: LexborNode) -> Iterator[str]:
    """Yield who signed the post, and whom it was forwarded from."""
    for where in (
        ".tgme_widget_message_from_author",
        ".tgme_widget_message_forwarded_from_name",
    ):
        if name := _text_at(message, where):
            yield name


def _text_at(node: LexborHTMLParser | LexborNode, where: str) -> str | None:
    found = node.css_first(where)
    return collapse_spaces(found.text()) or None if found is not None else None


def _older(page: LexborHTMLParser, url: str) -> str | None:
    # What is "canonical" is the page itself, with a `before` of its own.
    for node in page.css("link[rel=prev][href], a.tme_messages_more[data-before][href]"):
        address = absolute_url(node.attributes.get("href") or "", url)
        if address and address != url and _BEFORE.search(address):
            return address
    return None
