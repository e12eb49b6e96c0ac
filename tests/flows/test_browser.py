"""The status page in a real browser: light and dark, small and large, by keyboard, and fresh."""

from __future__ import annotations

import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest

from flows.page import make_page_server
from tasks.settings import PageSettings, Settings
from tasks.warehouse import Warehouse

pytest.importorskip("selenium", reason="selenium is not installed")

from selenium.common.exceptions import StaleElementReferenceException
from selenium.webdriver.common.by import By
from selenium.webdriver.common.keys import Keys
from selenium.webdriver.support.ui import WebDriverWait

pytestmark = [pytest.mark.slow, pytest.mark.xdist_group("browser")]

FRESH_S = 30.0
"""So long a change may take until the page shows it."""


@dataclass
class Press:
    """A warehouse that is served as a worker serves it, and its status page."""

    warehouse: Warehouse
    url: str

    def change(self, *statements: str) -> None:
        now = f"TIMESTAMPTZ '{datetime.now(UTC).isoformat()}'"
        for statement in statements:
            self.warehouse.query(statement.replace("@now", now))


@contextmanager
def serving(folder: Path, home: Path) -> Iterator[Press]:
    settings = Settings(home=home, page=PageSettings(port=0))
    shutil.copytree(folder, settings.folder)
    with (
        Warehouse.open(settings, "newsbeat worker") as warehouse,
        make_page_server(settings, is_watched=True) as server,
    ):
        warehouse.serve()
        yield Press(warehouse, server.url)


@pytest.fixture(scope="module")
def press(fortnight: Path, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Press]:
    with serving(fortnight, tmp_path_factory.mktemp("browser")) as opened:
        yield opened


def show(browser: Any, width: int, height: int = 900, scheme: str = "light") -> None:
    browser.execute_cdp_cmd(
        "Emulation.setDeviceMetricsOverride",
        {"width": width, "height": height, "deviceScaleFactor": 1, "mobile": width < 500},
    )
    scheme_feature = {"name": "prefers-color-scheme", "value": scheme}
    browser.execute_cdp_cmd("Emulation.setEmulatedMedia", {"features": [scheme_feature]})


def complaints(browser: Any) -> list[str]:
    """Return what the browser found wrong: scripts refused, styles refused, errors."""
    return [entry["message"] for entry in browser.get_log("browser")]


def card(browser: Any, name: str) -> str:
    return str(browser.find_element(By.ID, name).text)


PATHS = ["", "sources", "source/spit", "source/tide", "reports", "feeds", "no/such"]


@pytest.mark.parametrize("scheme", ["light", "dark"])
@pytest.mark.parametrize("width", [360, 1280])
@pytest.mark.parametrize("path", PATHS)
def test_a_page_fits_and_nothing_hostile_runs(browser, press, path, width, scheme):
    show(browser, width, scheme=scheme)
    browser.get(press.url + path)
    waiting(browser).until(
        lambda b: b.execute_script("return document.documentElement.scrollWidth") <= width
    )
    assert [each for each in complaints(browser) if "404" not in each] == []
    assert browser.find_elements(By.TAG_NAME, "img") == []


@pytest.mark.parametrize("scheme", ["light", "dark"])
@pytest.mark.parametrize("path", ["", "source/lantern"])
def test_every_text_stands_out_from_its_ground(browser, press, path, scheme):
    show(browser, 1280, scheme=scheme)
    browser.get(press.url + path)
    assert browser.execute_script(FIND_FAINT) == []


FIND_FAINT = """
const part = c => { c /= 255; return c <= 0.03928 ? c / 12.92 : ((c + 0.055) / 1.055) ** 2.4; };
const numbers = text => text.match(/[\\d.]+/g).map(Number);
const light = ([r, g, b]) => 0.2126 * part(r) + 0.7152 * part(g) + 0.0722 * part(b);
const ground = e => {
  for (; e; e = e.parentElement) {
    const [r, g, b, a = 1] = numbers(getComputedStyle(e).backgroundColor);
    if (a > 0) return [r, g, b];
  }
  return [255, 255, 255];
};
const faint = [];
for (const e of document.querySelectorAll("body *")) {
  const own = [...e.childNodes].some(n => n.nodeType === 3 && n.textContent.trim());
  if (!own || e.closest("title, .skip") || !e.getClientRects().length) continue;
  const style = getComputedStyle(e);
  const ink = light(numbers(e.closest("svg") ? style.fill : style.color));
  const paper = light(ground(e));
  const contrast = (Math.max(ink, paper) + 0.05) / (Math.min(ink, paper) + 0.05);
  if (contrast < 4.5) faint.push(`${e.tagName}.${e.getAttribute("class")} ${contrast.toFixed(2)}`);
}
return [...new Set(faint)];
"""


def test_it_can_be_used_by_keyboard_alone(browser, press):
    show(browser, 1280)
    browser.get(press.url)
    active = browser.switch_to.active_element
    active.send_keys(Keys.TAB)
    skip = browser.switch_to.active_element
    assert skip.text == "Skip to the content"
    assert skip.is_displayed()
    skip.send_keys(Keys.ENTER)
    assert browser.switch_to.active_element.get_attribute("id") == "main"
    reached = set()
    for _ in range(12):
        browser.switch_to.active_element.send_keys(Keys.TAB)
        element = browser.switch_to.active_element
        outline = element.value_of_css_property("outline-style")
        reached.add((element.tag_name, outline))
    assert ("a", "solid") in reached


def test_a_figure_of_a_chart_opens_by_keyboard_and_stays_open(browser, press):
    show(browser, 1280)
    browser.get(press.url)
    summary = browser.find_element(By.CSS_SELECTOR, "#figures-polls summary")
    summary.send_keys(Keys.ENTER)
    press.change("UPDATE sources SET title = title || '!' WHERE source = 'harbour'")
    press.change("UPDATE schedule SET state = 'failing' WHERE source = 'quay'")
    waiting(browser).until(lambda b: "quay" in card(b, "broken"))
    assert browser.find_element(By.ID, "figures-polls").get_attribute("open")
    press.change("UPDATE schedule SET state = 'active' WHERE source = 'quay'")


def waiting(browser: Any) -> Any:
    return WebDriverWait(browser, FRESH_S, 0.3, [StaleElementReferenceException])


def test_late_drifting_and_urgent_come_and_go_by_themselves(browser, press):
    show(browser, 1280)
    press.change(
        "UPDATE schedule SET due_at = @now + INTERVAL 1 DAY, state = 'active'",
        "DELETE FROM drift_states",
        "DELETE FROM rule_hits",
        "UPDATE polls SET possible_loss = false, outcome = 'empty'",
    )
    browser.get(press.url)
    heading = waiting(browser)
    heading.until(lambda b: b.find_element(By.TAG_NAME, "h1").text == "All 6 sources are well")

    press.change(
        "UPDATE schedule SET due_at = @now - INTERVAL 30 MINUTE WHERE source = 'moor'",
        "INSERT INTO drift_states (source, updated_at, standing, learn_from, clean_before, reason,"
        " n_pages, n_unchecked) VALUES"
        " ('quay', @now, 'layout', '', '', 'a list took its place', 90, 0)",
        "INSERT INTO notices (notice_id, kind, subject, source, level, channel, raised_at) VALUES"
        " ('n', 'hit', 'Dam breaks <b>above</b> the town', 'harbour', 1, 'mail', @now)",
    )
    heading.until(lambda b: b.find_element(By.TAG_NAME, "h1").text == "1 at once, 1 broken, 1 late")
    assert "moor its poll is overdue by 30 min" in card(browser, "late")
    assert "quay drifted, the layout changed: a list took its place" in card(browser, "broken")
    assert "Dam breaks <b>above</b> the town" in card(browser, "urgent")
    assert "1 at once, 1 broken, 1 late" in browser.title

    press.change(
        "UPDATE schedule SET due_at = @now + INTERVAL 1 DAY WHERE source = 'moor'",
        "UPDATE drift_states SET standing = 'watching'",
        "UPDATE notices SET closed_at = @now",
    )
    heading.until(lambda b: b.find_element(By.TAG_NAME, "h1").text == "All 6 sources are well")
    assert complaints(browser) == []


def test_it_stays_as_it_is_when_asked_to(browser, press):
    show(browser, 1280)
    browser.get(press.url)
    button = browser.find_element(By.ID, "renewal")
    button.click()
    assert button.get_attribute("aria-pressed") == "false"
    button.click()
    assert button.get_attribute("aria-pressed") == "true"
