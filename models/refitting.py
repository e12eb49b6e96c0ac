"""The nightly refit as one pure function: histories in, models and forecasts out."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import asdict, dataclass, field
from datetime import UTC, datetime, timedelta
from functools import partial
from typing import Any, Protocol

import numpy as np

from models.intensity.estimator import ESTIMATORS
from models.intensity.fitting import CHUNK, FittedState, fit_state
from models.intensity.history import History
from models.intensity.state import FloatArray, write_state
from models.outlook import expected_hours, fit_dispersion, hourly_range
from models.records import FittedModel, HourlyForecast
from models.scores import (
    ABSURD_FACTOR,
    USUAL_PRICE,
    Choice,
    Comparison,
    check_forecast,
    choose_estimator,
    choose_policy,
    compare_policies,
    score_estimators,
)
from models.week import HOUR_S, HOURS_PER_WEEK, zone_table

COMPARED_FOR = timedelta(days=7)
"""A comparison of policies is repeated after a week: habits do not change by the day."""

SMALL = 500
"""Up to so many sources all are compared every night; of more, a seventh."""


@dataclass(frozen=True, slots=True)
class Terms:
    """What a refit goes by, the same for all sources.

    Attributes
    ----------
    made_at
        The moment of the refit; histories end there.
    price
        Entry-seconds a poll must save, as the budget has it.
    compared_share
        Part of the sources whose policies are compared this time, those first that
        were not for longest.
    previous
        The models of the refit before, by source.
    """

    made_at: datetime
    price: float = USUAL_PRICE
    compared_share: float = 1.0
    previous: Mapping[str, FittedModel] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Refitted:
    """What a refit made of one source.

    Attributes
    ----------
    n_entries
        Entries of its history.
    shown_from, actual, expected
        Its last held-out hours: where they begin, their entries (``nan`` where unwatched),
        and what had been expected of them an hour ahead. None and empty for a young source.
    """

    model: FittedModel
    forecast: HourlyForecast
    choice: Choice
    n_entries: int
    shown_from: datetime | None
    actual: FloatArray = field(repr=False)
    expected: FloatArray = field(repr=False)

    @property
    def per_day(self) -> float:
        """Entries expected of a day, over the week ahead."""
        return sum(self.forecast.expected) / len(self.forecast.expected) * 24.0


class Spread(Protocol):
    """Applies a function to chunks of histories, wherever there are processors."""

    def __call__(
        self,
        call: Callable[[Sequence[History]], list[Refitted]],
        items: Sequence[Sequence[History]],
        /,
    ) -> list[list[Refitted]]:
        """Return what comes of each chunk, in order."""


def compared_share(n_sources: int) -> float:
    """Return the part of the sources whose policies are compared in one night.

    Examples
    --------
    >>> compared_share(60), round(compared_share(10_000), 3)
    (1.0, 0.143)
    """
    return 1.0 if n_sources <= SMALL else 1.0 / COMPARED_FOR.days


def refit(
    histories: Sequence[History],
    terms: Terms,
    *,
    spread: Spread | None = None,
    threads: int = 1,
    chunk: int = CHUNK,
) -> list[Refitted]:
    """Return model and forecast of every source, in the order of the histories.

    A source that cannot be fitted is answered by the weekly profile; nothing here fails
    for one of them.

    Parameters
    ----------
    spread
        Applies a function to the chunks and returns what comes of each, in order:
        somebody else's processors. Threads of this process where None.
    threads
        How many work side by side.
    chunk
        Histories worked on at a time. Where only a part of the sources is compared, that
        part is taken of each chunk.
    """
    parts = [histories[start : start + chunk] for start in range(0, len(histories), chunk)]
    call = partial(refit_chunk, terms=terms)
    if spread is not None:
        done = spread(call, parts)
    elif threads <= 1 or len(parts) <= 1:
        done = [call(part) for part in parts]
    else:
        with ThreadPoolExecutor(threads, thread_name_prefix="refit") as pool:
            done = list(pool.map(call, parts))
    return [item for items in done for item in items]


def refit_chunk(histories: Sequence[History], terms: Terms) -> list[Refitted]:
    """Return model and forecast of some sources, one after another."""
    fits = [fit_state(history) for history in histories]
    compared = _choose_compared(fits, terms)
    return [
        _finish(history, fit, terms, compared) for history, fit in zip(histories, fits, strict=True)
    ]


def _choose_compared(fits: Sequence[FittedState], terms: Terms) -> frozenset[str]:
    """Return whose policies are compared: those with something to aim at, stalest first."""
    aiming = [fit.source for fit in fits if fit.state["phase_trust"] > 0.0 and fit.held_out]
    never = datetime.min.replace(tzinfo=UTC)
    aiming.sort(key=lambda source: _compared_at(terms.previous.get(source)) or never)
    return frozenset(aiming[: math.ceil(terms.compared_share * len(fits))])


def _compared_at(model: FittedModel | None) -> datetime | None:
    found = (model.parameters.get("policies") or {}).get("compared_at") if model else None
    return datetime.fromisoformat(found) if found else None


def _finish(history: History, fit: FittedState, terms: Terms, compared: frozenset[str]) -> Refitted:
    """Score a fit, choose by the scores, and look a week ahead."""
    made_at = terms.made_at.astimezone(UTC)
    zone = zone_table(history.timezone, made_at.year - 1, made_at.year + 1)
    from_at = made_at.replace(minute=0, second=0, microsecond=0) + timedelta(hours=1)
    estimator, why = choose_estimator(history, fit, terms.price)
    expected, fault = look_ahead(fit, estimator, from_at.timestamp(), zone)
    if fault:
        estimator, why = "weekly", f"weekly profile: {fault}"
    policies, compared_at = _policies(history, fit, estimator, terms, compared)
    policy, why_policy = choose_policy(policies, bool(fit.state["phase_trust"] > 0.0))
    note = "; ".join(part for part in (why, why_policy, fit.note) if part)
    choice = Choice(estimator, policy, note, score_estimators(fit), policies)
    dispersion = fit_dispersion(fit, estimator, zone)
    low, high = hourly_range(expected, dispersion)
    score = choice.scores[estimator].explained if estimator in choice.scores else None
    return Refitted(
        FittedModel(
            history.source,
            made_at,
            estimator,
            policy,
            write_state(fit.state),
            None if score is None or not math.isfinite(score) else score,
            note,
            _parameters(history, fit, choice, dispersion, compared_at),
        ),
        HourlyForecast(
            history.source, from_at, made_at, estimator,
            tuple(expected.tolist()), tuple(low.tolist()), tuple(high.tolist()),
        ),
        choice,
        len(history.stamps_s),
        *_last_week(fit, estimator),
    )  # fmt: skip


def look_ahead(
    fit: FittedState, estimator: str, from_s: float, zone: FloatArray
) -> tuple[FloatArray, str]:
    """Return the entries expected of a week's hours, and what was wrong with the forecast.

    Where something was, the weekly profile has spoken instead of `estimator`. It can be
    wrong itself only by a fault of ours; even then what comes back can be stored.
    """
    expected = expected_hours(fit.state, estimator, from_s, zone)
    fault = check_forecast(expected, fit.largest_per_hour)
    if not fault:
        return expected, ""
    instead = expected_hours(fit.state, "weekly", from_s, zone)
    most = ABSURD_FACTOR * max(fit.largest_per_hour, 1.0)
    usable = np.nan_to_num(instead, nan=0.0, posinf=0.0, neginf=0.0).clip(0.0, most)
    return usable, f"{estimator} expects {fault}"


def _policies(
    history: History,
    fit: FittedState,
    estimator: str,
    terms: Terms,
    compared: frozenset[str],
) -> tuple[Comparison | None, datetime | None]:
    """Return the comparison of policies and when it was made: tonight's, or the last one."""
    if fit.state["phase_trust"] <= 0.0:
        return None, None
    if history.source in compared:
        return compare_policies(history, fit, estimator, terms.price), terms.made_at
    before = terms.previous.get(history.source)
    known = dict(before.parameters.get("policies") or {}) if before else {}
    if not known:
        return None, None
    compared_at = datetime.fromisoformat(known.pop("compared_at"))
    return (Comparison(**known) if known else None), compared_at


def _parameters(
    history: History,
    fit: FittedState,
    choice: Choice,
    dispersion: float,
    compared_at: datetime | None,
) -> dict[str, Any]:
    """Return what people may want to read of a model."""
    state = fit.state
    found: dict[str, Any] = {
        "weeks_watched": round(history.covered_h() / HOURS_PER_WEEK, 2),
        "entries": len(history.stamps_s),
        "busiest_hour": fit.largest_per_hour,
        "dispersion": round(dispersion, 3),
        "burst": {"branching": float(state["branching"]), "decay_s": float(state["decay_s"])},
        "phase_trust": float(state["phase_trust"]),
        "lag_s": round(float(state["lag_s"]), 1),
        "ema": {"alpha": float(state["ema_alpha"]), "per_hour": float(state["ema_per_hour"])},
        "scores": {name: _rounded(asdict(score)) for name, score in choice.scores.items()},
    }
    if fit.holtwinters is not None:
        names = ("alpha", "beta", "gamma", "omega")
        found["holt_winters"] = {name: float(state[f"hw_{name}"]) for name in names}
    if compared_at is not None:
        scored = _rounded(asdict(choice.policies)) if choice.policies else {}
        found["policies"] = {**scored, "compared_at": compared_at.isoformat()}
    return found


def _rounded(values: dict[str, Any]) -> dict[str, Any]:
    return {k: round(v, 4) if isinstance(v, float) else v for k, v in values.items()}


def _last_week(fit: FittedState, estimator: str) -> tuple[datetime | None, FloatArray, FloatArray]:
    held = fit.held_out
    if held is None:
        return None, np.empty(0), np.empty(0)
    begin = max(len(held.counts) - HOURS_PER_WEEK, 0)
    from_at = datetime.fromtimestamp(held.start_s + begin * HOUR_S, UTC)
    return from_at, held.counts[begin:], held.forecasts[begin:, ESTIMATORS[estimator]]
