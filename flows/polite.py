"""Fetching with manners: robots.txt and the domain's pace are asked before every hop."""

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
from models.errors import (
    FetchError,
    HeldFetchError,
    PermanentFetchError,
    RefusedFetchError,
    TransientFetchError,
)
from models.holds import Mood
from models.records import Fetched, HttpRules, NotModified, Source, Validators
from tasks.fetch import Fetcher
from tasks.lists import registered_domain
from tasks.pacing import HostPacer, Turn
from tasks.robots import RobotsRules, parse_robots
from tasks.settings import Settings

ROBOTS_RETRY_S = 120.0
"""How soon a robots.txt that could not be read is asked for again."""

_MAX_ORIGINS = 2048

MayAsk = Callable[[str], Awaitable[float | None]]
"""Raises where a hop must not be asked, and returns the gap in seconds its site wants."""


@dataclass(frozen=True, slots=True)
class Hold:
    """Why a domain is left alone, and until when."""

    until: datetime
    reason: str


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
    """A fetcher that obeys robots.txt and keeps every domain's pace. An async context manager.

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
        self._origins: OrderedDict[tuple[str, bool, str | None, str], _Origin] = OrderedDict()
        self._moods: OrderedDict[str, Mood] = OrderedDict()
        self._holds: dict[str, Hold] = {}

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

        Every hop waits for its domain's turn, and is asked for only where robots.txt allows.
        A domain that answers 429, or 503 with ``Retry-After``, is left alone as it asks, by
        all sources; so is one that answers nothing but "forbidden".

        Raises
        ------
        RefusedFetchError
            If robots.txt disallows a hop (the reason names the rule), or its address is
            refused.
        TransientFetchError
            If robots.txt cannot be read for now, where an article page is forbidden that
            is none by itself, and for all that :meth:`tasks.fetch.Fetcher.fetch` names.
        HeldFetchError
            If the domain is being left alone.
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
            raise TransientFetchError(url, reason, rules.status, hop)
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
        key = (str(ada_url.URL(hop).origin), http.allow_private, http.connect_to, http.tls)
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
        except HeldFetchError:
            # It was not asked for, so nothing was learnt of it.
            raise
        except TransientFetchError as error:
            believed_s = max(error.retry_after_s or 0.0, ROBOTS_RETRY_S)
            # Rules once read go on to hold while the file is out of reach.
            if origin.rules is None or origin.rules.unreadable is not None:
                origin.rules = RobotsRules(None, unreadable=error.reason, status=error.status)
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
            answer = await self._fetcher.fetch(
                url, rules=http, validators=validators, accept=accept, check_hop=check_hop
            )
        except FetchError as error:
            # Without a turn nobody was asked: that error is one of ours.
            heeded = error if turn is None else self._heed(error, accept)
            if heeded is error:
                raise
            raise heeded from error
        finally:
            if turn is not None:
                turn.end()
        if accept != "robots":
            self._note_well(answer, accept)
        return answer

    async def _take_turn(
        self, url: str, hop: str, gap_s: float | None, crawl_delay_s: float | None
    ) -> Turn:
        host = registered_domain(hop)
        try:
            return await self._pacer.take_turn(host, gap_s=gap_s, crawl_delay_s=crawl_delay_s)
        except HeldFetchError as error:
            raise HeldFetchError(
                url, error.reason, error.status, hop, error.retry_after_s
            ) from error

    def hold(self, url: str, seconds: float, reason: str) -> Hold:
        """Leave the domain of `url` alone for so long, whoever would ask."""
        domain = registered_domain(url)
        self._pacer.hold(domain, seconds)
        until = self._pacer.not_before(domain) or self._settings.clock.now()
        self._holds[domain] = Hold(until, reason)
        return self._holds[domain]

    def held(self, url: str) -> Hold | None:
        """Return why the domain of `url` is being left alone, None where it is not."""
        domain = registered_domain(url)
        hold = self._holds.get(domain)
        if hold is not None and hold.until <= self._settings.clock.now():
            del self._holds[domain]
            return None
        return hold

    def _note_well(self, answer: Fetched | NotModified, accept: Accept) -> None:
        where = answer.final_url if isinstance(answer, Fetched) else answer.url
        self._mood(where).note_well(is_page=accept == "page")

    def _heed(self, error: FetchError, accept: Accept) -> FetchError:
        """Leave a domain alone that wants it; return what the error amounts to.

        A page that is forbidden on a site that gives others is not lost: the site may have
        taken against us for an hour.
        """
        if error.status is None:
            return error
        where = error.final_url or error.url
        mood = self._mood(where)
        wait_s = error.retry_after_s if isinstance(error, TransientFetchError) else None
        hold_s = mood.note_error(error.status, wait_s)
        if hold_s is not None:
            self.hold(where, hold_s, error.reason)
        if error.status == 403 and accept == "page" and (mood.gives_pages or hold_s is not None):
            return TransientFetchError(
                error.url, error.reason, error.status, error.final_url, hold_s
            )
        return error

    def _mood(self, url: str) -> Mood:
        domain = registered_domain(url)
        mood = self._moods.setdefault(domain, Mood())
        self._moods.move_to_end(domain)
        if len(self._moods) > _MAX_ORIGINS:
            self._moods.popitem(last=False)
        return mood
