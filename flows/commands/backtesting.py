"""`newsbeat backtest`: policies compared on publication times of the past."""

from __future__ import annotations

import os
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from rich.console import Console, ConsoleOptions, RenderResult

from flows.commands.screen import Column, Screen, fit_table
from flows.wording import spell_count
from models.backtest import (
    CONTENDERS,
    LEAST_ENTRIES,
    USUAL,
    Backtest,
    Bench,
    Score,
    draw_curve,
    run_backtest,
    train,
)
from models.errors import ConfigError, ParseError
from models.polling.fixed import spell_duration
from models.traces import Stream, Trace, make_trace
from tasks.plots import check_plot_name, write_frontier
from tasks.settings import Settings
from tasks.traces import read_trace, read_warehouse_trace
from tasks.warehouse_reader import open_reader

WAREHOUSE = "warehouse"
MOST_WORKERS = 8
ROUNDED = 3
DAY_S = 86_400.0


@dataclass(frozen=True, slots=True)
class BacktestReport:
    """How policies compare, for people and for programs.

    Attributes
    ----------
    name
        Of the trace.
    """

    name: str
    trace: Trace
    result: Backtest

    def as_json(self) -> dict[str, Any]:
        """Return it as JSON-ready values."""
        return {
            "trace": self.name,
            "sources": self.result.n_sources,
            "events": self.trace.n_entries,
            "events_tested": self.result.n_tested,
            "days_tested": round(self.trace.tested_s / DAY_S, ROUNDED),
            "interval_s": self.result.interval_s,
            "window": self.trace.window,
            "rho": round(self.result.rho, 4),
            "rho_across": round(self.result.rho_across, 4),
            "policies": [_rounded(asdict(score)) for score in self.result.scores],
        }

    def __rich_console__(self, console: Console, options: ConsoleOptions) -> RenderResult:
        """Yield the table and what it means."""
        trace, result = self.trace, self.result
        yield (
            f"{self.name}: {spell_count(result.n_sources, 'source')},"
            f" {spell_entries(trace.n_entries)}; the last"
            f" {spell_duration(trace.tested_s)} tested, every policy tuned to the polls of a"
            f" timer of {spell_duration(result.interval_s)}"
        )
        yield ""
        yield fit_table(_columns(result.scores), options.max_width)
        yield ""
        yield (
            f"rate bound: {result.rho:.3f} of the timer's mean lag"
            f" ({result.rho_across:.3f} from the sources' rates alone)."
            " rate-oracle knows the rates of every hour of the week, clairvoyant every entry."
        )
        for score in result.scores:
            if (
                abs(score.polls / result.scores[0].polls - 1.0) > 0.02
                and score.policy != "clairvoyant"
            ):
                yield (
                    f"{score.policy} cannot spend this budget within its bounds:"
                    " it is compared with a timer of as many polls."
                )


def backtest(
    settings: Settings,
    trace: str,
    *,
    policies: Sequence[str],
    interval_s: float,
    train_share: float,
    window: int,
    timezone: str | None,
    plot: Path | None,
    screen: Screen,
) -> BacktestReport:
    """Replay a trace under policies, each tuned to the same number of polls.

    Parameters
    ----------
    trace
        A file, or ``warehouse``.
    policies
        Names from ``models.backtest.CONTENDERS``.
    plot
        Where to draw lag against polls, if anywhere.

    Raises
    ------
    ParseError
        If the trace cannot be read, or has too few entries.
    ConfigError
        If `plot` is no name of a picture.
    WarehouseError
        If there is no warehouse to read.
    """
    if plot is not None:
        check_plot_name(plot)
    with screen:
        screen.say(f"reading {trace} …")
        streams = _read(settings, trace, timezone)
        cut = _cut(trace, streams, train_share, window)
        counts = f"{spell_count(len(streams), 'source')}, {spell_entries(cut.n_entries)}"
        screen.say(f"{trace}: {counts}")
        screen.say("learning from the first part …")
        workers = min(os.cpu_count() or 1, MOST_WORKERS)
        bench = Bench(cut, train(cut, workers), workers=workers)
        result = run_backtest(
            cut,
            policies,
            interval_s=interval_s,
            bench=bench,
            report=lambda name, place, n: screen.say(f"replaying {name} ({place} of {n}) …"),
        )
        if plot is not None:
            screen.say("drawing …")
            _draw(plot, trace, bench, result)
            screen.say(f"picture: {plot}")
    return BacktestReport(trace, cut, result)


def choose_policies(asked: Sequence[str]) -> tuple[str, ...]:
    """Return the policies to replay: those asked for, or the usual ones.

    Raises
    ------
    ConfigError
        If there is no such policy; names those there are.
    """
    for name in asked:
        if name not in CONTENDERS and name != "fixed":
            raise ConfigError("--policy", name, name, f"one of fixed, {', '.join(CONTENDERS)}")
    return tuple(name for name in dict.fromkeys(asked) if name != "fixed") if asked else USUAL


def _read(settings: Settings, trace: str, timezone: str | None) -> list[Stream]:
    if trace != WAREHOUSE:
        return read_trace(Path(trace), timezone)
    with open_reader(settings) as reader:
        return read_warehouse_trace(lambda sql: reader.query(sql).rows)


def _cut(name: str, streams: Sequence[Stream], train_share: float, window: int) -> Trace:
    if not streams:
        raise ParseError(name, "no entries with an exact time yet; collect some days first")
    trace = make_trace(streams, train_share=train_share, window=window)
    if trace.n_tested < LEAST_ENTRIES:
        found = spell_entries(trace.n_tested)
        raise ParseError(
            name,
            f"too little to compare policies on: {found} in the"
            f" {spell_duration(trace.tested_s)} to be tested, at least {LEAST_ENTRIES} are needed",
        )
    return trace


def _draw(file: Path, name: str, bench: Bench, result: Backtest) -> None:
    per_day = DAY_S / (bench.trace.tested_s * result.n_sources)
    fixed = result.scores[0]
    points = {
        score.policy: draw_curve(bench, score)
        for score in result.scores
        if score.policy in CONTENDERS
    }
    budgets = sorted(polls for curve in points.values() for polls, _ in curve) or [fixed.polls]
    timer = [(polls, fixed.mean_lag_s * fixed.polls / polls) for polls in (budgets[0], budgets[-1])]
    curves = {
        policy: [(polls * per_day, lag) for polls, lag in curve]
        for policy, curve in {"fixed": timer, **points}.items()
    }
    write_frontier(file, curves, title=f"{name}: {result.n_sources} sources")


def _columns(scores: Sequence[Score]) -> list[Column]:
    def column(name: str, cells: list[str], worth: int = 0) -> Column:
        return Column(name, cells, is_number=True, worth=worth)

    return [
        Column("policy", [score.policy for score in scores]),
        column("mean lag", [spell_duration(score.mean_lag_s) for score in scores]),
        column("vs timer", [f"{score.lag_vs_fixed:.3f}" for score in scores]),
        column("median", [spell_duration(score.median_lag_s) for score in scores], 8),
        column("p95", [spell_duration(score.p95_lag_s) for score in scores], 9),
        column("by source", [spell_duration(score.source_mean_lag_s) for score in scores], 3),
        column("polls", [f"{score.polls:,}" for score in scores], 10),
        column("empty", [f"{score.empty_polls:,}" for score in scores], 6),
        column("MB", [f"{score.mb:,.0f}" for score in scores], 7),
        column("MB with 304s", [f"{score.mb_with_validators:,.0f}" for score in scores], 5),
        column("CPU s", [f"{score.cpu_s:,.0f}" for score in scores], 2),
        column("lost", [f"{score.lost:,}" for score in scores], 11),
        column("knob", [_spell_knob(score) for score in scores], 1),
    ]


def spell_entries(number: int) -> str:
    """Return a number with its noun.

    Examples
    --------
    >>> spell_entries(1), spell_entries(64764)
    ('1 entry', '64,764 entries')
    """
    return "1 entry" if number == 1 else f"{number:,} entries"


def _spell_knob(score: Score) -> str:
    return ", ".join(f"{value:.4g}" for value in score.parameters.values())


def _rounded(values: dict[str, Any]) -> dict[str, Any]:
    return {
        name: round(value, ROUNDED) if isinstance(value, float) else value
        for name, value in values.items()
    }
