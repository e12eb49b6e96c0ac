"""One poll of one source, from the first request to the last row.

Order is what keeps everything safe: the raw page first, then all rows of the poll in
one transaction, and the schedule with them. A process killed in between has stored
nothing of the poll, and the next one finds the same entries again.
"""

from __future__ import annotations

import asyncio
import contextlib
import logging
from dataclasses import replace
from datetime import datetime, timedelta

from flows.collector import Collector
from flows.comparing import compare, read_listing
from flows.conduct import (
    count_failures,
    heed_time,
    note_conduct,
    note_standing,
    stagger_s,
    state_of,
)
from flows.findings import REASON_CHARS, Findings
from flows.reading import read_articles
from models.errors import (
    HeldFetchError,
    NewsbeatError,
    RefusedFetchError,
    TransientFetchError,
    UnlistedError,
    UnstorableError,
    WarehouseError,
)
from models.harmless import one_line
from models.kinds import as_polled
from models.polling.choice import choose_next_poll
from models.polling.forecasting import Basis
from models.polling.moment import Moment
from models.records import (
    Outcome,
    Poll,
    PollResult,
    RuleHit,
    Schedule,
    Source,
    Validators,
)

logger = logging.getLogger("newsbeat.poll")


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
            listing = await read_listing(collector, findings)
            if listing is not None:
                await compare(collector, findings, listing)
        await read_articles(collector, findings, deadline)
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
    findings.owe((findings.wanted(item) for item in found), findings.started_at, findings.reason)
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
    note_conduct(collector, findings, now)
    failures = count_failures(collector, findings, now)
    state = state_of(findings, failures)
    note_standing(collector, findings, state, failures, now)
    # What came out since the list was read is still unseen: waiting is reckoned from there.
    seen_at = findings.listed_at if findings.listed_at and not findings.is_failure else now
    if not findings.is_failure:
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
        last_success_at=last if findings.is_failure else seen_at,
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
