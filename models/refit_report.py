"""What a refit came to, as Markdown for Prefect's UI and as a line for people."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from datetime import datetime
from typing import Any

from models.harmless import escape_markdown
from models.polling.fixed import spell_duration
from models.refitting import Refitted

MOST_ROWS = 200
"""Sources in the table: the busiest. SQL has the others."""


@dataclass(frozen=True, slots=True)
class RefitRow:
    """One source of the report.

    Attributes
    ----------
    per_day
        Entries expected of a day.
    score
        Share of the hourly deviance explained; None for a young source.
    gain
        Share of the lag that ``plan`` saved in the last comparison; None without one.
    """

    source: str
    per_day: float
    estimator: str
    policy: str
    score: float | None
    gain: float | None
    note: str

    @classmethod
    def of(cls, item: Refitted) -> RefitRow:
        """Return the row of what a refit made of a source."""
        model, policies = item.model, item.choice.policies
        return cls(
            model.source,
            item.per_day,
            model.kind,
            model.policy,
            model.score,
            policies.gain if policies is not None else None,
            model.note,
        )


@dataclass(frozen=True, slots=True)
class RefitReport:
    """What a refit came to.

    Attributes
    ----------
    n_sources
        Sources of the catalogue; those never polled have no row.
    took_s
        Wall seconds.
    """

    made_at: datetime
    n_sources: int
    took_s: float
    rows: tuple[RefitRow, ...]

    def as_json(self) -> dict[str, Any]:
        """Return it as JSON-ready values."""
        return {
            "made_at": self.made_at.isoformat(),
            "sources": self.n_sources,
            "took_s": round(self.took_s, 2),
            "models": [asdict(row) for row in self.rows],
        }


def describe_refit(report: RefitReport) -> str:
    """Return what a refit came to, in one line."""
    n = len(report.rows)
    chosen = Counter(f"{row.policy} by {row.estimator}" for row in report.rows)
    kinds = ", ".join(f"{count} {name}" for name, count in chosen.most_common())
    missing = report.n_sources - n
    without = f"; {missing} not polled yet" if missing else ""
    of_all = f"{n} source{'' if n == 1 else 's'}"
    return f"{of_all} refitted in {spell_duration(report.took_s)}: {kinds or 'none'}{without}"


_LEGEND = (
    "*Explained*: share of what makes hours differ that the forecast knew, on weeks it was not"
    " fitted on. *Saved*: lag that `plan` saved there against `price`, at equal polls. All"
    ' numbers: `newsbeat sql "FROM intensity_models"`.'
)

_HEAD = (
    "| source | a day | forecast | policy | explained | saved | why |\n"
    "|---|---:|---|---|---:|---:|---|"
)


def render_refit_page(report: RefitReport, speed: float = 1.0) -> str:
    """Return the page as Markdown: the line, what the columns mean, and the busiest sources.

    Parameters
    ----------
    speed
        Of the product's clock: other than 1, the times are those of a replay.
    """
    rows = sorted(report.rows, key=lambda row: -row.per_day)
    lines = [
        f"# Refit of {report.made_at:%Y-%m-%d %H:%M} UTC",
        "",
        describe_refit(report) + ".",
        "",
    ]
    if speed != 1.0:
        lines += [f"*A replay, {speed:g} times as fast: times are recorded time.*", ""]
    lines += [_LEGEND, "", _HEAD, *map(_render_row, rows[:MOST_ROWS])]
    if len(rows) > MOST_ROWS:
        lines += ["", f"… and {len(rows) - MOST_ROWS:,} quieter ones: `FROM intensity_models`"]
    return "\n".join(lines)


def _render_row(row: RefitRow) -> str:
    return (
        f"| {escape_markdown(row.source)} | {row.per_day:.1f} | {row.estimator} | {row.policy}"
        f" | {_percent(row.score)} | {_percent(row.gain)} | {escape_markdown(row.note)} |"
    )


def _percent(share: float | None) -> str:
    return "" if share is None else f"{100 * share:.0f} %"


def busiest(items: Sequence[Refitted], n: int) -> list[Refitted]:
    """Return the `n` busiest sources that have held-out weeks to show."""
    shown = [item for item in items if item.shown_from is not None]
    return sorted(shown, key=lambda item: -item.per_day)[:n]
