"""Serve pages to people on this machine, or to those who know the token.

A thread of its own with an event loop of its own: whoever starts it goes on with other
work. What a page says is made by a function it is given; here are only the manners of
the protocol: who may ask, what a browser may do with the answer, and ETags.
"""

from __future__ import annotations

import base64
import binascii
import contextlib
import hashlib
import hmac
import ipaddress
import logging
import socket
import threading
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Self
from urllib.parse import urlsplit

import uvicorn
from starlette.applications import Starlette
from starlette.concurrency import run_in_threadpool
from starlette.middleware.gzip import GZipMiddleware
from starlette.requests import Request
from starlette.responses import PlainTextResponse, Response
from starlette.routing import Route

from models.errors import ConfigError
from tasks.settings import PageSettings

logger = logging.getLogger("newsbeat.page")

HTML = "text/html; charset=utf-8"

POLICY = (
    "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self'; connect-src 'self';"
    " form-action 'self'; base-uri 'none'; frame-ancestors 'none'"
)
"""What a page may load: its own style and script, and nothing that stands inside it."""

HEADERS = {
    "Content-Security-Policy": POLICY,
    "X-Content-Type-Options": "nosniff",
    "Referrer-Policy": "no-referrer",
    "Cross-Origin-Resource-Policy": "same-origin",
    "Cross-Origin-Opener-Policy": "same-origin",
    "Cache-Control": "private, no-cache",
}

LOCAL_NAMES = frozenset({"localhost", "127.0.0.1", "[::1]"})

START_S, STOP_S = 10.0, 5.0


@dataclass(frozen=True, slots=True)
class Answer:
    """What is sent for an address.

    Attributes
    ----------
    policy
        What the page may load; of a page that is made here, its own style and script.
    file_name
        Name under which it is to be saved; empty for what is shown.
    """

    body: str | bytes = field(repr=False)
    content_type: str = HTML
    status: int = 200
    policy: str = POLICY
    file_name: str = ""


Answers = Callable[[str, Mapping[str, str]], Answer]
"""Makes the answer for a path and a query; called in a thread, perhaps in several at once."""


class PageServer:
    """Serves pages from a thread. Use as a context manager, or start and stop it.

    Parameters
    ----------
    settings
        Where to listen, and the token.
    answers
        Makes the pages.

    Attributes
    ----------
    url
        Where it can be reached from this machine, once started.
    is_elsewhere
        Whether the wanted port was taken, and it listens at another.
    """

    def __init__(self, settings: PageSettings, answers: Answers) -> None:
        check_reach(settings)
        self.settings = settings
        self.url = ""
        self.is_elsewhere = False
        self._server = uvicorn.Server(
            uvicorn.Config(
                _make_app(settings, answers),
                log_config=None,
                log_level="critical",
                access_log=False,
                lifespan="off",
                ws="none",
                server_header=False,
                timeout_graceful_shutdown=1,
                limit_concurrency=64,
            )
        )
        self._thread: threading.Thread | None = None
        self._listener: socket.socket | None = None

    def start(self) -> str:
        """Listen, and return the address.

        Raises
        ------
        ConfigError
            If the host is none of this machine.
        """
        self._listener, self.is_elsewhere = _listen(self.settings.host, self.settings.port)
        port = self._listener.getsockname()[1]
        self.url = f"http://{_name_of(self.settings.host)}:{port}/"
        self._thread = threading.Thread(
            target=self._server.run,
            kwargs={"sockets": [self._listener]},
            name="status page",
            daemon=True,
        )
        self._thread.start()
        return self.url

    def stop(self) -> None:
        """Stop listening, and wait for the thread."""
        self._server.should_exit = True
        if self._thread is not None:
            self._thread.join(STOP_S)
        if self._listener is not None:
            self._listener.close()

    def __enter__(self) -> Self:
        self.start()
        return self

    def __exit__(self, *about: object) -> None:
        self.stop()


def check_reach(settings: PageSettings) -> None:
    """Refuse to be reached from other machines without a token.

    Raises
    ------
    ConfigError
        With the way out.
    """
    if not settings.token and not is_loopback(settings.host):
        raise ConfigError(
            "[page]",
            "page.host",
            settings.host,
            "without a token the page is for this machine alone: 127.0.0.1; to be reached from"
            " others set page.token (NEWSBEAT_PAGE_TOKEN), at least 16 characters",
        )


def is_loopback(host: str) -> bool:
    """Return whether a host is this machine, and only this one.

    Examples
    --------
    >>> is_loopback("127.0.0.1"), is_loopback("::1"), is_loopback("0.0.0.0")
    (True, True, False)
    """
    if host == "localhost":
        return True
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return False


def _name_of(host: str) -> str:
    """Return a host as it stands in an address that this machine can open."""
    try:
        address = ipaddress.ip_address(host)
    except ValueError:
        return host
    if address.is_unspecified:
        return "127.0.0.1"
    return f"[{host}]" if address.version == 6 else host


def _listen(host: str, port: int) -> tuple[socket.socket, bool]:
    """Return a socket that accepts connections, and whether it is at another port."""
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    for chosen in (port, 0):
        listener = socket.socket(family, socket.SOCK_STREAM)
        listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            listener.bind((host, chosen))
        except OSError as error:
            listener.close()
            if chosen == 0:
                reason = f"nothing can listen there ({error.strerror})"
                raise ConfigError("[page]", "page.host", host, reason) from error
            continue
        listener.listen(64)
        return listener, chosen != port
    raise AssertionError("one of the two has returned")


def _make_app(settings: PageSettings, answers: Answers) -> Starlette:
    async def respond(request: Request) -> Response:
        if (refusal := _refuse(request, settings)) is not None:
            return refusal
        query = dict(request.query_params)
        answer = await run_in_threadpool(answers, request.scope["path"], query)
        return _respond(request, answer)

    async def survive(_request: Request, error: Exception) -> Response:
        logger.error("status page", exc_info=error)
        return PlainTextResponse("this page could not be made; the log says why", 500, HEADERS)

    app = Starlette(
        routes=[Route("/{path:path}", respond, methods=["GET"])],
        exception_handlers={500: survive},
    )
    app.add_middleware(GZipMiddleware, minimum_size=2000, compresslevel=5)
    return app


def _respond(request: Request, answer: Answer) -> Response:
    body = answer.body.encode() if isinstance(answer.body, str) else answer.body
    headers = HEADERS | {"Content-Security-Policy": answer.policy}
    if answer.file_name:
        headers["Content-Disposition"] = f'attachment; filename="{answer.file_name}"'
    if answer.status == 200:
        # Weak, as the same page may be sent compressed or not.
        headers["ETag"] = f'W/"{hashlib.sha256(body).hexdigest()[:24]}"'
        if request.headers.get("if-none-match") == headers["ETag"]:
            return Response(status_code=304, headers=headers)
    return Response(body, answer.status, headers, media_type=answer.content_type)


def _refuse(request: Request, settings: PageSettings) -> Response | None:
    """Return what is answered to those who may not ask, None to all others."""
    if settings.token:
        if _knows(request, settings.token):
            return None
        headers = HEADERS | {"WWW-Authenticate": 'Basic realm="newsbeat", charset="UTF-8"'}
        return PlainTextResponse("the token is the password; any name will do", 401, headers)
    # A page elsewhere may have its own name point to this machine, to read what we show.
    host = urlsplit(f"//{request.headers.get('host', '')}").netloc.rpartition("@")[2]
    name = host if host.endswith("]") else host.rpartition(":")[0] or host
    if name.lower() not in LOCAL_NAMES and not _is_own(name, settings.host):
        return PlainTextResponse("asked for under a name that is not this machine's", 421, HEADERS)
    return None


def _is_own(name: str, host: str) -> bool:
    return name.strip("[]") == host


def _knows(request: Request, token: str) -> bool:
    """Return whether a request carries the token, as a bearer or as a password."""
    kind, _, words = request.headers.get("authorization", "").partition(" ")
    given = ""
    if kind.lower() == "bearer":
        given = words.strip()
    elif kind.lower() == "basic":
        with contextlib.suppress(binascii.Error, ValueError):
            given = base64.b64decode(words, validate=True).decode().partition(":")[2]
    return hmac.compare_digest(given.encode(), token.encode())
