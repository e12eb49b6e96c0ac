"""Replay one source's publications under a policy, and note every poll and every lag.

The same functions that decide in the live system decide here; only the world is a list
of publication times.
"""

from __future__ import annotations

from dataclasses import dataclass, field, fields
from datetime import UTC, datetime

import numpy as np
import numpy.typing as npt

from models.compiled import compiled
from models.intensity.burst import excess_at
from models.intensity.ema import begin_ema
from models.intensity.estimator import ESTIMATORS, fill_rates, observe
from models.intensity.holtwinters import begin_holtwinters
from models.intensity.lag import observe_lag
from models.intensity.phase import fill_phase
from models.intensity.stamps import settle_stamps
from models.intensity.state import FORECAST_HOURS, FloatArray, State, new_state
from models.intensity.weekly import overall_per_hour
from models.peers import commafeed_interval, mavsync_interval, miniflux_interval, nutch_interval
from models.polling.adaptive import next_interval
from models.polling.count import next_by_count
from models.polling.plan import next_by_plan
from models.polling.price import FAIRNESS, fair_price, next_by_price
from models.week import HOUR_S, hour_of_week, next_hour, offset_at, zone_table
from models.window import most_entries, safe_table

FIXED, ADAPTIVE, NUTCH, MINIFLUX, COMMAFEED, MAVSYNC, COUNT, PRICE, PLAN = range(9)
POLICIES = {
    "fixed": FIXED,
    "adaptive": ADAPTIVE,
    "nutch": NUTCH,
    "miniflux": MINIFLUX,
    "commafeed": COMMAFEED,
    "mavsync": MAVSYNC,
    "count": COUNT,
    "price": PRICE,
    "plan": PLAN,
}
"""Those from `COUNT` on poll by a forecast; the others only react to what polls find."""

KNOWN = len(ESTIMATORS)
"""The estimator that need not estimate: rates are given to it."""

NONE = np.empty(0)
NO_SPANS = np.empty((0, 2))


@dataclass(frozen=True, slots=True)
class Rule:
    """A policy with its figures: everything a replay needs but the source.

    Attributes
    ----------
    policy
        One of `POLICIES`.
    estimator
        Which forecast drives it, one of ``ESTIMATORS``; without meaning for the reactive ones.
    knob
        The one figure that trades lag against polls: interval in seconds (fixed), wanted
        entries (adaptive, count), price in entry-seconds (price, plan), a factor on `up`
        (Nutch), on the rate (Miniflux) or on the interval (CommaFeed, MAVSync).
    up, down, sync
        Shares of adaptive and Nutch.
    start_s
        First interval.
    floor_s, ceiling_s
        Bounds of any wait, seconds; Fixed has none.
    empty_share
        Cost of an empty poll as a share of a full one.
    fairness
        How far slow sources are favoured (price, plan).
    """

    policy: str
    estimator: str = "weekly"
    knob: float = 600.0
    up: float = 0.1
    down: float = 0.1
    sync: float = 0.0
    start_s: float = 600.0
    floor_s: float = 30.0
    ceiling_s: float = 86_400.0
    empty_share: float = 1.0
    fairness: float = FAIRNESS


@dataclass(frozen=True, slots=True)
class PageModel:
    """What polls cost: bytes of the list and of an article, and processor seconds.

    The defaults are what the figures of the loading paper come to.
    """

    index_kb: float = 200.0
    not_modified_kb: float = 0.5
    article_kb: float = 100.0
    poll_cpu_s: float = 2.0
    article_cpu_s: float = 1.0

    def megabytes(
        self, polls: int, empty: int, articles: int, *, has_validators: bool = False
    ) -> float:
        """Return the traffic; with validators an empty poll is answered 304.

        Examples
        --------
        >>> PageModel().megabytes(polls=144, empty=144, articles=0)
        28.8
        >>> PageModel().megabytes(polls=144, empty=144, articles=0, has_validators=True)
        0.072
        """
        empty_kb = self.not_modified_kb if has_validators else self.index_kb
        listed_kb = (polls - empty) * self.index_kb + empty * empty_kb
        return (listed_kb + articles * self.article_kb) / 1000.0

    def cpu_s(self, polls: int, articles: int) -> float:
        """Return the processor seconds."""
        return polls * self.poll_cpu_s + articles * self.article_cpu_s


@dataclass(frozen=True, slots=True)
class Replay:
    """What a policy did to one source.

    Attributes
    ----------
    polls_s
        Times of the polls, seconds since 1970.
    lags_s
        Publication lag of every loaded entry, from its appearance on, seconds.
    appeared_s
        When each of them appeared. Same shape.
    empty
        Polls that found nothing; those that failed are not among them.
    failed
        Polls while the source was down.
    lost
        Entries that scrolled off the list between two polls.
    waiting
        Entries that were out at the end, after the last poll.
    """

    polls_s: FloatArray = field(repr=False)
    lags_s: FloatArray = field(repr=False)
    appeared_s: FloatArray = field(repr=False)
    empty: int
    failed: int
    lost: int
    waiting: int


def replay_source(
    stamps_s: FloatArray,
    rule: Rule,
    *,
    start_s: float,
    end_s: float,
    first_s: float | None = None,
    timezone: str = "UTC",
    window: int = 30,
    state: State | None = None,
    appear_s: FloatArray | None = None,
    known_per_s: FloatArray | None = None,
    down_s: FloatArray | None = None,
) -> Replay:
    """Return what `rule` does to a source between two moments.

    Parameters
    ----------
    stamps_s
        Declared publication times in the order of appearance, seconds since 1970; those
        before `start_s` are known history (they fill the list, and nothing else: train
        with `train_state`).
    rule
        The policy.
    start_s, end_s
        The stretch polled.
    first_s
        The first poll; one first interval after `start_s` where None.
    timezone
        The source's IANA zone.
    window
        Entries the list holds.
    state
        What is known of the source at `start_s`; policies that poll by a forecast learn
        in it. A newborn where None.
    appear_s
        When each entry shows in the list, rising; at its stamp where None.
    known_per_s
        True rates, entries per second, hour by hour from the whole hour of `start_s` on:
        the forecast is these instead of the estimator's.
    down_s
        Rows ``(from, to)`` in which polls fail. A failed poll teaches nothing.
    """
    state = new_state(start_s) if state is None else state
    zone = zone_of("UTC" if known_per_s is not None else timezone, start_s, end_s)
    figures = np.zeros(1, dtype=_FIGURES)[0]
    for name in _FIGURES.names or ():
        figures[name] = getattr(rule, name)
    polls, lags, appeared, counts = _replay(
        POLICIES[rule.policy],
        ESTIMATORS[rule.estimator] if known_per_s is None else KNOWN,
        figures,
        safe_table(window),
        state,
        NONE if known_per_s is None else known_per_s,
        np.ascontiguousarray(stamps_s),
        np.ascontiguousarray(stamps_s if appear_s is None else appear_s),
        zone,
        NO_SPANS if down_s is None else down_s,
        start_s,
        start_s + rule.start_s if first_s is None else first_s,
        end_s,
        window,
    )
    return Replay(polls, lags, appeared, *map(int, counts))


def replay_warmed_up(
    stamps_s: FloatArray, rule: Rule, *, start_s: float, end_s: float, warm_up_s: float
) -> Replay:
    """Return a replay that polls every first interval until it has hours to start from.

    The way the loading paper's forecasts begin: after `warm_up_s` (whole days; whole
    weeks for Holt-Winters) the forecast is set from the hourly counts so far, and the
    rule takes over with the poll of that very moment.
    """
    until_s = start_s + warm_up_s
    last_s = until_s - rule.start_s
    beat = Rule("fixed", knob=rule.start_s, start_s=rule.start_s)
    beats = replay_source(stamps_s, beat, start_s=start_s, end_s=until_s)
    edges = np.arange(start_s, until_s + 1.0, HOUR_S)
    counts = np.diff(np.searchsorted(stamps_s, edges)).astype(np.float64)
    state = new_state(until_s)
    begin_ema(state, counts)
    if len(counts) % 168 == 0:
        begin_holtwinters(state, counts, hour_of_week(start_s))
    # Its first poll also shows entries of hours that are in the counts already.
    begin, end = np.searchsorted(stamps_s, [last_s, until_s])
    state["hour_count"] = -float(end - begin)
    ruled = replay_source(stamps_s, rule, start_s=last_s, end_s=end_s, state=state)
    return _joined(beats, ruled)


def _joined(first: Replay, second: Replay) -> Replay:
    return Replay(
        np.concatenate((first.polls_s, second.polls_s)),
        np.concatenate((first.lags_s, second.lags_s)),
        np.concatenate((first.appeared_s, second.appeared_s)),
        first.empty + second.empty,
        first.failed + second.failed,
        first.lost + second.lost,
        second.waiting,
    )


def train_state(
    stamps_s: FloatArray,
    start_s: float,
    end_s: float,
    timezone: str = "UTC",
    *,
    branching: float = 0.0,
    decay_s: float = 1800.0,
) -> State:
    """Return what a stretch of history teaches of a source, as if it had been polled hourly."""
    state = new_state(start_s)
    state["branching"], state["decay_s"] = branching, decay_s
    zone = zone_of(timezone, start_s, end_s)
    begin, end = np.searchsorted(stamps_s, [start_s, end_s])
    _train(state, start_s, end_s, zone, np.ascontiguousarray(stamps_s[begin:end]))
    return state


def zone_of(timezone: str, start_s: float, end_s: float) -> FloatArray:
    """Return the zone's table for the years of a stretch, and one on either side."""
    first = datetime.fromtimestamp(start_s, UTC).year - 1
    return zone_table(timezone, first, datetime.fromtimestamp(end_s, UTC).year + 1)


_FIGURES = np.dtype([(item.name, "f8") for item in fields(Rule) if item.type == "float"])
"""The numbers of a rule, as the compiled loop reads them."""


@compiled
def _train(
    state: State, start_s: float, end_s: float, zone: FloatArray, stamps: FloatArray
) -> None:
    at, since = 0, start_s
    while since < end_s:
        until = min(since + HOUR_S, end_s)
        begin = at
        while at < stamps.shape[0] and stamps[at] <= until:
            at += 1
        observe(state, since, until, zone, stamps[begin:at])
        since = until


@compiled
def _replay(
    policy: int,
    estimator: int,
    figures: State,
    safe: FloatArray,
    state: State,
    known: FloatArray,
    stamps: FloatArray,
    appear: FloatArray,
    zone: FloatArray,
    down: FloatArray,
    start_s: float,
    first_s: float,
    end_s: float,
    window: int,
) -> tuple[FloatArray, FloatArray, FloatArray, npt.NDArray[np.int64]]:
    """Poll until the end; return the polls, the lags, the appearances, and the counts."""
    memory = np.array([figures.start_s, start_s])
    rates, minutes, seconds = np.empty(FORECAST_HOURS), np.empty(60), np.empty(6)
    polls, n_polls = np.empty(1024), 0
    seen = int(np.searchsorted(appear, start_s, side="right"))
    lags, appeared, n_loaded = np.empty(len(appear) - seen), np.empty(len(appear) - seen), 0
    empty = failed = lost = 0
    before, now = start_s, first_s
    while now < end_s:
        if n_polls == polls.shape[0]:
            polls = np.concatenate((polls, np.empty(n_polls)))
        polls[n_polls] = now
        n_polls += 1
        is_down, found = _is_inside(down, now), 0
        if is_down:
            failed += 1
        else:
            begin = seen
            while seen < appear.shape[0] and appear[seen] <= now:
                seen += 1
            found = seen - begin
            empty += found == 0
            lost += max(found - window, 0)
            for entry in range(max(begin, seen - window), seen):
                lags[n_loaded] = now - appear[entry]
                appeared[n_loaded] = appear[entry]
                n_loaded += 1
            if policy >= COUNT:
                observe_lag(state, before, now, stamps[begin:seen])
                settled = settle_stamps(stamps[begin:seen], before, now, 0)
                observe(state, before, now, zone, settled)
            before = now
        if policy < COUNT:
            listed = stamps[max(seen - window, 0) : seen]
            wait = _reactive_wait(policy, figures, memory, found, is_down, now, listed)
        else:
            offset = offset_at(zone, now)
            hour_ends = next_hour(now + offset) - offset
            if estimator == KNOWN:
                _fill_known(known, int(now // HOUR_S - start_s // HOUR_S), rates)
            else:
                fill_rates(estimator, state, now, zone, rates)
            if policy == PLAN:
                fill_phase(state, minutes, seconds)
            wait = _forecast_wait(
                policy, figures, safe, state, now, rates, hour_ends, minutes, seconds, offset,
            )  # fmt: skip
        now += wait if policy == FIXED else min(max(wait, figures.floor_s), figures.ceiling_s)
    waiting = int(np.searchsorted(appear, end_s)) - seen
    counts = np.array([empty, failed, lost, waiting])
    return polls[:n_polls], lags[:n_loaded], appeared[:n_loaded], counts


@compiled
def _is_inside(spans: FloatArray, at_s: float) -> bool:
    is_inside = False
    for row in range(spans.shape[0]):
        is_inside |= bool(spans[row, 0] <= at_s < spans[row, 1])
    return is_inside


@compiled
def _fill_known(known: FloatArray, hour: int, rates_per_s: FloatArray) -> None:
    for ahead in range(rates_per_s.shape[0]):
        rates_per_s[ahead] = known[min(hour + ahead, known.shape[0] - 1)]


@compiled
def _reactive_wait(
    policy: int,
    figures: State,
    memory: FloatArray,
    found: int,
    is_down: bool,
    now_s: float,
    listed: FloatArray,
) -> float:
    """Return the wait by what polls found; ``memory[0]`` is the interval, where one is kept."""
    knob, floor_s, ceiling_s = figures.knob, figures.floor_s, figures.ceiling_s
    if policy == FIXED:
        return float(knob)
    if policy == MINIFLUX:
        return miniflux_interval(listed, now_s, knob, floor_s, ceiling_s)
    if policy == COMMAFEED:
        return commafeed_interval(listed, now_s, knob, floor_s, ceiling_s)
    if policy == MAVSYNC:
        return mavsync_interval(listed, now_s, knob, floor_s, ceiling_s)
    if is_down:
        return float(memory[0])
    if policy == NUTCH:
        up = figures.up * knob
        return nutch_interval(
            memory, found, now_s, up, figures.down, figures.sync, floor_s, ceiling_s
        )
    wait = next_interval(memory[0], found, knob, figures.up, figures.down)
    memory[0] = min(max(wait, floor_s), ceiling_s)
    return float(memory[0])


@compiled
def _forecast_wait(
    policy: int,
    figures: State,
    safe: FloatArray,
    state: State,
    now_s: float,
    rates: FloatArray,
    hour_ends_s: float,
    minutes: FloatArray,
    seconds: FloatArray,
    offset_s: float,
) -> float:
    """Return the wait by what is expected."""
    if policy == COUNT:
        return next_by_count(now_s, rates, hour_ends_s, figures.knob, figures.ceiling_s) - now_s
    excess = excess_at(state, now_s)
    price = fair_price(figures.knob, overall_per_hour(state), figures.fairness)
    most = most_entries(safe, state.branching, state.decay_s, rates[0])
    if policy == PRICE:
        at, _, _ = next_by_price(
            now_s, rates, hour_ends_s, excess, state.branching, state.decay_s,
            price, figures.empty_share, most, figures.ceiling_s,
        )  # fmt: skip
    else:
        at, _, _ = next_by_plan(
            now_s, rates, hour_ends_s, excess, state.branching, state.decay_s,
            price, figures.empty_share, most, figures.ceiling_s,
            minutes, seconds, offset_s, state.lag_s,
        )  # fmt: skip
    return float(at - now_s)
