"""`newsbeat doctor`: what is wrong with this installation, and the way out."""

from __future__ import annotations

import importlib.metadata
import shutil
import sys
from collections.abc import Callable, Iterator
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from flows.supervisor import running_supervisor
from flows.wording import spell_count
from models.errors import NewsbeatError
from models.harmless import one_line
from tasks.catalogue import read_catalogue
from tasks.channels import Channels
from tasks.postgres import EmbeddedPostgres
from tasks.prefect_server import configured_api_url, is_healthy, is_port_free
from tasks.rulebook import read_rulebook
from tasks.settings import Settings, read_settings

PINNED = {"prefect": "3.9.1", "duckdb": "1.5.5"}
"""Versions whose inner parts, or files, we rely on."""

LOW_DISK_BYTES = 2 * 10**9


@dataclass(frozen=True, slots=True)
class Finding:
    """One thing looked at.

    Attributes
    ----------
    what
        What was looked at.
    state
        ``ok``, ``note`` (worth knowing) or ``bad``.
    detail
        What was found.
    way_out
        What to do, where something is to be done.
    """

    what: str
    state: str
    detail: str
    way_out: str = ""

    @property
    def is_bad(self) -> bool:
        """Whether newsbeat cannot work as it is."""
        return self.state == "bad"

    def as_text(self) -> str:
        """Return it as one or two lines."""
        mark = {"ok": "ok  ", "note": "note", "bad": "BAD "}[self.state]
        line = f"{mark}  {self.what}: {self.detail}"
        return f"{line}\n      → {self.way_out}" if self.way_out else line

    def as_json(self) -> dict[str, Any]:
        """Return it as JSON-ready values."""
        return asdict(self)


def examine(home: Path) -> list[Finding]:
    """Look at everything newsbeat needs in folder `home`; nothing is changed or started."""
    findings = [*_versions()]
    try:
        settings = read_settings(home)
    except NewsbeatError as error:
        return [*findings, Finding("settings", "bad", str(error), "Mend it and run doctor again")]
    findings.append(Finding("settings", "ok", f"read from {settings.home}"))
    for look in (_contact, _catalogue, _rules, _channels, _disk, _warehouse, _postgres, _server):
        findings += _guarded(look, settings)
    return findings


def _guarded(
    look: Callable[[Settings], Iterator[Finding]], settings: Settings
) -> Iterator[Finding]:
    try:
        yield from look(settings)
    except (NewsbeatError, OSError) as error:
        yield Finding(look.__name__.strip("_"), "bad", str(error))


def _versions() -> Iterator[Finding]:
    yield Finding("Python", "ok", sys.version.split()[0])
    for package, wanted in PINNED.items():
        found = importlib.metadata.version(package)
        if found == wanted:
            yield Finding(package, "ok", found)
        else:
            yield Finding(
                package, "bad", f"{found} is installed", f"pip install '{package}=={wanted}'"
            )


def _contact(settings: Settings) -> Iterator[Finding]:
    if settings.agent.contact:
        yield Finding("agent", "ok", settings.agent_string)
    elif all(source.http.allow_private for source in read_catalogue(settings).sources):
        yield Finding("agent", "note", "no contact is set; needed for sites that are not your own")
    else:
        yield Finding(
            "agent",
            "bad",
            "no contact is set, so nothing outside this machine is fetched",
            'Put contact = "you@example.org" under [agent] in newsbeat.toml',
        )


def _catalogue(settings: Settings) -> Iterator[Finding]:
    catalogue = read_catalogue(settings)
    for problem in catalogue.problems:
        yield Finding("catalogue", "note", f"left out: {problem}")
    state = "ok" if catalogue.sources else "bad"
    way_out = "" if catalogue.sources else "Add one: newsbeat add URL"
    where = "that come with newsbeat" if catalogue.is_packaged else f"in {catalogue.folder}"
    yield Finding(
        "catalogue", state, f"{spell_count(len(catalogue.sources), 'source')} {where}", way_out
    )


def _rules(settings: Settings) -> Iterator[Finding]:
    book = read_rulebook(settings)
    for problem in book.problems:
        yield Finding("rules", "note", f"left out: {one_line(problem)}")
    yield Finding("rules", "ok", f"{spell_count(len(book.rules), 'keyword rule')} in {book.place}")


def _channels(settings: Settings) -> Iterator[Finding]:
    Channels(settings.open_channels)
    names = ", ".join(settings.open_channels)
    if not settings.channels:
        names = "none is set: alerts go to the worker's log (docs/alerts.md)"
    yield Finding("channels", "ok" if settings.channels else "note", names)


def _disk(settings: Settings) -> Iterator[Finding]:
    place = next(p for p in [settings.folder, *settings.folder.parents] if p.exists())
    free = shutil.disk_usage(place).free
    detail = f"{free / 1e9:.1f} GB free at {place}"
    if free < LOW_DISK_BYTES:
        yield Finding("disk", "bad", detail, "Free some space; raw pages grow by the day")
    else:
        yield Finding("disk", "ok", detail)


def _warehouse(settings: Settings) -> Iterator[Finding]:
    from tasks.warehouse_reader import open_reader

    if not settings.database.exists():
        yield Finding("warehouse", "note", "not made yet; the first poll makes it")
        return
    with open_reader(settings) as reader:
        rows = reader.read_status(settings.clock.now())
        shared = reader.query("SELECT url, sources FROM shared_lists ORDER BY url").rows
    articles = spell_count(sum(row.n_articles for row in rows), "article")
    yield Finding("warehouse", "ok", f"{articles} of {spell_count(len(rows), 'source')}")
    for row in rows:
        if row.state == "failing":
            yield Finding("source", "note", f"{row.source} is failing: {one_line(row.last_reason)}")
    for url, sources in shared:
        names = " and ".join(sources)
        detail = f"{names} read one list, {one_line(url)}: asked and counted twice"
        yield Finding("source", "note", detail, "Keep one of them in the catalogue")


def _postgres(settings: Settings) -> Iterator[Finding]:
    if configured_api_url(settings) or settings.prefect.database_url:
        return
    server = EmbeddedPostgres(settings.folder / "postgres")
    state = "runs" if server.is_running() else "does not run (newsbeat up starts it)"
    yield Finding("embedded PostgreSQL", "ok", f"{state}, files in {server.folder}")


def _server(settings: Settings) -> Iterator[Finding]:
    configured = configured_api_url(settings)
    api_url = configured or f"http://{settings.prefect.host}:{settings.prefect.port}/api"
    up = running_supervisor(settings)
    if is_healthy(api_url):
        yield Finding("Prefect", "ok", f"answers at {api_url}")
    elif configured:
        yield Finding(
            "Prefect", "bad", f"{api_url} does not answer", "Start it, or clear prefect.api_url"
        )
    elif up is not None:
        yield Finding("Prefect", "bad", f"up runs (process {up}), but {api_url} does not answer")
    elif not is_port_free(settings.prefect.host, settings.prefect.port):
        yield Finding(
            "Prefect",
            "bad",
            f"port {settings.prefect.port} is taken by another program",
            "Set prefect.port in newsbeat.toml",
        )
    else:
        yield Finding("Prefect", "ok", "does not run (newsbeat up starts it)")
