"""Draw pictures of results with matplotlib, without any screen."""

from __future__ import annotations

import io
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from pathlib import Path

import numpy as np
from matplotlib.axes import Axes
from matplotlib.backends.backend_agg import FigureCanvasAgg
from matplotlib.figure import Figure
from matplotlib.ticker import FuncFormatter, LogLocator, NullLocator

from models.errors import ConfigError
from models.intensity.state import FloatArray
from models.polling.fixed import spell_duration

ROUND_S = (
    1, 2, 5, 10, 20, 30, 60, 120, 300, 600, 1200, 1800, 3600, 7200, 10_800, 21_600, 43_200,
    86_400, 172_800, 604_800,
)  # fmt: skip
"""Times people reckon in."""

FORMS = (".png", ".svg", ".pdf")


def check_plot_name(file: Path) -> None:
    """Refuse a name that does not end like a picture.

    Raises
    ------
    ConfigError
        With the endings there are.
    """
    if file.suffix.lower() not in FORMS:
        raise ConfigError("--plot", str(file), file.suffix, f"end it in {', '.join(FORMS)}")


def write_frontier(
    file: Path,
    curves: Mapping[str, Sequence[tuple[float, float]]],
    *,
    title: str,
) -> None:
    """Write a picture of lag against polls, both on logarithmic scales.

    On these scales a timer is a straight line that falls by 45 degrees, and a policy
    that is better by the same share at every budget is a line beside it.

    Parameters
    ----------
    file
        PNG, SVG or PDF by its ending.
    curves
        By name, points of polls a day of a source and mean lag in seconds. The first one
        is the measure of the others, drawn black.
    title
        What the picture is of.
    """
    figure = Figure(figsize=(8.0, 5.5), layout="constrained")
    FigureCanvasAgg(figure)
    axes = figure.add_subplot()
    for place, (name, points) in enumerate(curves.items()):
        polls, lags = zip(*sorted(points), strict=True)
        colour = "black" if place == 0 else f"C{place - 1}"
        axes.loglog(polls, lags, color=colour, marker="o", markersize=3.5, label=name)
    axes.set_xlabel("polls a day of a source")
    axes.set_ylabel("mean publication lag")
    axes.xaxis.set_major_locator(LogLocator(subs=(1.0, 2.0, 5.0)))
    axes.xaxis.set_major_formatter(FuncFormatter(lambda value, _: f"{value:g}"))
    low, high = axes.get_ylim()
    axes.set_yticks([each for each in ROUND_S if low <= each <= high])
    axes.yaxis.set_major_formatter(FuncFormatter(lambda value, _: spell_duration(value)))
    for axis in (axes.xaxis, axes.yaxis):
        axis.set_minor_locator(NullLocator())
    axes.set_title(title)
    axes.grid(visible=True, which="both", alpha=0.25)
    axes.legend()
    file.parent.mkdir(parents=True, exist_ok=True)
    figure.savefig(file, dpi=150)


WEEKDAYS = ("Mon", "Tue", "Wed", "Thu", "Fri", "Sat", "Sun")


@dataclass(frozen=True, slots=True)
class SourcePicture:
    """What a picture shows of one source.

    Attributes
    ----------
    title
        What stands above it.
    from_at
        Start of the hours shown.
    actual, expected
        Entries of successive hours, and what was expected of them; ``nan`` leaves a hole.
    week
        Expected entries of each hour of the week in its own zone, 168 of them.
    """

    title: str
    from_at: datetime
    actual: FloatArray = field(repr=False)
    expected: FloatArray = field(repr=False)
    week: FloatArray = field(repr=False)


def draw_forecasts(sources: Sequence[SourcePicture]) -> bytes:
    """Return a PNG: for each source the forecast against what came, and its usual week."""
    figure = Figure(figsize=(13.0, 2.3 * len(sources) + 0.3), layout="constrained")
    FigureCanvasAgg(figure)
    rows = figure.subplots(len(sources), 2, squeeze=False, width_ratios=(3, 2))
    for (left, right), source in zip(rows, sources, strict=True):
        _draw_hours(left, source)
        _draw_week(right, source)
    rows[0, 0].legend(loc="upper right", fontsize=8)
    rows[0, 1].set_title("expected entries of an hour, in the source's zone", fontsize=9)
    image = io.BytesIO()
    figure.savefig(image, format="png", dpi=90)
    return image.getvalue()


def _draw_hours(axes: Axes, source: SourcePicture) -> None:
    hours = [source.from_at + timedelta(hours=n) for n in range(len(source.actual))]
    places = np.arange(len(hours))
    midnights = [place for place in places if hours[place].hour == 0]
    axes.fill_between(places, np.nan_to_num(source.actual), step="post", alpha=0.35, label="came")
    axes.plot(places, source.expected, color="C3", lw=1.2, drawstyle="steps-post", label="expected")
    axes.set_title(source.title, fontsize=9, loc="left")
    axes.set_ylabel("entries an hour", fontsize=8)
    axes.set_xticks(midnights, [f"{hours[place]:%a %d %b}" for place in midnights])
    axes.tick_params(labelsize=8)
    axes.margins(x=0)
    axes.set_ylim(bottom=0)


def _draw_week(axes: Axes, source: SourcePicture) -> None:
    image = axes.imshow(source.week.reshape(7, 24), aspect="auto", cmap="YlOrRd", vmin=0.0)
    axes.set_yticks(range(7), WEEKDAYS, fontsize=8)
    axes.set_xticks(range(0, 24, 3), [f"{hour}:00" for hour in range(0, 24, 3)], fontsize=8)
    bar = axes.figure.colorbar(image, ax=axes, pad=0.01)
    bar.ax.tick_params(labelsize=8)
