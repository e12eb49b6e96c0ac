"""How polls fare with servers that lie, move, forbid, fall silent or are gone: real polls of a
loopback site that misbehaves, each state raised once and closed when mended."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field, replace
from datetime import timedelta
from email.utils import format_datetime
from itertools import pairwise
from typing import Any

import pytest

from models.records import HttpRules, Source
from tasks.settings import FetchSettings

TEXT = "<p>The harbour was busy that day, and the town talked of little else.</p>" * 9
FUTURE = "Thu, 03 Jan 2041 00:00:00 GMT"


@dataclass
class Press:
    """A newspaper on the test's site: its server says what a test wants."""

    site: Any
    path: str = "/feed"
    n_entries: int = 4
    etag: Callable[[], str | None] = lambda: None
    last_modified: Callable[[], str | None] = lambda: None
    always_304: bool = False
    conditions: list[dict[str, str]] = field(default_factory=list)

    def __post_init__(self) -> None:
        self.site.answers[self.path] = self.answer
        for number in range(60):
            body = f"<!doctype html><h1>Story {number}</h1><p>On day {number}.</p>{TEXT}"
            self.site.add(f"/story-{number}", body.encode())

    def body(self) -> bytes:
        items = "".join(
            f"<item><title>Story {number}</title><link>http://www.press.example/story-{number}"
            f"</link><guid>{number}</guid></item>"
            for number in reversed(range(self.n_entries))
        )
        return f"<rss><channel><title>Press</title>{items}</channel></rss>".encode()

    def answer(self, request: Any) -> list[bytes]:
        asked = {
            name: request.headers[name]
            for name in ("if-none-match", "if-modified-since")
            if name in request.headers
        }
        self.conditions.append(asked)
        if self.always_304 and asked:
            return [b"HTTP/1.1 304 Not Modified\r\n\r\n"]
        body = self.body()
        lines = ["HTTP/1.1 200 OK", f"Content-Length: {len(body)}", "Content-Type: text/xml"]
        lines += [f"ETag: {value}"] if (value := self.etag()) else []
        lines += [f"Last-Modified: {value}"] if (value := self.last_modified()) else []
        return ["\r\n".join([*lines, "", ""]).encode() + body]


@pytest.fixture
def press(site: Any) -> Press:
    """One on the test's site."""
    return Press(site)


@pytest.fixture
def open_press(open_newsroom: Any, make_recorded: Any, site: Any) -> Callable[..., Any]:
    """Opens newsrooms whose sources lie on the test's own site, under the hosts given."""

    def open_one(
        *hosts: str, ports: dict[str, int] | None = None, urls: Any = None, **given: Any
    ) -> Any:
        names = {f"s{number}": host for number, host in enumerate(hosts or ("press.example",))}

        def change(source: Source) -> Source:
            host = names[source.source]
            port = (ports or {}).get(host, site.port)
            url = (urls or {}).get(source.source, f"http://{host}/feed")
            rules = HttpRules(allow_private=True, connect_to=f"127.0.0.1:{port}", min_gap_s=0.0)
            return replace(source, url=url, kind="feed", http=rules)

        return open_newsroom(
            *(make_recorded(source=name) for name in names), change=change, **given
        )

    return open_one


def incidents(room: Any, condition: str = "true") -> list[Any]:
    return room.rows(
        f"SELECT kind, subject, ended_at IS NULL FROM incidents WHERE {condition} ORDER BY begun_at"
    )


def standing(room: Any) -> list[Any]:
    return [(kind, subject) for kind, subject, is_open in incidents(room) if is_open]


async def poll_times(room: Any, n: int, source: str = "s0", **ahead: float) -> list[Any]:
    """Poll `n` times, the clock put forward before each."""
    results = []
    for _ in range(n):
        room.step(**ahead)
        results.append(await room.polled(source))
    return results


# Validators


@pytest.mark.report("FreshRSS/FreshRSS#1680")
async def test_not_modified_out_of_line_with_history_is_found_out_and_not_believed_again(
    open_press: Any, press: Press
) -> None:
    press.etag = lambda: f'"{press.n_entries}"'
    press.last_modified = lambda: f"Mon, 01 Jan 2024 00:00:{press.n_entries:02} GMT"
    async with open_press() as room:
        await poll_times(room, 1)
        for _ in range(4):
            press.n_entries += 1
            await poll_times(room, 1, hours=1)
        assert standing(room) == []
        press.always_304 = True
        press.n_entries += 3
        polls = [each.poll for each in await poll_times(room, 40, minutes=30)]
        found = next(number for number, poll in enumerate(polls) if poll.entries_new)
        assert polls[found].entries_new == 3
        assert {poll.outcome for poll in polls[:found]} == {"not_modified"}
        assert standing(room) == [("validators", "s0")]
        ((reason, evidence),) = room.rows("SELECT reason, evidence FROM incidents")
        assert '"not modified" in a row' in reason
        assert "/story-" in evidence
        # From then on it is asked without conditions, and what it publishes is found.
        press.conditions.clear()
        press.n_entries += 1
        assert (await poll_times(room, 1, minutes=30))[0].poll.entries_new == 1
        assert press.conditions == [{}]


@pytest.mark.report("FreshRSS/FreshRSS#1020")
async def test_a_source_frozen_from_its_first_day_is_found_out_within_a_week(
    open_press: Any, press: Press
) -> None:
    press.etag, press.last_modified, press.always_304 = lambda: '"2041"', lambda: FUTURE, True
    async with open_press() as room:
        await poll_times(room, 1)
        press.n_entries += 1
        polls = [each.poll for each in await poll_times(room, 16, hours=12)]
        assert sum(poll.entries_new for poll in polls) == 1
        assert standing(room) == [("validators", "s0")]
        assert all("if-modified-since" not in asked for asked in press.conditions)


async def test_distrust_ends_after_a_month_and_the_state_is_closed(
    open_press: Any, press: Press
) -> None:
    press.etag = lambda: '"same"'
    async with open_press() as room:
        await poll_times(room, 1)
        press.n_entries += 1
        await poll_times(room, 3, hours=1)
        assert standing(room) == [("validators", "s0")]
        press.etag = lambda: f'"{press.n_entries}"'
        await poll_times(room, 2, days=31)
        assert incidents(room) == [("validators", "s0", False)]
        assert press.conditions[-1] == {"if-none-match": f'"{press.n_entries}"'}


@pytest.mark.report("miniflux/miniflux-legacy#218")
async def test_an_etag_that_stays_while_the_list_changes_is_dropped_for_that_source(
    open_press: Any, press: Press
) -> None:
    press.etag = lambda: '"constant"'
    async with open_press() as room:
        await poll_times(room, 1)
        press.n_entries += 1
        # The digest of the body decides what is new, whatever the ETag says.
        (result,) = await poll_times(room, 1, hours=1)
        assert result.poll.entries_new == 1
        assert standing(room) == [("validators", "s0")]
        press.conditions.clear()
        await poll_times(room, 2, hours=1)
        assert press.conditions == [{}, {}]
        assert len(incidents(room)) == 1


async def test_honest_silence_costs_a_body_now_and_then_and_is_held_against_nobody(
    open_press: Any, press: Press
) -> None:
    press.etag, press.always_304 = lambda: '"v"', True
    async with open_press() as room:
        await poll_times(room, 1)
        await poll_times(room, 60, hours=6)
        n_bodies = sum(not asked for asked in press.conditions)
        assert 2 <= n_bodies <= 12, n_bodies
        assert incidents(room) == []
        assert press.conditions[-1]


# Moves


def move(site: Any, target: str, status: str = "301 Moved Permanently") -> None:
    site.add("/feed", status=status, Location=target)


@pytest.mark.report("Ranchero-Software/NetNewsWire#953")
@pytest.mark.report("Xyrio/RSSOwlnix#32")
async def test_a_move_is_adopted_after_days_of_confirmation_and_the_history_kept(
    open_press: Any, site: Any
) -> None:
    old, new = Press(site), Press(site, "/new")
    async with open_press() as room:
        await poll_times(room, 1)
        move(site, "http://press.example/new")
        new.n_entries = 5
        for _ in range(6):
            (result,) = await poll_times(room, 1, hours=10)
            assert result.schedule.conduct.address is None
            assert standing(room) == []
        await poll_times(room, 3, hours=10)
        assert standing(room) == [("moved", "s0")]
        site.requests.clear()
        await poll_times(room, 1, hours=10)
        assert site.paths == ["/new"]
        assert room.rows("SELECT count(*) FROM entries") == [(5,)]
        assert room.rows("SELECT DISTINCT address FROM schedule") == [("http://press.example/new",)]
        assert len(old.conditions) == 1


@pytest.mark.report("Xyrio/RSSOwlnix#32")
async def test_a_redirect_that_does_not_last_or_leads_to_another_list_changes_nothing(
    open_press: Any, site: Any
) -> None:
    press, foreign = Press(site), Press(site, "/portal")
    foreign.body = lambda: (  # type: ignore[method-assign]
        b"<rss><channel><item><title>Log in</title>"
        b"<link>http://portal.example/login</link></item></channel></rss>"
    )
    async with open_press() as room:
        await poll_times(room, 1)
        mine = site.answers["/feed"]
        move(site, "http://press.example/portal")
        await poll_times(room, 1, hours=20)
        site.answers["/feed"] = mine
        await poll_times(room, 6, hours=20)
        move(site, "http://press.example/portal")
        # Its entries are known by now; that it once showed none of ours is not forgotten.
        await poll_times(room, 9, hours=20)
        site.answers["/feed"] = mine
        (last,) = await poll_times(room, 1, hours=20)
        assert (last.schedule.conduct.address, last.schedule.conduct.n_moved) == (None, 0)
        assert incidents(room) == []
        assert press.conditions


@pytest.mark.parametrize("status", ["302 Found", "307 Temporary Redirect"])
async def test_a_redirect_for_now_is_never_adopted(open_press: Any, site: Any, status: str) -> None:
    Press(site, "/new")
    move(site, "http://press.example/new", status)
    async with open_press() as room:
        results = await poll_times(room, 8, hours=20)
        assert results[-1].schedule.conduct.moved_to is None
        assert incidents(room) == []


async def test_an_adopted_address_that_fails_gives_way_to_the_catalogues(
    open_press: Any, site: Any
) -> None:
    press = Press(site, "/new")
    move(site, "http://press.example/new")
    async with open_press() as room:
        await poll_times(room, 9, hours=20)
        assert standing(room) == [("moved", "s0")]
        site.add("/new", status="404 Not Found")
        site.answers["/feed"] = press.answer
        await poll_times(room, 3, days=1)
        site.requests.clear()
        (result,) = await poll_times(room, 1, days=1)
        assert site.paths[-1] == "/feed"
        assert "/new" not in site.paths
        assert result.poll.outcome in ("empty", "not_modified")
        assert standing(room) == []


async def test_an_adopted_address_holds_until_the_catalogue_has_another(
    open_press: Any, site: Any
) -> None:
    Press(site, "/new")
    Press(site, "/third")
    move(site, "http://press.example/new")
    async with open_press() as room:
        await poll_times(room, 9, hours=20)
        clock = room.clock
    async with open_press(clock=clock) as room:
        site.requests.clear()
        await poll_times(room, 1, hours=1)
        assert site.paths[-1] == "/new"
        assert standing(room) == [("moved", "s0")]
    async with open_press(urls={"s0": "http://press.example/third"}, clock=clock) as room:
        await poll_times(room, 1, hours=1)
        assert site.paths[-1] == "/third"
        assert standing(room) == []


# Errors


async def test_a_missing_feed_is_asked_for_ever_and_found_again(open_press: Any, site: Any) -> None:
    site.add("/feed", status="404 Not Found")
    async with open_press() as room:
        waits = []
        for _ in range(40):
            (result,) = await poll_times(room, 1, days=1)
            waits.append(result.schedule.due_at - result.poll.finished_at)
        assert result.schedule.state == "failing"
        assert standing(room) == [("failing", "s0")]
        assert max(waits) <= timedelta(days=1, hours=2)
        assert waits[0] < waits[3] < waits[7]
        Press(site)
        (result,) = await poll_times(room, 1, days=1)
        assert (result.poll.outcome, result.schedule.state) == ("new", "active")
        assert incidents(room) == [("failing", "s0", False)]


async def test_gone_is_believed_at_the_second_time_asked_once_a_day_and_taken_back(
    open_press: Any, site: Any
) -> None:
    Press(site)
    async with open_press() as room:
        await poll_times(room, 1)
        mine = site.answers["/feed"]
        site.add("/feed", status="410 Gone")
        (result,) = await poll_times(room, 1, hours=1)
        assert result.schedule.state == "active"
        assert result.schedule.due_at - result.poll.finished_at < timedelta(hours=1)
        results = await poll_times(room, 5, days=1)
        assert {each.schedule.state for each in results} == {"gone"}
        waits = [each.schedule.due_at - each.poll.finished_at for each in results]
        assert all(timedelta(hours=23) < wait < timedelta(hours=26) for wait in waits)
        assert "gone for good" in results[-1].schedule.reason
        assert standing(room) == [("gone", "s0")]
        site.answers["/feed"] = mine
        (result,) = await poll_times(room, 1, days=1)
        assert (result.poll.outcome, result.schedule.state) == ("empty", "active")
        assert incidents(room) == [("gone", "s0", False)]


PLATFORM = tuple(f"paper{number}.platform.example" for number in range(8))


@pytest.mark.report("FreshRSS/FreshRSS#7571")
@pytest.mark.parametrize("form", ["seconds", "date"])
async def test_too_many_requests_pause_the_whole_platform_and_it_resumes_staggered(
    open_press: Any, site: Any, form: str
) -> None:
    Press(site)
    async with open_press(*PLATFORM) as room:
        at = room.clock.now()
        wait = (
            "1800"
            if form == "seconds"
            else format_datetime(at + timedelta(seconds=1800), usegmt=True)
        )
        site.add("/feed", status="429 Too Many Requests", Retry_After=wait)
        first = await room.polled("s0")
        n_asked = len(site.requests)
        rest = [await room.polled(f"s{number}") for number in range(1, 8)]
        assert len(site.requests) == n_asked, "nobody else may ask"
        assert (first.poll.http_status, first.poll.reason) == (429, "HTTP 429 Too Many Requests")
        assert all("left alone" in each.poll.reason for each in rest)
        # It is the host's state, not theirs.
        assert {each.schedule.consecutive_failures for each in [first, *rest]} == {0}
        assert {each.schedule.state for each in [first, *rest]} == {"active"}
        assert standing(room) == [("held", "platform.example")]
        dues = sorted(each.schedule.due_at for each in [first, *rest])
        assert dues[0] - at >= timedelta(seconds=1800)
        assert dues[-1] - dues[0] >= timedelta(seconds=5)
        assert all(later > earlier for earlier, later in pairwise(dues))
        Press(site)
        room.step(minutes=31)
        assert (await room.polled("s3")).poll.outcome == "new"
        assert incidents(room) == [("held", "platform.example", False)]


async def test_a_host_that_asked_for_quiet_gets_it_after_a_restart_too(
    open_press: Any, site: Any
) -> None:
    site.add("/feed", status="429 Too Many Requests", Retry_After="7200")
    async with open_press(*PLATFORM[:2]) as room:
        await room.polled("s0")
        clock = room.clock
    n_asked = len(site.requests)
    async with open_press(*PLATFORM[:2], clock=clock) as room:
        result = await room.polled("s1")
        assert "left alone" in result.poll.reason
        assert len(site.requests) == n_asked


@pytest.mark.report("MissionSquad/mcp-rss#11")
async def test_a_rate_limit_with_an_empty_body_is_told_as_one(open_press: Any, site: Any) -> None:
    site.add("/feed", b"", status="429 Too Many Requests", kind=None)
    async with open_press() as room:
        result = await room.polled("s0")
        assert (result.poll.http_status, result.poll.reason) == (429, "HTTP 429 Too Many Requests")
        waits = []
        for _ in range(8):
            room.step(days=1)
            result = await room.polled("s0")
            waits.append(result.schedule.due_at - result.poll.finished_at)
        # Bounded, and longer each time while it says so.
        assert waits[0] < waits[4] <= waits[-1] <= timedelta(days=1, hours=2)


async def test_a_storm_of_forbidden_pauses_the_host(open_press: Any, site: Any) -> None:
    site.answers["*"] = [b"HTTP/1.1 403 Forbidden\r\nContent-Length: 0\r\n\r\n"]
    async with open_press("a.walled.example", "b.walled.example") as room:
        for number in range(6):
            await room.polled(f"s{number % 2}")
            room.step(minutes=1)
        n_asked = sum(path == "/feed" for path in site.paths)
        assert 3 <= n_asked <= 5
        assert ("held", "walled.example") in standing(room)
        Press(site)
        room.step(hours=2)
        assert (await room.polled("s1")).poll.outcome == "new"
        assert ("held", "walled.example") not in standing(room)


async def test_pages_forbidden_on_a_site_that_gives_others_are_tried_again(
    open_press: Any, press: Press
) -> None:
    async with open_press() as room:
        await poll_times(room, 1)
        press.n_entries += 1
        page = press.site.answers["/story-4"]
        press.site.add("/story-4", status="403 Forbidden")
        (result,) = await poll_times(room, 1, hours=1)
        assert [item.reason for item in result.pending] == ["HTTP 403 Forbidden"]
        press.site.answers["/story-4"] = page
        await poll_times(room, 1, hours=1)
        rows = room.rows("SELECT extraction FROM articles WHERE url LIKE '%story-4'")
        assert rows == [("trafilatura",)]


async def test_pages_of_a_host_that_wants_quiet_are_owed_without_a_try_counted(
    open_press: Any, press: Press
) -> None:
    async with open_press() as room:
        await poll_times(room, 1)
        press.n_entries += 6
        for number in range(4, 10):
            status = "429 Too Many Requests"
            press.site.add(f"/story-{number}", status=status, Retry_After="1800")
        (result,) = await poll_times(room, 1, hours=1)
        assert len(result.pending) == 6
        n_asked = sum(path.startswith("/story-") for path in press.site.paths) - 4
        assert n_asked <= 2, "those under way, and no more"
        assert sum(item.attempts for item in result.pending) == n_asked
        press.__post_init__()
        await poll_times(room, 1, hours=1)
        assert room.rows("SELECT count(*) FROM articles WHERE extraction = 'listing'") == [(0,)]
        assert room.rows("SELECT count(*) FROM articles") == [(10,)]


@pytest.mark.report("teddy-gustiaux/youtube-rss-finder#371")
@pytest.mark.parametrize("status", ["404 Not Found", "500 Internal Server Error"])
async def test_a_platform_that_fails_for_hours_kills_none_of_its_sources(
    open_press: Any, site: Any, status: str
) -> None:
    Press(site)
    hosts = PLATFORM[:6]
    names = [f"s{number}" for number in range(len(hosts))]
    async with open_press(*hosts) as room:
        for name in names:
            await room.polled(name)
        site.add("/feed", status=status)
        room.step(hours=1)
        site.requests.clear()
        for _ in range(12):
            for name in names:
                await room.polled(name)
            room.step(minutes=30)
        assert standing(room) == [("host", "platform.example")]
        ((told,),) = room.rows("SELECT reason FROM incidents WHERE kind = 'host'")
        assert "3 sources of platform.example fail at once" in told
        states = room.rows("SELECT DISTINCT state, consecutive_failures < 3 FROM schedule")
        assert states == [("active", True)]
        # One source asks for all, ever more seldom: not 72 requests.
        assert sum(path == "/feed" for path in site.paths) < 20
        Press(site)
        room.step(hours=7)
        assert (await room.polled("s2")).poll.outcome in ("empty", "not_modified")
        assert (await room.polled("s4")).poll.outcome in ("empty", "not_modified")
        assert incidents(room) == [("host", "platform.example", False)]


async def test_one_source_that_dies_is_no_incident_of_its_host(open_press: Any, site: Any) -> None:
    Press(site)
    site.add("/dead", status="404 Not Found")
    async with open_press(
        *PLATFORM[:4], urls={"s0": "http://paper0.platform.example/dead"}
    ) as room:
        for _ in range(4):
            room.step(hours=8)
            for name in ("s0", "s1", "s2", "s3"):
                await room.polled(name)
        assert standing(room) == [("failing", "s0")]


TOWNS = tuple(f"town{number}.example" for number in range(6))


async def test_our_own_line_down_is_held_against_nobody_and_ends_with_the_first_answer(
    open_press: Any, site: Any, make_site: Any
) -> None:
    Press(site)
    names = [f"s{number}" for number in range(len(TOWNS))]
    async with make_site() as closed:
        dead = closed.port
    async with open_press(*TOWNS) as room:
        for name in names:
            await room.polled(name)
        alive = dict(room.collector.sources)
        for name, source in alive.items():
            down = replace(source.http, connect_to=f"127.0.0.1:{dead}")
            room.collector.sources[name] = replace(source, http=down)
        for _ in range(5):
            room.step(minutes=20)
            for name in names:
                await room.polled(name)
        assert standing(room) == [("outage", "")]
        ((reason, evidence),) = room.rows("SELECT reason, evidence FROM incidents")
        assert "our own line" in reason
        assert "no connection" in evidence
        assert room.rows("SELECT DISTINCT state, consecutive_failures <= 1 FROM schedule") == [
            ("active", True)
        ]
        room.collector.sources.update(alive)
        room.step(minutes=20)
        for name in names:
            assert (await room.polled(name)).poll.outcome in ("empty", "not_modified")
        assert incidents(room) == [("outage", "", False)]


async def test_a_few_dead_sources_among_living_ones_are_no_outage(
    open_press: Any, site: Any, make_site: Any
) -> None:
    Press(site)
    async with make_site() as closed:
        dead = closed.port
    ports = dict.fromkeys(TOWNS[:4], dead)
    async with open_press(*TOWNS, ports=ports) as room:
        for _ in range(4):
            room.step(hours=8)
            for number in (0, 1, 4, 2, 5, 3):
                await room.polled(f"s{number}")
        assert {kind for kind, _ in standing(room)} == {"failing"}
        assert len(standing(room)) == 4


async def test_incidents_are_told_once_and_their_notices_closed(open_press: Any, site: Any) -> None:
    from models.triage.ladder import Channel
    from tasks.settings import AlertSettings

    Press(site)
    names = ["s0", "s1", "s2", "s3"]
    channel = Channel("desk", "json://127.0.0.1:9/", (1, 2, 3))
    async with open_press(
        *PLATFORM[:4], channels={"desk": channel}, alerts=AlertSettings()
    ) as room:
        for name in names:
            await room.polled(name)
        site.add("/feed", status="500 Oops")
        for _ in range(3):
            room.step(hours=1)
            for name in names:
                await room.polled(name)
        ((text,),) = room.rows("SELECT text FROM notices")
        assert text.splitlines()[0].endswith(": HTTP 500 Internal Server Error")
        notices = "SELECT kind, source, closed_at IS NULL FROM notices"
        assert room.rows(notices) == [("host", None, True)]
        Press(site)
        room.step(hours=7)
        await room.polled("s1")
        assert room.rows(notices) == [("host", None, False)]


# Pace


async def test_hosts_of_one_registered_domain_share_its_pace(open_press: Any, site: Any) -> None:
    Press(site)
    site.add("/robots.txt", status="404 Not Found")
    fetch = FetchSettings(host_gap_s=0.4)
    async with open_press("www.press.example", "m.press.example", fetch=fetch) as room:
        sources = [replace(source, http=replace(source.http, min_gap_s=None))
                   for source in room.collector.sources.values()]  # fmt: skip
        began = room.clock.now()
        for source in sources:
            await room.collector.fetcher.fetch(source.url, source, accept="listing")
        # Two robots.txt and two feeds: three gaps between four requests.
        assert (room.clock.now() - began).total_seconds() >= 3 * 0.4
