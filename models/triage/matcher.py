"""Which rules match a passage, where, and why: one pass for all of them."""

from __future__ import annotations

import itertools
from bisect import bisect_left
from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace

from models.triage.folding import Folded, fold, folded_text, undisguise
from models.triage.hits import Place, RuleMatch
from models.triage.lexicon import Found, Key, Lexicon, build_lexicon
from models.triage.morphology import readings
from models.triage.rules import Mode, Rule, Term
from models.triage.scope import Origin, is_in_scope
from models.triage.words import Sentences, is_word, words_of

MOST_SHOWN = 50
"""Places of one rule that are told."""

LEAST_AMBIGUITY = 0.02
"""A second reading of a form is told from this share on."""


@dataclass(frozen=True, slots=True)
class Passage:
    """A title and a text as one: the title is its first line.

    Attributes
    ----------
    text
        All of it; places count in its characters.
    title_end
        Where the title ends.
    """

    text: str
    title_end: int

    @classmethod
    def of(cls, title: str | None, text: str | None) -> Passage:
        r"""Return the passage of an article.

        Examples
        --------
        >>> Passage.of("A title\n of two lines", "Text.")
        Passage(text='A title of two lines\nText.', title_end=20)
        """
        head = " ".join((title or "").split())
        return cls(f"{head}\n{text or ''}", len(head))

    @classmethod
    def of_file(cls, text: str) -> Passage:
        """Return the passage of a plain text, whose first line is its title."""
        end = text.find("\n")
        return cls(text, len(text) if end < 0 else end)


@dataclass(frozen=True, slots=True)
class _Ready:
    """A rule with its terms as numbers of the lexicon."""

    rule: Rule
    wanted: tuple[tuple[int, ...], ...]
    none: tuple[int, ...]
    except_in: tuple[int, ...]


@dataclass(frozen=True, slots=True)
class _Spot:
    """A place a rule wants, before it is told."""

    found: Found
    is_disguised: bool = False


Spots = dict[int, list[_Spot]]


class Matcher:
    """Rules, ready to be matched. Making one costs milliseconds a rule at most; use it often.

    Parameters
    ----------
    rules
        Any number.

    Examples
    --------
    >>> from models.triage.rules import Term
    >>> rule = Rule("fire", 2, any=(Term("пожар", "lemma"),))
    >>> match, = Matcher([rule]).match(Passage.of("О пожарах", "Тихо."))
    >>> match.first.matched, match.first.why
    ('пожарах', '"пожарах" is a form of "пожар"')
    """

    def __init__(self, rules: Iterable[Rule]) -> None:
        numbers: dict[Key, int] = {}

        def number(term: Term, rule: Rule) -> int:
            languages = rule.scope.languages if term.mode == "lemma" else ()
            return numbers.setdefault((term, languages), len(numbers))

        self._ready = [
            _Ready(
                rule,
                tuple(tuple(number(term, rule) for term in group) for group in rule.wanted),
                tuple(number(term, rule) for term in rule.none),
                tuple(
                    number(Term(text, _mode_of_exceptions(rule)), rule) for text in rule.except_in
                ),
            )
            for rule in rules
        ]
        self._lexicon: Lexicon = build_lexicon(numbers)
        # A rule is looked at where something of its first group was found: all need one.
        users: dict[int, list[int]] = defaultdict(list)
        for at, ready in enumerate(self._ready):
            for term in _rarest(ready.wanted):
                users[term].append(at)
        self._users = dict(users)
        self._disguises = any(ready.rule.lookalikes for ready in self._ready)

    @property
    def rules(self) -> list[Rule]:
        """The rules, in their order."""
        return [ready.rule for ready in self._ready]

    def match(self, passage: Passage, origin: Origin | None = None) -> list[RuleMatch]:
        """Return the rules that match, the most urgent first.

        Parameters
        ----------
        passage
            What is looked at.
        origin
            Whose it is; where None, rules hold whatever their scope.
        """
        folded = fold(passage.text)
        found = self._lexicon.find(folded)
        spots: Spots = {term: [_Spot(one) for one in places] for term, places in found.items()}
        disguised = self._find_disguised(folded, spots) if self._disguises else {}
        candidates = {at for term in (*spots, *disguised) for at in self._users.get(term, ())}
        sentences = Sentences(passage.text)
        matches = []
        for at in sorted(candidates):
            ready = self._ready[at]
            if origin is not None and not is_in_scope(ready.rule.scope, origin):
                continue
            seen = _merged(spots, disguised) if ready.rule.lookalikes else spots
            match = _Trial(self._lexicon, ready, passage, folded, seen, sentences).result()
            if match is not None:
                matches.append(match)
        return sorted(matches, key=lambda match: match.level)

    def _find_disguised(self, folded: Folded, spots: Spots) -> Spots:
        """Return what is found once look-alike letters are put back, and was not before."""
        disguised: Spots = defaultdict(list)
        for script in ("cyrillic", "latin"):
            rewritten = undisguise(folded.text, script)
            if rewritten is None:
                continue
            for term, places in self._lexicon.find(replace(folded, text=rewritten)).items():
                plain = {(spot.found.start, spot.found.end) for spot in spots.get(term, ())}
                disguised[term] += [
                    _Spot(one, is_disguised=True)
                    for one in places
                    if (one.start, one.end) not in plain
                    and folded.text[one.start : one.end] != rewritten[one.start : one.end]
                ]
        return disguised


def _mode_of_exceptions(rule: Rule) -> Mode:
    """Return how the words of `except` are compared: in all their forms where the terms are."""
    is_lemma = any(term.mode == "lemma" for group in rule.wanted for term in group)
    return "lemma" if is_lemma else "phrase"


def _rarest(groups: tuple[tuple[int, ...], ...]) -> tuple[int, ...]:
    return min(groups, key=len)


def _merged(spots: Spots, disguised: Spots) -> Spots:
    return {term: [*spots.get(term, []), *disguised.get(term, [])] for term in {*spots, *disguised}}


class _Trial:
    """One rule tried on one passage."""

    def __init__(
        self,
        lexicon: Lexicon,
        ready: _Ready,
        passage: Passage,
        folded: Folded,
        spots: Spots,
        sentences: Sentences,
    ) -> None:
        self._lexicon = lexicon
        self._ready = ready
        self._rule = ready.rule
        self._passage = passage
        self._folded = folded
        self._spots = spots
        self._sentences = sentences

    def result(self) -> RuleMatch | None:
        groups = [self._of_group(terms) for terms in self._ready.wanted]
        if not all(groups):
            return None
        if any(self._spots.get(term) for term in self._ready.none):
            return None
        near = self._rule.near
        width = None
        if near is not None:
            closest = self._closest(groups)
            if closest is None:
                return None
            groups, width = closest
        places = self._told(itertools.chain.from_iterable(groups))
        sentences = tuple(self._sentences.around(place.start, place.end) for place in places)
        return RuleMatch(self._rule, places, self._rule.level, self._why(width), sentences)

    def _of_group(self, terms: Sequence[int]) -> list[_Spot]:
        spots = [spot for term in terms for spot in self._spots.get(term, ())]
        return [spot for spot in spots if self._counts(spot)]

    def _counts(self, spot: _Spot) -> bool:
        start, _ = self._folded.span(spot.found.start, spot.found.end)
        is_title = start < self._passage.title_end
        if self._rule.where != "anywhere" and (self._rule.where == "title") != is_title:
            return False
        return not self._is_excepted(spot) and not (self._rule.unambiguous and self._is_odd(spot))

    def _is_excepted(self, spot: _Spot) -> bool:
        """Return whether a place lies inside a longer word that does not count."""
        return any(
            longer.found.start <= spot.found.start and spot.found.end <= longer.found.end
            for term in self._ready.except_in
            for longer in self._spots.get(term, ())
        )

    def _is_odd(self, spot: _Spot) -> bool:
        """Return whether a form belongs likelier to another word than to the term's."""
        lemmas, shares = self._shares(spot)
        if not shares or self._form(spot) == folded_text(self._term(spot).text):
            return False
        own = sum(share for lemma, share in shares.items() if lemma in lemmas)
        return own < max((share for word, share in shares.items() if word not in lemmas), default=0)

    def _closest(self, groups: list[list[_Spot]]) -> tuple[list[list[_Spot]], int] | None:
        """Return one spot of each group, the nearest together, and over how many words."""
        assert self._rule.near is not None
        starts = [start for start, _ in words_of(self._folded.text)]
        listed = sorted(
            (
                (bisect_left(starts, spot.found.start), at, spot)
                for at, spots in enumerate(groups)
                for spot in spots
            ),
            key=lambda item: item[0],
        )
        latest: dict[int, tuple[int, _Spot]] = {}
        best: tuple[int, list[list[_Spot]]] | None = None
        for word, at, spot in listed:
            latest[at] = (word, spot)
            if len(latest) == len(groups):
                width = word - min(earlier for earlier, _ in latest.values())
                if best is None or width < best[0]:
                    best = width, [[latest[number][1]] for number in range(len(groups))]
        if best is None or best[0] > self._rule.near:
            return None
        return best[1], best[0]

    def _told(self, spots: Iterable[_Spot]) -> tuple[Place, ...]:
        unique = {(spot.found.start, spot.found.end): spot for spot in spots}
        longest = _without_inner(sorted(unique.values(), key=_by_place))
        return tuple(self._place(spot) for spot in longest[:MOST_SHOWN])

    def _place(self, spot: _Spot) -> Place:
        start, end = self._folded.span(spot.found.start, spot.found.end)
        start, end = self._whole_word(spot, start, end)
        term = self._term(spot)
        matched = self._passage.text[start:end]
        return Place(start, end, matched, term.text, term.mode, self._why_place(spot, matched))

    def _whole_word(self, spot: _Spot, start: int, end: int) -> tuple[int, int]:
        """Return the whole word where a term ends, or begins, with a star."""
        term, text = self._term(spot), self._passage.text
        if term.mode == "word":
            while term.text.endswith("*") and end < len(text) and is_word(text[end]):
                end += 1
            while term.text.startswith("*") and start > 0 and is_word(text[start - 1]):
                start -= 1
        return start, end

    def _term(self, spot: _Spot) -> Term:
        return self._lexicon.keys[spot.found.term][0]

    def _form(self, spot: _Spot) -> str:
        return self._folded.text[spot.found.start : spot.found.end]

    def _shares(self, spot: _Spot) -> tuple[frozenset[str], Mapping[str, float]]:
        """Return the dictionary words meant, and all those a form may belong to."""
        slots = self._lexicon.inflections.get(spot.found.term, ())
        if len(slots) != 1 or not slots[0].lemmas or spot.is_disguised:
            return frozenset(), {}
        return slots[0].lemmas, readings(self._form(spot))

    def _why_place(self, spot: _Spot, matched: str) -> str:
        term = self._term(spot)
        shown = " ".join(matched.split())
        if spot.is_disguised:
            return f'"{shown}" is "{term.text}" written with look-alike letters of another script'
        why = self._how(spot, term, shown)
        lemmas, shares = self._shares(spot)
        others = [
            f"{word} ({share:.0%})"
            for word, share in sorted(shares.items(), key=lambda item: -item[1])
            if word not in lemmas and share >= LEAST_AMBIGUITY
        ]
        return f"{why}; it may also be a form of {', '.join(others)}" if others else why

    def _how(self, spot: _Spot, term: Term, shown: str) -> str:
        if term.mode == "regex":
            return f'"{shown}" fits the expression {term.text}'
        if term.mode == "lemma" and self._form(spot) != folded_text(term.text):
            return f'"{shown}" is a form of "{term.text}"'
        if term.mode == "substring":
            return f'it contains "{shown}"'
        kind = "phrase" if term.mode == "phrase" or " " in term.text.strip() else "word"
        if "*" in term.text and term.mode == "word":
            return f'the word "{shown}" fits {term.text}'
        if shown != term.text and shown.casefold() == term.text.casefold():
            return f'the {kind} "{shown}"'
        if shown != term.text:
            return f'"{shown}" is the {kind} "{term.text}" in another spelling'
        return f'the {kind} "{term.text}" as written'

    def _why(self, width: int | None) -> str:
        parts = []
        if len(self._ready.wanted) > 1:
            parts.append(f"all {len(self._ready.wanted)} things the rule wants are there")
        if width is not None:
            parts.append(
                f"within {width} {'word' if width == 1 else 'words'} ({self._rule.near} allowed)"
            )
        if self._rule.none:
            parts.append("nothing it excludes is")
        return ", ".join(parts)


def _by_place(spot: _Spot) -> tuple[int, int]:
    return spot.found.start, -spot.found.end


def _without_inner(spots: list[_Spot]) -> list[_Spot]:
    """Return the spots that lie in no other: of газ and газопровод, the longer is told."""
    kept: list[_Spot] = []
    for spot in spots:
        if not kept or spot.found.end > kept[-1].found.end:
            kept.append(spot)
    return kept
