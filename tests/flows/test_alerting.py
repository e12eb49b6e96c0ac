"""From a page with a keyword to the people told: a real mail server, a real webhook."""

from __future__ import annotations

import asyncio
import json
import socket
import time
from collections.abc import Iterator
from dataclasses import dataclass, field, replace
from datetime import timedelta
from email import message_from_bytes, policy
from hashlib import sha256
from html import escape
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from threading import Thread

import pytest
from aiosmtpd.controller import Controller

from flows.alerting import Alerter
from models.triage.ladder import Channel
from tasks.acknowledgements import leave_request
from tasks.replay.history import RecordedEntry, StoredPage
from tasks.replay.sample import SAMPLE_START
from tasks.settings import AlertSettings

RULES = """
[[rule]]
rule = "dam"
level = 1
where = "title"
group = "danger"
any = ["dam"]

[[rule]]
rule = "fire"
level = 2
where = "title"
any = ["fire"]

[[rule]]
rule = "strike"
level = 3
where = "title"
group = "work"
any = ["strike"]

[[rule]]
rule = "library"
level = 4
where = "title"
any = ["library"]

[[rule]]
rule = "weather"
level = 5
where = "title"
any = ["rain"]
"""


@dataclass
class Hook:
    """A webhook that can be out of order."""

    is_down: bool = False
    wait_s: float = 0.0
    got: list[dict[str, str]] = field(default_factory=list)
    port: int = 0

    @property
    def titles(self) -> list[str]:
        return [message["title"] for message in self.got]


@pytest.fixture
def hook() -> Iterator[Hook]:
    hook = Hook()

    class Handler(BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            body = self.rfile.read(int(self.headers["Content-Length"]))
            time.sleep(hook.wait_s)
            if not hook.is_down:
                hook.got.append(json.loads(body))
            self.send_response(503 if hook.is_down else 200)
            self.send_header("Content-Length", "0")
            self.end_headers()

        def log_message(self, *_args: object) -> None:
            return

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    hook.port = server.server_address[1]
    thread = Thread(target=server.serve_forever, args=(0.05,))
    thread.start()
    yield hook
    server.shutdown()
    thread.join()
    server.server_close()


@dataclass
class Post:
    """A mail server's letters."""

    letters: list[tuple[str, str]] = field(default_factory=list)
    port: int = 0

    async def handle_DATA(self, _server, _session, envelope) -> str:  # noqa: N802 - theirs
        letter = message_from_bytes(envelope.content, policy=policy.default)
        body = letter.get_body(("plain", "html"))
        self.letters.append((str(letter["Subject"]), body.get_content()))
        return "250 OK"

    @property
    def subjects(self) -> list[str]:
        return [subject for subject, _ in self.letters]


@pytest.fixture
def post() -> Iterator[Post]:
    post = Post()
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        post.port = probe.getsockname()[1]
    controller = Controller(post, hostname="127.0.0.1", port=post.port)
    controller.start()
    yield post
    controller.stop()


def page(title: str, about: str) -> bytes:
    """Return an article page; what it is about makes its text unlike any other's."""
    letters = sha256(about.encode()).hexdigest()
    words = [f"{letters[at % 50 : at % 50 + 4]}{at}" for at in range(160)]
    text = "".join(
        f"<p>{' '.join(words[at : at + 40]).capitalize()}.</p>" for at in (0, 40, 80, 120)
    )
    return (
        f"<html><head><title>{escape(title)}</title></head><body><article>"
        f"<h1>{escape(title)}</h1>{text}</article></body></html>"
    ).encode()


def entries(
    *titles: str, minutes: int = 10, seed: int = 0, text: str | None = None
) -> tuple[RecordedEntry, ...]:
    """Return a backlog of one, then one entry every few minutes."""
    return tuple(
        RecordedEntry(
            SAMPLE_START + timedelta(minutes=minutes * (number - 0.5)),
            f"/story-{seed}-{number}",
            title,
            StoredPage(page(title, text if text is not None else f"{seed} {number}")),
        )
        for number, title in enumerate(titles)
    )


@pytest.fixture
def open_desk(open_newsroom, make_recorded, tmp_path):
    """Opens a newsroom with the rules above, and an alerter."""
    (tmp_path / "data" / "keywords").mkdir(parents=True)
    (tmp_path / "data" / "keywords" / "rules.toml").write_text(RULES, encoding="utf-8")

    def opened(*sources, channels, clock=None, alerts=None):
        history = [make_recorded(source=name, host=f"{name}.example", entries=listed)
                   for name, listed in sources]  # fmt: skip
        return open_newsroom(
            *history,
            clock=clock,
            change=lambda source: replace(source, tags=(source.source,)),
            channels={channel.name: channel for channel in channels},
            alerts=alerts or AlertSettings(retry_s=30.0),
        )

    return opened


async def settled(newsroom, alerter=None) -> None:
    await (alerter or Alerter(newsroom.collector)).settle()


def mail(post: Post, **about) -> Channel:
    url = (
        f"mailto://127.0.0.1:{post.port}/?from=news@desk.example&to=night@desk.example&format=text"
    )
    return Channel("mail", url, **about)


def webhook(hook: Hook, name: str = "hook", **about) -> Channel:
    return Channel(name, f"json://127.0.0.1:{hook.port}/in", **about)


@pytest.mark.report("sansan0/TrendRadar#1007")
@pytest.mark.report("sansan0/TrendRadar#759")
async def test_every_level_goes_its_own_way_and_each_notice_once(open_desk, hook, post):
    titles = ("Old dam of old", "Dam in doubt", "Fire downtown", "Strike at port",
              "Strike in mines", "New library", "Rain at noon", "Nothing at all")  # fmt: skip
    channels = [webhook(hook), mail(post, levels=(3, 4))]
    async with open_desk(
        ("harbour", entries(*titles)),
        channels=channels,
        alerts=AlertSettings(digest_at="20:00"),
    ) as desk:
        alerter = Alerter(desk.collector)
        await desk.polled()
        await settled(desk, alerter)
        assert hook.got == [], "a first import raises no alarms"
        assert desk.rows("SELECT rule, muted FROM rule_hits") == [("dam", "backlog")]
        desk.step(minutes=20)
        await desk.polled()
        await settled(desk, alerter)
        assert hook.titles == ["[newsbeat 1] Dam in doubt", "[newsbeat 2] Fire downtown"]
        assert 'rule dam, level 1: the word "Dam"' in hook.got[0]["message"]
        assert post.letters == []
        desk.step(minutes=34)
        await desk.polled()
        for _ in range(3):
            await settled(desk, alerter)
        assert post.letters == [], "the hour is not over"
        desk.step(minutes=10)
        await settled(desk, alerter)
        await settled(desk, alerter)
        assert post.subjects == ["[newsbeat 3] 2 stories of the hour"]
        assert "Strike at port" in post.letters[0][1]
        assert "Strike in mines" in post.letters[0][1]
        desk.step(hours=26)
        await desk.polled()
        desk.step(hours=24)
        for _ in range(3):
            await settled(desk, alerter)
        assert post.subjects[1:] == ["[newsbeat 4] 1 story of the day"]
        assert sorted(title for title in hook.titles if "again" not in title) == [
            "[newsbeat 1] Dam in doubt",
            "[newsbeat 2] Fire downtown",
            "[newsbeat 3] 2 stories of the hour",
            "[newsbeat 4] 1 story of the day",
        ]
        kept = desk.rows("SELECT level, story_id FROM rule_hits WHERE rule = 'weather'")
        assert kept == [(5, None)]


async def test_level_one_is_repeated_until_somebody_answers(open_desk, hook):
    async with open_desk(
        ("harbour", entries("Old", "Dam in doubt")), channels=[webhook(hook)]
    ) as desk:
        alerter = Alerter(desk.collector)
        await desk.polled()
        desk.step(minutes=10)
        await desk.polled()
        for _ in range(3):
            await settled(desk, alerter)
            await settled(desk, alerter)
            desk.step(minutes=15)
        assert hook.titles == [
            "[newsbeat 1] Dam in doubt",
            "[newsbeat 1] again, unanswered: Dam in doubt",
            "[newsbeat 1] again, unanswered: Dam in doubt",
        ]
        ((notice,),) = desk.rows("SELECT notice_id FROM notices")
        leave_request(desk.settings.folder, notice[:6], "night shift")
        for _ in range(3):
            await settled(desk, alerter)
            desk.step(minutes=15)
        assert len(hook.got) == 3
        answered = "SELECT acknowledged_by, closed_at IS NOT NULL FROM notices"
        assert desk.rows(answered) == [("night shift", True)]


@pytest.mark.report("sansan0/TrendRadar#759")
async def test_groups_and_tags_go_to_their_own_rooms(open_desk, hook):
    channels = [
        webhook(hook, "danger", tags=("danger",)),
        webhook(hook, "quay", tags=("quay",), levels=(2,)),
    ]
    sources = [("harbour", entries("Old", "Dam in doubt", "Fire downtown")),
               ("quay", entries("Old", "Fire at sea", seed=1))]  # fmt: skip
    async with open_desk(*sources, channels=channels) as desk:
        for name in ("harbour", "quay"):
            await desk.polled(name)
        desk.step(minutes=30)
        for name in ("harbour", "quay"):
            await desk.polled(name)
        await settled(desk)
        told = desk.rows("SELECT channel, subject FROM notices ORDER BY channel")
        assert told == [("danger", "Dam in doubt"), ("quay", "Fire at sea")]
        assert len(hook.got) == 2


async def test_reprints_are_one_notice_with_its_outlets(open_desk, hook):
    title = "Fire downtown: all quays are closed"
    sources = [(name, entries("Old", title, seed=seed)) for seed, name in enumerate(("one", "two"))]
    async with open_desk(*sources, channels=[webhook(hook, levels=(2,))]) as desk:
        for name in ("one", "two"):
            await desk.polled(name)
        desk.step(minutes=10)
        for name in ("one", "two"):
            await desk.polled(name)
            await settled(desk)
        assert len(hook.got) == 1
        told = "SELECT outlets, rules, closed_at = sent_at FROM notices"
        assert desk.rows(told) == [(["one", "two"], ["fire"], True)]
        assert desk.rows("SELECT count(DISTINCT story_id), count(*) FROM rule_hits") == [(1, 2)]


async def test_a_channel_that_is_down_is_tried_again_and_delays_no_other(open_desk, hook, post):
    titles = ("Old", "Fire one here", "Fire two there", "Fire three away", "Fire four off",
              "Fire five out")  # fmt: skip
    channels = [webhook(hook), mail(post)]
    async with open_desk(("harbour", entries(*titles, minutes=1)), channels=channels) as desk:
        alerter = Alerter(desk.collector)
        await desk.polled()
        hook.is_down = True
        desk.step(minutes=1)
        await desk.polled()
        await settled(desk, alerter)
        assert hook.got == []
        assert post.subjects == ["[newsbeat 2] Fire one here"]
        ((error, sent_at),) = desk.rows("SELECT error, sent_at FROM notices WHERE channel = 'hook'")
        assert "503" in error
        assert sent_at is None
        desk.step(minutes=4)
        await desk.polled()
        await settled(desk, alerter)
        assert post.subjects[1:] == ["[newsbeat 2] 4 stories"], "many that wait go as one"
        hook.is_down = False
        desk.step(hours=1)
        for _ in range(3):
            await settled(desk, alerter)
        assert hook.titles == ["[newsbeat 2] Fire one here", "[newsbeat 2] 4 stories"]
        assert desk.rows("SELECT count(*) FROM notices WHERE error IS NOT NULL") == [(0,)]
        assert desk.rows("SELECT count(*) FROM outbox WHERE sent_at IS NULL") == [(0,)]


@pytest.mark.report("sansan0/TrendRadar#1007")
async def test_a_restart_in_the_middle_sends_each_notice_once(open_desk, make_stepped, hook, post):
    titles = ("Old", "Dam in doubt", "Fire downtown", "Strike at port")
    sources, clock = ("harbour", entries(*titles, minutes=1)), make_stepped()
    channels = [webhook(hook), mail(post)]
    async with open_desk(sources, channels=channels, clock=clock) as desk:
        await desk.polled()
        hook.is_down = True
        desk.step(minutes=5)
        await desk.polled()
        # Stored, and the process dies before anything is sent.
    async with open_desk(sources, channels=channels, clock=clock) as desk:
        await settled(desk)
        assert post.subjects == ["[newsbeat 1] Dam in doubt", "[newsbeat 2] Fire downtown"]
        # The mail is out, the webhook is not: it dies again.
    hook.is_down = False
    async with open_desk(sources, channels=channels, clock=clock) as desk:
        desk.step(minutes=1)
        for _ in range(3):
            await settled(desk)
        assert hook.titles == ["[newsbeat 1] Dam in doubt", "[newsbeat 2] Fire downtown"]
        assert len(post.letters) == 2
    async with open_desk(sources, channels=channels, clock=clock) as desk:
        desk.step(minutes=56)
        await settled(desk)
        assert post.subjects.count("[newsbeat 3] 1 story of the hour") == 1
        assert hook.titles.count("[newsbeat 3] 1 story of the hour") == 1


@pytest.mark.report("caronc/apprise#745")
async def test_a_long_message_goes_in_parts_and_goes_on_where_it_stopped(open_desk, hook):
    async with open_desk(
        ("harbour", entries("Old", "Fire downtown, " * 12)), channels=[webhook(hook)]
    ) as desk:
        alerter = Alerter(desk.collector)
        alerter._channels.room = lambda _name: 220  # type: ignore[method-assign]
        await desk.polled()
        desk.step(minutes=10)
        await desk.polled()
        await settled(desk, alerter)
        assert len(hook.got) > 1
        assert all(len(message["message"]) <= 300 for message in hook.got)
        whole = " ".join(message["message"] for message in hook.got)
        assert "harbour.example/story-0-1" in whole


async def test_a_hostile_title_is_text(open_desk, hook, post):
    title = "Fire <script>alert(1)</script> @everyone \x1b[31m\r\nBcc: x@y.example"
    async with open_desk(
        ("harbour", entries("Old", title)), channels=[webhook(hook), mail(post)]
    ) as desk:
        await desk.polled()
        desk.step(minutes=10)
        await desk.polled()
        await settled(desk)
        (subject, body), (message,) = post.letters[0], hook.got
        assert "\n" not in subject
        assert "\x1b" not in body + message["message"] + message["title"]
        assert "@everyone" not in message["message"]


async def test_what_is_held_back_is_told_once_it_is_released(open_desk, hook):
    async with open_desk(
        ("harbour", entries("Old", "Fire downtown")), channels=[webhook(hook)]
    ) as desk:
        await desk.polled()
        desk.step(minutes=10)
        await desk.polled()
        connection = desk.collector.warehouse._connection
        # As a check leaves it: stored, not shown, its rules not matched.
        connection.execute("UPDATE articles SET quarantined = true; DELETE FROM notices")
        connection.execute("INSERT INTO untriaged SELECT article_id, stored_at FROM articles")
        connection.execute("DELETE FROM rule_hits")
        await settled(desk)
        assert hook.got == []
        connection.execute("UPDATE articles SET quarantined = false, title = title || ', mended'")
        for _ in range(2):
            await settled(desk)
        assert hook.titles == ["[newsbeat 2] Fire downtown, mended"]
        assert desk.rows("SELECT rule, muted FROM rule_hits") == [("fire", None)]
        assert desk.rows("FROM untriaged") == []


@pytest.mark.report("samuelclay/NewsBlur#706")
async def test_a_source_that_fails_is_told_once_and_closed_when_it_mends(open_desk, hook):
    async with open_desk(("harbour", entries("Old", "Calm")), channels=[webhook(hook)]) as desk:
        alerter = Alerter(desk.collector)
        await desk.polled()
        desk.fault("status", status=503)
        for _ in range(5):
            desk.step(minutes=10)
            await desk.polled()
        desk.step(hours=1)
        for _ in range(2):
            await settled(desk, alerter)
        assert hook.titles == ["[newsbeat 3] 1 story of the hour"]
        assert "harbour could not be read 3 times in a row" in hook.got[0]["message"]
        assert desk.rows("SELECT kind, closed_at IS NULL FROM notices") == [("failure", True)]
        desk.mend()
        await desk.polled()
        assert desk.rows("SELECT kind, closed_at IS NULL FROM notices") == [("failure", False)]


@pytest.mark.report("sansan0/TrendRadar#16")
async def test_nothing_is_said_where_nothing_matched(open_desk, hook):
    async with open_desk(
        ("harbour", entries("Old", "Calm", "Quiet")), channels=[webhook(hook)]
    ) as desk:
        alerter = Alerter(desk.collector)
        await desk.polled()
        for _ in range(5):
            desk.step(hours=12)
            await desk.polled()
            await settled(desk, alerter)
        assert hook.got == []


async def test_quiet_hours_hold_back_all_but_level_one(open_desk, hook):
    quiet = webhook(hook, quiet="06:00-12:00")
    async with open_desk(
        ("harbour", entries("Old", "Dam in doubt", "Fire downtown")), channels=[quiet]
    ) as desk:
        alerter = Alerter(desk.collector)
        await desk.polled()
        desk.step(minutes=30)
        await desk.polled()
        await settled(desk, alerter)
        assert hook.titles == ["[newsbeat 1] Dam in doubt"]
        desk.step(hours=5)
        await settled(desk, alerter)
        assert "[newsbeat 2] Fire downtown" in hook.titles


async def test_a_stop_while_a_message_is_under_way_sends_it_once(open_desk, make_stepped, hook):
    sources, clock = ("harbour", entries("Old", "Fire downtown")), make_stepped()
    hook.wait_s = 1.0
    async with open_desk(sources, channels=[webhook(hook)], clock=clock) as desk:
        running = asyncio.create_task(Alerter(desk.collector).run())
        await desk.polled()
        desk.step(minutes=10)
        await desk.polled()
        while not desk.rows("FROM outbox"):
            await asyncio.sleep(0.05)
        await asyncio.sleep(0.3)
        running.cancel()
        with pytest.raises(asyncio.CancelledError):
            await running
    async with open_desk(sources, channels=[webhook(hook)], clock=clock) as desk:
        desk.step(hours=1)
        await settled(desk)
        assert hook.titles == ["[newsbeat 2] Fire downtown"]


async def test_the_loop_sends_within_a_second_of_the_page(open_desk, hook):
    async with open_desk(
        ("harbour", entries("Old", "Dam in doubt")), channels=[webhook(hook)]
    ) as desk:
        alerter = Alerter(desk.collector)
        running = asyncio.create_task(alerter.run())
        await desk.polled()
        desk.step(minutes=10)
        await desk.polled()
        alerter.wake()
        for _ in range(100):
            if hook.got:
                break
            await asyncio.sleep(0.05)
        running.cancel()
        with pytest.raises(asyncio.CancelledError):
            await running
        assert hook.titles == ["[newsbeat 1] Dam in doubt"]
