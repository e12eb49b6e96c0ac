"""The page of a check, as Markdown: what people see of a drift in Prefect's UI."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime

from models.batches import BatchResult
from models.harmless import escape_markdown
from models.records import DriftState, Repair
from models.standing import describe_change, describe_repair

MOST_SHOWN = 30


@dataclass(frozen=True, slots=True)
class DriftPage:
    """All that the page of a check shows.

    Attributes
    ----------
    document
        Where the findings lie as a document, an address or a file; empty where there is none.
    """

    source: str
    checked_at: datetime
    n_reference: int
    n_test: int
    result: BatchResult
    state: DriftState
    repair: Repair | None = None
    document: str = ""


def render_drift_page(page: DriftPage) -> str:
    """Return the page as Markdown: the verdict, what to do, then every criterion."""
    outcome = page.result.outcome
    lines = [
        f"# {escape_markdown(page.source)}: {outcome}",
        "",
        (
            f"{page.n_test} pages compared with a reference of {page.n_reference},"
            f" {page.checked_at:%Y-%m-%d %H:%M} UTC, {page.result.cpu_s:.1f} s of processor time."
        ),
        "",
    ]
    if page.result.reason:
        lines += [f"**{escape_markdown(page.result.reason)}**", ""]
    lines += _standing(page.state)
    if page.repair is not None:
        lines += _repair(page.repair)
    if page.document:
        is_address = page.document.startswith("http")
        where = f"<{page.document}>" if is_address else f"`{page.document}`"
        lines += [f"All findings: {where}", ""]
    lines += [
        "| criterion | value | threshold | |",
        "|---|--:|--:|---|",
        *_rows(page.result),
    ]
    return "\n".join(lines)


def _standing(state: DriftState) -> Sequence[str]:
    if not state.has_drifted:
        return []
    what = "The text is wrong" if state.standing == "text" else "The layout changed"
    return [
        (
            f"**{what}** since {state.since_at:%Y-%m-%d %H:%M} UTC"
            f" (page `{state.since_page}`): {escape_markdown(describe_change(state))}."
        ),
        "",
    ]


def _repair(repair: Repair) -> Sequence[str]:
    lines = [
        (
            f"**Another way to the text**: {escape_markdown(describe_repair(repair))}."
            f" `newsbeat reextract {repair.source} --adopt` takes it."
        ),
        "",
        "| way | texts that fit | evidence | characters |",
        "|---|--:|--:|--:|",
    ]
    for tried in repair.evidence:
        name = tried["selector"] or tried["way"]
        lines.append(
            f"| {escape_markdown(str(name))} | {tried['n_fitting']} of {tried['n_pages']}"
            f" | {tried['evidence']:.1f} | {tried['n_chars']:,} |"
        )
    return [*lines, ""]


def _rows(result: BatchResult) -> list[str]:
    # What fired comes first: it is what people look for.
    found = sorted(result.findings, key=lambda item: (not item.fired, item.is_evaluated))
    return [
        f"| {escape_markdown(item.criterion)} | {_number(item.statistic)}"
        f" | {_number(item.threshold)} |"
        f" {'**fired**' if item.fired else 'quiet' if item.is_evaluated else 'not judged'} |"
        for item in found[:MOST_SHOWN]
    ]


def _number(value: float | None) -> str:
    return "" if value is None else f"{value:.3g}"
