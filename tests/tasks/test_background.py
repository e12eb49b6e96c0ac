"""A process that computes beside this one."""

import asyncio
import os
import time

import numpy as np
import psutil
import pytest

from models.errors import InsufficientDataError, NewsbeatError
from models.intensity.hwfit import fit_holtwinters
from tasks.background import NICENESS, Background

FIVE_HOURS = (np.zeros(5), np.arange(5))


async def test_calls_are_answered_in_the_process_it_began(tmp_path):
    async with Background(os.chdir, tmp_path) as helper:
        assert await helper.call(os.getcwd) == str(tmp_path)
        assert await helper.call(int.__add__, 2, 2) == 4
        assert await helper.call(os.getpid) == helper.pid != os.getpid()


async def test_it_gives_way_to_others():
    async with Background() as helper:
        assert await helper.call(os.nice, 0) >= min(os.nice(0) + NICENESS, 19)


async def test_what_a_call_raises_is_raised_here_and_the_next_is_answered():
    async with Background() as helper:
        with pytest.raises(InsufficientDataError, match="5 observations, 336 needed"):
            await helper.call(fit_holtwinters, *FIVE_HOURS)
        assert await helper.call(int.__add__, 2, 2) == 4


async def test_a_beginning_that_fails_is_told_to_who_asks():
    async with Background(os.chdir, "/no/such/folder") as helper:
        with pytest.raises(FileNotFoundError):
            await helper.call(os.getcwd)


async def test_a_process_that_ends_is_named():
    async with Background() as helper:
        with pytest.raises(NewsbeatError, match="exit 3"):
            await helper.call(os._exit, 3)


async def test_a_call_that_is_given_up_ends_the_process_at_once():
    async with Background() as helper:
        await helper.call(int.__add__, 2, 2)
        begun = time.monotonic()
        with pytest.raises(TimeoutError):
            await asyncio.wait_for(helper.call(time.sleep, 60.0), 0.2)
        pid = helper.pid
    assert time.monotonic() - begun < 10.0
    assert not psutil.pid_exists(pid)
