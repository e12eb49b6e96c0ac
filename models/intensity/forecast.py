"""A forecast at one moment: all that a policy needs to know of a source's future."""

from __future__ import annotations

from dataclasses import asdict, dataclass, replace
from typing import Any

import numpy as np

from models.intensity.burst import excess_at
from models.intensity.estimator import ESTIMATORS, fill_rates
from models.intensity.phase import shape_phase, trust_of
from models.intensity.state import FORECAST_HOURS, FloatArray, State
from models.intensity.weekly import overall_per_hour
from models.week import next_hour, offset_at


@dataclass(frozen=True, slots=True)
class Forecast:
    """What is expected of a source from one moment on.

    Attributes
    ----------
    estimator
        Who forecasts.
    at_s
        The moment, seconds since 1970.
    rates_per_s
        Expected entries per second: the hour under way, then hour by hour.
    first_hour_ends_s
        When the hour under way ends.
    usual_per_hour
        The source's rate over all hours, for words such as "busy".
    excess_per_s, branching, decay_s
        The burst term.
    minute_counts, second_counts, phase_trust
        Habits within the hour (see `models.intensity.phase`).
    offset_s, lag_s
        Offset of the source's zone; seconds from stamp to appearance.
    note
        Why another estimator than the wanted one speaks, where that is so.
    """

    estimator: str
    at_s: float
    rates_per_s: tuple[float, ...]
    first_hour_ends_s: float
    usual_per_hour: float
    excess_per_s: float = 0.0
    branching: float = 0.0
    decay_s: float = 1800.0
    minute_counts: tuple[float, ...] = ()
    second_counts: tuple[float, ...] = ()
    phase_trust: float = 0.0
    offset_s: float = 0.0
    lag_s: float = 0.0
    note: str = ""

    def rates(self) -> FloatArray:
        """Return the rates as an array."""
        return np.array(self.rates_per_s)

    def shapes(self) -> tuple[FloatArray, FloatArray]:
        """Return the shapes within the hour and the minute, both of mean 1."""
        if self.phase_trust <= 0.0 or not self.minute_counts:
            return np.ones(60), np.ones(6)
        minutes, seconds = np.empty(60), np.empty(6)
        shape_phase(np.array(self.minute_counts), self.phase_trust, minutes)
        shape_phase(np.array(self.second_counts), self.phase_trust, seconds)
        return minutes, seconds

    def cut(self, hours: int) -> Forecast:
        """Return the forecast with its first `hours` rates: what a decision is stored with."""
        return replace(self, rates_per_s=self.rates_per_s[: max(hours, 1)])

    def as_inputs(self) -> dict[str, Any]:
        """Return the fields as JSON-ready values; :meth:`read_inputs` reads them back."""
        return asdict(self)

    @classmethod
    def read_inputs(cls, inputs: dict[str, Any]) -> Forecast:
        """Return the forecast that :meth:`as_inputs` wrote."""
        lists = ("rates_per_s", "minute_counts", "second_counts")
        values: dict[str, Any] = {k: tuple(v) if k in lists else v for k, v in inputs.items()}
        return cls(**values)


ABSURD_FACTOR = 50.0
"""A forecast this many times the source's usual rate is taken for a fault of the fit."""


def make_forecast(
    state: State, now_s: float, zone: FloatArray, estimator: str = "weekly"
) -> Forecast:
    """Return what `estimator` expects of a source from `now_s` on.

    A forecast that is not finite, negative or absurd is not used: the weekly profile,
    which can be none of these, speaks instead, and `Forecast.note` says so.

    Parameters
    ----------
    state
        The source's state.
    zone
        As `models.week.zone_table` returns it.
    """
    rates = np.empty(FORECAST_HOURS)
    usual = overall_per_hour(state)
    note = ""
    fill_rates(ESTIMATORS[estimator], state, now_s, zone, rates)
    limit = ABSURD_FACTOR * max(usual, 0.1) / 3600.0
    if not (np.isfinite(rates).all() and rates.min() >= 0.0 and rates.max() <= limit):
        note = f"the {estimator} forecast is not usable, the weekly profile speaks instead"
        estimator = "weekly"
        fill_rates(ESTIMATORS[estimator], state, now_s, zone, rates)
        rates = np.clip(np.nan_to_num(rates), 0.0, limit)
    offset = offset_at(zone, now_s)
    trust = trust_of(state)
    return Forecast(
        estimator=estimator,
        at_s=now_s,
        rates_per_s=tuple(rates.tolist()),
        first_hour_ends_s=next_hour(now_s + offset) - offset,
        usual_per_hour=usual,
        excess_per_s=excess_at(state, now_s),
        branching=float(state["branching"]),
        decay_s=float(state["decay_s"]),
        minute_counts=tuple(state["minutes"].tolist()) if trust > 0.0 else (),
        second_counts=tuple(state["seconds"].tolist()) if trust > 0.0 else (),
        phase_trust=trust,
        offset_s=offset,
        lag_s=float(state["lag_s"]),
        note=note,
    )
