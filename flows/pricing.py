"""What a poll is worth now: the one price, kept in line with the user's budget."""

from __future__ import annotations

import math
from collections.abc import Iterable
from datetime import datetime

from flows.intensity import Intensities
from models.budget import (
    Demand,
    corrected,
    expected_spending,
    overload,
    price_for_budget,
    price_for_lag,
)
from models.records import BudgetReport, Source
from tasks.settings import BudgetSettings

TIMER_POLLS_PER_DAY = 144.0
"""Without a budget, as many polls as a ten-minute timer would make, spent better."""

CORRECTION_PACE = 0.1
"""Part of a difference between plan and spending that one update takes back."""

FIRST_PRICE = 300.0
"""Entry-seconds a poll, before anything is known."""


class Pricing:
    """Holds the price of every source.

    Parameters
    ----------
    budget
        What the user set.
    sources
        The catalogue.
    intensities
        The habits that demand is reckoned from.
    """

    def __init__(
        self, budget: BudgetSettings, sources: Iterable[Source], intensities: Intensities
    ) -> None:
        self._budget = budget
        self._sources = list(sources)
        self._intensities = intensities
        self._correction = self._overload = 1.0
        self._common = FIRST_PRICE
        self._promised: dict[str, float] = {}

    def take_sources(self, sources: Iterable[Source]) -> None:
        """Go over to another catalogue; the next update reckons with it."""
        self._sources = list(sources)

    @property
    def counts_bytes(self) -> bool:
        """Whether the budget is one of megabytes."""
        return self._budget.megabytes_per_day > 0.0

    def price(self, source: Source) -> float:
        """Return the entry-seconds a poll of `source` must save, before its weight."""
        cost = self._intensities.demand(source, True).cost if self.counts_bytes else 1.0
        return min(self._common * cost, self._promised.get(source.source, float("inf")))

    def update(
        self, now: datetime, spent_per_day: float | None = None, late_share: float = 0.0
    ) -> BudgetReport:
        """Solve for the price anew, and correct it by what was spent, and by what came late.

        Parameters
        ----------
        spent_per_day
            What was spent lately in the budget's currency, scaled to a day.
        late_share
            Share of the polls since the last update that began late, 0 to 1: where there are
            many, more is due than can be polled, and the price rises until it is not.
        """
        self._overload = overload(self._overload, late_share)
        demands = {s.source: self._intensities.demand(s, self.counts_bytes) for s in self._sources}
        everyone = list(demands.values())
        per_day = self._per_day()
        if per_day is not None:
            spending = price_for_budget(everyone, per_day)
            # What could not be spent is no reason to spend more.
            if spent_per_day is not None and self._overload == 1.0:
                wanted = corrected(1.0, spent_per_day, per_day)
                self._correction *= wanted**CORRECTION_PACE
            self._common = spending.price * self._correction
        elif self._budget.target_lag_s > 0.0:
            self._common = price_for_lag(everyone, self._budget.target_lag_s).price
        else:
            self._common = self._budget.price
        self._common *= self._overload
        self._promised = dict(self._promises(demands))
        expected = expected_spending(everyone, self._common)
        lag_s = expected.mean_lag_s
        return BudgetReport(
            reckoned_at=now,
            currency="MB" if self.counts_bytes else "polls",
            planned_per_day=per_day,
            spent_per_day=spent_per_day,
            price=self._common,
            expected_per_day=expected.per_day,
            expected_polls_per_day=expected.polls_per_day,
            expected_lag_s=None if math.isnan(lag_s) else lag_s,
            overload=self._overload,
        )

    def _per_day(self) -> float | None:
        budget = self._budget
        if budget.megabytes_per_day > 0.0:
            return budget.megabytes_per_day
        if budget.polls_per_day > 0.0:
            return budget.polls_per_day
        if budget.target_lag_s > 0.0 or budget.price > 0.0:
            return None
        return TIMER_POLLS_PER_DAY * len(self._sources)

    def _promises(self, demands: dict[str, Demand]) -> Iterable[tuple[str, float]]:
        """Yield the price that keeps each promised lag, for the sources it is promised of."""
        groups: dict[float, list[str]] = {}
        for source in self._sources:
            promises = [
                lag_s for tag, lag_s in self._budget.lag_by_tag.items() if tag in source.tags
            ]
            if source.poll.target_lag_s:
                promises.append(source.poll.target_lag_s)
            if promises:
                groups.setdefault(min(promises), []).append(source.source)
        for lag_s, names in groups.items():
            price = price_for_lag([demands[name] for name in names], lag_s).price
            for name in names:
                yield name, price * demands[name].cost
