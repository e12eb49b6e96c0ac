"""Measure the keyword matcher: texts a second by number of rules, and how well forms are found.

``python benchmarks/triage.py FOLDER [--texts 3000] [--json]``

FOLDER holds texts as Parquet files with a column ``text``, ``body`` or ``title``, and the
name of each begins with its language (``ru_…``, ``en_…``). Speed: rules are single words
drawn from other texts than those that are matched, at most one in 50 of which has the
word, as rules are: rules that hit every text are none. The same words are looked for by a loop over
all rules, and by one alternation of Python's ``re``, in the same run; all three must find
the same. More rules find more, and each find is told with its sentence and reason: a second
column has as many rules of words that none of the texts has, the cost of looking alone.
Quality: every word of the texts is compared with tables of forms written by hand
(``parts/inflections.toml``).
"""

from __future__ import annotations

import argparse
import json
import random
import re
import sys
import time
import tomllib
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path

import pyarrow.parquet as pq

from models.triage.folding import folded_text
from models.triage.matcher import Matcher, Passage
from models.triage.morphology import readings
from models.triage.rules import Mode, Rule, Term

SIZES = (10, 1000, 10_000)
MOST_WORDS = 100_000
"""Words that rules are made of: enough of them hit nothing."""

TARGETS: dict[tuple[str, int], float] = {("word", 1000): 2000.0, ("lemma", 1000): 300.0}
RIVAL_TEXTS = 60
"""Texts that the slow ways are given."""

MOST_FREQUENT = 50
WORD = re.compile(r"[^\W\d_]{4,}")
TABLES = Path(__file__).parent / "parts" / "inflections.toml"


@dataclass(frozen=True, slots=True)
class Speed:
    """Texts a second on one core, with so many rules; idle are rules that hit none of them."""

    mode: str
    rules: int
    build_s: float
    texts_per_s: float
    idle_per_s: float
    hits_per_text: float
    loop_per_s: float | None
    alternation_per_s: float | None
    target: float | None


@dataclass(frozen=True, slots=True)
class Quality:
    """How well the forms of words are found: share of finds that are right, of forms found."""

    language: str
    words: int
    forms_met: int
    precision: float
    recall: float
    wrong: tuple[tuple[str, int], ...]
    missed: tuple[tuple[str, int], ...]


def read_texts(folder: Path, language: str, limit: int) -> list[str]:
    """Return texts of a language, mixed, the same each time."""
    found: list[str] = []
    for file in sorted(folder.glob(f"{language}_*.parquet")):
        table = pq.read_table(file)
        column = next(name for name in ("text", "body", "title") if name in table.column_names)
        found += [text for text in table[column].to_pylist() if text]
    random.Random(1).shuffle(found)
    return found[:limit]


def choose_words(texts: Sequence[str], n: int) -> list[str]:
    """Return words that few of the texts have, the same each time."""
    counts = Counter(word for text in texts for word in set(WORD.findall(folded_text(text))))
    rare = sorted(word for word, count in counts.items() if count <= len(texts) / MOST_FREQUENT)
    random.Random(2).shuffle(rare)
    return rare[:n]


def measure_speed(texts: Sequence[str], words: Sequence[str], n: int, mode: Mode) -> Speed:
    """Return how fast `n` rules of one word each are matched, and as many that hit nothing."""
    passages = [Passage.of_file(text) for text in texts]
    begun = time.process_time()
    matcher = _matcher_of(words[:n], mode)
    build_s = time.process_time() - begun
    rate, hits = _match_all(matcher, passages)
    _, everything = _match_all(_matcher_of(words, mode), passages)
    idle_words = [word for word in words if word not in everything][:n]
    idle_rate, idle_hits = _match_all(_matcher_of(idle_words, mode), passages)
    assert len(idle_words) == n, "too few words that hit nothing"
    assert not idle_hits
    loop = alternation = None
    if mode == "word":
        loop, alternation = measure_rivals(texts[:RIVAL_TEXTS], words[:n], matcher)
    return Speed(
        mode, n, build_s, rate, idle_rate, hits.total() / len(texts), loop, alternation,
        TARGETS.get((mode, n)),
    )  # fmt: skip


def _matcher_of(words: Sequence[str], mode: Mode) -> Matcher:
    return Matcher(Rule(word, 3, any=(Term(word, mode),)) for word in words)


def _match_all(matcher: Matcher, passages: Sequence[Passage]) -> tuple[float, Counter[str]]:
    """Return texts a second, once the matcher is warm, and how often each rule hit."""
    for passage in passages[: len(passages) // 10]:
        matcher.match(passage)
    hits: Counter[str] = Counter()
    begun = time.process_time()
    for passage in passages:
        hits.update(match.rule.rule for match in matcher.match(passage))
    return len(passages) / (time.process_time() - begun), hits


def measure_rivals(
    texts: Sequence[str], words: Sequence[str], matcher: Matcher
) -> tuple[float, float]:
    """Return texts a second of a loop and of one alternation; all must find the same."""
    each = [(word, re.compile(rf"\b{re.escape(word)}\b")) for word in words]
    together = re.compile(rf"\b(?:{'|'.join(map(re.escape, sorted(words, reverse=True)))})\b")

    def by_loop(text: str) -> set[str]:
        folded = folded_text(text)
        return {word for word, pattern in each if pattern.search(folded)}

    def by_alternation(text: str) -> set[str]:
        return set(together.findall(folded_text(text)))

    def by_matcher(text: str) -> set[str]:
        return {match.rule.rule for match in matcher.match(Passage.of_file(text))}

    found, rates = [], []
    for way in (by_loop, by_alternation, by_matcher):
        begun = time.process_time()
        found.append([way(text) for text in texts])
        rates.append(len(texts) / max(time.process_time() - begun, 1e-9))
    if not found[0] == found[1] == found[2]:
        sys.exit("the matcher does not find what a plain loop finds")
    return rates[0], rates[1]


def measure_quality(language: str, tables: dict[str, str], texts: Sequence[str]) -> Quality:
    """Return precision and recall of lemma mode, over the words of some texts."""
    forms = {word: frozenset(line.split()) for word, line in tables.items()}
    joint = Matcher(Rule(word, 3, any=(Term(word, "lemma"),)) for word in forms)
    right = n_found = n_met = 0
    wrong: Counter[str] = Counter()
    missed: Counter[str] = Counter()
    for text in texts:
        wanted = Counter(_labelled(text, forms))
        got = Counter(
            (match.rule.rule, folded_text(place.matched))
            for match in joint.match(Passage.of_file(text))
            for place in match.places
        )
        right += sum((wanted & got).values())
        n_found += sum(got.values())
        n_met += sum(wanted.values())
        wrong.update({f"{form} for {word}": n for (word, form), n in (got - wanted).items()})
        missed.update({f"{form} of {word}": n for (word, form), n in (wanted - got).items()})
    return Quality(
        language, len(forms), n_met, right / max(n_found, 1), right / max(n_met, 1),
        tuple(wrong.most_common(8)), tuple(missed.most_common(8)),
    )  # fmt: skip


def _labelled(text: str, forms: dict[str, frozenset[str]]) -> Iterator[tuple[str, str]]:
    """Yield the table's word and the form for every word of a text that is one."""
    for token in re.findall(r"[^\W_]+", folded_text(text)):
        for word, known in forms.items():
            if token in known:
                yield word, token


def show(speeds: Sequence[Speed], qualities: Sequence[Quality], say: Callable[[str], None]) -> None:
    """Say the figures beside their targets."""
    say("mode    rules   build   texts/s  target   hits/text    idle/s  loop/s  alternation/s")
    for one in speeds:
        target = f"{one.target:.0f}" if one.target else "–"
        rivals = [
            f"{rate:.1f}" if rate else "–" for rate in (one.loop_per_s, one.alternation_per_s)
        ]
        say(
            f"{one.mode:<6}{one.rules:>7}{one.build_s:>7.2f} s{one.texts_per_s:>10.0f}{target:>8}"
            f"{one.hits_per_text:>12.3f}{one.idle_per_s:>10.0f}{rivals[0]:>8}{rivals[1]:>15}"
        )
    for quality in qualities:
        say(
            f"lemma mode, {quality.language}: {quality.words} words, {quality.forms_met} places:"
            f" precision {quality.precision:.4f}, recall {quality.recall:.4f}"
        )
        if quality.wrong:
            say("  wrong:  " + ", ".join(f"{what} {n}×" for what, n in quality.wrong))
        if quality.missed:
            say("  missed: " + ", ".join(f"{what} {n}×" for what, n in quality.missed))


def main() -> None:
    """Measure, print, and exit with 1 where a target is missed."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawTextHelpFormatter
    )
    parser.add_argument("folder", type=Path)
    parser.add_argument("--texts", type=int, default=3000)
    parser.add_argument("--json", action="store_true")
    asked = parser.parse_args()
    readings("прогрев")
    texts = read_texts(asked.folder, "ru_telegram", asked.texts * 3)
    matched, others = texts[: asked.texts], texts[asked.texts :]
    words = choose_words(others, MOST_WORDS)
    speeds = [
        measure_speed(matched, words, size, mode) for mode in ("word", "lemma") for size in SIZES
    ]
    tables = tomllib.loads(TABLES.read_text(encoding="utf-8"))
    qualities = [
        measure_quality(language, words, read_texts(asked.folder, language, asked.texts))
        for language, words in tables.items()
    ]
    if asked.json:
        figures = {"speed": map(asdict, speeds), "quality": map(asdict, qualities)}
        print(json.dumps({key: list(rows) for key, rows in figures.items()}, ensure_ascii=False))
    else:
        show(speeds, qualities, print)
    sys.exit(any(one.target and one.texts_per_s < one.target for one in speeds))


if __name__ == "__main__":
    main()
