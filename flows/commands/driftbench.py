"""`newsbeat drift-bench`: detectors of changed sites, compared on real pages."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from rich.console import Console, ConsoleOptions, RenderResult

from flows.commands.screen import Column, Screen, fit_table
from flows.drift_bench import BenchPlan, BenchReport, run_drift_bench
from models.drift.faults import KINDS
from models.errors import ConfigError

HARMLESS = frozenset({"always", "never"})


@dataclass(frozen=True, slots=True)
class DriftBenchView:
    """A bench's report, for people."""

    report: BenchReport

    def __rich_console__(self, console: Console, options: ConsoleOptions) -> RenderResult:
        """Yield the tables and what they mean."""
        plan, report = self.report.plan, self.report
        yield (
            f"{len(report.sites)} sites with real layouts, {plan.n_reference} reference pages"
            f" each; {plan.share:.0%} of the pages broken from the break on."
        )
        yield ""
        yield fit_table(self._overview(), options.max_width)
        yield ""
        yield "Found within 120 pages, and pages to the alarm (median/p90):"
        yield ""
        yield fit_table(self._kinds(), options.max_width)
        yield ""
        yield (
            f"Features cost {report.feature_ms:.1f} ms a page beside extraction."
            " Bounds hold with 95 % confidence."
        )
        for line in report.left_out:
            yield f"left out: {line}"

    def _overview(self) -> list[Column]:
        tallies = self.report.tallies
        rows = [tally.as_json(name) for name, tally in tallies.items()]
        redesigns = [row["redesigns"] for row in rows]
        bounds = [tally.false_alarm_bound for tally in tallies.values()]
        return [
            Column("detector", [row["detector"] for row in rows]),
            Column("correct pages", [f"{row['pages_ok']:,}" for row in rows], True, 3),
            Column("false alarms", [f"{row['false_alarms']:,}" for row in rows], True),
            Column("bound a page", [f"{bound:.1e}" for bound in bounds], True, 2),
            Column("redesigns", [f"{row['found']} of {row['n']}" for row in redesigns], True, 1),
            Column("pages", [_count(row["median_pages"]) for row in redesigns], True, 1),
            Column("false", [f"{row['false_alarms']}" for row in redesigns], True, 1),
            Column("ms a page", [f"{row['cpu_ms_per_page']:.2f}" for row in rows], True, 2),
        ]

    def _kinds(self) -> list[Column]:
        shown = {
            name: {row["kind"]: row for row in tally.by_kind()}
            for name, tally in self.report.tallies.items()
            if name not in HARMLESS
        }
        kinds = [kind for kind in KINDS if any(kind in rows for rows in shown.values())]
        ours = next(iter(shown.values()), {})
        columns = [
            Column("broken", kinds),
            *(
                Column(name, [_found(rows.get(kind)) for kind in kinds], True, worth=at)
                for at, (name, rows) in zip(range(len(shown), 0, -1), shown.items(), strict=True)
            ),
        ]
        causes = [_share(ours.get(kind, {}).get("cause_right_share")) for kind in kinds]
        return [*columns[:2], Column("cause right", causes, True, len(shown)), *columns[2:]]


def _found(row: Mapping[str, Any] | None) -> str:
    if row is None:
        return ""
    pages = f"{_count(row['median_pages'])}/{_count(row['p90_pages'])}"
    return f"{row['found_share']:.0%} {pages}"


def _count(value: int | None) -> str:
    return "–" if value is None else str(value)


def _share(value: float | None) -> str:
    return "" if value is None else f"{value:.0%}"


def check_kinds(asked: tuple[str, ...]) -> tuple[str, ...]:
    """Return the breakages to try: those asked for, or all.

    Raises
    ------
    ConfigError
        If there is no such breakage; names those there are.
    """
    for kind in asked:
        if kind not in KINDS:
            raise ConfigError("--kind", kind, kind, f"one of {', '.join(KINDS)}")
    return tuple(dict.fromkeys(asked)) or KINDS


def bench_drift(plan: BenchPlan, screen: Screen) -> BenchReport:
    """Measure all detectors, and show how far it is.

    Raises
    ------
    NewsbeatError
        If the folder does not hold enough pages.
    """
    with screen:
        screen.say(f"listing the pages of {plan.folder} …")
        return run_drift_bench(
            plan, lambda what, done, total: screen.say(f"{what}: {done} of {total} …")
        )
