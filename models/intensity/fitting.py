"""Fit everything that is known of a source to its history, in one walk through it.

The nightly refit calls :func:`fit_states`. Each source is walked through hour by hour,
the way it was lived: every estimator forecasts the hour, then learns from it. What is
fitted beside that is fitted on earlier weeks and judged on later ones:

- Holt-Winters and the moving average: their smoothing constants, by least squares of
  the one-step errors (`models.intensity.hwfit`);
- bursts: switched on only where the forecasts of later weeks miss something that a
  burst term explains (`models.intensity.burst`);
- habits within the hour: trusted as far as they foretell stamps of later weeks;
- the publisher's lag, where polls tell it.

The last weeks are *held out*: nothing is fitted on them, so the forecasts made for their
hours say honestly which estimator suits the source (`models.scores`).
"""

from __future__ import annotations

from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from datetime import UTC, datetime

import numpy as np

from models.compiled import compiled
from models.errors import InsufficientDataError
from models.intensity.burst import fit_burst, observe_burst
from models.intensity.estimator import EMA, HOLT_WINTERS, WEEKLY, fill_rates, observe
from models.intensity.history import History
from models.intensity.hwfit import BEGIN_HOURS, HoltWintersFit, IntArray, fit_holtwinters
from models.intensity.lag import observe_lag
from models.intensity.phase import fit_trust
from models.intensity.state import FloatArray, State, new_state
from models.week import HOUR_S, HOURS_PER_WEEK, hour_of_week, offset_at, zone_table

CHUNK = 50
"""Sources a thread takes at a time: enough that handing them out costs nothing."""

N_ESTIMATORS = 3
"""Columns of forecasts: weekly profile, moving average, Holt-Winters."""

HELD_OUT_SHARE = 0.25
MOST_HELD_OUT_WEEKS = 6
LEAST_JUDGED_WEEKS = 3
"""A quarter of the history judges, one week at least and six at most. A history of less
than three weeks has none to spare."""

EMA_ALPHAS = np.array([0.02, 0.05, 0.1, 0.15, 0.2, 0.3, 0.45, 0.6])

LEAST_ENTRIES = 20
"""Fewer in the weeks that judge bursts and habits say nothing of either."""

LEAST_GUESS = 1e-3
"""Entries per hour that a source is taken to publish at the least."""

MOST_ACTS = 5_000
"""Acts of publishing that bursts are fitted on; more would not change the verdict."""

RECENT_S = 86_400.0
"""Entries of the last day are what may still excite a source."""


@dataclass(frozen=True, slots=True)
class HeldOut:
    """The last weeks of a history, which nothing was fitted on.

    Attributes
    ----------
    start_s
        Where they begin, a whole hour.
    counts
        Entries of each of their hours; ``nan`` where nobody watched it whole.
    forecasts
        Entries that each estimator expected of the hour right before it. Shape
        ``(n_hours, 3)``: weekly profile, moving average, Holt-Winters.
    state
        What was known when they began.
    """

    start_s: float
    counts: FloatArray = field(repr=False)
    forecasts: FloatArray = field(repr=False)
    state: State = field(repr=False)


@dataclass(frozen=True, slots=True)
class FittedState:
    """What a history teaches of its source.

    Attributes
    ----------
    state
        Everything all estimators know at the end of the history.
    largest_per_hour
        Most entries in one hour.
    held_out
        None where the history is too short to hold anything out.
    holtwinters
        The fit, None where there is too little history for one.
    note
        What could not be fitted, in words.
    """

    source: str
    state: State = field(repr=False)
    largest_per_hour: float = 0.0
    held_out: HeldOut | None = field(default=None, repr=False)
    holtwinters: HoltWintersFit | None = field(default=None, repr=False)
    note: str = ""


def fit_states(
    histories: Sequence[History], *, threads: int = 1, chunk: int = CHUNK
) -> list[FittedState]:
    """Return the fit of every history, in their order.

    Parameters
    ----------
    threads
        How many work side by side. The same results come out, whatever their number.
    chunk
        Histories a thread takes at a time.

    Notes
    -----
    Costs some milliseconds for a source of 26 weeks, in proportion to the length of its
    history. Nearly all of it is compiled and lets the interpreter's lock go.
    """
    parts = [histories[start : start + chunk] for start in range(0, len(histories), chunk)]
    if threads <= 1 or len(parts) <= 1:
        return [fit for part in parts for fit in _fit_part(part)]
    with ThreadPoolExecutor(threads, thread_name_prefix="fit") as pool:
        return [fit for fits in pool.map(_fit_part, parts) for fit in fits]


def _fit_part(part: Sequence[History]) -> list[FittedState]:
    return [fit_state(history) for history in part]


def fit_state(history: History) -> FittedState:
    """Return the fit of one history; what it is too short for is left as it is, and noted."""
    course = _course(history)
    n_hours = len(course.counts)
    n_fitted = n_hours - _held_out_hours(course.counts)
    state = new_state(history.start_s, _first_guess(course.counts))
    seasonal, note = _fit_seasons(course, n_fitted)
    if seasonal is not None:
        seasonal.write_constants(state)
        course.walk(state, 0, seasonal.begins)
        seasonal.write_beginning(state)
    state["ema_alpha"] = _best_ema(course.counts[:n_fitted])
    course.walk(state, seasonal.begins if seasonal else 0, n_fitted)
    known = state.copy()
    course.walk(state, n_fitted, n_hours + 1)
    habits = _fit_habits(course, n_fitted)
    for each, until_s in ((known, course.at(n_fitted)), (state, history.end_s)):
        habits.write(each, course, until_s)
    held_out = None
    if n_fitted < n_hours:
        held_out = HeldOut(
            course.at(n_fitted), course.counts[n_fitted:], course.forecasts[n_fitted:], known
        )
    return FittedState(history.source, state, course.largest(), held_out, seasonal, note)


@dataclass(frozen=True, slots=True)
class _Course:
    """A history hour by hour, with the forecasts made on the way through it."""

    history: History
    zone: FloatArray
    stamps: FloatArray
    spans: FloatArray
    first_s: float
    counts: FloatArray
    hours: IntArray
    forecasts: FloatArray

    def at(self, hour: int) -> float:
        """Return when an hour begins."""
        return self.first_s + hour * HOUR_S

    def between(self, begin: int, end: int) -> FloatArray:
        """Return the stamps of some hours."""
        first, last = np.searchsorted(self.stamps, [self.at(begin), self.at(end)])
        return self.stamps[first:last]

    def largest(self) -> float:
        """Return the most entries in one hour."""
        watched = self.counts[~np.isnan(self.counts)]
        return float(watched.max()) if len(watched) else 0.0

    def walk(self, state: State, begin: int, end: int) -> None:
        """Let a state live through some hours, and note what it expected of each."""
        _walk(state, self.stamps, self.spans, self.zone, self.first_s, begin, end, self.forecasts)


def _course(history: History) -> _Course:
    first_s, counts = history.counts()
    years = (datetime.fromtimestamp(at, UTC).year for at in (history.start_s, history.end_s))
    zone = zone_table(history.timezone, *years)
    hours = np.empty(len(counts), dtype=np.int64)
    _fill_hours(first_s, zone, hours)
    stamps = np.ascontiguousarray(history.stamps_s, dtype=np.float64)
    forecasts = np.full((len(counts), N_ESTIMATORS), np.nan)
    return _Course(history, zone, stamps, history.spans(), first_s, counts, hours, forecasts)


@compiled
def _fill_hours(first_s: float, zone: FloatArray, hours: IntArray) -> None:
    for at in range(hours.shape[0]):
        start_s = first_s + at * HOUR_S
        hours[at] = hour_of_week(start_s + offset_at(zone, start_s))


def _held_out_hours(counts: FloatArray) -> int:
    """Return how many of the last hours judge the rest."""
    n_weeks = int((~np.isnan(counts)).sum()) // HOURS_PER_WEEK
    if n_weeks < LEAST_JUDGED_WEEKS:
        return 0
    held_weeks = min(max(int(HELD_OUT_SHARE * n_weeks), 1), MOST_HELD_OUT_WEEKS)
    return held_weeks * HOURS_PER_WEEK


def _first_guess(counts: FloatArray) -> float:
    """Return the rate of the first hours: what a newborn's prior would have learned at once."""
    watched = counts[~np.isnan(counts)][:BEGIN_HOURS]
    return max(float(watched.mean()), LEAST_GUESS) if len(watched) else 1.0


def _fit_seasons(course: _Course, n_fitted: int) -> tuple[HoltWintersFit | None, str]:
    try:
        return fit_holtwinters(course.counts[:n_fitted], course.hours[:n_fitted]), ""
    except InsufficientDataError as error:
        return None, f"too young for Holt-Winters: {error.got} of {error.needed} hours watched"


def _best_ema(counts: FloatArray) -> float:
    """Return the smoothing constant of least squared one-step error."""
    errors = np.zeros(len(EMA_ALPHAS))
    _ema_errors(counts, EMA_ALPHAS, errors)
    return float(EMA_ALPHAS[int(errors.argmin())]) if errors.any() else 0.1


@compiled
def _ema_errors(counts: FloatArray, alphas: FloatArray, errors: FloatArray) -> None:
    means = np.full(alphas.shape[0], np.nan)
    for count in counts:
        if np.isnan(count):
            continue
        if np.isnan(means[0]):
            means[:] = count
        for lane in range(alphas.shape[0]):
            errors[lane] += (count - means[lane]) ** 2
            means[lane] += alphas[lane] * (count - means[lane])


@compiled
def _walk(
    state: State,
    stamps: FloatArray,
    spans: FloatArray,
    zone: FloatArray,
    first_s: float,
    begin: int,
    end: int,
    forecasts: FloatArray,
) -> None:
    """Go through the hours from `begin` to `end`: forecast each, then learn what polls saw."""
    two = np.empty(2)
    span = 0
    entry = np.searchsorted(stamps, first_s + begin * HOUR_S)
    for at in range(begin, end):
        since, until = first_s + at * HOUR_S, first_s + (at + 1) * HOUR_S
        if at < forecasts.shape[0]:
            _foretell(state, since, zone, two, forecasts[at])
        while span < spans.shape[0] and spans[span, 1] <= since:
            span += 1
        part = span
        while part < spans.shape[0] and spans[part, 0] < until:
            seen_since, seen_until = max(since, spans[part, 0]), min(until, spans[part, 1])
            while entry < stamps.shape[0] and stamps[entry] < seen_since:
                entry += 1
            found = entry
            while found < stamps.shape[0] and stamps[found] < seen_until:
                found += 1
            observe(state, seen_since, seen_until, zone, stamps[entry:found])
            entry = found
            part += 1


@compiled
def _foretell(
    state: State, hour_s: float, zone: FloatArray, two: FloatArray, expected: FloatArray
) -> None:
    """Fill in what each estimator expects of the hour from `hour_s` on.

    Hours are UTC's; the estimators' are the zone's, which may begin at half past.
    """
    begun = (hour_s + offset_at(zone, hour_s)) % HOUR_S / HOUR_S
    for estimator in (WEEKLY, EMA, HOLT_WINTERS):
        fill_rates(estimator, state, hour_s, zone, two)
        expected[estimator] = ((1.0 - begun) * two[0] + begun * two[1]) * HOUR_S


@dataclass(frozen=True, slots=True)
class _Habits:
    """What is switched on only where later weeks say that it is real."""

    branching: float
    decay_s: float
    phase_trust: float

    def write(self, state: State, course: _Course, until_s: float) -> None:
        """Put the habits into a state that has lived until a moment."""
        state["branching"], state["decay_s"] = self.branching, self.decay_s
        state["phase_trust"] = self.phase_trust
        recent = course.stamps[(course.stamps > until_s - RECENT_S) & (course.stamps < until_s)]
        state["excess_per_s"], state["last_stamp"] = 0.0, -np.inf
        observe_burst(state, recent)
        sightings = course.history.sightings_s
        if sightings is not None:
            seen = np.ascontiguousarray(sightings[sightings[:, 2] <= until_s].T)
            _learn_lags(state, seen[0], seen[1], seen[2])


def _fit_habits(course: _Course, n_fitted: int) -> _Habits:
    """Fit bursts and trust on the second half of the weeks that are not held out."""
    half = n_fitted // 2
    later = course.between(half, n_fitted)
    if len(later) < LEAST_ENTRIES:
        return _Habits(0.0, 1800.0, 0.0)
    trust = fit_trust(course.between(0, half), later, course.zone)
    hours = ((later - course.first_s) // HOUR_S).astype(np.int64)
    is_watched = ~np.isnan(course.counts)
    expected = np.where(is_watched, course.forecasts[:, WEEKLY], 0.0)
    acts = is_watched[hours]
    acts[: max(len(later) - MOST_ACTS, 0)] = False
    n_acts = int(acts.sum())
    begins = int(hours[acts][0]) if n_acts else half
    # A base that is too low throughout is the level's business, and no sign of bursts.
    scale = n_acts / max(float(expected[begins:n_fitted].sum()), 1e-9)
    branching, decay_s = fit_burst(
        later[acts] - course.at(begins),
        scale * course.forecasts[hours[acts], WEEKLY] / HOUR_S,
        float(n_acts),
        (n_fitted - begins) * HOUR_S,
    )
    return _Habits(branching, decay_s, trust)


@compiled
def _learn_lags(state: State, stamps: FloatArray, since: FloatArray, until: FloatArray) -> None:
    for at in range(stamps.shape[0]):
        observe_lag(state, since[at], until[at], stamps[at : at + 1])
