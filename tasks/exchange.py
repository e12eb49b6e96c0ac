"""One fetch under way: its hops, its cookies, its body so far, and what it must not exceed."""

from __future__ import annotations

import time
from collections.abc import Mapping
from typing import TypeGuard

import ada_url
import httpx

from models.answers import ROBOTS_BYTES, Accept
from models.errors import FetchError, PermanentFetchError, RefusedFetchError, TransientFetchError
from models.records import Hop, HttpRules, Validators
from tasks.settings import FetchSettings

RATE_WINDOW_S = 10.0
_RATIO_FLOOR_BYTES = 2**20


class Exchange:
    """One fetch, from the first hop to the last.

    Attributes
    ----------
    hops
        The answers so far.
    wire_bytes
        Bytes of body received so far, over all hops.
    elapsed_s
        Wall seconds spent on the hops that are done.
    """

    def __init__(
        self, url: str, rules: HttpRules, validators: Validators, accept: Accept, total_s: float
    ) -> None:
        self.url = url
        self.rules = rules
        self.validators = validators
        self.accept = accept
        self.hops: list[Hop] = []
        self.wire_bytes = 0
        self.elapsed_s = 0.0
        self._total_s = total_s
        self._hop_began = 0.0
        self._cookies: httpx.Cookies | None = None
        self._asked: set[tuple[str, str]] = set()
        first = read_address(url, url)
        self._validated = first if validators.url is None else _bare(validators.url)
        self.target = first

    def start_hop(self) -> float:
        """Start the time of a hop, and return the seconds it may take."""
        self._hop_began = time.monotonic()
        return max(self._total_s - self.elapsed_s, 0.0)

    def end_hop(self) -> None:
        """Stop the time of a hop."""
        self.elapsed_s = self.elapsed_so_far_s

    @property
    def elapsed_so_far_s(self) -> float:
        """Wall seconds spent so far, the hop under way included."""
        return self.elapsed_s + time.monotonic() - self._hop_began

    def request(
        self, headers: list[tuple[bytes, bytes]], timeouts: Mapping[str, float]
    ) -> httpx.Request:
        """Return the request of the next hop.

        Raises
        ------
        PermanentFetchError
            If the very same request has been made before: a loop.
        """
        request = httpx.Request(
            "GET",
            self.target,
            headers=[*headers, *self._conditions()],
            extensions={"timeout": timeouts},
        )
        if self._cookies is not None:
            request.headers.encoding = "utf-8"  # cookies come in any characters, and go back so
            self._cookies.set_cookie_header(request)
        state = (self.target, request.headers.get("cookie", ""))
        if state in self._asked:
            raise self.permanent(self._loop_reason(self.target), self.hops[-1].status)
        self._asked.add(state)
        return request

    def _conditions(self) -> list[tuple[bytes, bytes]]:
        if self.target != self._validated:
            return []
        given = (
            (b"If-None-Match", self.validators.etag),
            (b"If-Modified-Since", self.validators.last_modified),
        )
        return [(name, value.encode("latin-1")) for name, value in given if _is_sendable(value)]

    def redirect(self, request: httpx.Request, response: httpx.Response, max_hops: int) -> None:
        """Go on to the address that a redirect names, with the cookies it set.

        Raises
        ------
        PermanentFetchError
            If it names no address, or there were too many.
        RefusedFetchError
            If it is not an address we ask.
        """
        location = response.headers.get("location")
        if not location:
            raise self.permanent("a redirect without an address", response.status_code)
        address = read_address(self.url, location, self.target, response.status_code)
        if len(self.hops) > max_hops:
            raise self.permanent(self._too_many_reason(address, max_hops), response.status_code)
        if "set-cookie" in response.headers:
            self._cookies = self._cookies or httpx.Cookies()
            response.request = request
            self._cookies.extract_cookies(response)
        self.target = address

    def _too_many_reason(self, address: str, max_hops: int) -> str:
        if address in {hop.url for hop in self.hops}:
            return self._loop_reason(address)
        return f"more than {max_hops} redirects, the last to {address}"

    def _loop_reason(self, address: str) -> str:
        urls = [hop.url for hop in self.hops]
        first = urls.index(address)
        return f"redirects in a loop: {' → '.join([*urls[first:], address])}"

    def transient(self, reason: str, status: int | None = None) -> TransientFetchError:
        """Return the error for a failure at this hop that may pass."""
        return TransientFetchError(self.url, reason, status, self.target)

    def permanent(self, reason: str, status: int | None = None) -> PermanentFetchError:
        """Return the error for a failure at this hop that will stay."""
        return PermanentFetchError(self.url, reason, status, self.target)

    def relabel(self, error: FetchError) -> FetchError:
        """Return an error that knew only the host as one about this fetch and hop."""
        return type(error)(self.url, error.reason, error.status, self.target)


class Reading:
    """The body of the last hop while it arrives, and the caps on it.

    Parameters
    ----------
    exchange
        The fetch it belongs to.
    caps
        What it must not exceed.
    length
        Bytes on the wire that the server announced, if it did.
    """

    def __init__(self, exchange: Exchange, caps: FetchSettings, length: int | None) -> None:
        self.body = bytearray()
        self._exchange = exchange
        self._caps = caps
        self._length = length
        self._wire_bytes = 0
        self._rate = RateFloor(caps.min_bytes_per_s, time.monotonic())
        self._is_robots = exchange.accept == "robots"
        if length is not None and length > caps.max_bytes and not self._is_robots:
            raise self._too_large()

    def count_wire(self, n_bytes: int) -> None:
        """Count bytes that came.

        Raises
        ------
        TransientFetchError
            If they come too slowly.
        PermanentFetchError
            If there are too many.
        """
        self._wire_bytes += n_bytes
        self._exchange.wire_bytes += n_bytes
        if self._wire_bytes > self._caps.max_bytes:
            raise self._too_large()
        if not self._rate.check(n_bytes, time.monotonic()):
            slowest = self._caps.min_bytes_per_s
            raise self._exchange.transient(f"slower than {slowest:g} bytes a second")

    def add(self, piece: bytes) -> None:
        """Add a decoded piece.

        Raises
        ------
        PermanentFetchError
            If the body grows too large, or out of proportion to what came.
        """
        self.body += piece
        if self._is_robots:
            return
        if len(self.body) > self._caps.max_bytes:
            raise self._too_large()
        ratio = len(self.body) / max(self._wire_bytes, 1)
        if len(self.body) > _RATIO_FLOOR_BYTES and ratio > self._caps.max_inflate_ratio:
            most = self._caps.max_inflate_ratio
            raise self._exchange.permanent(f"it inflates more than {most:g} times, as bombs do")

    @property
    def is_enough(self) -> bool:
        """Whether no more need be read: of a robots.txt, its first 500 KiB count."""
        return self._is_robots and len(self.body) >= ROBOTS_BYTES

    def check_length(self) -> None:
        """Check that as many bytes came as were announced.

        Raises
        ------
        TransientFetchError
            If the body broke off.
        """
        if self._length is not None and self._wire_bytes < self._length:
            raise self._exchange.transient(self.broken_off())

    def broken_off(self) -> str:
        """Return the reason for a body that ended too early."""
        whole = "" if self._length is None else f" of {self._length}"
        return f"the answer broke off after {self._wire_bytes}{whole} bytes"

    def _too_large(self) -> PermanentFetchError:
        return self._exchange.permanent(f"larger than {self._caps.max_bytes} bytes")


class RateFloor:
    """Tells an answer that drips from one that flows.

    Parameters
    ----------
    min_bytes_per_s
        The least rate.
    now
        When the answer began, in seconds of any clock that runs evenly.
    window_s
        Over how long the rate is taken.

    Examples
    --------
    >>> floor = RateFloor(100.0, now=0.0)
    >>> floor.check(900, now=9.0), floor.check(50, now=10.0)
    (True, False)
    """

    def __init__(self, min_bytes_per_s: float, now: float, window_s: float = RATE_WINDOW_S) -> None:
        self._least_bytes_per_s = min_bytes_per_s
        self._window_s = window_s
        self._began = now
        self._n_bytes = 0

    def check(self, n_bytes: int, now: float) -> bool:
        """Count bytes that came by `now`; return False once a window brought too few."""
        self._n_bytes += n_bytes
        passed_s = now - self._began
        if passed_s < self._window_s:
            return True
        is_fast = self._n_bytes >= self._least_bytes_per_s * passed_s
        self._began, self._n_bytes = now, 0
        return is_fast


def read_address(url: str, text: str, base: str | None = None, status: int | None = None) -> str:
    """Return `text` as an absolute http(s) address without fragment, spelled the standard way.

    Parameters
    ----------
    url
        What was asked for, named in errors.
    text
        An address; relative ones are taken from `base`.
    status
        Of the answer that named it, for errors.

    Raises
    ------
    PermanentFetchError
        If it is no address.
    RefusedFetchError
        If it is not http(s), or holds a user name or password: we read public pages.

    Examples
    --------
    >>> read_address("http://a.example/x", "../y#part", "http://a.example/x/z")
    'http://a.example/y'
    """
    try:
        parsed = ada_url.URL(text.strip(), base=base)
    except ValueError as error:
        raise PermanentFetchError(url, f"{text!r} is no web address", status, base) from error
    if parsed.protocol not in {"http:", "https:"}:
        raise RefusedFetchError(
            url, f"{text!r} is not http or https ({parsed.protocol})", status, base
        )
    if parsed.username or parsed.password:
        raise RefusedFetchError(url, "its address holds a user name or password", status, base)
    return str(parsed.href).partition("#")[0]


def _bare(url: str) -> str:
    try:
        return str(ada_url.URL(url).href).partition("#")[0]
    except ValueError:
        return ""


def _is_sendable(value: str | None) -> TypeGuard[str]:
    """Whether a stored validator fits into a header; a damaged one is left out."""
    return bool(value) and all(" " <= character <= "ÿ" for character in value or "")
