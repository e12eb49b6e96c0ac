"""Fetching with manners: robots.txt and the host's pace are asked before every hop."""

from __future__ import annotations

import asyncio
from collections import OrderedDict
from collections.abc import Awaitable, Callable
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from types import TracebackType
from typing import Self

import ada_url

from models.answers import Accept
from models.errors import PermanentFetchError, RefusedFetchError, TransientFetchError
from models.records import Fetched, HttpRules, NotModified, Source, Validators
from tasks.fetch import Fetcher
from tasks.pacing import HostPacer, Turn
from tasks.robots import RobotsRules, parse_robots
from tasks.settings import Settings

ROBOTS_RETRY_S = 120.0
"""How soon a robots.txt that could not be read is asked for again."""

DEFAULT_HOLD_S = 60.0
"""How long a host is left alone that says "too many requests" and not for how long."""

_MAX_ORIGINS = 2048

MayAsk = Callable[[str], Awaitable[float | None]]
"""Raises where a hop must not be asked, and returns the gap in seconds its site wants."""


@dataclass(slots=True)
class _Origin:
    """What is known of one origin's robots.txt."""

    lock: asyncio.Lock = field(default_factory=asyncio.Lock)
    rules: RobotsRules | None = None
    refusal: PermanentFetchError | None = None
    expires_at: datetime | None = None

    def is_known(self, now: datetime) -> bool:
        return self.expires_at is not None and now < self.expires_at


class PoliteFetcher:
    """A fetcher that obeys robots.txt and keeps every host's pace. An async context manager.

    Parameters
    ----------
    settings
        Caps, manners, the agent's name and the product's clock.
    fetcher
        What fetches; made from `settings` where None, and closed with this one.
    pacer
        What keeps the pace; made from `settings` where None.
    """

    def __init__(
        self,
        settings: Settings,
        *,
        fetcher: Fetcher | None = None,
        pacer: HostPacer | None = None,
    ) -> None:
        manners = settings.fetch
        self._settings = settings
        self._fetcher = fetcher or Fetcher(settings)
        self._pacer = pacer or HostPacer(
            settings.clock, manners.host_gap_s, manners.host_connections
        )
        self._origins: OrderedDict[tuple[str, bool, str | None], _Origin] = OrderedDict()

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        await self._fetcher.close()

    async def fetch(
        self,
        url: str,
        source: Source,
        *,
        validators: Validators = Validators(),  # noqa: B008
        accept: Accept = "page",
    ) -> Fetched | NotModified:
        """Return the page at `url` on behalf of `source`, or that it has not changed.

        Every hop waits for its host's turn, and is asked for only where robots.txt allows.
        A host that answers 429, or 503 with ``Retry-After``, is left alone as it asks, by
        all sources.

        Raises
        ------
        RefusedFetchError
            If robots.txt disallows a hop (the reason names the rule), or its address is
            refused.
        TransientFetchError
            If robots.txt cannot be read for now, or the host asked to be left alone, and
            for all that :meth:`tasks.fetch.Fetcher.fetch` names.
        PermanentFetchError, ConfigError
            As :meth:`tasks.fetch.Fetcher.fetch` does.
        """

        async def may_ask(hop: str) -> float | None:
            return self._check_rules(url, hop, await self._robots(url, hop, source.http))

        return await self._fetch_in_turn(url, source.http, validators, accept, may_ask)

    async def robots(self, url: str, source: Source) -> RobotsRules:
        """Return the rules of the robots.txt that holds for `url`.

        Raises
        ------
        PermanentFetchError
            If the host cannot be asked at all: certificate, refused address.
        """
        return await self._robots(url, url, source.http)

    def _check_rules(self, url: str, hop: str, rules: RobotsRules) -> float | None:
        """Return the gap that robots.txt asks for, where it allows `hop`."""
        if rules.unreadable is not None:
            reason = f"robots.txt cannot be read for now ({rules.unreadable})"
            raise TransientFetchError(url, reason, None, hop)
        verdict = rules.explain(hop, self._settings.agent.name)
        if not verdict.allowed:
            raise RefusedFetchError(url, f"robots.txt says {verdict.rule!r}", None, hop)
        return verdict.crawl_delay

    async def _robots(self, url: str, hop: str, http: HttpRules) -> RobotsRules:
        """Return the rules of a hop's origin, asked for once however many want them."""
        origin = self._origin(hop, http)
        if not origin.is_known(self._settings.clock.now()):
            async with origin.lock:
                if not origin.is_known(self._settings.clock.now()):
                    await self._read_robots(origin, str(ada_url.URL("/robots.txt", hop).href), http)
        if origin.refusal is not None:
            error = origin.refusal
            raise type(error)(url, error.reason, error.status, hop) from error
        assert origin.rules is not None
        return origin.rules

    def _origin(self, hop: str, http: HttpRules) -> _Origin:
        key = (str(ada_url.URL(hop).origin), http.allow_private, http.connect_to)
        origin = self._origins.setdefault(key, _Origin())
        self._origins.move_to_end(key)
        if len(self._origins) > _MAX_ORIGINS:
            self._origins.popitem(last=False)
        return origin

    async def _read_robots(self, origin: _Origin, robots_url: str, http: HttpRules) -> None:
        believed_s = self._settings.fetch.robots_ttl_s
        origin.refusal = None
        try:
            answer = await self._fetch_robots(robots_url, http)
            origin.rules = parse_robots(answer.body, answer.status)
        except PermanentFetchError as error:
            # Redirects that lead nowhere count as no file, as RFC 9309 has it.
            if error.status is not None and 300 <= error.status < 500:
                origin.rules = parse_robots(None, error.status)
            else:
                origin.refusal, believed_s = error, ROBOTS_RETRY_S
        except TransientFetchError as error:
            believed_s = max(error.retry_after_s or 0.0, ROBOTS_RETRY_S)
            # Rules once read go on to hold while the file is out of reach.
            if origin.rules is None or origin.rules.unreadable is not None:
                origin.rules = RobotsRules(None, error.reason)
        origin.expires_at = self._settings.clock.now() + timedelta(seconds=believed_s)

    async def _fetch_robots(self, robots_url: str, http: HttpRules) -> Fetched:
        async def may_ask(_: str) -> None:
            """Allow every hop: robots.txt is the one file that needs no leave."""

        answer = await self._fetch_in_turn(robots_url, http, Validators(), "robots", may_ask)
        assert isinstance(answer, Fetched)
        return answer

    async def _fetch_in_turn(
        self,
        url: str,
        http: HttpRules,
        validators: Validators,
        accept: Accept,
        may_ask: MayAsk,
    ) -> Fetched | NotModified:
        """Fetch, each hop in its host's turn, once `may_ask` has allowed it."""
        turn: Turn | None = None

        async def check_hop(hop: str) -> None:
            nonlocal turn
            if turn is not None:
                turn.end()
                turn = None
            turn = await self._take_turn(url, hop, http.min_gap_s, await may_ask(hop))

        try:
            return await self._fetcher.fetch(
                url, rules=http, validators=validators, accept=accept, check_hop=check_hop
            )
        except TransientFetchError as error:
            self._heed(error)
            raise
        finally:
            if turn is not None:
                turn.end()

    async def _take_turn(
        self, url: str, hop: str, gap_s: float | None, crawl_delay_s: float | None
    ) -> Turn:
        host = str(ada_url.URL(hop).hostname)
        try:
            return await self._pacer.take_turn(host, gap_s=gap_s, crawl_delay_s=crawl_delay_s)
        except TransientFetchError as error:
            raise TransientFetchError(
                url, error.reason, error.status, hop, error.retry_after_s
            ) from error

    def _heed(self, error: TransientFetchError) -> None:
        """Leave a host alone that asked for it."""
        if error.status == 429 or (error.status == 503 and error.retry_after_s):
            host = str(ada_url.URL(error.final_url or error.url).hostname)
            seconds = DEFAULT_HOLD_S if error.retry_after_s is None else error.retry_after_s
            self._pacer.hold(host, seconds)
