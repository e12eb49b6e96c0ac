"""Print how well reprints are told from other articles, and what that costs, beside targets.

``python benchmarks/likeness.py ../shared/data [--texts 250] [--seed 5]``

Nobody has labelled reprints of whole texts, so they are made: real articles in four
languages are edited as newsrooms edit a wire (`EDITS`), and looked for among all of them.

* **found**: share of edited copies whose original is found.
* **wrong**: of copies, share that was put to another article instead, though the two have
  hardly anything in common.
* **false**: share of articles as they are that were found to be like another that is no
  double. Collections hold real doubles, and finding these is no error; which they are is told
  by passages of eight words (sixteen characters), which no method here looks at.
* **one subject**: the same over each article and its nearest by rare words, where that is no
  double: the hardest there are, an event told anew, a template filled in again.

Beside ours stand a sketch of the smallest hashes (what newsbeat had before), and datasketch's
MinHash with LSH and simhash where these are installed.
"""

from __future__ import annotations

import argparse
import random
import re
import time
import tracemalloc
from collections import Counter, defaultdict
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from pathlib import Path
from zlib import crc32

import numpy as np
import pandas as pd

from models.errors import NewsbeatError
from models.likeness import ALIKE, Likenesses, Signed, _runs_of, sign_text
from models.triage.folding import folded_text
from models.triage.words import WORD, is_unspaced
from tasks.articles import extract_article
from tasks.corpus import StoredPage, list_pages, read_pages

NOW = datetime(2026, 3, 1, tzinfo=UTC)
TARGETS = {"found": 0.95, "wrong": 0.01, "false": 0.01, "one subject": 0.02}
TRULY_ALIKE = 0.25
"""Articles that share so much of the shorter one's passages are doubles, and no errors."""

LEAST_CHARS = 400
_ENDS = re.compile(r"(?<=[.!?。！？])\s*|\n+")


@dataclass(frozen=True)
class Text:
    """An article."""

    title: str
    body: str

    @property
    def paragraphs(self) -> list[str]:
        """Its lines, or its sentences where it has few."""
        lines = [line for line in self.body.split("\n") if line.strip()]
        return lines if len(lines) > 3 else [one for one in _ENDS.split(self.body) if one.strip()]


def read_texts(folder: Path, most: int) -> dict[str, list[Text]]:
    """Return articles by language: extracted from pages, and from collections of texts."""
    pages = list_pages(folder / "B_html")
    wanted = {
        "en": [page for page in pages if page.dataset == "article-extraction-benchmark"],
        "de": [page for page in pages if page.dataset == "fundus" and page.language == "de"]
        + [page for page in pages if page.dataset == "trafilatura-eval"][:250],
        "zh": [page for page in pages if page.dataset.startswith("zh-")],
    }
    found = {
        language: extract_all(folder / "B_html", some, language)
        for language, some in wanted.items()
    }
    texts = folder / "D_texts"
    found["en"] += collection(texts / "en_tgcontest_categories.parquet", "text")
    found["en"] += collection(texts / "en_reuters21578.parquet", "body")[: 4 * most]
    found["ru"] = collection(texts / "ru_tgcontest_categories.parquet", "text")
    found["ru"] += collection(texts / "ru_telegram_2024.parquet", "text")[: 8 * most]
    found["zh"] += digests(texts / "zh_readhub_2025.parquet")[: 4 * most]
    return found


def extract_all(folder: Path, pages: Sequence[StoredPage], language: str) -> list[Text]:
    """Return the articles on some pages."""
    found = []
    for page, body in read_pages(folder, pages):
        try:
            article = extract_article(body, url=f"https://{page.site}/a", now=NOW)
        except NewsbeatError:
            continue
        is_right = language != "de" or " und " in (article.text or "")
        if article.text and len(article.text) >= LEAST_CHARS // 2 and is_right:
            found.append(Text(article.title or "", article.text))
    return found


def collection(path: Path, column: str) -> list[Text]:
    """Return the longer texts of a collection."""
    rows = pd.read_parquet(path)
    titles = rows["title"] if "title" in rows else rows[column].str.slice(0, 60)
    pairs = zip(titles.fillna(""), rows[column].fillna(""), strict=True)
    return [Text(title, body) for title, body in pairs if len(body) >= LEAST_CHARS]


def digests(path: Path) -> list[Text]:
    """Return texts of six summaries each: real Chinese sentences, of an article's length."""
    summaries = [one for one in pd.read_parquet(path)["summary"].unique() if len(one) >= 40]
    random.Random(1).shuffle(summaries)
    groups = [summaries[at : at + 6] for at in range(0, len(summaries) - 6, 6)]
    return [Text(group[0][:20], "\n".join(group)) for group in groups]


def edits(text: Text, others: Sequence[Text], rng: random.Random) -> Iterator[tuple[str, Text]]:
    """Yield what a newsroom makes of a wire."""
    own, other = text.paragraphs, rng.choice(others).paragraphs
    few = max(1, round(len(own) * 0.15))
    cut = own[: max(1, round(len(own) * 0.6))]
    yield "tail cut by 40 %", Text(text.title, "\n".join(cut))
    yield "another headline and lead", Text("Another headline", "\n".join(other[:1] + own[1:]))
    yield "boilerplate round it", Text(text.title, "\n".join(other[:few] + own + other[-few:]))
    yield "8 % of words replaced", Text(text.title, reworded(text.body, others, 0.08, rng))
    mixed = rng.sample(own, len(own))
    yield "another order", Text(text.title, "\n".join(mixed))
    most = own[1 : max(2, round(len(own) * 0.75))]
    all_of_it = reworded("\n".join(other[:1] + most), others, 0.04, rng)
    yield "headline, lead, tail and words", Text("Another headline", all_of_it)


def reworded(body: str, others: Sequence[Text], share: float, rng: random.Random) -> str:
    """Return a text with a share of its words taken from other articles."""
    if is_unspaced(body[:200]):
        marks, strange = list(body), rng.choice(others).body
        for at in range(0, len(marks) - 2, 2):
            if rng.random() < share:
                start = rng.randrange(max(1, len(strange) - 2))
                marks[at : at + 2] = strange[start : start + 2]
        return "".join(marks)
    words = [word for other in rng.sample(list(others), 3) for word in WORD.findall(other.body)]
    swap: Callable[[re.Match[str]], str] = lambda found: (  # noqa: E731
        rng.choice(words) if rng.random() < share else found.group()
    )
    return re.sub(r"\w+", swap, body)


class Ours:
    """What newsbeat does."""

    name = "newsbeat (rensa's MinHash, all compared)"

    def __init__(self) -> None:
        self.index, self.n = Likenesses(timedelta(days=2)), 0

    def sign(self, text: Text) -> object:
        """Return the signature of a text."""
        return sign_text(text.title, text.body)

    def add(self, key: int, signature: object) -> None:
        """Keep a signature."""
        self.index.add(str(key), "a", "", signature, NOW)  # type: ignore[arg-type]

    def find(self, signature: object, but: int) -> int | None:
        """Return the likest of those kept, but for one; None where none is alike."""
        place, _ = self.index._find(str(but), "", signature, NOW.timestamp())  # type: ignore[arg-type]
        return None if place is None else int(self.index._ids[place])


class Sketch:
    """The smallest 96 hashes of runs of three words, candidates by the first 16."""

    name = "sketch of the smallest hashes (before)"
    size, head, least = 96, 16, 0.35

    def __init__(self) -> None:
        self.known: dict[int, tuple[int, ...]] = {}
        self.finder: dict[int, list[int]] = defaultdict(list)

    def sign(self, text: Text) -> object:
        """Return the signature of a text."""
        folded = folded_text(f"{text.title} {text.body}")
        words = WORD.findall(folded)
        if is_unspaced(folded):
            bare = "".join(words)
            runs = {bare[at : at + 5] for at in range(len(bare) - 4)}
        else:
            runs = {" ".join(words[at : at + 3]) for at in range(len(words) - 2)}
        return tuple(sorted({crc32(run.encode()) for run in runs})[: self.size])

    def add(self, key: int, signature: object) -> None:
        """Keep a signature."""
        assert isinstance(signature, tuple)
        self.known[key] = signature
        for mark in signature[: self.head]:
            self.finder[mark].append(key)

    def find(self, signature: object, but: int) -> int | None:
        """Return the likest of those kept, but for one; None where none is alike."""
        assert isinstance(signature, tuple)
        near = {key for mark in signature[: self.head] for key in self.finder.get(mark, ())}
        best, best_share = None, self.least
        for key in near - {but}:
            smallest = sorted({*signature, *self.known[key]})[: self.size]
            both = set(signature) & set(self.known[key])
            share = sum(mark in both for mark in smallest) / max(len(smallest), 1)
            if share >= best_share:
                best, best_share = key, share
        return best


class Datasketch:
    """datasketch's MinHash and its LSH, over the same runs as ours."""

    name = "datasketch's MinHash and LSH"

    def __init__(self) -> None:
        from datasketch import MinHash, MinHashLSH

        self.make = MinHash
        self.lsh = MinHashLSH(threshold=ALIKE, num_perm=128)
        self.known: dict[int, object] = {}

    def sign(self, text: Text) -> object:
        """Return the signature of a text."""
        made = self.make(num_perm=128)
        made.update_batch([run.encode() for run in _runs_of(f"{text.title} {text.body}")])
        return made

    def add(self, key: int, signature: object) -> None:
        """Keep a signature."""
        self.known[key] = signature
        self.lsh.insert(key, signature, check_duplication=False)

    def find(self, signature: object, but: int) -> int | None:
        """Return the likest of those kept, but for one; None where none is alike."""
        near = [key for key in self.lsh.query(signature) if key != but]
        shares = [(signature.jaccard(self.known[key]), key) for key in near]  # type: ignore[attr-defined]
        best = max(shares, default=(0.0, -1))
        return best[1] if best[0] >= ALIKE else None


class Simhash:
    """simhash of 64 bits over the same runs, alike where at most eight differ."""

    name = "simhash, 8 of 64 bits"

    def __init__(self) -> None:
        from simhash import Simhash as Made

        self.make = Made
        self.known: dict[int, int] = {}

    def sign(self, text: Text) -> object:
        """Return the signature of a text."""
        return self.make(list(_runs_of(f"{text.title} {text.body}"))).value

    def add(self, key: int, signature: object) -> None:
        """Keep a signature."""
        assert isinstance(signature, int)
        self.known[key] = signature

    def find(self, signature: object, but: int) -> int | None:
        """Return the likest of those kept, but for one; None where none is alike."""
        assert isinstance(signature, int)
        apart = {
            key: (signature ^ other).bit_count() for key, other in self.known.items() if key != but
        }
        best = min(apart, key=apart.__getitem__, default=None)
        return best if best is not None and apart[best] <= 8 else None


METHODS = (Ours, Sketch, Datasketch, Simhash)


def truly_alike(one: Text, other: Text) -> bool:
    """Tell whether two articles are doubles, by the passages they have word for word.

    Passages are four times as long as the runs that methods compare: a template filled in
    anew has many runs in common, and hardly a passage.
    """
    first, second = passages(one), passages(other)
    # A short text wholly inside a long one is a double too.
    return len(first & second) >= TRULY_ALIKE * max(min(len(first), len(second)), 1)


def passages(text: Text) -> set[str]:
    """Return the runs of eight words of a text, or of sixteen characters."""
    words = WORD.findall(folded_text(f"{text.title} {text.body}"))
    if is_unspaced(text.body[:200]):
        bare = "".join(words)
        return {bare[at : at + 16] for at in range(len(bare) - 15)}
    return {" ".join(words[at : at + 8]) for at in range(len(words) - 7)}


def nearest_by_words(texts: Sequence[Text], chosen: Sequence[int]) -> dict[int, int]:
    """Return the article each has most rare words in common with."""
    words = [set(_runs_of(text.title + " " + text.body[:1500])) if is_unspaced(text.body[:99])
             else set(WORD.findall(folded_text(text.body[:3000]))) for text in texts]  # fmt: skip
    counts = Counter(word for some in words for word in some)
    holders: dict[str, list[int]] = defaultdict(list)
    for place, some in enumerate(words):
        for word in some:
            if 1 < counts[word] <= max(20, len(texts) // 50):
                holders[word].append(place)
    nearest = {}
    for place in chosen:
        votes: Counter[int] = Counter()
        for word in words[place]:
            for other in holders.get(word, ()):
                votes[other] += 1
        votes.pop(place, None)
        if votes:
            nearest[place] = votes.most_common(1)[0][0]
    return nearest


def measure(method: type, texts: Sequence[Text], n: int, seed: int) -> dict[str, float]:
    """Return the shares for one method and language."""
    rng = random.Random(seed)
    made = method()
    began = time.perf_counter()
    signatures = [made.sign(text) for text in texts]
    sign_ms = (time.perf_counter() - began) / len(texts) * 1e3
    for key, signature in enumerate(signatures):
        if signature is not None:
            made.add(key, signature)
    chosen = rng.sample(range(len(texts)), min(n, len(texts)))
    shares: dict[str, float] = {}
    n_wrong = n_edits = 0
    hits: dict[str, list[bool]] = defaultdict(list)
    for key in chosen:
        for edit, copy in edits(texts[key], texts, rng):
            found = made.find(made.sign(copy), -1)
            is_right = found is not None and (found == key or truly_alike(texts[found], texts[key]))
            hits[edit].append(is_right)
            n_edits += 1
            n_wrong += found is not None and not is_right and not truly_alike(texts[found], copy)
    shares |= {edit: float(np.mean(some)) for edit, some in hits.items()}
    shares["found"] = float(np.mean([one for some in hits.values() for one in some]))
    shares["wrong"] = n_wrong / n_edits
    shares["false"] = false_share(made, signatures, texts, chosen)
    near = nearest_by_words(texts, chosen)
    pairs = [(one, other) for one, other in near.items()
             if not truly_alike(texts[one], texts[other])]  # fmt: skip
    shares["one subject"] = float(
        np.mean([is_pair_found(method, signatures[a], signatures[b]) for a, b in pairs])
    )
    shares["of so many pairs"] = len(pairs)
    shares["ms to sign"] = sign_ms
    return shares


def false_share(
    made: object, signatures: Sequence[object], texts: Sequence[Text], chosen: Sequence[int]
) -> float:
    """Return the share of articles that were found to be like one that is no double."""
    n_false = 0
    for key in chosen:
        found = made.find(signatures[key], key)  # type: ignore[attr-defined]
        n_false += found is not None and not truly_alike(texts[found], texts[key])
    return n_false / len(chosen)


def is_pair_found(method: type, one: object, other: object) -> bool:
    """Tell whether two articles, all there is, are found to be alike."""
    if one is None or other is None:
        return False
    alone = method()
    alone.add(0, one)
    return alone.find(other, -1) == 0


def measure_cost(n: int = 100_000) -> None:
    """Print what 100,000 signatures hold and what a look among them takes."""
    rng = np.random.default_rng(1)
    blocks = [rng.bytes(128) for _ in range(n)]
    tracemalloc.start()
    index = Likenesses(timedelta(days=2))
    for number, block in enumerate(blocks):
        index._keep(_signed(f"{number:032x}", block))
    held, _ = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    began = time.perf_counter()
    for number in range(100):
        index._find("", "", blocks[number], NOW.timestamp())
    took_ms = (time.perf_counter() - began) * 10
    print(f"\n{n:,} signatures: {index.n_bytes / 1e6:.0f} MB of them, {held / 1e6:.0f} MB in all")
    print(f"a look among {n:,}: {took_ms:.1f} ms (target: under 5)")


def _signed(name: str, block: bytes) -> Signed:
    return Signed(name, "a", NOW, name, None, None, block)


def main() -> None:
    """Measure and print."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("folder", type=Path, help="folder that holds B_html and D_texts")
    parser.add_argument("--texts", type=int, default=250, help="articles edited per language")
    parser.add_argument("--seed", type=int, default=5)
    wanted = parser.parse_args()
    texts = read_texts(wanted.folder, wanted.texts)
    for language, some in sorted(texts.items()):
        chars = int(np.median([len(text.body) for text in some]))
        print(f"\n{language}: {len(some)} articles of {chars} characters")
        for method in METHODS:
            try:
                shares = measure(method, some, wanted.texts, wanted.seed)
            except ImportError as error:
                print(f"  {method.__name__}: not installed ({error.name})")
                continue
            print(f"  {method.name}")
            figures = []
            for name, share in shares.items():
                target = f" (target {TARGETS[name]:.2f})" if name in TARGETS else ""
                figures.append(f"{name} {share:.3g}{target}")
            print("    " + "; ".join(figures))
    measure_cost()


if __name__ == "__main__":
    main()
