"""What the engine's benchmarks share: a home of their own, its processes, and their meters."""

from __future__ import annotations

import os
import shutil
import statistics
import tempfile
from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, Self

import click
import psutil

from flows.supervisor import Supervisor
from tasks.postgres import EmbeddedPostgres
from tasks.prefect_server import client_environment, find_free_port
from tasks.settings import read_settings

SETTINGS = """\
[agent]
contact = "benchmark@newsbeat.example"

[prefect]
port = {port}
"""


@dataclass(frozen=True, slots=True)
class Cpu:
    """Processor seconds that each part has used since it started.

    Attributes
    ----------
    client
        The worker: for the stock one with all its runs, for ours without `extraction`.
    extraction
        The processes that read article pages.
    server, postgres
        Prefect's server and its database.
    """

    client: float = 0.0
    extraction: float = 0.0
    server: float = 0.0
    postgres: float = 0.0

    def since(self, before: Cpu) -> Cpu:
        """Return what was used since `before`."""
        return Cpu(
            self.client - before.client,
            self.extraction - before.extraction,
            self.server - before.server,
            self.postgres - before.postgres,
        )

    def per(self, n: int) -> Cpu:
        """Return the share of one of `n` runs."""
        n = max(n, 1)
        return Cpu(self.client / n, self.extraction / n, self.server / n, self.postgres / n)

    @property
    def engine(self) -> float:
        """All but extraction."""
        return self.client + self.server + self.postgres


class Rig:
    """Prefect's server on its own PostgreSQL, in a folder that goes away again.

    Attributes
    ----------
    supervisor
        Has started the server; starts the worker when told.
    """

    def __init__(self, settings_text: str = "", environ: dict[str, str] | None = None) -> None:
        self.home = Path(tempfile.mkdtemp(prefix="newsbeat-bench-"))
        text = SETTINGS.format(port=find_free_port()) + settings_text
        (self.home / "newsbeat.toml").write_text(text, encoding="utf-8")
        plain = plain_environment()
        self.settings = read_settings(self.home, plain)
        self.settings.sources_folder.mkdir(parents=True)
        self.supervisor = Supervisor(self.settings, say, {**plain, **(environ or {})})
        self._database = EmbeddedPostgres(self.settings.folder / "postgres")

    def __enter__(self) -> Self:
        try:
            server = self.supervisor.start_server(use_configured=False)
            self.api_url, self.server_pid = server.api_url, server.pid
            # Before anything imports Prefect: it reads its settings once.
            os.environ.update(client_environment(self.settings, server.api_url))
        except BaseException:
            self.__exit__()
            raise
        return self

    def __exit__(self, *_about: object) -> None:
        self.supervisor.stop()
        shutil.rmtree(self._database.folder, ignore_errors=True)
        shutil.rmtree(self.home, ignore_errors=True)

    def use_clock(self, clock: Any) -> None:
        """Let the product's clock be `clock` from here on."""
        self.settings = self.supervisor.settings = replace(self.settings, clock=clock)

    @property
    def postgres_pid(self) -> int:
        """Process of the database."""
        pid = self._database.pid
        assert pid is not None
        return pid

    def read_cpu(self, client_pid: int, *, whole_tree: bool = False) -> Cpu:
        """Return the processor time used so far.

        Parameters
        ----------
        client_pid
            Process of the worker.
        whole_tree
            Count the worker's children as the client's: they are the runs of a stock one.
        """
        client, children = tree_cpu(client_pid)
        assert self.server_pid is not None
        return Cpu(
            client=client + children if whole_tree else client,
            extraction=0.0 if whole_tree else children,
            server=sum(tree_cpu(self.server_pid)),
            postgres=sum(tree_cpu(self.postgres_pid)),
        )

    def read_memory(self, client_pid: int) -> dict[str, float]:
        """Return the resident memory of each part, in MB."""
        worker = psutil.Process(client_pid)
        assert self.server_pid is not None
        database = psutil.Process(self.postgres_pid)
        return {
            "worker": worker.memory_info().rss / 1e6,
            "extraction": sum(map(_rss_mb, worker.children(recursive=True))),
            "server": _rss_mb(psutil.Process(self.server_pid)),
            # Shared buffers would count once per connection.
            "postgres": sum(
                map(_private_mb, [database, *database.children(recursive=True)]), start=0.0
            ),
        }


def tree_cpu(pid: int) -> tuple[float, float]:
    """Return processor seconds of a process itself, and of all it ever started.

    Children that have ended count: the kernel adds their time to whoever waited for them.
    """
    root = psutil.Process(pid)
    # Children first: one that ends in between is then found in its parent's account.
    below = sum(map(_cpu_with_ended, root.children(recursive=True)))
    times = root.cpu_times()
    return times.user + times.system, below + times.children_user + times.children_system


def _cpu_with_ended(process: psutil.Process) -> float:
    try:
        times = process.cpu_times()
    except psutil.NoSuchProcess:
        return 0.0
    return float(times.user + times.system + times.children_user + times.children_system)


def _rss_mb(process: psutil.Process) -> float:
    try:
        return float(process.memory_info().rss / 1e6)
    except psutil.NoSuchProcess:
        return 0.0


def _private_mb(process: psutil.Process) -> float:
    try:
        return float(process.memory_full_info().uss / 1e6)
    except (psutil.NoSuchProcess, psutil.AccessDenied):
        return 0.0


def plain_environment() -> dict[str, str]:
    """Return the environment without anybody's own newsbeat and Prefect."""
    return {
        name: value
        for name, value in os.environ.items()
        if not name.startswith(("NEWSBEAT_", "PREFECT_"))
    }


def quantile(values: Sequence[float], share: float) -> float:
    """Return the value that `share` of `values` do not exceed; nan where there are none."""
    ordered = sorted(values)
    if not ordered:
        return float("nan")
    return ordered[min(int(share * len(ordered)), len(ordered) - 1)]


def slope_per_hour(minutes: Sequence[float], values: Sequence[float]) -> float:
    """Return the slope of the straight line through the points, per hour; nan below three."""
    if len(values) < 3:
        return float("nan")
    return statistics.linear_regression(minutes, values).slope * 60


def markdown_table(header: Sequence[str], rows: Sequence[Sequence[object]]) -> str:
    """Return a Markdown table, all columns but the first to the right."""
    lines = ["| " + " | ".join(header) + " |", "|---|" + "---:|" * (len(header) - 1)]
    lines += ["| " + " | ".join(map(str, row)) + " |" for row in rows]
    return "\n".join(lines)


def say(line: str) -> None:
    """Tell how things stand; results alone go to standard output."""
    click.echo(line, err=True)
