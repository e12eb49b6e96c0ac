"""The web application that serves a recorded web: hosts, validators, faults, statistics.

Every source answers under its own host name; a collector reaches it because its
catalogue entry says where to connect to (`RecordedWeb.sources`). Addresses of a host:
``/feed.xml``, ``/news-sitemap.xml``, ``/`` (a list page), ``/robots.txt`` and its
articles, which do not exist before they are published. Under any host,
``/_replay/statistics`` says what was served, ``/_replay/served`` which entries were
listed in it, and ``/_replay/faults`` takes more faults (POST) or ends all (DELETE).
"""

from __future__ import annotations

import asyncio
from dataclasses import asdict, dataclass, field, fields
from datetime import datetime
from email.utils import parsedate_to_datetime
from typing import Any

from starlette.requests import Request
from starlette.responses import JSONResponse, Response
from starlette.types import Receive, Scope, Send

from tasks.clock import Clock
from tasks.replay.history import Fault, RecordedSource, RecordedWeb, read_moment
from tasks.replay.hosted import Answer, Site

_LEAST_GZIP_BYTES = 600


@dataclass(slots=True)
class ServedCounts:
    """What one source answered so far.

    Attributes
    ----------
    index_bytes, article_bytes
        Bytes of body sent, as compressed.
    faults
        Answers that a fault befell.
    served
        Numbers of the entries that a served listing named.
    """

    requests: int = 0
    index_full: int = 0
    index_not_modified: int = 0
    articles: int = 0
    articles_not_modified: int = 0
    not_found: int = 0
    robots: int = 0
    faults: int = 0
    index_bytes: int = 0
    article_bytes: int = 0
    served: set[int] = field(default_factory=set)


class RecordedWebApp:
    """The ASGI application that serves a recorded web on a clock.

    Attributes
    ----------
    web, clock
        What is served, and the time it is.
    faults
        What goes wrong; may be changed while it runs.
    counts
        What was served, by source name.
    """

    def __init__(self, web: RecordedWeb, clock: Clock) -> None:
        self.web = web
        self.clock = clock
        self.faults: list[Fault] = list(web.faults)
        self.counts = {each.source: ServedCounts() for each in web.history}
        self._sites = {each.host: Site(each) for each in web.history}

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer one request."""
        if scope["type"] != "http":
            return
        request = Request(scope, receive)
        if scope["path"].startswith("/_replay/"):
            await (await self._answer_about_itself(request))(scope, receive, send)
            return
        host = request.headers.get("host", "").partition(":")[0].lower()
        site = self._sites.get(host)
        if site is None:
            await Response("no such host here\n", 404)(scope, receive, send)
            return
        await self._answer(site, request, send)

    def statistics(self) -> dict[str, Any]:
        """Return what was served, in all and by source, as plain values.

        ``served`` counts the entries that some served listing named; what a listing held
        while nobody looked is not in it.
        """
        sources = {}
        for name, counts in self.counts.items():
            plain = asdict(counts)
            plain["served"] = len(counts.served)
            sources[name] = plain
        keys = [each.name for each in fields(ServedCounts)]
        totals = {key: sum(plain[key] for plain in sources.values()) for key in keys}
        return {"now": self.clock.now().isoformat(), "totals": totals, "sources": sources}

    def served(self) -> dict[str, set[str]]:
        """Return, by source, the article addresses that some served listing named."""
        return {
            each.source: {
                each.url_of(each.entries[at]) for at in sorted(self.counts[each.source].served)
            }
            for each in self.web.history
        }

    async def _answer_about_itself(self, request: Request) -> Response:
        match request.method, request.scope["path"]:
            case "GET", "/_replay/statistics":
                return JSONResponse(self.statistics())
            case "GET", "/_replay/served":
                return JSONResponse({key: sorted(urls) for key, urls in self.served().items()})
            case "POST", "/_replay/faults":
                return await self._take_fault(request)
            case "DELETE", "/_replay/faults":
                self.faults.clear()
                return JSONResponse({"faults": 0})
        return Response("statistics, served, faults\n", 404)

    async def _take_fault(self, request: Request) -> Response:
        try:
            self.faults.append(_read_fault(await request.json()))
        except (TypeError, ValueError) as error:
            return Response(f"no fault of ours: {error}\n", 400)
        return JSONResponse({"faults": len(self.faults)})

    async def _answer(self, site: Site, request: Request, send: Send) -> None:
        now, counts = self.clock.now(), self.counts[site.source.source]
        counts.requests += 1
        query = request.scope["query_string"].decode("latin-1")
        path = request.scope["path"] + (f"?{query}" if query else "")
        answer = site.find(path, now)
        where = answer.where if answer else "article"
        faults = self._faults_of(site.source.host, where, now, turn=counts.requests)
        counts.faults += bool(faults)
        await asyncio.sleep(site.source.latency_s + faults.wait_s)
        if faults.status is not None:
            headers = {} if faults.retry_after is None else {"retry-after": faults.retry_after}
            await _send(send, faults.status, headers, b"out of order\n")
        elif answer is None:
            counts.not_found += 1
            await _send(send, 404, {"content-type": "text/plain"}, b"not found\n")
        else:
            await self._send_page(site, request, answer, faults, send)

    async def _send_page(
        self, site: Site, request: Request, answer: Answer, faults: Befallen, send: Send
    ) -> None:
        counts = self.counts[site.source.source]
        headers = _headers(site.source, answer, faults)
        if _is_unchanged(request, headers):
            counts.index_not_modified += answer.where == "index"
            counts.articles_not_modified += answer.where == "article"
            await _send(send, 304, headers, b"")
            return
        body = answer.page.body
        if site.source.gzip and "gzip" in request.headers.get("accept-encoding", ""):
            headers["vary"] = "accept-encoding"
            if len(body) >= _LEAST_GZIP_BYTES:
                headers["content-encoding"] = "gzip"
                body = site.compressed(answer)
        if request.method != "HEAD":
            _count(counts, answer, len(body), is_whole=not faults.is_cut)
        await _send(send, 200, headers, body, request.method == "HEAD", faults)

    def _faults_of(self, host: str, where: str, now: datetime, turn: int) -> Befallen:
        return Befallen(
            [
                fault
                for fault in self.faults
                if fault.befalls(host, where, now) and turn % fault.every == 0
            ],
            turn,
        )


class Befallen:
    """What befalls one answer, all faults together."""

    def __init__(self, faults: list[Fault], turn: int) -> None:
        kinds = {fault.kind: fault for fault in faults}
        self._kinds = kinds
        self._turn = turn
        self.wait_s = kinds["slow"].wait_s if "slow" in kinds else 0.0
        self.drip_s = kinds["drip"].wait_s if "drip" in kinds else 0.0
        self.is_cut = "cut" in kinds
        self.status = kinds["status"].status if "status" in kinds else None
        after = kinds["status"].retry_after_s if "status" in kinds else None
        self.retry_after = None if after is None else str(after)

    def __bool__(self) -> bool:
        return bool(self._kinds)

    def change(self, headers: dict[str, str]) -> None:
        """Spoil the headers of a page."""
        if "content_type" in self._kinds:
            headers["content-type"] = self._kinds["content_type"].content_type
        if "changing_etag" in self._kinds:
            headers["etag"] = f'"{self._turn}"'
            headers.pop("last-modified", None)
        if "stuck_etag" in self._kinds:
            headers["etag"] = '"stuck"'
            headers.pop("last-modified", None)
        if "bad_validators" in self._kinds:
            headers["etag"] = f'W/"no end {self._turn}'
            headers["last-modified"] = "yesterday"


def _headers(source: RecordedSource, answer: Answer, faults: Befallen) -> dict[str, str]:
    headers = {"content-type": answer.page.content_type}
    if source.validators in ("both", "etag"):
        headers["etag"] = answer.etag
    if source.validators in ("both", "modified"):
        headers["last-modified"] = answer.last_modified
    faults.change(headers)
    return headers


def _is_unchanged(request: Request, headers: dict[str, str]) -> bool:
    """Return whether the asker already has the page: ETag first, as RFC 9110 says."""
    known = request.headers.get("if-none-match")
    if known is not None:
        return "etag" in headers and headers["etag"] in [tag.strip() for tag in known.split(",")]
    since, modified = request.headers.get("if-modified-since"), headers.get("last-modified")
    if since is None or modified is None:
        return False
    try:
        return parsedate_to_datetime(modified) <= parsedate_to_datetime(since)
    except (ValueError, TypeError):
        return False


def _count(counts: ServedCounts, answer: Answer, n_bytes: int, *, is_whole: bool) -> None:
    if answer.where == "index":
        counts.index_full += 1
        counts.index_bytes += n_bytes
        if is_whole:
            counts.served.update(answer.names)
    elif answer.where == "article":
        counts.articles += 1
        counts.article_bytes += n_bytes
    else:
        counts.robots += 1


async def _send(
    send: Send,
    status: int,
    headers: dict[str, str],
    body: bytes,
    is_head: bool = False,
    faults: Befallen | None = None,
) -> None:
    """Send an answer, in pieces or only the half of it where a fault says so."""
    if status != 304:
        headers["content-length"] = str(len(body))
    raw = [(key.encode(), text.encode("latin-1")) for key, text in headers.items()]
    await send({"type": "http.response.start", "status": status, "headers": raw})
    if faults and faults.is_cut:
        await send(
            {"type": "http.response.body", "body": body[: len(body) // 2], "more_body": True}
        )
        return  # the server closes a connection whose answer stays unfinished
    if faults and faults.drip_s:
        await _drip(send, body, faults.drip_s)
        return
    await send({"type": "http.response.body", "body": b"" if is_head else body})


async def _drip(send: Send, body: bytes, wait_s: float, n_pieces: int = 20) -> None:
    size = max(1, -(-len(body) // n_pieces))
    for first in range(0, len(body), size):
        piece = body[first : first + size]
        await send({"type": "http.response.body", "body": piece, "more_body": True})
        await asyncio.sleep(wait_s / n_pieces)
    await send({"type": "http.response.body", "body": b""})


def _read_fault(given: dict[str, Any]) -> Fault:
    for key in ("from_at", "until_at"):
        if given.get(key):
            given[key] = read_moment(given[key])
    return Fault(**given)
