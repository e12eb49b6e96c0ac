"""Charts: every value in its place, nothing in them that could be markup."""

import re
import xml.etree.ElementTree as ET
from datetime import UTC, datetime, timedelta

import pytest

from models.drawing import HEIGHT, Chart, Series, draw_chart, scale_marks, time_marks

START = datetime(2026, 3, 1, tzinfo=UTC)
HOURS = [START + timedelta(hours=n) for n in range(4)]


def chart(*series, **changes):
    fields = {"name": "n", "title": "Polls", "summary": "polls an hour", "moments": HOURS}
    return Chart(**(fields | changes), series=series)


def drawn(*series, **changes):
    return ET.fromstring(draw_chart(chart(*series, **changes)))


def paths(svg, kind):
    return [each.get("d") for each in svg.iter("path") if each.get("class", "").startswith(kind)]


@pytest.mark.parametrize("largest", [0.0, 0.3, 1.0, 7.0, 99.0, 100.0, 123_456.0, 1e-6])
def test_a_scale_is_round_and_holds_the_largest_value(largest):
    marks = scale_marks(largest)
    assert marks[0] == 0.0
    assert marks[-1] >= largest
    assert 2 <= len(marks) <= 6


def test_a_scale_of_time_is_in_steps_people_reckon_in():
    assert scale_marks(500.0, (60, 120, 300)) == [0.0, 300.0, 600.0]
    assert scale_marks(5000.0, (60, 120, 300))[-1] >= 5000.0


def test_a_hole_breaks_the_line():
    (line,) = paths(drawn(Series("a", [1, None, 3, 4])), "line")
    assert line.count("M") == 2


def test_a_value_alone_is_a_dot():
    (line,) = paths(drawn(Series("a", [None, 2, None, None])), "line")
    start, end = re.findall(r"[\d.]+ [\d.]+", line)
    assert start == end


def test_bars_stand_on_one_another():
    svg = drawn(Series("a", [1, 1, 1, 1], "bars"), Series("b", [1, 1, 1, 1], "bars", 3))
    lower, upper = paths(svg, "bars")
    top_of = lambda path: float(re.match(r"M[\d.]+ ([\d.]+)", path)[1])  # noqa: E731
    assert top_of(upper) < top_of(lower) < HEIGHT


def test_a_target_is_within_the_picture():
    svg = drawn(Series("a", [1, 2, 3, 4]), target=50.0)
    (line,) = [each for each in svg.iter("line") if each.get("class") == "target"]
    assert 0 < float(line.get("y1")) < HEIGHT


def test_titles_are_text():
    harm = "</title><script>alert(1)</script>"
    text = draw_chart(chart(Series(harm, [1, 2, 3, 4]), title=harm, summary=harm))
    assert "<script" not in text
    ET.fromstring(text)


def test_nothing_in_a_chart_is_inline_style_or_script():
    text = draw_chart(
        chart(Series("a", [1, 2, 3, 4]), Series("b", [0, 1, 2, 1], "band", 2, [3] * 4))
    )
    assert not re.search(r"style=|on\w+=|href|<script", text)


def test_a_chart_says_what_it_shows_to_whoever_cannot_see_it():
    svg = drawn(Series("a", [1, 2, 3, 4]))
    assert svg.get("role") == "img"
    assert svg[0].get("id") == svg.get("aria-labelledby")
    assert svg[0].text == "Polls: polls an hour"


def test_an_empty_chart_knows_it():
    assert chart(Series("a", [None] * 4)).is_empty
    assert not chart(Series("a", [0] * 4)).is_empty
    draw_chart(chart(Series("a", []), moments=[]))


def test_days_are_named_rather_than_hours_where_there_are_many():
    names = [name for _, name in time_marks([START + timedelta(days=n) for n in range(14)])]
    assert 2 <= len(names) <= 6
    assert all(name.endswith("Mar") for name in names)
