from __future__ import annotations

import asyncio
import time
from datetime import UTC, datetime, timedelta

import pytest

from models.errors import TransientFetchError
from tasks import pacing
from tasks.clock import Clock
from tasks.pacing import HostPacer

FAST = 100.0


def make_pacer(gap_s: float = 2.0, connections: int = 2, speed: float = FAST) -> HostPacer:
    clock = Clock.starting_at(datetime(2024, 3, 1, tzinfo=UTC), speed)
    return HostPacer(clock, gap_s, connections)


async def starts(pacer: HostPacer, n: int, host: str = "a.example", **gap: float) -> list[float]:
    """Return when each of `n` turns began, in the clock's seconds since the first."""
    began = []
    for _ in range(n):
        with await pacer.take_turn(host, **gap):
            began.append(time.monotonic() * FAST)
    return [moment - began[0] for moment in began]


async def test_turns_of_one_host_keep_the_gap_in_clock_time() -> None:
    began = time.monotonic()
    first, second, third = await starts(make_pacer(), 3)
    assert (first, second >= 1.9, third >= 3.9) == (0.0, True, True)
    assert time.monotonic() - began < 1.0


async def test_hosts_do_not_wait_for_each_other() -> None:
    pacer = make_pacer(gap_s=60.0)
    began = time.monotonic()
    for n in range(50):
        (await pacer.take_turn(f"{n}.example")).end()
    assert time.monotonic() - began < 0.5


@pytest.mark.parametrize(
    ("gap", "least_s", "most_s"),
    [
        ({"gap_s": 0.0}, 0.0, 1.9),
        ({"gap_s": 5.0}, 4.9, 20.0),
        ({"crawl_delay_s": 6.0}, 5.9, 20.0),
        ({"gap_s": 0.0, "crawl_delay_s": 6.0}, 5.9, 20.0),
        ({"crawl_delay_s": 600.0}, 29.9, 60.0),
    ],
)
async def test_a_source_and_its_site_may_set_another_gap(
    gap: dict[str, float], least_s: float, most_s: float
) -> None:
    _, second = await starts(make_pacer(), 2, **gap)
    assert least_s <= second < most_s


async def test_no_more_than_so_many_are_at_a_host_at_a_time() -> None:
    pacer = make_pacer(gap_s=0.0)
    now = most = 0

    async def visit() -> None:
        nonlocal now, most
        with await pacer.take_turn("a.example"):
            now += 1
            most = max(most, now)
            await asyncio.sleep(0.01)
            now -= 1

    await asyncio.gather(*(visit() for _ in range(8)))
    assert (now, most) == (0, 2)


async def test_who_asks_first_goes_first() -> None:
    pacer = make_pacer(connections=1)
    order: list[int] = []

    async def visit(n: int) -> None:
        with await pacer.take_turn("a.example"):
            order.append(n)

    await asyncio.gather(*(visit(n) for n in range(6)))
    assert order == list(range(6))


async def test_who_gives_up_costs_the_others_nothing() -> None:
    pacer = make_pacer(gap_s=100.0, connections=1)
    turn = await pacer.take_turn("a.example")
    waiting = [asyncio.create_task(pacer.take_turn("a.example", gap_s=0.0)) for _ in range(3)]
    await asyncio.sleep(0.02)
    waiting[0].cancel()
    turn.end()
    await asyncio.sleep(0.02)
    waiting[1].cancel()
    with await asyncio.wait_for(waiting[2], 5):
        pass
    assert await asyncio.gather(*waiting[:2], return_exceptions=True) != []
    (await asyncio.wait_for(pacer.take_turn("a.example"), 5)).end()


async def test_ending_a_turn_twice_frees_one_place() -> None:
    pacer = make_pacer(gap_s=0.0, connections=1)
    turn = await pacer.take_turn("a.example")
    turn.end()
    turn.end()
    await pacer.take_turn("a.example")
    with pytest.raises(TimeoutError):
        await asyncio.wait_for(pacer.take_turn("a.example"), 0.05)


async def test_a_host_that_asked_for_quiet_gets_it() -> None:
    pacer = make_pacer()
    pacer.hold("a.example", 20.0)
    assert pacer.not_before("a.example") is not None
    began = time.monotonic() * FAST
    (await pacer.take_turn("a.example")).end()
    assert time.monotonic() * FAST - began >= 19.0
    assert pacer.not_before("a.example") is None
    assert pacer.not_before("b.example") is None


async def test_a_long_hold_is_told_rather_than_slept_through() -> None:
    pacer = make_pacer()
    pacer.hold("a.example", 3600.0)
    pacer.hold("a.example", 1.0)
    with pytest.raises(TransientFetchError, match="left alone") as caught:
        await pacer.take_turn("a.example")
    assert caught.value.retry_after_s == pytest.approx(3600.0, abs=100.0)


async def test_who_waits_in_line_is_told_of_a_hold_too() -> None:
    pacer = make_pacer(gap_s=5.0)
    (await pacer.take_turn("a.example")).end()
    waiting = asyncio.create_task(pacer.take_turn("a.example"))
    await asyncio.sleep(0.01)
    pacer.hold("a.example", 3600.0)
    with pytest.raises(TransientFetchError):
        await asyncio.wait_for(waiting, 5)


async def test_a_hold_for_a_year_lasts_a_day() -> None:
    pacer = make_pacer()
    pacer.hold("a.example", 366 * 86_400.0)
    held_until = pacer.not_before("a.example")
    assert held_until is not None
    assert held_until - datetime(2024, 3, 1, tzinfo=UTC) < timedelta(days=1, minutes=10)


async def test_idle_hosts_are_forgotten_and_waiting_ones_are_not() -> None:
    pacer = make_pacer(gap_s=0.0)
    turn = await pacer.take_turn("busy.example")
    pacer.hold("held.example", 3600.0)
    for n in range(5000):
        (await pacer.take_turn(f"{n}.example")).end()
    assert pacer.n_hosts <= pacing._MAX_IDLE_HOSTS + 2
    assert pacer.not_before("held.example") is not None
    turn.end()


async def test_a_clock_that_is_put_back_makes_nobody_wait_for_the_time_it_lost() -> None:
    start = datetime(2024, 3, 1, tzinfo=UTC)
    pacer = HostPacer(Clock.starting_at(start, FAST), 2.0, 2)
    (await pacer.take_turn("a.example")).end()
    pacer._clock = Clock.starting_at(start - timedelta(hours=10), FAST)
    (await asyncio.wait_for(pacer.take_turn("a.example"), 2.0)).end()
