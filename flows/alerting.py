"""Tell people: write messages of the notices that are due, send them, try again.

Beside the polls and never in their way. What is to be sent lies in the warehouse before it
is sent, and what has been is noted part by part: after a kill it goes on where it was.
"""

from __future__ import annotations

import asyncio
import contextlib
import logging
import time
from collections import defaultdict
from collections.abc import Awaitable, Callable, Mapping
from datetime import datetime
from functools import partial
from typing import Any

from flows.collector import Collector
from models.errors import ChannelError, NewsbeatError
from models.harmless import one_line
from models.records import Source
from models.triage.ladder import next_try
from tasks.acknowledgements import read_requests
from tasks.channels import PREFECT_SCHEME, Channels
from tasks.duck.hits import StoredVersion
from tasks.duck.notices import Message

logger = logging.getLogger("newsbeat.alerts")

LOOK_S = 1.0
"""How often it is looked what is due, in wall seconds; a poll with hits is not waited for."""

RELEASED_S = 10.0
"""How often it is looked whether articles that were held back have been released."""

STOP_PATIENCE_S = 10.0
"""How long messages under way may take to end."""

EVENT = "newsbeat.notice"
"""Name of the event a ``prefect:`` channel emits; an automation of Prefect's can act on it."""

Emit = Callable[[str, Mapping[str, Any]], Awaitable[None]]
"""Hands an event to Prefect's server."""


class Alerter:
    """Sends what is due on all channels, each by itself: one that is down delays no other.

    Parameters
    ----------
    collector
        Open.
    emit
        For ``prefect:`` channels; None where no server is at hand.
    """

    def __init__(self, collector: Collector, emit: Emit | None = None) -> None:
        self._collector = collector
        self._emit = emit
        self._channels = Channels(collector.settings.open_channels)
        self._sending: dict[str, asyncio.Task[None]] = {}
        self._resting: dict[str, datetime] = {}
        self._woken = asyncio.Event()
        self._released_at = 0.0

    def wake(self) -> None:
        """Look at once what is due: a poll has raised something."""
        self._woken.set()

    async def run(self) -> None:
        """Send what is due until cancelled; messages under way may end."""
        try:
            while True:
                self._woken.clear()
                try:
                    await self.step()
                except NewsbeatError as error:
                    logger.warning("alerts: %s", error)
                with contextlib.suppress(TimeoutError):
                    await asyncio.wait_for(self._woken.wait(), LOOK_S)
        finally:
            await self._end()

    async def step(self) -> None:
        """Take in what people answered, write what is due, and begin to send it."""
        collector, warehouse = self._collector, self._collector.warehouse
        await self._take_answers()
        if time.monotonic() >= self._released_at:
            self._released_at = time.monotonic() + RELEASED_S
            await self._match_released()
        await collector.write(warehouse.write_messages, self._channels.room, collector.clock.now())
        messages = await collector.write(warehouse.read_messages, collector.clock.now())
        for name in dict.fromkeys(message.channel for message in messages):
            if self._is_free(name):
                mine = [message for message in messages if message.channel == name]
                task = asyncio.create_task(self._send_all(mine), name=f"channel {name}")
                self._sending[name] = task
                task.add_done_callback(partial(self._done, name))

    def _is_free(self, name: str) -> bool:
        """Return whether a channel may be sent to: it is known, idle, and did not just fail."""
        rest = self._resting.get(name)
        is_rested = rest is None or rest <= self._collector.clock.now()
        return name in self._channels.channels and name not in self._sending and is_rested

    def _done(self, name: str, _task: asyncio.Task[None]) -> None:
        self._sending.pop(name, None)

    async def settle(self) -> None:
        """Send what is due now, once, and wait until it has gone out or failed."""
        await self.step()
        await asyncio.gather(*self._sending.values(), return_exceptions=True)

    async def _end(self) -> None:
        if self._sending:
            await asyncio.wait(list(self._sending.values()), timeout=STOP_PATIENCE_S)

    async def _take_answers(self) -> None:
        collector = self._collector
        folder = collector.settings.folder
        for request in await asyncio.to_thread(read_requests, folder):
            changed = await collector.write(
                collector.warehouse.acknowledge, request.notice, request.by, collector.clock.now()
            )
            await asyncio.to_thread(request.done)
            for notice in changed:
                logger.info("%s acknowledged by %s", notice.notice_id, request.by)

    async def _match_released(self) -> None:
        """Match rules on articles that were held back and are not any more."""
        collector, warehouse = self._collector, self._collector.warehouse
        released: dict[str, list[StoredVersion]] = defaultdict(list)
        for name, version in await collector.write(warehouse.read_released):
            released[name].append(version)
        for name, stored in released.items():
            source = collector.sources.get(name) or Source(name, name, "")
            found = await collector.match_rules(source, [version.item for version in stored])
            await collector.write(
                warehouse.store_released, source, stored, found, collector.clock.now()
            )

    async def _send_all(self, messages: list[Message]) -> None:
        """Send the messages of one channel in their order; the first that fails ends it."""
        collector = self._collector
        for message in messages:
            try:
                await self._send(message)
            except ChannelError as error:
                logger.warning("not sent: %s", one_line(error))
                now, pace = collector.clock.now(), collector.settings.alerts.pace
                # The others of the channel wait too: it is down, not the message wrong.
                self._resting[message.channel] = next_try(message.attempts + 1, now, pace)
                await collector.write(
                    collector.warehouse.note_failed, message, one_line(error.reason), now
                )
                return
            except Exception:
                logger.exception("channel %s", message.channel)
                return
            await collector.write(collector.warehouse.note_sent, message, collector.clock.now())
            logger.info("sent to %s: %s", message.channel, one_line(message.title))

    async def _send(self, message: Message) -> None:
        """Send the parts of a message that have not gone out yet."""
        channel = self._channels.channels[message.channel]
        if channel.url.startswith(PREFECT_SCHEME):
            await self._emit_event(message)
            return
        for number in range(message.n_sent, len(message.parts)):
            await asyncio.to_thread(
                self._channels.send, message.channel, message.title, message.parts[number]
            )
            if number + 1 < len(message.parts):
                await self._collector.write(
                    self._collector.warehouse.note_part, message, number + 1
                )

    async def _emit_event(self, message: Message) -> None:
        if self._emit is None:
            raise ChannelError(message.channel, "no Prefect server is connected here")
        payload = {
            "message_id": message.message_id,
            "kind": message.kind,
            "level": message.level,
            "notices": list(message.notice_ids),
            "title": message.title,
            "text": "\n".join(message.parts),
        }
        try:
            await self._emit(f"{EVENT}.level-{message.level}", payload)
        except Exception as error:
            raise ChannelError(message.channel, one_line(repr(error))) from error
