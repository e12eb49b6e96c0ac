"""Charts as SVG text: no library, no script, no colour that only one theme can show.

A chart carries classes, and the page's style sheet says what they look like in light and
in dark. It is small (400 by 170 units), so that its letters stay readable on a telephone.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from html import escape
from typing import Literal

from models.polling.fixed import spell_duration

WIDTH, HEIGHT = 400.0, 170.0
LEFT, RIGHT, TOP, BOTTOM = 46.0, 6.0, 8.0, 22.0

LINES = 4
"""Lines across, at most: so many values are written at the left."""

TICKS_H = (1, 2, 3, 6, 12, 24, 48, 24 * 7, 24 * 14, 24 * 30)
"""Hours that may lie between two marks of the time axis."""

MOST_TICKS = 6

Number = float | None


@dataclass(frozen=True, slots=True)
class Series:
    """One row of values of a chart.

    Attributes
    ----------
    name
        What the legend says.
    values
        One per moment; None leaves a hole.
    form
        ``bars`` of several series stand on one another; a ``band`` lies between `values`
        and `upper`.
    tone
        Number of the class that colours it, from 1.
    """

    name: str
    values: Sequence[Number] = field(repr=False)
    form: Literal["line", "bars", "band"] = "line"
    tone: int = 1
    upper: Sequence[Number] = field(default=(), repr=False)


@dataclass(frozen=True, slots=True)
class Chart:
    """What is drawn over time.

    Attributes
    ----------
    name
        Unique on its page; letters and dashes.
    summary
        What it shows, in a sentence, for whoever cannot see it.
    moments
        Starts of the stretches the values are of, evenly spaced.
    unit
        How values are written: ``s`` as a span of time, ``%`` as a share, else a number.
    target
        Value of a dashed line across; None for none.
    """

    name: str
    title: str
    summary: str
    moments: Sequence[datetime] = field(repr=False)
    series: tuple[Series, ...]
    unit: str = ""
    target: Number = None
    target_name: str = "target"

    @property
    def is_empty(self) -> bool:
        """Whether there is nothing to draw."""
        return not any(value is not None for each in self.series for value in each.values)

    def spell(self, value: Number) -> str:
        """Return a value as people read it, ``""`` for None."""
        return "" if value is None else SPELLINGS.get(self.unit, _spell_number)(value)


def _spell_number(value: float) -> str:
    if value >= 10_000:
        return f"{value / 1000:,.0f}k"
    return f"{value:,.0f}" if value >= 10 or value == int(value) else f"{value:.2g}"


SPELLINGS: dict[str, Callable[[float], str]] = {
    "s": spell_duration,
    "%": lambda share: f"{100 * share:.0f} %",
}


def draw_chart(chart: Chart) -> str:
    """Return a chart as an ``<svg>`` element; every text in it is escaped.

    Examples
    --------
    >>> moments = [datetime(2026, 3, 1, hour) for hour in range(3)]
    >>> svg = draw_chart(Chart("n", "Polls", "Polls", moments, (Series("<b>", [1, 2, 4]),)))
    >>> svg[:40], "<b>" in svg
    ('<svg class="chart" viewBox="0 0 400 170"', False)
    """
    canvas = _Canvas(chart)
    title = f"{chart.name}-title"
    parts = [
        f'<svg class="chart" viewBox="0 0 {WIDTH:g} {HEIGHT:g}"',
        f' role="img" aria-labelledby="{escape(title)}">',
        f'<title id="{escape(title)}">{escape(chart.title)}: {escape(chart.summary)}</title>',
        *canvas.scale_lines(),
        *canvas.time_marks(),
        *(canvas.draw_band(each) for each in chart.series if each.form == "band"),
        *canvas.draw_bars([each for each in chart.series if each.form == "bars"]),
        *(canvas.draw_line(each) for each in chart.series if each.form == "line"),
        canvas.target_line(),
        "</svg>",
    ]
    return "".join(parts)


class _Canvas:
    """Places of values, and the pieces of one chart."""

    def __init__(self, chart: Chart) -> None:
        self._chart = chart
        self._n = max(len(chart.moments), 1)
        self._marks = scale_marks(self._largest(), SPANS_S if chart.unit == "s" else ())
        self._top = self._marks[-1]

    def _largest(self) -> float:
        chart = self._chart
        bars = [each.values for each in chart.series if each.form == "bars"]
        stacked = [sum(value or 0.0 for value in values) for values in zip(*bars, strict=True)]
        others = [each for each in chart.series if each.form != "bars"]
        values = [value for each in others for value in (*each.values, *each.upper)]
        known = [value for value in (*values, *stacked, chart.target) if value is not None]
        return max([value for value in known if math.isfinite(value)], default=0.0)

    def _x(self, at: float) -> float:
        return LEFT + at / self._n * (WIDTH - LEFT - RIGHT)

    def _y(self, value: float) -> float:
        height = HEIGHT - TOP - BOTTOM
        return TOP + height * (1.0 - min(max(value / self._top, 0.0), 1.0))

    def scale_lines(self) -> list[str]:
        lines = []
        for value in self._marks:
            y = self._y(value)
            lines.append(
                f"{self._across('grid', y)}"
                f'<text class="mark" x="{LEFT - 4:g}" y="{y + 3:.1f}" text-anchor="end">'
                f"{escape(self._chart.spell(value))}</text>"
            )
        return lines

    def time_marks(self) -> list[str]:
        marks = []
        for at, words in time_marks(self._chart.moments):
            place = f'x="{self._x(at):.1f}" y="{HEIGHT - 6:g}"'
            marks.append(f'<text class="mark" {place}>{escape(words)}</text>')
        return marks

    def draw_line(self, series: Series) -> str:
        pieces: list[list[str]] = [[]]
        for at, value in enumerate(series.values):
            if value is None:
                pieces.append([])
            else:
                pieces[-1].append(f"{self._x(at + 0.5):.1f} {self._y(value):.1f}")
        # A value between two holes is a dot: a line of no length with round ends.
        path = "".join(
            f"M{' L'.join(piece if piece[1:] else piece * 2)}" for piece in pieces if piece
        )
        return f'<path class="line tone-{series.tone}" d="{path}"/>' if path else ""

    def draw_band(self, series: Series) -> str:
        both = [
            (at, low, high)
            for at, (low, high) in enumerate(zip(series.values, series.upper, strict=True))
            if low is not None and high is not None
        ]
        if not both:
            return ""
        upper = [f"{self._x(at + 0.5):.1f} {self._y(high):.1f}" for at, _, high in both]
        lower = [f"{self._x(at + 0.5):.1f} {self._y(low):.1f}" for at, low, _ in reversed(both)]
        return f'<path class="band tone-{series.tone}" d="M{" L".join([*upper, *lower])}Z"/>'

    def draw_bars(self, rows: Sequence[Series]) -> list[str]:
        bars, bases = [], [0.0] * self._n
        width = (self._x(1) - self._x(0)) * 0.8
        for series in rows:
            path = ""
            for at, value in enumerate(series.values):
                if value:
                    y, base = self._y(bases[at] + value), self._y(bases[at])
                    path += f"M{self._x(at + 0.1):.1f} {y:.1f}h{width:.1f}V{base:.1f}h-{width:.1f}Z"
                    bases[at] += value
            if path:
                bars.append(f'<path class="bars tone-{series.tone}" d="{path}"/>')
        return bars

    def target_line(self) -> str:
        target = self._chart.target
        if target is None:
            return ""
        return self._across("target", self._y(target))

    def _across(self, kind: str, y: float) -> str:
        right = WIDTH - RIGHT
        return f'<line class="{kind}" x1="{LEFT:g}" x2="{right:g}" y1="{y:.1f}" y2="{y:.1f}"/>'


SPANS_S = (
    1, 2, 5, 10, 20, 30, 60, 120, 300, 600, 1200, 1800, 3600, 7200, 10_800, 21_600, 43_200,
    86_400, 172_800, 604_800,
)  # fmt: skip
"""Steps between values that are spans of time: those people reckon in."""


def scale_marks(largest: float, steps: Sequence[float] = ()) -> list[float]:
    """Return round values from 0 to at least `largest`, `LINES` steps at most.

    Parameters
    ----------
    steps
        Steps to choose from, ascending; past their end, and where there are none, 1, 2
        and 5 times a power of ten.

    Examples
    --------
    >>> scale_marks(7.0)
    [0.0, 2.0, 4.0, 6.0, 8.0]
    >>> scale_marks(500.0, (60, 120, 300))
    [0.0, 300.0, 600.0]
    >>> scale_marks(0.0)
    [0.0, 1.0]
    """
    if largest <= 0.0:
        return [0.0, 1.0]
    least = largest / LINES
    step = next((float(each) for each in steps if each >= least), 0.0)
    if not step:
        power = 10.0 ** math.floor(math.log10(least))
        step = next(power * each for each in (1.0, 2.0, 5.0, 10.0) if power * each >= least * 0.999)
    n = math.ceil(round(largest / step, 6))
    return [step * at for at in range(n + 1)]


def time_marks(moments: Sequence[datetime]) -> list[tuple[int, str]]:
    """Return which of evenly spaced moments are named below a chart, and how.

    Examples
    --------
    >>> time_marks([datetime(2026, 3, 1) + timedelta(hours=n) for n in range(48)])
    [(0, '1 Mar'), (12, '12:00'), (24, '2 Mar'), (36, '12:00')]
    """
    if len(moments) < 2:
        return [(0, f"{moments[0].day} {moments[0]:%b}")] if moments else []
    span = moments[-1] - moments[0]
    gap = next((each for each in TICKS_H if span / timedelta(hours=each) < MOST_TICKS), TICKS_H[-1])
    named = []
    for at, moment in enumerate(moments):
        hours = moment.hour + 24 * (moment.toordinal() if gap > 24 else 0)
        if moment.minute == 0 and hours % gap == 0:
            is_day = moment.hour == 0
            named.append((at, f"{moment.day} {moment:%b}" if is_day else f"{moment:%H:%M}"))
    return named
