"""Where words and sentences begin and end, in any script."""

from __future__ import annotations

import re
import unicodedata
from bisect import bisect_left, bisect_right
from collections.abc import Iterator
from functools import cached_property

WORD = re.compile(r"(?:[^\W_]|(?<=\w)[\u0300-\u036f\u0900-\u0903\u093a-\u094f])+")
"""Letters and digits of any script; a hyphen or apostrophe ends a word."""

_UNSPACED = re.compile(
    "[\u0e00-\u0eff\u1000-\u109f\u1780-\u17ff\u3005-\u30ff\u31f0-\u31ff\u3400-\u4dbf"
    "\u4e00-\u9fff\uf900-\ufaff\U00020000-\U0003ffff]"
)
"""Scripts written without blanks between words: Thai, Khmer, Chinese, Japanese and so on."""

_SENTENCE_END = re.compile(r"[.!?…]+[\"»”’)\]]*(?=\s)|[。！？]+[」』”）]*|\n+")
_NO_END = re.compile(r"(?:^|[\s(«\"])(?:[A-ZА-ЯЁ]|[гдп]|ул|им|руб|тыс|млн|Mr|Mrs|Dr|St|No)\.$")

SENTENCE_CHARS = 400


def is_word(mark: str) -> bool:
    """Return whether a character belongs to a word.

    Examples
    --------
    >>> [is_word(mark) for mark in "жa7_-洪 "]
    [True, True, True, True, False, True, False]
    """
    return mark.isalnum() or mark == "_" or unicodedata.category(mark).startswith("M")


def is_border(text: str, at: int) -> bool:
    """Return whether a word may begin or end at `at`, between two characters.

    Examples
    --------
    >>> [is_border("газ, газовый", at) for at in (0, 2, 3, 8)]
    [True, False, True, False]
    >>> is_border("洪水灾害", 2), is_border("用iphone拍", 1)
    (True, True)
    """
    if at <= 0 or at >= len(text):
        return True
    before, after = text[at - 1], text[at]
    if not is_word(before) or not is_word(after):
        return True
    return is_unspaced(before) or is_unspaced(after)


def is_unspaced(text: str) -> bool:
    """Return whether a text has letters of a script that puts no blanks between words."""
    return _UNSPACED.search(text) is not None


def words_of(text: str) -> Iterator[tuple[int, int]]:
    """Yield where the words of a text stand."""
    return (found.span() for found in WORD.finditer(text))


class Sentences:
    """The sentences of one text, looked for once, when the first is asked for.

    Examples
    --------
    >>> Sentences("Тихо. На ул. Мира взрыв! Двое ранены.").around(18, 23)
    'На ул. Мира взрыв!'
    """

    def __init__(self, text: str) -> None:
        self._text = text

    @cached_property
    def _ends(self) -> list[int]:
        text = self._text
        return [
            found.end()
            for found in _SENTENCE_END.finditer(text)
            if "\n" in found[0] or not _NO_END.search(text, found.start() - 8, found.end())
        ]

    def around(self, start: int, end: int) -> str:
        """Return the sentence that holds `start` to `end`, in one line; cut where very long."""
        text, ends = self._text, self._ends
        at = bisect_right(ends, start)
        begins = ends[at - 1] if at else 0
        at = bisect_left(ends, end, lo=at)
        stops = ends[at] if at < len(ends) else len(text)
        low, high = start - SENTENCE_CHARS, end + SENTENCE_CHARS
        sentence = " ".join(text[max(begins, low) : min(stops, high)].split())
        return f"{'… ' if begins < low else ''}{sentence}{' …' if stops > high else ''}"
