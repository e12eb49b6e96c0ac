"""What a refit learned, written to the warehouse and read back."""

from dataclasses import replace
from datetime import timedelta

import pytest

from models.records import FittedModel, HourlyForecast


@pytest.fixture
def model(press):
    return FittedModel(
        "daily",
        press.at(0),
        kind="weekly",
        policy="plan",
        state=bytes(range(256)) * 12,
        score=-1.5,
        note="plan saved 4 % of the lag",
        parameters={"level": 1.2},
    )


@pytest.fixture
def forecast(press):
    hours = tuple(float(n) for n in range(168))
    return HourlyForecast("daily", press.at(0), press.at(-2), "weekly", hours, hours, hours)


def test_a_model_is_read_back_as_it_was_written(warehouse, model):
    warehouse.write_intensity_models([model], model.fitted_at)
    assert warehouse.read_intensity_models() == [model]


def test_a_refit_takes_the_place_of_the_one_before_it(warehouse, model, press):
    other = replace(model, source="echo")
    warehouse.write_intensity_models([model, other], press.at(0))
    renewed = replace(model, policy="price", fitted_at=press.at(60))
    for _ in range(2):
        warehouse.write_intensity_models([renewed], press.at(60))
    assert warehouse.read_intensity_models() == [renewed, other]


def test_a_model_without_score_is_read_back(warehouse, model):
    young = replace(model, score=None, note="", parameters={})
    warehouse.write_intensity_models([young], model.fitted_at)
    assert warehouse.read_intensity_models() == [young]


def test_a_forecast_has_a_row_for_each_hour(warehouse, forecast, press):
    warehouse.write_forecasts([forecast, replace(forecast, source="echo")])
    rows = warehouse.query(
        "SELECT hour_at, made_at, kind, expected_entries, low, high FROM forecasts "
        "WHERE source = 'daily' ORDER BY hour_at"
    )
    assert len(rows) == 168
    assert rows[3] == (press.at(180), press.at(-2), "weekly", 3.0, 3.0, 3.0)


def test_a_later_forecast_replaces_the_hours_from_its_first_one_on(warehouse, forecast, press):
    warehouse.write_forecasts([forecast])
    later = replace(forecast, from_at=press.at(24 * 60), made_at=press.at(24 * 60 - 2))
    for _ in range(2):
        warehouse.write_forecasts([later])
    assert warehouse.query(
        "SELECT made_at, count(*), min(hour_at) FROM forecasts GROUP BY made_at ORDER BY made_at"
    ) == [(forecast.made_at, 24, forecast.from_at), (later.made_at, 168, later.from_at)]


def test_forecasts_of_long_ago_are_deleted(warehouse, forecast):
    warehouse.write_forecasts([forecast])
    later = replace(forecast, source="echo", from_at=forecast.from_at + timedelta(days=7))
    warehouse.write_forecasts([later], keep_from=forecast.from_at + timedelta(hours=100))
    assert warehouse.query("SELECT source, count(*) FROM forecasts GROUP BY ALL ORDER BY ALL") == [
        ("daily", 68),
        ("echo", 168),
    ]
