"""A measured figure beside its target."""

from __future__ import annotations

import math
import time
from collections.abc import Iterable
from dataclasses import asdict, dataclass
from typing import Any

import click


@dataclass(frozen=True, slots=True)
class Figure:
    """One line of the result.

    Attributes
    ----------
    name
        What was measured.
    value
        The result.
    most
        Target: at most this. None where the figure is only told.
    note
        What else to know of it.
    """

    name: str
    value: float
    most: float | None = None
    note: str = ""

    @property
    def is_met(self) -> bool:
        """Whether the target is met; what has none always is."""
        return self.most is None or (not math.isnan(self.value) and self.value <= self.most)

    def as_row(self) -> str:
        """Return it as a row of a Markdown table."""
        target = "" if self.most is None else f"{self.most:g}"
        verdict = "" if self.most is None else ("yes" if self.is_met else "**no**")
        return f"| {self.name} | {target} | {_spelled(self.value)} | {verdict} | {self.note} |"

    def as_json(self) -> dict[str, Any]:
        """Return it as JSON-ready values."""
        return {**asdict(self), "is_met": self.is_met}


def render(figures: Iterable[Figure]) -> str:
    """Return figures as a Markdown table."""
    head = ["| figure | at most | result | met | |", "|---|---|---|---|---|"]
    return "\n".join([*head, *(figure.as_row() for figure in figures)])


def _spelled(value: float) -> str:
    if math.isnan(value) or value == 0.0:
        return f"{value:g}"
    return f"{value:,.0f}" if abs(value) >= 1000 else f"{value:.4g}"


def say(text: str) -> None:
    """Show progress on standard error."""
    click.echo(f"{time.strftime('%H:%M:%S')} {text}", err=True)
