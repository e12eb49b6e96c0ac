"""`newsbeat poll SOURCE`: one poll in the foreground, without any server."""

from __future__ import annotations

import asyncio
from dataclasses import dataclass
from typing import Any

from flows.alerting import Alerter
from flows.collector import Collector, unknown_source
from flows.poll import poll_source
from flows.supervisor import running_supervisor
from flows.wording import describe_poll
from models.errors import NewsbeatError
from models.harmless import one_line
from models.records import PollResult
from tasks.catalogue import Catalogue, read_catalogue
from tasks.settings import Settings


@dataclass(frozen=True, slots=True)
class PollReport:
    """What one poll came to, for people and programs."""

    result: PollResult

    @property
    def is_good(self) -> bool:
        """Whether the source could be read."""
        return not self.result.poll.is_failure

    def as_text(self) -> str:
        """Return the poll in a few lines."""
        poll = self.result.poll
        lines = [f"{poll.source}: {describe_poll(self.result)}"]
        for item in self.result.articles:
            title = one_line(item.article.title or "(no title)")
            lines.append(f"  {item.published_at or 'undated'!s:25} {title}")
        if poll.outcome == "refused" and poll.reason.endswith("this source does not allow"):
            lines.append("  where it is a site of yours: allow_private = true in its [source.http]")
        titles = {item.article_id: item.article.title for item in self.result.articles}
        for hit in self.result.hits:
            title = one_line(titles.get(hit.article_id) or "(no title)")
            lines.append(f"  level {hit.level}  {hit.rule}: {title}")
            lines.append(f"           {one_line(hit.explanation)}")
        lines.append(f"  {poll.decision.reason} (at {poll.decision.due_at:%Y-%m-%d %H:%M:%S} UTC)")
        return "\n".join(lines)

    def as_json(self) -> dict[str, Any]:
        """Return the poll as JSON-ready values."""
        poll = self.result.poll
        return {
            "poll_id": poll.poll_id,
            "source": poll.source,
            "outcome": poll.outcome,
            "reason": poll.reason,
            "http_status": poll.http_status,
            "entries_listed": poll.entries_listed,
            "entries_new": poll.entries_new,
            "articles_stored": poll.articles_stored,
            "articles_owed": len(self.result.pending),
            "possible_loss": poll.possible_loss,
            "index_bytes": poll.index_bytes,
            "article_bytes": poll.article_bytes,
            "articles": [
                {
                    "url": item.url,
                    "title": item.article.title,
                    "published_at": item.published_at,
                    "characters": len(item.article.text or ""),
                    "extraction": item.article.extraction,
                }
                for item in self.result.articles
            ],
            "hits": [
                {
                    "rule": hit.rule,
                    "level": hit.level,
                    "matched": hit.matched,
                    "sentence": hit.sentence,
                    "why": hit.explanation,
                }
                for hit in self.result.hits
            ],
            "next_due_at": poll.decision.due_at,
            "why": poll.decision.reason,
        }


def poll_once(settings: Settings, source: str) -> PollReport:
    """Poll `source` once and return what came of it.

    Raises
    ------
    ConfigError
        If the source is not in the catalogue.
    NewsbeatError
        If newsbeat is up here: its worker is the one that polls.
    WarehouseError
        If another process holds the warehouse.
    """
    catalogue = read_catalogue(settings)
    if source not in {known.source for known in catalogue.sources}:
        for problem in catalogue.problems:
            if problem.value == source or problem.key.startswith(f"{source}."):
                raise problem
        known = [known.source for known in catalogue.sources]
        raise unknown_source(source, known, catalogue.problems)
    if running_supervisor(settings) is not None:
        raise NewsbeatError(
            "newsbeat is up here, and one process polls at a time; to poll at once, open"
            f" Deployments › {source} in Prefect's pages, and Run › Quick run"
        )
    return asyncio.run(_poll_once(settings, catalogue, source))


async def _poll_once(settings: Settings, catalogue: Catalogue, name: str) -> PollReport:
    async with Collector(settings, catalogue, "newsbeat poll") as collector:
        await collector.sync_catalogue()
        # First: a channel that nothing can be sent to is said before anything is fetched.
        alerter = Alerter(collector)
        result = await poll_source(collector, collector.source(name))
        await alerter.settle()
    if result is None:
        raise NewsbeatError(f"{name} is being polled by another run")
    return PollReport(result)
