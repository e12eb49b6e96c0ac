"""What the drift detectors cost beside a poll: ``python -m benchmarks.drift_cost``.

Processor time on made-up pages of the demo, beside the targets. Real pages are larger: see
``newsbeat drift-bench`` for them.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from datetime import UTC, datetime
from typing import TypeVar

from flows.drift_work import Lesson, SetToCheck, check_set, learn_all
from models.drift.features import PageFeatures
from models.drift.reference import build_reference
from models.drift.watch import Watch
from tasks.articles import extract_article
from tasks.calibration import read_calibration
from tasks.replay.pages import make_article_page
from tasks.replay.sample import sample_web

T = TypeVar("T")

NOW = datetime(2025, 3, 5, tzinfo=UTC)
N_PAGES, N_REFERENCE, N_SOURCES = 240, 200, 1_000


def main() -> None:
    """Measure and print."""
    source = next(item for item in sample_web(hours=48).history if len(item.entries) >= N_PAGES)
    profiles, taken_s = [], 0.0
    for number in range(N_PAGES):
        page = make_article_page(source, number, source.layout)
        article = extract_article(
            page.body, url=source.url_of(source.entries[number]), rules=source.extract, now=NOW
        )
        assert article.profile is not None
        profiles.append(article.profile)
        taken_s += article.profile_cpu_s
    show("features of a page, in the extraction process", 1000 * taken_s / N_PAGES, "ms", "25")
    pages = [PageFeatures.from_bytes(profile) for profile in profiles]
    reference, spent_s = timed(lambda: build_reference(pages[:N_REFERENCE], read_calibration()))
    show(f"reference of {N_REFERENCE} pages", spent_s, "s", "2")
    packed = reference.to_bytes()
    show("its state", len(packed) / 1000, "KB", "200")
    watch = Watch(reference)
    rest = profiles[N_REFERENCE:]
    _, spent_s = timed(
        lambda: [
            watch.judge(PageFeatures.from_bytes(item), str(at)) for at, item in enumerate(rest)
        ]
    )
    show("a page judged, in the poll", 1000 * spent_s / len(rest), "ms", "")
    state, spent_s = timed(watch.to_bytes)
    show("the watch's state written, a poll", 1000 * spent_s, "ms", "")
    show("that state", len(state) / 1000, "KB", "200")
    is_same = Watch.from_bytes(state, reference).to_bytes() == state
    print(f"{'the state after a restart':<55} {'the same' if is_same else 'DIFFERENT':>10}")
    asked = SetToCheck("bench", packed, tuple(rest))
    for name in ("first check (Great Expectations is loaded)", "a check after that"):
        result, spent_s = timed(lambda: check_set(asked))
        show(f"{name}: {result.outcome}", spent_s, "s", "")
    lesson = Lesson("bench", tuple(profiles[:N_REFERENCE]))
    _, spent_s = timed(lambda: learn_all([lesson] * 5, NOW))
    show(f"{N_SOURCES:,} references refitted and self-checked", spent_s / 5 * N_SOURCES, "s", "")


def timed(work: Callable[[], T]) -> tuple[T, float]:
    """Return what some work makes, and the processor seconds it took."""
    began = time.process_time()
    made = work()
    return made, time.process_time() - began


def show(what: str, value: float, unit: str, target: str) -> None:
    """Print a figure beside its target."""
    print(f"{what:<55} {value:10.2f} {unit:<3} {f'at most {target}' if target else ''}")


if __name__ == "__main__":
    main()
