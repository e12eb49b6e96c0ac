"""``inspect URL`` goes through the same door as polls do."""

from __future__ import annotations

import asyncio
from pathlib import Path
from typing import Any

import pytest

from flows.commands.looking import look_at
from models.errors import ParseError, RefusedFetchError
from tasks.settings import AgentSettings, FetchSettings, Settings

FEED = b"<rss><channel><title>T</title><item><link>/1</link></item></channel></rss>"


@pytest.fixture
def settings(tmp_path: Path) -> Settings:
    agent = AgentSettings(contact="desk@example.org")
    return Settings(home=tmp_path, agent=agent, fetch=FetchSettings(host_gap_s=0.0))


async def look(settings: Settings, *words: Any, **more: Any) -> dict[str, Any]:
    return await asyncio.to_thread(look_at, settings, *words, **more)


async def test_an_address_of_ones_own_network_is_inspected(site: Any, settings: Settings) -> None:
    site.add("/feed", FEED, kind="application/xml")
    assert (await look(settings, site.url("/feed"), kind="feed"))["title"] == "T"


@pytest.mark.parametrize(
    ("location", "word"),
    [("http://169.254.169.254/latest", "link-local"), ("file:///etc/passwd", "file:")],
)
async def test_it_is_not_led_where_no_news_is(
    site: Any, settings: Settings, location: str, word: str
) -> None:
    site.add("/feed", status="302 Found", Location=location)
    with pytest.raises(RefusedFetchError, match=word):
        await look(settings, site.url("/feed"), kind="feed")


def test_a_page_that_hangs_its_reader_ends_with_a_word(settings: Settings, tmp_path: Path) -> None:
    file = tmp_path / "page.html"
    file.write_bytes(b"<html>" + b"<div>" * 200_000)
    with pytest.raises(ParseError, match=r"longer than|more memory"):
        look_at(settings, str(file), kind="list")
