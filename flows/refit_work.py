"""What the refit does in its process beside the worker: read, fit, draw.

Nothing of Prefect is imported here: that would cost the process two seconds and 80 MB.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from datetime import datetime, timedelta
from functools import partial

from models.budget import weekly_rates
from models.intensity.fitting import CHUNK
from models.intensity.state import read_state
from models.refitting import Refitted, Spread, Terms, compared_share, refit
from models.scores import USUAL_PRICE
from tasks.settings import Settings
from tasks.spreading import map_on_dask
from tasks.warehouse_reader import WarehouseReader, open_reader


@dataclass(frozen=True, slots=True)
class _Bench:
    settings: Settings
    reader: WarehouseReader
    terms: Terms


_bench: _Bench | None = None


def open_bench(settings: Settings, made_at: datetime, n_sources: int) -> None:
    """Open the warehouse for reading, and find what is known before the first source."""
    global _bench  # noqa: PLW0603 - one process, one refit
    reader = open_reader(settings)
    budget = reader.read_budget()
    previous = {model.source: replace(model, state=b"") for model in reader.read_intensity_models()}
    terms = Terms(
        made_at,
        price=budget.price if budget else USUAL_PRICE,
        compared_share=compared_share(n_sources),
        previous=previous,
    )
    _bench = _Bench(settings, reader, terms)


def refit_part(sources: Sequence[tuple[str, str]]) -> list[Refitted]:
    """Return what the past of some sources teaches.

    Parameters
    ----------
    sources
        Names and IANA zones.
    """
    assert _bench is not None, "open_bench comes first"
    settings, terms = _bench.settings.refit, _bench.terms
    since = terms.made_at - timedelta(weeks=settings.weeks)
    histories = _bench.reader.read_histories(sources, since, terms.made_at)
    names = {name for name, _ in sources}
    known = {name: model for name, model in terms.previous.items() if name in names}
    return refit(
        histories,
        replace(terms, previous=known),
        spread=_spread_of(settings.dask, settings.threads),
        threads=settings.threads,
        chunk=CHUNK,
    )


def _spread_of(address: str, workers: int) -> Spread | None:
    return partial(map_on_dask, address=address, workers=workers) if address else None


def draw(items: Sequence[Refitted]) -> bytes:
    """Return a PNG of forecasts against what came, and of usual weeks."""
    # Matplotlib takes a second to load; whoever only hands this function on does not wait.
    from tasks.plots import SourcePicture, draw_forecasts

    pictures = [
        SourcePicture(
            f"{item.model.source}: {item.per_day:.0f} a day, {item.model.policy}"
            f" by {item.model.kind}",
            item.shown_from,
            item.actual,
            item.expected,
            weekly_rates(read_state(item.model.state)),
        )
        for item in items
        if item.shown_from is not None
    ]
    return draw_forecasts(pictures)
