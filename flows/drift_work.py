"""What the deferred stage computes, in a process beside the worker: learn, check, repair.

Nothing of Prefect is imported here, and Great Expectations only by the check: it takes
eight processor seconds to load and 250 MB to keep.
"""

from __future__ import annotations

import hashlib
import time
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from datetime import datetime
from importlib import import_module
from pathlib import Path
from typing import Any

import numpy as np

from models.batches import Batch, BatchResult, ClassCriterion, KlCriterion, WindowCriterion
from models.drift.calibration import Calibration
from models.drift.channels import GROUPS, N_CHANNELS
from models.drift.deferred import CRITERIA, ThresholdRule, WindowReference, check_window
from models.drift.evidence import ALARM
from models.drift.features import NUMBERS, PageFeatures
from models.drift.reference import MIN_PAGES, Reference, build_reference
from models.drift.watch import Watch
from models.errors import ContaminatedReference, InsufficientDataError, NewsbeatError
from models.records import Article, ExtractRules, Method, Page, ReferenceModel, Source, StoredPage
from models.standing import WINDOW
from tasks.articles import extract_article
from tasks.calibration import read_calibration
from tasks.containers import find_containers
from tasks.pages import read_page

KIND = "evidence"

EVIDENCE_CRITERION = "page after page"

SELF_CHECK = 0.1
"""A reference that finds more of its own pages suspicious, when they are held out, is none."""

N_GOOD, N_SUSPECT = 8, 12
"""Pages from before and after that repairs are sought with."""

FITTING_P = 0.01
"""A page's text fits the reference where its p-value is no smaller."""

CLEAR_SHARE, CLEAR_EVIDENCE = 0.9, 1.0
"""A repair is clear where so many of the texts fit, and all of them together speak with less
than that (as a power of ten) for a change."""

N_FOLDS = 5


# --- learn ---------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Lesson:
    """Pages of one source that a reference is to be built from, oldest first.

    Attributes
    ----------
    must_be_fit
        False where a person has said that these pages are right.
    """

    source: str
    profiles: tuple[bytes, ...] = field(repr=False)
    note: str = ""
    must_be_fit: bool = True


@dataclass(frozen=True, slots=True)
class Learnt:
    """A reference, or why there is none."""

    source: str
    model: ReferenceModel | None
    refusal: str = ""


def learn_all(lessons: Sequence[Lesson], now: datetime) -> list[Learnt]:
    """Return what some sources' pages teach, one after the other."""
    return [learn(lesson, now) for lesson in lessons]


def learn(lesson: Lesson, now: datetime) -> Learnt:
    """Return the reference of a source, self-checked; a contaminated one is refused."""
    pages = [PageFeatures.from_bytes(profile) for profile in lesson.profiles]
    calibration = read_calibration()
    try:
        reference = build_reference(pages, calibration, must_be_fit=lesson.must_be_fit)
    except (ContaminatedReference, InsufficientDataError) as error:
        return Learnt(lesson.source, None, str(error))
    share, n_alarms = self_check(pages, calibration)
    if lesson.must_be_fit and (share > SELF_CHECK or n_alarms):
        reason = f"it finds {share:.0%} of its own pages suspicious, and raises {n_alarms} alarms"
        return Learnt(lesson.source, None, f"refused after its self-check: {reason}")
    parameters = {
        "places": [name for name, _ in reference.places],
        "alarms_in_self_check": n_alarms,
        "state_bytes": len(state := reference.to_bytes()),
    }
    model = ReferenceModel(
        lesson.source, now, reference.n_pages, KIND, state, share, lesson.note, parameters
    )
    return Learnt(lesson.source, model)


def self_check(pages: Sequence[PageFeatures], calibration: Calibration) -> tuple[float, int]:
    """Return what references of four fifths of the pages say of the last fifth.

    Returns
    -------
    tuple
        The share found suspicious, and how many of the five parts raise an alarm.
    """
    suspicious, n_alarms, n_judged = 0, 0, 0
    for fold in range(N_FOLDS):
        kept = [page for at, page in enumerate(pages) if at % N_FOLDS != fold]
        if len(kept) < MIN_PAGES:
            continue
        watch = Watch(build_reference(kept, calibration, must_be_fit=False))
        for at, page in enumerate(pages[fold::N_FOLDS]):
            suspicious += watch.judge(page, str(at)).suspicious
            n_judged += 1
        n_alarms += watch.verdict() is not None
    return suspicious / n_judged if n_judged else 0.0, n_alarms


# --- check ---------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class SetToCheck:
    """Pages of one source to be compared with its reference as a set.

    Attributes
    ----------
    evidence
        For a change, after each page, as a power of ten; None where it was not judged.
    """

    source: str
    reference: bytes = field(repr=False)
    profiles: tuple[bytes, ...] = field(repr=False)
    evidence: tuple[float | None, ...] = ()
    thresholds: ThresholdRule = "bootstrap"


def check_set(asked: SetToCheck) -> BatchResult:
    """Return what Great Expectations says of a set; whatever goes wrong is in the result."""
    began = time.process_time()
    try:
        batch = make_batch(asked)
    except Exception as error:  # noqa: BLE001 - what cannot be judged does not pass
        reason = f"{type(error).__name__}: {error}"
        return BatchResult("not evaluated", (), reason, cpu_s=time.process_time() - began)
    # Loading the library the first time is part of what it costs.
    return replace(judge(batch), cpu_s=time.process_time() - began)


def judge(batch: Batch) -> BatchResult:
    """Return what Great Expectations says of a batch; it is loaded only now."""
    result: BatchResult = import_module("tasks.quality").judge_batch(batch)
    return result


def make_batch(asked: SetToCheck) -> Batch:
    """Return a set of pages as columns and criteria."""
    if not asked.profiles:
        raise InsufficientDataError(1, 0)
    reference = Reference.from_bytes(asked.reference).window
    pages = [PageFeatures.from_bytes(profile) for profile in asked.profiles]
    check = check_window(reference, pages, rule=asked.thresholds)
    test = WindowReference.of(pages)
    columns = {f"F_{name}": test.values[:, at] for at, name in enumerate(CRITERIA)}
    columns |= {name: test.numbers[:, NUMBERS.index(name)] for name in check.columns}
    kl = [
        KlCriterion(
            f"F_{item.name}", f"F_{item.name}", tuple(item.edges.tolist()),
            tuple(item.reference_weights.tolist()), item.tail_weights, float(item.threshold),
        )
        for item in check.criteria
        if not item.classes
    ]  # fmt: skip
    classes = [
        ClassCriterion(
            f"F_{item.name}",
            dict(zip(item.classes, map(int, test.tags.sum(axis=0)), strict=True)),
            dict(zip(item.classes, item.reference_weights.tolist(), strict=True)),
            float(item.threshold),
        )
        for item in check.criteria
        if item.classes
    ]
    windows = [
        WindowCriterion(
            f"{WINDOW}{name}", name, _known(reference.numbers[:, NUMBERS.index(name)]),
            check.level / len(check.columns),
        )
        for name in check.columns
    ]  # fmt: skip
    return Batch(
        source=asked.source,
        columns={name: _with_none(values) for name, values in columns.items()}
        | {EVIDENCE_CRITERION: asked.evidence},
        n_reference=reference.n_pages,
        kl=tuple(kl),
        classes=tuple(classes),
        windows=tuple(windows),
        most={EVIDENCE_CRITERION: float(np.log10(ALARM))},
        fires_at=FIRES_AT,
    )


FIRES_AT = 3
"""So many of the five divergences make a drift without the window test: one or two fire by
chance in a hundredth of sets."""


def _known(values: Any) -> tuple[float, ...]:
    return tuple(values[~np.isnan(values)].tolist())


def _with_none(values: Any) -> tuple[float | None, ...]:
    return tuple(None if np.isnan(value) else float(value) for value in values)


# --- repair --------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Tried:
    """One way to the text, tried on suspect pages.

    Attributes
    ----------
    evidence
        What all the texts together say for a change, as a power of ten; an alarm is at 4.
    n_chars
        Median length of the texts it gave.
    """

    way: str
    selector: str | None
    n_pages: int
    n_fitting: int
    evidence: float
    n_chars: int

    @property
    def is_clear(self) -> bool:
        """Whether it is good enough to be adopted by itself."""
        fits = self.n_fitting >= CLEAR_SHARE * self.n_pages
        return fits and self.evidence < CLEAR_EVIDENCE

    def as_json(self) -> dict[str, Any]:
        """Return it as plain values."""
        return {
            "way": self.way, "selector": self.selector, "n_pages": self.n_pages,
            "n_fitting": self.n_fitting, "evidence": round(self.evidence, 2),
            "n_chars": self.n_chars,
        }  # fmt: skip


@dataclass(frozen=True, slots=True)
class SickSource:
    """A source whose text went wrong.

    Attributes
    ----------
    reference
        How its correct pages look.
    good, suspect
        Articles from before, and since; the last ones of each count.
    """

    source: Source
    warc_folder: Path
    reference: bytes = field(repr=False)
    good: tuple[StoredPage, ...] = field(repr=False)
    suspect: tuple[StoredPage, ...] = field(repr=False)
    now: datetime


_METHODS: tuple[Method, ...] = ("auto", "json-ld", "precise", "generous", "readable", "baseline")


def try_ways(sick: SickSource) -> list[Tried]:
    """Return every way to the text, the present one first, then the best of the others.

    Raises
    ------
    InsufficientDataError
        If not one suspect page can be read again.
    """
    reference = Reference.from_bytes(sick.reference)
    suspect = _read_bodies(sick.warc_folder, sick.suspect[-N_SUSPECT:])
    good = _read_bodies(sick.warc_folder, sick.good[-N_GOOD:])
    if not suspect:
        raise InsufficientDataError(1, 0)
    known = [(body, stored.text or "") for stored, body in good if stored.text]
    selectors = find_containers(known, [body for _, body in suspect])
    own = sick.source.extract
    ways = [(own, "css" if own.text else own.method)]
    ways += [(replace(own, text=None, method=method), method) for method in _METHODS]
    ways += [(replace(own, text=selector, method="auto"), "css") for selector in selectors]
    tried: dict[ExtractRules, Tried] = {}
    for rules, way in ways:
        if rules not in tried:
            tried[rules] = _try_way(sick, reference, suspect, rules, way)
    present, *others = tried.values()
    others.sort(key=lambda item: _worth(item, present))
    return [present, *others]


def _worth(item: Tried, present: Tried) -> tuple[Any, ...]:
    """Return what ways are ordered by: of equals the one of the kind a person chose before."""
    is_doubtful = item.evidence >= CLEAR_EVIDENCE
    is_other = item.way != present.way
    return (-item.n_fitting, is_doubtful, is_other, item.evidence, item.selector or "")


def _try_way(
    sick: SickSource,
    reference: Reference,
    suspect: Sequence[tuple[StoredPage, bytes]],
    rules: ExtractRules,
    way: str,
) -> Tried:
    fit, watch, sizes = 0, Watch(reference), []
    for stored, body in suspect:
        article = extract_again(sick.source, rules, stored.page, body, sick.now)
        if article is None or article.profile is None:
            continue
        sizes.append(len(article.text or ""))
        p = _text_p(watch, PageFeatures.from_bytes(article.profile))
        fit += bool(article.text) and p >= FITTING_P
    evidence = watch.group_evidence("text") if sizes else float("inf")
    n_chars = int(np.median(sizes)) if sizes else 0
    return Tried(way, rules.text if way == "css" else None, len(suspect), fit, evidence, n_chars)


def extract_again(
    source: Source, rules: ExtractRules, page: Page, body: bytes, now: datetime
) -> Article | None:
    """Return the article of a stored page by other rules; None where they find none."""
    try:
        return extract_article(
            body,
            url=page.url,
            rules=rules,
            language=source.language,
            timezone=source.timezone,
            now=now,
        )
    except NewsbeatError:
        return None


def _read_bodies(folder: Path, stored: Sequence[StoredPage]) -> list[tuple[StoredPage, bytes]]:
    """Return the raw pages that are still kept."""
    bodies = []
    for item in stored:
        try:
            bodies.append((item, read_page(folder, item.page)))
        except NewsbeatError:
            continue
    return bodies


def repair_id_of(source: str, now: datetime, tried: Tried) -> str:
    """Return the id of a repair."""
    named = f"{source}\x00{now}\x00{tried.way}\x00{tried.selector}"
    return hashlib.sha256(named.encode()).hexdigest()[:24]


# --- compare texts extracted anew ----------------------------------------------------


@dataclass(frozen=True, slots=True)
class Comparison:
    """How texts extracted anew compare with the reference.

    Attributes
    ----------
    evidence
        What they say together for a change of the text, as a power of ten.
    fits_reference
        Whether nothing at all has changed, layout included.
    """

    n_pages: int
    n_fitting: int
    evidence: float
    fits_reference: bool = False

    @property
    def is_clean(self) -> bool:
        """Whether the texts look like those of the reference."""
        return self.evidence < CLEAR_EVIDENCE and self.n_fitting >= CLEAR_SHARE * self.n_pages


def compare_texts(reference: bytes, profiles: Sequence[bytes]) -> Comparison:
    """Return how the texts of pages, in their order, compare with the reference."""
    watch = Watch(Reference.from_bytes(reference))
    p = [_text_p(watch, PageFeatures.from_bytes(profile)) for profile in profiles]
    return Comparison(
        n_pages=len(profiles),
        n_fitting=sum(one >= FITTING_P for one in p),
        evidence=watch.group_evidence("text"),
        fits_reference=watch.verdict() is None,
    )


def _text_p(watch: Watch, page: PageFeatures) -> float:
    """Judge a page, and return the chance that a correct one has as odd a text."""
    odds = watch.reference.judge(page, watch.recent.share_of(page))
    watch.judge(page, "")
    p = float(odds.worst[N_CHANNELS + GROUPS.index("text")])
    return 1.0 if np.isnan(p) else p
