"""One price for everything: what a budget, or a promised lag, makes a poll worth.

At price *c* a source of intensity ``lambda(t)`` and weight *w* is polled at density
``sqrt(w lambda / 2c)``, and its entries wait ``sqrt(c / 2 w lambda)`` on average. Both
are known for every hour of the week from the forecasts, so the price that meets a
budget, or a lag, can be solved for at once; what polls really cost then corrects it.
Hours lend to each other by themselves: the price is the same at noon and at night.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from models.intensity.state import FloatArray, State
from models.intensity.weekly import level_of, overall_per_hour, profile_per_hour
from models.week import HOURS_PER_WEEK

LOWEST_PRICE, HIGHEST_PRICE = 1e-2, 1e9
"""Entry-seconds a poll; the search never leaves these."""

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
    overall, level = overall_per_hour(state), level_of(state)
    return np.array(
        [level * profile_per_hour(state, hour, overall) for hour in range(HOURS_PER_WEEK)]
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
    polls = cost = waited = entries = 0.0
    for demand in demands:
        per_s = demand.weight * demand.rates_per_h / 3600.0
        gaps_s = np.sqrt(2.0 * price * demand.cost / np.maximum(per_s, 1e-12))
        gaps_s = np.clip(gaps_s, demand.floor_s, demand.ceiling_s)
        per_day = float((3600.0 / gaps_s).sum()) / 7.0
        polls += per_day
        cost += per_day * demand.cost
        waited += float((demand.rates_per_h * gaps_s / 2.0).sum())
        entries += float(demand.rates_per_h.sum())
    return Spending(price, cost, polls, waited / entries if entries else math.nan)


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


def _search(demands: Sequence[Demand], is_too_cheap: object) -> Spending:
    assert callable(is_too_cheap)
    low, high = math.log(LOWEST_PRICE), math.log(HIGHEST_PRICE)
    for _ in range(60):
        middle = 0.5 * (low + high)
        if is_too_cheap(expected_spending(demands, math.exp(middle))):
            low = middle
        else:
            high = middle
    return expected_spending(demands, math.exp(0.5 * (low + high)))
