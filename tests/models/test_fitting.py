"""A source fitted whole: seasons, bursts, minutes, lag, and what a short past lacks."""

from dataclasses import replace

import numpy as np
import pytest

from models.intensity.estimator import HOLT_WINTERS, WEEKLY
from models.intensity.fitting import fit_state, fit_states
from models.intensity.history import History
from models.intensity.state import SOURCE_STATE, new_state, read_state, write_state
from models.simulator import train_state
from models.synthetic import MONDAY_S, make_intensity, make_stamps
from models.week import HOUR_S, WEEK_S


def make_history(per_day=60.0, n_weeks=10, seed=1, branching=0.0, timezone="UTC"):
    rng = np.random.default_rng(seed)
    stamps = make_stamps(make_intensity(per_day, n_weeks, rng), rng, branching, 1200.0)
    return History("daily", stamps, MONDAY_S, MONDAY_S + n_weeks * WEEK_S, timezone)


def test_the_walk_teaches_what_polling_every_hour_would():
    history = make_history(timezone="Asia/Kolkata")
    fitted = fit_state(history).state
    polled = train_state(history.stamps_s, history.start_s, history.end_s, history.timezone)
    for name in ("counts", "exposure_h", "minutes", "seconds"):
        np.testing.assert_allclose(fitted[name], polled[name], rtol=1e-4, err_msg=name)


def test_threads_and_chunks_change_nothing():
    histories = [make_history(seed=seed, n_weeks=5) for seed in range(7)]
    alone = fit_states(histories)
    together = fit_states(histories, threads=3, chunk=2)
    assert [fit.state.tobytes() for fit in alone] == [fit.state.tobytes() for fit in together]


def test_a_quarter_of_the_history_judges_it():
    fitted = fit_state(make_history(n_weeks=10))
    assert fitted.held_out is not None
    assert fitted.held_out.start_s == MONDAY_S + 8 * WEEK_S
    assert len(fitted.held_out.counts) == 2 * 168
    assert fitted.held_out.forecasts.shape == (2 * 168, 3)


def test_what_is_held_out_teaches_nothing_of_what_judges():
    history = make_history(n_weeks=10)
    before = history.stamps_s[history.stamps_s < MONDAY_S + 8 * WEEK_S]
    silent = replace(history, stamps_s=before)
    known, same = fit_state(history).held_out, fit_state(silent).held_out
    assert known is not None
    assert same is not None
    assert known.state.tobytes() == same.state.tobytes()
    np.testing.assert_array_equal(known.forecasts[0], same.forecasts[0])


def test_forecasts_of_held_out_hours_add_up():
    fitted = fit_state(make_history(per_day=200.0, n_weeks=12))
    assert fitted.held_out is not None
    came = fitted.held_out.counts.sum()
    for estimator in (WEEKLY, HOLT_WINTERS):
        assert fitted.held_out.forecasts[:, estimator].sum() == pytest.approx(came, rel=0.1)


def test_bursts_are_found_where_entries_breed():
    bursty = fit_state(make_history(branching=0.5)).state
    assert 0.3 <= bursty["branching"] <= 0.6
    assert bursty["decay_s"] <= 2400.0


def test_no_minute_and_no_short_burst_is_found_in_chance():
    for seed in range(5):
        rng, history = np.random.default_rng(seed), make_history()
        n = len(history.stamps_s)
        chance = np.sort(rng.uniform(history.start_s, history.end_s, n))
        state = fit_state(replace(history, stamps_s=chance)).state
        assert state["phase_trust"] == 0.0
        # What it may find is that the last hours tell more than a noisy profile.
        assert state["branching"] <= 0.3
        assert state["branching"] == 0.0 or state["decay_s"] >= 1200.0


def test_minutes_are_trusted_where_a_source_publishes_on_the_quarter():
    history = make_history()
    quarters = np.sort(np.round(history.stamps_s / 900.0) * 900.0 + 2.0)
    assert fit_state(replace(history, stamps_s=quarters)).state["phase_trust"] == 1.0


def test_the_lag_of_a_publisher_is_learned_from_sightings():
    history = make_history(per_day=100.0)
    polls = np.arange(history.start_s, history.end_s, 300.0)
    shown = np.searchsorted(polls, history.stamps_s + 120.0)
    is_seen = (shown > 0) & (shown < len(polls))
    at = shown[is_seen]
    sightings = np.column_stack([history.stamps_s[is_seen], polls[at - 1], polls[at]])
    assert 60.0 <= fit_state(replace(history, sightings_s=sightings)).state["lag_s"] <= 180.0
    assert fit_state(history).state["lag_s"] == 0.0


def test_an_outage_is_no_silence():
    history = make_history(per_day=100.0, n_weeks=8)
    out = (MONDAY_S + 4 * WEEK_S, MONDAY_S + 6 * WEEK_S)
    spans = np.array([[history.start_s, out[0]], [out[1], history.end_s]])
    seen = history.stamps_s[(history.stamps_s < out[0]) | (history.stamps_s >= out[1])]
    holed = fit_state(replace(history, stamps_s=seen, covered_s=spans)).state
    whole, blind = fit_state(history).state, fit_state(replace(history, stamps_s=seen)).state

    def rate(state):
        return state["counts"].sum() / state["exposure_h"].sum()

    assert rate(holed) == pytest.approx(rate(whole), rel=0.1)
    assert rate(blind) < 0.9 * rate(whole)
    assert holed["hw_level"] == pytest.approx(whole["hw_level"], rel=0.3)


@pytest.mark.parametrize("n_days", [0, 1, 10])
def test_a_young_source_is_fitted_as_far_as_its_past_reaches(n_days):
    history = make_history(n_weeks=2)
    end_s = MONDAY_S + n_days * 86_400.0
    stamps = history.stamps_s[history.stamps_s < end_s]
    fitted = fit_state(replace(history, stamps_s=stamps, end_s=end_s))
    assert "too young for Holt-Winters" in fitted.note
    assert fitted.held_out is None
    assert fitted.holtwinters is None
    assert np.isfinite(fitted.state["prior_per_hour"])


def test_a_source_that_never_published_is_fitted():
    silent = History("silent", np.empty(0), MONDAY_S, MONDAY_S + 5 * WEEK_S)
    fitted = fit_state(silent)
    assert fitted.largest_per_hour == 0.0
    assert all(np.isfinite(fitted.state[name]).all() for name in SOURCE_STATE.names[:8])


def test_the_last_entries_still_excite_the_source():
    history = make_history(branching=0.5)
    last = np.append(history.stamps_s, history.end_s - np.array([40.0, 30.0, 20.0]))
    assert fit_state(replace(history, stamps_s=np.sort(last))).state["excess_per_s"] > 0.0


def test_hours_before_a_hole_are_not_handed_on_as_silence():
    from models.intensity.estimator import observe
    from models.week import zone_table

    state, zone = new_state(0.0), zone_table("UTC", 1970, 1970)
    state["ema_alpha"] = 1.0
    observe(state, 0.0, HOUR_S, zone, np.full(5, 100.0))
    observe(state, 9.5 * HOUR_S, 10.0 * HOUR_S, zone, np.full(2, 9.7 * HOUR_S))
    assert state["ema_per_hour"] == 5.0
    observe(state, 10.0 * HOUR_S, 11.0 * HOUR_S, zone, np.full(3, 10.5 * HOUR_S))
    assert state["ema_per_hour"] == 3.0


def test_a_state_is_read_as_it_was_written_and_none_of_another_version():
    state = new_state(0.0, prior_per_hour=2.5)
    stored = write_state(state)
    assert read_state(stored).tobytes() == state.tobytes()
    for other in (stored[:-1], b"old!" + stored[4:], b""):
        with pytest.raises(ValueError, match="no source state of this version"):
            read_state(other)
