"""Measure the drift detectors on real pages: breakages put in, and real redesigns.

Three rounds, each spread over processes: read and extract stored pages; make sites of
them, break them and let every detector watch; let them watch sites that were really
redesigned.
"""

from __future__ import annotations

import multiprocessing
import time
from collections import defaultdict
from collections.abc import Callable, Iterable, Sequence
from concurrent.futures import ProcessPoolExecutor, as_completed
from dataclasses import dataclass, field
from datetime import UTC, datetime
from itertools import pairwise
from pathlib import Path
from typing import Any, TypeVar

import numpy as np

from models.decoding import decode_bytes
from models.drift.bench import Tally, count_false_alarms, run_kinds, run_redesign
from models.drift.contenders import set_to_work
from models.drift.faults import KINDS, Newsroom, make_page
from models.drift.features import PageFeatures, describe_page
from models.drift.newsrooms import (
    MAX_MARKUP,
    agreement,
    in_drawn_order,
    is_fit,
    open_newsroom,
    read_story,
    site_seed,
)
from models.drift.template import Story, Template, cut_template
from models.errors import ContaminatedReference, InsufficientDataError, NewsbeatError
from tasks.articles import extract_article
from tasks.calibration import read_calibration
from tasks.corpus import StoredPage, list_pages, read_pages

S = TypeVar("S")
T = TypeVar("T")

NOW = datetime(2026, 1, 1, tzinfo=UTC)
ADDRESS = "https://news.example/2024/05/06/story-of-the-day-118.html"
MAX_STORIES = 600
"""Pages read for their articles alone."""

TEMPLATES_PER_SITE = 4
"""Pages tried as a template for each site wanted: some have no one box of text."""

N_TRIED = 7
FEW_REFERENCE = 9
"""Pages a redesigned site is known by: what a new source has after a day or two."""

MIN_DATED = 10
N_DRAWS = 2
SLOW_KINDS = ("tail", "half", "related")
"""Breakages that take long to be found: more different pages of them are made."""


@dataclass(frozen=True, slots=True)
class BenchPlan:
    """What to measure.

    Attributes
    ----------
    folder
        Stored pages.
    n_sites
        Sites to make.
    n_reference, n_correct, n_broken
        Pages of each: to learn from, correct ones to watch, broken ones of each kind.
    share
        Share of the pages of a broken stream that are broken, 0 to 1.
    n_streams
        Broken streams a site and kind.
    kinds
        Which breakages.
    sites
        The only sites to lend a layout; any where empty.
    seed
        Of all chance.
    n_workers
        Processes.
    """

    folder: Path
    n_sites: int = 8
    n_reference: int = 200
    n_correct: int = 300
    n_broken: int = 40
    share: float = 1.0
    n_streams: int = 2
    kinds: tuple[str, ...] = KINDS
    sites: tuple[str, ...] = ()
    seed: int = 0
    n_workers: int = 2


@dataclass(slots=True)
class BenchReport:
    """What was measured.

    Attributes
    ----------
    plan
        What was asked for.
    tallies
        By name of the detector, ours first.
    sites
        Sites made.
    left_out
        Sites and redesigns that could not be used, and why.
    feature_ms
        Mean processor time for the features of one page.
    """

    plan: BenchPlan
    tallies: dict[str, Tally] = field(default_factory=dict)
    sites: list[str] = field(default_factory=list)
    left_out: list[str] = field(default_factory=list)
    feature_ms: float = 0.0

    def add(self, tallies: dict[str, Tally]) -> None:
        """Take in what the detectors did on one site."""
        for name, tally in tallies.items():
            self.tallies.setdefault(name, Tally()).add(tally)

    def as_json(self) -> dict[str, Any]:
        """Return it as JSON-ready values."""
        return {"detectors": [tally.as_json(name) for name, tally in self.tallies.items()]}


Show = Callable[[str, int, int], None]
"""Told what is being done, how much of it is done, and of how much."""


@dataclass(frozen=True, slots=True)
class _ReadPage:
    """A stored page, extracted."""

    page: StoredPage
    title: str
    text: str
    features: bytes
    markup: str


def run_drift_bench(plan: BenchPlan, show: Show = lambda *_: None) -> BenchReport:
    """Measure all detectors.

    Parameters
    ----------
    plan
        What to measure.
    show
        Told of the progress.

    Raises
    ------
    ConfigError
        If the folder holds no pages.
    NewsbeatError
        If no page of it can lend a layout, or too few have articles.

    Notes
    -----
    A made page costs about 20 ms, most of it extraction; the default plan takes some four
    minutes of two processors.
    """
    stored = list_pages(plan.folder)
    report = BenchReport(plan)
    dated = _dated_groups(stored)
    candidates = _candidates(stored, plan)
    wanted = _wanted(stored, candidates, dated, plan)
    context = multiprocessing.get_context("spawn")
    with ProcessPoolExecutor(plan.n_workers, mp_context=context) as pool:
        read = _read(plan.folder, wanted, candidates, pool, show)
        rooms = _newsrooms(read, candidates, plan, pool, show)
        for room, found in zip(
            rooms,
            _spread(pool, _run_site, [(room, plan) for room in rooms], "sites", show),
            strict=True,
        ):
            _take(report, room.template.site, found)
        features = {(page.page.archive, page.page.member): page.features for page in read}
        moves = list(_redesigns(dated, features))
        for (name, *_), found in zip(
            moves, _spread(pool, _run_redesign, moves, "redesigns", show), strict=True
        ):
            _take(report, name, found)
    return report


def open_sites(plan: BenchPlan, show: Show = lambda *_: None) -> list[Newsroom]:
    """Return the made sites of a plan alone, to be used elsewhere.

    Raises
    ------
    NewsbeatError
        As :func:`run_drift_bench`.
    """
    stored = list_pages(plan.folder)
    candidates = _candidates(stored, plan)
    wanted = _wanted(stored, candidates, {}, plan)
    context = multiprocessing.get_context("spawn")
    with ProcessPoolExecutor(plan.n_workers, mp_context=context) as pool:
        read = _read(plan.folder, wanted, candidates, pool, show)
        return _newsrooms(read, candidates, plan, pool, show)


def _take(report: BenchReport, name: str, found: tuple[dict[str, Tally], float] | str) -> None:
    if isinstance(found, str):
        report.left_out.append(f"{name}: {found}")
        return
    tallies, feature_ms = found
    report.add(tallies)
    if feature_ms:
        n_sites = len(report.sites)
        report.feature_ms = (report.feature_ms * n_sites + feature_ms) / (n_sites + 1)
        report.sites.append(name)


def _spread(
    pool: ProcessPoolExecutor, call: Callable[[S], T], jobs: Sequence[S], what: str, show: Show
) -> list[T]:
    """Return what `call` makes of every job, in their order."""
    places = {pool.submit(call, job): at for at, job in enumerate(jobs)}
    found: dict[int, T] = {}
    show(what, 0, len(jobs))
    for future in as_completed(places):
        found[places[future]] = future.result()
        show(what, len(found), len(jobs))
    return [found[at] for at in range(len(jobs))]


# --- which pages ---------------------------------------------------------------------


def _candidates(stored: Sequence[StoredPage], plan: BenchPlan) -> list[StoredPage]:
    """Return pages that may lend a layout, one a site, in an order that chance gave."""
    first: dict[str, StoredPage] = {}
    for page in stored:
        if page.kind == "article" and (not plan.sites or page.site in plan.sites):
            first.setdefault(page.site, page)
    order = in_drawn_order(first, plan.seed)
    return [first[site] for site in order[: TEMPLATES_PER_SITE * plan.n_sites]]


Groups = dict[tuple[str, str], dict[str, list[StoredPage]]]


def _dated_groups(stored: Iterable[StoredPage]) -> Groups:
    """Return sites with articles of several years: by data set and site, then year."""
    groups: Groups = defaultdict(lambda: defaultdict(list))
    for page in stored:
        if page.kind == "article" and page.date[:4].isdigit():
            groups[page.dataset, page.site][page.date[:4]].append(page)
    enough = {
        name: {year: pages for year, pages in years.items() if len(pages) >= MIN_DATED}
        for name, years in groups.items()
    }
    return {name: years for name, years in enough.items() if len(years) > 1}


def _wanted(
    stored: Sequence[StoredPage],
    candidates: Sequence[StoredPage],
    dated: Groups,
    plan: BenchPlan,
) -> list[StoredPage]:
    articles = [page for page in stored if page.kind == "article"]
    drawn = np.random.default_rng(plan.seed).permutation(len(articles))[:MAX_STORIES]
    in_years = [page for years in dated.values() for pages in years.values() for page in pages]
    return list(dict.fromkeys([*candidates, *in_years, *(articles[at] for at in drawn)]))


def _read(
    folder: Path,
    wanted: Sequence[StoredPage],
    candidates: Sequence[StoredPage],
    pool: ProcessPoolExecutor,
    show: Show,
) -> list[_ReadPage]:
    jobs = [(folder, part, frozenset(candidates)) for part in _by_archive(wanted)]
    return [page for part in _spread(pool, _read_part, jobs, "reading", show) for page in part]


def _by_archive(pages: Sequence[StoredPage]) -> list[list[StoredPage]]:
    parts: dict[str, list[StoredPage]] = defaultdict(list)
    for page in pages:
        parts[page.archive].append(page)
    return sorted(parts.values(), key=len, reverse=True)


# --- in the processes ----------------------------------------------------------------


def _read_part(job: tuple[Path, list[StoredPage], frozenset[StoredPage]]) -> list[_ReadPage]:
    folder, pages, candidates = job
    found = []
    for page, body in read_pages(folder, pages):
        title, text = _extract(body)
        if text:
            markup = decode_bytes(body, None).text
            packed = describe_page(body, text, title=title).to_bytes()
            found.append(_ReadPage(page, title, text, packed, markup if page in candidates else ""))
    return found


def _extract(body: bytes) -> tuple[str, str]:
    try:
        article = extract_article(body, url=ADDRESS, now=NOW)
    except NewsbeatError:
        return "", ""
    return article.title or "", article.text or ""


def _newsrooms(
    read: Sequence[_ReadPage],
    candidates: Sequence[StoredPage],
    plan: BenchPlan,
    pool: ProcessPoolExecutor,
    show: Show,
) -> list[Newsroom]:
    """Return the sites to watch: those whose pages the extractor reads rightly."""
    stories: dict[str, list[Story]] = defaultdict(list)
    for item in read:
        story = read_story(item.title, item.text) if item.page.kind == "article" else None
        if story is not None:
            stories[item.page.language].append(story)
    if sum(map(len, stories.values())) < N_TRIED:
        raise NewsbeatError(f"{plan.folder}: too few pages with articles to make sites of")
    place = {page: at for at, page in enumerate(candidates)}
    offered = sorted((item for item in read if item.markup), key=lambda item: place[item.page])
    found = _spread(pool, _cut, [(item, plan.seed) for item in offered], "templates", show)
    templates = [template for template in found if template is not None]
    tried = [
        open_newsroom(template, templates[at - 1], stories, plan.seed)
        for at, template in enumerate(templates)
    ]
    fit = _spread(pool, _is_read_rightly, tried, "trying", show)
    good = [room.template for room, is_good in zip(tried, fit, strict=True) if is_good]
    if len(good) < 2:
        raise NewsbeatError(f"{plan.folder}: fewer than two pages can lend a layout")
    return [
        open_newsroom(template, good[at - 1], stories, plan.seed)
        for at, template in enumerate(good[: plan.n_sites])
    ]


def _cut(job: tuple[_ReadPage, int]) -> Template | None:
    item, seed = job
    page = item.page
    rng = np.random.default_rng(site_seed(page.site, seed))
    template = cut_template(
        item.markup, item.text, item.title, site=page.site, language=page.language, rng=rng
    )
    if template is None or sum(map(len, template.pieces)) > MAX_MARKUP:
        return None
    return template


def _is_read_rightly(room: Newsroom) -> bool:
    rng = np.random.default_rng(N_TRIED)
    made = [make_page(room, number, "ok", rng) for number in range(N_TRIED)]
    return is_fit([agreement(_extract(page.markup.encode())[1], page.truth) for page in made])


def _run_site(job: tuple[Newsroom, BenchPlan]) -> tuple[dict[str, Tally], float] | str:
    room, plan = job
    pages, describing_s = make_site(room, plan)
    n_pages = sum(map(len, pages.values()))
    known, correct = pages["ok"][: plan.n_reference], pages["ok"][plan.n_reference :]
    try:
        contenders = set_to_work(known, read_calibration())
    except (ContaminatedReference, InsufficientDataError) as error:
        return str(error)
    tallies = {}
    for contender in contenders:
        tally = count_false_alarms(contender, correct)
        rng = np.random.default_rng(site_seed(room.template.site, plan.seed + 1))
        broken = {kind: pages[kind] for kind in plan.kinds}
        tally.add(
            run_kinds(
                contender, correct, broken, share=plan.share, n_streams=plan.n_streams, rng=rng
            )
        )
        tallies[contender.name] = tally
    return tallies, 1e3 * describing_s / n_pages


def make_site(room: Newsroom, plan: BenchPlan) -> tuple[dict[str, list[PageFeatures]], float]:
    """Return the features of a made site's pages by kind, and the seconds they took."""
    rng = np.random.default_rng(site_seed(room.template.site, plan.seed + 2))
    counts = {"ok": plan.n_reference + plan.n_correct}
    counts |= {kind: _n_broken(kind, plan) for kind in plan.kinds}
    pages: dict[str, list[PageFeatures]] = {}
    describing_s, number = 0.0, 0
    for kind, count in counts.items():
        pages[kind] = []
        for _ in range(count):
            body = make_page(room, number, kind, rng).markup.encode("utf-8", "replace")
            title, text = _extract(body)
            started = time.process_time()
            pages[kind].append(describe_page(body, text, title=title or None))
            describing_s += time.process_time() - started
            number += 1
    return pages, describing_s


def _n_broken(kind: str, plan: BenchPlan) -> int:
    return 2 * plan.n_broken if kind in SLOW_KINDS else plan.n_broken


Move = tuple[str, list[bytes], list[bytes], int]


def _redesigns(groups: Groups, features: dict[tuple[str, str], bytes]) -> Iterable[Move]:
    """Yield each change of a site from one year to the next, with the pages of both."""
    for (dataset, site), years in groups.items():
        known = {
            year: [
                features[page.archive, page.member]
                for page in pages
                if (page.archive, page.member) in features
            ]
            for year, pages in sorted(years.items())
        }
        order = [year for year, pages in known.items() if len(pages) >= MIN_DATED]
        for before, after in pairwise(order):
            for draw in range(N_DRAWS):
                name = f"{site} {before}-{after} ({dataset})"
                yield name, known[before], known[after], draw


def _run_redesign(job: Move) -> tuple[dict[str, Tally], float] | str:
    _, packed_before, packed_after, draw = job
    before = [PageFeatures.from_bytes(packed) for packed in packed_before]
    after = [PageFeatures.from_bytes(packed) for packed in packed_after]
    order = np.random.default_rng(draw).permutation(len(before))
    known = [before[at] for at in order[:FEW_REFERENCE]]
    own = [before[at] for at in order[FEW_REFERENCE:]]
    try:
        contenders = set_to_work(known, read_calibration())
    except ContaminatedReference as error:
        return str(error)
    return {contender.name: run_redesign(contender, own, after) for contender in contenders}, 0.0
