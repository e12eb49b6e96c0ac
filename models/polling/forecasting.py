"""Policies that poll by a forecast: price, plan, and the paper's count rules.

They share a `Basis`: the forecast, the price, and what a list can hold. A policy turns
it into a wish with a sentence people can read.
"""

from __future__ import annotations

import math
from dataclasses import asdict, dataclass
from typing import Any

from models.intensity.forecast import Forecast
from models.polling.count import next_by_count
from models.polling.moment import Moment, Wish
from models.polling.plan import HORIZON_GAPS, next_by_plan
from models.polling.price import next_by_price

BUSY, QUIET = 1.5, 0.5
"""Rate of the hour over the usual one from which it is called busy, or quiet."""


@dataclass(frozen=True, slots=True)
class Basis:
    """What a forecast-based decision stands on.

    Attributes
    ----------
    price
        Entry-seconds of waiting that a poll of this source must save (the common price
        over the source's weight).
    empty_share
        Cost of an empty poll as a share of a full one.
    most_entries
        Expected entries at which its list may overflow.
    ceiling_s
        Longest wait.
    wanted
        Entries a poll should find, for the count rules.
    chosen
        Policy that the nightly refit chose for this source, used where its rules say ``auto``.
    """

    forecast: Forecast
    price: float
    chosen: str = "price"
    empty_share: float = 1.0
    most_entries: float = 10.0
    ceiling_s: float = 86_400.0
    wanted: float = 1.2

    def as_inputs(self) -> dict[str, Any]:
        """Return the fields as JSON-ready values; :meth:`read_inputs` reads them back."""
        return {**asdict(self), "forecast": self.forecast.as_inputs()}

    @classmethod
    def read_inputs(cls, inputs: dict[str, Any]) -> Basis:
        """Return the basis that :meth:`as_inputs` wrote."""
        return cls(**{**inputs, "forecast": Forecast.read_inputs(inputs["forecast"])})


@dataclass(frozen=True, slots=True)
class PricePolicy:
    """Poll when the expected waiting of unseen entries reaches the price."""

    basis: Basis
    name: str = "price"

    def choose_next(self, moment: Moment) -> Wish:
        """Return when the price is reached; the forecast must be of the moment itself."""
        basis, forecast = self.basis, self.basis.forecast
        due_s, entries, _ = next_by_price(
            moment.now_s, forecast.rates(), forecast.first_hour_ends_s, forecast.excess_per_s,
            forecast.branching, forecast.decay_s, basis.price, basis.empty_share,
            basis.most_entries, basis.ceiling_s,
        )  # fmt: skip
        return Wish(due_s, describe(basis, entries))

    def hours_used(self, moment: Moment) -> int:
        """Return how many of the forecast's hours the decision looks at: those of the wait."""
        return math.ceil((self.choose_next(moment).due_s - moment.now_s) / 3600.0) + 1


@dataclass(frozen=True, slots=True)
class PlanPolicy:
    """The price, with an eye on the minutes and seconds at which the source publishes."""

    basis: Basis
    name: str = "plan"

    def choose_next(self, moment: Moment) -> Wish:
        """Return the first poll of the cheapest series over the next few gaps."""
        basis, forecast = self.basis, self.basis.forecast
        minutes, seconds = forecast.shapes()
        due_s, entries, _ = next_by_plan(
            moment.now_s, forecast.rates(), forecast.first_hour_ends_s, forecast.excess_per_s,
            forecast.branching, forecast.decay_s, basis.price, basis.empty_share,
            basis.most_entries, basis.ceiling_s, minutes, seconds, forecast.offset_s,
            forecast.lag_s,
        )  # fmt: skip
        aimed = ", aimed at its minutes" if forecast.phase_trust > 0.0 else ""
        return Wish(due_s, describe(basis, entries) + aimed)

    def hours_used(self, moment: Moment) -> int:
        """Return how many of the forecast's hours the decision looks at: its horizon."""
        gap_s = PricePolicy(self.basis).choose_next(moment).due_s - moment.now_s
        return math.ceil(HORIZON_GAPS * gap_s / 3600.0) + 2


@dataclass(frozen=True, slots=True)
class CountPolicy:
    """Poll when a number of entries is expected: ``ema`` and ``holt-winters`` of the paper."""

    basis: Basis
    name: str

    def choose_next(self, moment: Moment) -> Wish:
        """Return when the wanted entries are expected to be out."""
        basis, forecast = self.basis, self.basis.forecast
        due_s = next_by_count(
            moment.now_s, forecast.rates(), forecast.first_hour_ends_s, basis.wanted,
            basis.ceiling_s,
        )  # fmt: skip
        return Wish(due_s, describe(basis, basis.wanted))

    def hours_used(self, moment: Moment) -> int:
        """Return how many of the forecast's hours the decision looks at: those of the wait."""
        return math.ceil((self.choose_next(moment).due_s - moment.now_s) / 3600.0) + 1


ForecastPolicy = PricePolicy | PlanPolicy | CountPolicy


def make_forecast_policy(name: str, basis: Basis) -> ForecastPolicy:
    """Return the policy called `name`; ``ema`` and ``holt-winters`` are count rules."""
    if name == "price":
        return PricePolicy(basis)
    if name == "plan":
        return PlanPolicy(basis)
    return CountPolicy(basis, name)


def describe(basis: Basis, entries: float) -> str:
    """Return why the next poll is then: ``1.8 entries expected, a busy hour``."""
    forecast = basis.forecast
    now_per_hour = forecast.rates_per_s[0] * 3600.0
    hour = ""
    if now_per_hour >= BUSY * forecast.usual_per_hour:
        hour = ", a busy hour"
    elif now_per_hour <= QUIET * forecast.usual_per_hour:
        hour = ", a quiet hour"
    burst = ""
    if forecast.excess_per_s > forecast.branching * forecast.rates_per_s[0]:
        burst = ", a burst under way"
    full = ", before its list overflows" if entries >= 0.99 * basis.most_entries else ""
    note = f"; {forecast.note}" if forecast.note else ""
    number = f"{entries:.1f}" if entries >= 0.095 else f"{entries:.2f}"
    return f"{number} entries expected{hour}{burst}{full}{note}"
