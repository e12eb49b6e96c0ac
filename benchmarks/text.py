"""Measure article text beside plain trafilatura, per collection with truth.

``python benchmarks/text.py [--sample 100] [--set readability] [--show-worse 5]``

Three read the same bytes in one run: ours, as the collector extracts; trafilatura with
its own defaults; and trafilatura without comments, as its authors measure it. Each
collection is scored by its own measure:

- ``article-extraction-benchmark``: its authors' F1 over shingles of four words, the mean
  precision and the mean recall of all pages taken together;
- ``trafilatura-eval``: its authors' F1 over sentences that must and must not be there;
- ``readability``, ``fundus``: the same shingles, against the text of the expected page,
  or against title, summary and paragraphs that a site's own parser must find.

A `fundus` truth file is keyed by layout version, and holds what is expected of one page
of each. A page is compared with the version whose paragraphs it holds; one that holds
none of them (another page of the publisher is the truth's) is left out and counted.
A page that we take for a wall or a list has no text here, as it has none in the warehouse.
Needs the shared collection. How the classes of pages are told: ``benchmarks/pageclasses.py``.
"""

from __future__ import annotations

import json
import re
import statistics
import sys
import tarfile
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import click
import duckdb
import trafilatura
from lxml import html

sys.path.insert(0, str(Path(__file__).parent))

from pageclasses import own_url
from rig import markdown_table

from models.decoding import decode_bytes
from models.errors import ParseError
from tasks.articles import extract_article

FOLDER = Path(__file__).parents[2] / "shared" / "data" / "B_html"
SETS = ("article-extraction-benchmark", "trafilatura-eval", "readability", "fundus")
NOW = datetime(2026, 11, 1, tzinfo=UTC)
OURS, PLAIN, BARE = "ours", "trafilatura", "trafilatura, no comments"
SHINGLE_WORDS = 4
HELD_SHARE = 0.5
"""A truth is a page's where the page holds that share of its paragraphs."""

Shares = tuple[float, float, float]


@dataclass(frozen=True, slots=True)
class Truth:
    """What must be found on a page; None where the truth does not say."""

    text: str | None = None
    wanted: tuple[str, ...] = ()
    unwanted: tuple[str, ...] = ()
    title: str | None = None
    published_at: datetime | None = None
    authors: tuple[str, ...] | None = None


@dataclass(frozen=True, slots=True)
class Found:
    """What one extractor made of a page."""

    text: str = ""
    title: str | None = None
    published_at: datetime | None = None
    authors: tuple[str, ...] = ()


@dataclass
class Tally:
    """How one extractor did on a collection."""

    shares: list[Shares] = field(default_factory=list)
    right: Counter[str] = field(default_factory=Counter)


# --- extracting ----------------------------------------------------------------------


def read_with_ours(body: bytes, url: str) -> Found:
    """Return what the collector would store."""
    try:
        article = extract_article(body, url=url, now=NOW)
    except ParseError:
        return Found()
    return Found(article.text or "", article.title, article.published_at, article.authors)


def read_with_trafilatura(body: bytes) -> Found:
    """Return what trafilatura's defaults find."""
    text = trafilatura.extract(body) or ""
    found = trafilatura.extract_metadata(trafilatura.load_html(body))
    names = (found.author or "").split(";")
    authors = tuple(name.strip() for name in names if name.strip())
    return Found(text, found.title, _moment(found.date), authors)


def read_without_comments(body: bytes) -> Found:
    """Return what trafilatura finds by the settings its authors measure it with."""
    return Found(trafilatura.extract(body, include_comments=False) or "")


def _moment(text: Any) -> datetime | None:
    try:
        at = datetime.fromisoformat(str(text))
    except ValueError:
        return None
    return at if at.tzinfo else at.replace(tzinfo=UTC)


# --- truth ---------------------------------------------------------------------------


def read_truth(name: str, stated: str, page: bytes) -> Truth | None:
    """Return what a truth file says of a page; None where it speaks of another page."""
    if name == "trafilatura-eval":
        told = json.loads(stated)
        return Truth(wanted=tuple(told["with"]), unwanted=tuple(told["without"]))
    if name == "readability":
        return Truth(text=_text_of(stated))
    if name == "fundus":
        return _fundus_truth(json.loads(stated), page)
    return Truth(text=stated)


def _text_of(markup: str) -> str:
    return "\n".join(html.fromstring(markup).itertext()) if "<" in markup else markup


def _fundus_truth(versions: dict[str, Any], page: bytes) -> Truth | None:
    """Return what is expected of the version whose paragraphs the page holds."""
    letters = _letters(_text_of(decode_bytes(page).text))
    best, best_share = None, HELD_SHARE
    for expected in versions.values():
        paragraphs = _paragraphs(expected.get("body")) if isinstance(expected, dict) else []
        keys = [key for text in paragraphs if len(key := _letters(text)) >= 20]
        share = sum(key in letters for key in keys) / len(keys) if keys else 0.0
        if share >= best_share:
            best, best_share = expected, share
    if best is None:
        return None
    authors = best.get("authors")
    return Truth(
        text="\n".join(_paragraphs(best["body"])),
        title=best.get("title"),
        published_at=_moment(best.get("publishing_date")),
        authors=tuple(authors) if authors else None,
    )


def _paragraphs(body: dict[str, Any] | None) -> list[str]:
    if not body:
        return []
    found = list(body.get("summary") or [])
    for section in body.get("sections") or []:
        found += [*(section.get("headline") or []), *(section.get("paragraphs") or [])]
    return [text for text in found if isinstance(text, str)]


def _letters(text: str) -> str:
    return re.sub(r"[\W_]+", "", text).casefold()


# --- measures ------------------------------------------------------------------------


def shingles(text: str) -> Counter[tuple[str, ...]]:
    """Return the runs of four words of a text; one shorter run where there are fewer."""
    words = re.findall(r"\w+", text)
    runs = (tuple(words[at : at + SHINGLE_WORDS]) for at in range(_n_runs(words)))
    return Counter(run for run in runs if run)


def _n_runs(words: Sequence[str]) -> int:
    return max(1, len(words) - SHINGLE_WORDS + 1)


def compare_texts(wanted: str, found: str) -> Shares:
    """Return the shares of shingles found rightly, found wrongly, and missed; sum 1 or 0."""
    told, got = shingles(wanted), shingles(found)
    right = (told & got).total()
    wrong, missed = got.total() - right, told.total() - right
    whole = right + wrong + missed or 1
    return right / whole, wrong / whole, missed / whole


def compare_sentences(truth: Truth, found: str) -> Shares:
    """Return how many wanted sentences are there, unwanted ones are, and wanted ones are not."""
    text = " ".join(found.split())
    right = sum(" ".join(said.split()) in text for said in truth.wanted)
    wrong = sum(" ".join(said.split()) in text for said in truth.unwanted)
    return right, wrong, len(truth.wanted) - right


def f1(shares: Sequence[Shares], *, by_page: bool) -> tuple[float, float, float]:
    """Return F1, precision and recall; the means of the pages', or of all counts together."""
    if by_page:
        precision = statistics.mean(r / (r + w) for r, w, _ in shares if r + w)
        recall = statistics.mean(r / (r + m) for r, _, m in shares if r + m)
    else:
        right, wrong, missed = (sum(share[at] for share in shares) for at in range(3))
        precision, recall = right / (right + wrong), right / (right + missed)
    return 2 * precision * recall / (precision + recall), precision, recall


def is_right(name: str, truth: Truth, found: Found) -> bool | None:
    """Return whether a field is as expected; None where the truth does not say."""
    if name == "title":
        return None if truth.title is None else _letters(truth.title) == _letters(found.title or "")
    if name == "authors":
        if truth.authors is None:
            return None
        return {_letters(each) for each in truth.authors} == {_letters(e) for e in found.authors}
    if truth.published_at is None:
        return None
    if found.published_at is None:
        return False
    if name == "day":
        return bool(found.published_at.date() == truth.published_at.date())
    return abs((found.published_at - truth.published_at).total_seconds()) < 60


FIELDS = ("title", "day", "minute", "authors")


# --- running -------------------------------------------------------------------------


def pages_of(name: str, sample: int | None) -> Iterator[tuple[str, str, bytes, str]]:
    """Yield member, address, page and truth of a collection, always the same sample."""
    chosen = f"LIMIT {sample}" if sample else ""
    rows = duckdb.sql(
        f"SELECT archive, member, truth_member, url FROM read_csv('{FOLDER / 'index.csv'}', "
        f"all_varchar = true) WHERE dataset = '{name}' AND truth_member <> '' "
        f"ORDER BY md5(member) {chosen}"
    ).fetchall()
    for archive in sorted({row[0] for row in rows}):
        wanted = [row[1:] for row in rows if row[0] == archive]
        names = {each for member, truth, _ in wanted for each in (member, truth)}
        with tarfile.open(FOLDER / archive, "r:xz") as files:
            held = {
                m.name: f.read() for m in files if m.name in names and (f := files.extractfile(m))
            }
        for member, truth, url in wanted:
            address = url if (url or "").startswith("http") else own_url(held[member])
            yield member, address, held[member], held[truth].decode("utf-8", "replace")


def measure(name: str, sample: int | None, show_worse: int) -> tuple[dict[str, Tally], int, int]:
    """Return each extractor's tally, the pages counted, and those left out."""
    tallies = {OURS: Tally(), PLAIN: Tally(), BARE: Tally()}
    n_pages = n_left_out = 0
    worse: list[tuple[float, str]] = []
    for member, url, body, stated in pages_of(name, sample):
        truth = read_truth(name, stated, body)
        if truth is None:
            n_left_out += 1
            continue
        n_pages += 1
        found = {
            OURS: read_with_ours(body, url),
            PLAIN: read_with_trafilatura(body),
            BARE: read_without_comments(body),
        }
        for extractor, tally in tallies.items():
            _count(tally, truth, found[extractor])
        lead = _score(tallies[OURS]) - max(_score(tallies[PLAIN]), _score(tallies[BARE]))
        worse.append((lead, member))
    for lead, member in sorted(worse)[:show_worse]:
        click.echo(f"{name}: {lead:+.3f} {member}", err=True)
    return tallies, n_pages, n_left_out


def _count(tally: Tally, truth: Truth, found: Found) -> None:
    if truth.text is None:
        tally.shares.append(compare_sentences(truth, found.text))
    else:
        tally.shares.append(compare_texts(truth.text, found.text))
    for name in FIELDS:
        answer = is_right(name, truth, found)
        if answer is not None:
            tally.right[f"asked {name}"] += 1
            tally.right[name] += answer


def _score(tally: Tally) -> float:
    right, wrong, missed = tally.shares[-1]
    return 2 * right / (2 * right + wrong + missed) if right else 0.0


@click.command()
@click.option("--sample", type=int, help="So many pages per collection only.")
@click.option("--set", "only", type=click.Choice(SETS), multiple=True, help="This one only.")
@click.option("--show-worse", default=0, help="Name so many pages where ours did worse.")
def main(sample: int | None, only: tuple[str, ...], show_worse: int) -> None:
    """Print F1 of the text, and the share of titles, dates and authors right, per collection."""
    if not FOLDER.exists():
        raise SystemExit(f"needs the shared collection at {FOLDER}")
    rows, fields = [], []
    for name in only or SETS:
        tallies, n_pages, n_left_out = measure(name, sample, show_worse)
        for extractor, tally in tallies.items():
            scores = f1(tally.shares, by_page=name != "trafilatura-eval")
            rows.append([name, extractor, f"{n_pages}", *(f"{score:.4f}" for score in scores)])
            if tally.right and extractor != BARE:
                shares = [tally.right[each] / tally.right[f"asked {each}"] for each in FIELDS]
                fields.append([name, extractor, *(f"{100 * share:.1f} %" for share in shares)])
        if n_left_out:
            click.echo(f"{name}: {n_left_out} pages are not the truth's, left out", err=True)
    click.echo(markdown_table(["set", "extractor", "pages", "F1", "precision", "recall"], rows))
    if fields:
        click.echo()
        click.echo(markdown_table(["set", "extractor", *FIELDS], fields))


if __name__ == "__main__":
    main()
