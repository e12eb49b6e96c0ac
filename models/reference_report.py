"""The report of a refit of all references: which were built, kept and refused."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime

from models.harmless import escape_markdown

MOST_SHOWN = 50


@dataclass(frozen=True, slots=True)
class ReferenceRow:
    """What came of one source.

    Attributes
    ----------
    n_pages
        Pages of the reference it has now; 0 where it has none.
    score
        Share of its own pages found suspicious when held out.
    refusal
        Why no new one was built; empty where one was.
    """

    source: str
    n_pages: int
    score: float | None
    refusal: str


@dataclass(frozen=True, slots=True)
class ReferenceReport:
    """What came of all sources.

    Attributes
    ----------
    n_kept
        Sources whose reference stayed as it was: nothing new, or it drifted.
    took_s
        Wall seconds.
    """

    made_at: datetime
    n_sources: int
    n_kept: int
    took_s: float
    rows: tuple[ReferenceRow, ...]


def describe_references(report: ReferenceReport) -> str:
    """Return the report in one line.

    Examples
    --------
    >>> rows = (ReferenceRow("a", 40, 0.01, ""), ReferenceRow("b", 0, None, "garbled"))
    >>> describe_references(ReferenceReport(datetime(2026, 1, 1), 5, 3, 1.5, rows))
    '5 sources in 1.5 s: 1 references built, 3 kept, 1 refused'
    """
    refused = sum(bool(row.refusal) for row in report.rows)
    return (
        f"{report.n_sources:,} sources in {report.took_s:.1f} s:"
        f" {len(report.rows) - refused:,} references built, {report.n_kept:,} kept,"
        f" {refused:,} refused"
    )


def render_references(report: ReferenceReport) -> str:
    """Return the report as Markdown, refusals first."""
    rows = sorted(report.rows, key=lambda row: (not row.refusal, row.source))
    lines = [
        "# References",
        "",
        f"{describe_references(report)}, {report.made_at:%Y-%m-%d %H:%M} UTC.",
        "",
        "| source | pages | own pages suspicious | refused because |",
        "|---|--:|--:|---|",
    ]
    lines += [
        f"| {escape_markdown(row.source)} | {row.n_pages} |"
        f" {'' if row.score is None else f'{row.score:.1%}'} | {escape_markdown(row.refusal)} |"
        for row in rows[:MOST_SHOWN]
    ]
    return "\n".join(lines)
