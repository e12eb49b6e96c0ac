"""Which estimator and which policy suit a source, by weeks that neither was fitted on.

Estimators are compared by the deviance of their forecasts one hour ahead. Holt-Winters
takes the place of the weekly profile only where it misses 2 % less, and less on so many
days that chance does not explain it, and where polling by it would have saved lag too:
on real traces every other source that passed the first test alone was polled worse.

``plan`` is considered only for a source whose habits within the hour foretold stamps
they were not counted from (`models.intensity.phase.fit_trust`). There both policies are
replayed at equal polls. A replay of some hundred entries leaves a doubt of several
percent, so the gain it shows is weighed against what such sources usually gain; ``plan``
is taken where more than 2 % is to be expected. On real traces that left 1 % of the lag
on the table, where asking for a proof of each source alone left 6 to 9 %.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from functools import lru_cache

import numpy as np
from scipy.stats import t as student_t

from models.intensity.estimator import ESTIMATORS
from models.intensity.fitting import FittedState
from models.intensity.history import History
from models.intensity.state import FloatArray, State
from models.simulator import Replay, Rule, replay_source
from models.week import HOUR_S

LEAST_GAIN = 0.02
"""A rival must be better by this share: less is not worth a change."""

CONFIDENCE = 0.95
"""Chance below which a gain as steady is not taken for real."""

BLOCK_HOURS = 24
"""Estimators are compared day by day: an hour is too like the next one to count apart."""

N_BLOCKS = 10
"""Parts that the time of a policy comparison is cut into, to see how far they agree."""

PLAN_GAIN, HOLT_WINTERS_GAIN, GAIN_SD = 0.10, -0.10, 0.10
"""Lag that ``plan`` usually saves sources with proven habits, and polling by Holt-Winters
any source (it costs), and how much that differs."""

MOST_DOUBT = 0.3
"""Doubt in a gain where its parts cannot be told apart."""

LEAST_BLOCKS = 5
"""Fewer days, or parts with entries in them, prove nothing."""

MOST_ENTRIES = 400
"""A policy comparison ends after so many entries: more would not change its verdict."""

LEAST_ENTRIES = 40
"""Fewer say nothing of a lag."""

TUNING_ROUNDS = 3
"""Replays of ``price`` that search the polls ``plan`` made; the rest is reckoned."""

LEAST_EXPECTED = 0.02
"""A forecast counts as at least this part of the usual rate: none may expect nothing."""

ABSURD_FACTOR = 20.0
"""A forecast of this many times the busiest hour ever seen is a fault of the fit."""

USUAL_PRICE = 300.0
"""Entry-seconds a poll must save, where no budget has said otherwise."""


@dataclass(frozen=True, slots=True)
class EstimatorScore:
    """How well an estimator foretold the held-out hours.

    Attributes
    ----------
    deviance
        Mean Poisson deviance of an hour: 0 is perfect.
    mean_error
        Mean absolute error, entries per hour.
    explained
        Share of the deviance of a constant rate that it explains; 0 is no better than the
        mean, 1 perfect. Quiet sources have mostly chance to show, so it stays small.
    """

    deviance: float
    mean_error: float
    explained: float


@dataclass(frozen=True, slots=True)
class Comparison:
    """What two ways to poll a source would have come to at equal polls.

    Attributes
    ----------
    usual_lag_s, rival_lag_s
        Mean lag over the same entries, in seconds.
    polls_per_day
        Polls a day, of both.
    n_entries
        Entries compared.
    gain
        Share of the lag that the rival saved; negative where it cost.
    doubt
        Standard error of the gain.
    expected_gain
        What is to be expected, given both and what such a rival usually gains.
    """

    usual_lag_s: float
    rival_lag_s: float
    polls_per_day: float
    n_entries: int
    gain: float
    doubt: float
    expected_gain: float


@dataclass(frozen=True, slots=True)
class Choice:
    """What a source is polled by, and why.

    Attributes
    ----------
    estimator, policy
        Their names.
    note
        The reasons, in words.
    scores
        Of the estimators that could be judged, by name.
    policies
        None where they could not be compared, or ``plan`` has nothing to aim at.
    """

    estimator: str
    policy: str
    note: str
    scores: dict[str, EstimatorScore] = field(default_factory=dict)
    policies: Comparison | None = None


def score_estimators(fit: FittedState) -> dict[str, EstimatorScore]:
    """Return the scores of the estimators over held-out hours; none where there are none."""
    if fit.held_out is None:
        return {}
    counts, forecasts = _judged(fit)
    if not len(counts):
        return {}
    usual = max(float(counts.mean()), 1e-9)
    alone = float(_deviance(counts, np.full(len(counts), usual)).mean())
    scores = {}
    for name, column in ESTIMATORS.items():
        expected = forecasts[:, column]
        if not np.isfinite(expected).all() or (name == "holt-winters" and not fit.holtwinters):
            continue
        deviance = float(_deviance(counts, expected).mean())
        error = float(np.abs(counts - expected).mean())
        explained = 1.0 - deviance / alone if alone > 0.0 else 0.0
        scores[name] = EstimatorScore(deviance, error, explained)
    return scores


def choose_estimator(
    history: History, fit: FittedState, price: float = USUAL_PRICE
) -> tuple[str, str]:
    """Return the estimator a source is forecast by, and why.

    Parameters
    ----------
    price
        As in :func:`compare_rules`.
    """
    scores = score_estimators(fit)
    if "weekly" not in scores:
        return "weekly", "weekly profile: too young to hold weeks out"
    if "holt-winters" not in scores or not _foretells_better(fit, scores):
        return "weekly", "weekly profile"
    rival = Rule("price", "holt-winters", knob=price)
    found = compare_rules(
        history, fit, replace(rival, estimator="weekly"), rival, HOLT_WINTERS_GAIN
    )
    if found is None or found.expected_gain <= LEAST_GAIN:
        return "weekly", "weekly profile"
    return "holt-winters", f"holt-winters: {100 * found.gain:.0f} % less lag than by weekly profile"


def _foretells_better(fit: FittedState, scores: dict[str, EstimatorScore]) -> bool:
    """Return whether Holt-Winters misses clearly less than the weekly profile."""
    usual, rival = scores["weekly"].deviance, scores["holt-winters"].deviance
    if rival >= (1.0 - LEAST_GAIN) * usual:
        return False
    counts, forecasts = _judged(fit)
    by_day = [
        _by_blocks(_deviance(counts, forecasts[:, ESTIMATORS[name]]))
        for name in ("weekly", "holt-winters")
    ]
    return is_steady(by_day[0] - by_day[1])


def _judged(fit: FittedState) -> tuple[FloatArray, FloatArray]:
    """Return counts and forecasts of the held-out hours that were watched whole."""
    assert fit.held_out is not None
    is_watched = ~np.isnan(fit.held_out.counts)
    return fit.held_out.counts[is_watched], fit.held_out.forecasts[is_watched]


def _deviance(counts: FloatArray, expected: FloatArray) -> FloatArray:
    """Return the Poisson deviance of every hour."""
    floor = max(LEAST_EXPECTED * float(counts.mean()), 1e-4)
    expected = np.maximum(expected, floor)
    log_ratio = np.log(np.maximum(counts, 1.0) / expected)
    return np.asarray(2.0 * (np.where(counts > 0, counts * log_ratio, 0.0) - counts + expected))


def _by_blocks(values: FloatArray) -> FloatArray:
    """Return the sums of successive days."""
    return np.add.reduceat(values, np.arange(0, len(values), BLOCK_HOURS))


def is_steady(gains: FloatArray) -> bool:
    """Return whether paired gains are above zero by more than chance explains.

    A one-sided t-test at 95 %.

    Examples
    --------
    >>> bool(is_steady(np.array([1.0, 1.2, 0.8, 1.1, 0.9])))
    True
    >>> bool(is_steady(np.array([5.0, -4.0, 3.0, -3.5, 0.5])))
    False
    """
    n = len(gains)
    if n < LEAST_BLOCKS:
        return False
    error = float(gains.std(ddof=1)) / math.sqrt(n)
    return float(gains.mean()) > _t_quantile(n - 1) * error


@lru_cache(maxsize=512)
def _t_quantile(freedom: int) -> float:
    return float(student_t.ppf(CONFIDENCE, freedom))


def compare_policies(
    history: History, fit: FittedState, estimator: str = "weekly", price: float = USUAL_PRICE
) -> Comparison | None:
    """Return what ``price`` and ``plan`` lead to on the held-out weeks, at equal polls.

    Parameters
    ----------
    estimator
        Whose forecast both poll by.
    price
        Entry-seconds that a poll of ``plan`` must save.

    Returns
    -------
    Comparison or None
        None where too few entries came out.
    """
    plan = Rule("plan", estimator, knob=price)
    return compare_rules(history, fit, replace(plan, policy="price"), plan, PLAN_GAIN)


def compare_rules(
    history: History, fit: FittedState, usual: Rule, rival: Rule, usual_gain: float
) -> Comparison | None:
    """Return what two rules lead to on the held-out weeks, at the polls of `rival`.

    Parameters
    ----------
    usual
        Its price is tuned until it makes as many polls; what is left of the difference
        is reckoned: lag times polls is what a rule has of its own.
    usual_gain
        What such a rival usually gains.
    """
    held = fit.held_out
    if held is None:
        return None
    begin = int(np.searchsorted(history.stamps_s, held.start_s))
    n_entries = min(len(history.stamps_s) - begin, MOST_ENTRIES)
    if n_entries < LEAST_ENTRIES:
        return None
    end_s = min(float(history.stamps_s[begin + n_entries - 1]) + HOUR_S, history.end_s)
    stretch = _Stretch(history, held.state, held.start_s, end_s)
    wanted = stretch.replay(rival)
    knob, tuned = usual.knob, wanted
    for _ in range(TUNING_ROUNDS):
        tuned = stretch.replay(replace(usual, knob=knob))
        ratio = len(tuned.polls_s) / max(len(wanted.polls_s), 1)
        if abs(ratio - 1.0) < 0.01:
            break
        knob *= ratio**2
    return stretch.compare(tuned, wanted, usual_gain)


@dataclass(frozen=True, slots=True)
class _Stretch:
    """The held-out time on which policies are replayed."""

    history: History
    state: State
    start_s: float
    end_s: float

    def replay(self, rule: Rule) -> Replay:
        return replay_source(
            self.history.stamps_s,
            rule,
            start_s=self.start_s,
            end_s=self.end_s,
            timezone=self.history.timezone,
            state=self.state.copy(),
        )

    def compare(self, usual: Replay, rival: Replay, usual_gain: float) -> Comparison | None:
        """Return both lags at the polls of `rival`."""
        if not (len(usual.lags_s) and len(rival.lags_s)):
            return None
        scale = len(usual.polls_s) / len(rival.polls_s)
        usual_lag_s, rival_lag_s = float(usual.lags_s.mean()) * scale, float(rival.lags_s.mean())
        gain = 1.0 - rival_lag_s / usual_lag_s if usual_lag_s > 0.0 else 0.0
        doubt = _doubt(scale * self._by_parts(usual), self._by_parts(rival), gain)
        return Comparison(
            usual_lag_s,
            rival_lag_s,
            len(rival.polls_s) / ((self.end_s - self.start_s) / 86_400.0),
            len(rival.lags_s),
            gain,
            doubt,
            shrink_gain(gain, doubt, usual_gain),
        )

    def _by_parts(self, replay: Replay) -> FloatArray:
        """Return the sum of the lags of the entries of each part of the stretch."""
        edges = np.linspace(self.start_s, self.end_s, N_BLOCKS + 1)
        part = np.clip(np.searchsorted(edges, replay.appeared_s, side="right") - 1, 0, N_BLOCKS - 1)
        return np.asarray(np.bincount(part, replay.lags_s, minlength=N_BLOCKS), dtype=np.float64)


def _doubt(usual: FloatArray, rival: FloatArray, gain: float) -> float:
    """Return the standard error of a gain, by how far the parts of the time agree on it."""
    is_seen = usual > 0.0
    n = int(is_seen.sum())
    if n < LEAST_BLOCKS:
        return MOST_DOUBT
    apart = (usual * (1.0 - gain) - rival)[is_seen]
    return math.sqrt(n / (n - 1) * float((apart**2).sum())) / float(usual.sum())


def shrink_gain(gain: float, doubt: float, usual_gain: float = PLAN_GAIN) -> float:
    """Return the gain to be expected, given a measured one and its standard error.

    The measure and the usual gain, weighted by how sure they are.

    Examples
    --------
    >>> round(shrink_gain(0.0, doubt=0.05), 3), round(shrink_gain(0.0, doubt=0.01), 3)
    (0.02, 0.001)
    """
    measured, usual = 1.0 / max(doubt, 1e-3) ** 2, 1.0 / GAIN_SD**2
    return (gain * measured + usual_gain * usual) / (measured + usual)


def choose_policy(score: Comparison | None, aims: bool) -> tuple[str, str]:
    """Return the policy of a source and why.

    Parameters
    ----------
    aims
        Whether the source has habits within the hour to aim at.
    """
    if not aims:
        return "price", "price: no minute of the hour stands out"
    if score is None:
        return "price", "price: not compared with plan yet"
    share = f"{abs(100 * score.gain):.0f} % {'less' if score.gain >= 0 else 'more'} lag"
    if score.expected_gain > LEAST_GAIN:
        return "plan", f"plan: {share} than price at equal polls"
    return "price", f"price: plan had {share} at equal polls"


def check_forecast(expected: Sequence[float] | FloatArray, largest_per_hour: float) -> str:
    """Return what is wrong with a forecast, in words; ``""`` where it can be used.

    Examples
    --------
    >>> check_forecast([1.0, 2.0], largest_per_hour=9.0)
    ''
    >>> check_forecast([1.0, float("nan")], largest_per_hour=9.0)
    'not a number in an hour'
    >>> check_forecast([1.0, 900.0], largest_per_hour=9.0)
    '900 entries in an hour, where the busiest ever had 9'
    """
    values = np.asarray(expected, dtype=np.float64)
    if not np.isfinite(values).all():
        return "not a number in an hour"
    if values.min(initial=0.0) < 0.0:
        return "fewer than no entries in an hour"
    most = values.max(initial=0.0)
    if most > ABSURD_FACTOR * max(largest_per_hour, 1.0):
        return f"{most:.0f} entries in an hour, where the busiest ever had {largest_per_hour:.0f}"
    return ""
