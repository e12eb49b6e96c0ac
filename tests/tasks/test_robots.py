from __future__ import annotations

import pytest

from tasks.robots import RobotsRules, RobotsVerdict, parse_robots

AGENT = "newsbeat/0.1 (+https://news.example/bot)"


def rules(*lines: str) -> RobotsRules:
    return parse_robots("\n".join(lines).encode(), 200)


def allows(robots: RobotsRules, path: str, agent: str = AGENT) -> bool:
    return robots.allows(f"https://site.example{path}", agent)


@pytest.mark.parametrize(
    ("lines", "path", "allowed"),
    [
        # The longest rule wins, wherever it stands (bug log 73).
        (["User-agent: *", "Disallow: /a", "Allow: /a/news"], "/a/news/1", True),
        (["User-agent: *", "Allow: /a/news", "Disallow: /a"], "/a/news/1", True),
        (["User-agent: *", "Allow: /a", "Disallow: /a/news"], "/a/news/1", False),
        (["User-agent: *", "Disallow: /", "Allow: /"], "/x", True),
        # Stars on both sides of a named part, with an end (75).
        (["User-agent: *", "Disallow: /", "Allow: /*/sort/by=*/$"], "/shop/sort/by=2/", True),
        (["User-agent: *", "Disallow: /", "Allow: /*/sort/by=*/$"], "/shop/sort/by=2/3", False),
        # A leading star (76).
        (["user-agent: *", "disallow: */drafts"], "/2024/drafts/1", False),
        (["user-agent: *", "disallow: */drafts"], "/2024/draft", True),
        # Patterns.
        (["User-agent: *", "Disallow: /*.pdf$"], "/a.pdf", False),
        (["User-agent: *", "Disallow: /*.pdf$"], "/a.pdf?x", True),
        (["User-agent: *", "Disallow: /p?id="], "/p?id=1", False),
        (
            ["User-agent: *", "Disallow: /новости"],
            "/%D0%BD%D0%BE%D0%B2%D0%BE%D1%81%D1%82%D0%B8",
            False,
        ),
        (["User-agent: *", "Disallow: /a%2fb"], "/a%2Fb", False),
        (["User-agent: *", "Disallow: /a%2fb"], "/a/b", True),
        (["User-agent: *", "Disallow:"], "/x", True),
        (["User-agent: *", "Disallow: /  # all of it"], "/x", False),
        (["# nothing"], "/x", True),
        (["Disallow: /"], "/x", True),
        (["\ufeffUser-agent: *", "Disallow: /"], "/x", False),
        (["User-agent: *\rDisallow: /x\rAllow: /x/y"], "/x/1", False),
        (["User-agent: *", "Disallow: /a\u2028Allow: /"], "/a b", True),
        (["User-agent: *", "Disallow: /"], "/robots.txt", True),
    ],
)
def test_rules_are_read_as_the_standard_has_it(lines: list[str], path: str, allowed: bool) -> None:
    assert allows(rules(*lines), path) == allowed


@pytest.mark.parametrize(
    ("lines", "path", "allowed"),
    [
        # A group for us leaves the one for everyone aside (77).
        (["User-agent: newsbeat", "Disallow: /a", "", "User-agent: *", "Disallow: /"], "/b", True),
        (["User-agent: *", "Disallow: /", "User-agent: newsbeat", "Disallow:"], "/b", True),
        (["User-agent: newsbeat", "Disallow: /a", "User-agent: *", "Allow: /"], "/a", False),
        # Two groups for us are one.
        (
            ["User-agent: newsbeat", "Disallow: /a", "User-agent: NewsBeat", "Disallow: /b"],
            "/a",
            False,
        ),
        (
            ["User-agent: newsbeat", "Disallow: /a", "User-agent: NewsBeat", "Disallow: /b"],
            "/b",
            False,
        ),
        (
            ["User-agent: newsbeat/1.0", "Disallow: /a", "User-agent: newsbeat*", "Disallow: /b"],
            "/a",
            False,
        ),
        # One group for several.
        (["User-agent: other", "User-agent: newsbeat", "Disallow: /a"], "/a", False),
        # Neither a shorter name, nor a longer one, nor a word of our contact, is ours.
        (["User-agent: news", "Disallow: /"], "/a", True),
        (["User-agent: newsbeatbot", "Disallow: /"], "/a", True),
        (["User-agent: bot", "Disallow: /", "User-agent: example", "Disallow: /"], "/a", True),
    ],
)
def test_the_group_is_the_one_for_exactly_us(lines: list[str], path: str, allowed: bool) -> None:
    assert allows(rules(*lines), path) == allowed


@pytest.mark.parametrize("status", [400, 401, 403, 404, 410, 451])
def test_a_robots_txt_that_is_denied_or_missing_allows_everything(status: int) -> None:
    robots = parse_robots(b"User-agent: *\nDisallow: /", status)
    assert allows(robots, "/a")
    assert robots.unreadable is None


@pytest.mark.parametrize("status", [None, 429, 500, 503, 599])
def test_a_robots_txt_out_of_reach_allows_nothing_for_now(status: int | None) -> None:
    robots = parse_robots(None, status)
    assert not allows(robots, "/a")
    assert robots.unreadable
    assert "cannot be read" in str(robots.explain("https://site.example/a", AGENT).rule)


def test_a_page_in_place_of_the_file_holds_no_rules() -> None:
    body = b"\n<!doctype html>\n<p>\nUser-agent: *\nDisallow: /\n"
    assert allows(parse_robots(body, 200), "/a")


def test_an_empty_file_allows_everything() -> None:
    assert allows(parse_robots(b"", 200), "/a")
    assert allows(parse_robots(b"\xff\xfe\x00garbage", 200), "/a")


def test_only_the_first_500_kib_count() -> None:
    filler = b"#" * (500 * 1024)
    head = b"User-agent: *\nDisallow: /a\n"
    robots = parse_robots(head + filler + b"\nDisallow: /b\n", 200)
    assert (allows(robots, "/a"), allows(robots, "/b")) == (False, True)


def test_the_rule_that_decides_is_told() -> None:
    robots = rules("User-agent: *", "Crawl-delay: 2.5", "Disallow: /a", "Allow: /a/b")
    explain = robots.explain
    assert explain("https://s.example/a/x", AGENT) == RobotsVerdict(False, "Disallow: /a", 2.5)
    assert explain("https://s.example/a/b", AGENT) == RobotsVerdict(True, "Allow: /a/b", 2.5)
    assert explain("https://s.example/c", AGENT) == RobotsVerdict(True, None, 2.5)


@pytest.mark.parametrize(
    ("text", "seconds"),
    [("10", 10.0), ("0.5", 0.5), ("-1", None), ("nan", None), ("inf", None), ("soon", None)],
)
def test_a_crawl_delay_is_a_plain_number_or_none(text: str, seconds: float | None) -> None:
    assert rules("User-agent: *", f"Crawl-delay: {text}").crawl_delay(AGENT) == seconds


def test_the_crawl_delay_is_that_of_our_group() -> None:
    robots = rules("User-agent: *", "Crawl-delay: 9", "User-agent: newsbeat", "Crawl-delay: 3")
    assert robots.crawl_delay(AGENT) == 3.0
    assert robots.crawl_delay("other") == 9.0


def test_a_pattern_made_to_be_slow_is_not() -> None:
    robots = rules("User-agent: *", "Disallow: /" + "*a" * 500 + "$")
    assert allows(robots, "/" + "a" * 5000 + "b")
