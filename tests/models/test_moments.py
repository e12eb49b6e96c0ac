from datetime import UTC, datetime, timedelta

import pytest
from hypothesis import given
from hypothesis import strategies as st

from models.moments import Moment, is_plausible, read_moment, read_recent


@pytest.mark.parametrize(
    ("text", "at", "precision"),
    [
        pytest.param(
            "Thu, 03 Sep 15 00:01:01 +0200",
            "2015-09-02T22:01:01",
            "instant",
            marks=pytest.mark.report("kurtmckee/feedparser#33"),
        ),
        pytest.param(
            "Mon, May 25 2020 04:45:26 +0000",
            "2020-05-25T04:45:26",
            "instant",
            marks=pytest.mark.report("Ranchero-Software/NetNewsWire#2109"),
        ),
        pytest.param(
            "dom, 02 ott 2022 18:55:00 GMT",
            "2022-10-02T18:55:00",
            "instant",
            marks=pytest.mark.report("witochandra/webfeed#66"),
        ),
        pytest.param(
            "Tue, 08 Oct 2013 18:30:00 EST",
            "2013-10-08T23:30:00",
            "instant",
            marks=pytest.mark.report("danmactough/node-feedparser#85"),
        ),
        ("2024-05-06T07:08:09.123456+03:00", "2024-05-06T04:08:09", "instant"),
        ("2024-05-06T07:08Z", "2024-05-06T07:08:00", "minute"),
        ("2024-05-06 07:08:09 +0300", "2024-05-06T04:08:09", "instant"),
        ("20240506T070809Z", "2024-05-06T07:08:09", "instant"),
        ("1714979289", "2024-05-06T07:08:09", "instant"),
        ("Mon, 06 May 2024 24:00:00 GMT", "2024-05-07T00:00:00", "instant"),
        ("Mon May  6 07:08:09 PST 2024", "2024-05-06T15:08:09", "instant"),
        ("May 6, 2024 7:08 PM UTC", "2024-05-06T19:08:00", "minute"),
        ("Mon, 6 May 2024 7:08:09 MSK", "2024-05-06T04:08:09", "instant"),
        ("Mon May 06 2024 07:08:09 GMT+0300 (MSK)", "2024-05-06T04:08:09", "instant"),
    ],
)
def test_moment_with_a_zone_is_read(text: str, at: str, precision: str) -> None:
    moment = read_moment(text, "Asia/Tokyo")
    assert moment == Moment(datetime.fromisoformat(at).replace(tzinfo=UTC), precision)


@pytest.mark.parametrize(
    ("text", "at", "precision"),
    [
        ("2024-05-06", "2024-05-05T21:00", "day"),
        ("06.05.2024", "2024-05-05T21:00", "day"),
        ("06.05.2024 12:30", "2024-05-06T09:30", "minute"),
        ("30 Июля 2015", "2015-07-29T21:00", "day"),  # bug 113
        ("12:30, 6 мая 2024 г.", "2024-05-06T09:30", "minute"),
        ("6. Mai 2024 um 12:30 Uhr", "2024-05-06T09:30", "minute"),
        ("2024年5月6日 下午2点30分", "2024-05-06T11:30", "minute"),
        ("6 de mayo de 2024", "2024-05-05T21:00", "day"),
        ("05/25/2024 10:00", "2024-05-25T07:00", "minute"),
    ],
)
def test_moment_without_a_zone_is_the_publishers(text: str, at: str, precision: str) -> None:
    moment = read_moment(text, "Europe/Moscow")
    assert moment == Moment(datetime.fromisoformat(at).replace(tzinfo=UTC), precision)


@pytest.mark.parametrize(
    "text",
    ["", "yesterday", "2024", "May 2024", "31.02.2024", "call 12-34-56", "release 10.2.1", "№ 195"],
)
def test_text_without_a_day_gives_no_moment(text: str) -> None:
    assert read_moment(text) is None


NOW = datetime(2024, 5, 6, 9, 0, tzinfo=UTC)


@pytest.mark.parametrize(
    ("text", "at"),
    [
        ("2 hours ago", "2024-05-06T07:00"),
        ("15 мин. назад", "2024-05-06T08:45"),
        ("vor 3 Stunden", "2024-05-06T06:00"),
        ("5分钟前", "2024-05-06T08:55"),
        ("Сегодня, 11:15", "2024-05-06T08:15"),
        ("Вчера, 11:15", "2024-05-05T08:15"),
        ("11:15", "2024-05-06T08:15"),
        ("23:15", "2024-05-05T20:15"),
        ("yesterday", "2024-05-04T21:00"),
    ],
)
def test_relative_moment_is_counted_from_now(text: str, at: str) -> None:
    moment = read_recent(text, "Europe/Moscow", NOW)
    assert moment is not None
    assert moment.at == datetime.fromisoformat(at).replace(tzinfo=UTC)


@pytest.mark.report("mediacloud/web-search#1147")
@pytest.mark.parametrize("year", [1246, 1970, 2041])
def test_absurd_years_are_implausible(year: int) -> None:
    assert not is_plausible(Moment(datetime(year, 1, 1, tzinfo=UTC), "day"), NOW)


def test_an_announced_event_is_plausible() -> None:
    assert is_plausible(Moment(NOW + timedelta(days=90), "day"), NOW)


@given(
    st.datetimes(datetime(1990, 1, 1), datetime(2035, 1, 1)).map(
        lambda at: at.replace(microsecond=0)
    )
)
def test_what_isoformat_writes_is_read_back(at: datetime) -> None:
    stated = at.replace(tzinfo=UTC)
    assert read_moment(stated.isoformat(), "Asia/Tokyo") == Moment(stated, "instant")


@given(st.text(max_size=120))
def test_any_text_can_be_asked_for_a_moment(text: str) -> None:
    read_moment(text)
    read_recent(text, "Europe/Moscow", NOW)
