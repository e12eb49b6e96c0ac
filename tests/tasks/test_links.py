"""What pages say of their feeds; real pages of boards, read in place."""

from __future__ import annotations

import tarfile
from pathlib import Path

import pytest

from tasks.links import find_feed_links

BOARDS = Path(__file__).parents[3] / "shared" / "data" / "C_feeds" / "forums" / "nettally.tar.xz"


@pytest.mark.real
@pytest.mark.skipif(not BOARDS.exists(), reason="the collections are not here")
def test_real_boards_are_told_by_their_software_and_name_their_feeds() -> None:
    found = {}
    with tarfile.open(BOARDS, "r:xz") as archive:
        for member in archive.getmembers():
            page = archive.extractfile(member)
            assert page is not None
            links = find_feed_links(page.read(), "https://board.example/threads/a.5/")
            found[Path(member.name).stem] = (links.board, len(links.feeds) > 0)
    assert found == {
        "Xenforo1": ("XenForo", True),
        "Xenforo2": ("XenForo", True),
        "phpBB": ("phpBB", True),
        "vBulletin3": ("vBulletin", True),
        "vBulletin5": ("vBulletin", True),
    }


@pytest.mark.report("lwindolf/liferea#87")
def test_the_base_of_a_page_holds_for_every_way_a_feed_is_named() -> None:
    page = (
        b"<html lang='de'><head><base href='/de/'>"
        b"<link rel='alternate' type='application/rss+xml' href='all.rss'>"
        b"<link rel='alternate' type='application/atom+xml' href='https://far.example/a.atom'>"
        b"</head><body><a href='sport/feed'>Sport</a></body></html>"
    )
    assert find_feed_links(page, "https://news.example/deep/page.html").feeds == (
        "https://news.example/de/all.rss",
        "https://far.example/a.atom",
        "https://news.example/de/sport/feed",
    )


def test_a_page_that_no_board_made_is_none() -> None:
    page = b"<html><head><meta name='generator' content='WordPress 6'></head><body id='p'></body>"
    assert find_feed_links(page, "https://news.example/").board is None
