"""What the worker knows of every source's habits, kept up to date poll by poll."""

from __future__ import annotations

import contextlib
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import UTC, datetime, timedelta

import numpy as np

from models.budget import Demand, weekly_rates
from models.intensity.estimator import observe
from models.intensity.forecast import Forecast, make_forecast
from models.intensity.lag import observe_lag
from models.intensity.stamps import clean_stamps
from models.intensity.state import FloatArray, State, new_state, read_state
from models.intensity.weekly import overall_per_hour
from models.polling.choice import choose_next_poll
from models.polling.forecasting import Basis
from models.polling.moment import Moment
from models.polling.price import FAIRNESS, fair_price
from models.records import Entry, FittedModel, Observed, PollRules, Source
from models.week import zone_table
from models.window import most_entries, safe_table

FIRST_GUESS_PER_HOUR = 1.0
"""Rate of a source nothing is known of; its first listing corrects it at once."""

LONGEST_BACKLOG = timedelta(days=14)
"""A first listing teaches no more than this: older entries are what was left of a list."""

BYTES_MEMORY = 0.1
"""Share a new poll has in the mean size of full and of empty answers."""


@dataclass
class Habits:
    """What is known of one source.

    Attributes
    ----------
    state
        Every estimator's figures.
    zone
        Offsets of its time zone.
    fitted
        The nightly fit, where there is one.
    window
        Most entries its list has held.
    n_known
        Entries learnt from so far.
    full_bytes, empty_bytes
        Mean size of an answer with the list in it, and of one that said "nothing new".
    """

    state: State
    zone: FloatArray
    fitted: FittedModel | None = None
    window: int = 0
    n_known: int = 0
    full_bytes: float = 0.0
    empty_bytes: float = 0.0

    @property
    def empty_share(self) -> float:
        """Size of an empty answer as a share of a full one; 1 while one of them is unknown."""
        if not self.full_bytes or not self.empty_bytes:
            return 1.0
        return min(max(self.empty_bytes / self.full_bytes, 0.01), 1.0)


class Intensities:
    """The habits of all sources of this process.

    Parameters
    ----------
    sources
        The catalogue.
    now
        The present.
    """

    def __init__(self, sources: Mapping[str, Source], now: datetime) -> None:
        self._sources = sources
        self._now = now
        self._habits: dict[str, Habits] = {}

    def habits(self, source: str) -> Habits:
        """Return what is known of a source; of a new one, a guess."""
        if source not in self._habits:
            zone = self._zone(self._sources[source].timezone)
            state = new_state(self._now.timestamp(), FIRST_GUESS_PER_HOUR)
            self._habits[source] = Habits(state, zone)
        return self._habits[source]

    def load(self, models: Iterable[FittedModel], observed: Iterable[Observed]) -> None:
        """Take the nightly fits, and what was observed since each of them.

        A fit that another version of newsbeat stored is passed over until the next refit.

        Parameters
        ----------
        models
            The newest fit of each source that has one.
        observed
            Per source, what polls covered and found since its fit (or since its first poll).
        """
        for model in models:
            if model.source in self._sources:
                habits = self.habits(model.source)
                with contextlib.suppress(ValueError):
                    habits.state, habits.fitted = read_state(model.state), model
        for past in observed:
            if past.source in self._sources:
                self._relive(past)

    def _relive(self, past: Observed) -> None:
        habits = self.habits(past.source)
        since = max(habits.state["updated_at"], past.since_s) if habits.fitted else past.since_s
        stamps = np.asarray(past.stamps_s, dtype=np.float64)
        stamps = np.sort(stamps[(stamps > since) & (stamps <= past.until_s)])
        if not habits.fitted:
            habits.state = new_state(since, FIRST_GUESS_PER_HOUR)
        observe(habits.state, since, past.until_s, habits.zone, stamps)
        habits.n_known += len(stamps)
        habits.window = max(habits.window, past.window)

    def learn(
        self,
        source: str,
        *,
        since: datetime | None,
        until: datetime,
        entries: Sequence[Entry],
        n_listed: int,
    ) -> None:
        """Learn from a poll that covered the time since the one before it.

        Parameters
        ----------
        since
            The poll before; None where this is the first, or where the list did not reach
            back to it. Then only the time its entries span is known.
        until
            This poll.
        entries
            The new ones.
        n_listed
            Entries in the list; 0 where it was not sent again.
        """
        habits = self.habits(source)
        habits.window = max(habits.window, n_listed)
        habits.n_known += len(entries)
        until_s = until.timestamp()
        dated = np.array(
            [
                entry.published_at.timestamp()
                for entry in entries
                if entry.published_at and entry.published_precision != "day"
            ]
        )
        if since is None:
            self._learn_span(habits, dated, until_s)
            return
        since_s = since.timestamp()
        if until_s <= since_s:
            return
        n_undated = len(entries) - len(dated)
        observe_lag(habits.state, since_s, until_s, dated)
        stamps = clean_stamps(dated, since_s, until_s, n_undated)
        observe(habits.state, since_s, until_s, habits.zone, stamps)

    def _learn_span(self, habits: Habits, dated: FloatArray, until_s: float) -> None:
        """Learn from a list that overlaps nothing known: it covers the time its entries span."""
        oldest_s = until_s - LONGEST_BACKLOG.total_seconds()
        past = np.sort(dated[(dated <= until_s) & (dated >= oldest_s)])
        if len(past) < 2:
            return
        if habits.n_known <= len(dated):
            habits.state = new_state(past[0], FIRST_GUESS_PER_HOUR)
        # The oldest entry opens the span, so it does not count itself.
        observe(habits.state, float(past[0]), until_s, habits.zone, past[1:])

    def note_bytes(self, source: str, index_bytes: int, is_empty: bool) -> None:
        """Remember how large an answer was."""
        habits = self.habits(source)
        if is_empty:
            habits.empty_bytes = _mean(habits.empty_bytes, index_bytes)
        else:
            habits.full_bytes = _mean(habits.full_bytes, index_bytes)

    def forecast(self, source: Source, at: datetime) -> Forecast:
        """Return what is expected of a source from a moment on."""
        habits = self.habits(source.source)
        estimator = source.poll.estimator
        if estimator == "auto":
            estimator = habits.fitted.kind if habits.fitted else "weekly"
        if source.poll.policy in ("ema", "holt-winters"):
            estimator = source.poll.policy
        return make_forecast(habits.state, at.timestamp(), habits.zone, estimator)

    def basis(self, source: Source, at: datetime, price: float, counts_bytes: bool) -> Basis:
        """Return what a decision of a source stands on.

        Parameters
        ----------
        price
            Entry-seconds a poll of this source must save, before its weight.
        counts_bytes
            Whether the budget is one of bytes: then an empty poll is cheaper than a full one.
        """
        habits = self.habits(source.source)
        fitted, forecast = habits.fitted, self.forecast(source, at)
        return Basis(
            forecast=forecast,
            price=fair_price(price / source.weight, forecast.usual_per_hour, FAIRNESS),
            chosen=fitted.policy if fitted else "price",
            empty_share=habits.empty_share if counts_bytes else 1.0,
            most_entries=most_entries(
                safe_table(habits.window),
                forecast.branching,
                forecast.decay_s,
                float(forecast.rates_per_s[0]),
            ),
            ceiling_s=source.poll.max_interval_s,
        )

    def usual_per_hour(self, source: str) -> float:
        """Return how many entries of a source an hour brings, on average."""
        return overall_per_hour(self.habits(source).state)

    def demand(self, source: Source, counts_bytes: bool) -> Demand:
        """Return what a source asks of the budget."""
        habits = self.habits(source.source)
        megabytes = (habits.full_bytes or DEFAULT_INDEX_BYTES) / 1e6
        return Demand(
            rates_per_h=weekly_rates(habits.state),
            weight=source.weight / fair_price(1.0, overall_per_hour(habits.state), FAIRNESS),
            cost=megabytes if counts_bytes else 1.0,
            floor_s=source.poll.min_interval_s,
            ceiling_s=source.poll.max_interval_s,
        )

    def _zone(self, timezone: str) -> FloatArray:
        return zone_table(timezone, self._now.year - 1, self._now.year + 2)


DEFAULT_INDEX_BYTES = 100_000.0
"""Size of an index page before one was seen."""


def _mean(before: float, size: int) -> float:
    return float(size) if not before else before + BYTES_MEMORY * (size - before)


def warm_up() -> None:
    """Make every decision once, so that no poll waits for a loop to be compiled.

    The first time on a machine that takes some ten seconds, later a part of one.
    """
    source = Source("warm-up", "warm-up", "https://warm-up.example/")
    now = datetime(2026, 1, 5, 12, tzinfo=UTC)
    entries = [
        Entry(f"https://warm-up.example/{n}", published_at=now - timedelta(hours=n))
        for n in range(3)
    ]
    intensities = Intensities({source.source: source}, now)
    intensities.learn("warm-up", since=None, until=now, entries=entries, n_listed=3)
    later = now + timedelta(minutes=10)
    intensities.learn("warm-up", since=now, until=later, entries=entries[:1], n_listed=3)
    intensities.demand(source, counts_bytes=False)
    intensities.habits("warm-up").state["phase_trust"] = 1.0
    for policy in ("price", "plan", "ema", "holt-winters"):
        named = replace(source, poll=PollRules(policy=policy))
        basis = intensities.basis(named, later, price=100.0, counts_bytes=False)
        moment = Moment("warm-up", later.timestamp(), later.timestamp())
        choose_next_poll(moment, named.poll, basis)
