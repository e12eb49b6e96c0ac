"""The slides' operational detector as a watch, with the calls of ours.

It takes any reference that was built for ours, as that keeps the sizes and tag counts of up to
1,200 pages. It cannot tell a new layout from a wrong text, so that its verdict is both.
"""

from __future__ import annotations

import math

import numpy as np

from models.drift.features import PageFeatures
from models.drift.reference import Reference, pack_arrays, unpack_arrays
from models.drift.slides import SELF_CHECK_PAGES, SELF_CHECK_SHARE, SelfCheck, Surface, SurfaceModel
from models.drift.watch import LOG_ALARM, Drift, PageJudgement

REASON = "the page lies outside what the correct pages span"
CHANNEL = "surface"
_LAYOUT = 101
"""Apart from the layouts of ours: one watch must not take the other's state for its own."""


class SlidesWatch:
    """Watches the pages of one site, as the slides do it.

    Parameters
    ----------
    reference
        How its correct pages look, from at least 20 pages; about 1,200 are needed.
    surface
        What is put round each cluster.

    Raises
    ------
    InsufficientDataError
        If the reference has fewer than 20 pages.
    """

    def __init__(self, reference: Reference, surface: Surface = "ellipsoid") -> None:
        self.reference = reference
        self.model = SurfaceModel.fit(reference.window, surface)
        self.check = SelfCheck()
        self.n_pages = 0
        self._names: list[str] = []
        self._places: list[str] = []

    def judge(self, page: PageFeatures, name: str) -> PageJudgement:
        """Judge the next page.

        Parameters
        ----------
        page
            Its features.
        name
            Anything that names it.
        """
        suspicious = self.model.is_suspicious(page)
        self.check.add(suspicious)
        self.n_pages += 1
        self._names = [*self._names, name][-SELF_CHECK_PAGES:]
        self._places = [*self._places, page.place][-SELF_CHECK_PAGES:]
        return PageJudgement(
            score=0.0 if suspicious else 1.0,
            suspicious=suspicious,
            reason=REASON if suspicious else "",
            channel=CHANNEL,
            evidence=self.evidence,
        )

    @property
    def evidence(self) -> float:
        """The share of suspicious pages on the scale of ours: above 4 is an alarm."""
        share = sum(self.check.flags) / SELF_CHECK_PAGES
        return LOG_ALARM * min(share / (SELF_CHECK_SHARE + 1e-9), 2.0)

    def verdict(self) -> Drift | None:
        """Return what has changed, or nothing."""
        flags = self.check.flags
        if sum(flags) <= SELF_CHECK_SHARE * SELF_CHECK_PAGES + 1e-9:
            return None
        first = flags.index(True)
        places = [place for place in self._places[first:] if place]
        before = self.reference.places
        return Drift(
            layout_changed=True,
            text_wrong=True,
            group="structure",
            channel=CHANNEL,
            reason=REASON,
            first_suspect=self._names[first],
            n_pages=len(flags) - first,
            place_before=before[0][0] if before else "",
            place_after=max(set(places), key=places.count) if places else "",
            evidence=math.nextafter(self.evidence, math.inf),
        )

    def to_bytes(self) -> bytes:
        """Return the state of the watch without its reference."""
        return pack_arrays(
            {
                "layout": np.array([_LAYOUT]),
                "n_pages": np.array([self.n_pages]),
                "flags": np.array(self.check.flags, np.bool_),
                "names": np.array(self._names, np.str_),
                "places": np.array(self._places, np.str_),
                "surface": np.array(self.model.surface),
            }
        )

    @classmethod
    def from_bytes(cls, packed: bytes, reference: Reference) -> SlidesWatch:
        """Return the watch as it was when :meth:`to_bytes` packed it.

        Raises
        ------
        ParseError
            If another version packed it, or it is cut short.
        """
        arrays = unpack_arrays(packed, "slides watch", _LAYOUT)
        watch = cls(reference, arrays["surface"].item())
        watch.n_pages = int(arrays["n_pages"][0])
        for suspicious in arrays["flags"].tolist():
            watch.check.add(suspicious)
        watch._names = arrays["names"].tolist()
        watch._places = arrays["places"].tolist()
        return watch
