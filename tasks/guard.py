"""Where a connection may go, decided at the moment it is made.

A name is resolved here, each of its addresses is judged, and the connection is
made to the very address that was judged: an answer that changes between the
look and the call (DNS rebinding) changes nothing. The fetcher's pools connect
through this module and in no other way.
"""

from __future__ import annotations

import asyncio
import ipaddress
import socket
import ssl
import time
from collections.abc import Awaitable, Callable, Iterable
from concurrent.futures import ThreadPoolExecutor
from contextvars import ContextVar
from typing import Any

import httpcore

from models.errors import (
    ConfigError,
    PermanentFetchError,
    RefusedFetchError,
    TransientFetchError,
)

Address = ipaddress.IPv4Address | ipaddress.IPv6Address
Resolve = Callable[[str, int], Awaitable[list[str]]]
"""Turns a host name and a port into its addresses, most wanted first."""

# Names that fail can hold a thread for half a minute each: a pool of our own keeps
# everyone else's threads free.
_RESOLVER_THREADS = 16
_MAX_ADDRESSES = 6
_DEFAULT_CONNECT_TIMEOUT_S = 10.0

# Seven thousand frames of nothing fit into what is usually read at once, and the loop would
# do nothing else while they are taken apart.
_SHARED_READ_BYTES = 1024

_NAT64 = ipaddress.IPv6Network("64:ff9b::/96")
_CARRIER_GRADE_NAT = ipaddress.IPv4Network("100.64.0.0/10")
# Ranges of IPv6 that wrap an IPv4 address, or lead through someone's relay. Nobody publishes
# news there; whoever names one tries to get past a list of IPv4 ranges.
_WRAPPING = {
    "an IPv4-mapped": ipaddress.IPv6Network("::ffff:0:0/96"),
    "an IPv4-translated": ipaddress.IPv6Network("::ffff:0:0:0/96"),
    "a local NAT64": ipaddress.IPv6Network("64:ff9b:1::/48"),
    "a 6to4": ipaddress.IPv6Network("2002::/16"),
    "a Teredo": ipaddress.IPv6Network("2001::/32"),
}

_INSIDE = frozenset({"a loopback", "a private", "a carrier-grade NAT"})
"""What networks of one's own are made of. Nothing else is ever anybody's news site: link-local
addresses are where clouds keep their secrets."""

connected: ContextVar[list[str]] = ContextVar("connected")
"""Collects the addresses connected to on behalf of the current exchange, where it is set."""


class Allowance:
    """Bytes that one hop may still bring over its connection, whatever they are.

    The caps on headers and body count what HTTP makes of them. A server that sends nothing
    but hints, padding or pings makes nothing of them, and keeps the loop busy for it.

    Parameters
    ----------
    head_bytes
        Until the answer's head is there.
    body_bytes
        From then on, and from the beginning on a connection that several answers share.
    """

    def __init__(self, head_bytes: int, body_bytes: int) -> None:
        self._head_bytes = head_bytes
        self._body_bytes = body_bytes
        self._n_bytes = 0
        self._is_head_in = False

    def admit_body(self) -> None:
        """Go over to the allowance for the body."""
        self._is_head_in, self._n_bytes = True, 0

    def spend(self, n_bytes: int, is_shared: bool) -> None:
        """Count bytes that came.

        Raises
        ------
        PermanentFetchError
            If there are too many.
        """
        self._n_bytes += n_bytes
        most = self._body_bytes if self._is_head_in or is_shared else self._head_bytes
        if self._n_bytes > most:
            reason = f"{most} bytes came over the connection, and no whole answer"
            raise PermanentFetchError("", reason)


allowance: ContextVar[Allowance] = ContextVar("allowance")
"""What the current hop may bring, where it is set."""


def refuse_address(text: str, allow_private: bool = False) -> str | None:
    """Return why nothing is fetched from this IP address, or None where it may be.

    Parameters
    ----------
    allow_private
        Take private, loopback and carrier-grade NAT addresses too.

    Examples
    --------
    >>> refuse_address("169.254.169.254", allow_private=True)
    '169.254.169.254 is a link-local address'
    >>> refuse_address("64:ff9b::7f00:1")
    '64:ff9b::7f00:1 leads to 127.0.0.1, a loopback address'
    >>> refuse_address("93.184.216.34") is None
    True
    """
    address = ipaddress.ip_address(text)
    if isinstance(address, ipaddress.IPv6Address) and address in _NAT64:
        # The one way to the IPv4 web from a network that has only IPv6: what it wraps decides.
        inner = ipaddress.IPv4Address(int(address) & 0xFFFFFFFF)
        kind = _forbidden_kind(inner)
        is_refused = kind is not None and not (allow_private and kind in _INSIDE)
        return f"{text} leads to {inner}, {kind} address" if is_refused else None
    kind = _forbidden_kind(address)
    is_refused = kind is not None and not (allow_private and kind in _INSIDE)
    return f"{text} is {kind} address" if is_refused else None


def _forbidden_kind(address: Address) -> str | None:
    for name, network in _WRAPPING.items():
        if address.version == 6 and address in network:
            return name
    kinds = (
        (address.is_loopback, "a loopback"),
        (address.is_unspecified, "an unspecified"),
        (address.is_link_local, "a link-local"),
        (address.is_multicast, "a multicast"),
        (address.version == 4 and address in _CARRIER_GRADE_NAT, "a carrier-grade NAT"),
        (getattr(address, "is_site_local", False) or address.is_private, "a private"),
        (address.is_reserved or not address.is_global, "a reserved"),
    )
    return next((name for holds, name in kinds if holds), None)


def is_loopback_host(host: str) -> bool:
    """Return whether a host, as written, can only be this machine.

    Examples
    --------
    >>> is_loopback_host("127.0.0.1"), is_loopback_host("[::1]"), is_loopback_host("a.example")
    (True, True, False)
    """
    bare = host.strip("[]").rstrip(".").lower()
    if bare == "localhost" or bare.endswith(".localhost"):
        return True
    try:
        return ipaddress.ip_address(bare).is_loopback
    except ValueError:
        return False


def is_own_network(host: str) -> bool:
    """Return whether a host, as written, can only be this machine or one of its own network.

    A name may lead anywhere, so that no name is, but for that of this machine.

    Examples
    --------
    >>> is_own_network("192.168.1.7"), is_own_network("localhost"), is_own_network("a.example")
    (True, True, False)
    """
    bare = host.strip("[]").rstrip(".")
    try:
        ipaddress.ip_address(bare)
    except ValueError:
        return is_loopback_host(host)
    return refuse_address(bare) is not None and refuse_address(bare, allow_private=True) is None


def split_host_port(text: str) -> tuple[str, int]:
    """Return host and port of a source's ``connect_to``.

    Raises
    ------
    ConfigError
        If it is not ``"host:port"``.

    Examples
    --------
    >>> split_host_port("[::1]:8080")
    ('::1', 8080)
    """
    host, _, port = text.rpartition(":")
    bare = host.removeprefix("[").removesuffix("]")
    if not bare or not port.isascii() or not port.isdigit() or not 0 < int(port) < 65536:
        raise ConfigError("source", "http.connect_to", text, 'it must be "host:port"')
    return bare, int(port)


class Resolver:
    """Name resolution by the system, in threads of its own."""

    def __init__(self) -> None:
        self._threads = ThreadPoolExecutor(_RESOLVER_THREADS, thread_name_prefix="resolve")

    async def __call__(self, host: str, port: int) -> list[str]:
        """Return the addresses of `host`, in the system's order of preference."""
        loop = asyncio.get_running_loop()
        found = await loop.run_in_executor(self._threads, _resolve_name, host, port)
        return list(dict.fromkeys(found))

    def close(self) -> None:
        """Let go of the threads; a name still being looked up is not waited for."""
        self._threads.shutdown(wait=False, cancel_futures=True)


def _resolve_name(host: str, port: int) -> list[str]:
    infos = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM)
    return [str(info[4][0]) for info in infos]


class GuardedBackend(httpcore.AsyncNetworkBackend):
    """Makes the connections of one pool, to judged addresses only.

    Parameters
    ----------
    resolve
        Turns a name into addresses.
    allow_private
        Let it be a private, loopback or carrier-grade NAT address: for sources inside one's
        own network, and replays.
    connect_to
        Host and port to connect to, whatever the address says.
    network
        Makes the connections themselves; the system's where None.
    """

    def __init__(
        self,
        resolve: Resolve,
        allow_private: bool = False,
        connect_to: tuple[str, int] | None = None,
        network: httpcore.AsyncNetworkBackend | None = None,
    ) -> None:
        self._resolve = resolve
        self._allow_private = allow_private
        self._connect_to = connect_to
        self._network = network or httpcore.AnyIOBackend()

    async def connect_tcp(
        self,
        host: str,
        port: int,
        timeout: float | None = None,  # noqa: ASYNC109 - the signature is httpcore's
        local_address: str | None = None,
        socket_options: Iterable[Any] | None = None,
    ) -> httpcore.AsyncNetworkStream:
        """Return a connection to the first address of `host` that may be used and answers.

        Raises
        ------
        RefusedFetchError
            If no address of the host may be connected to.
        TransientFetchError
            If the name does not resolve.
        httpcore.ConnectError, httpcore.ConnectTimeout
            If no address answers.
        """
        ends_at = time.monotonic() + (timeout or _DEFAULT_CONNECT_TIMEOUT_S)
        host, port = self._connect_to or (host, port)
        addresses = self._judge(host, await self._addresses(host, port, ends_at))
        failure: Exception | None = None
        for n_left, address in zip(range(len(addresses), 0, -1), addresses, strict=True):
            share = max((ends_at - time.monotonic()) / n_left, 0.01)
            try:
                stream = await self._network.connect_tcp(
                    address, port, share, local_address, socket_options
                )
            except (httpcore.ConnectError, httpcore.ConnectTimeout) as error:
                failure = error
            else:
                connected.get([]).append(address)
                return _CountedStream(stream)
        raise failure or httpcore.ConnectError(f"{host} has no address")

    async def connect_unix_socket(
        self, path: str, *_: Any, **__: Any
    ) -> httpcore.AsyncNetworkStream:
        """Refuse: nothing on the web lives in a local socket."""
        raise RefusedFetchError(path, "a local socket is no web address")

    async def sleep(self, seconds: float) -> None:
        """Wait, in wall seconds."""
        await asyncio.sleep(seconds)

    async def _addresses(self, host: str, port: int, ends_at: float) -> list[str]:
        try:
            return [str(ipaddress.ip_address(host))]
        except ValueError:
            pass
        try:
            async with asyncio.timeout(max(ends_at - time.monotonic(), 0.01)):
                return (await self._resolve(host, port))[:_MAX_ADDRESSES]
        except TimeoutError as error:
            raise TransientFetchError(host, f"looking up {host} took too long") from error
        except (OSError, UnicodeError) as error:
            raise TransientFetchError(host, f"{host} does not resolve ({error})") from error

    def _judge(self, host: str, addresses: list[str]) -> list[str]:
        allowed = self._allow_private
        reasons = {address: refuse_address(address, allowed) for address in addresses}
        usable = [address for address, reason in reasons.items() if reason is None]
        if addresses and not usable:
            reason = next(iter(reasons.values()))
            never = "which no source may ask" if allowed else "which this source does not allow"
            raise RefusedFetchError(host, f"{reason}, {never}")
        return usable


class _CountedStream(httpcore.AsyncNetworkStream):
    """A connection that counts what comes over it against the current hop's allowance."""

    def __init__(self, stream: httpcore.AsyncNetworkStream, is_shared: bool = False) -> None:
        self._stream = stream
        self._is_shared = is_shared

    async def read(self, max_bytes: int, timeout: float | None = None) -> bytes:  # noqa: ASYNC109
        most = min(max_bytes, _SHARED_READ_BYTES) if self._is_shared else max_bytes
        data = await self._stream.read(most, timeout)
        hop = allowance.get(None)
        if hop is not None:
            hop.spend(len(data), self._is_shared)
        return data

    async def write(self, buffer: bytes, timeout: float | None = None) -> None:  # noqa: ASYNC109
        await self._stream.write(buffer, timeout)

    async def aclose(self) -> None:
        await self._stream.aclose()

    async def start_tls(
        self,
        ssl_context: ssl.SSLContext,
        server_hostname: str | None = None,
        timeout: float | None = None,  # noqa: ASYNC109
    ) -> httpcore.AsyncNetworkStream:
        stream = await self._stream.start_tls(ssl_context, server_hostname, timeout)
        tls = stream.get_extra_info("ssl_object")
        return _CountedStream(stream, tls is not None and tls.selected_alpn_protocol() == "h2")

    def get_extra_info(self, info: str) -> Any:
        return self._stream.get_extra_info(info)
