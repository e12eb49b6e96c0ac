"""Walls: pages that stand where an article should, told by what they say.

Consent, captcha, block, log-in and "enable JavaScript" pages hold little else than their
own words. A page that only shows a cookie banner holds a story besides: what counts is
what is left of the text when the lines that speak like a wall are taken out. A paywall is
told otherwise, as it shows the beginning of the story: by the invitation to pay that comes
where the text breaks off.
"""

from __future__ import annotations

import re
from dataclasses import dataclass

from models.plaintext import collapse_spaces, weigh
from models.wallwords import (
    BLOCKS,
    CONSENTS,
    INVITATIONS,
    LOGINS,
    ROBOTS,
    SCRIPTS,
    TERMS_OF_CONSENT,
    WORDS_OF_CHALLENGES,
)

LONG_LINE = 80
"""A paragraph has so many characters at least; a caption or a button has not."""

LEFT_CHARS = 200
"""So much prose beside a wall's words is a story."""

TEASER_LINES, TEASER_CHARS = 3, 1_500
"""What a paywall shows: so many paragraphs and characters at most."""

UNPAID_LINES, UNPAID_CHARS = 2, 700
"""The same where the page says nothing to its readers, only to search engines, that it is paid."""

SHORT_CHARS = 400
"""A page that says no more than this, and speaks of scripts or captchas, says nothing else."""

WHOLE_CHARS = 2_000
"""A page without a text is judged by all its words where they are no more than these."""

MOST_CHARS = 6_000
"""Longer texts are never walls: some consent pages print all their purposes, but not more."""


def _any_of(*patterns: str) -> re.Pattern[str]:
    return re.compile("|".join(f"(?:{each})" for each in patterns), re.IGNORECASE)


_WALL = _any_of(*SCRIPTS, *ROBOTS, *BLOCKS, *LOGINS, *CONSENTS)
_PAY = _any_of(*INVITATIONS)
_CONSENT_TERMS = _any_of(*TERMS_OF_CONSENT)
_CHALLENGE = _any_of(*WORDS_OF_CHALLENGES)


@dataclass(frozen=True, slots=True)
class Said:
    """What a page says.

    Attributes
    ----------
    title, text
        As extracted; the text one paragraph a line, None where there is none.
    after
        What stands on the page where the text ends: the next few hundred characters.
    whole
        All that the page says, at least its beginning.
    is_unpaid
        The page tells search engines that it is not accessible for free.
    """

    title: str = ""
    text: str | None = None
    after: str = ""
    whole: str = ""
    is_unpaid: bool = False


def find_wall(said: Said) -> str | None:
    """Return the words by which a page is a wall; None where it is none.

    Examples
    --------
    >>> find_wall(Said("Just a moment", "Checking your browser before you go on"))
    'Checking your browser'
    >>> find_wall(Said("Harbour reopens", "It reopened on Monday. " * 20)) is None
    True
    """
    text = said.text or ""
    if not text and weigh(said.whole) <= WHOLE_CHARS:
        text = said.whole
    if weigh(text) > MOST_CHARS:
        return None
    return _told_by_words(said, text) or _told_by_teaser(said)


def _told_by_words(said: Said, text: str) -> str | None:
    found = _WALL.search(text) or _WALL.search(said.title)
    if found is None and max(weigh(text), weigh(said.whole)) <= SHORT_CHARS:
        found = _CHALLENGE.search(text)
    if found is None:
        return None
    lines = [line for line in text.splitlines() if line.strip()]
    left = sum(weigh(line) for line in lines if weigh(line) >= LONG_LINE and not _is_of_wall(line))
    return _quoted(found[0]) if left < LEFT_CHARS else None


def _is_of_wall(line: str) -> bool:
    terms = {term.lower() for term in _CONSENT_TERMS.findall(line)}
    return len(terms) > 1 or _WALL.search(line) is not None


def _told_by_teaser(said: Said) -> str | None:
    lines = [line for line in (said.text or "").splitlines() if not _PAY.search(line)]
    shown = [weigh(line) for line in lines if weigh(line) >= LONG_LINE]
    if not shown:
        return None
    if len(shown) <= UNPAID_LINES and sum(shown) <= UNPAID_CHARS and said.is_unpaid:
        return "not accessible for free"
    found = find_invitation(said)
    if found and len(shown) <= TEASER_LINES and sum(shown) <= TEASER_CHARS:
        return found
    return None


def find_invitation(said: Said) -> str | None:
    """Return the words that invite to pay for the rest, where the text ends or after it.

    >>> find_invitation(Said(text="It rained.", after="Subscribe now to continue reading."))
    'Subscribe now to continue reading'
    """
    tail = "\n".join((said.text or "").splitlines()[-3:])
    found = _PAY.search(tail) or _PAY.search(said.after)
    return _quoted(found[0]) if found else None


def _quoted(words: str) -> str:
    return collapse_spaces(words)[:80]
