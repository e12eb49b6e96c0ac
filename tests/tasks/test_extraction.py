import asyncio
import os
import signal
import subprocess
import sys
import textwrap
import time
from collections.abc import AsyncIterator
from datetime import UTC, datetime
from functools import partial
from pathlib import Path

import psutil
import pytest
import pytest_asyncio

from models.errors import NewsbeatError, ParseError
from models.records import ExtractRules, Fetched, Source
from tasks import extraction
from tasks.articles import extract_article
from tasks.extraction import ExtractionPool
from tasks.lists import parse_list
from tasks.settings import ExtractSettings

NOW = datetime(2024, 5, 7, 12, 0, tzinfo=UTC)
SAMPLE = (Path(__file__).parents[1] / "samples" / "article.de.html").read_bytes()
SOURCE = Source("blatt", "Blatt", "https://blatt.example/", extract=ExtractRules(title="h1"))
ENDLESS = b"<html><body>" + b"<p>Some words of an ordinary text, and more of them.</p>" * 400_000


def fetched(body: bytes, url: str = "https://blatt.example/stadt/bruecke-2024.html") -> Fetched:
    return Fetched(url, url, 200, (), body, NOW, 0.1, len(body))


@pytest_asyncio.fixture
async def pool() -> AsyncIterator[ExtractionPool]:
    async with ExtractionPool(
        ExtractSettings(workers=1, timeout_s=30.0, memory_mb=4096)
    ) as started:
        yield started


def helper_pid(pool: ExtractionPool) -> int:
    process = pool._helpers[0].process
    assert process is not None
    return process.pid


async def test_article_comes_back_from_a_helper(pool: ExtractionPool) -> None:
    article = await pool.extract(fetched(SAMPLE), SOURCE, NOW)
    assert article.title == "Brücke wieder offen: Stadt feiert"
    assert article.cpu_s > 0


async def test_page_that_is_none_fails_alone_and_keeps_the_helper(pool: ExtractionPool) -> None:
    before = helper_pid(pool)
    with pytest.raises(ParseError, match="a PDF instead of an HTML page"):
        await pool.extract(fetched(b"%PDF-1.7"), SOURCE, NOW)
    assert helper_pid(pool) == before


async def test_page_that_takes_too_long_is_ended_and_the_next_one_read() -> None:
    settings = ExtractSettings(workers=1, timeout_s=2.0, memory_mb=4096)
    async with ExtractionPool(settings) as pool:
        started = time.monotonic()
        with pytest.raises(ParseError, match=r"slow.*longer than 2 s"):
            await pool.extract(fetched(ENDLESS, "https://blatt.example/slow"), SOURCE, NOW)
        assert time.monotonic() - started < 10
        assert (await pool.extract(fetched(SAMPLE), SOURCE, NOW)).kind == "article"


async def test_page_that_needs_too_much_memory_is_refused_it() -> None:
    settings = ExtractSettings(workers=1, timeout_s=30.0, memory_mb=400)
    async with ExtractionPool(settings) as pool:
        with pytest.raises(ParseError, match=r"more memory than 400 MiB|ended its reader"):
            await pool.extract(fetched(ENDLESS), SOURCE, NOW)
        assert (await pool.extract(fetched(SAMPLE), SOURCE, NOW)).kind == "article"


LONG = b"<html><body><article>" + b"".join(
    b"<p>Words of an ordinary text, the line of number %d.</p>" % number for number in range(20_000)
)


async def test_page_whose_helper_is_killed_is_tried_once_more(pool: ExtractionPool) -> None:
    pid = helper_pid(pool)
    page = asyncio.create_task(pool.extract(fetched(LONG), SOURCE, NOW))
    await asyncio.sleep(0.3)
    os.kill(pid, signal.SIGKILL)
    assert (await page).kind == "article"


async def test_page_that_ends_its_helper_again_and_again_is_given_up(pool: ExtractionPool) -> None:
    page = asyncio.create_task(pool.extract(fetched(ENDLESS), SOURCE, NOW))
    killed: set[int] = set()
    while not page.done():
        for helper in (*pool._helpers, pool._aside):
            if helper.process is not None and helper.pages_left < extraction.PAGES_PER_HELPER:
                killed.add(helper.process.pid)
                helper.process.send_signal(signal.SIGSEGV)
        await asyncio.sleep(0.1)
    with pytest.raises(ParseError, match="ended its reader: SIGSEGV"):
        await page
    assert len(killed) == 2
    assert (await pool.extract(fetched(SAMPLE), SOURCE, NOW)).kind == "article"


async def test_source_with_slow_pages_holds_up_no_other() -> None:
    settings = ExtractSettings(workers=1, timeout_s=1.0, memory_mb=4096)
    other = Source("other", "Other", "https://other.example/")
    async with ExtractionPool(settings) as pool:
        slow = [asyncio.create_task(pool.extract(fetched(ENDLESS), SOURCE, NOW)) for _ in range(20)]
        await asyncio.sleep(0)
        began = time.monotonic()
        for _ in range(3):
            assert (await pool.extract(fetched(SAMPLE), other, NOW)).kind == "article"
        assert time.monotonic() - began < 10
        assert not slow[-1].done()
        for page in slow:
            page.cancel()
        await asyncio.gather(*slow, return_exceptions=True)


async def test_suspect_source_is_trusted_again_once_its_pages_go_well(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(extraction, "SUSPECT_PAGES", 2)
    settings = ExtractSettings(workers=1, timeout_s=1.0, memory_mb=4096)
    async with ExtractionPool(settings) as pool:
        with pytest.raises(ParseError, match="longer than 1 s"):
            await pool.extract(fetched(ENDLESS), SOURCE, NOW)
        for is_suspect in (True, True, False):
            assert (SOURCE.source in pool._suspects) == is_suspect
            await pool.extract(fetched(SAMPLE), SOURCE, NOW)


async def test_helper_that_died_while_idle_costs_nothing(pool: ExtractionPool) -> None:
    os.kill(helper_pid(pool), signal.SIGKILL)
    await asyncio.sleep(0.3)
    assert (await pool.extract(fetched(SAMPLE), SOURCE, NOW)).kind == "article"


async def test_helper_is_replaced_after_its_pages(pool: ExtractionPool) -> None:
    before = helper_pid(pool)
    pool._helpers[0].pages_left = 1
    await pool.extract(fetched(SAMPLE), SOURCE, NOW)
    await pool.extract(fetched(SAMPLE), SOURCE, NOW)
    assert helper_pid(pool) != before
    assert not psutil.pid_exists(before)


async def test_page_given_up_does_not_mix_with_the_next(pool: ExtractionPool) -> None:
    page = asyncio.create_task(pool.extract(fetched(ENDLESS), SOURCE, NOW))
    await asyncio.sleep(0.2)
    page.cancel()
    with pytest.raises(asyncio.CancelledError):
        await page
    assert (await pool.extract(fetched(SAMPLE), SOURCE, NOW)).kind == "article"


async def test_many_pages_at_once_all_come_back() -> None:
    async with ExtractionPool(ExtractSettings(workers=2)) as pool:
        pages = [pool.extract(fetched(SAMPLE), SOURCE, NOW) for _ in range(20)]
        assert {article.kind for article in await asyncio.gather(*pages)} == {"article"}


async def test_closed_pool_says_so_and_leaves_nobody() -> None:
    pool = ExtractionPool(ExtractSettings())
    await pool.start()
    pid = helper_pid(pool)
    await pool.close()
    await pool.close()
    assert not psutil.pid_exists(pid)
    with pytest.raises(NewsbeatError, match="pool is closed"):
        await pool.extract(fetched(SAMPLE), SOURCE, NOW)


@pytest.mark.parametrize("state", ["idle", "busy"])
def test_helpers_end_when_their_parent_is_killed(tmp_path: Path, state: str) -> None:
    parent = tmp_path / "parent.py"
    parent.write_text(
        textwrap.dedent(
            f"""
            import asyncio, datetime
            from models.records import Fetched, Source
            from tasks.extraction import ExtractionPool
            from tasks.settings import ExtractSettings
            open({str(tmp_path / "imported")!r}, "a").write("x")

            async def main():
                now = datetime.datetime.now(datetime.UTC)
                pool = ExtractionPool(ExtractSettings(timeout_s=60, memory_mb=4096))
                await pool.start()
                print(pool._helpers[0].process.pid, flush=True)
                body = b"<html><body>" + b"<p>Some words of text, and more.</p>" * 400_000
                page = Fetched("http://a.test/", "http://a.test/", 200, (), body, now, 0.1, 1)
                while {state == "busy"}:
                    await pool.extract(page, Source("a", "A", "http://a.test/"), now)
                await asyncio.sleep(60)

            asyncio.run(main())
            """
        )
    )
    root = str(Path(extraction.__file__).parents[1])
    process = subprocess.Popen(
        [sys.executable, str(parent)],
        stdout=subprocess.PIPE,
        env={**os.environ, "PYTHONPATH": root},
    )
    try:
        assert process.stdout is not None
        helper = int(process.stdout.readline())
        time.sleep(0.5)
        assert psutil.pid_exists(helper)
    finally:
        process.kill()
        process.communicate()
    deadline = time.monotonic() + 5
    while psutil.pid_exists(helper) and time.monotonic() < deadline:
        time.sleep(0.05)
    assert not psutil.pid_exists(helper) or psutil.Process(helper).status() == "zombie"
    assert (tmp_path / "imported").read_text() == "x", "a helper imported its parent's program"


HANGER = "import time\nuntil = time.process_time() + 60\nwhile time.process_time() < until: pass"


async def test_page_that_is_slow_leaves_the_line_to_the_next() -> None:
    other = Source("other", "Other", "https://other.example/")
    async with ExtractionPool(ExtractSettings(workers=1, timeout_s=60.0)) as pool:
        before = helper_pid(pool)
        slow = asyncio.create_task(pool.run(partial(exec, HANGER), "https://a.example/", "a"))
        await asyncio.sleep(0.1)
        began = time.monotonic()
        assert (await pool.extract(fetched(SAMPLE), other, NOW)).kind == "article"
        assert time.monotonic() - began < 10
        assert not slow.done()
        assert helper_pid(pool) != before
        assert psutil.Process(before).nice() == extraction.SUSPECT_NICENESS
        slow.cancel()
        await asyncio.gather(slow, return_exceptions=True)
        assert not psutil.pid_exists(before)


async def test_source_is_trusted_again_once_its_slow_page_is_read() -> None:
    quick = HANGER.replace("60", "1")
    async with ExtractionPool(ExtractSettings(workers=1, timeout_s=60.0)) as pool:
        _, cpu_s = await pool.run(partial(exec, quick), "https://blatt.example/", SOURCE.source)
        assert 1.0 <= cpu_s < 5.0
        assert SOURCE.source not in pool._suspects
        assert (await pool.extract(fetched(SAMPLE), SOURCE, NOW)).kind == "article"


async def test_only_so_many_slow_pages_leave_the_line() -> None:
    async with ExtractionPool(ExtractSettings(workers=1, timeout_s=60.0)) as pool:
        slow = [
            asyncio.create_task(pool.run(partial(exec, HANGER), "https://a.example/", f"s{number}"))
            for number in range(extraction.MAX_SLOW + 3)
        ]
        until = time.monotonic() + 60
        while len(pool._slow) < extraction.MAX_SLOW and time.monotonic() < until:
            await asyncio.sleep(0.2)
        await asyncio.sleep(1.0)
        assert len(pool._slow) == extraction.MAX_SLOW
        for page in slow:
            page.cancel()
        await asyncio.gather(*slow, return_exceptions=True)


async def test_defect_on_a_page_is_told_and_keeps_the_helper(pool: ExtractionPool) -> None:
    before = helper_pid(pool)
    with pytest.raises(ParseError, match="its reader broke: ZeroDivisionError"):
        await pool.run(partial(divmod, 1, 0), "https://a.example/", "a")
    assert helper_pid(pool) == before
    assert await pool.run(partial(divmod, 7, 2), "https://a.example/", "a")


TAGS = b"<html>" + b"<div>" * 200_000
HANGING = {
    "nested list": partial(parse_list, TAGS, url="https://a.example/", now=NOW),
    "crowded list": partial(
        parse_list,
        b"<p " + b" ".join(b"a%d=''" % number for number in range(150_000)) + b">",
        url="https://a.example/",
        now=NOW,
    ),
    "crowded article": partial(
        extract_article,
        b"<html><p " + b" ".join(b"a%d=''" % number for number in range(150_000)) + b">",
        url="https://a.example/",
        now=NOW,
    ),
    "endless article": partial(extract_article, ENDLESS, url="https://a.example/", now=NOW),
}


@pytest.mark.slow
@pytest.mark.parametrize("name", HANGING)
async def test_page_that_hangs_its_reader_is_ended_and_named(name: str) -> None:
    async with ExtractionPool(ExtractSettings(workers=1, timeout_s=2.0)) as pool:
        began = time.monotonic()
        with pytest.raises(ParseError, match=r"https://a\.example/: reading it took longer than 2"):
            await pool.run(HANGING[name], "https://a.example/", "a")
        assert time.monotonic() - began < 20
        assert (await pool.extract(fetched(SAMPLE), SOURCE, NOW)).kind == "article"
