"""Holt-Winters by least squares, against statsmodels and against itself."""

import warnings

import numpy as np
import pytest

from models.errors import InsufficientDataError
from models.intensity.estimator import HOLT_WINTERS, fill_rates
from models.intensity.holtwinters import learn_hour_holtwinters
from models.intensity.hwfit import BEGIN_HOURS, fit_holtwinters
from models.intensity.state import new_state
from models.week import zone_table

WEEK = 168


def make_counts(n_weeks=6, seed=3, per_hour=6.0):
    rng = np.random.default_rng(seed)
    hours = np.arange(n_weeks * WEEK)
    day = 1.0 + 0.8 * np.sin(2 * np.pi * (hours % 24 - 6) / 24)
    weekend = np.where(hours // 24 % 7 < 5, 1.0, 0.5)
    drift = np.exp(rng.normal(0.0, 0.02, len(hours)).cumsum())
    return rng.poisson(per_hour * day * weekend * drift).astype(float), hours % WEEK


def squared_error(fit, counts, hours):
    """Return the mean squared one-step error by the function that the live system learns with."""
    state = new_state(0.0)
    fit.write_constants(state)
    fit.write_beginning(state)
    errors = []
    for hour, count in zip(hours[fit.begins :], counts[fit.begins :], strict=True):
        expected = state["hw_level"] + state["hw_trend"]
        expected += state["hw_day"][hour % 24] + state["hw_week"][hour]
        errors.append((count - expected) ** 2)
        learn_hour_holtwinters(state, int(hour), float(count))
    return float(np.mean(errors))


def test_the_error_is_that_of_the_model_that_learns_live():
    counts, hours = make_counts()
    fit = fit_holtwinters(counts, hours)
    assert fit.squared_error == pytest.approx(squared_error(fit, counts, hours), rel=1e-9)


def test_no_constants_nearby_are_better():
    counts, hours = make_counts()
    fit = fit_holtwinters(counts, hours)
    for name in ("alpha", "gamma", "omega"):
        for factor in (0.7, 1.4):
            other = type(fit)(
                **{
                    **{key: getattr(fit, key) for key in fit.__slots__},
                    name: min(getattr(fit, name) * factor, 0.999),
                }
            )
            assert squared_error(other, counts, hours) >= fit.squared_error * (1 - 1e-4)


@pytest.mark.parametrize("seed", [1, 2, 3])
def test_one_season_fits_as_well_as_statsmodels(seed):
    holtwinters = pytest.importorskip("statsmodels.tsa.holtwinters")
    counts, hours = make_counts(seed=seed)
    fit = fit_holtwinters(counts, hours, has_week=False)
    with warnings.catch_warnings():
        # It says so when its search does not converge; the least error it found counts.
        warnings.simplefilter("ignore")
        model = holtwinters.ExponentialSmoothing(
            counts[BEGIN_HOURS:],
            trend="add",
            seasonal="add",
            seasonal_periods=24,
            initialization_method="known",
            initial_level=fit.level,
            initial_trend=0.0,
            initial_seasonal=fit.day,
        )
        # Theirs corrects the season by the error before the level has moved.
        same = {
            "smoothing_level": fit.alpha,
            "smoothing_trend": fit.beta,
            "smoothing_seasonal": fit.gamma * (1.0 - fit.alpha),
        }
        ours = model.fit(optimized=False, **same)
        theirs = model.fit()
    n = len(counts) - BEGIN_HOURS
    assert ours.sse / n == pytest.approx(fit.squared_error, rel=1e-9)
    assert fit.squared_error <= theirs.sse / n * 1.002
    assert fit.alpha == pytest.approx(theirs.params["smoothing_level"], abs=0.05)


def test_hours_nobody_watched_do_not_count_as_silent():
    counts, hours = make_counts(n_weeks=8)
    whole = fit_holtwinters(counts, hours)
    holed = counts.copy()
    holed[4 * WEEK : 4 * WEEK + 40] = np.nan
    fit = fit_holtwinters(holed, hours)
    assert fit.squared_error == pytest.approx(whole.squared_error, rel=0.1)
    assert fit_holtwinters(np.nan_to_num(holed), hours).squared_error > fit.squared_error * 1.1


@pytest.mark.report("statsmodels/statsmodels#7050")
def test_under_two_weeks_of_hours_are_refused_with_their_number():
    counts, hours = make_counts(n_weeks=2)
    counts[5] = np.nan
    with pytest.raises(InsufficientDataError, match="335 observations, 336 needed"):
        fit_holtwinters(counts, hours)


def test_exactly_two_weeks_begin_a_model_with_the_usual_constants():
    counts, hours = make_counts(n_weeks=2)
    fit = fit_holtwinters(counts, hours)
    assert (fit.alpha, fit.begins) == (0.05, BEGIN_HOURS)
    assert np.isnan(fit.squared_error)
    assert fit.level == pytest.approx(counts.mean())


@pytest.mark.report("Nixtla/statsforecast#480")
@pytest.mark.report("statsmodels/statsmodels#6243")
def test_a_season_as_long_as_a_week_gives_finite_forecasts_from_its_second_time_on():
    state = new_state(0.0)
    counts, hours = make_counts(n_weeks=2)
    fit = fit_holtwinters(counts, hours)
    fit.write_constants(state)
    fit.write_beginning(state)
    rates = np.empty(WEEK)
    fill_rates(HOLT_WINTERS, state, 0.0, zone_table("UTC", 1970, 1970), rates)
    assert np.isfinite(rates).all()
    assert rates.min() >= 0.0
    assert rates.max() > 2 * rates.min()


def test_a_silent_source_is_fitted_too():
    fit = fit_holtwinters(np.zeros(4 * WEEK), np.arange(4 * WEEK) % WEEK)
    assert fit.squared_error == 0.0
    assert 0.0 < fit.alpha < 1.0
