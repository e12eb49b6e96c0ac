"""The detectors that are measured side by side, all through one small interface."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import Protocol

from models.drift.adwin import Adwin
from models.drift.calibration import Calibration
from models.drift.deferred import (
    WindowReference,
    check_window,
    choose_thresholds,
    compare_criteria,
)
from models.drift.features import PageFeatures
from models.drift.reference import Reference, build_reference
from models.drift.slides import SURFACES, SelfCheck, Surface, SurfaceModel
from models.drift.watch import Watch
from models.errors import InsufficientDataError

WINDOW_PAGES = 40
DEFERRED_PAGES = 20
FEW_CHARS = 200
_LARGEST_LOG = 14.0
"""ADWIN's bound is for numbers from 0 to 1; logarithms of text sizes stay below this."""


class Judge(Protocol):
    """A detector at work on one site."""

    def add(self, page: PageFeatures) -> str | None:
        """Take the next page in; return the cause of an alarm, ``""`` where it names none."""


class Contender(Protocol):
    """A detector, ready to be set to work on one site."""

    name: str

    def start(self) -> Judge:
        """Return it as it stands after its reference, with no page seen."""


class Ours:
    """Evidence gathered page by page: the default."""

    name = "evidence"

    def __init__(self, reference: Reference) -> None:
        self.reference = reference

    def start(self) -> Judge:
        """Return a fresh watch."""
        return _OurJudge(Watch(self.reference))


class _OurJudge:
    def __init__(self, watch: Watch) -> None:
        self.watch = watch

    def add(self, page: PageFeatures) -> str | None:
        self.watch.judge(page, str(self.watch.n_pages))
        drift = self.watch.verdict()
        return None if drift is None else drift.group


class WindowTest:
    """Kolmogorov-Smirnov with Bonferroni on every 40 pages."""

    name = "window test"

    def __init__(self, reference: WindowReference) -> None:
        self.reference = reference

    def start(self) -> Judge:
        """Return it with an empty window."""
        return _WindowJudge(WINDOW_PAGES, self._departs)

    def _departs(self, pages: Sequence[PageFeatures]) -> bool:
        return check_window(self.reference, pages, rule="none").is_drift


class Divergences:
    """The slides' deferred detector: any of the five criteria, on every 20 pages."""

    name = "slides: divergences"

    def __init__(self, reference: WindowReference) -> None:
        self.reference = reference
        self.thresholds = choose_thresholds(reference, DEFERRED_PAGES, "bootstrap")

    def start(self) -> Judge:
        """Return it with an empty window."""
        return _WindowJudge(DEFERRED_PAGES, self._departs)

    def _departs(self, pages: Sequence[PageFeatures]) -> bool:
        found = compare_criteria(self.reference, WindowReference.of(pages), self.thresholds)
        return any(criterion.fired for criterion in found)


class _WindowJudge:
    def __init__(self, n_pages: int, departs: Callable[[Sequence[PageFeatures]], bool]) -> None:
        self.n_pages = n_pages
        self.departs = departs
        self._window: list[PageFeatures] = []

    def add(self, page: PageFeatures) -> str | None:
        self._window.append(page)
        if len(self._window) < self.n_pages:
            return None
        window, self._window = self._window, []
        return "" if self.departs(window) else None


class Surfaces:
    """The slides' operational detector with its self-check."""

    def __init__(self, pages: Sequence[PageFeatures], surface: Surface) -> None:
        self.name = f"slides: {surface}"
        self.model = SurfaceModel.fit(pages, surface)

    def start(self) -> Judge:
        """Return it with no page seen."""
        return _SurfaceJudge(self.model)


class _SurfaceJudge:
    def __init__(self, model: SurfaceModel) -> None:
        self.model = model
        self.check = SelfCheck()

    def add(self, page: PageFeatures) -> str | None:
        return "" if self.check.add(self.model.is_suspicious(page)) else None


class Always:
    """Alarms on every page: finds all, and is of no use."""

    name = "always"

    def start(self) -> Judge:
        """Return itself."""
        return self

    def add(self, page: PageFeatures) -> str | None:
        """Alarm."""
        del page
        return ""


class Never:
    """Never alarms."""

    name = "never"

    def start(self) -> Judge:
        """Return itself."""
        return self

    def add(self, page: PageFeatures) -> str | None:
        """Stay quiet."""
        del page
        return None


class FewCharacters:
    """Alarms where a page has less than 200 characters of text."""

    name = "< 200 characters"

    def start(self) -> Judge:
        """Return itself."""
        return self

    def add(self, page: PageFeatures) -> str | None:
        """Alarm where there is next to no text."""
        return "" if page.text_bytes < FEW_CHARS else None


class AdwinOnSize:
    """ADWIN on the size of the text."""

    name = "ADWIN on text size"

    def __init__(self, pages: Sequence[PageFeatures]) -> None:
        self.pages = pages

    def start(self) -> Judge:
        """Return it with the reference pages seen."""
        judge = _AdwinJudge()
        for page in self.pages:
            judge.add(page)
        return judge


class _AdwinJudge:
    def __init__(self) -> None:
        self.adwin = Adwin()

    def add(self, page: PageFeatures) -> str | None:
        size = math.log1p(page.text_bytes) / _LARGEST_LOG
        return "" if self.adwin.add(size) else None


def set_to_work(pages: Sequence[PageFeatures], calibration: Calibration | None) -> list[Contender]:
    """Return all detectors that can work with so many reference pages, ours first.

    Raises
    ------
    ContaminatedReference
        If the pages look wrong already.
    """
    reference = build_reference(pages, calibration)
    found: list[Contender] = [
        Ours(reference),
        WindowTest(reference.window),
        Divergences(reference.window),
    ]
    for surface in SURFACES:
        try:
            found.append(Surfaces(pages, surface))
        except InsufficientDataError:
            break
    return [*found, AdwinOnSize(pages), FewCharacters(), Always(), Never()]
