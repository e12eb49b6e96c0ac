"""Rows of ``intensity_models`` and ``forecasts``: what the nightly refit learned."""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence
from dataclasses import replace
from datetime import datetime
from typing import Any

import duckdb

from models.records import FittedModel, HourlyForecast
from tasks.duck.rows import CHUNK, Row, insert_rows, marks, storable


def write_models(
    connection: duckdb.DuckDBPyConnection, models: Sequence[FittedModel], fitted_at: datetime
) -> None:
    """Write models in place of those their sources had. Twice is the same as once."""
    dated = {model.source: replace(model, fitted_at=fitted_at) for model in models}
    _delete(connection, "intensity_models", list(dated))
    insert_rows(connection, "intensity_models", [_model_row(model) for model in dated.values()])


def _model_row(model: FittedModel) -> tuple[Any, ...]:
    return (
        model.source,
        model.fitted_at,
        model.kind,
        json.dumps(model.parameters, ensure_ascii=False, sort_keys=True),
        model.score,
        model.policy,
        model.state,
        model.note,
    )


def read_models(query: Callable[[str], Sequence[Row]]) -> list[FittedModel]:
    """Return the model of every source that has one with a state, by source.

    Parameters
    ----------
    query
        Runs an SQL text and returns its rows, times in UTC.
    """
    rows = query(
        "SELECT source, fitted_at, kind, policy, state, score, note, parameters "
        "FROM intensity_models WHERE state IS NOT NULL ORDER BY source"
    )
    return [_model(*row) for row in rows]


def _model(
    source: str,
    fitted_at: datetime,
    kind: str,
    policy: str | None,
    state: bytes,
    score: float | None,
    note: str | None,
    parameters: str,
) -> FittedModel:
    return FittedModel(
        source=source,
        fitted_at=fitted_at,
        kind=kind,
        policy=policy or "price",
        state=bytes(state),
        score=score,
        note=note or "",
        parameters=json.loads(parameters),
    )


def write_forecasts(
    connection: duckdb.DuckDBPyConnection,
    forecasts: Sequence[HourlyForecast],
    keep_from: datetime | None = None,
) -> None:
    """Write forecasts in place of earlier ones for the same hours and those after them.

    Hours before stay as they were foretold, to be compared with what came.

    Parameters
    ----------
    keep_from
        Forecasts of hours before it are deleted, of all sources; None keeps them.
    """
    latest = list({item.source: item for item in forecasts}.values())
    for from_at in {item.from_at for item in latest}:
        sources = [item.source for item in latest if item.from_at == from_at]
        _delete(connection, "forecasts", sources, "AND hour_at >= ?", [from_at])
    if keep_from is not None:
        connection.execute("DELETE FROM forecasts WHERE hour_at < ?", [keep_from])
    for start in range(0, len(latest), CHUNK):
        _insert_forecasts(connection, latest[start : start + CHUNK])


def _insert_forecasts(
    connection: duckdb.DuckDBPyConnection, forecasts: Sequence[HourlyForecast]
) -> None:
    """Insert every hour of some sources: a list each, which DuckDB unrolls.

    A week of hours for thousands of sources would be millions of placeholders.
    """
    row = "(?, ?::TIMESTAMPTZ, ?::TIMESTAMPTZ, ?, ?::DOUBLE[], ?::DOUBLE[], ?::DOUBLE[])"
    connection.execute(
        "INSERT INTO forecasts (source, hour_at, made_at, kind, expected_entries, low, high) "  # noqa: S608
        "SELECT source, from_at + to_hours((hour - 1)::INTEGER), made_at, kind, "
        "expected[hour], low[hour], high[hour] "
        f"FROM (VALUES {', '.join([row] * len(forecasts))}) "
        "AS given (source, from_at, made_at, kind, expected, low, high), "
        "LATERAL (SELECT unnest(range(1, len(expected) + 1)) AS hour)",
        storable(value for forecast in forecasts for value in _forecast_row(forecast)),
    )


def _forecast_row(forecast: HourlyForecast) -> tuple[Any, ...]:
    return (
        forecast.source,
        forecast.from_at,
        forecast.made_at,
        forecast.kind,
        list(forecast.expected),
        list(forecast.low),
        list(forecast.high),
    )


def _delete(
    connection: duckdb.DuckDBPyConnection,
    table: str,
    sources: Sequence[str],
    condition: str = "",
    values: Sequence[Any] = (),
) -> None:
    for start in range(0, len(sources), CHUNK):
        part = sources[start : start + CHUNK]
        connection.execute(
            f"DELETE FROM {table} WHERE source IN ({marks(len(part))}) {condition}",  # noqa: S608
            [*part, *values],
        )
