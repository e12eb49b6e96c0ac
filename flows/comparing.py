"""What a source lists, and what of it is new: the first half of a poll."""

from __future__ import annotations

import hashlib
import logging
from collections import deque
from collections.abc import Collection, Sequence
from dataclasses import replace
from datetime import timedelta
from functools import partial

from flows.collector import Collector
from flows.findings import REASON_CHARS, Findings, keep_page
from flows.listing import parse_listing
from models.conduct import (
    note_body,
    note_not_modified,
    usable_validators,
    validators_to_send,
    why_probe,
)
from models.errors import (
    FetchError,
    ParseError,
)
from models.harmless import one_line
from models.identity import article_id, identify, url_key
from models.listings import newest_first, only_pinned
from models.recognition import LOOK_BACK_DAYS, recognise, telltales
from models.records import (
    Fetched,
    KnownEntry,
    Listing,
    NewEntry,
    NotModified,
    Validators,
)
from tasks.extraction import SMALL_BYTES

logger = logging.getLogger("newsbeat.poll")

OLDER_PAGES = 5
"""Pages read back, where a listing leads to older ones and its first page is all news."""

CHILD_SITEMAPS = 3
"""Sitemaps read from an index per poll: the newest ones hold what is new."""

MOST_SITEMAPS = 6
"""Sitemaps read per poll where an index lists indexes."""


async def read_listing(collector: Collector, findings: Findings) -> Listing | None:
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
    findings.pages.append(await keep_page(collector, findings, answer))
    source = findings.source
    parse = partial(parse_listing, answer, source, collector.clock.now())
    if len(answer.body) <= SMALL_BYTES:
        with findings.timing_cpu():
            return parse()
    listing, cpu_s = await collector.extraction.run(parse, answer.final_url, source.source)
    findings.cpu_s += cpu_s
    return listing


async def compare(collector: Collector, findings: Findings, listing: Listing) -> None:
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
        # And it is read again, should the next answer be the same.
        findings.validators, findings.body_sha256 = Validators(), None


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
