from datetime import UTC, datetime

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from models.foreign_dates import read_foreign_moment
from models.listings import DateReader

NOW = datetime(2024, 6, 1, tzinfo=UTC)


@pytest.mark.report("witochandra/webfeed#66")
@pytest.mark.parametrize(
    ("text", "language", "at", "precision"),
    [
        ("δευ, 06 Μαΐου 2024 12:30:05 GMT", "el", "2024-05-06T12:30:05", "instant"),
        ("2024. május 6. 12:30", "hu", "2024-05-06T09:30", "minute"),
        ("2024년 5월 6일", "ko", "2024-05-05T21:00", "day"),
        ("Ngày 6 tháng 5 năm 2024", "vi", "2024-05-05T21:00", "day"),
        ("6 मई 2024", "hi", "2024-05-05T21:00", "day"),
        ("٦ مايو ٢٠٢٤", "ar", "2024-05-05T21:00", "day"),
        ("6 พฤษภาคม 2567", "th", "2024-05-05T21:00", "day"),
        ("6 listopad 2023", "hr", "2023-10-05T21:00", "day"),
        ("6 listopad 2023", "cs-CZ", "2023-11-05T21:00", "day"),
    ],
)
def test_a_date_in_words_of_any_language_is_read_in_the_sources_zone(
    text: str, language: str, at: str, precision: str
) -> None:
    moment = DateReader("Europe/Moscow", NOW, language).read(text)
    assert moment is not None
    assert (moment.at.replace(tzinfo=None), moment.precision) == (
        datetime.fromisoformat(at),
        precision,
    )


@pytest.mark.parametrize(
    "text",
    ["ieri", "maggio 2024", "2024", "12:30", "tel. 055 12-34-56", "31 febbraio 2024", "§ 7 bis"],
)
def test_nothing_is_filled_in(text: str) -> None:
    assert read_foreign_moment(text, "UTC", "it") is None


@pytest.mark.parametrize("language", ["", "tlh", "x-klingon", "not a code"])
def test_a_language_nobody_knows_reads_nothing(language: str) -> None:
    assert read_foreign_moment("6 toukokuuta 2024", "UTC", language) is None


def test_a_document_has_so_many_tries() -> None:
    dates = DateReader("UTC", NOW, "fi")
    assert dates.read("6 toukokuuta 2024") is not None
    for number in range(600):
        dates.read(f"rivi {number} ei ole päivä")
    assert dates.read("7 toukokuuta 2024") is None


@settings(max_examples=60, deadline=None)
@given(st.text(max_size=120))
def test_any_text_can_be_asked_for_a_date_in_words(text: str) -> None:
    read_foreign_moment(text, "Europe/Rome", "it")
