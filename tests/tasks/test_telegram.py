"""Real pages of Telegram, read in place."""

from __future__ import annotations

import tarfile
from datetime import UTC, datetime
from pathlib import Path

import pytest

from tasks.telegram import parse_telegram

PREVIEWS = (
    Path(__file__).parents[3] / "shared" / "data" / "C_feeds" / "telegram" / "previews.tar.xz"
)


@pytest.mark.real
@pytest.mark.skipif(not PREVIEWS.exists(), reason="the collections are not here")
def test_a_real_preview_is_read_whole() -> None:
    with tarfile.open(PREVIEWS, "r:xz") as archive:
        page = archive.extractfile("telegram-test-channel.html")
        assert page is not None
        body = page.read()
    listing = parse_telegram(
        body, url="https://t.me/s/test_channel", now=datetime(2026, 3, 1, tzinfo=UTC)
    )
    assert [len(entry.summary or "") for entry in listing.entries] == [296, 0, 548]
    assert [entry.media for entry in listing.entries] == [("photo",), (), ("photo",)]
    assert [entry.note is None for entry in listing.entries] == [True, False, True]
    assert all(entry.published_precision == "instant" for entry in listing.entries)
    assert listing.older == "https://t.me/s/test_channel?before=1001"
