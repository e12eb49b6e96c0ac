from datetime import UTC, datetime, timedelta

import pytest

from models.listings import newest_first
from models.records import Entry, Precision

DAY = datetime(2024, 5, 6, tzinfo=UTC)


def entry(name: str, at: datetime | None, precision: Precision = "instant") -> Entry:
    return Entry(f"https://a.example/{name}", name, published_at=at, published_precision=precision)


@pytest.mark.report("jocmp/capyreader#1677")
def test_a_day_is_put_at_its_end_and_entries_of_one_day_stay_as_listed() -> None:
    entries = [
        entry("yesterday", DAY - timedelta(hours=2)),
        entry("a", DAY, "day"),
        entry("noon", DAY + timedelta(hours=12)),
        entry("b", DAY, "day"),
    ]
    assert [each.title for each in newest_first(entries)] == ["a", "b", "noon", "yesterday"]


@pytest.mark.report("Tiendil/feeds.fun#171")
def test_an_undated_entry_stays_beside_the_one_before_it() -> None:
    entries = [entry("old", DAY), entry("undated", None), entry("new", DAY + timedelta(hours=1))]
    assert [each.title for each in newest_first(entries)] == ["new", "old", "undated"]


def test_a_listing_without_dates_stays_as_it_is() -> None:
    entries = [entry(name, None) for name in "bca"]
    assert newest_first(entries) == entries
