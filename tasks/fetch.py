"""One HTTP exchange: an address in, a whole page or one of our errors out.

Nothing here decides when to ask. What an answer means is decided in
``models/answers.py``, where a connection may go in ``tasks/guard.py``, how a
compressed body is undone in ``tasks/codings.py``, and ``tasks/exchange.py``
keeps the caps; this module asks, and follows redirects one hop at a time.
"""

from __future__ import annotations

import asyncio
import contextlib
import ssl
import warnings
from collections.abc import AsyncIterator, Awaitable, Callable
from types import TracebackType
from typing import Self

import ada_url
import certifi
import h2.exceptions
import httpcore
import httpx

from models.answers import (
    REDIRECTS,
    Accept,
    error_for_status,
    is_untold,
    looks_like_markup,
    parse_retry_after,
    refuse_type,
)
from models.errors import ConfigError, FetchError
from models.records import Fetched, Hop, HttpRules, NotModified, Validators
from tasks import guard
from tasks.codings import ACCEPT_ENCODING, BodyDecoder
from tasks.exchange import Exchange, Reading
from tasks.settings import SETTINGS_FILE, FetchSettings, Settings

CheckHop = Callable[[str], Awaitable[None]]

# Reading the rest of a short answer keeps the connection; dropping a long one is cheaper.
_DRAIN_BYTES = 32 * 1024
_DRAIN_S = 2.0
# Hints that come before an answer are no headers of it, and some do come.
_HEADS = 4
_MAX_CONNECTIONS = 256
# httpcore looks at every idle connection at every request, so few are kept.
_MAX_IDLE_CONNECTIONS = 20
_IDLE_S = 30.0

_ACCEPT: dict[Accept, str] = {
    "listing": (
        "application/atom+xml, application/rss+xml, application/feed+json, application/xml;q=0.9,"
        " text/xml;q=0.9, application/json;q=0.9, text/html;q=0.8, */*;q=0.5"
    ),
    "page": "text/html, application/xhtml+xml, application/xml;q=0.9, text/plain;q=0.5",
    "robots": "text/plain, */*;q=0.5",
}

# Handshakes that end so will end so tomorrow; all others may be a restart or a broken line.
_LASTING_TLS_REASONS = (
    "DH_KEY_TOO_SMALL",
    "NO_CIPHERS_AVAILABLE",
    "PROTOCOL_VERSION",
    "UNRECOGNIZED_NAME",
    "UNSAFE_LEGACY_RENEGOTIATION_DISABLED",
    "UNSUPPORTED_PROTOCOL",
    "WRONG_VERSION_NUMBER",
)
# Those that the lenient profile of a source gets past.
_TLS_OF_LONG_AGO = tuple(
    reason
    for reason in _LASTING_TLS_REASONS
    if reason not in ("UNRECOGNIZED_NAME", "WRONG_VERSION_NUMBER")
)
_OP_LEGACY_SERVER_CONNECT = 0x4  # has a name in Python 3.12
_NOT_YET = (ssl.SSLWantReadError, ssl.SSLWantWriteError)


class Fetcher:
    """Fetches pages within caps. An async context manager.

    One fetcher serves a whole process: it holds one TLS context and one pool of
    connections per way of connecting, and its methods may run side by side.

    Parameters
    ----------
    settings
        Caps and the agent's name.
    resolve
        Turns a host name into addresses; the system's resolver where None.
    tls
        Whom to trust; the system's and Mozilla's authorities where None.
    network
        Connects to the addresses that may be connected to; the system where None.
    """

    def __init__(
        self,
        settings: Settings,
        *,
        resolve: guard.Resolve | None = None,
        tls: ssl.SSLContext | None = None,
        network: httpcore.AsyncNetworkBackend | None = None,
    ) -> None:
        self._settings = settings
        self._caps = settings.fetch
        self._resolver = guard.Resolver()
        self._resolve = resolve or self._resolver
        self._tls = tls
        self._network = network
        self._transports: dict[tuple[bool, str | None, str], _GuardedTransport] = {}
        self._headers = {accept: _request_headers(settings, accept) for accept in _ACCEPT}
        self._timeouts = {
            "connect": settings.fetch.connect_timeout_s,
            "read": settings.fetch.read_timeout_s,
            "write": settings.fetch.read_timeout_s,
            "pool": settings.fetch.total_timeout_s,
        }

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        await self.close()

    async def close(self) -> None:
        """Close every connection."""
        transports, self._transports = list(self._transports.values()), {}
        for transport in transports:
            await transport.aclose()
        self._resolver.close()

    async def fetch(
        self,
        url: str,
        *,
        rules: HttpRules = HttpRules(),  # noqa: B008
        validators: Validators = Validators(),  # noqa: B008
        accept: Accept,
        check_hop: CheckHop | None = None,
    ) -> Fetched | NotModified:
        """Return the page at `url`, or that it has not changed since `validators` were given.

        Parameters
        ----------
        url
            Absolute http or https address.
        rules
            How this source may be connected to.
        validators
            From an earlier answer. They are sent to the address that gave them
            (``validators.url``) and to no other hop: the validators of one page say nothing
            about another, and a stranger's "not modified" would pass for ours.
        accept
            What is wanted. A ``"listing"`` may come under almost any type, and wrapped in a
            gzip file; of a ``"robots"`` no more than 500 KiB are read.
        check_hop
            Awaited with the address of each hop, the first included, before it is asked.
            What it waits does not count as the exchange's time; what it raises passes through.

        Returns
        -------
        Fetched or NotModified
            ``final_url`` is the address asked for unless there was a redirect. Times in
            seconds are wall time, without what `check_hop` waited.

        Raises
        ------
        TransientFetchError
            Time-out, name resolution, broken connection or body, 408, 425, 429, 5xx.
        PermanentFetchError
            Other 4xx, certificate, redirect loop, body too large, unwanted type or coding.
        RefusedFetchError
            Private address, or a scheme that is not http or https.
        ConfigError
            If no contact is configured and the host is not this machine.
        """
        exchange = Exchange(url, rules, validators, accept, self._caps.total_timeout_s)
        while True:
            self._check_contact(exchange)
            if check_hop is not None:
                await check_hop(exchange.target)
            answer = await self._ask(exchange)
            if answer is not None:
                return answer

    def _check_contact(self, exchange: Exchange) -> None:
        if self._settings.agent.contact:
            return
        if exchange.rules.connect_to:
            host, _ = guard.split_host_port(exchange.rules.connect_to)
        else:
            host = ada_url.URL(exchange.target).hostname
        if not guard.is_loopback_host(host):
            raise ConfigError(
                str(self._settings.home / SETTINGS_FILE),
                "agent.contact",
                self._settings.agent.contact,
                "set it (or NEWSBEAT_AGENT_CONTACT) to a mail address or page where the owner"
                " of a site can reach you, before anything outside this machine is fetched",
            )

    async def _ask(self, exchange: Exchange) -> Fetched | NotModified | None:
        """Return what this hop gave, or None where it leads on to another."""
        try:
            async with asyncio.timeout(exchange.start_hop()):
                return await self._exchange_hop(exchange)
        except TimeoutError as error:
            await self._transport(exchange.rules).drop(exchange.target)
            reason = f"no whole answer within {self._caps.total_timeout_s:g} s"
            raise exchange.transient(reason) from error
        except _FAILURES as error:
            raise _failure(exchange, error, self._caps) from error
        finally:
            exchange.end_hop()

    async def _exchange_hop(self, exchange: Exchange) -> Fetched | NotModified | None:
        request = exchange.request(self._headers[exchange.accept], self._timeouts)
        hop = guard.Allowance(_HEADS * self._caps.max_header_bytes, 2 * self._caps.max_bytes)
        guard.allowance.set(hop)
        try:
            response = await _send(self._transport(exchange.rules), request)
            hop.admit_body()
            body = _Body(response)
            try:
                return await self._read_answer(exchange, request, response, body)
            finally:
                await body.close()
        except FetchError as error:
            if error.url != exchange.url:
                raise exchange.relabel(error) from error
            raise

    def _transport(self, rules: HttpRules) -> _GuardedTransport:
        key = (rules.allow_private, rules.connect_to, rules.tls)
        if key not in self._transports:
            target = guard.split_host_port(rules.connect_to) if rules.connect_to else None
            backend = guard.GuardedBackend(
                self._resolve, rules.allow_private, target, self._network
            )
            self._transports[key] = _GuardedTransport(backend, self._context(rules))
        return self._transports[key]

    def _context(self, rules: HttpRules) -> ssl.SSLContext:
        if rules.tls == "legacy":
            return _made_lenient(_trusted_authorities())
        self._tls = self._tls or _trusted_authorities()
        return self._tls

    async def _read_answer(
        self, exchange: Exchange, request: httpx.Request, response: httpx.Response, body: _Body
    ) -> Fetched | NotModified | None:
        status = response.status_code
        exchange.hops.append(Hop(exchange.target, status, response.headers.get("location")))
        self._check_headers(exchange, response)
        if status == 206:
            raise exchange.transient("a part of the page came, unasked", status)
        if 200 <= status < 300:
            return self._fetched(exchange, response, await self._read(exchange, response, body))
        exchange.wire_bytes += await body.drain()
        if status == 304:
            return self._not_modified(exchange, request, response)
        if status in REDIRECTS:
            exchange.redirect(request, response, self._caps.max_hops)
            return None
        raise self._status_error(exchange, response)

    def _check_headers(self, exchange: Exchange, response: httpx.Response) -> None:
        size = sum(len(name) + len(value) + 4 for name, value in response.headers.raw)
        most = self._caps.max_header_bytes
        if size > most:
            raise exchange.permanent(f"headers of {size} bytes, more than {most}")

    async def _read(self, exchange: Exchange, response: httpx.Response, body: _Body) -> bytes:
        """Return the decoded body; every cap is kept while it grows."""
        content_type = response.headers.get("content-type")
        reason = refuse_type(content_type, exchange.accept)
        if reason:
            raise exchange.permanent(reason, response.status_code)
        decoder = _decoder(exchange, response)
        reading = Reading(exchange, self._caps, _content_length(response))
        must_look = exchange.accept == "listing" and is_untold(content_type)
        try:
            async for chunk in body:
                reading.count_wire(len(chunk))
                for piece in decoder.feed(chunk):
                    if must_look and not looks_like_markup(piece[:512]):
                        kind = content_type or "of no type"
                        raise exchange.permanent(f"it is {kind}, and no text", response.status_code)
                    must_look = False
                    reading.add(piece)
                    if reading.is_enough:
                        return bytes(reading.body)
            reading.check_length()
            decoder.finish()
        except httpx.RemoteProtocolError as error:
            raise exchange.transient(reading.broken_off(), response.status_code) from error
        except ValueError as error:
            raise exchange.transient(str(error), response.status_code) from error
        return bytes(reading.body)

    def _status_error(self, exchange: Exchange, response: httpx.Response) -> FetchError:
        headers = response.headers
        now = self._settings.clock.now()
        wait_s = parse_retry_after(headers.get("retry-after"), now, headers.get("date"))
        return error_for_status(exchange.url, response.status_code, exchange.target, wait_s)

    def _not_modified(
        self, exchange: Exchange, request: httpx.Request, response: httpx.Response
    ) -> NotModified:
        if request.headers.keys().isdisjoint(("if-none-match", "if-modified-since")):
            raise exchange.transient('"not modified", though nothing was asked', 304)
        new, kept = _read_validators(response, exchange.target), exchange.validators
        return NotModified(
            url=exchange.url,
            fetched_at=self._settings.clock.now(),
            elapsed_s=exchange.elapsed_so_far_s,
            wire_bytes=exchange.wire_bytes,
            validators=Validators(
                new.etag or kept.etag, new.last_modified or kept.last_modified, new.url
            ),
            hops=tuple(exchange.hops),
        )

    def _fetched(self, exchange: Exchange, response: httpx.Response, body: bytes) -> Fetched:
        is_redirected = len(exchange.hops) > 1
        return Fetched(
            url=exchange.url,
            final_url=exchange.target if is_redirected else exchange.url.strip(),
            status=response.status_code,
            headers=tuple(
                (name.decode("latin-1"), value.decode("latin-1"))
                for name, value in response.headers.raw
            ),
            body=body,
            fetched_at=self._settings.clock.now(),
            elapsed_s=exchange.elapsed_so_far_s,
            wire_bytes=exchange.wire_bytes,
            validators=_read_validators(response, exchange.target),
            content_type=response.headers.get("content-type"),
            http_version=_http_version(response),
            hops=tuple(exchange.hops),
        )


class _GuardedTransport(httpx.AsyncHTTPTransport):
    """httpx's transport over a pool whose connections all go through a guard.

    No proxy from the environment: it would be connected to in place of the judged address.
    """

    def __init__(self, backend: guard.GuardedBackend, tls: ssl.SSLContext) -> None:
        # Not super().__init__(): it would make a pool that connects anywhere.
        self._pool = httpcore.AsyncConnectionPool(
            ssl_context=tls,
            max_connections=_MAX_CONNECTIONS,
            max_keepalive_connections=_MAX_IDLE_CONNECTIONS,
            keepalive_expiry=_IDLE_S,
            http2=True,
            network_backend=backend,
        )

    async def drop(self, url: str) -> None:
        """End the connections to the host of `url`: what came too late would go on coming.

        An HTTP/2 connection outlives its requests, and the next one would find it clogged.
        """
        origin = httpcore.URL(url).origin
        for connection in list(self._pool.connections):
            if connection.can_handle_request(origin) and not connection.is_closed():
                with contextlib.suppress(httpcore.NetworkError, RuntimeError, OSError):
                    await connection.aclose()


class _Body:
    """The body of an answer as it comes, and the end of it."""

    def __init__(self, response: httpx.Response) -> None:
        self._response = response
        self._is_whole = False

    async def __aiter__(self) -> AsyncIterator[bytes]:
        stream = self._response.stream
        assert isinstance(stream, httpx.AsyncByteStream)
        async for chunk in stream:
            yield chunk
        self._is_whole = True

    async def drain(self) -> int:
        """Read and drop a body nobody wants, if it is short; return how much was read."""
        n_bytes = 0
        # What the status says holds, whether or not the body behind it comes.
        with contextlib.suppress(httpx.HTTPError, TimeoutError):
            async with asyncio.timeout(_DRAIN_S):
                async for chunk in self:
                    n_bytes += len(chunk)
                    if n_bytes > _DRAIN_BYTES:
                        break
        return n_bytes

    async def close(self) -> None:
        """Give the connection back, or end it where the rest of a body would still come."""
        await self._response.aclose()
        if not self._is_whole and _http_version(self._response) == "HTTP/2":
            # httpcore only forgets the stream: up to 16 MiB more would come, and the window
            # of the whole connection would stay that much smaller.
            await self._response.extensions["network_stream"].aclose()


async def _send(transport: httpx.AsyncBaseTransport, request: httpx.Request) -> httpx.Response:
    """Return the answer; once more on a new connection where a kept one turns out dead."""
    made: list[str] = []
    guard.connected.set(made)
    try:
        return await transport.handle_async_request(request)
    except (httpx.ReadError, httpx.WriteError, httpx.RemoteProtocolError):
        if made:
            raise
    return await transport.handle_async_request(request)


def _trusted_authorities() -> ssl.SSLContext:
    """Return a context that trusts what this machine trusts (intranets), and Mozilla's list."""
    context = ssl.create_default_context()
    context.load_verify_locations(certifi.where())
    return context


def _made_lenient(context: ssl.SSLContext) -> ssl.SSLContext:
    """Return a context that shakes hands with servers of long ago; certificates still count."""
    context.options |= _OP_LEGACY_SERVER_CONNECT
    context.set_ciphers("DEFAULT:@SECLEVEL=0")
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", DeprecationWarning)
        context.minimum_version = ssl.TLSVersion.TLSv1
    return context


def _request_headers(settings: Settings, accept: Accept) -> list[tuple[bytes, bytes]]:
    return [
        (b"User-Agent", settings.agent_string.encode()),
        (b"Accept", _ACCEPT[accept].encode()),
        (b"Accept-Encoding", ACCEPT_ENCODING.encode()),
    ]


def _decoder(exchange: Exchange, response: httpx.Response) -> BodyDecoder:
    try:
        return BodyDecoder(
            response.headers.get_list("content-encoding"),
            unwrap_gzip_file=exchange.accept == "listing",
        )
    except ValueError as error:
        raise exchange.permanent(str(error), response.status_code) from error


def _read_validators(response: httpx.Response, target: str) -> Validators:
    headers = response.headers
    return Validators(headers.get("etag"), headers.get("last-modified"), target)


def _content_length(response: httpx.Response) -> int | None:
    text = response.headers.get("content-length", "")
    return int(text) if text.isascii() and text.isdigit() else None


def _http_version(response: httpx.Response) -> str:
    version: bytes = response.extensions.get("http_version", b"HTTP/1.1")
    return version.decode("ascii")


# httpcore lets h2's errors through while a body is read, and the system's while it connects;
# a ValueError is some library's surprise at what a server dared to send.
_FAILURES = (httpx.HTTPError, httpx.StreamError, h2.exceptions.H2Error, OSError, ValueError)


def _failure(exchange: Exchange, error: Exception, caps: FetchSettings) -> FetchError:
    """Return what a failure below HTTP stands for."""
    tls = _tls_cause(error)
    if isinstance(tls, ssl.SSLCertVerificationError):
        return exchange.permanent(f"its certificate is not valid ({tls.verify_message})")
    if tls is not None:
        reason = f"no secure connection ({tls.reason or tls})"
        if exchange.rules.tls == "strict" and _is_one_of(tls, _TLS_OF_LONG_AGO):
            reason += '; http.tls = "legacy" lets this source connect as servers did long ago'
        is_lasting = _is_one_of(tls, _LASTING_TLS_REASONS)
        return exchange.permanent(reason) if is_lasting else exchange.transient(reason)
    return exchange.transient(_failure_reason(error, caps))


def _failure_reason(error: Exception, caps: FetchSettings) -> str:
    said = str(error) or type(error).__name__
    match error:
        case httpx.ConnectTimeout():
            return f"no connection within {caps.connect_timeout_s:g} s"
        case httpx.TimeoutException():
            return f"silent for {caps.read_timeout_s:g} s"
        case httpx.ConnectError():
            return f"no connection ({said})"
        case httpx.RemoteProtocolError() if "without sending a response" in said:
            return "it hung up without an answer"
        case httpx.NetworkError():
            return f"the connection broke ({said})"
        case _:
            return f"no proper HTTP came ({said})"


def _is_one_of(error: ssl.SSLError, reasons: tuple[str, ...]) -> bool:
    return any(reason in str(error.reason) for reason in reasons)


def _tls_cause(error: BaseException) -> ssl.SSLError | None:
    """Return the TLS error behind an error, if there is one."""
    cause: BaseException | None = error
    # Behind every time-out on a TLS connection stands one that only says "not yet".
    while isinstance(cause, _NOT_YET) or not (cause is None or isinstance(cause, ssl.SSLError)):
        cause = cause.__cause__ or cause.__context__
    return cause
