"""A site that changes: found, held back, told of once, set right, released."""

from __future__ import annotations

import contextlib
from datetime import timedelta
from typing import Any

import pytest

from flows.caring import Care, CareReport
from flows.collect import final_state
from flows.referencing import ReferenceRefit
from models.errors import NewsbeatError
from models.records import ExtractRules, PollResult
from models.reference_report import describe_references
from tasks.replay.history import InventedPage, RecordedEntry, RecordedSource, Redesign
from tasks.replay.pages import article_of
from tasks.replay.sample import SAMPLE_START as START
from tasks.settings import DriftSettings

MINUTES = 10
N_BEFORE = 30


def changing_source(layout: str, after: str, n_after: int = 40, **changes: Any) -> RecordedSource:
    """Return a source that publishes every ten minutes and is rebuilt right after the start."""
    step = timedelta(minutes=MINUTES)
    entries = tuple(
        RecordedEntry(
            START + (number - N_BEFORE) * step,
            f"/story-{number}",
            f"Story {number} of the harbour",
            InventedPage(1000 + 7 * number),
        )
        for number in range(N_BEFORE + n_after)
    )
    fields: dict[str, Any] = {
        "source": "harbour",
        "title": "The Harbour",
        "host": "harbour.example",
        "kind": "feed",
        "window": N_BEFORE,
        "latency_s": 0.0,
        "layout": layout,
        "redesigns": (Redesign(START, after),),
        "entries": entries,
    }
    return RecordedSource(**(fields | changes))


class Room:
    """A newsroom whose polls are followed by what follows them in a flow run."""

    def __init__(self, room: Any) -> None:
        self.room = room

    async def poll(self) -> tuple[PollResult, CareReport | None]:
        result = await self.room.polled()
        return result, await self.room.collector.care.after_poll(result)

    async def learn(self) -> None:
        """Poll once before the change, so that there is a reference."""
        _, report = await self.poll()
        assert report is not None
        assert report.notes == [f"reference learnt from {N_BEFORE} pages"]

    async def until_failure(
        self, standing: str = "text", most: int = 20
    ) -> tuple[int, PollResult, CareReport]:
        """Poll until a flow run fails with a verdict; a layout may be told of before the text."""
        for n in range(1, most + 1):
            self.room.step(minutes=MINUTES)
            result, report = await self.poll()
            if report is not None and report.failure and report.state is not None:
                if report.state.standing == standing:
                    return n, result, report
                assert report.state.standing == "layout"
        raise AssertionError("no flow run failed")

    def rows(self, sql: str) -> list[tuple[Any, ...]]:
        rows: list[tuple[Any, ...]] = self.room.rows(sql)
        return rows

    def truth(self) -> dict[str, str]:
        """Return the true text of every page, by address."""
        source = self.room.web.history[0]
        return {
            source.url_of(entry): "\n".join(article_of(source, entry.page).paragraphs)
            for entry in source.entries
        }


@pytest.fixture
def open_room(open_newsroom: Any, make_stepped: Any) -> Any:
    @contextlib.asynccontextmanager
    async def open_one(source: RecordedSource, **settings: Any) -> Any:
        clock = make_stepped()
        # Half way between two stories: what the machine takes of its own time changes nothing.
        clock.step(timedelta(minutes=-MINUTES / 2))
        async with open_newsroom(source, clock=clock, **settings) as room:
            yield Room(room)

    return open_one


@pytest.mark.report("flairNLP/fundus#163")
async def test_half_bodies_are_found_held_back_and_set_right(open_room: Any) -> None:
    async with open_room(changing_source("structured", "structured_half")) as room:
        await room.learn()
        n, result, report = await room.until_failure()
        assert n <= 10
        # The very poll that finds it holds back all that came since, and tells of it once.
        state = report.state
        assert state is not None
        quarantined = room.rows("SELECT count(*), min(page_id) FROM articles WHERE quarantined")
        assert quarantined[0][0] == n
        assert state.since_page == quarantined[0][1]
        assert room.rows("SELECT count(*) FROM trusted_articles") == [(N_BEFORE,)]
        assert room.rows("SELECT state FROM schedule") == [("drifted",)]
        assert final_state(result, report).is_failed()
        assert "its text is wrong since 2025-03-04 07:0" in report.failure
        assert "newsbeat reextract harbour" in report.failure
        notices = "SELECT kind, source, subject FROM notices WHERE closed_at IS NULL"
        (notice,) = room.rows(notices)
        assert notice[:2] == ("drift", "harbour")
        assert report.failure.startswith(f"{notice[2]}: ")
        # The check of the set is on record, its document is there, and a way out is proposed.
        assert report.check is not None
        assert report.check.result.outcome == "drifted"
        assert room.rows("SELECT drifted, n_test FROM drift_history") == [(True, n)]
        folder = room.room.settings.folder
        document = (folder / str(report.check.document)).read_text(encoding="utf-8")
        assert "https://" not in document
        assert report.repair is not None
        assert (report.repair.way, report.repair.is_clear) == ("json-ld", True)

        # Polls go on; what comes is held back too, and nobody is told twice.
        room.room.step(minutes=MINUTES)
        result, report = await room.poll()
        assert result.poll.articles_stored == 1
        assert report is None or not report.failure
        assert room.rows("SELECT count(*) FROM articles WHERE quarantined") == [(n + 1,)]
        assert room.rows(notices) == [notice]

        mended = await room.room.collector.mending.reextract("harbour", adopt=True)
        assert mended.is_released, mended.in_one_line()
        assert (mended.n_changed, mended.n_released) == (n + 1, n + 1)
        assert room.rows("SELECT count(*) FROM articles WHERE quarantined") == [(0,)]
        assert room.rows("SELECT count(*) FROM notices WHERE closed_at IS NULL") == [(0,)]
        assert room.rows("SELECT state FROM schedule") == [("active",)]
        truth = room.truth()
        for url, text in room.rows("SELECT url, text FROM articles"):
            assert "".join(text.split()) == "".join(truth[url].split()), url
        versions = "SELECT count(*) FROM article_versions WHERE version = 2"
        assert room.rows(versions) == [(n + 1,)]

        # The repair holds for what comes next.
        room.room.step(minutes=MINUTES)
        await room.poll()
        rows = room.rows("SELECT extraction, quarantined FROM articles ORDER BY stored_at DESC")
        assert rows[0] == ("json-ld", False)


@pytest.mark.report("flairNLP/fundus#163")
async def test_a_redesign_that_a_rule_misreads_is_found_and_mended_by_a_new_selector(
    open_room: Any,
) -> None:
    source = changing_source("html5", "redesigned", extract=ExtractRules(text="article > p"))
    async with open_room(source) as room:
        await room.learn()
        n, _, report = await room.until_failure()
        assert n <= 6
        assert room.rows("SELECT count(*) FROM articles WHERE quarantined") == [(n,)]
        open_notices = "SELECT subject FROM notices WHERE closed_at IS NULL"
        assert "its text is wrong" in room.rows(open_notices)[0][0]
        assert len(room.rows(open_notices)) == 1
        assert "article.app-voice" in report.failure
        assert report.repair is not None
        assert report.repair.selector == "div.app-story-widget"
        mended = await room.room.collector.mending.reextract("harbour", adopt=True)
        assert mended.is_released, mended.in_one_line()
        truth = room.truth()
        for url, text in room.rows("SELECT url, text FROM articles"):
            assert "".join(text.split()) == "".join(truth[url].split()), url


async def test_a_redesign_whose_text_stays_right_holds_nothing_back(open_room: Any) -> None:
    drift = DriftSettings(accept_layout_after=12)
    async with open_room(changing_source("html5", "lazy"), drift=drift) as room:
        await room.learn()
        n, _, report = await room.until_failure("layout")
        assert n <= 4
        assert "its layout changed" in report.failure
        assert "the text looks right" in report.failure
        assert room.rows("SELECT count(*) FROM articles WHERE quarantined") == [(0,)]
        assert room.rows("SELECT state FROM schedule") == [("drifted",)]
        for _ in range(12 - n):
            room.room.step(minutes=MINUTES)
            await room.poll()
        assert room.rows("SELECT state FROM schedule") == [("active",)]
        assert room.rows("SELECT count(*) FROM notices WHERE closed_at IS NULL") == [(0,)]
        assert room.rows("SELECT n_pages FROM reference_models") == [(12,)]


async def test_accept_takes_the_new_layout_as_the_reference(open_room: Any) -> None:
    source = changing_source("html5", "redesigned", extract=ExtractRules(text="article > p"))
    async with open_room(source) as room:
        await room.learn()
        n, _, _ = await room.until_failure()
        accepted = await room.room.collector.mending.accept("harbour")
        assert (accepted.n_pages, accepted.n_released) == (0, n)
        assert "learnt from its next" in accepted.in_one_line()
        assert room.rows("SELECT standing FROM drift_states") == [("learning",)]
        assert room.rows("SELECT count(*) FROM reference_models") == [(0,)]
        assert room.rows("SELECT state FROM schedule") == [("active",)]


async def test_a_restart_goes_on_with_the_evidence_it_had(open_room: Any) -> None:
    async with open_room(changing_source("structured", "structured_half")) as room:
        await room.learn()
        for _ in range(2):
            room.room.step(minutes=MINUTES)
            await room.poll()
        state = "SELECT monitor FROM drift_states"
        (before_restart,) = room.rows(state)
        watches = room.room.collector.watches
        watches.forget("harbour")
        post = await watches._post("harbour", room.room.clock.now())
        assert post.watch.to_bytes() == bytes(before_restart[0])
        n, _, _ = await room.until_failure()
        assert n <= 8


async def test_what_a_dead_worker_found_and_did_not_say_the_next_one_says_once(
    open_room: Any,
) -> None:
    async with open_room(changing_source("structured", "structured_half")) as room:
        await room.learn()
        alarm = None
        while alarm is None or alarm.state.standing != "text":
            room.room.step(minutes=MINUTES)
            # The worker dies after each poll, before it sees to what came of it.
            alarm = (await room.room.polled()).alarm
        next_worker = Care(room.room.collector)
        room.room.step(minutes=1)
        result = await room.room.polled()
        assert (result.poll.entries_new, result.drift) == (0, None)
        report = await next_worker.after_poll(result)
        assert report is not None
        assert report.failure == alarm.text
        assert report.check is not None
        assert report.repair is not None
        assert final_state(result, report).is_failed()
        for care in (next_worker, Care(room.room.collector)):
            room.room.step(minutes=1)
            assert await care.after_poll(await room.room.polled()) is None


async def test_the_nightly_refit_builds_what_is_missing_and_reports_it(open_room: Any) -> None:
    shown = []

    async def note(done: int, total: int) -> None:
        shown.append((done, total))

    async with open_room(changing_source("structured", "structured")) as room:
        await room.room.polled()
        refit = ReferenceRefit(room.room.collector)
        report = await refit.run(note)
        assert describe_references(report).endswith("1 references built, 0 kept, 0 refused")
        assert room.rows("SELECT n_pages, note FROM reference_models") == [
            (N_BEFORE, "built anew at night")
        ]
        assert room.rows("SELECT standing FROM drift_states") == [("watching",)]
        assert shown == [(0, 1), (1, 1)]
        # Nothing was found clean since: what there is stays.
        assert "0 references built, 1 kept" in describe_references(await refit.run(note))


async def test_a_reference_of_wrong_texts_is_refused_until_a_person_accepts_it(
    open_room: Any,
) -> None:
    rules = ExtractRules(text="article > p")
    async with open_room(changing_source("redesigned", "redesigned", extract=rules)) as room:
        _, report = await room.poll()
        assert report is not None
        assert report.notes[0].startswith("no reference: these pages cannot be a reference")
        assert room.rows("SELECT count(*) FROM reference_models") == [(0,)]
        ((standing, reason),) = room.rows("SELECT standing, reason FROM drift_states")
        assert standing == "learning"
        assert "cannot be a reference" in reason
        mending = room.room.collector.mending
        with pytest.raises(NewsbeatError, match="cannot be a reference"):
            await mending.check("harbour")
        assert (await mending.accept("harbour")).n_pages == N_BEFORE
        assert room.rows("SELECT standing FROM drift_states") == [("watching",)]


async def test_what_cannot_be_judged_fails_the_flow_run(open_room: Any) -> None:
    drift = DriftSettings(check_pages=5)
    async with open_room(changing_source("structured", "structured"), drift=drift) as room:
        await room.learn()
        warehouse = room.room.collector.warehouse
        for _ in range(4):
            room.room.step(minutes=MINUTES)
            await room.poll()
        # A reference that can no longer be read: the set cannot be compared with anything.
        with warehouse._transaction() as connection:
            connection.execute("UPDATE reference_models SET state = 'torn'::BLOB")
        room.room.step(minutes=MINUTES)
        result, report = await room.poll()
        assert report is not None
        assert "could not be judged, which is no pass" in report.failure
        assert final_state(result, report).is_failed()
        assert room.rows("SELECT outcome, drifted FROM drift_history") == [("not evaluated", False)]
