"""The status page: read the warehouse now and then, and make pages of what it says.

Served by `newsbeat up` from the process that watches the others, so that it is there
when the worker is not, and says so. It asks the warehouse through the live endpoint,
in the worker's database threads and beside its event loop, at most every few seconds,
and not at all while nobody looks.
"""

from __future__ import annotations

import json
import re
import threading
import time
from collections import OrderedDict
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any
from urllib.parse import urlencode

from flows.commands.reporting import StatusReport, describe_budget, report_from
from flows.exporting import render_feed
from models.board import (
    draw_forecast,
    draw_lags,
    draw_levels,
    draw_polls,
    draw_price,
    draw_spending,
    draw_traffic,
    draw_verdicts,
)
from models.drawing import Chart
from models.errors import NewsbeatError, WarehouseError
from models.overview import DAYS_SHOWN, ForecastHour, Overview, SourceFacts, with_targets
from models.records import Source, SourceStatus
from models.troubles import describe_cards, make_cards
from tasks.catalogue import catalogue_stamp, read_catalogue
from tasks.checks import FOLDER, list_documents
from tasks.duck.endpoint import read_endpoint
from tasks.duck.lease import read_holder
from tasks.files import list_folders, read_bytes
from tasks.overview import read_overview, read_source_facts
from tasks.pageserver import HTML, Answer, PageServer
from tasks.searches import read_searches
from tasks.settings import Settings
from tasks.templates import ALONE, SERVED, alone_policy, read_asset, render_alone, render_page
from tasks.warehouse_reader import WarehouseReader, open_reader

FRESH_S = 3.0
"""Wall seconds for which what was read is shown again without asking, at least."""

MOST_SHARE = 0.1
"""Share of the time that may be spent reading: a large warehouse is asked less often."""

MOST_KEPT = 64
"""Source pages kept for those seconds."""

MOST_SHOWN = 25
"""Lines of a list on the first page."""

PAGE_ROWS = 100
"""Sources on a page of the list."""

STATES = ("", "troubled", "active", "failing", "drifted", "gone", "paused")

ORDERS: dict[str, Callable[[SourceStatus], Any]] = {
    "name": lambda row: row.source,
    "lag": lambda row: -(row.median_lag_s or 0.0),
    "articles": lambda row: -row.n_articles_24h,
    "next poll": lambda row: (row.due_at is None, row.due_at),
    "last poll": lambda row: (row.last_poll_at is not None, row.last_poll_at),
}

ASSETS = {
    "/page.css": "text/css; charset=utf-8",
    "/page.js": "text/javascript; charset=utf-8",
    "/icon.svg": "image/svg+xml",
}

FEED = re.compile(r"/feed/([a-z0-9-]+)\.(atom|json)")

FEED_FORMS = {
    "atom": ("atom", "application/atom+xml; charset=utf-8"),
    "json": ("json-feed", "application/feed+json; charset=utf-8"),
}

MOST_REPORTS = 100
"""Reports listed, the latest; their files have all."""

REPORT_TYPES = {
    "html": HTML,
    "md": "text/plain; charset=utf-8",
    "csv": "text/csv; charset=utf-8",
    "parquet": "application/vnd.apache.parquet",
}

REPORT_FILE = re.compile(r"(\d{4}-\d\d-\d\d)/[a-z]+\.(html|md|csv|parquet)", re.ASCII)


CHECK_FILE = re.compile(r"[a-z0-9-]+\.html", re.ASCII)
CHECK_POLICY = (
    "default-src 'none'; style-src 'unsafe-inline'; form-action 'none'; base-uri 'none';"
    " frame-ancestors 'none'"
)
"""A document of Great Expectations has its style in it, and needs nothing else."""


@dataclass(frozen=True, slots=True)
class Standing:
    """How everything stood when the warehouse was last asked.

    Attributes
    ----------
    trouble
        Why it could not be asked since; empty where it could.
    """

    report: StatusReport
    overview: Overview
    trouble: str = ""


class StatusPages:
    """Makes the answer to every address of the status page.

    Parameters
    ----------
    settings
        All settings.
    is_watched
        Somebody starts the worker again when it dies. Until then the file is left alone:
        a worker cannot open it while anybody reads it.
    """

    def __init__(self, settings: Settings, is_watched: bool = False) -> None:
        self.settings = settings
        self._is_watched = is_watched
        self._lock = threading.Lock()
        self._reader: WarehouseReader | None = None
        self._standing: Standing | None = None
        self._standing_until_s = 0.0
        self._facts: OrderedDict[str, tuple[float, SourceFacts]] = OrderedDict()
        self._catalogue: dict[str, Source] = {}
        self._stamp: object = None

    def answer(self, path: str, query: Mapping[str, str]) -> Answer:
        """Return what is shown at `path`; may be called from several threads."""
        if path in ASSETS:
            return Answer(read_asset(path[1:]), ASSETS[path])
        try:
            with self._lock:
                return self._answer(path, query)
        except NewsbeatError as error:
            return self._message("Nothing to show yet", str(error), 503)

    def _answer(self, path: str, query: Mapping[str, str]) -> Answer:
        if path == "/":
            return Answer(self.render_overview())
        if path == "/sources":
            return Answer(self._render_sources(query))
        if path == "/status.json":
            found = self._read_standing().report.as_json()
            return Answer(json.dumps(found, ensure_ascii=False, default=str), "application/json")
        if path == "/feeds":
            return Answer(self._render_feeds())
        if (feed := FEED.fullmatch(path)) is not None:
            return self._send_feed(feed[1], feed[2])
        if path == "/reports":
            return Answer(self._render_reports())
        if path.startswith("/reports/"):
            return self._send_report(path.removeprefix("/reports/"))
        if path.startswith("/checks/"):
            return self._send_check(path.removeprefix("/checks/"))
        if path.startswith("/source/"):
            return self._show_source(path.removeprefix("/source/"))
        return self._message("No such page", f"There is nothing at {path}.", 404)

    def _message(self, title: str, words: str, status: int) -> Answer:
        page = self._render("message.html", here="", title=title, words=words)
        return Answer(page, HTML, status)

    def _render(self, template: str, here: str, **values: Any) -> str:
        common = {"here": here, "speed": self.settings.clock.speed, "days": DAYS_SHOWN}
        make = render_alone if values.get("frame") == ALONE else render_page
        return make(template, common | values)

    # Reading

    def _read_standing(self) -> Standing:
        """Return how everything stands; the last that is known where it cannot be read."""
        began_s, before = time.monotonic(), self._standing
        if began_s < self._standing_until_s and before is not None:
            return before
        try:
            with self._reading() as reader:
                report = report_from(reader, self.settings.clock)
                overview = read_overview(reader, report.now)
        except NewsbeatError as error:
            if before is None:
                raise
            self._standing = Standing(before.report, before.overview, str(error))
        else:
            self._standing = Standing(report, overview)
        self._standing_until_s = _fresh_until(began_s)
        return self._standing

    @contextmanager
    def _reading(self) -> Iterator[WarehouseReader]:
        """Give a reader; that of a worker is kept, as a new one takes a third of a second."""
        if self._is_watched and read_holder(self.settings.folder) is None:
            self._forget_reader()
            raise WarehouseError(
                str(self.settings.database),
                "the worker does not run yet, or has died",
                "It is being started; this page looks again by itself",
            )
        kept = self._reader
        if kept is not None and kept.endpoint != read_endpoint(self.settings.folder):
            self._forget_reader()
        # A file that stays open could not be opened by a worker: only a worker's is kept.
        reader = self._reader = self._reader or open_reader(self.settings)
        is_good = False
        try:
            yield reader
            is_good = True
        finally:
            if not (is_good and reader.is_live):
                self._forget_reader()

    def _forget_reader(self) -> None:
        if self._reader is not None:
            self._reader.close()
            self._reader = None

    def _read_facts(self, source: str, standing: Standing) -> SourceFacts:
        began_s = time.monotonic()
        until_s, facts = self._facts.get(source, (0.0, SourceFacts()))
        if began_s >= until_s:
            with self._reading() as reader:
                facts = read_source_facts(reader, source, standing.report.now)
            self._facts[source] = (_fresh_until(began_s), facts)
            self._facts.move_to_end(source)
            while len(self._facts) > MOST_KEPT:
                self._facts.popitem(last=False)
        return facts

    def _read_catalogue(self) -> dict[str, Source]:
        stamp = catalogue_stamp(self.settings)
        if stamp != self._stamp:
            self._stamp = stamp
            sources = read_catalogue(self.settings).sources
            self._catalogue = {source.source: source for source in sources}
        return self._catalogue

    def _targets(self) -> dict[str, float]:
        """Return the lag that people asked for, of each source for which they did."""
        budget = self.settings.budget
        targets = {}
        for name, source in self._read_catalogue().items():
            of_tags = [budget.lag_by_tag[tag] for tag in source.tags if tag in budget.lag_by_tag]
            wanted = [source.poll.target_lag_s or 0.0, min(of_tags, default=0.0)]
            wanted.append(budget.target_lag_s)
            target_s = next((each for each in wanted if each), 0.0)
            if target_s:
                targets[name] = target_s
        return targets

    # Pages

    def render_overview(self, frame: str = SERVED) -> str:
        """Return the first page.

        Parameters
        ----------
        frame
            Template it stands in: that of the server, or one that needs no other file.
        """
        standing = self._read_standing()
        report, overview = standing.report, standing.overview
        lags = with_targets(overview.lags, self._targets())
        overview = replace(overview, lags=lags)
        cards = make_cards(overview, report.broken, report.late)
        headline = describe_cards(cards, len(report.rows), len(report.unread))
        trouble = standing.trouble
        if not trouble and not report.is_live:
            trouble = "No worker runs here: nothing is collected. `newsbeat up` starts it."
        if trouble and not any(card.troubles for card in cards):
            headline = "Nothing is collected now"
        return self._render(
            "overview.html",
            here="now",
            frame=frame,
            linked=frame == SERVED,
            most_shown=MOST_SHOWN,
            headline=headline,
            n_troubles=sum(len(card.troubles) for card in cards) + bool(trouble),
            standing=report.in_one_line(),
            trouble=trouble,
            cards=cards,
            charts=self._draw_overview(overview, report),
            lags=lags,
            within=share_within(overview.forecast_hours),
            budget_words=_budget_words(report),
            checks=overview.checks,
            held=overview.held,
            hits=overview.hits,
            notices=overview.notices,
            losses=overview.losses,
        )

    def _draw_overview(self, overview: Overview, report: StatusReport) -> dict[str, Chart]:
        now = overview.now
        target_s, name = self.settings.budget.target_lag_s or None, "target"
        if target_s is None and report.budget is not None:
            target_s, name = report.budget.expected_lag_s, "expected wait for a poll"
        return {
            "lag": draw_lags(overview.lag_hours, now, target_s, name),
            "polls": draw_polls(overview.poll_hours, now),
            "traffic": draw_traffic(overview.poll_hours, now),
            "forecast": draw_forecast(overview.forecast_hours, now),
            "spending": draw_spending(overview.budgets, now),
            "price": draw_price(overview.budgets, now),
            "suspicious": draw_verdicts(overview.verdict_days, now),
            "levels": draw_levels(overview.level_days, now),
        }

    def _render_sources(self, query: Mapping[str, str]) -> str:
        report = self._read_standing().report
        wanted = {
            "q": query.get("q", "")[:100],
            "state": _one_of(query.get("state", ""), STATES),
            "sort": _one_of(query.get("sort", "name"), tuple(ORDERS)),
        }
        rows = sorted(_chosen(report, wanted), key=ORDERS[wanted["sort"]])
        n_pages = max(-(-len(rows) // PAGE_ROWS), 1)
        page = min(max(_number(query.get("page", "")), 1), n_pages)
        return self._render(
            "sources.html",
            here="sources",
            rows=rows[(page - 1) * PAGE_ROWS : page * PAGE_ROWS],
            n_found=len(rows),
            n_pages=n_pages,
            page=page,
            wanted=wanted,
            states=STATES,
            orders=tuple(ORDERS),
            link_to=lambda number: f"/sources?{urlencode(wanted | {'page': number})}",
        )

    def _render_feeds(self) -> str:
        searches, problems = read_searches(self.settings)
        return self._render(
            "feeds.html",
            here="feeds",
            searches=list(searches.values()),
            problems=[str(problem) for problem in problems],
        )

    def _send_feed(self, name: str, ending: str) -> Answer:
        """Return what a search finds; kept as long as what a source's page shows."""
        searches, _ = read_searches(self.settings)
        if name not in searches:
            return self._message("No such search", f"No search is called {name}.", 404)
        form, content_type = FEED_FORMS[ending]
        with self._reading() as reader:
            text = render_feed(reader, searches[name], form, self.settings.clock.now())
        return Answer(text, content_type)

    @property
    def _reports_folder(self) -> Path:
        return self.settings.home / self.settings.report.folder

    def _render_reports(self) -> str:
        days = {
            day: [name for name in names if REPORT_FILE.fullmatch(f"{day}/{name}")]
            for day, names in list_folders(self._reports_folder).items()
        }
        shown = [(day, names) for day, names in days.items() if "report.html" in names]
        return self._render("reports.html", here="reports", reports=shown[::-1][:MOST_REPORTS])

    def _send_report(self, path: str) -> Answer:
        """Return a file of a report; it was written by us, but may lie there changed."""
        found = REPORT_FILE.fullmatch(path)
        body = read_bytes(self._reports_folder / path) if found else None
        if found is None or body is None:
            return self._message("No such report", f"There is nothing at /reports/{path}.", 404)
        content_type = REPORT_TYPES[found[2]]
        file_name = "" if found[2] in ("html", "md") else f"{found[1]}-{path[11:]}"
        policy = f"{alone_policy()}; frame-ancestors 'none'"
        return Answer(body, content_type, policy=policy, file_name=file_name)

    def _send_check(self, name: str) -> Answer:
        """Return the findings of a check, as they were written when it was made."""
        found = CHECK_FILE.fullmatch(name)
        body = read_bytes(self.settings.folder / FOLDER / name) if found else None
        if body is None:
            return self._message("No such check", f"There is nothing at /checks/{name}.", 404)
        return Answer(body, policy=CHECK_POLICY)

    def _show_source(self, name: str) -> Answer:
        standing = self._read_standing()
        status = {row.source: row for row in standing.report.rows}.get(name)
        if status is None:
            return self._message("No such source", f"No source is called {name}.", 404)
        facts, now = self._read_facts(name, standing), standing.report.now
        known, target_s = self._read_catalogue().get(name), self._targets().get(name)
        page = self._render(
            "source.html",
            here="sources",
            status=status,
            trouble=standing.trouble,
            address=known.url if known else "",
            target_s=target_s,
            is_late=status in standing.report.late,
            facts=facts,
            documents=list_documents(self.settings, name),
            decisions=[_laid_out(decision) for decision in facts.decisions],
            charts={
                "lag": draw_lags(facts.lag_hours, now, target_s),
                "forecast": draw_forecast(facts.forecast_hours, now),
                "suspicious": draw_verdicts(facts.verdict_days, now),
            },
        )
        return Answer(page)


def _fresh_until(began_s: float) -> float:
    """Return until when what was read from `began_s` to now is shown again."""
    now_s = time.monotonic()
    return now_s + max(FRESH_S, (now_s - began_s) / MOST_SHARE)


def _one_of(word: str, allowed: tuple[str, ...]) -> str:
    return word if word in allowed else allowed[0]


def _number(word: str) -> int:
    return int(word) if word.isascii() and word.isdigit() and len(word) < 10 else 1


def _chosen(report: StatusReport, wanted: Mapping[str, str]) -> list[SourceStatus]:
    """Return the sources that a filter lets through."""
    word, state = wanted["q"].casefold(), wanted["state"]
    troubled = {row.source for row in (*report.broken, *report.late, *report.lossy)}
    return [
        row
        for row in report.rows
        if (word in row.source.casefold() or word in row.title.casefold())
        and (row.source in troubled if state == "troubled" else not state or row.state == state)
    ]


def share_within(hours: tuple[ForecastHour, ...]) -> float | None:
    """Return how many of the hours that are over lay in their range; None without any."""
    over = [hour for hour in hours if hour.actual is not None]
    total = sum(hour.n_sources for hour in over)
    return sum(hour.n_within for hour in over) / total if total else None


def _budget_words(report: StatusReport) -> str:
    if report.budget is None:
        return "No budget was reckoned yet: the worker does it when it starts."
    return f"{describe_budget(report.budget).capitalize()}."


def _laid_out(decision: str) -> str:
    try:
        return json.dumps(json.loads(decision), ensure_ascii=False, indent=1)
    except ValueError:
        return decision


def make_page_server(settings: Settings, is_watched: bool = False) -> PageServer:
    """Return a server of the status page, yet to be started; parameters as `StatusPages`.

    Raises
    ------
    ConfigError
        If it may not listen where the settings say.
    """
    return PageServer(settings.page, StatusPages(settings, is_watched).answer)
