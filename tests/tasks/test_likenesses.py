"""What articles are like, as it is stored with them."""

from __future__ import annotations

from dataclasses import replace
from datetime import timedelta

import pytest

from tasks.clock import Clock
from tasks.settings import Settings
from tasks.warehouse import Warehouse

WIRE = " ".join(
    f"Sentence {at} of the wire tells of the harbour and of number {at * 7}." for at in range(30)
)


def opened(tmp_path, press):
    clock = Clock.starting_at(press.at(60), 1.0)
    return Warehouse.open(Settings(home=tmp_path, clock=clock), "test")


def article(press, name, text=WIRE, title=None, **changes):
    item = press.article(name, text=text, **changes)
    return replace(item, article=replace(item.article, title=title or f"Of {name}"))


def store(warehouse, press, source, cycle, *articles, minutes=10):
    warehouse.sync_sources([press.source(source)], press.at(0), is_complete=False)
    warehouse.store_poll(press.result(cycle, minutes, source=source, articles=articles))


LINKS = (
    "SELECT article_id, version, source, story_id, resembles FROM article_likenesses "
    "ORDER BY seen_at, article_id"
)


def test_a_reprint_is_linked_across_sources_and_none_is_dropped(tmp_path, press):
    with opened(tmp_path, press) as warehouse:
        store(warehouse, press, "wire", 1, article(press, "wire"))
        store(warehouse, press, "daily", 1, article(press, "other", "Quite another text. " * 9))
        cut = " ".join(WIRE.split()[:250])
        store(
            warehouse,
            press,
            "port",
            1,
            article(press, "reprint", cut, stored_at=press.at(40)),
            minutes=40,
        )
        assert warehouse.query(LINKS) == [
            ("article-other", 1, "daily", "article-other", None),
            ("article-wire", 1, "wire", "article-wire", None),
            ("article-reprint", 1, "port", "article-wire", "article-wire"),
        ]
        assert warehouse.query("SELECT count(*) FROM articles") == [(3,)]
        told = "SELECT story_id, first_outlet, outlets, n_outlets, n_articles FROM stories"
        assert warehouse.query(f"{told} WHERE n_outlets > 1") == [
            ("article-wire", "port", ["port", "wire"], 2, 2)
        ]


def test_articles_of_one_poll_are_compared_too(tmp_path, press):
    with opened(tmp_path, press) as warehouse:
        store(warehouse, press, "daily", 1, article(press, "a"), article(press, "b"))
        assert [row[3:] for row in warehouse.query(LINKS)] == [
            ("article-a", None),
            ("article-a", "article-a"),
        ]


def test_a_restart_forgets_nothing(tmp_path, press):
    with opened(tmp_path, press) as warehouse:
        store(warehouse, press, "wire", 1, article(press, "wire"))
    with opened(tmp_path, press) as warehouse:
        store(warehouse, press, "port", 1, article(press, "reprint"), minutes=50)
        assert warehouse.query(LINKS)[1][3:] == ("article-wire", "article-wire")


@pytest.mark.parametrize("is_restarted", [False, True])
def test_an_edit_stays_in_its_story_however_late_it_comes(tmp_path, press, is_restarted):
    minutes = 60 * 24 * 9
    with opened(tmp_path, press) as warehouse:
        store(warehouse, press, "wire", 1, article(press, "wire"))
        store(warehouse, press, "port", 1, article(press, "reprint"))
        if not is_restarted:
            rewritten = article(press, "reprint", "New words. " * 30, stored_at=press.at(minutes))
            store(warehouse, press, "port", 2, rewritten, minutes=minutes)
    with opened(tmp_path, press) as warehouse:
        if is_restarted:
            rewritten = article(press, "reprint", "New words. " * 30, stored_at=press.at(minutes))
            store(warehouse, press, "port", 2, rewritten, minutes=minutes)
        assert warehouse.query(LINKS)[-1] == ("article-reprint", 2, "port", "article-wire", None)


def test_what_is_held_back_is_like_nothing(tmp_path, press):
    with opened(tmp_path, press) as warehouse:
        walls = [article(press, name, quarantined=True) for name in ("a", "b")]
        store(warehouse, press, "daily", 1, *walls)
        assert warehouse.query(LINKS) == []


def test_the_window_is_a_setting(tmp_path, press):
    late = timedelta(hours=49) / timedelta(minutes=1)
    with opened(tmp_path, press) as warehouse:
        store(warehouse, press, "wire", 1, article(press, "wire"))
        item = article(press, "reprint", stored_at=press.at(late))
        store(warehouse, press, "port", 1, item, minutes=late)
        assert warehouse.query(LINKS)[1][3:] == ("article-reprint", None)
