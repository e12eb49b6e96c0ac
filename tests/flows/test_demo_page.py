"""The status page of a running demo, in a browser: what goes wrong is shown, and is cleared."""

from __future__ import annotations

import time
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import httpx
import pytest

from flows.commands.demonstrating import run_demo
from flows.commands.noticing import acknowledge
from flows.duties import MEND
from flows.supervisor import Supervisor
from tasks.prefect_server import find_free_port, start_run

pytestmark = [
    pytest.mark.slow,
    pytest.mark.timeout(900),
    pytest.mark.xdist_group("demo"),
]

URGENT = "lantern-daily"

RULES = f"""
[[rule]]
rule = "anything"
level = 1
any = ['\\w{{3,}}']
mode = "regex"
sources = ["{URGENT}"]
"""

PAUSED_AFTER_S = 8.0


# In one go each: the page renews itself under whoever reads it.
READ_CARDS = """
return ["urgent", "late", "broken"].map(name => document.getElementById(name)).map(
  card => [card.id, card.classList.contains("lit"), card.innerText])
"""
READ_COMMANDS = """
return [...document.querySelectorAll(`#${arguments[0]} code`)].map(e => e.textContent)
"""


@pytest.fixture
def home(reachable_folder: Path) -> Path:
    return reachable_folder / "demo-page"


@dataclass
class Watching:
    """Looks at the first screen every second; lets polls wait, and does what the screen advises.

    Attributes
    ----------
    seen, cleared
        Cards that were lit, with what they said first; and those that then were not.
    drifted, mended
        Sources that the screen said to extract again; and those it then had nothing against.
    """

    browser: Any
    seen: dict[str, str] = field(default_factory=dict)
    cleared: set[str] = field(default_factory=set)
    drifted: set[str] = field(default_factory=set)
    mended: set[str] = field(default_factory=set)
    complaints: list[str] = field(default_factory=list)
    _began: float = 0.0
    _is_paused: bool = False

    def __call__(self, supervisor: Supervisor) -> None:
        if not self._began:
            self._begin(supervisor)
        is_time = time.monotonic() - self._began > PAUSED_AFTER_S
        self._set_paused(supervisor, is_time and "late" not in self.seen)
        self._look()
        for command in self._commands("urgent"):
            acknowledge(supervisor.settings, command.rpartition(" ")[2])
        self._mend(supervisor)

    def _begin(self, supervisor: Supervisor) -> None:
        self._began = time.monotonic()
        rules = supervisor.settings.home / "data" / "keywords" / "test.toml"
        rules.parent.mkdir(parents=True, exist_ok=True)
        rules.write_text(RULES, encoding="utf-8")
        assert supervisor.page is not None
        self.browser.get(supervisor.page.url)

    def _set_paused(self, supervisor: Supervisor, is_paused: bool) -> None:
        """Pause the work pool in Prefect, as people do who want no polls for a while."""
        if is_paused == self._is_paused:
            return
        assert supervisor.server is not None
        pool = supervisor.settings.prefect.work_pool
        url = f"{supervisor.server.api_url}/work_pools/{pool}"
        httpx.patch(url, json={"is_paused": is_paused}, trust_env=False).raise_for_status()
        self._is_paused = is_paused

    def _commands(self, card: str) -> list[str]:
        found: list[str] = self.browser.execute_script(READ_COMMANDS, card)
        return found

    def _mend(self, supervisor: Supervisor) -> None:
        """Set each site whose text is wrong right, once, by the run that the command starts."""
        assert supervisor.server is not None
        commands = self._commands("broken")
        advised = {each.rpartition(" ")[2] for each in commands if "reextract" in each}
        for source in advised - self.drifted:
            parameters = {"source": source, "action": "reextract", "adopt": True}
            start_run(supervisor.server.api_url, MEND.deployment, parameters)
        self.drifted |= advised
        self.mended |= self.drifted - {each.rpartition(" ")[2] for each in commands}

    def _look(self) -> None:
        for name, is_lit, text in self.browser.execute_script(READ_CARDS):
            if is_lit:
                self.seen.setdefault(name, text)
            elif name in self.seen:
                self.cleared.add(name)
        self.complaints += [entry["message"] for entry in self.browser.get_log("browser")]


def test_what_goes_wrong_in_a_demo_is_shown_and_cleared(browser: Any, home: Path) -> None:
    watching = Watching(browser)
    outcome = run_demo(home, minutes=2.5, quiet=True, port=find_free_port(), meddle=watching)
    assert outcome.problems == []
    assert "newsbeat ack" in watching.seen["urgent"]
    assert "its poll is overdue by" in watching.seen["late"]
    assert "drifted" in watching.seen["broken"]
    assert watching.cleared >= {"urgent", "late"}
    (redesigned,) = (site for site in outcome.rebuilt if site.layout == "redesigned")
    assert redesigned.source in watching.drifted & watching.mended
    assert redesigned.mended.n_restored >= redesigned.found.n_to_find > 0
    assert watching.complaints == []
