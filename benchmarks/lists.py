"""Measure which links of a list page are taken for articles, by what changes and what stays.

``python benchmarks/lists.py [--every 2]``

Section pages of eleven German sites, captured monthly for four years and every half hour
on two days, nobody having said which of their links are articles. Time says it: what is
there in one month and never again was news, what is there in a third of all months is
furniture. Per site and together:

- *fleeting*: of the links found on monthly captures, those in two captures at most;
- *fixed*: those in a third of all captures, which are certainly wrong;
- *found*: of the links with a headline (30 characters) that are in one capture only, those
  found;
- *arrivals*: of the links with a headline that were not on the first half-hourly capture
  and came later, those found the first time they were there;
- *late*: of the links first found on a later half-hourly capture, those that had been on
  an earlier one, unfound: a poll would have called them new.

The other way in the table takes every link of the site with a headline. Addresses are
compared as the collector does. Needs the shared collection.
"""

from __future__ import annotations

import sys
from collections import Counter, defaultdict
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path

import click

sys.path.insert(0, str(Path(__file__).parent))

from pageclasses import NO_PAGES, WALLS
from rig import markdown_table

from models.identity import url_key
from models.records import ListRules
from tasks.corpus import StoredPage, list_pages, read_pages
from tasks.lists import parse_list

FOLDER = Path(__file__).parents[2] / "shared" / "data" / "B_html"
HALF_HOURLY = ("2022-01-28", "2022-02-01")
HEADLINE_CHARS = 30
NOW = datetime(2026, 6, 1, tzinfo=UTC)
OURS, ALL = "ours", "every headline"
MEASURES = ("fleeting", "fixed", "found", "arrivals", "late")


@dataclass(frozen=True, slots=True)
class Capture:
    """The links of one capture: all of the site's own with their words, and those found."""

    date: str
    links: dict[str, str]
    found: dict[str, frozenset[str]]


def read_captures(every: int) -> dict[str, list[Capture]]:
    """Return the captures of each site, oldest first; of the monthly ones every so many."""
    pages = [page for page in list_pages(FOLDER) if page.dataset == "de-frontpages"]
    pages = [page for page in pages if page.member not in {*NO_PAGES, *WALLS}]
    by_site = defaultdict(list)
    for page in sorted(pages, key=lambda page: (page.site, page.date, page.member)):
        by_site[page.site].append(page)
    wanted = []
    for found in by_site.values():
        monthly = [page for page in found if not is_half_hourly(page.date)]
        wanted += monthly[::every] + [page for page in found if is_half_hourly(page.date)]
    captures = defaultdict(list)
    for page, body in read_pages(FOLDER, wanted):
        captures[page.site].append((page.date, page.member, read_capture(page, body)))
    return {
        site: [capture for *_, capture in sorted(found, key=lambda each: each[:2])]
        for site, found in sorted(captures.items())
    }


def is_half_hourly(date: str) -> bool:
    """Say whether a capture is one of the two days of half-hourly ones."""
    return HALF_HOURLY[0] <= date < HALF_HOURLY[1]


def read_capture(page: StoredPage, body: bytes) -> Capture:
    """Return the links of a page, and what each way takes for articles."""
    site, date = page.site, page.date
    url = f"https://www.{site}/"
    every = parse_list(body, url=url, rules=ListRules(links="a[href]"), now=NOW)
    links = {url_key(entry.url): entry.title or "" for entry in every.entries}
    ours = frozenset(url_key(entry.url) for entry in parse_list(body, url=url, now=NOW).entries)
    headlines = frozenset(key for key, title in links.items() if has_headline(title))
    return Capture(date, links, {OURS: ours, ALL: headlines})


def has_headline(words: str) -> bool:
    """Say whether a link has as many words as a headline."""
    return len(words) >= HEADLINE_CHARS


def count(captures: list[Capture], way: str) -> Counter[str]:
    """Return, for each measure, how many of how many: ``fleeting`` and ``of fleeting``."""
    counts: Counter[str] = Counter()
    monthly = [each for each in captures if not is_half_hourly(each.date)]
    seen = Counter(key for capture in monthly for key in capture.links)
    for capture in monthly:
        for key in capture.found[way]:
            counts["of fleeting"] += 1
            counts["of fixed"] += 1
            counts["fleeting"] += seen[key] <= 2
            counts["fixed"] += seen[key] >= len(monthly) / 3
        for key, words in capture.links.items():
            if seen[key] == 1 and has_headline(words):
                counts["of found"] += 1
                counts["found"] += key in capture.found[way]
    return counts + count_arrivals([each for each in captures if is_half_hourly(each.date)], way)


def count_arrivals(captures: list[Capture], way: str) -> Counter[str]:
    """Return the counts of the half-hourly captures."""
    counts: Counter[str] = Counter()
    known: set[str] = set()
    taken: set[str] = set()
    for at, capture in enumerate(captures):
        found = capture.found[way]
        if at:
            for key in capture.links.keys() - known:
                if has_headline(capture.links[key]):
                    counts["of arrivals"] += 1
                    counts["arrivals"] += key in found
            counts["of late"] += len(found - taken)
            counts["late"] += len((found - taken) & known)
        known |= capture.links.keys()
        taken |= found
    return counts


@click.command()
@click.option("--every", default=1, help="Of the monthly captures take each so-many-th only.")
def main(every: int) -> None:
    """Print the five measures per site, and of all links together, for both ways."""
    if not FOLDER.exists():
        raise SystemExit(f"needs the shared collection at {FOLDER}")
    rows, wholes = [], {OURS: Counter[str](), ALL: Counter[str]()}
    for site, captures in read_captures(every).items():
        for way, whole in wholes.items():
            counts = count(captures, way)
            whole.update(counts)
            if way == OURS:
                rows.append([site, way, str(len(captures)), *_shares(counts)])
    rows += [["all", way, "", *_shares(whole)] for way, whole in wholes.items()]
    click.echo(markdown_table(["site", "way", "captures", *MEASURES], rows))


def _shares(counts: Counter[str]) -> list[str]:
    return [
        f"{100 * counts[name] / counts[f'of {name}']:.1f} %" if counts[f"of {name}"] else ""
        for name in MEASURES
    ]


if __name__ == "__main__":
    main()
