"""A page per source in Prefect's UI: its last polls, its lag, its next poll and why."""

from __future__ import annotations

import time
from dataclasses import dataclass
from uuid import UUID

from flows.collector import Collector
from models.records import PollResult
from models.source_page import (
    Headline,
    SourcePage,
    describe_standing,
    last_headlines,
    render_source_page,
)
from tasks.orchestrator import Orchestrator, artifact_key

POLLS_SHOWN = 20


@dataclass
class _Published:
    """The last artifact of a source, and whether something happened since.

    The headlines are of polls of this process: asking the warehouse would cost a scan.
    """

    artifact_id: UUID | None = None
    run_id: UUID | None = None
    result: PollResult | None = None
    headlines: tuple[Headline, ...] = ()
    is_well: bool = True
    at_wall: float = 0.0


class Publisher:
    """Keeps one Markdown artifact per source fresh, at most every ``worker.artifact_s``.

    Publishing costs the server about as much as a quarter of a poll, so it happens
    beside the polls and not in each: at once when a source turns from well to failing
    or back, otherwise when enough time has gone by.
    """

    def __init__(self, collector: Collector, orchestrator: Orchestrator) -> None:
        self._collector = collector
        self._orchestrator = orchestrator
        self._sources: dict[str, _Published] = {}

    def note(self, result: PollResult, run_id: UUID | None) -> None:
        """Remember that a source was polled: its page is due."""
        page = self._sources.setdefault(result.poll.source, _Published())
        page.result, page.run_id = result, run_id
        precisions = {new.entry_id: new.entry.published_precision for new in result.entries}
        found = [
            Headline(
                item.article.title or "",
                item.url,
                item.published_at,
                precisions.get(item.entry_id) or item.article.published_precision,
            )
            for item in result.articles
        ]
        page.headlines = last_headlines([*found, *page.headlines])

    async def publish(self) -> None:
        """Publish the pages that are due."""
        for source, page in list(self._sources.items()):
            if source not in self._collector.sources:
                del self._sources[source]
            elif page.result is not None and self._is_due(page):
                await self._publish_one(source, page, page.result)

    def _is_due(self, page: _Published) -> bool:
        aged = time.time() - page.at_wall >= self._collector.settings.worker.artifact_s
        return aged or _has_turned(page)

    async def _publish_one(self, source: str, page: _Published, result: PollResult) -> None:
        polls = await self._collector.write(
            self._collector.warehouse.read_recent_polls, source, POLLS_SHOWN
        )
        shown = SourcePage(
            source=self._collector.source(source),
            schedule=result.schedule,
            polls=tuple(polls),
            now=self._collector.clock.now(),
            headlines=page.headlines,
            deployment_path=self._orchestrator.deployment_path(source),
            speed=self._collector.clock.speed,
        )
        text, description = render_source_page(shown), describe_standing(shown)
        has_turned = _has_turned(page)
        page.result, page.is_well, page.at_wall = None, _is_well(result), time.time()
        # A turn makes a new page, so that the old ones tell when it broke and mended.
        is_renewed = (
            page.artifact_id is not None
            and not has_turned
            and await self._orchestrator.update_markdown(page.artifact_id, text, description)
        )
        if not is_renewed:
            page.artifact_id = await self._orchestrator.publish_markdown(
                artifact_key(source), text, description, page.run_id
            )


def _is_well(result: PollResult) -> bool:
    return not result.poll.is_failure


def _has_turned(page: _Published) -> bool:
    """Return whether the source broke or mended since its page was last made."""
    return page.result is not None and _is_well(page.result) != page.is_well
