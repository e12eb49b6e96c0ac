"""All terms of all rules, made ready to be looked for together.

Literal terms go into one Aho-Corasick automaton, which passes over the text once whatever
their number. Forms of words are found by a table that the text's words are looked up in,
and regular expressions by one RE2 set. Terms that several rules share are looked for once.
"""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Iterable
from dataclasses import dataclass, field

from ahocorasick_rs import AhoCorasick, Implementation, MatchKind

from models.triage.folding import Folded, fold, folded_text
from models.triage.morphology import Inflection, inflect, may_be_of, stem
from models.triage.patterns import Pattern, PatternSet, compile_pattern
from models.triage.rules import Term
from models.triage.words import WORD, is_border, is_word

MOST_PLACES = 200
"""Places of one term in one text that are looked at."""

_GAP = re.compile(r"[\s\-‐-―'’`\"«»“”„]{0,4}")
"""What may stand between the words of a phrase."""

Key = tuple[Term, tuple[str, ...]]
"""A term, and the languages its forms are looked up in."""


@dataclass(frozen=True, slots=True)
class Found:
    """A term found in a folded text."""

    start: int
    end: int
    term: int


@dataclass(frozen=True, slots=True)
class _Literal:
    """A term that stands in the automaton; borders it must meet."""

    term: int
    left: bool
    right: bool
    case: str = ""


@dataclass(frozen=True, slots=True)
class _Phrase:
    """Words in a row, in any of their forms; found by one of them, the anchor."""

    term: int
    slots: tuple[Inflection, ...]
    anchor: int


@dataclass(slots=True)
class _Words:
    """The words of a text, looked at when something needs them."""

    spans: list[tuple[int, int]]
    words: list[str]


@dataclass
class Lexicon:
    """Terms, numbered, and the machines that find them. Made by :func:`build_lexicon`."""

    keys: list[Key]
    inflections: dict[int, tuple[Inflection, ...]]
    _literals: list[list[_Literal]] = field(default_factory=list)
    _automaton: AhoCorasick | None = None
    _forms: dict[str, tuple[_Phrase, ...]] = field(default_factory=dict)
    _stems: dict[str, dict[str, tuple[_Phrase, ...]]] = field(default_factory=dict)
    _known: dict[str, tuple[_Phrase, ...]] = field(default_factory=dict)
    _patterns: list[tuple[PatternSet, list[int], list[Pattern], bool]] = field(default_factory=list)

    def find(self, folded: Folded) -> dict[int, list[Found]]:
        """Return the places of every term that is in a folded text, in order."""
        found: dict[int, list[Found]] = defaultdict(list)
        self._find_literals(folded, found)
        if self._forms or self._stems:
            self._find_forms(folded, found)
        for patterns, terms, compiled, keeps_case in self._patterns:
            _find_patterns(folded, patterns, terms, compiled, keeps_case, found)
        return found

    def _find_literals(self, folded: Folded, found: dict[int, list[Found]]) -> None:
        if self._automaton is None:
            return
        text = folded.text
        for number, start, end in self._automaton.find_matches_as_indexes(text, overlapping=True):
            for literal in self._literals[number]:
                if literal.left and not is_border(text, start):
                    continue
                if literal.right and not is_border(text, end):
                    continue
                places = found[literal.term]
                if len(places) < MOST_PLACES and _has_case(folded, start, end, literal.case):
                    places.append(Found(start, end, literal.term))

    def _find_forms(self, folded: Folded, found: dict[int, list[Found]]) -> None:
        words = WORD.findall(folded.text)
        here = set(words)
        phrases = {word: known for word in here if (known := self._phrases_of(word))}
        if not phrases:
            return
        spans = [match.span() for match in WORD.finditer(folded.text)]
        looked = _Words(spans, words)
        for at, word in enumerate(words):
            for phrase in phrases.get(word, ()):
                place = _match_phrase(folded.text, looked, at, phrase)
                if place is not None and len(found[phrase.term]) < MOST_PLACES:
                    found[phrase.term].append(Found(*place, phrase.term))

    def _phrases_of(self, word: str) -> tuple[_Phrase, ...]:
        """Return the phrases that a word may be the anchor of."""
        known = self._known.get(word)
        if known is None:
            if len(self._known) > KEPT_WORDS:
                self._known.clear()
            known = tuple(dict.fromkeys([*self._forms.get(word, ()), *self._stemmed(word)]))
            self._known[word] = known
        return known

    def _stemmed(self, word: str) -> Iterable[_Phrase]:
        for language, stems in self._stems.items():
            if may_be_of(language, word):
                for phrase in stems.get(stem(language, word), ()):
                    if phrase.slots[phrase.anchor].has(word):
                        yield phrase


KEPT_WORDS = 300_000
"""Words whose phrases are remembered."""


def _has_case(folded: Folded, start: int, end: int, wanted: str) -> bool:
    if not wanted:
        return True
    begins, ends = folded.span(start, end)
    return fold(folded.original[begins:ends], keeps_case=True).text == wanted


def _match_phrase(text: str, words: _Words, at: int, phrase: _Phrase) -> tuple[int, int] | None:
    """Return where a phrase stands whose anchor is word `at`, None where it does not."""
    first = at - phrase.anchor
    last = first + len(phrase.slots) - 1
    if first < 0 or last >= len(words.words):
        return None
    for place, slot in enumerate(phrase.slots, first):
        if place != at and not slot.has(words.words[place]):
            return None
        if place > first:
            gap = text[words.spans[place - 1][1] : words.spans[place][0]]
            if not _GAP.fullmatch(gap):
                return None
    return words.spans[first][0], words.spans[last][1]


def _find_patterns(
    folded: Folded,
    patterns: PatternSet,
    terms: list[int],
    compiled: list[Pattern],
    keeps_case: bool,
    found: dict[int, list[Found]],
) -> None:
    text = folded.text
    cased = fold(folded.original, keeps_case=True) if keeps_case else folded
    if keeps_case and len(cased.text) != len(text):
        # Rare: a letter that folds to two. Places are then told in the original.
        text, is_shifted = cased.text, True
    else:
        text, is_shifted = cased.text, False
    for number, start, end in patterns.find(text):
        one = compiled[number]
        if (one.begins_word and not is_border(text, start)) or (
            one.ends_word and not is_border(text, end)
        ):
            continue
        span = _into(folded, *cased.span(start, end)) if is_shifted else (start, end)
        found[terms[number]].append(Found(*span, terms[number]))


def _into(folded: Folded, start: int, end: int) -> tuple[int, int]:
    """Return the places of the folded text that stand for places of the original."""
    head = len(fold(folded.original[:start]).text)
    return head, head + len(fold(folded.original[start:end]).text)


def build_lexicon(keys: Iterable[Key]) -> Lexicon:
    """Return the lexicon of some terms, their numbers being their order."""
    builder = _Builder(list(keys))
    for number, (term, languages) in enumerate(builder.keys):
        if term.mode == "regex":
            builder.add_pattern(number, term)
        elif term.mode == "lemma":
            builder.add_lemma(number, term, languages)
        else:
            builder.add_literal(number, term)
    return builder.finish()


class _Builder:
    """A lexicon in the making."""

    def __init__(self, keys: list[Key]) -> None:
        self.keys = keys
        self._literals: dict[str, list[_Literal]] = defaultdict(list)
        self._patterns: dict[bool, list[tuple[int, Pattern]]] = defaultdict(list)
        self._forms: dict[str, list[_Phrase]] = defaultdict(list)
        self._stems: dict[str, dict[str, list[_Phrase]]] = defaultdict(lambda: defaultdict(list))
        self._inflections: dict[int, tuple[Inflection, ...]] = {}

    def add_literal(self, number: int, term: Term) -> None:
        folded = folded_text(term.text)
        left = right = term.mode != "substring"
        if term.mode == "word":
            left, right = left and folded[0] != "*", right and folded[-1] != "*"
            folded = folded.strip("*")
        left = left and is_word(folded[0])
        right = right and is_word(folded[-1])
        case = fold(term.text, keeps_case=True).text.strip().strip("*") if term.case else ""
        self._literals[folded].append(_Literal(number, left, right, case))

    def add_pattern(self, number: int, term: Term) -> None:
        self._patterns[term.case].append((number, compile_pattern(term.text, term.case)))

    def add_lemma(self, number: int, term: Term, languages: tuple[str, ...]) -> None:
        folded = folded_text(term.text)
        slots = tuple(inflect(word, languages) for word in WORD.findall(folded))
        if not any(len(slot.forms) > 1 or slot.stems for slot in slots):
            # Nothing of it is inflected: Chinese, or a number.
            self.add_literal(number, term)
            return
        self._inflections[number] = slots
        anchor = max(range(len(slots)), key=lambda at: _rarity(slots[at]))
        phrase = _Phrase(number, slots, anchor)
        for form in slots[anchor].forms:
            self._forms[form].append(phrase)
        for language, wanted in slots[anchor].stems:
            self._stems[language][wanted].append(phrase)

    def finish(self) -> Lexicon:
        lexicon = Lexicon(self.keys, self._inflections)
        if self._literals:
            lexicon._literals = list(self._literals.values())
            lexicon._automaton = AhoCorasick(
                list(self._literals),
                matchkind=MatchKind.Standard,
                store_patterns=False,
                implementation=_implementation(self._literals),
            )
        lexicon._forms = {form: tuple(found) for form, found in self._forms.items()}
        lexicon._stems = {
            language: {one: tuple(found) for one, found in stems.items()}
            for language, stems in self._stems.items()
        }
        for keeps_case, patterns in self._patterns.items():
            compiled = [pattern for _, pattern in patterns]
            numbers = [number for number, _ in patterns]
            found = PatternSet(compiled, keeps_case)
            lexicon._patterns.append((found, numbers, compiled, keeps_case))
        return lexicon


DFA_CHARS = 200_000
"""Up to so many characters of terms the automaton is the fastest kind, which is also the
largest."""


def _implementation(literals: Iterable[str]) -> Implementation:
    total = sum(len(text.encode()) for text in literals)
    return Implementation.DFA if total <= DFA_CHARS else Implementation.ContiguousNFA


def _rarity(slot: Inflection) -> int:
    """Return the length of the shortest form: short words are common ones."""
    return min(map(len, slot.forms))
