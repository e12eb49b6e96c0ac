"""The page of one source, as Markdown: what people see in Prefect's UI."""

from __future__ import annotations

import statistics
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime

from models.harmless import escape_markdown, one_line
from models.moments import place_in_order
from models.polling.fixed import spell_duration
from models.records import Precision, RecentPoll, Schedule, Source


@dataclass(frozen=True, slots=True)
class Headline:
    """An article as a source's page names it."""

    title: str
    url: str
    published_at: datetime | None
    published_precision: Precision | None = None


@dataclass(frozen=True, slots=True)
class SourcePage:
    """All that a source's page shows.

    Attributes
    ----------
    polls
        The last polls, newest first.
    now
        The present, on the product's clock.
    headlines
        The last articles, newest first; none where none is at hand.
    deployment_path
        Where on the same server the source's deployment is shown; left out where empty.
    speed
        Of the product's clock: other than 1, the times are those of a replay.
    """

    source: Source
    schedule: Schedule
    polls: tuple[RecentPoll, ...]
    now: datetime
    headlines: tuple[Headline, ...] = ()
    deployment_path: str = ""
    speed: float = 1.0


def render_source_page(page: SourcePage) -> str:
    """Return the page as Markdown: state, lag, next poll and why, articles, then polls."""
    source = page.source
    lines = [f"# {escape_markdown(source.title)}", "", _facts(page), ""]
    if page.speed != 1.0:
        lines += [f"*A replay, {page.speed:g} times as fast: times are recorded time.*", ""]
    lines += [
        f"- **State** {_state(page)}",
        f"- **Next poll** {_next_poll(page)}",
        f"- **Publication lag** {_lag(page.polls)}",
        f"- **Traffic** {_traffic(page.polls)}",
        "",
    ]
    if page.headlines:
        lines += ["**Last articles**", "", *map(_headline, page.headlines), ""]
    lines += [
        f"**Last {len(page.polls)} polls**",
        "",
        "| started (UTC) | outcome | listed | new | stored | KB | took | remark |",
        "|---|---|--:|--:|--:|--:|--:|---|",
        *(_row(poll) for poll in page.polls),
    ]
    return "\n".join(lines)


def last_headlines(headlines: Iterable[Headline], limit: int = 5) -> tuple[Headline, ...]:
    """Return the newest `limit` of `headlines`, newest first; undated ones come last."""
    return tuple(sorted(headlines, key=_place, reverse=True)[:limit])


def _place(headline: Headline) -> datetime:
    if headline.published_at is None:
        return datetime.min.replace(tzinfo=UTC)
    return place_in_order(headline.published_at, headline.published_precision)


def describe_standing(page: SourcePage) -> str:
    """Return how a source stands in one line, such as ``well; lag 2.4 min; next in 4 min: …``."""
    state = page.schedule.state
    if state != "active":
        reason = page.polls[0].reason if page.polls else ""
        standing = f"{state}: {one_line(reason)}" if reason else state
    elif lags := _lags(page.polls):
        standing = f"well; lag {spell_duration(statistics.fmean(lags))}"
    else:
        standing = "well"
    return f"{standing}; {one_line(page.schedule.reason)}"


def _facts(page: SourcePage) -> str:
    source = page.source
    facts = [f"<{source.url}>", source.kind]
    facts += [word for word in (source.language, source.country) if word]
    if page.deployment_path:
        facts.append(f"[its runs; pause it, or poll it now]({page.deployment_path})")
    return " · ".join(facts)


def _state(page: SourcePage) -> str:
    if page.schedule.state == "active":
        return "well"
    failures = page.schedule.consecutive_failures
    since = page.schedule.last_success_at
    last_good = f", last good poll {_at(since)}" if since else ""
    return f"**{page.schedule.state}** ({failures} failures in a row{last_good})"


def _next_poll(page: SourcePage) -> str:
    return f"{_at(page.schedule.due_at)} ({escape_markdown(page.schedule.reason)})"


def _at(moment: datetime) -> str:
    return f"{moment:%Y-%m-%d %H:%M:%S} UTC"


def _lags(polls: Sequence[RecentPoll]) -> list[float]:
    return [poll.mean_lag_s for poll in polls if poll.mean_lag_s is not None]


def _lag(polls: Sequence[RecentPoll]) -> str:
    lags = _lags(polls)
    if not lags:
        return "not known yet: no dated article in these polls"
    return f"{spell_duration(statistics.fmean(lags))} on average over these polls"


def _traffic(polls: Sequence[RecentPoll]) -> str:
    total = sum(poll.index_bytes + poll.article_bytes for poll in polls)
    empty = sum(poll.entries_new == 0 for poll in polls)
    return f"{total / 1e6:.2f} MB in {len(polls)} polls, {empty} of them with nothing new"


def _headline(headline: Headline) -> str:
    title = escape_markdown(headline.title or "(no title)")
    when = f"{headline.published_at:%m-%d %H:%M}" if headline.published_at else "undated"
    if not headline.url.startswith(("http://", "https://")):
        return f"- {when} {title}"
    # In pointed brackets nothing but these ends an address.
    url = headline.url.replace("<", "%3C").replace(">", "%3E").replace("\\", "%5C")
    return f"- {when} [{title}](<{url}>)"


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
