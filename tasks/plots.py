"""Draw pictures of results with matplotlib, without any screen."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path

from matplotlib.backends.backend_agg import FigureCanvasAgg
from matplotlib.figure import Figure
from matplotlib.ticker import FuncFormatter, LogLocator, NullLocator

from models.errors import ConfigError
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
