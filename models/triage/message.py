"""What a message says: plain text that anybody's mail, chat or terminal shows as it is."""

from __future__ import annotations

from collections.abc import Sequence

from models.harmless import one_line, web_address, without_mentions
from models.triage.ladder import DAILY, Draft, Notice

TITLE_CHARS = 180
SENTENCE_CHARS = 500
LEAST_PART = 200
MARK_CHARS = 80
"""Room kept in every part for its number and the message's name."""


def write_title(draft: Draft) -> str:
    """Return the title of a message: how urgent, and what or how many."""
    first, count = draft.notices[0], len(draft.notices)
    if draft.kind == "digest":
        period = "the day" if draft.level >= DAILY else "the hour"
        return f"[newsbeat {draft.level}] {_stories(count)} of {period}"
    again = "again, unanswered: " if draft.kind == "reminder" else ""
    what = without_mentions(one_line(first.subject)) if count == 1 else _stories(count)
    return f"[newsbeat {draft.level}] {again}{what}"[:TITLE_CHARS]


def _stories(count: int) -> str:
    return f"{count} stories" if count != 1 else "1 story"


def write_body(draft: Draft) -> str:
    """Return the text of a message: every notice of it."""
    return "\n\n".join(write_notice(notice) for notice in draft.notices)


def write_notice(notice: Notice) -> str:
    """Return one notice as a few lines."""
    lines = [without_mentions(one_line(notice.subject)), _provenance(notice)]
    lines.append(without_mentions(notice.text))
    lines.append(web_address(notice.url))
    if notice.is_open:
        lines.append(f"Stop the repeats: newsbeat ack {notice.notice_id}")
    return "\n".join(line for line in lines if line)


def _provenance(notice: Notice) -> str:
    first, *others = notice.outlets or (notice.source or "",)
    also = f"; also {', '.join(others)}" if others else ""
    return f"{first}, {notice.raised_at:%Y-%m-%d %H:%M} UTC{also}"


def split_text(text: str, most_chars: int, name: str) -> list[str]:
    r"""Return `text` in parts of at most `most_chars`, at ends of lines where that is possible.

    Parameters
    ----------
    text
        What is to be sent.
    most_chars
        What the channel takes.
    name
        Of the message; stands at the end of every part.

    Examples
    --------
    >>> split_text("short", 4096, "ab12")
    ['short\n(ab12)']
    >>> [len(part) <= 300 for part in split_text("word " * 200, 300, "ab12")]
    [True, True, True, True, True]
    """
    room = max(most_chars - MARK_CHARS, LEAST_PART)
    parts: list[str] = []
    rest = text
    while len(rest) > room:
        at = _break(rest, room)
        parts.append(rest[:at].rstrip())
        rest = rest[at:].lstrip("\n ")
    parts.append(rest)
    if len(parts) == 1:
        return [f"{parts[0]}\n({name})"]
    return [f"{part}\n({name}, {at} of {len(parts)})" for at, part in enumerate(parts, 1)]


def _break(text: str, room: int) -> int:
    """Return where to break: between notices, lines, words, or in the middle of one."""
    for mark in ("\n\n", "\n", " "):
        at = text.rfind(mark, room // 2, room)
        if at > 0:
            return at
    return room


def explain_hits(hits: Sequence[tuple[str, int, str, str]]) -> str:
    """Return the lines of a notice that say why: rule, level, sentence and reason of each hit."""
    lines = []
    for rule, level, sentence, why in hits:
        lines.append(f"rule {rule}, level {level}: {one_line(why)}")
        if sentence:
            lines.append(f"  “{one_line(sentence)[:SENTENCE_CHARS]}”")
    return "\n".join(lines)
