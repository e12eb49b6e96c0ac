"""Text as it is compared: folded, and every place of it known in the original.

Folding undoes what does not change a word: case, full-width and other compatibility
forms (NFKC), letters composed of parts, soft hyphens and characters of no width, ё for
е, stress marks, and runs of white space. Rules and texts are folded alike.
"""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field

_RUN = re.compile(" {2,}")
_WORD = re.compile(r"[^\W_]+(?:[^\W_]|[\u0300-\u036f])*")


class _Folds(dict[int, str]):
    """What each character becomes, filled in as characters are met; for `str.translate`.

    `changing` holds those that become none or several: they move all places after them.
    `combining` holds those that depend on what stands before them.
    """

    def __init__(self, keeps_case: bool) -> None:
        super().__init__()
        self.keeps_case = keeps_case
        self.changing: set[str] = set()
        self.combining: set[str] = set()

    def __missing__(self, code: int) -> str:
        mark = chr(code)
        folded = self.fold(mark)
        self[code] = folded
        if len(folded) != 1:
            self.changing.add(mark)
        if unicodedata.combining(mark):
            self.combining.add(mark)
        return folded

    def fold(self, piece: str) -> str:
        """Return what a character, with the marks that belong to it, becomes."""
        normal = unicodedata.normalize("NFKC", piece)
        if not self.keeps_case:
            normal = unicodedata.normalize("NFKC", normal.casefold()).replace("ё", "е")
        return "".join(map(_plain, normal))


def _plain(mark: str) -> str:
    if mark.isspace():
        return " "
    category = unicodedata.category(mark)
    # Cf: soft hyphen, zero width, direction; the rest choose how a character is drawn.
    if category in ("Cf", "Cc", "Cs") or "\ufe00" <= mark <= "\ufe0f":
        return ""
    # A stress mark over a Cyrillic vowel: what composes with its letter is no longer apart.
    return "" if mark in "\u0300\u0301" else mark


_FOLDS, _CASED = _Folds(keeps_case=False), _Folds(keeps_case=True)


@dataclass(slots=True)
class Folded:
    """A folded text.

    Attributes
    ----------
    original, text
        Before and after.
    """

    original: str
    text: str
    _folds: _Folds
    _places: list[int] | None = field(default=None, repr=False)
    _is_plain: bool | None = None

    def span(self, start: int, end: int) -> tuple[int, int]:
        """Return where characters `start` to `end` of the folded text stand in the original."""
        if self._is_plain is None:
            is_as_long = len(self.text) == len(self.original)
            self._is_plain = is_as_long and self._folds.changing.isdisjoint(self.original)
        if self._is_plain:
            return start, end
        if self._places is None:
            self._places = _places(self.original, self._folds)
        places = self._places
        if end <= start:
            return places[start], places[start]
        return places[start], _piece_end(self.original, places[end - 1])


def fold(text: str, keeps_case: bool = False) -> Folded:
    r"""Return `text` folded.

    Parameters
    ----------
    text
        Any text.
    keeps_case
        True leaves case and ё as they are.

    Examples
    --------
    >>> fold("За\u0301мок  и МЁ\u00adД").text
    'замок и мед'
    >>> folded = fold("a\u200bb ｆｕｌｌ")
    >>> folded.text, folded.span(3, 7)
    ('ab full', (4, 8))
    """
    folds = _CASED if keeps_case else _FOLDS
    folded = text.translate(folds)
    if not folds.combining.isdisjoint(text):
        folded = "".join(folds.fold(text[start:end]) for start, end in _pieces(text))
    return Folded(text, _RUN.sub(" ", folded) if "  " in folded else folded, folds)


def folded_text(text: str) -> str:
    """Return `text` folded, without blanks around it."""
    return fold(text).text.strip()


MOST_MARKS = 16
"""Combining marks taken together with their letter: ordering very many takes for ever."""


def _pieces(text: str) -> Iterator[tuple[int, int]]:
    """Yield the characters of a text, each with the combining marks after it."""
    at = 0
    while at < len(text):
        end = _piece_end(text, at)
        yield at, end
        at = end


def _piece_end(text: str, start: int) -> int:
    end = start + 1
    last = min(len(text), end + MOST_MARKS)
    while end < last and unicodedata.combining(text[end]):
        end += 1
    return end


def _places(text: str, folds: _Folds) -> list[int]:
    """Return, for every character of the folded text, where it comes from; and the end."""
    places: list[int] = []
    was_blank = False
    pieces: Iterable[tuple[int, str]]
    if folds.combining.isdisjoint(text):
        pieces = enumerate(map(folds.__getitem__, map(ord, text)))
    else:
        pieces = ((start, folds.fold(text[start:end])) for start, end in _pieces(text))
    for start, piece in pieces:
        for mark in piece:
            is_blank = mark == " "
            if not (is_blank and was_blank):
                places.append(start)
            was_blank = is_blank
    return [*places, len(text)]


# Letters that look alike. Lower case stands for both: В and B do, though в and b do not.
_CYRILLIC_OF = dict(zip("abcehkmoptxyі", "авсенкмортхуі", strict=True)) | {
    "α": "а", "ε": "е", "κ": "к", "ο": "о", "ρ": "р", "τ": "т", "χ": "х", "υ": "у",
    "0": "о", "3": "з", "i": "і",
}  # fmt: skip
_LATIN_OF = dict(zip("авсенкмортхуіѕј", "abcehkmoptxyisj", strict=True)) | {
    "α": "a", "ε": "e", "κ": "k", "ο": "o", "ρ": "p", "τ": "t", "χ": "x", "υ": "y", "ι": "i",
    "ν": "v", "0": "o", "1": "l", "3": "e", "5": "s", "ӏ": "l", "ԁ": "d", "ԛ": "q", "ԝ": "w",
}  # fmt: skip

LEAST_OTHER_SCRIPT = 4
"""A word wholly in the other script passes for one of ours from so many letters on: сор
and cop are words of their own."""


def undisguise(text: str, script: str) -> str | None:
    """Return a folded text with look-alike letters put back, None where there are none.

    Only words that mix scripts (or digits) are rewritten, and longer words wholly of
    letters that look alike. Every place stays as it is.

    Parameters
    ----------
    text
        A folded text.
    script
        ``"cyrillic"`` or ``"latin"``: which letters words are rewritten to.

    Examples
    --------
    >>> undisguise("тepaкт в центре", "cyrillic")
    'теракт в центре'
    >>> undisguise("аррlе", "latin"), undisguise("сор и спор", "latin")
    ('apple', None)
    """
    letters, is_own = _SCRIPTS[script]
    changed = False

    def rewrite(found: re.Match[str]) -> str:
        nonlocal changed
        word = found[0]
        foreign = [mark for mark in word if not is_own(mark)]
        if not foreign or not all(mark in letters for mark in foreign):
            return word
        n_letters = sum(mark.isalpha() for mark in word)
        is_mixed = len(foreign) < len(word) and n_letters > 1
        if not is_mixed and n_letters < LEAST_OTHER_SCRIPT:
            return word
        changed = True
        return "".join(mark if is_own(mark) else letters[mark] for mark in word)

    rewritten = _WORD.sub(rewrite, text)
    return rewritten if changed else None


def _is_cyrillic(mark: str) -> bool:
    return "\u0400" <= mark <= "\u052f" and mark not in "ѕјӏԁԛԝ"


def _is_latin(mark: str) -> bool:
    return mark.isascii() and mark.isalpha()


_SCRIPTS = {"cyrillic": (_CYRILLIC_OF, _is_cyrillic), "latin": (_LATIN_OF, _is_latin)}
