"""Measure how articles, lists of articles and walls are told apart.

``python benchmarks/pageclasses.py [--sample 100]``

Where the labels come from:

- *article*: every page of a collection with truth, as its authors call it one. A few are
  in fact front pages or privacy policies; they stay what their authors say.
- *list*: pages the index calls ``index``; pages of `autopager` to which its authors gave
  the links to further pages, without threads, reviews and articles in parts, which were
  told by their addresses (`NO_LISTS`). Shops and blogs that show whole posts are among them.
- *wall*: those in the collection, found by regular expressions over every page that says
  little and over what follows the text of every short one, then read (`WALLS`). There are
  nine, and the words walls are told by were written knowing them.
- *ours*: sixty walls, and as many pages with a story, in ten languages
  (``tests/samples/walls.toml``), counted apart: the same hands wrote both sides.

Nothing is held out: rules and thresholds were set by reading what was judged wrongly here.
"""

from __future__ import annotations

import csv
import html
import io
import re
import sys
import tarfile
import tomllib
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path

import click

sys.path.insert(0, str(Path(__file__).parent))

from rig import markdown_table

from models.errors import ParseError
from tasks.articles import extract_article
from tasks.corpus import StoredPage, list_pages, read_pages

DATA = Path(__file__).parents[2] / "shared" / "data"
PAGES, PAGERS = DATA / "B_html", DATA / "C_feeds" / "index-pages" / "autopager.tar.xz"
OURS = Path(__file__).parents[1] / "tests" / "samples" / "walls.toml"
CLASSES = ("article", "list", "wall", "empty")
NOW = datetime(2026, 11, 1, tzinfo=UTC)
NO_ADDRESS = "https://news.example/a-page-of-this-collection-1"
"""For pages whose address is known from nowhere: one that says nothing of a list."""

CANONICAL = re.compile(rb"""<link[^>]+rel=["']canonical["'][^>]*>""", re.IGNORECASE)
HREF = re.compile(rb"""href=["'](https?://[^"']+)["']""", re.IGNORECASE)

WITH_TRUTH = (
    "article-extraction-benchmark", "trafilatura-eval", "readability", "fundus", "big9-epochs",
    "crawl-to-the-future", "cleanportaleval",
)  # fmt: skip
EVERY_NTH = {"de-frontpages": 4}
"""Of sites captured dozens of times some captures are enough."""

WALLS = {
    "20251101T0103_leben.html": "challenge",
    "20251201T0113_leben.html": "challenge",
    "20260101T0113_leben.html": "challenge",
    "20260201T0129_leben.html": "challenge",
    "20260301T0128_leben.html": "challenge",
    "zeit.de/0a12df42d1764095989ab078ee0f940b.html": "paywall",
    "badische-zeitung.de/badische-zeitung.de-Wohnungssuche.html": "paywall",
    "rp-online.de/RheinischePost_2024_04_15.html": "paywall",
    "dietagespresse.com/dietagespresse.com-halloween.html": "registration",
}
NO_PAGES = ("20241001T0157_leben.html", "20251001T0104_leben.html")
"""A database error and an empty shell: none of the three."""

NO_LISTS = frozenset({1, 2, 3, 38, 42, 48, 49, 54, 55, 56, 57, 58, 62, 83, 84, 88, 135, 144})


@dataclass(frozen=True, slots=True)
class Labelled:
    """A page and what it is."""

    group: str
    label: str
    url: str
    body: bytes
    content_type: str | None = None


def stored_pages(sample: int | None) -> Iterator[Labelled]:
    """Yield the pages of the HTML collection that have a label."""
    addresses = {}
    with (PAGES / "index.csv").open(encoding="utf-8", newline="") as lines:
        for row in csv.DictReader(lines):
            addresses[row["archive"], row["member"]] = row["url"]
    by_group: dict[str, list[StoredPage]] = {}
    for page in list_pages(PAGES):
        if page.member in NO_PAGES or not (page.dataset in WITH_TRUTH or page.kind == "index"):
            continue
        by_group.setdefault(page.dataset, []).append(page)
    chosen = set()
    for name, pages in by_group.items():
        some = pages[:: EVERY_NTH.get(name, 1)]
        some = some[:: max(len(some) // sample, 1)] if sample else some
        chosen.update(some)
        chosen.update(page for page in pages if page.member in WALLS)
    for page, body in read_pages(PAGES, chosen):
        label = "wall" if page.member in WALLS else "list" if page.kind == "index" else "article"
        url = addresses[page.archive, page.member]
        yield Labelled(page.dataset, label, url if url.startswith("http") else own_url(body), body)


def own_url(body: bytes) -> str:
    """Return the address a page calls its own, for where the index does not know it."""
    link = CANONICAL.search(body)
    href = HREF.search(link[0]) if link else None
    return href[1].decode("utf-8", "replace") if href else NO_ADDRESS


def paged_pages() -> Iterator[Labelled]:
    """Yield the pages to which `autopager` names further ones."""
    with tarfile.open(PAGERS, "r:xz") as archive:
        files = {m.name: f.read() for m in archive if (f := archive.extractfile(m))}
    for row in csv.DictReader(io.StringIO(files["data.csv"].decode())):
        body = files.get(f"html/{row['File Name']}.html")
        has_pager = row["PREV"] or row["PAGE"] or row["NEXT"]
        if body and has_pager and int(row["File Name"]) not in NO_LISTS:
            kind = f"text/html; charset={row['Encoding']}"
            yield Labelled("autopager", "list", row["Page URL"], body, kind)


def our_pages() -> Iterator[Labelled]:
    """Yield pages of ours: walls, and stories with a banner, short, or before an offer."""
    for language, words in tomllib.loads(OURS.read_text(encoding="utf-8")).items():
        story = words["paragraphs"]
        for kind in ("consent", "captcha", "javascript", "login", "blocked"):
            yield _ours(language, "wall", words["title"], [words[kind]])
        yield _ours(language, "wall", words["title"], story[:2], words["paywall"])
        yield _ours(language, "article", words["title"], story, words["banner"])
        yield _ours(language, "article", words["title"], story[:2])
        yield _ours(language, "article", words["title"], story, words["paywall"])


def _ours(language: str, label: str, title: str, lines: list[str], after: str = "") -> Labelled:
    paragraphs = "".join(f"<p>{html.escape(line)}</p>" for line in lines)
    links = "".join(f'<li><a href="/section-{n}/">{n}</a></li>' for n in range(8))
    page = (
        f'<!doctype html><html lang="{language}"><head><meta charset="utf-8"><title>'
        f"{html.escape(title)}</title></head><body><nav><ul>{links}</ul></nav><main><article><h1>"
        f"{html.escape(title)}</h1>{paragraphs}</article><div class='box'><p>{html.escape(after)}"
        "</p></div></main><footer><p>© News Example</p></footer></body></html>"
    )
    return Labelled(f"ours, {label}", label, NO_ADDRESS, page.encode())


def classify(page: Labelled) -> str:
    """Return the class the collector gives a page."""
    try:
        return extract_article(
            page.body, url=page.url, content_type=page.content_type, now=NOW
        ).kind
    except ParseError:
        return "empty"


@click.command()
@click.option("--sample", type=int, help="So many pages per collection only.")
def main(sample: int | None) -> None:
    """Print what the pages of each group were taken for; precision and recall of each class."""
    if not PAGES.exists():
        raise SystemExit(f"needs the shared collection at {DATA}")
    seen: Counter[tuple[str, str, str]] = Counter()
    for pages in (stored_pages(sample), paged_pages(), our_pages()):
        for page in pages:
            found = classify(page)
            seen[page.group, page.label, found] += 1
    groups = sorted({key[:2] for key in seen}, key=lambda key: (key[1], key[0]))
    rows = [
        [label, group, *(str(seen[group, label, found] or "") for found in CLASSES)]
        for group, label in groups
    ]
    click.echo(markdown_table(["label", "pages", *CLASSES], rows))
    click.echo()
    rates = [
        [name, whose, *_rates(seen, name, is_ours=whose == "ours")]
        for whose in ("real", "ours")
        for name in ("article", "list", "wall")
        if whose == "real" or name != "list"
    ]
    click.echo(markdown_table(["class", "pages", "labelled", "precision", "recall"], rates))


def _rates(seen: Counter[tuple[str, str, str]], name: str, *, is_ours: bool) -> list[str]:
    kept = {key: n for key, n in seen.items() if key[0].startswith("ours") == is_ours}
    right = sum(n for (_, label, found), n in kept.items() if label == found == name)
    labelled = sum(n for (_, label, _), n in kept.items() if label == name)
    taken = sum(n for (_, _, found), n in kept.items() if found == name)
    share = f"{100 * right / taken:.1f} %" if taken else "none"
    return [str(labelled), share, f"{100 * right / labelled:.1f} %"]


if __name__ == "__main__":
    main()
