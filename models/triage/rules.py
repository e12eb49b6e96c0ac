"""A keyword rule: what it looks for, where it holds, how urgent it is."""

from __future__ import annotations

import difflib
import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, fields
from typing import Any, Literal, get_args

from models.errors import ConfigError
from models.triage.folding import folded_text
from models.triage.morphology import INFLECTED, languages_of
from models.triage.patterns import PatternError, compile_pattern
from models.triage.words import WORD, is_unspaced

Mode = Literal["word", "lemma", "phrase", "substring", "regex"]
Where = Literal["anywhere", "title", "text"]
MODES: tuple[Mode, ...] = get_args(Mode)
REACHES = ("wide", "local", "trade")

LEAST_SUBSTRING = 2
MOST_TERM_CHARS = 500
DEFAULT_RAISE_TO = 2
"""What is told at once and again until somebody answers is for a rule to ask for itself."""


@dataclass(frozen=True, slots=True)
class Term:
    """One thing to look for.

    Attributes
    ----------
    text
        As written in the rule.
    mode
        How it is compared.
    case
        Whether case counts: ``US`` is not ``us``.
    """

    text: str
    mode: Mode
    case: bool = False


@dataclass(frozen=True, slots=True)
class Scope:
    """Whose articles a rule is for; what is empty is all.

    Attributes
    ----------
    languages
        Of the text, two-letter codes; a text of unknown language passes.
    """

    sources: tuple[str, ...] = ()
    tags: tuple[str, ...] = ()
    languages: tuple[str, ...] = ()
    countries: tuple[str, ...] = ()
    reach: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Rule:
    """A keyword rule.

    Attributes
    ----------
    rule
        Its name.
    level
        1 (at once, until acknowledged), 2 (at once), 3 (hourly), 4 (daily), 5 (kept).
    any, all, none
        One of `any` must be there, one of every group of `all`, and none of `none`.
    except_in
        Longer words and phrases a term does not count in: the place is passed over.
    near
        Everything that must be there stands within so many words; None for anywhere.
    where
        Whether the title counts, the text, or both.
    unambiguous
        Take a Russian form only where it belongs likelier to the term than to another word.
    lookalikes
        Look also at words written with letters of another script that look the same.
    group
        Name that channels are routed by, beside the tags of sources.
    raise_to
        The most urgent level that weight, spikes and other rules may raise a hit to.
    note
        For people: what it is for.
    place
        File and line.
    """

    rule: str
    level: int
    any: tuple[Term, ...] = ()
    all: tuple[tuple[Term, ...], ...] = ()
    none: tuple[Term, ...] = ()
    except_in: tuple[str, ...] = ()
    near: int | None = None
    where: Where = "anywhere"
    unambiguous: bool = False
    lookalikes: bool = False
    group: str = ""
    raise_to: int = DEFAULT_RAISE_TO
    note: str = ""
    scope: Scope = field(default_factory=Scope)
    place: str = ""

    @property
    def wanted(self) -> tuple[tuple[Term, ...], ...]:
        """The groups of which each must be there."""
        return (*((self.any,) if self.any else ()), *self.all)


_SCOPES = tuple(item.name for item in fields(Scope))
KEYS = (
    "rule", "level", "any", "all", "none", "except", "mode", "case", "near", "where",
    "unambiguous", "lookalikes", "group", "raise_to", "note", *_SCOPES,
)  # fmt: skip
_TERM_KEYS = ("term", "mode", "case")


def read_rule(table: Mapping[str, Any], place: Callable[[str], str]) -> Rule:
    """Return the rule that one table of a keyword file holds.

    Parameters
    ----------
    table
        As read from TOML.
    place
        Returns file and line of a key, for messages.

    Raises
    ------
    ConfigError
        Names the rule, the place, what is wrong, and what would be right.
    """
    return _RuleReader(table, place).read()


class _RuleReader:
    """Reads one table."""

    def __init__(self, table: Mapping[str, Any], place: Callable[[str], str]) -> None:
        self._table = table
        self._place = place
        self._name = str(table.get("rule", "a rule without a name"))

    def read(self) -> Rule:
        for key in self._table:
            if key not in KEYS:
                raise self._wrong(key, _unknown(key, KEYS))
        name = self._text("rule", r"[\w][\w.-]{0,79}", "letters, digits, '-', '_' and '.'")
        if not name:
            raise self._wrong("rule", "every rule needs a name")
        rule = Rule(
            rule=name,
            level=self._number("level", None, 1, 5),
            any=self._terms("any"),
            all=self._groups("all"),
            none=self._terms("none"),
            except_in=self._texts("except"),
            near=self._near(),
            where=self._choice("where", get_args(Where), "anywhere"),
            unambiguous=self._flag("unambiguous"),
            lookalikes=self._flag("lookalikes"),
            group=self._text("group", r"\w[\w.-]{0,39}", "a word such as energy"),
            raise_to=self._number("raise_to", DEFAULT_RAISE_TO, 1, 5),
            note=self._text("note", r"[^\x00-\x1f\x7f]{0,500}", "one line"),
            scope=self._scope(),
            place=self._place("rule"),
        )
        if not rule.wanted:
            raise self._wrong("any", "a rule needs something to look for: any, or all")
        if rule.near is not None and len(rule.wanted) < 2:
            raise self._wrong(
                "near", "it needs two things that are to be near: all, or any and all"
            )
        return rule

    def _wrong(self, key: str, allowed: str, value: object = None) -> ConfigError:
        shown = self._table.get(key) if value is None else value
        return ConfigError(self._place(key), f"{self._name}.{key}", shown, allowed)

    def _value(self, key: str, kind: type[Any], default: Any, allowed: str) -> Any:
        value = self._table.get(key, default)
        is_wrong_bool = kind is int and isinstance(value, bool)
        if value is not default and (not isinstance(value, kind) or is_wrong_bool):
            raise self._wrong(key, allowed)
        return value

    def _text(self, key: str, pattern: str, allowed: str) -> str:
        value = self._value(key, str, "", f"it must be text: {allowed}")
        if value and not re.fullmatch(pattern, value):
            raise self._wrong(key, f"it must be {allowed}")
        return str(value)

    def _flag(self, key: str) -> bool:
        return bool(self._value(key, bool, False, "it must be true or false"))

    def _number(self, key: str, default: int | None, least: int, most: int) -> int:
        allowed = f"it must be a whole number from {least} to {most}"
        value = self._value(key, int, default, allowed)
        if value is None or not least <= value <= most:
            raise self._wrong(key, allowed)
        return int(value)

    def _near(self) -> int | None:
        return self._number("near", 1, 1, 1000) if "near" in self._table else None

    def _choice(self, key: str, choices: tuple[str, ...], default: str) -> Any:
        value = self._value(key, str, default, f"it is one of {', '.join(choices)}")
        if value not in choices:
            raise self._wrong(key, f"it is one of {', '.join(choices)}")
        return value

    def _texts(self, key: str) -> tuple[str, ...]:
        value = self._table.get(key, [])
        if not isinstance(value, list) or not all(isinstance(item, str) for item in value):
            raise self._wrong(key, 'it must be a list of texts, such as ["one", "two"]')
        for item in value:
            if not folded_text(item):
                raise self._wrong(key, "a text in it has no letters", item)
        return tuple(value)

    def _scope(self) -> Scope:
        given = {key: self._texts(key) for key in _SCOPES}
        for name in given["reach"]:
            if name not in REACHES:
                raise self._wrong("reach", f"each is one of {', '.join(REACHES)}", name)
        for code in given["languages"]:
            if not re.fullmatch(r"[a-z]{2,3}", code):
                raise self._wrong("languages", "each is a code such as ru", code)
        return Scope(**given)

    def _terms(self, key: str) -> tuple[Term, ...]:
        value = self._table.get(key, [])
        if not isinstance(value, list):
            raise self._wrong(key, 'it must be a list of terms, such as ["one", "two"]')
        return tuple(self._term(key, item) for item in value)

    def _groups(self, key: str) -> tuple[tuple[Term, ...], ...]:
        value = self._table.get(key, [])
        if not isinstance(value, list):
            raise self._wrong(key, 'it must be a list, such as ["one", ["two", "or three"]]')
        groups = [item if isinstance(item, list) else [item] for item in value]
        if not all(groups):
            raise self._wrong(key, "an empty list in it can never be met")
        return tuple(tuple(self._term(key, item) for item in group) for group in groups)

    def _term(self, key: str, item: Any) -> Term:
        table = item if isinstance(item, dict) else {"term": item}
        for name in table:
            if name not in _TERM_KEYS:
                raise self._wrong(key, _unknown(name, _TERM_KEYS), item)
        text = table.get("term")
        if not isinstance(text, str):
            raise self._wrong(key, 'a term is text, or {term = "…", mode = "word"}', item)
        mode = table.get("mode", self._choice("mode", MODES, "word"))
        case = table.get("case", self._flag("case"))
        if mode not in MODES or not isinstance(case, bool):
            raise self._wrong(key, f"mode is one of {', '.join(MODES)}, case true or false", item)
        term = Term(text, mode, case)
        self._check(key, term)
        return term

    def _check(self, key: str, term: Term) -> None:
        folded = folded_text(term.text)
        if not folded or len(term.text) > MOST_TERM_CHARS:
            raise self._wrong(key, f"a term has 1 to {MOST_TERM_CHARS} characters", term.text)
        if term.mode == "regex":
            try:
                compile_pattern(term.text, term.case)
            except PatternError as error:
                raise self._wrong(key, f"as a regular expression: {error}", term.text) from error
            return
        bare = folded.strip("*") if term.mode == "word" else folded
        if term.mode != "substring" and not WORD.search(bare):
            raise self._wrong(key, "a term needs a letter or digit", term.text)
        if term.mode == "substring" and len(folded) < LEAST_SUBSTRING and WORD.search(folded):
            raise self._wrong(
                key, f"a substring needs {LEAST_SUBSTRING} letters, or it is everywhere", term.text
            )
        if term.mode == "lemma":
            self._check_lemma(key, term, folded)

    def _check_lemma(self, key: str, term: Term, folded: str) -> None:
        if term.case:
            raise self._wrong(key, "case does not count in lemma mode; use word", term.text)
        languages = self._texts("languages")
        words = WORD.findall(folded)
        is_known = any(languages_of(word, languages) for word in words)
        if not is_known and not is_unspaced(folded) and not all(map(str.isdigit, words)):
            allowed = (
                f"no forms are known for it in {', '.join(languages) or 'its language'}; lemma mode"
                f" knows {', '.join(INFLECTED)}. Use word, with * for endings"
            )
            raise self._wrong(key, allowed, term.text)


def _unknown(key: str, known: tuple[str, ...]) -> str:
    near = difflib.get_close_matches(key, known, n=1, cutoff=0.6)
    return f"did you mean {near[0]}?" if near else f"keys are {', '.join(known)}"
