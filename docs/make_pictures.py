"""Make the pictures of the README: run a demo, and photograph it with headless Chromium.

Needs the development tools, and chromium with its driver (``apt install chromium
chromium-driver``). Then, from the repository's root::

    .venv/bin/python docs/make_pictures.py          all of them
    .venv/bin/python docs/make_pictures.py page     the status page and the report alone
"""

import json
import re
import shutil
import signal
import subprocess
import sys
import tempfile
import time
import urllib.request
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import UTC, datetime
from pathlib import Path

from rich.console import Console
from selenium import webdriver
from selenium.webdriver.chrome.options import Options
from selenium.webdriver.chrome.service import Service

from flows.commands.reporting import read_report
from flows.daily import write_day_report
from flows.page import make_page_server
from tasks.settings import BudgetSettings, PageSettings, Settings, read_settings
from tasks.warehouse import Warehouse

PICTURES = Path(__file__).parent / "pictures"
SOURCE = "harbour-courier"
QUIET = "--headless --no-sandbox --disable-gpu --no-first-run --disable-sync --hide-scrollbars"
NO_CALLS_HOME = "--disable-background-networking --disable-component-update --disable-quic"
WINDOW = "--window-size=1280,1060"
SCREEN = "--window-size=1280,1000"
PRESS = Path(__file__).parents[1] / "tests" / "samples" / "fortnight.sql"
LOAD_S = 6.0
"""A page of Prefect's shows itself piece by piece."""


@contextmanager
def running_demo(folder: Path) -> Iterator[Path]:
    """Start a demo in `folder` and yield its home once everything in it was counted."""
    command = [Path(sys.executable).with_name("newsbeat"), "demo", "--keep", "--home", folder]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as demo:
        try:
            for line in demo.stdout or ():
                print(line, end="")
                if line.startswith("It goes on"):
                    break
            yield folder / "demo"
        finally:
            demo.send_signal(signal.SIGINT)
            demo.communicate()


def photograph(shots: dict[str, str], part: str = "body", window: str = WINDOW) -> None:
    """Save a picture of a part of each page: ``{file name: address}``."""
    options = Options()
    for argument in (*QUIET.split(), *NO_CALLS_HOME.split(), window):
        options.add_argument(argument)
    # The driver named here, as Selenium asks the web for one otherwise.
    driver = Service(shutil.which("chromedriver"))
    with tempfile.TemporaryDirectory() as profile:
        options.add_argument(f"--user-data-dir={profile}")
        with webdriver.Chrome(options, driver) as browser:
            for name, url in shots.items():
                browser.get(url)
                time.sleep(LOAD_S)
                if window == SCREEN:
                    # What people see first, and no more.
                    browser.save_screenshot(str(PICTURES / name))
                else:
                    browser.find_element("css selector", part).screenshot(str(PICTURES / name))


def draw_status(home: Path, file: Path) -> None:
    """Write what ``newsbeat status`` shows as a page that holds an SVG drawing."""
    with file.with_suffix(".txt").open("w") as sink:
        console = Console(record=True, width=140, force_terminal=True, file=sink)
        console.print(read_report(read_settings(home)))
    svg = console.export_svg(title="newsbeat status")
    # Without the fonts of a stranger's server, the machine's own take their place.
    svg = re.sub(r"@font-face \{.*?\}", "", svg, flags=re.DOTALL)
    svg = svg.replace("font-family: Fira Code", "font-family: DejaVu Sans Mono")
    file.write_text(f'<meta charset="utf-8"><body style="margin: 0">{svg}', encoding="utf-8")


def artifact_id(api_url: str) -> str:
    """Return the id of the page of `SOURCE`."""
    request = urllib.request.Request(
        f"{api_url}/artifacts/latest/filter", b"{}", {"Content-Type": "application/json"}
    )
    with urllib.request.urlopen(request) as answer:
        pages = {page["key"]: page["latest_id"] for page in json.load(answer)}
    return str(pages[f"source-{SOURCE}"])


def draw_pages(folder: Path) -> None:
    """Photograph status page and report over two weeks in which everything went wrong once."""
    settings = Settings(folder, page=PageSettings(port=0), budget=BudgetSettings(target_lag_s=300))
    now = f"TIMESTAMPTZ '{datetime.now(UTC).isoformat()}'"
    with Warehouse.open(settings, "newsbeat worker") as warehouse:
        for statement in PRESS.read_text(encoding="utf-8").split(";\n"):
            if statement.strip():
                warehouse.query(statement.replace("@now", now))
        warehouse.serve()
        written = write_day_report(settings, datetime.now(UTC).date())
        with make_page_server(settings, is_watched=True) as server:
            photograph({"page.png": server.url}, "body", SCREEN)
        report = written.folder / "report.html"
        photograph({"report.png": report.as_uri()}, "body", SCREEN)


def main() -> None:
    """Make them all, or those of the pages alone."""
    PICTURES.mkdir(exist_ok=True)
    with tempfile.TemporaryDirectory() as folder:
        draw_pages(Path(folder))
    if sys.argv[1:] == ["page"]:
        return
    with tempfile.TemporaryDirectory() as folder, running_demo(Path(folder)) as home:
        prefect = read_settings(home).prefect
        url = f"http://{prefect.host}:{prefect.port}"
        draw_status(home, Path(folder) / "status.html")
        photograph({"status.png": (Path(folder) / "status.html").as_uri()}, part="svg")
        page = f"{url}/artifacts/artifact/{artifact_id(f'{url}/api')}"
        photograph({"prefect-sources.png": f"{url}/deployments", "prefect-source.png": page})


if __name__ == "__main__":
    main()
