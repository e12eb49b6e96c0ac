"""Holt-Winters by least squares: the smoothing constants and the state to begin from.

One pass over the hours of a source tells the squared one-step error of eight sets of
constants side by side (the processor computes them together), so a grid of 72 sets
costs nine passes and every step of the search after it, which tries a step up and down
in each of the four constants, costs one.
"""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np
import numpy.typing as npt

from models.compiled import compiled
from models.errors import InsufficientDataError
from models.intensity.state import FloatArray, State
from models.week import HOURS_PER_WEEK

BEGIN_HOURS = 2 * HOURS_PER_WEEK
"""Covered hours that level and seasons are set from: two weeks."""

ALPHAS = (0.003, 0.01, 0.03, 0.1)
BETAS = (1e-5, 1e-3)
GAMMAS = (0.01, 0.05, 0.15)
OMEGAS = (0.01, 0.05, 0.15)
"""The grid: 72 sets. Steps of the search are on the logit scale, from the best of them."""

LANES = 8
"""Sets computed side by side: one step up and one down in each of four constants."""

FIRST_STEP, LAST_STEP = 0.8, 0.05
MOST_ROUNDS = 24
LOWEST_LOGIT, HIGHEST_LOGIT = -14.0, 7.0
"""Constants stay between a millionth and 0.999."""

IntArray = npt.NDArray[np.int64]


@dataclass(frozen=True, slots=True)
class HoltWintersFit:
    """Fitted constants, and level and seasons at the end of the first two weeks.

    Attributes
    ----------
    alpha, beta, gamma, omega
        Smoothing constants of level, trend, day and week, all in (0, 1).
    squared_error
        Mean squared one-step error over the hours after the first two weeks; ``nan``
        where there are none, and the constants are the usual ones.
    begins
        Hour, counted from the first, from which on the model forecasts.
    level, day, week
        Where it begins; the trend begins at 0.
    """

    alpha: float
    beta: float
    gamma: float
    omega: float
    squared_error: float
    begins: int
    level: float
    day: FloatArray = field(repr=False)
    week: FloatArray = field(repr=False)

    def write_constants(self, state: State) -> None:
        """Put the constants into a source's state."""
        state["hw_alpha"], state["hw_beta"] = self.alpha, self.beta
        state["hw_gamma"], state["hw_omega"] = self.gamma, self.omega

    def write_beginning(self, state: State) -> None:
        """Put level and seasons of the first two weeks into a source's state."""
        state["hw_level"], state["hw_trend"] = self.level, 0.0
        state["hw_day"], state["hw_week"] = self.day, self.week


def fit_holtwinters(
    counts: FloatArray, hours: IntArray, *, has_week: bool = True
) -> HoltWintersFit:
    """Return the constants of least squared one-step error.

    Parameters
    ----------
    counts
        Entries of successive hours; ``nan`` for an hour that nobody watched whole.
    hours
        Hour of the week of each, 0 to 167. Same shape.
    has_week
        False leaves the weekly season out.

    Raises
    ------
    InsufficientDataError
        If fewer than two weeks of hours were watched.

    Notes
    -----
    About 25 passes over the data, each some 4 ns for an hour and a set of constants.
    """
    watched = np.flatnonzero(~np.isnan(counts))
    if len(watched) < BEGIN_HOURS:
        raise InsufficientDataError(BEGIN_HOURS, len(watched))
    begins = int(watched[BEGIN_HOURS - 1]) + 1
    level, day, week = _begin(counts[:begins], hours[:begins], has_week)
    n_judged = len(watched) - BEGIN_HOURS
    if n_judged == 0:
        return HoltWintersFit(0.05, 0.001, 0.1, 0.1, np.nan, begins, level, day, week)
    logits, error = _search(
        np.ascontiguousarray(counts),
        np.ascontiguousarray(hours),
        begins,
        level,
        day,
        week,
        has_week,
    )
    alpha, beta, gamma, omega = (float(value) for value in 1.0 / (1.0 + np.exp(-logits)))
    omega = omega if has_week else 0.0
    return HoltWintersFit(
        alpha, beta, gamma, omega, float(error) / n_judged, begins, level, day, week
    )


def _begin(
    counts: FloatArray, hours: IntArray, has_week: bool
) -> tuple[float, FloatArray, FloatArray]:
    """Return level, daily and weekly season of the first hours."""
    is_watched = ~np.isnan(counts)
    counts, hours = counts[is_watched], hours[is_watched]
    level = float(counts.mean())
    day = _means(counts - level, hours % 24, 24)
    week = _means(counts - level - day[hours % 24], hours, HOURS_PER_WEEK)
    return level, day, week if has_week else np.zeros(HOURS_PER_WEEK)


def _means(values: FloatArray, places: IntArray, n: int) -> FloatArray:
    """Return the mean of the values at each place; 0 where there are none."""
    sums = np.bincount(places, values, minlength=n)
    sizes = np.bincount(places, minlength=n)
    return np.asarray(sums / np.maximum(sizes, 1), dtype=np.float64)


@compiled
def _search(
    counts: FloatArray,
    hours: IntArray,
    begins: int,
    level: float,
    day: FloatArray,
    week: FloatArray,
    has_week: bool,
) -> tuple[FloatArray, float]:
    """Return the logits of the best constants, and the sum of squared errors."""
    tried, errors = np.empty((4, LANES)), np.empty(LANES)
    best, least = np.empty(4), np.inf
    lane = 0
    for alpha in ALPHAS:
        for beta in BETAS:
            for gamma in GAMMAS:
                for omega in OMEGAS:
                    tried[0, lane] = np.log(alpha / (1.0 - alpha))
                    tried[1, lane] = np.log(beta / (1.0 - beta))
                    tried[2, lane] = np.log(gamma / (1.0 - gamma))
                    tried[3, lane] = np.log(omega / (1.0 - omega))
                    lane += 1
                    if lane == LANES:
                        _errors(counts, hours, begins, level, day, week, has_week, tried, errors)
                        least = _take_best(tried, errors, best, least)
                        lane = 0
    step = FIRST_STEP
    for _ in range(MOST_ROUNDS):
        for constant in range(4):
            for side in range(2):
                lane = 2 * constant + side
                for other in range(4):
                    tried[other, lane] = best[other]
                moved = best[constant] + (step if side else -step)
                tried[constant, lane] = min(max(moved, LOWEST_LOGIT), HIGHEST_LOGIT)
        _errors(counts, hours, begins, level, day, week, has_week, tried, errors)
        before = least
        least = _take_best(tried, errors, best, least)
        # A step that gains next to nothing is not worth another of its size.
        if least > before * (1.0 - 1e-6):
            step *= 0.5
            if step < LAST_STEP:
                break
    return best, least


@compiled
def _take_best(tried: FloatArray, errors: FloatArray, best: FloatArray, least: float) -> float:
    for lane in range(LANES):
        if errors[lane] < least:
            least = errors[lane]
            for constant in range(4):
                best[constant] = tried[constant, lane]
    return least


@compiled
def _errors(
    counts: FloatArray,
    hours: IntArray,
    begins: int,
    level: float,
    day: FloatArray,
    week: FloatArray,
    has_week: bool,
    logits: FloatArray,
    errors: FloatArray,
) -> None:
    """Fill in the sum of squared one-step errors of each set of constants.

    An hour that nobody watched moves the level along its trend, and nothing else.
    """
    alpha, beta = np.empty(LANES), np.empty(LANES)
    gamma, omega = np.empty(LANES), np.empty(LANES)
    levels, trends = np.empty(LANES), np.zeros(LANES)
    days, weeks = np.empty((24, LANES)), np.empty((HOURS_PER_WEEK, LANES))
    for lane in range(LANES):
        alpha[lane] = 1.0 / (1.0 + np.exp(-logits[0, lane]))
        beta[lane] = 1.0 / (1.0 + np.exp(-logits[1, lane]))
        gamma[lane] = 1.0 / (1.0 + np.exp(-logits[2, lane]))
        omega[lane] = 1.0 / (1.0 + np.exp(-logits[3, lane])) if has_week else 0.0
        levels[lane], errors[lane] = level, 0.0
        for hour in range(24):
            days[hour, lane] = day[hour]
        for hour in range(HOURS_PER_WEEK):
            weeks[hour, lane] = week[hour]
    for at in range(begins, counts.shape[0]):
        count = counts[at]
        if np.isnan(count):
            for lane in range(LANES):
                levels[lane] += trends[lane]
            continue
        of_day, of_week = days[hours[at] % 24], weeks[hours[at]]
        for lane in range(LANES):
            ahead, d, w = levels[lane] + trends[lane], of_day[lane], of_week[lane]
            error = count - ahead - d - w
            errors[lane] += error * error
            new = alpha[lane] * (count - d - w) + (1.0 - alpha[lane]) * ahead
            trends[lane] = beta[lane] * (new - levels[lane]) + (1.0 - beta[lane]) * trends[lane]
            new_day = gamma[lane] * (count - new - w) + (1.0 - gamma[lane]) * d
            of_week[lane] = omega[lane] * (count - new - new_day) + (1.0 - omega[lane]) * w
            of_day[lane] = new_day
            levels[lane] = new
