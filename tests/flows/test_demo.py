"""The whole system, live through a stretch of a recorded web, and counted at the end."""

from __future__ import annotations

import json
import os
import random
import signal
import time
import urllib.request
from collections import Counter
from collections.abc import Callable
from pathlib import Path

import psutil
import pytest

from flows.commands.demonstrating import DemoOutcome, run_demo
from flows.supervisor import Supervisor
from models.errors import ConfigError
from tasks.prefect_server import find_free_port
from tasks.settings import read_settings
from tasks.warehouse_reader import open_reader

REAL = Path(__file__).parents[2].parent / "shared" / "data"
SEED = 20_250_304

# One after the other: each wants the machine for itself.
pytestmark = [pytest.mark.slow, pytest.mark.timeout(400), pytest.mark.xdist_group("demo")]


@pytest.fixture
def home(reachable_folder: Path, new_name: Callable[[str], str]) -> Path:
    return reachable_folder / new_name("demo")


def check_outcome(
    outcome: DemoOutcome, home: Path, states: frozenset[str] = frozenset({"active"})
) -> None:
    assert outcome.problems == []
    assert outcome.is_good
    assert len(outcome.sources) >= 12
    for count in outcome.sources:
        assert count.listed > 0, count
        assert count.articles >= count.listed, count
        assert count.polls >= 1, count
        assert count.has_next_poll, count
    with open_reader(read_settings(home, {})) as reader:
        assert reader.query("SELECT count(*) FROM pending_articles").rows == ((0,),)
        doubles = "SELECT url FROM articles GROUP BY source, url HAVING count(*) > 1"
        assert reader.query(doubles).rows == ()
        # Cycles that were skipped have no poll; none has two.
        doubles = "SELECT source, cycle FROM polls GROUP BY ALL HAVING count(*) > 1"
        assert reader.query(doubles).rows == ()
        leased = "SELECT source FROM schedule WHERE lease_until IS NOT NULL"
        assert reader.query(leased).rows == ()
        assert {row[0] for row in reader.query("SELECT state FROM schedule").rows} <= states
        failed = "SELECT source, reason FROM polls WHERE outcome IN ('failed', 'refused')"
        assert reader.query(failed).rows == ()
        lost = "SELECT count(*) FROM articles LEFT JOIN entries USING (entry_id)"
        assert reader.query(f"{lost} WHERE entries.entry_id IS NULL").rows == ((0,),)
    assert no_process_of(home), "something was left running"


def no_process_of(home: Path) -> bool:
    """Return whether everything that worked in `home` is gone."""
    for process in psutil.process_iter(["cmdline", "environ"]):
        environ = process.info["environ"] or {}
        if environ.get("NEWSBEAT_HOME") == str(home) or environ.get("PREFECT_HOME", "").startswith(
            str(home)
        ):
            return False
    return True


class Kills:
    """Kills the worker at moments that chance decides, but the same at every run.

    Every second time it is killed while it starts, otherwise once it works again.
    """

    def __init__(self, n_kills: int) -> None:
        self.pids: list[int] = []
        self.left = n_kills
        self._chance = random.Random(SEED)
        self._kill_at: float | None = None

    def __call__(self, supervisor: Supervisor) -> None:
        pid = supervisor.worker_pid
        if not self.left or pid is None or pid in self.pids:
            return
        is_for_start = len(self.pids) % 2 == 1
        if self._kill_at is None and (is_for_start or supervisor.is_worker_ready):
            wait_s = self._chance.uniform(0.0, 4.0 if is_for_start else 7.0)
            self._kill_at = time.monotonic() + wait_s
        # Looked at about once a second: the moment falls where chance put it.
        if self._kill_at is not None and (left_s := self._kill_at - time.monotonic()) < 1.0:
            time.sleep(max(left_s, 0.0))
            os.kill(pid, signal.SIGKILL)
            self.pids.append(pid)
            self.left -= 1
            self._kill_at = None


class RunStates:
    """Remembers in which states the flow runs were when last looked at."""

    def __init__(self) -> None:
        self.counts: Counter[str] = Counter()

    def __call__(self, supervisor: Supervisor) -> None:
        assert supervisor.server is not None
        counts: Counter[str] = Counter()
        while True:
            body = {"limit": 200, "offset": counts.total(), "sort": "ID_DESC"}
            request = urllib.request.Request(
                f"{supervisor.server.api_url}/flow_runs/filter",
                json.dumps(body).encode(),
                {"Content-Type": "application/json"},
            )
            with urllib.request.urlopen(request, timeout=10) as answer:
                rows = json.load(answer)
            counts.update(row["state_type"] for row in rows)
            if len(rows) < 200:
                self.counts = counts
                return


def test_the_demo_stores_every_listed_entry_once(home: Path) -> None:
    states = RunStates()
    outcome = run_demo(home, minutes=0.5, quiet=True, port=find_free_port(), meddle=states)
    check_outcome(outcome, home)
    assert outcome.worker_restarts == 0
    assert {count.kind for count in outcome.sources} == {"feed", "sitemap", "list"}
    assert sum(count.failed_polls for count in outcome.sources) == 0
    assert states.counts["COMPLETED"] >= 12
    assert states.counts["CRASHED"] == states.counts["FAILED"] == 0
    # Nothing is cancelled in a run without pauses, kills and hands.
    assert states.counts["CANCELLED"] == 0
    assert json.loads(json.dumps(outcome.as_json()))["problems"] == []


def test_the_demo_finds_and_mends_the_sites_that_are_rebuilt_at_noon(home: Path) -> None:
    states = RunStates()
    # Two and a half hours from a quarter to eleven on, and the seconds the worker takes to start.
    outcome = run_demo(
        home, minutes=1.5, speed=100.0, quiet=True, port=find_free_port(), meddle=states
    )
    check_outcome(outcome, home)
    redesigned, half = sorted(outcome.rebuilt, key=lambda site: site.layout)
    assert (redesigned.layout, half.layout) == ("redesigned", "structured_half")
    assert redesigned.found.found_at is not None
    # The poll with the eighth page at the latest; on a busy machine it may bring more.
    assert redesigned.found.n_before < 8
    for site in outcome.rebuilt:
        if site.found.found_at is None:
            continue
        # From the right page on (a subtle change is dated a page or two early), and mended.
        assert "its text is wrong since 2025-03-04 1" in site.failure
        assert site.found.n_held >= site.found.n_to_find
        assert site.found.n_missed == 0
        assert site.found.n_held_before <= 3
        assert site.mended.n_restored >= site.found.n_held
        assert (site.mended.n_held, site.mended.is_open) == (0, False)
    assert states.counts["FAILED"] >= 1
    assert states.counts["CRASHED"] == 0


@pytest.mark.real
@pytest.mark.skipif(not REAL.is_dir(), reason="the real recordings are not here")
def test_the_demo_stores_every_entry_of_real_sources_once(home: Path) -> None:
    outcome = run_demo(home, minutes=0.5, quiet=True, port=find_free_port(), data=REAL)
    # A source's pages are some of another site, over and over: that is drift, and rightly seen.
    check_outcome(outcome, home, frozenset({"active", "drifted"}))
    with open_reader(read_settings(home, {})) as reader:
        sites = "SELECT count(DISTINCT left(text, 200)) FROM articles WHERE kind = 'article'"
        assert reader.query(sites).rows[0][0] > 100


def test_a_worker_killed_at_any_moment_loses_nothing_and_stores_nothing_twice(home: Path) -> None:
    kills = Kills(3)
    outcome = run_demo(home, minutes=0.75, quiet=True, port=find_free_port(), meddle=kills)
    assert len(set(kills.pids)) == 3
    log = (home / "data" / "warehouse" / "logs" / "worker.log").read_text()
    # A worker that finds the server too busy to answer starts again as well.
    assert outcome.worker_restarts >= 3, log[-5000:]
    check_outcome(outcome, home)


def test_a_folder_that_is_no_demos_is_not_wiped(tmp_path: Path) -> None:
    (tmp_path / "thesis.txt").write_text("years of work")
    with pytest.raises(ConfigError, match="it exists and is not a demo's"):
        run_demo(tmp_path, quiet=True)
    assert (tmp_path / "thesis.txt").exists()
