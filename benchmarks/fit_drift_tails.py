"""Print the figures that small drift references borrow, fitted on real correct pages.

``python benchmarks/fit_drift_tails.py ../shared/data/B_html > data/drift/calibration.json``

From each group of pages of one site and one time, references of 9 and of 16 pages are
drawn, and the scores of the other pages are standardised by them and pooled; every site
weighs the same. Only quantiles leave the pages. Two rounds: what groups of channels say
together is ranked with the tails of the first.
"""

from __future__ import annotations

import json
import sys
from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from concurrent.futures import ProcessPoolExecutor
from datetime import UTC, datetime
from pathlib import Path

import numpy as np

from models.drift.calibration import N_SCORES, SCORE_NAMES, Calibration, fit_calibration
from models.drift.channels import N_CHANNELS, PageModel, RecentParagraphs
from models.drift.evidence import MIN_KNOWN, join_groups, rank_page
from models.drift.features import FloatArray, PageFeatures, describe_page
from models.drift.reference import held_out_scores, rank_reference
from models.errors import NewsbeatError
from tasks.articles import extract_article
from tasks.corpus import StoredPage, list_pages, read_pages

DATED_SETS = ("big9-epochs", "crawl-to-the-future")
"""Sets whose articles are grouped by site and year."""

WHOLE_SITES = ("meduza.io", "tatar-inform.ru", "bbc.com", "msnbc.com", "washingtonpost.com")
"""Sites crawled in one go, mostly article pages."""

SIZES = (9, 16)
MIN_GROUP = 10
MIN_CHARS = 200
MAX_JUDGED = 60
N_WORKERS = 2
NOW = datetime(2026, 1, 1, tzinfo=UTC)

FLOORS = {
    "new_paths": 0.08, "layout_distance": 0.1, "lost_paths": 0.08, "facts": 2.0, "makeup": 0.5,
    "place": 0.6, "own_share": 0.08, "text_start": 0.04, "text_density": 0.1, "repeats": 0.3,
    "letters": 0.006, "title_overlap": 0.15, "description_overlap": 0.2, "text_size": 0.3,
    "paragraphs": 0.3, "paragraph_size": 0.25, "paragraph_spread": 0.3, "short_share": 0.1,
    "sentence_share": 0.1, "digit_share": 0.006, "punctuation_share": 0.005, "upper_share": 0.012,
    "odd_share": 0.004, "accent_share": 0.006, "other_script_share": 0.02, "word_length": 0.2,
    "unique_share": 0.03, "link_share": 0.04, "joint_structure": 2.0, "joint_place": 2.0,
    "joint_text": 2.0,
}  # fmt: skip
"""What is added to a site's own spread: about the spread of a usual site, so that one whose
nine pages happen to be all alike is not taken to be so for ever."""

Group = tuple[str, str, str]
Scores = dict[int, dict[str, FloatArray]]


def group_of(page: StoredPage) -> Group | None:
    """Return the data set, site and year of a page whose figures are used."""
    if page.kind != "article":
        return None
    if page.dataset in DATED_SETS:
        return page.dataset, page.site, page.date[:4]
    return (page.dataset, page.site, "") if page.site in WHOLE_SITES else None


def read_groups(folder: Path, datasets: Sequence[str] = ()) -> dict[Group, list[PageFeatures]]:
    """Return the features of the pages by group, each page once.

    Parameters
    ----------
    folder
        Stored pages.
    datasets
        The only sets to read; all where empty.
    """
    parts: dict[str, list[StoredPage]] = defaultdict(list)
    for page in list_pages(folder):
        if group_of(page) and (not datasets or page.dataset in datasets):
            parts[page.archive].append(page)
    groups: dict[Group, dict[bytes, PageFeatures]] = defaultdict(dict)
    with ProcessPoolExecutor(N_WORKERS) as pool:
        for found in pool.map(_read_part, [folder] * len(parts), parts.values()):
            for page, packed in found:
                group = group_of(page)
                features = PageFeatures.from_bytes(packed)
                if group and features.text_bytes >= MIN_CHARS:
                    groups[group].setdefault(features.paragraphs.tobytes(), features)
    return {group: list(pages.values()) for group, pages in groups.items()}


def _read_part(folder: Path, pages: list[StoredPage]) -> list[tuple[StoredPage, bytes]]:
    return list(_described(folder, pages))


def _described(folder: Path, pages: list[StoredPage]) -> Iterator[tuple[StoredPage, bytes]]:
    for page, body in read_pages(folder, pages):
        try:
            article = extract_article(body, url="https://news.example/story", now=NOW)
        except NewsbeatError:
            continue
        yield page, describe_page(body, article.text, title=article.title).to_bytes()


def draw_scores(groups: Mapping[Group, Sequence[PageFeatures]], seed: int = 0) -> Scores:
    """Return standardised scores of unseen pages, by size of the reference and site."""
    floors = np.array([FLOORS[name] for name in SCORE_NAMES])
    cautious = Calibration.cautious()
    shared = Calibration(cautious.sizes, cautious.high, cautious.low, floors)
    scores: Scores = {}
    for _ in range(2):
        scores = {size: _scores_of_size(groups, size, shared, seed) for size in SIZES}
        shared = fit_without(scores)
    return scores


def fit_without(scores: Scores, site: str = "") -> Calibration:
    """Return the calibration that all sites but one teach."""
    floors = np.array([FLOORS[name] for name in SCORE_NAMES])
    kept = {
        size: [found for name, found in by_site.items() if name != site]
        for size, by_site in scores.items()
    }
    return fit_calibration(kept, floors)


def _scores_of_size(
    groups: Mapping[Group, Sequence[PageFeatures]], size: int, shared: Calibration, seed: int
) -> dict[str, FloatArray]:
    rng = np.random.default_rng(seed)
    by_site: dict[str, list[FloatArray]] = defaultdict(list)
    for (_, site, _), pages in groups.items():
        n_left = len(pages) - size
        if len(pages) < MIN_GROUP or n_left < (1 if size == SIZES[0] else 5):
            continue
        for _ in range(int(np.clip(MAX_JUDGED // n_left, 2, 12))):
            order = rng.permutation(len(pages))
            drawn = [pages[at] for at in order]
            by_site[site].append(_judge_rest(drawn[:size], drawn[size:], shared))
    return {site: np.concatenate(found) for site, found in by_site.items()}


def _judge_rest(
    known: Sequence[PageFeatures], rest: Sequence[PageFeatures], shared: Calibration
) -> FloatArray:
    tails = shared.for_size(len(known))
    ranks = rank_reference(held_out_scores(known), tails)
    model, recent = PageModel.fit(known), RecentParagraphs(known)
    rows = np.full((len(rest[:MAX_JUDGED]), N_SCORES), np.nan)
    for row, page in zip(rows, rest, strict=False):
        row[:N_CHANNELS] = model.score(page, recent.share_of(page))
        recent.add(page)
        row[N_CHANNELS:] = join_groups(rank_page(row, ranks, tails).worst)
    standard = (rows - ranks.middle) / ranks.spread
    standard[:, ranks.known < MIN_KNOWN] = np.nan
    return standard


if __name__ == "__main__":
    fitted = fit_without(draw_scores(read_groups(Path(sys.argv[1]))))
    json.dump(fitted.to_json(), sys.stdout, separators=(",", ":"))
