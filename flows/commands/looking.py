"""`newsbeat inspect FILE_OR_URL`: what our parsers make of a page."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import Any

import ada_url

from flows.inspection import inspect_bytes
from flows.polite import PoliteFetcher
from models.answers import Accept
from models.errors import ConfigError, NewsbeatError, ParseError, RefusedFetchError
from models.harmless import one_line, printable
from models.kinds import public_address
from models.records import Fetched, HttpRules, Source
from tasks.extraction import SMALL_BYTES, ExtractionPool
from tasks.guard import is_own_network
from tasks.settings import Settings

MOST_S, MOST_MB = 5.0, 400
"""Seconds and MiB that one page may take here: somebody sits and waits."""

Work = Callable[[], dict[str, Any]]


@dataclass(frozen=True, slots=True)
class _Target:
    """The bytes to look at, and where they came from."""

    body: bytes
    url: str
    content_type: str | None


def look_at(
    settings: Settings,
    target: str,
    *,
    kind: str,
    base_url: str | None = None,
    content_type: str | None = None,
    agent: str | None = None,
    url: str | None = None,
    allow_private: bool = False,
) -> dict[str, Any]:
    """Return what the parser of `kind` makes of a file or an address, JSON-ready.

    Parameters
    ----------
    allow_private
        Ask addresses inside the user's own network too. Where the address itself is one,
        written in numbers or as this machine's name, nobody but the user can have chosen it,
        and it is asked without that.

    Raises
    ------
    FetchError
        If the address cannot be had.
    ParseError
        If the page is not what `kind` says.
    ConfigError
        If there is no such file.
    """
    if kind == "robots" and url is None and base_url is None:
        raise ConfigError("--url", "", None, "name the address that is asked about: --url ADDRESS")
    if kind == "telegram":
        target = public_address("telegram", target) or target
    is_address = "://" in target
    page = _fetch(settings, target, kind, allow_private) if is_address else _read(target)
    work = partial(
        inspect_bytes,
        page.body,
        kind=kind,
        base_url=base_url or page.url,
        content_type=content_type or page.content_type,
        agent=agent or settings.agent.name,
        url=url,
        now=settings.clock.now(),
    )
    try:
        if len(page.body) <= SMALL_BYTES:
            return work()
        return asyncio.run(_in_helper(settings, work, page.url))
    except ParseError as error:
        if kind == "feed" and error.reason.startswith("an HTML page"):
            hint = "; --kind list or --kind article reads it, `newsbeat add` looks for its feed"
            raise ParseError(error.url, error.reason + hint) from error
        raise


async def _in_helper(settings: Settings, work: Work, url: str) -> dict[str, Any]:
    """Return what `work` finds: a page that hangs or balloons its reader ends no terminal."""
    caps = replace(
        settings.extract,
        workers=1,
        timeout_s=min(settings.extract.timeout_s, MOST_S),
        memory_mb=min(settings.extract.memory_mb, MOST_MB),
    )
    async with ExtractionPool(caps, keeps_spare=False) as pool:
        findings, _ = await pool.run(work, url, "inspect")
    return findings


def _read(target: str) -> _Target:
    path = Path(target)
    try:
        return _Target(path.read_bytes(), path.resolve().as_uri(), None)
    except OSError as error:
        raise ConfigError(
            target, "", None, f"not readable as a file ({error.strerror}); an address has ://"
        ) from error


def _fetch(settings: Settings, target: str, kind: str, allow_private: bool) -> _Target:
    accept: Accept = "page" if kind in ("article", "telegram") else "listing"
    if kind == "robots":
        accept = "robots"
    http = HttpRules(allow_private=allow_private or is_own_network(_host_of(target)))
    try:
        fetched = asyncio.run(_fetch_one(settings, target, accept, http))
    except RefusedFetchError as error:
        if http.allow_private or "address" not in error.reason:
            raise
        reason = f"{error.reason}; where it is a site of yours, say --allow-private"
        raise RefusedFetchError(error.url, reason, error.status, error.final_url) from error
    return _Target(fetched.body, fetched.final_url, fetched.content_type)


def _host_of(url: str) -> str:
    try:
        return str(ada_url.URL(url.strip()).hostname)
    except ValueError:
        return ""


async def _fetch_one(settings: Settings, url: str, accept: Accept, http: HttpRules) -> Fetched:
    probe = Source("inspect", "inspect", url, http=http)
    async with PoliteFetcher(settings) as fetcher:
        answer = await fetcher.fetch(url, probe, accept=accept)
    if not isinstance(answer, Fetched):
        raise NewsbeatError(f"{url}: answered 304 to a first request")
    return answer


def render_findings(kind: str, findings: dict[str, Any]) -> str:
    """Return the findings as text for people: facts first, then entries or text, then warnings."""
    lines = [
        f"{name.replace('_', ' ')}: {one_line(value)}"
        for name, value in findings.items()
        if name not in ("entries", "links", "text", "warnings", "features", "children")
        and value not in (None, "", [])
    ]
    rows = findings.get("entries") or findings.get("links") or []
    if rows or "entries" in findings or "links" in findings:
        lines.append(f"{len(rows)} {'links' if 'links' in findings else 'entries'}:")
    for row in rows:
        lines.append(f"  {one_line(row.get('published_at') or 'undated'):25}  {_title(row)}")
        lines.append(f"  {'':25}  {one_line(row.get('url'))}")
        if row.get("media") or row.get("note"):
            told = [*row.get("media", []), *([row["note"]] if row.get("note") else [])]
            lines.append(f"  {'':25}  [{one_line(', '.join(told))}]")
    if findings.get("text"):
        lines += ["", printable(findings["text"])]
    lines += [f"warning: {one_line(warning)}" for warning in findings.get("warnings", [])]
    return "\n".join(lines) or f"nothing found as {kind}"


def _title(row: dict[str, Any]) -> str:
    return one_line(row.get("title") or "(no title)")
