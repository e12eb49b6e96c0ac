"""The articles behind new entries, fetched, extracted or owed: the second half of a poll."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Iterable
from dataclasses import replace
from datetime import datetime, timedelta

from flows.collector import Collector
from flows.findings import Findings, keep_page
from flows.watching import ReadPage
from models.errors import (
    FetchError,
    HeldFetchError,
    ParseError,
    PermanentFetchError,
    TransientFetchError,
    WarehouseError,
)
from models.identity import article_id
from models.kinds import tells_whole
from models.records import (
    Article,
    Entry,
    NotModified,
    Page,
    PageClass,
    PendingArticle,
    StoredArticle,
)

logger = logging.getLogger("newsbeat.poll")


async def read_articles(collector: Collector, findings: Findings, deadline: float) -> None:
    """Fetch the pages of new and changed entries, and of those still owed.

    What does not fit into the poll, by number or by time (`deadline`, of the event loop's
    clock), is owed: stored as pending now, and fetched by the next polls.
    """
    if tells_whole(findings.source):
        await _take_posts(collector, findings)
        return
    room = collector.settings.extract.articles_per_poll
    now = collector.clock.now()
    rows = await collector.write(
        collector.warehouse.read_pending, findings.source.source, now, room
    )
    owed = {item.entry_id: item for item in rows}
    found = [*findings.entries, *findings.relisted]
    wanted = [findings.wanted(item, owed.pop(item.entry_id, None)) for item in found]
    wanted += owed.values()
    findings.pending += [replace(item, next_try_at=now) for item in wanted[room:]]
    try:
        async with asyncio.timeout_at(deadline):
            await _read_each(collector, findings, wanted[:room])
    except TimeoutError:
        findings.owe(wanted[:room], now, "no time was left for it")


async def _take_posts(collector: Collector, findings: Findings) -> None:
    """Store what the listing brings whole, and nothing else: no page is fetched."""
    for new in (*findings.entries, *findings.relisted):
        _take_post(collector, findings, findings.wanted(new), new.entry)
    settled = set(findings.settled)
    rows = await collector.write(
        collector.warehouse.read_pending,
        findings.source.source,
        collector.clock.now(),
        collector.settings.extract.articles_per_poll,
    )
    for item in rows:
        if item.entry_id not in settled:
            _take_post(collector, findings, item)


def _take_post(
    collector: Collector, findings: Findings, item: PendingArticle, entry: Entry | None = None
) -> None:
    note = entry.note if entry else item.reason
    article = Article(
        title=item.title,
        text=item.summary,
        authors=entry.authors if entry else (),
        language=findings.source.language,
        kind="article" if item.summary else "empty",
        extraction="entry",
        warnings=(note,) if note and not item.summary else (),
    )
    _keep(collector, findings, item, article, page=None)


async def _read_each(
    collector: Collector, findings: Findings, wanted: Iterable[PendingArticle]
) -> None:
    try:
        async with asyncio.TaskGroup() as group:
            for item in wanted:
                group.create_task(_read_article(collector, findings, item))
    except ExceptionGroup as trouble:
        # Only a warehouse that cannot be used comes through here, and once is enough.
        raise trouble.exceptions[0] from trouble


async def _read_article(collector: Collector, findings: Findings, item: PendingArticle) -> None:
    """Fetch and extract one article; whatever fails becomes a debt or a listing's stand-in."""
    try:
        await _fetch_article(collector, findings, item)
    except WarehouseError:
        raise
    except PermanentFetchError as error:
        _stand_in(collector, findings, item, error.reason, page=None)
    except FetchError as error:
        _owe(collector, findings, item, error)
    except Exception as error:
        # A defect of ours met on one page: the other articles of the poll go on.
        logger.exception("article %s", item.url)
        reason = f"internal error: {type(error).__name__}: {error}"
        _owe(collector, findings, item, TransientFetchError(item.url, reason))


async def _fetch_article(collector: Collector, findings: Findings, item: PendingArticle) -> None:
    source = findings.source
    answer = await collector.fetcher.fetch(item.url, source, accept="page")
    if isinstance(answer, NotModified):
        return
    findings.article_bytes += answer.wire_bytes
    page = await keep_page(collector, findings, answer)
    place = len(findings.pages)
    findings.pages.append(page)
    rules = collector.rules_of(source)
    try:
        article = await collector.extraction.extract(answer, rules, collector.clock.now())
    except ParseError as error:
        findings.read.append(ReadPage(page, None, answer.content_type))
        _stand_in(collector, findings, item, error.reason, page=page)
        return
    page = replace(page, measures=article.measures, profile=article.profile)
    findings.pages[place] = page
    findings.read.append(ReadPage(page, article, answer.content_type))
    findings.cpu_s += article.cpu_s + article.profile_cpu_s
    if article.kind != "article":
        _stand_in(collector, findings, item, article.reason, page=page, kind=article.kind)
        return
    _keep(collector, findings, item, article, page)


def _keep(
    collector: Collector,
    findings: Findings,
    item: PendingArticle,
    article: Article,
    page: Page | None,
) -> None:
    published_at, basis = _publication(item, article)
    findings.articles.append(
        StoredArticle(
            article_id=article_id(findings.source.source, item.first_url or item.url),
            entry_id=item.entry_id,
            url=item.url,
            article=article,
            published_at=published_at,
            published_basis=basis,
            stored_at=collector.clock.now(),
            page=page,
        )
    )
    findings.settled.append(item.entry_id)


def _stand_in(
    collector: Collector,
    findings: Findings,
    item: PendingArticle,
    reason: str,
    page: Page | None,
    kind: PageClass = "empty",
) -> None:
    """Let title and summary of the listing stand in for a page that gives no text.

    Of an entry that was relisted we have an article already, unless its page is still owed.
    """
    is_relisted = any(item.entry_id == relisted.entry_id for relisted in findings.relisted)
    if is_relisted and not item.attempts:
        return
    article = Article(
        title=item.title,
        text=item.summary,
        kind=kind,
        extraction="listing",
        warnings=(reason,),
    )
    _keep(collector, findings, item, article, page)


def _owe(collector: Collector, findings: Findings, item: PendingArticle, error: FetchError) -> None:
    """Note that an article is to be tried again, later each time; at last the listing stands in."""
    limits = collector.settings.extract
    # A host that is left alone was not asked: that is no try.
    attempts = item.attempts + (not isinstance(error, HeldFetchError))
    if attempts >= limits.max_attempts:
        _stand_in(collector, findings, item, f"{error.reason}, {attempts} times", page=None)
        return
    wait_s = limits.retry_base_s * 2.0 ** (attempts - 1)
    if isinstance(error, TransientFetchError) and error.retry_after_s:
        wait_s = max(wait_s, error.retry_after_s)
    findings.pending.append(
        replace(
            item,
            attempts=attempts,
            next_try_at=collector.clock.now() + timedelta(seconds=wait_s),
            reason=error.reason,
        )
    )


def _publication(item: PendingArticle, article: Article) -> tuple[datetime | None, str | None]:
    """Return the publication time: the listing's where it has one, else the page's."""
    if item.published_at is not None:
        return item.published_at, "listing"
    return article.published_at, article.published_basis
