"""The page of one source, as Markdown: what people see in Prefect's UI."""

from __future__ import annotations

import statistics
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime

from models.harmless import escape_markdown
from models.polling.fixed import spell_duration
from models.records import RecentPoll, Schedule, Source


@dataclass(frozen=True, slots=True)
class SourcePage:
    """All that a source's page shows.

    Attributes
    ----------
    polls
        The last polls, newest first.
    now
        The present, on the product's clock.
    """

    source: Source
    schedule: Schedule
    polls: tuple[RecentPoll, ...]
    now: datetime


def render_source_page(page: SourcePage) -> str:
    """Return the page as Markdown: state, lag, next poll and why, then the last polls."""
    schedule, source = page.schedule, page.source
    lines = [
        f"# {escape_markdown(source.title)}",
        "",
        f"{_state(page)} · <{source.url}>",
        "",
        f"**Next poll** {_at(schedule.due_at)} ({escape_markdown(schedule.reason)})",
        "",
        f"**Publication lag** {_lag(page.polls)}",
        "",
        f"**Traffic** {_traffic(page.polls)}",
        "",
        "| started (UTC) | outcome | listed | new | stored | KB | took | remark |",
        "|---|---|--:|--:|--:|--:|--:|---|",
        *(_row(poll) for poll in page.polls),
    ]
    return "\n".join(lines)


def _state(page: SourcePage) -> str:
    if page.schedule.state == "active":
        return "well"
    failures = page.schedule.consecutive_failures
    since = page.schedule.last_success_at
    last_good = f", last good poll {_at(since)}" if since else ""
    return f"**{page.schedule.state}** ({failures} failures in a row{last_good})"


def _at(moment: datetime) -> str:
    return f"{moment:%Y-%m-%d %H:%M:%S} UTC"


def _lag(polls: Sequence[RecentPoll]) -> str:
    lags = [poll.mean_lag_s for poll in polls if poll.mean_lag_s is not None]
    if not lags:
        return "not known yet: no dated article in these polls"
    return f"{spell_duration(statistics.fmean(lags))} on average over these polls"


def _traffic(polls: Sequence[RecentPoll]) -> str:
    total = sum(poll.index_bytes + poll.article_bytes for poll in polls)
    empty = sum(poll.entries_new == 0 for poll in polls)
    return f"{total / 1e6:.2f} MB in {len(polls)} polls, {empty} of them with nothing new"


def _row(poll: RecentPoll) -> str:
    took_s = (poll.finished_at - poll.started_at).total_seconds()
    remark = poll.reason or ("possible loss" if poll.possible_loss else "")
    kilobytes = (poll.index_bytes + poll.article_bytes) / 1000
    status = f" {poll.http_status}" if poll.http_status not in (None, 200) else ""
    return (
        f"| {poll.started_at:%m-%d %H:%M:%S} | {poll.outcome}{status} | {poll.entries_listed}"
        f" | {poll.entries_new} | {poll.articles_stored} | {kilobytes:.1f} | {took_s:.1f} s"
        f" | {escape_markdown(remark)} |"
    )
