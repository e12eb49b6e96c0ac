"""A web server that means harm: one attack a path, on loopback.

``python benchmarks/parts/attacks.py [--tls CERTIFICATE KEY]`` prints its port and serves until
its standard input ends. Requests for anything else are answered properly. What a fetcher
must make of each attack stands beside it.
"""

from __future__ import annotations

import asyncio
import contextlib
import gzip
import itertools
import logging
import os
import ssl
import subprocess
import sys
import zlib
from collections.abc import AsyncIterator, Callable, Iterator
from dataclasses import dataclass
from urllib.parse import unquote

import brotli
import h2.config
import h2.connection
import h2.events
import h2.exceptions
import zstandard

Steps = Iterator[bytes | float]
"""What is sent, and how many seconds are waited between."""

HEAD = b"HTTP/1.1 200 OK\r\nContent-Type: text/html\r\n"
CHUNKED = HEAD + b"Transfer-Encoding: chunked\r\n\r\n"
PAGE = b"<html><p>A page, and no more than that.</p>"
MEBIBYTE = 2**20


@dataclass(frozen=True, slots=True)
class Attack:
    """What a hostile server does, and how a fetch of it must end.

    Attributes
    ----------
    steps
        What is sent once the request is in; then the connection is closed.
    outcome
        ``page``, ``transient``, ``permanent``, ``refused``; or one of several, with ``|``.
    words
        What is found in the reason that names it (a regular expression).
    """

    steps: Callable[[], Steps]
    outcome: str
    words: str = ""


def sent(*steps: bytes | float) -> Callable[[], Steps]:
    """Return a way of sending these steps."""
    return lambda: iter(steps)


def endlessly(head: bytes, piece: bytes, wait_s: float = 0.0) -> Callable[[], Steps]:
    """Return a way of sending a piece for ever."""
    again = itertools.repeat(piece)
    if not wait_s:
        return lambda: itertools.chain([head], again)
    return lambda: itertools.chain([head], (step for each in again for step in (each, wait_s)))


def coded(coding: str, body: bytes) -> Callable[[], Steps]:
    """Return a way of sending a body that says it is in a content coding."""
    head = f"Content-Encoding: {coding}\r\nContent-Length: {len(body)}\r\n\r\n".encode()
    return sent(HEAD + head + body)


def redirect(location: str, more: str = "") -> Callable[[], Steps]:
    """Return a way of sending elsewhere."""
    head = f"HTTP/1.1 302 Found\r\nLocation: {location}\r\n{more}Content-Length: 0\r\n\r\n"
    return sent(head.encode("latin-1"))


COUNT = itertools.count()


def _redirect_with_cookies() -> Steps:
    cookie = f"Set-Cookie: n={next(COUNT)}\r\n"
    return redirect("/redirect to itself, with cookies", cookie)()


def _redirect_onwards() -> Steps:
    return redirect(f"/redirect onwards for ever?{next(COUNT)}")()


def _zeros(n_bytes: int) -> bytes:
    return b"<p>" + bytes(n_bytes)


def _deflated_raw(body: bytes) -> bytes:
    packer = zlib.compressobj(9, zlib.DEFLATED, -15)
    return packer.compress(body) + packer.flush()


def _zstd_of_nothing_known(n_bytes: int) -> bytes:
    packer = zstandard.ZstdCompressor(write_content_size=False).compressobj()
    return packer.compress(bytes(n_bytes)) + packer.flush()


def _gzip_members(n_members: int) -> bytes:
    return gzip.compress(b"<p>x", mtime=0) * n_members


BOMB = _zeros(64 * MEBIBYTE)
ATTACKS: dict[str, Attack] = {
    # Slow ones
    "headers drip": Attack(endlessly(b"HTTP/1.1 200 OK\r\n", b"X: y\r\n", 0.05), "transient"),
    "one header drips": Attack(endlessly(b"HTTP/1.1 200 OK\r\nX: ", b"y", 0.05), "transient"),
    "body drips": Attack(
        endlessly(HEAD + b"Content-Length: 9999\r\n\r\n", b"x", 0.05),
        "transient", "no whole answer",
    ),
    "chunks drip": Attack(endlessly(CHUNKED, b"1\r\nx\r\n", 0.05), "transient", "no whole answer"),
    "says nothing": Attack(sent(60.0), "transient", "silent"),
    "says half": Attack(sent(HEAD + b"Content-Length: 99\r\n\r\nx", 60.0), "transient", "silent"),
    "early hints without end": Attack(
        endlessly(b"", b"HTTP/1.1 103 Early Hints\r\nLink: </a>\r\n\r\n"),
        "permanent|transient", "no whole answer",
    ),
    # Endless ones
    "endless body": Attack(endlessly(HEAD + b"\r\n", b"and so on " * 999), "permanent", "larger"),
    "endless chunks": Attack(
        endlessly(CHUNKED, b"4000\r\n" + b"x" * 0x4000 + b"\r\n"), "permanent", "larger"
    ),
    "endless headers": Attack(endlessly(HEAD, b"X-More: and so on\r\n"), "transient"),
    "endless header": Attack(endlessly(HEAD + b"X: ", b"and so on " * 99), "transient"),
    "endless status line": Attack(endlessly(b"HTTP/1.1 200 ", b"OK " * 99), "transient"),
    "endless trailers": Attack(
        endlessly(CHUNKED + b"1\r\nx\r\n0\r\n", b"X: and so on\r\n"), "transient"
    ),
    "endless chunk extension": Attack(endlessly(CHUNKED + b"1;", b"x=y;" * 99), "transient"),
    "endless error page": Attack(
        endlessly(b"HTTP/1.1 404 Not Found\r\n\r\n", b"sorry " * 999), "permanent", "404"
    ),
    "endless redirect page": Attack(
        endlessly(b"HTTP/1.1 302 Found\r\nLocation: /page\r\n\r\n", b"this way " * 999), "page"
    ),
    "endless song": Attack(
        endlessly(b"HTTP/1.1 200 OK\r\nContent-Type: audio/mpeg\r\n\r\n", b"\xff\xfb" * 999),
        "permanent", "audio/mpeg",
    ),
    "endless song called a page": Attack(
        endlessly(HEAD + b"\r\n", b"\xff\xfb\x90\x00" * 999), "permanent", "larger"
    ),
    # Lengths that lie
    "too short": Attack(
        sent(HEAD + b"Content-Length: 9999\r\n\r\nfourteen bytes"), "transient", "14 of 9999"
    ),
    "too long": Attack(sent(HEAD + b"Content-Length: 10\r\n\r\n<p>0123456" + b"7" * 999), "page"),
    "two lengths": Attack(
        sent(HEAD + b"Content-Length: 5\r\nContent-Length: 9\r\n\r\n<p>012345"), "transient"
    ),
    "length below zero": Attack(sent(HEAD + b"Content-Length: -5\r\n\r\n<p>"), "transient"),
    "length of words": Attack(sent(HEAD + b"Content-Length: many\r\n\r\n<p>"), "transient"),
    "length without end": Attack(
        sent(HEAD + b"Content-Length: " + b"9" * 40 + b"\r\n\r\n<p>"), "transient"
    ),
    "length too large": Attack(
        sent(HEAD + b"Content-Length: 999999999\r\n\r\n", 60.0), "permanent", "larger"
    ),
    "length and chunks": Attack(
        sent(CHUNKED[:-2] + b"Content-Length: 3\r\n\r\n3\r\n<p>\r\n0\r\n\r\n"), "page"
    ),
    # Chunks that are none
    "chunk of no size": Attack(sent(CHUNKED + b"zz\r\nxx\r\n0\r\n\r\n"), "transient"),
    "chunk below zero": Attack(sent(CHUNKED + b"-5\r\nxx\r\n0\r\n\r\n"), "transient"),
    "chunk too large": Attack(sent(CHUNKED + b"f" * 30 + b"\r\nxx", 60.0), "transient"),
    "chunk without its end": Attack(sent(CHUNKED + b"2\r\nxxyy0\r\n\r\n"), "transient"),
    "chunks without their end": Attack(
        sent(CHUNKED + b"5\r\nhello\r\n"), "transient", "broke off after 5"
    ),
    "unknown transfer coding": Attack(
        sent(HEAD + b"Transfer-Encoding: gzip, chunked\r\n\r\n0\r\n\r\n"), "transient"
    ),
    # Bombs and codings that are none
    "gzip bomb": Attack(coded("gzip", gzip.compress(BOMB)), "permanent", "inflates|larger"),
    "deflate bomb": Attack(coded("deflate", _deflated_raw(BOMB)), "permanent", "inflates|larger"),
    "br bomb": Attack(
        coded("br", brotli.compress(BOMB, quality=3)), "permanent", "inflates|larger"
    ),
    "zstd bomb": Attack(
        coded("zstd", _zstd_of_nothing_known(len(BOMB))), "permanent", "inflates|larger"
    ),
    "gzip in gzip bomb": Attack(
        coded("gzip, gzip", gzip.compress(gzip.compress(BOMB))), "permanent", "inflates|larger"
    ),
    "br in zstd bomb": Attack(
        coded("br, zstd", zstandard.compress(brotli.compress(BOMB, quality=3))),
        "permanent", "inflates|larger",
    ),
    "gzip of a million members": Attack(
        coded("gzip", _gzip_members(200_000)), "permanent", "larger"
    ),
    "tower of codings": Attack(coded("gzip," * 9, PAGE), "permanent", "9 content codings"),
    "unknown coding": Attack(coded("compress", PAGE), "permanent", "'compress'"),
    "plain called gzip": Attack(coded("gzip", PAGE), "transient", "gzip data is damaged"),
    "gzip called br": Attack(coded("br", gzip.compress(PAGE)), "transient", "its br data"),
    "br called zstd": Attack(coded("zstd", brotli.compress(PAGE)), "transient", "zstd"),
    "gzip broken off": Attack(coded("gzip", gzip.compress(PAGE)[:-9]), "transient", "breaks off"),
    "huge zstd window": Attack(
        coded("zstd", b"\x28\xb5\x2f\xfd\x00\xf8\x01\x00\x00"), "transient", "zstd"
    ),
    # Redirects
    "redirect to itself": Attack(redirect("/redirect to itself"), "permanent", "in a loop"),
    "redirect to itself, with cookies": Attack(
        _redirect_with_cookies, "permanent", "redirects"
    ),
    "redirect onwards for ever": Attack(
        _redirect_onwards, "permanent", "more than 8 redirects"
    ),
    "redirect to a file": Attack(redirect("file:///etc/passwd"), "refused", "file:"),
    "redirect to ftp": Attack(redirect("ftp://a.example/"), "refused", "ftp:"),
    "redirect to a script": Attack(redirect("javascript:alert(1)"), "refused", "javascript:"),
    "redirect to data": Attack(redirect("data:text/html,x"), "refused", "data:"),
    "redirect with a password": Attack(redirect("http://u:p@127.0.0.1/"), "refused", "password"),
    "redirect to the cloud's keeper": Attack(
        redirect("http://169.254.169.254/latest"), "refused", "link-local"
    ),
    "redirect to multicast": Attack(redirect("http://224.0.0.1/"), "refused", "multicast"),
    "redirect to nowhere": Attack(redirect("http://0/"), "refused", "unspecified"),
    "redirect to a mapped address": Attack(
        redirect("http://[::ffff:a00:1]/"), "refused", "IPv4-mapped"
    ),
    "redirect to 60 KB": Attack(redirect("/" + "x" * 60_000), "page"),
    "redirect to no address": Attack(redirect("http://["), "permanent", "no web address"),
    "redirect to bytes": Attack(redirect("/\xff\xfe\x01"), "page|transient"),
    # Heads that are none
    "headers too large": Attack(
        sent(HEAD + b"X: " + b"y" * 70_000 + b"\r\nContent-Length: 0\r\n\r\n"),
        "permanent", "headers",
    ),
    "headers too many": Attack(
        sent(HEAD + b"X: y\r\n" * 11_000 + b"Content-Length: 0\r\n\r\n"), "permanent", "headers"
    ),
    "cookie too large": Attack(
        sent(HEAD + b"Set-Cookie: a=" + b"b" * 90_000 + b"\r\nContent-Length: 0\r\n\r\n"),
        "permanent", "headers",
    ),
    "header with NUL": Attack(sent(HEAD + b"X: a\0b\r\nContent-Length: 0\r\n\r\n"), "transient"),
    "header without colon": Attack(sent(HEAD + b"nonsense\r\n\r\n"), "transient", "no proper HTTP"),
    "no status": Attack(sent(b"HTTP/1.1 OK\r\n\r\n"), "transient", "no proper HTTP"),
    "status of four digits": Attack(sent(b"HTTP/1.1 2000 OK\r\n\r\n"), "transient"),
    "status of 999": Attack(sent(b"HTTP/1.1 999 No\r\nContent-Length: 0\r\n\r\n"), "transient"),
    "HTTP of tomorrow": Attack(sent(b"HTTP/9.9 200 OK\r\n\r\n"), "page"),
    "another protocol": Attack(sent(b"SSH-2.0-OpenSSH_9.0\r\n"), "transient", "hung up"),
    "radio": Attack(sent(b"ICY 200 OK\r\nicy-name: r\r\n\r\n\xff\xfb"), "transient"),
    "noise": Attack(sent(bytes(range(256)) * 50), "transient"),
    "hangs up": Attack(sent(), "transient", "hung up"),
    "switches protocols": Attack(
        sent(b"HTTP/1.1 101 Switching Protocols\r\nUpgrade: x\r\n\r\n", 60.0), "permanent|transient"
    ),
    "not modified, unasked": Attack(
        sent(b"HTTP/1.1 304 Not Modified\r\n\r\n"), "transient", "nothing was asked"
    ),
    "part of a page": Attack(
        sent(b"HTTP/1.1 206 Partial\r\nContent-Length: 3\r\n\r\n<p>"), "transient", "a part"
    ),
    "wait for a century": Attack(
        sent(b"HTTP/1.1 503 No\r\nRetry-After: 99999999999\r\nContent-Length: 0\r\n\r\n"),
        "transient", "503",
    ),
}  # fmt: skip


# --- pages that hang their readers ---------------------------------------------------


def _links(path: str, n: int) -> bytes:
    number = next(COUNT)
    items = "".join(
        f"<item><title>Story {number} {each}</title><link>{path}/{number}-{each}</link></item>"
        for each in range(n)
    )
    return f"<rss><channel>{items}</channel></rss>".encode()


PAGES: dict[str, Callable[[], bytes]] = {
    "nested list": lambda: b"<html><!--%d-->" % next(COUNT) + b"<div>" * 200_000,
    "crowded list": lambda: (
        b"<html><p " + b" ".join(b"a%d=" % (n + next(COUNT)) for n in range(100_000)) + b">"
    ),
    "tags without end": lambda: b"<rss><channel>" + b"<a/>" * (4 * MEBIBYTE),
    "values without end": lambda: b'{"version":"1","items":[' + b"{}," * (6 * MEBIBYTE),
    "feed of crowded pages": lambda: _links("/crowded list/of", 3),
    "feed of endless pages": lambda: _links("/long page/of", 3),
    "long page": lambda: b"<html><body>" + b"<p>Some words of an ordinary text.</p>" * 400_000,
}


def _page_of(path: str) -> bytes | None:
    make = PAGES.get(path.split("/")[1])
    return make() if make else None


def proper_answer(path: str) -> bytes:
    """Return a page in proper HTTP, for every path that is no attack."""
    page = _page_of(path)
    if page is not None:
        kind = b"text/html" if page.startswith(b"<html") else b"application/xml"
        head = b"HTTP/1.1 200 OK\r\nContent-Type: %b\r\nContent-Length: %d\r\n\r\n"
        return head % (kind, len(page)) + page
    if path == "/robots.txt":
        return b"HTTP/1.1 404 Not Found\r\nContent-Length: 0\r\n\r\n"
    return HEAD + b"Content-Length: %d\r\n\r\n" % len(PAGE) + PAGE


async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    """Answer the requests of one connection."""
    with contextlib.suppress(OSError, asyncio.IncompleteReadError, asyncio.LimitOverrunError):
        while True:
            head = await reader.readuntil(b"\r\n\r\n")
            path = unquote(head.split()[1].decode("latin-1").partition("?")[0])
            attack = ATTACKS.get(path.removeprefix("/"))
            if attack is None:
                writer.write(proper_answer(path))
                continue
            for step in attack.steps():
                if writer.is_closing():
                    break
                if isinstance(step, float):
                    await asyncio.sleep(step)
                else:
                    writer.write(step)
                    await writer.drain()
                    await asyncio.sleep(0)
            break
    writer.close()


# --- HTTP/2 --------------------------------------------------------------------------


def _frame(kind: int, stream: int, payload: bytes, flags: int = 0) -> bytes:
    head = len(payload).to_bytes(3, "big") + bytes([kind, flags])
    return head + stream.to_bytes(4, "big") + payload


@dataclass(frozen=True, slots=True)
class H2Attack:
    """Raw frames sent on the first stream, once or for ever, after proper headers or not."""

    frames: bytes
    is_endless: bool = False
    has_headers: bool = False
    words: str = ""


_CONTINUED = _frame(0x9, 1, b"\x40\x01a\x01b" * 200)
H2_ATTACKS: dict[str, H2Attack] = {
    "reset": H2Attack(_frame(0x3, 1, (2).to_bytes(4, "big"))),
    "reset after headers": H2Attack(_frame(0x3, 1, (2).to_bytes(4, "big")), has_headers=True),
    "going away": H2Attack(_frame(0x7, 0, bytes(4) + (11).to_bytes(4, "big") + b"bye")),
    "settings flood": H2Attack(_frame(0x4, 0, b"\0\x03\0\0\0\x64") * 500, is_endless=True),
    "ping flood": H2Attack(_frame(0x6, 0, bytes(8)) * 500, is_endless=True),
    "empty data flood": H2Attack(_frame(0x0, 1, b"") * 500, is_endless=True, has_headers=True),
    "padding flood": H2Attack(
        _frame(0x0, 1, b"\xff" + bytes(255), 0x8) * 50, is_endless=True, has_headers=True
    ),
    "priority flood": H2Attack(
        _frame(0x2, 1, (0).to_bytes(4, "big") + b"\x10") * 500, is_endless=True
    ),
    "continuation flood": H2Attack(_frame(0x1, 1, b"\x88") + _CONTINUED * 500, is_endless=True),
    "header bomb": H2Attack(
        _frame(0x1, 1, b"\x88\x40\x01a\x7f\x81\x1e" + b"b" * 4000 + b"\xbe" * 12_000, 0x4)
    ),
    "window overflow": H2Attack(_frame(0x8, 0, (2**31 - 1).to_bytes(4, "big")) * 3),
    "frame too large": H2Attack(_frame(0x0, 1, bytes(100_000)), has_headers=True),
    "unknown frames": H2Attack(_frame(0xEE, 1, bytes(100)) * 500, is_endless=True),
    "endless data": H2Attack(
        _frame(0x0, 1, b"and so on " * 1000),
        is_endless=True,
        has_headers=True,
        words="larger|window|flow",
    ),
    "pushed pages": H2Attack(_frame(0x5, 1, (2).to_bytes(4, "big") + b"\x82\x84", 0x4)),
    "noise": H2Attack(bytes(range(256)) * 99),
}


async def serve_h2(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    """Answer one HTTP/2 connection with the attack its first request names."""
    state = h2.connection.H2Connection(h2.config.H2Configuration(client_side=False))
    state.initiate_connection()
    with contextlib.suppress(OSError, h2.exceptions.ProtocolError):
        async for stream_id, path in _h2_requests(state, reader, writer):
            attack = H2_ATTACKS.get(path)
            if attack is None:
                state.send_headers(stream_id, [(":status", "200"), ("content-type", "text/html")])
                state.send_data(stream_id, PAGE, end_stream=True)
                continue
            if attack.has_headers:
                state.send_headers(1, [(":status", "200"), ("content-type", "text/html")])
            writer.write(state.data_to_send() + attack.frames)
            while attack.is_endless and not writer.is_closing():
                await writer.drain()
                await asyncio.sleep(0)  # draining alone lets nobody else have a turn
                writer.write(attack.frames)
            await writer.drain()
    writer.close()


async def _h2_requests(
    state: h2.connection.H2Connection, reader: asyncio.StreamReader, writer: asyncio.StreamWriter
) -> AsyncIterator[tuple[int, str]]:
    while True:
        writer.write(state.data_to_send())
        data = await reader.read(65_536)
        if not data:
            return
        for event in state.receive_data(data):
            if isinstance(event, h2.events.RequestReceived):
                headers = dict(event.headers or ())
                yield event.stream_id, unquote(headers[b":path"].decode()[1:])


async def _main(tls: ssl.SSLContext | None) -> None:
    answer = serve_h2 if tls else serve
    server = await asyncio.start_server(answer, "127.0.0.1", 0, ssl=tls)
    print(server.sockets[0].getsockname()[1], flush=True)
    async with server:
        await asyncio.to_thread(sys.stdin.read)
        os._exit(0)  # nothing here is worth a tidy end, least of all what hangs on purpose


@contextlib.contextmanager
def run_server(*words: str) -> Iterator[int]:
    """Run this server in a process of its own; gives its port."""
    command = [sys.executable, __file__, *words]
    with subprocess.Popen(
        command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    ) as server:
        assert server.stdout is not None
        try:
            yield int(server.stdout.readline())
        finally:
            server.kill()


if __name__ == "__main__":
    context = None
    if sys.argv[1:2] == ["--tls"]:
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        context.load_cert_chain(*sys.argv[2:4])
        context.set_alpn_protocols(["h2"])
    logging.disable()  # connections that are cut are the point of it
    asyncio.run(_main(context))
