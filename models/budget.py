"""One price for everything: what a budget, or a promised lag, makes a poll worth.

At price *c* a source of intensity ``lambda(t)`` and weight *w* is polled at density
``sqrt(w lambda / 2c)``, and its entries wait ``sqrt(c / 2 w lambda)`` on average. Both
are known for every hour of the week from the forecasts, so the price that meets a
budget, or a lag, can be solved for at once; what polls really cost then corrects it.
Hours lend to each other by themselves: the price is the same at noon and at night.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np

from models.compiled import compiled
from models.intensity.state import FloatArray, State
from models.intensity.weekly import level_of, overall_per_hour, profile_per_hour
from models.week import HOURS_PER_WEEK

LOWEST_PRICE, HIGHEST_PRICE = 1e-2, 1e9
"""Entry-seconds a poll; the search never leaves these."""

HALVINGS = 36
"""Of the range of prices: to a millionth of a price."""

CORRECTION_LIMITS = (0.25, 4.0)
"""How far what was really spent may move the price in one step."""


@dataclass(frozen=True, slots=True)
class Demand:
    """What one source asks of the budget.

    Attributes
    ----------
    rates_per_h
        Expected entries per hour for each hour of the week. Shape ``(168,)``.
    weight
        Importance.
    cost
        What one poll costs, in the budget's currency (1 for polls, megabytes for MB).
    floor_s, ceiling_s
        Shortest and longest wait.
    """

    rates_per_h: FloatArray
    weight: float = 1.0
    cost: float = 1.0
    floor_s: float = 60.0
    ceiling_s: float = 86_400.0


@dataclass(frozen=True, slots=True)
class Spending:
    """What a price leads to.

    Attributes
    ----------
    price
        Entry-seconds a poll must save, per unit of its cost.
    per_day
        Cost of all polls of a day, in the budget's currency.
    polls_per_day
        Polls of a day.
    mean_lag_s
        Mean wait of an entry until the poll that finds it.
    """

    price: float
    per_day: float
    polls_per_day: float
    mean_lag_s: float


def weekly_rates(state: State) -> FloatArray:
    """Return a source's expected entries per hour for each hour of the week, level included."""
    rates = np.empty(HOURS_PER_WEEK)
    _fill_week(state, rates)
    return rates


@compiled
def _fill_week(state: State, rates: FloatArray) -> None:
    overall, level = overall_per_hour(state), level_of(state)
    for hour in range(HOURS_PER_WEEK):
        rates[hour] = level * profile_per_hour(state, hour, overall)


@dataclass(frozen=True, slots=True)
class _Columns:
    """Many demands as arrays: rates ``(n, 168)``, the others ``(n, 1)``."""

    rates_per_h: FloatArray
    weight: FloatArray
    cost: FloatArray
    floor_s: FloatArray
    ceiling_s: FloatArray


def _columns(demands: Sequence[Demand]) -> _Columns:
    def column(name: str) -> FloatArray:
        return np.array([[getattr(demand, name)] for demand in demands])

    return _Columns(
        np.array([demand.rates_per_h for demand in demands]),
        *(column(name) for name in ("weight", "cost", "floor_s", "ceiling_s")),
    )


def expected_spending(demands: Sequence[Demand], price: float) -> Spending:
    """Return what a day costs and how long entries wait, at `price`.

    Examples
    --------
    One source, one entry an hour, polled every half hour: a quarter of an hour's wait.

    >>> spending = expected_spending([Demand(np.full(168, 1.0))], price=450.0)
    >>> round(spending.polls_per_day), round(spending.mean_lag_s)
    (48, 900)
    """
    if not demands:
        return Spending(price, 0.0, 0.0, math.nan)
    return _spending(_columns(demands), price)


def _spending(demands: _Columns, price: float) -> Spending:
    per_s = np.maximum(demands.weight * demands.rates_per_h / 3600.0, 1e-12)
    gaps_s = np.sqrt(2.0 * price * demands.cost / per_s)
    gaps_s = np.clip(gaps_s, demands.floor_s, demands.ceiling_s)
    per_day = (3600.0 / gaps_s).sum(axis=1, keepdims=True) / 7.0
    entries = float(demands.rates_per_h.sum())
    waited = float((demands.rates_per_h * gaps_s).sum()) / 2.0
    return Spending(
        price,
        float((per_day * demands.cost).sum()),
        float(per_day.sum()),
        waited / entries if entries else math.nan,
    )


def price_for_budget(demands: Sequence[Demand], per_day: float) -> Spending:
    """Return the price at which a day costs `per_day`.

    Floors and ceilings bound what any price can do: then the nearest there is.
    """
    return _search(demands, lambda spending: spending.per_day > per_day)


def price_for_lag(demands: Sequence[Demand], mean_lag_s: float) -> Spending:
    """Return the highest price at which entries wait `mean_lag_s` at most, on average."""
    return _search(demands, lambda spending: spending.mean_lag_s < mean_lag_s)


def corrected(price: float, spent: float, planned: float) -> float:
    """Return the price moved by what was really spent: polls go with one over its root.

    Examples
    --------
    >>> corrected(100.0, spent=110.0, planned=100.0)
    121.0
    """
    if planned <= 0.0 or spent <= 0.0:
        return price
    low, high = CORRECTION_LIMITS
    factor = min(max((spent / planned) ** 2, low), high)
    return round(price * factor, 9)


def _search(demands: Sequence[Demand], is_too_cheap: Callable[[Spending], bool]) -> Spending:
    """Return the price at which spending turns from too much to little enough."""
    if not demands:
        return Spending(HIGHEST_PRICE, 0.0, 0.0, math.nan)
    columns = _columns(demands)
    low, high = math.log(LOWEST_PRICE), math.log(HIGHEST_PRICE)
    for _ in range(HALVINGS):
        middle = 0.5 * (low + high)
        if is_too_cheap(_spending(columns, math.exp(middle))):
            low = middle
        else:
            high = middle
    return _spending(columns, math.exp(0.5 * (low + high)))


MOST_LATE_SHARE = 0.1
"""Above this share of late polls, more is due than can be made."""

FEW_LATE_SHARE = 0.01
DEARER, CHEAPER = 1.5, 1.2
MOST_OVERLOAD = 1e4


def overload(before: float, late_share: float) -> float:
    """Return what overload multiplies the price by: up while polls are late, then slowly back.

    Parameters
    ----------
    before
        The factor until now, >= 1.
    late_share
        Share of the polls since then that began late.

    Examples
    --------
    >>> overload(1.0, 0.5), overload(1.5, 0.05), overload(1.5, 0.0), overload(1.1, 0.0)
    (1.5, 1.5, 1.25, 1.0)
    """
    if late_share > MOST_LATE_SHARE:
        return min(before * DEARER, MOST_OVERLOAD)
    return max(before / CHEAPER, 1.0) if late_share < FEW_LATE_SHARE else before
