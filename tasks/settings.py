"""Settings: one frozen dataclass per section, read from ``newsbeat.toml`` and ``NEWSBEAT_*``.

Order of strength: what a command line says, then ``NEWSBEAT_<SECTION>_<KEY>`` in the
environment, then the file, then the defaults below. An unknown key is an error that
names the file, the key and the keys there are.
"""

from __future__ import annotations

import dataclasses
import math
import os
import re
import tomllib
import types
import typing
import zoneinfo
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from models.errors import ConfigError
from models.triage.ladder import CLOCK_TIME, QUIET, Channel, Pace, Raising
from tasks.clock import Clock

SETTINGS_FILE = "newsbeat.toml"
LOG = "log"
"""Name of the channel there is where no other is."""


@dataclass(frozen=True, slots=True)
class AgentSettings:
    """``[agent]``: how we name ourselves to the sites we read.

    Attributes
    ----------
    contact
        Mail address or page where a site's owner reaches you. Needed before anything
        outside this machine is fetched.
    """

    name: str = "newsbeat"
    contact: str = ""


@dataclass(frozen=True, slots=True)
class FetchSettings:
    """``[fetch]``: caps on one exchange and manners towards hosts.

    Attributes
    ----------
    max_bytes
        Largest body, in bytes after decompression.
    max_inflate_ratio
        Largest decompressed / received size, once 1 MiB has come out.
    total_timeout_s, connect_timeout_s, read_timeout_s
        Whole exchange, connecting, and silence on an open connection, in wall seconds.
    min_bytes_per_s
        An answer slower than this over 10 s is given up.
    max_hops
        Redirects followed.
    host_gap_s
        Least seconds between two requests to one registered domain.
    host_connections
        Requests to one registered domain at a time, and polls of it.
    robots_ttl_s
        How long a robots.txt is believed; RFC 9309 allows a day.
    """

    max_bytes: int = 20 * 2**20
    max_inflate_ratio: float = 200.0
    total_timeout_s: float = 60.0
    connect_timeout_s: float = 10.0
    read_timeout_s: float = 20.0
    min_bytes_per_s: float = 200.0
    max_hops: int = 8
    max_header_bytes: int = 64 * 1024
    host_gap_s: float = 1.0
    host_connections: int = 2
    robots_ttl_s: float = 86_400.0


@dataclass(frozen=True, slots=True)
class ExtractSettings:
    """``[extract]``: limits on the processes that read article pages, and on articles a poll.

    Attributes
    ----------
    workers
        Processes that extract.
    timeout_s, memory_mb
        A page that takes longer or needs more is given up, and its process replaced.
    max_entries
        Entries of one listing that are looked at, newest first.
    articles_per_poll
        Article pages fetched in one poll; the rest is owed and fetched by the next ones.
    retry_base_s, max_attempts
        Wait before a failed article page is tried again (it doubles each time), and how
        often it is tried before the listing's title and summary stand in for it.
    """

    workers: int = 1
    timeout_s: float = 20.0
    memory_mb: int = 1024
    max_entries: int = 500
    articles_per_poll: int = 60
    retry_base_s: float = 300.0
    max_attempts: int = 6


@dataclass(frozen=True, slots=True)
class WarehouseSettings:
    """``[warehouse]``: where data lies and how analysts reach it live.

    Attributes
    ----------
    folder
        Relative to the home folder.
    quack_port
        Loopback port of the live SQL endpoint; 0 takes a free one.
    min_free_mb
        Room that is left free on the disk, in MiB: with less, no poll is started.
    query_limit_s
        A live query that takes longer is ended, and the worker started again for it: it
        would go on after whoever asked had left.
    """

    folder: str = "data/warehouse"
    quack_port: int = 0
    memory_limit: str = "1GB"
    threads: int = 2
    warc_days: int = 90
    min_free_mb: float = 200.0
    query_limit_s: float = 900.0


@dataclass(frozen=True, slots=True)
class PrefectSettings:
    """``[prefect]``: the server that executes and shows.

    Attributes
    ----------
    api_url
        A server of your own; empty starts one on this machine.
    database_url
        ``postgresql+asyncpg://…`` for the server started here; empty starts an embedded one.
    history_days
        How long finished flow runs and their events are kept.
    """

    api_url: str = ""
    database_url: str = ""
    host: str = "127.0.0.1"
    port: int = 4200
    work_pool: str = "newsbeat"
    history_days: float = 7.0


@dataclass(frozen=True, slots=True)
class WorkerSettings:
    """``[worker]``: how the worker runs polls. Times are wall seconds.

    Attributes
    ----------
    concurrency
        Polls under way at a time.
    query_s, prefetch_s
        How often due runs are asked for, and how far ahead. Runs that a poll makes are
        known without asking; this finds those that people start by hand.
    reconcile_s, pause_s
        How often schedule and server are compared, and pauses read.
    poll_timeout_s
        A poll is ended after that long: failed if its listing had not come, otherwise the
        articles left are owed.
    artifact_s
        A source's page in Prefect's UI is renewed at most this often.
    stock_engine
        Run flows with Prefect's own engine instead of ours for short runs.
    """

    concurrency: int = 16
    query_s: float = 5.0
    prefetch_s: float = 12.0
    reconcile_s: float = 60.0
    pause_s: float = 15.0
    poll_timeout_s: float = 300.0
    artifact_s: float = 300.0
    stock_engine: bool = False


@dataclass(frozen=True, slots=True)
class BudgetSettings:
    """``[budget]``: what polling may cost, or how late entries may be. Set one of the first four.

    Attributes
    ----------
    polls_per_day
        Polls of all sources together; 0 with no other budget means 144 per source, as many
        as a ten-minute timer makes.
    megabytes_per_day
        Index pages of all sources together, in MB. Articles are fetched once in any case.
    target_lag_s
        Mean wait of an entry until the poll that finds it, over all sources, in seconds.
    price
        The price itself, held as it is: entry-seconds of waiting that a poll must save, as
        `newsbeat backtest` prints it.
    lag_by_tag
        The same for the sources with a tag, whatever the budget: ``{tier-1 = 120}``.
    """

    polls_per_day: float = 0.0
    megabytes_per_day: float = 0.0
    target_lag_s: float = 0.0
    price: float = 0.0
    lag_by_tag: Mapping[str, float] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class RefitSettings:
    """``[refit]``: the nightly refit of every source's forecast.

    Attributes
    ----------
    at
        When it runs, ``HH:MM`` in UTC; empty leaves it to `newsbeat refit`.
    weeks
        Weeks of history it learns from.
    threads
        Threads that fit, in a process that gives way to the polls.
    dask
        Fit on Dask instead: the address of a scheduler (``tcp://host:8786``), or ``local``
        for a cluster on this machine. Needs the extra ``newsbeat[dask]``.
    """

    at: str = "03:10"
    weeks: int = 26
    threads: int = 2
    dask: str = ""


@dataclass(frozen=True, slots=True)
class PageSettings:
    """``[page]``: the status page that `newsbeat up` serves.

    Attributes
    ----------
    host
        Address it listens on. Any but this machine's own needs a token.
    port
        Where that port is taken, a free one is used and said.
    token
        Secret that lets people in, as the password of any name; empty asks for none.
    url
        Where people find it, for links to it; empty for where it listens.
    """

    host: str = "127.0.0.1"
    port: int = 4300
    token: str = field(default="", repr=False)
    url: str = ""


@dataclass(frozen=True, slots=True)
class ReportSettings:
    """``[report]``: the report of every day.

    Attributes
    ----------
    at
        When yesterday's is written, ``HH:MM`` in UTC; empty leaves it to `newsbeat report`.
    folder
        Where it goes, relative to the home folder; a folder for each day.
    timezone
        IANA zone whose days they are.
    baseline_days
        Days before, with which a day is compared.
    """

    at: str = "00:20"
    folder: str = "data/reports"
    timezone: str = "UTC"
    baseline_days: int = 14


@dataclass(frozen=True, slots=True)
class AlertSettings:
    """``[alerts]``: how urgent hits of keyword rules are, and how fast people are told.

    Attributes
    ----------
    timezone
        Of digests and quiet hours, where a channel names none.
    digest_at
        Time of day of the daily digest, ``HH:MM``.
    repeat_s
        An alert of level 1 is told again after so many seconds, until it is acknowledged.
    story_hours
        An article like another within so many hours of it joins its story, and is not told again.
    raise_weight, raise_together
        What raises a hit by a level: a source of this weight or more, so many rules of one
        level hitting one article; 0 for never.
    spike_hits, spike_chance
        A rule's burst raises its hits by a level: so many in an hour at least, and less
        likely than this by what that hour of the last 14 days had. 0 hits for never.
    failing_level
        Urgency of a source that fails time and again; 5 tells nobody.
    retry_s, longest_retry_s
        Wait before a message that failed is sent again; it doubles, up to the longest.
    """

    timezone: str = "UTC"
    digest_at: str = "08:00"
    repeat_s: float = 900.0
    story_hours: float = 48.0
    raise_weight: float = 3.0
    raise_together: int = 3
    spike_hits: int = 5
    spike_chance: float = 0.0001
    failing_level: int = 3
    retry_s: float = 15.0
    longest_retry_s: float = 900.0

    @property
    def pace(self) -> Pace:
        """How fast the ladder runs."""
        return Pace(self.digest_at, self.repeat_s, self.retry_s, self.longest_retry_s)

    @property
    def raising(self) -> Raising:
        """What raises hits."""
        return Raising(self.raise_weight, self.raise_together, self.spike_hits, self.spike_chance)


@dataclass(frozen=True, slots=True)
class DriftSettings:
    """``[drift]``: whether a site has changed, and what is done about it.

    Attributes
    ----------
    detector
        What judges each page: ``evidence``, or the slides' ``ellipsoid``, ``sphere`` or
        ``box``, which need some 1,200 pages of a source.
    check_pages
        New article pages of a source after which they are checked together.
    thresholds
        Of the divergences of a set: ``bootstrap`` from the source's own pages, ``simple``
        or ``universal`` by formula.
    accept_layout_after
        Pages of a new layout whose text stayed right, after which it is taken as the new
        reference; 0 leaves that to `newsbeat accept`.
    adopt_repairs
        Whether another way to a text that went wrong is taken by itself, where it is clear.
    idle_s
        The process that checks ends when it was not needed for so long, in wall seconds.
    refit_at
        When references are built anew, ``HH:MM`` in UTC; empty for never by itself.
    """

    detector: str = "evidence"
    check_pages: int = 40
    thresholds: str = "bootstrap"
    accept_layout_after: int = 40
    adopt_repairs: bool = False
    idle_s: float = 600.0
    refit_at: str = "03:40"


@dataclass(frozen=True, slots=True)
class Settings:
    """All settings, and the folder they belong to.

    Attributes
    ----------
    home
        Folder of ``newsbeat.toml``, the catalogue (``data/sources``) and the warehouse.
    clock
        The product's clock; ordinary time unless ``NEWSBEAT_CLOCK``, or ``clock`` at the top
        of the file, says otherwise: a replay's home keeps the time of its replay.
    """

    home: Path
    agent: AgentSettings = field(default_factory=AgentSettings)
    fetch: FetchSettings = field(default_factory=FetchSettings)
    extract: ExtractSettings = field(default_factory=ExtractSettings)
    warehouse: WarehouseSettings = field(default_factory=WarehouseSettings)
    prefect: PrefectSettings = field(default_factory=PrefectSettings)
    worker: WorkerSettings = field(default_factory=WorkerSettings)
    budget: BudgetSettings = field(default_factory=BudgetSettings)
    refit: RefitSettings = field(default_factory=RefitSettings)
    page: PageSettings = field(default_factory=PageSettings)
    report: ReportSettings = field(default_factory=ReportSettings)
    alerts: AlertSettings = field(default_factory=AlertSettings)
    channels: Mapping[str, Channel] = field(default_factory=dict)
    drift: DriftSettings = field(default_factory=DriftSettings)
    clock: Clock = field(default_factory=Clock)

    @property
    def folder(self) -> Path:
        """The folder that holds the warehouse, raw pages and state files."""
        return self.home / self.warehouse.folder

    @property
    def database(self) -> Path:
        """The DuckDB file."""
        return self.folder / "newsbeat.duckdb"

    @property
    def warc_folder(self) -> Path:
        """The folder of raw pages."""
        return self.folder / "warc"

    @property
    def sources_folder(self) -> Path:
        """The folder of the user's own catalogue."""
        return self.home / "data" / "sources"

    @property
    def open_channels(self) -> Mapping[str, Channel]:
        """The channels people are told at; the worker's log where there is none."""
        return self.channels or {LOG: Channel(LOG, timezone=self.alerts.timezone)}

    @property
    def keywords_folder(self) -> Path:
        """The folder of the user's own keyword rules."""
        return self.home / "data" / "keywords"

    @property
    def agent_string(self) -> str:
        """The ``User-Agent`` sent with every request."""
        contact = f" (+{self.agent.contact})" if self.agent.contact else ""
        return f"{self.agent.name}/0.1{contact}"


_SECTIONS: dict[str, type[Any]] = {
    "agent": AgentSettings,
    "fetch": FetchSettings,
    "extract": ExtractSettings,
    "warehouse": WarehouseSettings,
    "prefect": PrefectSettings,
    "worker": WorkerSettings,
    "budget": BudgetSettings,
    "refit": RefitSettings,
    "page": PageSettings,
    "report": ReportSettings,
    "alerts": AlertSettings,
    "drift": DriftSettings,
}

CHANNELS = "channels"
"""Tables ``[channels.NAME]``: where people are told, see `models.triage.ladder.Channel`."""


_LEAST_MOST: dict[str, tuple[float, float]] = {
    "fetch.max_bytes": (1024, 2**31),
    "fetch.max_inflate_ratio": (1, math.inf),
    "fetch.total_timeout_s": (0.1, 3600),
    "fetch.connect_timeout_s": (0.1, 3600),
    "fetch.read_timeout_s": (0.1, 3600),
    "fetch.max_hops": (0, 50),
    "fetch.max_header_bytes": (1024, 2**24),
    "fetch.host_connections": (1, 64),
    "fetch.robots_ttl_s": (0, 86_400),
    "extract.workers": (1, 64),
    "extract.timeout_s": (0.1, 3600),
    "extract.memory_mb": (128, 2**20),
    "extract.max_entries": (1, 100_000),
    "extract.articles_per_poll": (1, 10_000),
    "extract.max_attempts": (1, 1000),
    "warehouse.quack_port": (0, 65_535),
    "warehouse.threads": (1, 256),
    "warehouse.warc_days": (1, 36_500),
    "warehouse.query_limit_s": (1, math.inf),
    "prefect.port": (1, 65_535),
    "prefect.history_days": (0.01, 3650),
    "worker.concurrency": (1, 1000),
    "worker.query_s": (0.1, 3600),
    "worker.prefetch_s": (0, 3600),
    "worker.reconcile_s": (0.1, 3600),
    "worker.pause_s": (0.1, 3600),
    "worker.poll_timeout_s": (1, 86_400),
    "drift.check_pages": (5, 10_000),
    "refit.weeks": (1, 1000),
    "refit.threads": (1, 256),
    "page.port": (0, 65_535),
    "report.baseline_days": (1, 366),
    "alerts.repeat_s": (1, 604_800),
    "alerts.story_hours": (0, 8760),
    "alerts.spike_chance": (0, 1),
    "alerts.failing_level": (1, 5),
    "alerts.retry_s": (0.01, 86_400),
    "alerts.longest_retry_s": (0.01, 604_800),
}
"""The least and the most of a number; of those not named here 0 is the least."""

_PATTERNS = {
    "agent.name": (r"[\w.-]{1,50}", "a product name is letters, digits, '.', '_' and '-'"),
    "agent.contact": (r"[^\x00-\x1f\x7f()]{0,200}", "it must be one line, without brackets"),
    "warehouse.folder": (r"[^\x00\n]+", "it must name a folder"),
    "warehouse.memory_limit": (
        r"(?i)\d+(\.\d+)?\s*[kmgt]i?b|\d{1,2}%",
        'it must be a size such as "2GB"',
    ),
    "prefect.api_url": (r"(https?://[^\s]+)?", "it must be such as http://127.0.0.1:4200/api"),
    "prefect.database_url": (
        r"(postgresql\+asyncpg://[^\s]+)?",
        "it must begin with postgresql+asyncpg://",
    ),
    "prefect.host": (r"[\w.:-]+", "it must be a host or an IP address of this machine"),
    "prefect.work_pool": (r"[\w .-]{1,100}", "it must be a name of letters, digits and dashes"),
    "page.host": (r"[\w.:-]+", "it must be a host or an IP address of this machine"),
    "page.token": (r"([!-~]{16,200})?", "it must be 16 printable characters or more, or empty"),
    "page.url": (r"(https?://[^\s]+)?", "it must be such as https://newsbeat.example/"),
    "report.at": (r"(([01]\d|2[0-3]):[0-5]\d)?", "it must be HH:MM, or empty"),
    "report.timezone": (r"[\w+/-]+", "it must be an IANA zone such as Europe/Berlin"),
    "report.folder": (r"[^\x00\n]+", "it must name a folder"),
    "refit.at": (rf"({CLOCK_TIME})?", "it must be HH:MM, or empty"),
    "alerts.digest_at": (CLOCK_TIME, "it must be HH:MM"),
    "channels.url": (r"\S+", "it must be an address such as mailto://user:password@mail.example"),
    "channels.quiet": (QUIET, 'it must be such as "22:00-07:00", or empty'),
    "drift.refit_at": (r"(([01]\d|2[0-3]):[0-5]\d)?", "it must be HH:MM, or empty"),
    "drift.detector": (
        "evidence|ellipsoid|sphere|box",
        "it must be evidence, ellipsoid, sphere or box",
    ),
    "drift.thresholds": (
        "bootstrap|simple|universal",
        "it must be bootstrap, simple or universal",
    ),
}
"""What a text must look like, and that in words."""

_ONE_OF = {"budget": ("polls_per_day", "megabytes_per_day", "target_lag_s", "price")}
"""Keys of a section of which one alone may be set: each would decide what another does."""


def read_settings(home: Path | str = ".", environ: Mapping[str, str] | None = None) -> Settings:
    """Return the settings that hold in folder `home`.

    Parameters
    ----------
    home
        Folder of ``newsbeat.toml``; the file may be missing.
    environ
        Environment to read, ``os.environ`` where None.

    Raises
    ------
    ConfigError
        If the folder does not exist, or a key or value is not allowed.
    """
    environ = os.environ if environ is None else environ
    try:
        folder = Path(home).expanduser().resolve()
    except RuntimeError as error:
        raise ConfigError(str(home), "", None, f"no such folder ({error})") from error
    if not folder.is_dir():
        raise ConfigError(str(home), "", None, "no such folder; name one that exists with --home")
    values, clock = _read_file(folder / SETTINGS_FILE)
    _add_environment(values, environ)
    sections = {
        name: _section(kind, dict(values.get(name, {})), name) for name, kind in _SECTIONS.items()
    }
    channels = _read_channels(values.get(CHANNELS, {}), sections["alerts"].timezone)
    if environ.get("NEWSBEAT_CLOCK"):
        clock = _clock("environment", "NEWSBEAT_CLOCK", environ["NEWSBEAT_CLOCK"])
    return Settings(home=folder, clock=clock, channels=channels, **sections)


def _read_file(path: Path) -> tuple[dict[str, dict[str, tuple[str, Any]]], Clock]:
    """Return ``{section: {key: (where, value)}}``, and the clock."""
    if not path.exists():
        return {}, Clock()
    try:
        parsed = tomllib.loads(path.read_text(encoding="utf-8-sig"))
    except (tomllib.TOMLDecodeError, UnicodeDecodeError) as error:
        raise ConfigError(str(path), "", None, f"not readable as TOML: {error}") from error
    except OSError as error:
        raise ConfigError(str(path), "", None, f"not readable: {error.strerror}") from error
    found: dict[str, dict[str, tuple[str, Any]]] = {}
    clock = Clock()
    if "clock" in parsed:
        clock = _clock(str(path), "clock", parsed.pop("clock"))
    for name, section in parsed.items():
        if name not in (*_SECTIONS, CHANNELS) or not isinstance(section, dict):
            allowed = ", ".join(f"[{known}]" for known in (*_SECTIONS, f"{CHANNELS}.NAME"))
            raise ConfigError(str(path), name, section, f"sections are {allowed}")
        found[name] = {key: (str(path), value) for key, value in section.items()}
    return found, clock


def _add_environment(
    values: dict[str, dict[str, tuple[str, Any]]], environ: Mapping[str, str]
) -> None:
    for variable, text in environ.items():
        if not variable.startswith("NEWSBEAT_") or variable in {"NEWSBEAT_HOME", "NEWSBEAT_CLOCK"}:
            continue
        section, _, key = variable.removeprefix("NEWSBEAT_").lower().partition("_")
        if section == CHANNELS:
            _add_channel_key(values.setdefault(CHANNELS, {}), variable, key, text)
            continue
        if section not in _SECTIONS:
            allowed = ", ".join(f"NEWSBEAT_{known.upper()}_…" for known in _SECTIONS)
            raise ConfigError("environment", variable, text, f"variables are {allowed}")
        values.setdefault(section, {})[key] = (variable, text)


def _section(kind: type[Any], given: dict[str, tuple[str, Any]], name: str) -> Any:
    hints = typing.get_type_hints(kind)
    known = {item.name for item in dataclasses.fields(kind)}
    arguments = {}
    for key, (where, value) in given.items():
        if key not in known:
            raise ConfigError(where, f"{name}.{key}", value, f"keys are {', '.join(sorted(known))}")
        arguments[key] = convert_value(where, f"{name}.{key}", value, hints[key])
        if problem := _check_value(f"{name}.{key}", arguments[key]):
            raise ConfigError(where, f"{name}.{key}", value, problem)
    if len(rivals := [key for key in _ONE_OF.get(name, ()) if arguments.get(key)]) > 1:
        where, value = given[rivals[1]]
        problem = f"{name}.{rivals[0]} is set already; set one of {', '.join(_ONE_OF[name])}"
        raise ConfigError(where, f"{name}.{rivals[1]}", value, problem)
    return kind(**arguments)


def _add_channel_key(
    channels: dict[str, tuple[str, Any]], variable: str, key: str, text: str
) -> None:
    """Set one key of a channel from the environment: secrets need not stand in a file."""
    name, _, item = key.rpartition("_")
    where, table = channels.get(name, (variable, {}))
    if isinstance(table, dict):
        value = text.split(",") if item in ("levels", "tags") else text
        channels[name] = where, {**table, item: value}


def _read_channels(given: Mapping[str, tuple[str, Any]], timezone: str) -> dict[str, Channel]:
    return {name: _channel(where, name, table, timezone) for name, (where, table) in given.items()}


def _channel(where: str, name: str, table: Any, timezone: str) -> Channel:
    """Return one channel; the file and the key are named where it is wrong."""
    key = f"{CHANNELS}.{name}"
    if not re.fullmatch(r"[a-z0-9][a-z0-9-]{0,39}", name) or not isinstance(table, dict):
        allowed = "channels are tables [channels.NAME], a name being small letters, digits, dashes"
        raise ConfigError(where, key, table, allowed)
    known = [item.name for item in dataclasses.fields(Channel) if item.name != "name"]
    for item in table:
        if item not in known:
            raise ConfigError(where, f"{key}.{item}", "…", f"keys are {', '.join(known)}")
    if "url" not in table:
        raise ConfigError(where, f"{key}.url", None, "every channel needs one")
    texts = {"timezone": timezone} | {
        item: convert_value(where, f"{key}.{item}", table[item], str)
        for item in ("url", "quiet", "timezone")
        if item in table
    }
    for item, text in texts.items():
        if problem := _check_value(f"{CHANNELS}.{item}", text):
            # An address holds a password: it is not shown.
            raise ConfigError(where, f"{key}.{item}", "…" if item == "url" else text, problem)
    tags = _texts(where, f"{key}.tags", table.get("tags", []))
    levels = tuple(
        int(level)
        for level in _texts(where, f"{key}.levels", table.get("levels", [1, 2, 3, 4]))
        if level in ("1", "2", "3", "4")
    )
    if len(levels) != len(table.get("levels", levels)):
        raise ConfigError(where, f"{key}.levels", table["levels"], "levels are 1, 2, 3 and 4")
    return Channel(name=name, levels=levels, tags=tags, **texts)


def _texts(where: str, key: str, value: Any) -> tuple[str, ...]:
    if not isinstance(value, list) or not all(isinstance(item, str | int) for item in value):
        raise ConfigError(where, key, value, 'it must be a list, such as ["world"]')
    return tuple(str(item).strip() for item in value)


def _is_zone(name: str) -> bool:
    try:
        return bool(name) and zoneinfo.ZoneInfo(name) is not None
    except (zoneinfo.ZoneInfoNotFoundError, ValueError, OSError):
        return False


def _check_value(key: str, value: Any) -> str:
    """Return what a value must be, ``""`` where it is so."""
    if isinstance(value, Mapping):
        return next((problem for one in value.values() if (problem := _check_value(key, one))), "")
    if key in ("alerts.timezone", f"{CHANNELS}.timezone") and not _is_zone(value):
        return "it must be a time zone of the IANA database, such as Europe/Moscow"
    if isinstance(value, str):
        pattern, allowed = _PATTERNS.get(key, (".*", ""))
        return "" if re.fullmatch(pattern, value, re.DOTALL) else allowed
    if isinstance(value, bool):
        return ""
    least, most = _LEAST_MOST.get(key, (0, math.inf))
    if math.isfinite(value) and least <= value <= most:
        return ""
    upper = f" to {most:g}" if math.isfinite(most) else " upwards"
    return f"it must be from {least:g}{upper}"


def convert_value(where: str, key: str, value: Any, wanted: Any) -> Any:
    """Return `value` as type `wanted`: bool, int, float, str, or one of them or None.

    Text is read as a number where a number is wanted, so that the environment can hold one.

    Raises
    ------
    ConfigError
        If the value does not fit.
    """
    if typing.get_origin(wanted) is Mapping:
        return _convert_table(where, key, value)
    if isinstance(wanted, types.UnionType):
        wanted = next(part for part in typing.get_args(wanted) if part is not type(None))
    fits = isinstance(value, wanted) and not (wanted is not bool and isinstance(value, bool))
    if fits:
        return value
    if wanted is float and isinstance(value, int) and not isinstance(value, bool):
        return float(value)
    if isinstance(value, str) and wanted in (int, float):
        try:
            return wanted(value)
        except ValueError:
            pass
    if isinstance(value, str) and wanted is bool and value.lower() in {"true", "false"}:
        return value.lower() == "true"
    names = {str: "text", int: "a whole number", float: "a number", bool: "true or false"}
    raise ConfigError(where, key, value, f"it must be {names.get(wanted, str(wanted))}")


def _convert_table(where: str, key: str, value: Any) -> dict[str, float]:
    """Return a table of numbers; in the environment it is spelt ``name=1,other=2``."""
    if isinstance(value, str):
        value = dict(part.split("=", 1) for part in value.split(",") if "=" in part)
    if not isinstance(value, Mapping):
        raise ConfigError(where, key, value, "it must be a table of numbers, {name = 1}")
    return {
        name: convert_value(where, f"{key}.{name}", number, float) for name, number in value.items()
    }


def _clock(where: str, key: str, text: Any) -> Clock:
    try:
        return Clock.read_spelling(str(text))
    except ValueError as error:
        raise ConfigError(where, key, text, f"it must be speed:wall:at ({error})") from error
