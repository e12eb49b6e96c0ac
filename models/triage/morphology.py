"""All forms of a word: Russian by its dictionary, other languages by their stems.

Russian words are spelt out when rules are made ready: every form of the paradigm, so that
finding one in a text is a look into a table. What a stemmer does cannot be turned round;
there the words of the text are stemmed, each once, and the answer is kept.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache, lru_cache
from typing import Any

from models.triage.folding import folded_text
from models.triage.irregular import IRREGULAR, bases_of

STEMMERS = {
    "ar": "arabic", "ca": "catalan", "cs": "czech", "da": "danish", "de": "german",
    "el": "greek", "en": "english", "eo": "esperanto", "es": "spanish", "et": "estonian",
    "eu": "basque", "fi": "finnish", "fr": "french", "ga": "irish", "hi": "hindi",
    "hu": "hungarian", "hy": "armenian", "id": "indonesian", "it": "italian",
    "lt": "lithuanian", "ne": "nepali", "nl": "dutch", "no": "norwegian", "pl": "polish",
    "pt": "portuguese", "ro": "romanian", "sr": "serbian", "sv": "swedish", "ta": "tamil",
    "tr": "turkish",
}  # fmt: skip
"""Languages whose words are stemmed, and the name of their Snowball stemmer."""

INFLECTED = ("ru", *STEMMERS)
"""Languages of lemma mode. Those that do not inflect, as Chinese, need none."""

_SCRIPTS = (
    (re.compile("[а-яіїєґў]"), "ru"),
    (re.compile("[a-zà-öø-ɏ]"), "en"),
    (re.compile("[\u0600-\u06ff]"), "ar"),
    (re.compile("[α-ω]"), "el"),
    (re.compile("[\u0530-\u058f]"), "hy"),
    (re.compile("[\u0900-\u097f]"), "hi"),
)
_OWN_SCRIPT = {"ru": 0, "sr": 0, "ar": 2, "el": 3, "hy": 4, "hi": 5, "ne": 5}
_LATIN = 1

LEAST_SHARE = 0.1
"""A guessed reading of an unknown word counts from this share on."""

KEPT_STEMS = 300_000
"""Stems remembered; past that the memory is emptied, as a text may hold any nonsense."""


@dataclass(frozen=True, slots=True)
class Inflection:
    """What the forms of one word are known by, all folded.

    Attributes
    ----------
    forms
        Spelt out.
    stems
        ``(language, stem)``: a word of that stem is a form too.
    lemmas
        The dictionary words they are forms of, where a dictionary knows.
    bases
        The word itself, and the regular ones behind it, for stems that say too much.
    """

    forms: frozenset[str]
    stems: frozenset[tuple[str, str]] = frozenset()
    lemmas: frozenset[str] = frozenset()
    bases: tuple[str, ...] = ()

    def has(self, word: str) -> bool:
        """Return whether a folded word is one of the forms."""
        if word in self.forms:
            return True
        return any(
            stem(language, word) == wanted and (language != "en" or self._is_inflected(word))
            for language, wanted in self.stems
        )

    def _is_inflected(self, word: str) -> bool:
        return any(is_inflection(word, base) for base in self.bases)


def inflect(word: str, languages: tuple[str, ...] = ()) -> Inflection:
    """Return what the forms of a folded word are known by.

    Parameters
    ----------
    word
        One word, folded.
    languages
        Codes of the rule's languages; where empty, the letters decide: Cyrillic is
        Russian, Latin English.

    Examples
    --------
    >>> sorted(inflect("мед").forms)[:4]
    ['мед', 'меда', 'медам', 'медами']
    >>> inflect("floods").stems
    frozenset({('en', 'flood')})
    """
    found = [_inflect_in(word, language) for language in languages_of(word, languages)]
    return Inflection(
        frozenset({word}).union(*(one.forms for one in found)),
        frozenset().union(*(one.stems for one in found)),
        frozenset().union(*(one.lemmas for one in found)),
        _with_bases(word, "en"),
    )


def languages_of(word: str, languages: tuple[str, ...] = ()) -> tuple[str, ...]:
    """Return in which languages a word is inflected; in none where we know no forms of it.

    Examples
    --------
    >>> languages_of("взрыв"), languages_of("взрыв", ("uk",)), languages_of("brand", ("de", "en"))
    (('ru',), (), ('de', 'en'))
    """
    scripts = [at for at, (pattern, _) in enumerate(_SCRIPTS) if pattern.search(word)]
    if not scripts:
        return ()
    if not languages:
        return (_SCRIPTS[scripts[0]][1],)
    return tuple(
        code for code in languages if code in INFLECTED and _OWN_SCRIPT.get(code, _LATIN) in scripts
    )


_ENDINGS = frozenset(
    ["", "s", "es", "ed", "d", "ing", "e", "y", "ies", "ied", "ie", "ying", "f", "ves"]
)


_OF_BASES = frozenset(["e", "y", "ie", "f"])
"""Endings that a word loses when it is inflected, and never gains."""


def is_inflection(word: str, base: str) -> bool:
    """Return whether two English words of one stem differ by no more than an inflection.

    Stemmers also take off what makes another word: of evacuation and evacuee they leave
    the same as of evacuate, and of organisation the same as of organ.

    Examples
    --------
    >>> [is_inflection(word, "evacuate") for word in ("evacuated", "evacuating", "evacuation")]
    [True, True, False]
    >>> is_inflection("stopped", "stop"), is_inflection("cities", "city")
    (True, True)
    """
    shared = 0
    for one, other in zip(word, base, strict=False):
        if one != other:
            break
        shared += 1
    doubled = word[shared - 1 : shared] if shared else ""
    rest = word[shared:]
    if doubled and rest[:1] == doubled and rest[1:] in ("ed", "ing"):
        rest = rest[1:]
    if not base[shared:] and rest in _OF_BASES:
        return False
    return rest in _ENDINGS and base[shared:] in _ENDINGS


def _inflect_in(word: str, language: str) -> Inflection:
    if language == "ru":
        return _inflect_russian(word)
    stems = {(language, stem(language, base)) for base in _with_bases(word, language)}
    forms = {form for form, bases in _irregular(language).items() if word in bases}
    return Inflection(frozenset({word, *forms}), frozenset(stems))


def _with_bases(word: str, language: str) -> tuple[str, ...]:
    return (word, *(bases_of(word) if language == "en" else ()))


def _irregular(language: str) -> dict[str, tuple[str, ...]]:
    return IRREGULAR if language == "en" else {}


def _inflect_russian(word: str) -> Inflection:
    """Return all forms of the words that `word` is the dictionary form of; else of its likeliest.

    For a form such as "метал" that is the forms of "метать": who lists one is told so.
    """
    parses = [parse for parse in _parses(word) if parse.is_known or parse.score >= LEAST_SHARE]
    own = [parse for parse in parses if folded_text(parse.normal_form) == word]
    chosen = own or parses[:1]
    forms = {folded_text(form.word) for parse in chosen for form in parse.lexeme}
    lemmas = {folded_text(parse.normal_form) for parse in chosen}
    return Inflection(frozenset({word, *forms}), lemmas=frozenset(lemmas))


@lru_cache(50_000)
def readings(form: str) -> Mapping[str, float]:
    """Return which dictionary words a folded Russian form may belong to, and how likely.

    Examples
    --------
    >>> {word: round(share, 1) for word, share in readings("метал").items()}
    {'метать': 1.0}
    >>> sorted(readings("стали"))
    ['сталь', 'стать']
    """
    shares: dict[str, float] = {}
    for parse in _parses(form):
        lemma = folded_text(parse.normal_form)
        shares[lemma] = shares.get(lemma, 0.0) + parse.score
    return shares


@cache
def _analyzer() -> Any:
    from pymorphy3 import MorphAnalyzer

    return MorphAnalyzer(lang="ru")


def _parses(word: str) -> list[Any]:
    return list(_analyzer().parse(word))


def may_be_of(language: str, word: str) -> bool:
    """Return whether a word is written in the letters of a language.

    Examples
    --------
    >>> may_be_of("en", "flood"), may_be_of("en", "паводок"), may_be_of("en", "2024")
    (True, False, False)
    """
    return _SCRIPTS[_OWN_SCRIPT.get(language, _LATIN)][0].search(word) is not None


_stems: dict[str, dict[str, str]] = {}


@cache
def _stemmer(language: str) -> Any:
    import snowballstemmer

    return snowballstemmer.stemmer(STEMMERS[language])


def stem(language: str, word: str) -> str:
    """Return the stem of a folded word; what was asked before is known.

    Examples
    --------
    >>> stem("en", "flooding"), stem("de", "brände")
    ('flood', 'brand')
    """
    known = _stems.setdefault(language, {})
    if word not in known:
        if len(known) >= KEPT_STEMS:
            known.clear()
        known[word] = _stemmer(language).stemWord(word)
    return known[word]
