"""What is known of a source's past: when it published, and when somebody was looking.

The difference between "nothing came out" and "nobody looked" decides every estimate, so
a history says which stretches of time polls covered. It is made from what the warehouse
has of entries and polls (:func:`make_history`), or from a bare trace of stamps.
"""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np

from models.compiled import compiled
from models.intensity.lag import LAG_LIMIT_S
from models.intensity.stamps import GOLDEN
from models.intensity.state import FloatArray
from models.week import HOUR_S

CLOCK_ERROR_S = 300.0
"""Clocks of publishers run a little fast: a stamp this far ahead is taken for "just now"."""

LONGEST_BACKLOG_S = 14.0 * 86_400.0
"""A listing that overlaps nothing known covers no more than two weeks before it."""

PINNED_SHARE = 0.1
"""Share of the oldest entries of such a listing that may be pinned, and cover nothing."""


@dataclass(frozen=True, slots=True)
class History:
    """The past of one source.

    Attributes
    ----------
    source
        Its name.
    stamps_s
        When its entries came out, rising, seconds since 1970.
    start_s, end_s
        The stretch the history is of.
    timezone
        The source's IANA zone.
    covered_s
        Rows ``(since, until)`` of the time that polls covered: rising, apart from one
        another. All of it where None.
    sightings_s
        Rows ``(stamp, poll before, poll)`` of the dated entries that polls found: what a
        publisher's lag is learned from. None where no polls are known.
    """

    source: str
    stamps_s: FloatArray = field(repr=False)
    start_s: float
    end_s: float
    timezone: str = "UTC"
    covered_s: FloatArray | None = field(default=None, repr=False)
    sightings_s: FloatArray | None = field(default=None, repr=False)

    def spans(self) -> FloatArray:
        """Return the covered stretches as rows ``(since, until)``."""
        if self.covered_s is None:
            return np.array([[self.start_s, self.end_s]])
        return np.ascontiguousarray(self.covered_s, dtype=np.float64)

    def covered_h(self) -> float:
        """Return for how many hours polls covered the source."""
        return float(np.diff(self.spans(), axis=1).sum()) / HOUR_S

    def counts(self) -> tuple[float, FloatArray]:
        """Return the first whole hour, and the entries of every hour from it on.

        An hour that polls did not cover whole holds ``nan``.

        Examples
        --------
        >>> spans = np.array([[0.0, 7200.0], [9000.0, 14400.0]])
        >>> History("a", np.array([10.0, 20.0, 11000.0]), 0.0, 14400.0, covered_s=spans).counts()
        (0.0, array([ 2.,  0., nan,  1.]))
        """
        first_s = float(np.floor(self.start_s / HOUR_S) * HOUR_S)
        n_hours = max(int((self.end_s - first_s) // HOUR_S), 0)
        counts = np.empty(n_hours)
        stamps = np.ascontiguousarray(self.stamps_s, dtype=np.float64)
        _count_hours(stamps, self.spans(), first_s, counts)
        return first_s, counts


@compiled
def _count_hours(stamps: FloatArray, spans: FloatArray, first_s: float, counts: FloatArray) -> None:
    entry = span = 0
    while entry < stamps.shape[0] and stamps[entry] < first_s:
        entry += 1
    for hour in range(counts.shape[0]):
        since, until = first_s + hour * HOUR_S, first_s + (hour + 1) * HOUR_S
        count = 0.0
        while entry < stamps.shape[0] and stamps[entry] < until:
            count += 1.0
            entry += 1
        while span < spans.shape[0] and spans[span, 1] < until:
            span += 1
        # A second's slack: the poll that ends one stretch begins the next.
        is_whole = span < spans.shape[0] and spans[span, 0] <= since + 1.0
        counts[hour] = count if is_whole else np.nan


def make_history(
    source: str,
    timezone: str,
    *,
    polled_s: tuple[float, float],
    breaks_s: FloatArray,
    entries_s: FloatArray,
) -> History:
    """Return the history that polls and entries of the warehouse tell.

    Parameters
    ----------
    polled_s
        First and last poll that saw the list.
    breaks_s
        Rows ``(poll before, poll)``: polls whose list did not reach back to the poll
        before, the first one included (``nan`` for the poll before it). What came out
        between may have been lost.
    entries_s
        Rows ``(stamp, poll before, poll)``: the declared time of each entry (``nan`` where
        there is none, or only a day), and the polls around its appearance.

    Returns
    -------
    History
        Wrong and missing stamps are spread over the gap in which their entry appeared, as
        `models.intensity.stamps.clean_stamps` does. A listing that overlaps nothing known
        covers the time that its own entries span.
    """
    spans, stamps = [], []
    first_s, last_s = polled_s
    is_listed = np.isin(entries_s[:, 2], breaks_s[:, 1])
    stamps.append(_told(entries_s[~is_listed]))
    since_s = first_s
    for before_s, poll_s in breaks_s:
        listing = entries_s[entries_s[:, 2] == poll_s, 0]
        begun_s, found = _span_listing(listing, before_s, poll_s)
        if before_s > since_s:
            spans.append((since_s, float(before_s)))
        stamps.append(found)
        since_s = begun_s
    if last_s > since_s:
        spans.append((since_s, last_s))
    covered = np.array(spans, dtype=np.float64).reshape(-1, 2)
    start_s = float(covered[0, 0]) if len(covered) else first_s
    is_dated = ~(is_listed | np.isnan(entries_s[:, 0]))
    return History(
        source,
        np.sort(np.concatenate(stamps)),
        start_s,
        max(last_s, start_s),
        timezone,
        covered,
        np.ascontiguousarray(entries_s[is_dated]),
    )


def _span_listing(listing: FloatArray, before_s: float, poll_s: float) -> tuple[float, FloatArray]:
    """Return the moment from which on a listing is complete, and its entries since then."""
    oldest_s = poll_s - LONGEST_BACKLOG_S
    if before_s > oldest_s:
        oldest_s = before_s
    past = np.sort(listing[(listing <= poll_s) & (listing > oldest_s)])
    if len(past) < 2:
        return poll_s, past[:0]
    opens = int(PINNED_SHARE * len(past))
    # The oldest entry opens the span, so it does not count itself.
    return float(past[opens]), past[opens + 1 :]


def _told(entries_s: FloatArray) -> FloatArray:
    """Return when entries came out, as far as their stamps and the polls around them tell."""
    stamp, since, until = entries_s.T
    is_told = (stamp <= until + CLOCK_ERROR_S) & (stamp >= since - LAG_LIMIT_S)
    told = np.minimum(stamp[is_told], until[is_told])
    return np.concatenate([told, _spread(since[~is_told], until[~is_told])])


def _spread(since: FloatArray, until: FloatArray) -> FloatArray:
    """Return times spread evenly over the gap that each entry shares with others."""
    _, gap, sizes = np.unique(until, return_inverse=True, return_counts=True)
    order = np.argsort(gap, kind="stable")
    place = np.empty(len(until))
    place[order] = np.arange(len(until)) - np.repeat(np.cumsum(sizes) - sizes, sizes)
    start = since * GOLDEN % 1.0
    return np.asarray(since + (until - since) * (place + start) / sizes[gap], dtype=np.float64)
