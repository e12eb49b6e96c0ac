"""Compare policies on one trace, each tuned to the same number of polls.

The first part of a trace trains, the rest tests. A budget of polls is what a timer of
one interval spends on all sources; every policy has one figure that trades lag against
polls, and that is searched until the budget is met. Then the lags can be compared: at
equal polls, on the same publications, under the same list length.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, fields, replace
from functools import partial
from typing import Any

import numpy as np

from models.bounds import clairvoyant_lags, rate_bound, spread_profile, week_profile
from models.errors import InsufficientDataError
from models.intensity.fitting import fit_states
from models.intensity.history import History, make_history
from models.intensity.state import FloatArray, State
from models.simulator import PageModel, Replay, Rule, replay_source, zone_of
from models.traces import Stream, Trace
from models.week import HOUR_S

PHASES = 8
"""Clock phases a timer is averaged over: where editors publish on round minutes, one
lucky phase is worth up to a sixth, which is no merit of the timer."""

TOLERANCE = 0.002
"""How far the polls of a tuned policy may be from the budget."""

MOST_TRIALS = 14

CURVE_FACTORS = (0.25, 0.5, 1.0, 2.0, 4.0)
"""Budgets, over the one asked for, at which a curve is drawn."""

LEAST_ENTRIES = 20
"""Fewer in the part that tests cannot tell one policy from another."""


@dataclass(frozen=True, slots=True)
class Contender:
    """A policy that takes part.

    Attributes
    ----------
    name
        As shown.
    rule
        Its figures; the knob is searched.
    low, high
        Range of the knob.
    slope
        About how the logarithm of the polls moves with that of the knob.
    """

    name: str
    rule: Rule
    low: float
    high: float
    slope: float


def _clamped(policy: str, estimator: str = "weekly") -> Rule:
    """Return a count-target rule inside 5 to 60 minutes: without such bounds it fails."""
    return Rule(policy, estimator, knob=1.0, floor_s=300.0, ceiling_s=3600.0)


CONTENDERS = {
    contender.name: contender
    for contender in (
        Contender("adaptive", _clamped("adaptive"), 0.02, 60.0, -0.5),
        Contender("ema", _clamped("count", "ema"), 0.02, 60.0, -1.0),
        Contender("holt-winters", _clamped("count", "holt-winters"), 0.02, 60.0, -1.0),
        Contender("nutch", Rule("nutch", up=0.4, down=0.2, sync=0.3, floor_s=60.0), 1e-3, 5, -0.5),
        Contender("miniflux", Rule("miniflux", floor_s=300.0, ceiling_s=86_400.0), 0.01, 1e3, 0.8),
        Contender("commafeed", Rule("commafeed", floor_s=300.0, ceiling_s=14_400.0), 1e-3, 30, -1),
        Contender("mavsync", Rule("mavsync", floor_s=60.0, ceiling_s=86_400.0), 1e-3, 30.0, -1.0),
        Contender("price", Rule("price"), 1e-2, 1e9, -0.5),
        Contender("price-holt-winters", Rule("price", "holt-winters"), 1e-2, 1e9, -0.5),
        Contender("plan", Rule("plan"), 1e-2, 1e9, -0.5),
    )
}
"""Whom `newsbeat backtest` knows, besides the timer and the two bounds."""

COUNT_RULES = ("adaptive", "ema", "holt-winters", "nutch", "miniflux", "commafeed", "mavsync")
"""Those that poll when a number of entries is expected, in one way or another."""

USUAL = ("adaptive", "holt-winters", "miniflux", "commafeed", "price", "plan")


@dataclass(frozen=True, slots=True)
class Score:
    """What a policy came to.

    Attributes
    ----------
    policy
        Its name.
    parameters
        Its knob, and what else distinguishes it.
    polls, empty_polls, lost
        Counts over all sources.
    mean_lag_s, median_lag_s, p95_lag_s
        Publication lag over articles.
    source_mean_lag_s, source_median_lag_s, source_p95_lag_s
        The same over the mean lags of the sources.
    mb, mb_with_validators
        Traffic; with validators, empty polls are answered 304.
    cpu_s
        Processor seconds.
    lag_vs_fixed
        Mean lag over a timer's at the same number of polls.
    p95_vs_fixed
        The same of the 95th percentile.
    """

    policy: str
    parameters: dict[str, Any]
    polls: int
    empty_polls: int
    lost: int
    mean_lag_s: float
    median_lag_s: float
    p95_lag_s: float
    source_mean_lag_s: float
    source_median_lag_s: float
    source_p95_lag_s: float
    mb: float
    mb_with_validators: float
    cpu_s: float
    lag_vs_fixed: float = math.nan
    p95_vs_fixed: float = math.nan


@dataclass(frozen=True, slots=True)
class Backtest:
    """All policies on one trace at one budget.

    Attributes
    ----------
    interval_s
        The timer whose polls are the budget.
    rho
        The rate bound of the trace (`models.bounds.rate_bound`).
    rho_across
        Its part that lies between the sources alone.
    scores
        The timer first, then the contenders, then the bounds.
    """

    interval_s: float
    n_sources: int
    n_tested: int
    rho: float
    rho_across: float
    scores: tuple[Score, ...]

    def score(self, policy: str) -> Score:
        """Return the score of a policy."""
        return next(score for score in self.scores if score.policy == policy)


def spend_polls(score: Score) -> float:
    """Return the polls of a score: the usual budget."""
    return float(score.polls)


class Bench:
    """A trace with its sources trained, on which policies are replayed.

    Parameters
    ----------
    trace
        The publications.
    states
        What is known of each source at the split.
    known_per_s
        True rates of each source in the part that tests; policies then poll by these.
    pages
        What polls cost.
    workers
        Threads; the compiled loops let each other run.
    """

    def __init__(
        self,
        trace: Trace,
        states: Sequence[State],
        *,
        known_per_s: Sequence[FloatArray] | None = None,
        pages: PageModel | None = None,
        workers: int = 1,
    ) -> None:
        self.trace = trace
        self.states = states
        self.pages = pages or PageModel()
        self.workers = workers
        self._known_per_s = known_per_s

    def replay(
        self, rule: Rule, first_s: float | None = None, down_s: FloatArray | None = None
    ) -> list[Replay]:
        """Return what a rule does to each source in the part that tests.

        Parameters
        ----------
        first_s, down_s
            As `models.simulator.replay_source`.
        """
        places = range(len(self.trace.streams))
        return _each(partial(self._replay, rule, first_s, down_s), places, self.workers)

    def _replay(
        self, rule: Rule, first_s: float | None, down_s: FloatArray | None, place: int
    ) -> Replay:
        stream, trace = self.trace.streams[place], self.trace
        return replay_source(
            stream.stamps_s,
            rule,
            start_s=trace.split_s,
            end_s=trace.end_s,
            first_s=first_s,
            timezone=stream.timezone,
            window=trace.window,
            state=self.states[place].copy(),
            appear_s=stream.appear_s,
            known_per_s=None if self._known_per_s is None else self._known_per_s[place],
            down_s=down_s,
        )

    def time(self, interval_s: float) -> Score:
        """Return the score of the timer, averaged over clock phases."""
        rule, start_s = Rule("fixed", knob=interval_s), self.trace.split_s
        scores = [
            self.sum_up("fixed", {"interval_s": interval_s}, self.replay(rule, start_s + phase_s))
            for phase_s in interval_s * (np.arange(PHASES) + 0.5) / PHASES
        ]
        means: dict[str, Any] = {
            name: float(np.mean([getattr(score, name) for score in scores]))
            for name in (*_COUNTS, *_NUMBERS)
        }
        counts = {name: round(means[name]) for name in _COUNTS}
        return replace(scores[0], **{**means, **counts}, lag_vs_fixed=1.0, p95_vs_fixed=1.0)

    def tune(
        self, contender: Contender, fixed: Score, *, spend: Callable[[Score], float] = spend_polls
    ) -> Score:
        """Return a policy's score at the budget of the timer.

        Where the bounds of a policy keep it from the budget, it comes as near as it can:
        ``lag_vs_fixed`` compares with the timer of just as many polls.

        Parameters
        ----------
        spend
            What of a score must equal the timer's: the polls, or the traffic.
        """
        search = KnobSearch(contender, self._first_knob(contender, fixed))
        best: tuple[float, Score] | None = None
        while (knob := search.next_knob()) is not None:
            replays = self.replay(replace(contender.rule, knob=knob))
            score = self.sum_up(contender.name, {"knob": knob}, replays)
            excess = math.log(max(spend(score), 1e-9) / spend(fixed))
            search.learn(knob, excess)
            if best is None or abs(excess) < abs(best[0]):
                best = excess, score
        assert best is not None
        return compare(best[1], fixed)

    def _first_knob(self, contender: Contender, fixed: Score) -> float:
        if contender.rule.policy not in ("price", "plan"):
            return 1.0
        # In the fluid limit the density of polls is sqrt(rate / 2 price).
        per_s = week_profiles(self.trace) / HOUR_S
        density_per_s = float(np.sqrt(per_s / 2.0).mean(axis=1).sum())
        return (density_per_s * self.trace.tested_s / fixed.polls) ** 2

    def sum_up(self, policy: str, parameters: dict[str, Any], replays: Sequence[Replay]) -> Score:
        """Return the score of a policy's replays, not yet compared with the timer's."""
        return sum_up(
            policy,
            parameters,
            [replay.lags_s for replay in replays],
            polls=count_polls(replays),
            empty=sum(replay.empty for replay in replays),
            lost=sum(replay.lost for replay in replays),
            pages=self.pages,
        )


def train(trace: Trace, workers: int = 1) -> list[State]:
    """Return what the first part of a trace teaches of each source, as the nightly refit does."""
    histories = [_history(trace, stream) for stream in trace.streams]
    return [fit.state for fit in fit_states(histories, threads=workers)]


def _history(trace: Trace, stream: Stream) -> History:
    """Return the past of a source as hourly polls would have seen it."""
    if stream.appear_s is None:
        return History(
            stream.source, stream.stamps_s, trace.start_s, trace.split_s, stream.timezone
        )
    begin, end = np.searchsorted(stream.appear_s, [trace.start_s, trace.split_s])
    since_s = np.floor(stream.appear_s[begin:end] / HOUR_S) * HOUR_S
    return make_history(
        stream.source,
        stream.timezone,
        polled_s=(trace.start_s, trace.split_s),
        breaks_s=np.empty((0, 2)),
        entries_s=np.column_stack((stream.stamps_s[begin:end], since_s, since_s + HOUR_S)),
    )


def _each(work: Callable[[Any], Any], items: Iterable[Any], workers: int) -> list[Any]:
    with ThreadPoolExecutor(workers) as pool:
        return list(pool.map(work, items))


class KnobSearch:
    """Where to look for the knob that meets a budget: secant steps inside a bracket.

    Parameters
    ----------
    contender
        Range and slope of its knob.
    first
        Where to begin.
    """

    def __init__(self, contender: Contender, first: float) -> None:
        self._low, self._high = math.log(contender.low), math.log(contender.high)
        self._slope = contender.slope
        self._next = min(max(math.log(first), self._low), self._high)
        self._tried: list[tuple[float, float]] = []

    def next_knob(self) -> float | None:
        """Return the next knob to try, None when the search is over."""
        if len(self._tried) >= MOST_TRIALS:
            return None
        if self._tried and abs(self._tried[-1][1]) <= TOLERANCE:
            return None
        if any(abs(self._next - tried) < 1e-6 for tried, _ in self._tried):
            return None
        return math.exp(self._next)

    def learn(self, knob: float, excess: float) -> None:
        """Take in the logarithm of the polls at a knob over the budget."""
        at = math.log(knob)
        self._tried.append((at, excess))
        if (excess > 0.0) == (self._slope < 0.0):
            self._low = max(self._low, at)
        else:
            self._high = min(self._high, at)
        slope = self._slope
        if len(self._tried) > 1:
            (before, was), (_, now) = self._tried[-2:]
            measured = (now - was) / (at - before)
            if measured * slope > 0.0:
                slope = min(max(measured / slope, 0.1), 5.0) * slope
        step = at - excess / slope
        # A step out of the bracket halves it instead; at an end of the range it tries the end.
        is_inside = self._low < step < self._high
        self._next = step if is_inside else self._fallback(step)

    def _fallback(self, step: float) -> float:
        tried = {at for at, _ in self._tried}
        if step <= self._low and self._low not in tried:
            return self._low
        if step >= self._high and self._high not in tried:
            return self._high
        return 0.5 * (self._low + self._high)


def count_polls(replays: Sequence[Replay]) -> int:
    """Return the polls of all sources."""
    return sum(len(replay.polls_s) for replay in replays)


def sum_up(
    policy: str,
    parameters: dict[str, Any],
    lags_by_source: Sequence[FloatArray],
    *,
    polls: int,
    empty: int,
    lost: int,
    pages: PageModel,
) -> Score:
    """Return a score from the lags of every source."""
    lags = np.concatenate(lags_by_source)
    if len(lags) == 0:
        raise InsufficientDataError(1, 0)
    means = [float(lags.mean()) for lags in lags_by_source if len(lags)]
    return Score(
        policy=policy,
        parameters=parameters,
        polls=polls,
        empty_polls=empty,
        lost=lost,
        mean_lag_s=float(lags.mean()),
        median_lag_s=float(np.median(lags)),
        p95_lag_s=float(np.percentile(lags, 95)),
        source_mean_lag_s=float(np.mean(means)),
        source_median_lag_s=float(np.median(means)),
        source_p95_lag_s=float(np.percentile(means, 95)),
        mb=pages.megabytes(polls, empty, len(lags)),
        mb_with_validators=pages.megabytes(polls, empty, len(lags), has_validators=True),
        cpu_s=pages.cpu_s(polls, len(lags)),
    )


def compare(score: Score, fixed: Score) -> Score:
    """Return a score with its lags over a timer's at the same number of polls.

    A timer of interval h makes articles wait h/2 on average: lag times polls is the same
    for all timers, so its lag at other polls than measured follows.
    """
    share = score.polls / fixed.polls
    return replace(
        score,
        lag_vs_fixed=score.mean_lag_s * share / fixed.mean_lag_s,
        p95_vs_fixed=score.p95_lag_s * share / fixed.p95_lag_s,
    )


def week_profiles(trace: Trace, *, is_raw: bool = False) -> FloatArray:
    """Return the hour-of-week profile of each source's tested part, entries per hour."""
    split_s, end_s = trace.split_s, trace.end_s
    return np.array(
        [
            week_profile(
                trace.tested(stream), split_s, end_s, zone_of(stream.timezone, split_s, end_s),
                is_raw=is_raw,
            )
            for stream in trace.streams
        ]
    )  # fmt: skip


def bound_by_rates(bench: Bench, fixed: Score) -> Score:
    """Return the score of the price rule that knows the rates: the true ones, or hindsight's.

    Where the truth of made-up sources is given, it knows their bursts as well.
    """
    trace = bench.trace
    known, states = [], []
    for stream, profile, trained in zip(
        trace.streams, week_profiles(trace), bench.states, strict=True
    ):
        state = trained.copy()
        state["branching"], state["decay_s"] = stream.known_burst
        zone = zone_of(stream.timezone, trace.split_s, trace.end_s)
        hindsight = spread_profile(profile, trace.split_s, trace.end_s, zone)
        known.append(hindsight if stream.known_per_s is None else stream.known_per_s)
        states.append(state)
    oracle = Bench(trace, states, known_per_s=known, pages=bench.pages, workers=bench.workers)
    exact = Contender("rate-oracle", Rule("price", fairness=0.0), 1e-2, 1e9, -0.5)
    return oracle.tune(exact, fixed)


def bound_by_foresight(bench: Bench, fixed: Score) -> Score:
    """Return the score of whoever knows all publications in advance.

    With more polls than moments of publication it needs only as many, and nobody waits.
    """
    tested = [bench.trace.tested(stream) for stream in bench.trace.streams]
    search = KnobSearch(Contender("clairvoyant", Rule("price"), 1e-3, 1e9, -1.0), 600.0)
    best: tuple[float, float, list[tuple[int, FloatArray]]] | None = None
    while (price := search.next_knob()) is not None:
        found = [clairvoyant_lags(stamps, price) for stamps in tested]
        excess = math.log(max(sum(polls for polls, _ in found), 1) / fixed.polls)
        search.learn(price, excess)
        if best is None or abs(excess) < abs(best[0]):
            best = excess, price, found
    assert best is not None
    score = sum_up(
        "clairvoyant",
        {"knob": best[1]},
        [lags for _, lags in best[2]],
        polls=sum(polls for polls, _ in best[2]),
        empty=0,
        lost=0,
        pages=bench.pages,
    )
    return compare(score, fixed)


def look_at(replays: Sequence[Replay], since_s: float, until_s: float) -> tuple[int, float]:
    """Return the polls of a stretch, and the mean lag of what appeared in it, seconds."""
    polls, lags = 0, []
    for replay in replays:
        polls += int(((replay.polls_s >= since_s) & (replay.polls_s < until_s)).sum())
        is_inside = (replay.appeared_s >= since_s) & (replay.appeared_s < until_s)
        lags.append(replay.lags_s[is_inside])
    together = np.concatenate(lags)
    return polls, float(together.mean()) if len(together) else math.nan


def draw_curve(bench: Bench, score: Score) -> list[tuple[int, float]]:
    """Return polls and mean lag of a policy at knobs around the one it was tuned to."""
    contender = CONTENDERS[score.policy]
    points = []
    for factor in CURVE_FACTORS:
        knob = score.parameters["knob"] * factor ** (1.0 / contender.slope)
        rule = replace(contender.rule, knob=min(max(knob, contender.low), contender.high))
        drawn = bench.sum_up(score.policy, {}, bench.replay(rule))
        points.append((drawn.polls, drawn.mean_lag_s))
    return points


def run_backtest(
    trace: Trace,
    policies: Sequence[str] = USUAL,
    *,
    interval_s: float = 600.0,
    workers: int = 1,
    pages: PageModel | None = None,
    bench: Bench | None = None,
    report: Callable[[str, int, int], None] = lambda *_: None,
) -> Backtest:
    """Return how policies compare on a trace at the polls of a timer.

    Parameters
    ----------
    policies
        Names from `CONTENDERS`; the timer and the two bounds are always there.
    interval_s
        The timer's interval.
    bench
        A bench of this trace, trained already.
    report
        Told what is under way: its name, its place, and how many there are.

    Raises
    ------
    InsufficientDataError
        If the part that tests has hardly any entries.
    """
    if trace.n_tested < LEAST_ENTRIES:
        raise InsufficientDataError(LEAST_ENTRIES, trace.n_tested)
    bench = bench or Bench(trace, train(trace, workers), pages=pages, workers=workers)
    n_steps = len(policies) + 2
    report("fixed", 1, n_steps)
    fixed = bench.time(interval_s)
    scores = [fixed]
    for place, name in enumerate(policies):
        report(name, place + 2, n_steps)
        scores.append(bench.tune(CONTENDERS[name], fixed))
    report("bounds", n_steps, n_steps)
    scores += [bound_by_rates(bench, fixed), bound_by_foresight(bench, fixed)]
    profiles = week_profiles(trace)
    return Backtest(
        interval_s=interval_s,
        n_sources=len(trace.streams),
        n_tested=trace.n_tested,
        rho=rate_bound(profiles),
        rho_across=rate_bound(profiles.mean(axis=1, keepdims=True)),
        scores=tuple(scores),
    )


_COUNTS = ("polls", "empty_polls", "lost")
_NUMBERS = tuple(
    item.name
    for item in fields(Score)
    if item.type == "float" and not item.name.endswith("_vs_fixed")
)
