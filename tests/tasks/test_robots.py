from __future__ import annotations

import random
import re
import tarfile
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from tasks.robots import RobotsRules, RobotsVerdict, parse_robots

COLLECTION = Path(__file__).parents[3] / "shared" / "data" / "C_feeds" / "robots"
AGENT = "newsbeat/0.1 (+https://news.example/bot)"


def rules(*lines: str) -> RobotsRules:
    return parse_robots("\n".join(lines).encode(), 200)


def allows(robots: RobotsRules, path: str, agent: str = AGENT) -> bool:
    return robots.allows(f"https://site.example{path}", agent)


@pytest.mark.parametrize(
    ("lines", "path", "allowed"),
    [
        # Rules are case-sensitive, their names are not.
        (["USER-AGENT: *", "DISALLOW: /News"], "/news", True),
        (["USER-AGENT: *", "DISALLOW: /News"], "/News/1", False),
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


@pytest.mark.report("python/cpython#148951")
@pytest.mark.parametrize(
    ("lines", "path", "allowed"),
    [
        (["User-agent: *", "Disallow: /a", "Allow: /a/news"], "/a/news/1", True),
        (["User-agent: *", "Allow: /a/news", "Disallow: /a"], "/a/news/1", True),
        (["User-agent: *", "Allow: /a", "Disallow: /a/news"], "/a/news/1", False),
        (["User-agent: *", "Disallow: /", "Allow: /"], "/x", True),
        (["User-agent: *", "Allow: /a", "Disallow: /a"], "/a", True),
        (["User-agent: *", "Allow: /p", "Disallow: /"], "/page", True),
        (["User-agent: *", "Disallow: /*.htm", "Allow: /page"], "/page.htm", False),
    ],
)
def test_the_longest_rule_wins_wherever_it_stands_and_a_tie_allows(
    lines: list[str], path: str, allowed: bool
) -> None:
    assert allows(rules(*lines), path) == allowed


@pytest.mark.report("scrapy/protego#51")
def test_stars_on_both_sides_of_a_part_and_an_end_allow_what_they_name() -> None:
    robots = rules("User-agent: *", "Disallow: /", "Allow: /*/sort/by=*/$")
    assert allows(robots, "/shop/sort/by=2/")
    assert not allows(robots, "/shop/sort/by=2/3")
    assert not allows(robots, "/sort/by=2/")


@pytest.mark.report("seomoz/reppy#83")
@pytest.mark.parametrize(
    ("path", "allowed"),
    [("/2024/drafts/1", False), ("/drafts", False), ("/2024/draft", True), ("/a/draftsman", False)],
)
def test_a_leading_star_is_a_wildcard(path: str, allowed: bool) -> None:
    assert allows(rules("user-agent: *", "disallow: */drafts"), path) == allowed


@pytest.mark.parametrize(
    ("pattern", "path", "matches"),
    [
        ("/fish", "/fish.html", True), ("/fish", "/fishheads/yummy.html", True),
        ("/fish", "/Fish.asp", False), ("/fish", "/catfish", False), ("/fish", "/?id=fish", False),
        ("/fish*", "/fish.html", True), ("/fish*", "/catfish", False),
        ("/fish/", "/fish/salmon.htm", True), ("/fish/", "/fish", False),
        ("/*.php", "/folder/filename.php?parameters", True), ("/*.php", "/windows.PHP", False),
        ("/*.php$", "/folder/filename.php", True), ("/*.php$", "/filename.php/", False),
        ("/*.php$", "/filename.php5", False), ("/fish*.php", "/fishheads/catfish.php?p", True),
        ("/fish*.php", "/Fish.PHP", False), ("/$", "/", True), ("/$", "/a", False),
        ("/a*b*c", "/a-b-b-c", True), ("/a*b*c", "/a-c-b", False), ("/a**b", "/axxb", True),
        ("/a$b", "/a$b", True), ("/*$", "/anything", True),
        ("/a/%7Eb", "/a/~b", True), ("/a/~b", "/a/%7eb", True), ("/%C3%BC", "/\u00fc", True),
        ("/a%2Fb", "/a/b", False), ("/a%3Cd", "/a%3cd", True), ("/b%2a", "/bx", False),
    ],
)  # fmt: skip
def test_a_pattern_matches_as_the_standard_says(pattern: str, path: str, matches: bool) -> None:
    assert allows(rules("User-agent: *", f"Disallow: {pattern}"), path) != matches


@pytest.mark.parametrize(
    "between",
    ["", "Sitemap: https://a.example/s.xml", "Crawl-delay: 5", "Noindex: /x", "Host: a.example",
     "# a comment", "no record at all", "Clean-param: ref /"],
)  # fmt: skip
def test_other_records_do_not_come_between_the_lines_of_a_group(between: str) -> None:
    robots = rules("User-agent: other", between, "User-agent: newsbeat", between, "Disallow: /a")
    assert not allows(robots, "/a")
    assert not allows(robots, "/a", "other")


def test_a_site_that_allows_its_index_page_allows_the_folder_too() -> None:
    robots = rules("User-agent: *", "Disallow: /a/", "Allow: /a/index.html")
    assert (allows(robots, "/a/index.html"), allows(robots, "/a/")) == (True, True)
    assert not allows(robots, "/a/b")


def test_a_group_ends_where_an_agent_follows_a_rule() -> None:
    robots = rules("User-agent: newsbeat", "Disallow: /a", "User-agent: other", "Disallow: /b")
    assert (allows(robots, "/a"), allows(robots, "/b")) == (False, True)


@pytest.mark.report("xroche/httrack#1695")
@pytest.mark.parametrize(
    ("lines", "path", "allowed"),
    [
        # A group for us leaves the one for everyone aside.
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


@pytest.mark.report("flairNLP/fundus#967")
@pytest.mark.parametrize("status", [400, 401, 403, 404, 410, 451])
def test_a_robots_txt_that_is_denied_or_missing_allows_everything(status: int) -> None:
    robots = parse_robots(b"User-agent: *\nDisallow: /", status)
    assert allows(robots, "/a")
    assert robots.unreadable is None


@pytest.mark.report("flairNLP/fundus#967")
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


# Real files


def real_files() -> Iterator[tuple[str, bytes]]:
    for name in ("protego", "crawler-commons"):
        with tarfile.open(COLLECTION / f"{name}.tar.xz") as archive:
            for member in archive:
                file = archive.extractfile(member)
                if file is not None:
                    yield member.name, file.read()


class Standard:
    """RFC 9309 in few lines, of its own making: what real files are held against."""

    def __init__(self, body: bytes) -> None:
        self.groups: list[tuple[list[str], list[tuple[bool, str]]]] = []
        was_agent = False
        for line in re.split(r"\r\n|\r|\n", body.decode("utf-8-sig", "replace")):
            name, found, value = line.partition("#")[0].partition(":")
            kind, value = name.strip().lower(), value.strip()
            # The second is a slip of the pen that one of the files has, and we understand.
            if found and kind in ("user-agent", "user agent"):
                if not was_agent:
                    self.groups.append(([], []))
                self.groups[-1][0].append(value.lower())
                was_agent = True
            elif found and kind in ("allow", "disallow"):
                was_agent = False
                if self.groups and value:
                    self.groups[-1][1].append((kind == "allow", value))

    def allows(self, path: str, agent: str) -> bool:
        mine = [rules for agents, rules in self.groups if agent in agents]
        mine = mine or [rules for agents, rules in self.groups if "*" in agents]
        matching = [
            (len(octets(pattern)), is_allowed)
            for rules in mine
            for is_allowed, pattern in rules
            if matches(octets(pattern), octets(path))
        ]
        return max(matching, default=(0, True))[1]


def octets(text: str) -> str:
    """Return text with its octets escaped, but for those that need not be."""
    escaped = "".join(
        mark if "!" <= mark <= "~" else "".join(f"%{byte:02X}" for byte in mark.encode())
        for mark in text
    )

    def plain(found: re.Match[str]) -> str:
        mark = chr(int(found[1], 16))
        return mark if re.fullmatch(r"[A-Za-z0-9._~-]", mark) else found[0].upper()

    return re.sub(r"%([0-9A-Fa-f]{2})", plain, escaped)


def matches(pattern: str, path: str) -> bool:
    is_ended = pattern.endswith("$")
    first, *parts = pattern.removesuffix("$").split("*")
    if not path.startswith(first):
        return False
    at = len(first)
    for part in parts[:-1] if is_ended else parts:
        at = path.find(part, at)
        if at < 0:
            return False
        at += len(part)
    if not is_ended:
        return True
    return (
        path.endswith(parts[-1]) and len(path) - len(parts[-1]) >= at if parts else at == len(path)
    )


def asked(body: bytes, rng: random.Random) -> list[str]:
    """Return paths that the rules of a file are about, and some they are not."""
    patterns = re.findall(
        r"(?im)^[ \t]*(?:dis)?allow[ \t]*:[ \t]*(/[^\s#]*)", body.decode("latin-1")
    )
    some = rng.sample(patterns, min(6, len(patterns)))
    paths = [one.replace("*", rng.choice(["x", "a/b", ""])).rstrip("$") or "/" for one in some]
    paths += [f"{path}x" for path in paths] + ["/", "/news/2024/03/a-story-of-the-day.html"]
    return [path for path in paths if re.fullmatch(r"/(?!/)[!-~]*", path) and "\\" not in path]


@pytest.mark.real
@pytest.mark.skipif(not COLLECTION.exists(), reason=f"no collection at {COLLECTION}")
def test_all_real_files_are_read_and_decided_as_the_standard_says() -> None:
    rng, others, slowest_s, n_files, n_asked = random.Random(9), [], 0.0, 0, 0
    for name, body in real_files():
        began = time.process_time()
        robots = parse_robots(body, 200)
        robots.explain("https://a.example/a/b", AGENT)
        slowest_s = max(slowest_s, time.process_time() - began)
        n_files += 1
        # Longer files, pages in their place, and a kindness to index.html are tested above.
        if len(body) > 500 * 1024 or body.lstrip().startswith(b"<") or b"index.html" in body:
            continue
        standard = Standard(body)
        for path in asked(body, rng):
            n_asked += 1
            decided = robots.allows(f"https://a.example{path}", AGENT)
            if decided != standard.allows(path, "newsbeat"):
                others.append((name, path))
    assert (n_files, slowest_s < 2.0) == (2813, True)
    assert n_asked > 20_000
    assert others == []
