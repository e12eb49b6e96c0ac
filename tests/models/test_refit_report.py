"""What people read of a refit."""

from dataclasses import replace
from datetime import UTC, datetime

import numpy as np
import pytest

from models.intensity.history import History
from models.refit_report import (
    MOST_ROWS,
    RefitReport,
    RefitRow,
    busiest,
    describe_refit,
    render_refit_page,
)
from models.refitting import Terms, refit

WEEK_S = 7 * 86_400.0
AT = datetime(2026, 3, 30, 3, 10, tzinfo=UTC)
ROW = RefitRow("daily", 60.0, "weekly", "plan", 0.42, 0.17, "weekly profile; plan: 17 % less lag")


def report(*rows: RefitRow, n_sources: int = 0) -> RefitReport:
    return RefitReport(AT, n_sources or len(rows), 12.3, rows)


def test_one_line_says_how_many_and_what_was_chosen():
    rows = [ROW, replace(ROW, source="echo"), replace(ROW, source="x", policy="price")]
    assert describe_refit(report(*rows, n_sources=5)) == (
        "3 sources refitted in 12 s: 2 plan by weekly, 1 price by weekly; 2 not polled yet"
    )


def test_a_refit_of_nothing_says_so():
    assert describe_refit(report(n_sources=1)) == (
        "0 sources refitted in 12 s: none; 1 not polled yet"
    )


def test_the_page_shows_the_busiest_first_and_escapes_what_it_shows():
    quiet = RefitRow("a|b", 1.0, "weekly", "price", None, None, "too young for Holt-Winters")
    page = render_refit_page(report(quiet, ROW), speed=60.0)
    lines = page.splitlines()
    assert lines[0] == "# Refit of 2026-03-30 03:10 UTC"
    assert lines[-2].startswith("| daily | 60.0 | weekly | plan | 42 % | 17 % | weekly profile;")
    assert lines[-1].startswith("| a&#124;b | 1.0 | weekly | price |  |  | too young")
    assert "A replay, 60 times as fast" in page


def test_a_long_page_says_where_the_rest_is():
    page = render_refit_page(report(*[replace(ROW, source=str(n)) for n in range(MOST_ROWS + 5)]))
    assert "and 5 quieter ones" in page


@pytest.fixture(scope="module")
def fitted():
    rng = np.random.default_rng(1)

    def history(name: str, n: int, n_weeks: int) -> History:
        return History(name, np.sort(rng.uniform(0, n_weeks * WEEK_S, n)), 0.0, n_weeks * WEEK_S)

    histories = [history("a", 300, 4), history("b", 600, 4), history("young", 400, 1)]
    return refit(histories, Terms(AT))


def test_rows_come_from_what_was_fitted(fitted):
    rows = [RefitRow.of(item) for item in fitted]
    assert [row.source for row in rows] == ["a", "b", "young"]
    assert rows[1].per_day == pytest.approx(600 / 28, rel=0.4)
    assert rows[2].score is None
    assert report(*rows).as_json()["models"][0]["policy"] == "price"


def test_the_busiest_with_weeks_to_show_are_pictured(fitted):
    assert [item.model.source for item in busiest(fitted, 2)] == ["b", "a"]
