"""One poll of one source, from the first request to the last row.

Order is what keeps everything safe: the raw page first, then all rows of the poll in
one transaction, and the schedule with them. A process killed in between has stored
nothing of the poll, and the next one finds the same entries again.
"""

from __future__ import annotations

import asyncio
import contextlib
import hashlib
import logging
from collections import deque
from collections.abc import Collection, Iterable, Sequence
from dataclasses import replace
from datetime import datetime, timedelta
from functools import partial

from flows.collector import Collector
from flows.conduct import (
    count_failures,
    heed_time,
    note_conduct,
    note_standing,
    stagger_s,
    state_of,
)
from flows.findings import Findings
from flows.listing import parse_listing
from flows.watching import ReadPage
from models.conduct import (
    note_body,
    note_not_modified,
    usable_validators,
    validators_to_send,
    why_probe,
)
from models.errors import (
    FetchError,
    HeldFetchError,
    NewsbeatError,
    ParseError,
    PermanentFetchError,
    RefusedFetchError,
    TransientFetchError,
    UnlistedError,
    UnstorableError,
    WarehouseError,
)
from models.harmless import one_line
from models.identity import article_id, identify, url_key
from models.kinds import as_polled, tells_whole
from models.listings import newest_first, only_pinned
from models.polling.choice import choose_next_poll
from models.polling.forecasting import Basis
from models.polling.moment import Moment
from models.recognition import LOOK_BACK_DAYS, recognise, telltales
from models.records import (
    Article,
    Entry,
    Fetched,
    KnownEntry,
    Listing,
    NewEntry,
    NotModified,
    Outcome,
    Page,
    PageClass,
    PendingArticle,
    Poll,
    PollResult,
    RuleHit,
    Schedule,
    Source,
    StoredArticle,
    Validators,
)
from tasks.extraction import SMALL_BYTES

logger = logging.getLogger("newsbeat.poll")

LARGE_BYTES = 2**20
"""Larger pages are packed in a thread: 20 MB take a second."""

REASON_CHARS = 500
"""A reason is read by people in one line; a server's own words may be longer."""

OLDER_PAGES = 5
"""Pages read back, where a listing leads to older ones and its first page is all news."""

CHILD_SITEMAPS = 3
"""Sitemaps read from an index per poll: the newest ones hold what is new."""

MOST_SITEMAPS = 6
"""Sitemaps read per poll where an index lists indexes."""


async def poll_source(
    collector: Collector, source: Source, cycle: int | None = None
) -> PollResult | None:
    """Look at a source once, store what is new, and choose when to look next.

    Parameters
    ----------
    collector
        The open engine room.
    source
        Whom to poll.
    cycle
        The poll this run is for; None takes whichever is next (a poll by hand).

    Returns
    -------
    PollResult or None
        What was stored. None when another run has claimed the cycle: nothing was done.

    Raises
    ------
    WarehouseError
        If the result could not be stored. A source that fails raises nothing: that is
        an outcome like others.
    """
    now = collector.clock.now()
    lease = timedelta(seconds=collector.settings.worker.poll_timeout_s * collector.clock.speed)
    schedule = await collector.write(
        collector.warehouse.claim_cycle, source.source, cycle, now, now + 2 * lease
    )
    if schedule is None:
        return None
    source = as_polled(source)
    findings = Findings(
        source, schedule, now, validators=schedule.validators, conduct=schedule.conduct
    )
    heed_time(collector, findings, now)
    try:
        await _look(collector, findings)
        return await _store(collector, findings)
    except WarehouseError as error:
        collector.note_trouble(error)
        # What its pages said of the source was not stored either.
        collector.watches.forget(source.source)
        raise
    finally:
        # Where nothing could be stored, the next run must not find the cycle taken.
        with contextlib.suppress(WarehouseError):
            await collector.write(collector.warehouse.end_claim, source.source)


async def _look(collector: Collector, findings: Findings) -> None:
    """Fetch the listing, tell what is new, and fetch the articles; what fails is noted.

    Raises
    ------
    WarehouseError
        If the warehouse, or the store of raw pages, cannot be used. That is no failure of
        the source: nothing is stored, and nothing held against it.
    """
    timeout_s = collector.settings.worker.poll_timeout_s
    deadline = asyncio.get_running_loop().time() + timeout_s
    try:
        async with asyncio.timeout_at(deadline):
            listing = await _read_listing(collector, findings)
            if listing is not None:
                await _compare(collector, findings, listing)
        await _read_articles(collector, findings, deadline)
    except WarehouseError:
        raise
    except TimeoutError:
        _fail(findings, f"not over after {timeout_s:.0f} s")
    except NewsbeatError as error:
        _fail_by(findings, error)
    except Exception as error:
        # A defect of ours met on one source's data must not take the loop down with it.
        logger.exception("poll of %s", findings.source.source)
        _fail(findings, f"internal error: {type(error).__name__}: {error}")


async def _read_listing(collector: Collector, findings: Findings) -> Listing | None:
    """Return what the source lists, None when it says or shows that nothing changed."""
    answer = await _ask(collector, findings)
    if isinstance(answer, NotModified):
        findings.outcome, findings.http_status, findings.overlap = "not_modified", 304, True
        findings.body_sha256 = findings.schedule.body_sha256
        return None
    findings.http_status = answer.status
    findings.conduct = note_body(findings.conduct, answer.fetched_at)
    given = usable_validators(answer.validators, answer.fetched_at)
    digest = hashlib.sha256(answer.body).hexdigest()
    if digest == findings.schedule.body_sha256:
        findings.validators, findings.body_sha256 = given, digest
        findings.overlap = True
        return None
    listing = await _keep_and_parse(collector, findings, answer)
    listing = await _read_children(collector, findings, listing)
    # Only a listing that was understood may be called known next time, and an index says
    # nothing of what is new in its sitemaps.
    is_index = bool(listing.children)
    findings.validators = Validators() if is_index else given
    findings.body_sha256 = None if is_index else digest
    findings.hint_s = listing.ttl_s
    return listing


async def _ask(collector: Collector, findings: Findings) -> Fetched | NotModified:
    """Return the source's list, or that it is as it was; where that is doubtful, ask again."""
    source, now = findings.source, collector.clock.now()
    sent = validators_to_send(findings.conduct, findings.schedule.validators, now)
    answer = await collector.fetcher.fetch(
        findings.address, source, validators=sent, accept="listing"
    )
    if isinstance(answer, NotModified):
        findings.conduct = note_not_modified(findings.conduct, _n_expected(collector, findings))
        findings.doubt = why_probe(findings.conduct, now)
        if findings.doubt:
            findings.index_bytes += answer.wire_bytes
            answer = await collector.fetcher.fetch(findings.address, source, accept="listing")
    findings.index_bytes += answer.wire_bytes
    findings.listed_at, findings.hops = answer.fetched_at, answer.hops
    return answer


def _n_expected(collector: Collector, findings: Findings) -> float:
    """Return how many entries the source usually publishes in the time since the last poll."""
    last, now = findings.schedule.last_success_at, collector.clock.now()
    if last is None:
        return 0.0
    hours = (now - last) / timedelta(hours=1)
    return hours * collector.intensities.usual_per_hour(findings.source.source)


async def _read_children(collector: Collector, findings: Findings, listing: Listing) -> Listing:
    """Return a sitemap index with the entries of its newest sitemaps in it.

    A sitemap may be an index itself, and lead back: to one that was read, by its address or
    by a redirect. Each is read once, and no more than a few of them.
    """
    entries = list(listing.entries)
    waiting, seen = deque(listing.children[:CHILD_SITEMAPS]), {url_key(findings.address)}
    n_left = MOST_SITEMAPS
    while waiting and n_left:
        url = waiting.popleft()
        if url_key(url) in seen:
            continue
        n_left -= 1
        answer = await collector.fetcher.fetch(url, findings.source, accept="listing")
        findings.index_bytes += answer.wire_bytes
        seen.add(url_key(url))
        if not isinstance(answer, Fetched) or _is_seen(answer, url, seen):
            continue
        seen.add(url_key(answer.final_url))
        found = await _keep_and_parse(collector, findings, answer)
        entries += found.entries
        # What an index in an index lists is newer than what stands after it.
        waiting.extendleft(reversed(found.children[:CHILD_SITEMAPS]))
    return replace(listing, entries=tuple(entries))


def _is_seen(answer: Fetched, url: str, seen: set[str]) -> bool:
    """Say whether a sitemap answered from the address of one that was read already."""
    final = url_key(answer.final_url)
    return final != url_key(url) and final in seen


async def _keep_and_parse(collector: Collector, findings: Findings, answer: Fetched) -> Listing:
    """Return what a page lists, the page itself being kept first."""
    findings.pages.append(await _keep_page(collector, findings, answer))
    source = findings.source
    parse = partial(parse_listing, answer, source, collector.clock.now())
    if len(answer.body) <= SMALL_BYTES:
        with findings.timing_cpu():
            return parse()
    listing, cpu_s = await collector.extraction.run(parse, answer.final_url, source.source)
    findings.cpu_s += cpu_s
    return listing


async def _keep_page(collector: Collector, findings: Findings, answer: Fetched) -> Page:
    """Return where a page was kept; packing a large one must not hold up all other polls."""

    def store() -> Page:
        with findings.timing_cpu():
            return collector.pages.store(answer, findings.source.source)

    return await asyncio.to_thread(store) if len(answer.body) > LARGE_BYTES else store()


async def _compare(collector: Collector, findings: Findings, listing: Listing) -> None:
    """Sort the listing into new, changed and known entries."""
    source = findings.source.source
    listed, known = await _listed_and_known(collector, findings, listing)
    is_first = findings.schedule.last_success_at is None
    if listed and not known and not is_first:
        known = await _known_by_address(collector, source, listed)
    if not is_first and listing.older and _has_gap(listing, listed, known):
        listing = await _read_back(collector, findings, listing)
        listed, known = await _listed_and_known(collector, findings, listing)
    findings.entries_listed = len(listed)
    findings.entries = [item for item in listed if item.entry_id not in known]
    findings.relisted = [item for item in listed if _is_changed(item, known)]
    findings.first_urls = {key: old.url for key, old in known.items() if old.url}
    if listed and not is_first:
        # Where nothing known follows on the new, the window may have moved past some unseen.
        findings.possible_loss = _has_gap(listing, listed, known)
        findings.overlap = not findings.possible_loss
    findings.outcome = "new" if findings.entries else "empty"
    if not listing.entries and listing.warnings:
        # Nothing listed may be nothing there, or nothing that could be read: it is told apart.
        findings.reason = one_line("; ".join(listing.warnings))[:REASON_CHARS]


def _has_gap(listing: Listing, listed: Sequence[NewEntry], known: Collection[str]) -> bool:
    """Tell whether a listing does not reach back to what is known."""
    if not listed or not known:
        return bool(listed)
    if listing.format != "list page" or not listing.older:
        return False
    seen = {item.entry.url for item in listed if item.entry_id in known}
    return only_pinned([entry.url in seen for entry in listing.entries])


async def _listed_and_known(
    collector: Collector, findings: Findings, listing: Listing
) -> tuple[list[NewEntry], dict[str, KnownEntry]]:
    source = findings.source
    limit = source.max_entries or collector.settings.extract.max_entries
    with findings.timing_cpu():
        entries = newest_first(listing.entries)[:limit]
        listed = identify(source.source, entries, source.identity)
    ids = [item.entry_id for item in listed]
    known = await collector.write(collector.warehouse.read_known, source.source, ids)
    renamed = await _renamed(collector, findings, listed, known)
    listed = [
        replace(item, entry_id=renamed[item.entry_id].entry_id)
        if item.entry_id in renamed
        else item
        for item in listed
    ]
    return listed, known | {old.entry_id: old for old in renamed.values()}


async def _renamed(
    collector: Collector, findings: Findings, listed: Sequence[NewEntry], known: Collection[str]
) -> dict[str, KnownEntry]:
    """Return which of the entries with an unknown id are known by what they say."""
    unknown = [item for item in listed if item.entry_id not in known]
    is_first = findings.schedule.last_success_at is None
    if is_first or not unknown or findings.source.identity == "guid":
        return {}
    told = telltales(unknown)
    since = collector.clock.now() - timedelta(days=LOOK_BACK_DAYS)
    source = findings.source.source
    read = collector.warehouse.read_alike
    before = await collector.write(read, source, told.titles, told.numbers, since)
    return recognise(unknown, before, known)


async def _read_back(collector: Collector, findings: Findings, listing: Listing) -> Listing:
    """Return a listing with the entries of older pages in it, back to one that is known.

    More came out since the last poll than one page holds. A page that cannot be had ends
    the search: what was found is kept, and the loss that is then possible is noted.
    """
    entries, older = list(listing.entries), listing.older
    for _ in range(OLDER_PAGES):
        if older is None:
            break
        try:
            answer = await collector.fetcher.fetch(older, findings.source, accept="listing")
            if isinstance(answer, NotModified):
                break
            findings.index_bytes += answer.wire_bytes
            page = await _keep_and_parse(collector, findings, answer)
        except (FetchError, ParseError) as error:
            logger.info("%s: older entries: %s", findings.source.source, error)
            break
        entries += page.entries
        _, known = await _listed_and_known(collector, findings, page)
        if known or not page.entries:
            break
        older = page.older
    return replace(listing, entries=tuple(entries))


async def _known_by_address(
    collector: Collector, source: str, listed: Sequence[NewEntry]
) -> dict[str, KnownEntry]:
    """Return the entries whose articles are stored, where a list seems all new and is not.

    Some publishers make up their identifiers anew for every answer. Were they believed, the
    whole list would be stored and fetched again with every poll.
    """
    ids = {item.entry_id: article_id(source, item.entry.url) for item in listed}
    stored = await collector.write(collector.warehouse.read_stored, list(ids.values()))
    if 2 * len(stored) < len(set(ids.values())):
        return {}
    return {
        item.entry_id: KnownEntry(item.entry_id, item.fingerprint)
        for item in listed
        if ids[item.entry_id] in stored
    }


def _is_changed(item: NewEntry, known: dict[str, KnownEntry]) -> bool:
    before = known.get(item.entry_id)
    return before is not None and before.fingerprint != item.fingerprint


async def _read_articles(collector: Collector, findings: Findings, deadline: float) -> None:
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
    wanted = [_wanted(findings, item, owed.pop(item.entry_id, None)) for item in found]
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
        _take_post(collector, findings, _wanted(findings, new), new.entry)
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


def _wanted(
    findings: Findings, item: NewEntry, owed: PendingArticle | None = None
) -> PendingArticle:
    """Return the article of an entry as one to fetch; earlier tries count, however it is listed."""
    entry = item.entry
    return PendingArticle(
        item.entry_id,
        entry.url,
        entry.title,
        entry.summary,
        entry.published_at,
        attempts=owed.attempts if owed else 0,
        first_url=findings.first_urls.get(item.entry_id),
    )


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
    page = await _keep_page(collector, findings, answer)
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


def _fail_by(findings: Findings, error: NewsbeatError) -> None:
    status = getattr(error, "status", None)
    findings.http_status = status if isinstance(status, int) else findings.http_status
    findings.retry_after_s = getattr(error, "retry_after_s", None)
    findings.is_held = isinstance(error, HeldFetchError)
    findings.is_silent = isinstance(error, TransientFetchError) and status is None
    reason = getattr(error, "reason", None) or str(error)
    findings.is_unlisted = isinstance(error, UnlistedError)
    if isinstance(error, RefusedFetchError):
        _fail(findings, reason, outcome="refused")
    else:
        _fail(findings, reason)


def _fail(findings: Findings, reason: str, outcome: Outcome = "failed") -> None:
    """Note that the poll failed. Entries found before that are kept, and articles are owed."""
    findings.outcome, findings.reason = outcome, one_line(reason)[:REASON_CHARS]
    found = [*findings.entries, *findings.relisted]
    findings.owe((_wanted(findings, item) for item in found), findings.started_at, findings.reason)
    # The listing must be read again in full next time.
    findings.validators, findings.body_sha256 = Validators(), None


async def _store(collector: Collector, findings: Findings) -> PollResult:
    """Store the poll in one transaction, the raw pages before it.

    A poll that the database does not take is stored as a failed one, without what it
    found: were it not stored at all, its source would come to the same poll for ever.
    """
    if findings.pages:
        await collector.write(collector.pages.flush)
    async with collector.watches.held(findings.source.source):
        await _judge(collector, findings)
        return await _write(collector, findings)


async def _write(collector: Collector, findings: Findings) -> PollResult:
    hits = await _triage(collector, findings)
    result = replace(_conclude(collector, findings), hits=hits, labels=findings.source.tags)
    try:
        counts = await collector.write(collector.warehouse.store_poll, result)
        stored = replace(result.poll, articles_stored=counts.articles + counts.versions)
        return result if counts.is_repeat else replace(result, poll=stored)
    except UnstorableError as error:
        logger.exception("poll of %s", findings.source.source)
        collector.watches.forget(findings.source.source)
        bare = Findings(
            findings.source,
            findings.schedule,
            findings.started_at,
            conduct=findings.conduct,
            begun=findings.begun,
            ended=findings.ended,
        )
        _fail(bare, f"what it found could not be stored: {error.reason}")
        result = _conclude(collector, bare)
        await collector.write(collector.warehouse.store_poll, result)
    return result


async def _triage(collector: Collector, findings: Findings) -> tuple[RuleHit, ...]:
    """Return what keyword rules find in the articles: urgent news is told with the poll."""
    # A text that is not to be trusted raises no alarm before it is released.
    trusted = [item for item in findings.articles if not item.quarantined]
    return await collector.match_rules(findings.source, trusted)


async def _judge(collector: Collector, findings: Findings) -> None:
    """Judge the article pages, and hold back the articles of those that are not to be trusted."""
    source, now = findings.source.source, collector.clock.now()
    if findings.read:
        with findings.timing_cpu():
            findings.judged = await collector.watches.judge(source, findings.read, now)
        held_back = findings.judged.held_back
        findings.articles = [
            replace(item, quarantined=True)
            if item.page and item.page.page_id in held_back
            else item
            for item in findings.articles
        ]
    findings.has_drifted = (await collector.watches.state(source, now)).has_drifted


def _learn(collector: Collector, findings: Findings, seen_at: datetime) -> None:
    """Let the source's habits learn from a poll that read its list."""
    name, intensities = findings.source.source, collector.intensities
    is_first_look = findings.schedule.last_success_at is None
    intensities.learn(
        name,
        since=None
        if is_first_look or findings.possible_loss
        else findings.schedule.last_success_at,
        until=seen_at,
        entries=[item.entry for item in findings.entries],
        n_listed=findings.entries_listed,
    )
    intensities.note_bytes(name, findings.index_bytes, findings.outcome == "not_modified")


def _basis(collector: Collector, source: Source, seen_at: datetime) -> Basis | None:
    """Return what the next poll is chosen by; None where the policy needs no forecast."""
    if source.poll.policy in ("fixed", "adaptive", "patrol"):
        return None
    pricing = collector.pricing
    return collector.intensities.basis(source, seen_at, pricing.price(source), pricing.counts_bytes)


def _conclude(collector: Collector, findings: Findings) -> PollResult:
    """Return the result of a poll, its last part being when to look next."""
    now, before = collector.clock.now(), findings.schedule
    source = findings.source
    is_failure = findings.outcome in ("failed", "refused")
    note_conduct(collector, findings, now)
    failures = count_failures(collector, findings, now)
    state = state_of(findings, failures)
    note_standing(collector, findings, state, failures, now)
    # What came out since the list was read is still unseen: waiting is reckoned from there.
    seen_at = findings.listed_at if findings.listed_at and not is_failure else now
    if not is_failure:
        _learn(collector, findings, seen_at)
    last = before.last_success_at
    moment = Moment(
        source=source.source,
        now_s=seen_at.timestamp(),
        due_s=before.due_at.timestamp(),
        cycle=before.cycle,
        outcome=findings.outcome,
        entries_new=len(findings.entries),
        consecutive_failures=failures,
        retry_after_s=findings.retry_after_s,
        hint_s=findings.hint_s,
        waited_s=(seen_at - last).total_seconds() if last else None,
        weight=source.weight,
        entries_known=collector.intensities.habits(source.source).n_known,
        stagger_s=stagger_s(collector, findings),
        is_gone=state == "gone",
    )
    decision = choose_next_poll(moment, source.poll, _basis(collector, source, seen_at))
    after = Schedule(
        source=source.source,
        due_at=max(decision.due_at, now),
        reason=decision.reason,
        state=state,
        cycle=before.cycle + 1,
        consecutive_failures=failures,
        validators=findings.validators,
        host_not_before=(
            now + timedelta(seconds=findings.retry_after_s) if findings.retry_after_s else None
        ),
        lease_until=None,
        body_sha256=findings.body_sha256,
        last_success_at=last if is_failure else seen_at,
        conduct=findings.conduct,
    )
    poll = Poll(
        poll_id=f"{source.source}#{before.cycle}",
        source=source.source,
        cycle=before.cycle,
        due_at=before.due_at,
        started_at=findings.started_at,
        finished_at=now,
        outcome=findings.outcome,
        http_status=findings.http_status,
        reason=findings.reason,
        entries_listed=findings.entries_listed,
        entries_new=len(findings.entries),
        articles_stored=len(findings.articles),
        overlap=findings.overlap,
        possible_loss=findings.possible_loss,
        index_bytes=findings.index_bytes,
        article_bytes=findings.article_bytes,
        cpu_s=findings.cpu_s,
        decision=decision,
    )
    return PollResult(
        poll=poll,
        schedule=after,
        entries=tuple(findings.entries),
        relisted=tuple(findings.relisted),
        pages=tuple(findings.pages),
        articles=tuple(findings.articles),
        pending=tuple(findings.pending),
        settled=tuple(findings.settled),
        verdicts=findings.judged.verdicts if findings.judged else (),
        drift=findings.judged.state if findings.judged else None,
        alarm=findings.judged.alarm if findings.judged else None,
        begun=tuple(findings.begun),
        ended=tuple(findings.ended),
    )
