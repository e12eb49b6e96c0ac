r"""Regular expressions of rules, run by RE2: time in proportion to the text, whatever they say.

RE2 knows no way back, so what would explode elsewhere (``(a+)+b``) is harmless, and what
needs a way back (look-around, ``\1``) is refused. Its own ``\w`` and ``\b`` know ASCII
only; here they mean letters of all scripts.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import re2

MAX_MEM = 2 * 2**20
"""Bytes one compiled pattern may take; ``((a{100}){100}){100}`` would take them all."""

SET_MEM = 256 * 2**20
MOST_PLACES = 100
"""Places of one pattern in one text that are looked at."""

_WORD_SET = r"\pL\pM\pN_"
_CLASSES = {"w": _WORD_SET, "d": r"\p{Nd}"}
_NEGATED = {"W": rf"[^{_WORD_SET}]", "D": r"\P{Nd}"}


class PatternError(ValueError):
    """A regular expression that is not taken; the message says why."""


@dataclass(frozen=True, slots=True)
class Pattern:
    r"""A pattern as RE2 runs it.

    Attributes
    ----------
    source
        In RE2's own words.
    begins_word, ends_word
        Whether it was written with ``\b`` at its beginning, at its end.
    """

    source: str
    begins_word: bool
    ends_word: bool
    keeps_case: bool


def options(keeps_case: bool, max_mem: int = MAX_MEM) -> Any:
    """Return RE2's options; its own log stays quiet."""
    chosen = re2.Options()
    chosen.log_errors = False
    chosen.case_sensitive = keeps_case
    chosen.max_mem = max_mem
    return chosen


def compile_pattern(text: str, keeps_case: bool = False) -> Pattern:
    r"""Return a rule's regular expression made ready.

    Raises
    ------
    PatternError
        If it is none of RE2's, matches the empty text, or would take too much memory.

    Examples
    --------
    >>> compile_pattern(r"\bвзрыв\w*").source
    'взрыв[\\pL\\pM\\pN_]*'
    """
    body, begins, ends = _without_borders(text)
    source = _in_all_scripts(body if keeps_case else body.replace("ё", "е").replace("Ё", "Е"))
    if re.search(r"(?<!\\)(?:\\\\)*\\[bB]", source):
        raise PatternError(r"\b stands at the beginning or the end of a pattern, not inside it")
    try:
        compiled = re2.compile(source, options(keeps_case))
    except re2.error as error:
        raise PatternError(_explain(error)) from error
    if compiled.search("") is not None:
        raise PatternError("it matches the empty text, so it would match everywhere")
    return Pattern(source, begins, ends, keeps_case)


def _without_borders(text: str) -> tuple[str, bool, bool]:
    begins = text.startswith(r"\b")
    body = text[2:] if begins else text
    found = re.search(r"(\\+)b$", body)
    ends = found is not None and len(found[1]) % 2 == 1
    return (body[:-2] if ends else body), begins, ends


def _in_all_scripts(text: str) -> str:
    r"""Return a pattern whose \w and \d mean all scripts."""
    parts, in_class, at = [], False, 0
    while at < len(text):
        mark = text[at]
        piece = text[at : at + 2] if mark == "\\" else mark
        letter = piece[1:]
        if letter in _CLASSES and letter:
            parts.append(_CLASSES[letter] if in_class else f"[{_CLASSES[letter]}]")
        elif letter in _NEGATED and letter and not in_class:
            parts.append(_NEGATED[letter])
        else:
            in_class = (in_class or piece == "[") and piece != "]"
            parts.append(piece)
        at += len(piece)
    return "".join(parts)


def _explain(error: Exception) -> str:
    raw = error.args[0] if error.args else str(error)
    text = raw.decode("utf-8", "replace") if isinstance(raw, bytes) else str(raw)
    if "invalid perl operator" in text or "invalid escape sequence: \\" in text:
        return f"{text}; look-around and back references are not taken, as they can explode"
    if "repetition size" in text or "too large" in text:
        return f"{text}; it would take too much memory"
    return text


class PatternSet:
    """Many patterns over one text: one pass tells which of them match at all."""

    def __init__(self, patterns: list[Pattern], keeps_case: bool) -> None:
        self._compiled = [re2.compile(one.source, options(keeps_case)) for one in patterns]
        self._set = re2.Set.SearchSet(options(keeps_case, SET_MEM))
        for one in patterns:
            self._set.Add(one.source)
        if patterns:
            self._set.Compile()

    def find(self, text: str) -> Iterator[tuple[int, int, int]]:
        """Yield number of the pattern, start and end of every place in `text`."""
        if not self._compiled:
            return
        for number in self._set.Match(text) or ():
            for count, found in enumerate(self._compiled[number].finditer(text)):
                if count >= MOST_PLACES:
                    break
                if found.end() > found.start():
                    yield number, found.start(), found.end()
