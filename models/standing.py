"""How a source stands with the drift detectors, and what follows from what they find.

Two verdicts, never one. *The layout changed*: pages are built otherwise, and the text on
them is still right; it is learnt anew once enough pages have shown that. *The text is
wrong*: what was stored since the first suspect page is held back until somebody, or a
clear repair, has set it right.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from datetime import UTC, datetime

from models.batches import BatchResult, Finding
from models.drift.features import NUMBERS
from models.drift.watch import Drift
from models.records import DriftAlarm, DriftState, Repair, Standing

PAGE_NUMBERS = frozenset(NUMBERS[NUMBERS.index("page_size") :])
"""Measures of a page as a whole; all others are of its text, or of where that stands."""

WORTH_RELEARNING = 1.5
"""A reference is built anew where so many times as many pages are fit for it."""

AFTER_ALL = "~"
"""Sorts after every page's id."""

ENOUGH_PAGES = 200
"""More pages make a reference hardly better."""


def fetched_at_of(page_id: str) -> datetime:
    """Return when a page was fetched: its id begins with that.

    Examples
    --------
    >>> fetched_at_of("01955fcfaa80-ab12cd34-000001").isoformat()
    '2025-03-04T06:20:00+00:00'
    """
    return datetime.fromtimestamp(int(page_id.partition("-")[0], 16) / 1000, UTC)


def choose_standing(drift: Drift) -> Standing:
    """Return the verdict: what is wrong with the text outweighs any layout."""
    return "text" if drift.text_wrong else "layout"


def find_alarm(state: DriftState, drift: Drift | None, now: datetime) -> DriftAlarm | None:
    """Return the alarm that a drift raises; None where there is none, or it is known.

    A layout that changed alarms again when the text turns out to be wrong, not the other
    way round.
    """
    if drift is None or state.standing == "text":
        return None
    standing = choose_standing(drift)
    if standing == state.standing:
        return None
    after = replace(
        state,
        updated_at=now,
        standing=standing,
        since_page=drift.first_suspect,
        since_at=fetched_at_of(drift.first_suspect),
        channel=drift.channel,
        place_before=drift.place_before or None,
        place_after=drift.place_after or None,
        reason=drift.reason,
        n_pages=drift.n_pages,
        is_untold=True,
    )
    return DriftAlarm(after, *describe_drift(after))


def find_set_alarm(
    state: DriftState, result: BatchResult, first_page: str, n_pages: int, now: datetime
) -> DriftAlarm | None:
    """Return the alarm that a check of a set raises; None where there is none, or it is known.

    Where the layout is known to have changed, only what the window test says of the text
    itself makes it worse: where on the page it stands is another matter then.
    """
    if result.outcome != "drifted" or state.standing == "text":
        return None
    columns = _CONTENT_NUMBERS if state.has_drifted else _TEXT_NUMBERS
    standing: Standing = "text" if _speaks_of(result.fired, columns) else "layout"
    if standing == state.standing:
        return None
    first = state.since_page or first_page
    after = replace(
        state,
        updated_at=now,
        standing=standing,
        since_page=first,
        since_at=fetched_at_of(first),
        channel=result.fired[0].criterion,
        reason=f"{n_pages} pages together differ in {describe_fired(result.fired)}",
        n_pages=max(n_pages, state.n_pages) if state.has_drifted else n_pages,
        is_untold=True,
    )
    return DriftAlarm(after, *describe_drift(after))


def _speaks_of(fired: Sequence[Finding], columns: frozenset[str]) -> bool:
    return any(item.criterion.removeprefix(WINDOW) in columns for item in fired)


WINDOW = "window: "
_CONTENT_NUMBERS = frozenset(NUMBERS[: NUMBERS.index("link_share")])
_TEXT_NUMBERS = (frozenset(NUMBERS) - PAGE_NUMBERS) | {"F_S", "F_N", "F_V"}


def describe_fired(fired: Sequence[Finding], limit: int = 4) -> str:
    """Return the criteria that fired, in words.

    Examples
    --------
    >>> describe_fired([Finding("F_S", 2.0, 0.3, True), Finding("window: text_size", 0.0, 1, True)])
    'F_S, text size'
    """
    names = [item.criterion.removeprefix(WINDOW).replace("_", " ") if item.criterion.startswith(
        WINDOW) else item.criterion for item in fired]  # fmt: skip
    more = f" and {len(names) - limit} more" if len(names) > limit else ""
    return ", ".join(dict.fromkeys(names[:limit])) + more


def describe_drift(state: DriftState) -> tuple[str, str]:
    """Return the notice of a drift: in one line, and in full."""
    assert state.since_at is not None
    since, source = f"{state.since_at:%Y-%m-%d %H:%M} UTC", state.source
    if state.standing == "text":
        subject = f"{source}: its text is wrong since {since}"
        then = (
            "Articles from then on are quarantined: kept, but shown to nobody who does not ask"
            " for them. Polls go on, and the raw pages are there. Once a rule or the extractor"
            f" is changed, `newsbeat reextract {source}` sets them right and releases them;"
            f" `newsbeat accept {source}` says that the texts are right as they are."
        )
    else:
        subject = f"{source}: its layout changed at {since}, the text looks right"
        then = (
            "Nothing is held back. The new layout is learnt once enough of its pages were right;"
            f" `newsbeat accept {source}` does so now."
        )
    return subject, f"{subject}: {describe_change(state)}. {then}"


def describe_change(state: DriftState) -> str:
    """Return what changed and where, such as ``the text has another size; it stood in …``."""
    words = state.reason
    if state.place_before and state.place_after and state.place_before != state.place_after:
        words += f"; it stood in {state.place_before} and now comes from {state.place_after}"
    elif state.place_before:
        words += f"; it comes from {state.place_before}, as before"
    return words


def is_relearnt(n_pages: int, n_fit: int) -> bool:
    """Return whether so many more pages are worth a new reference.

    Examples
    --------
    >>> is_relearnt(9, 40), is_relearnt(40, 49), is_relearnt(200, 400)
    (True, False, False)
    """
    return n_pages < ENOUGH_PAGES and n_fit >= WORTH_RELEARNING * n_pages


def describe_repair(repair: Repair) -> str:
    """Return what a repair would do, and how well, in one line."""
    way = f"the CSS {repair.selector}" if repair.selector else f"the way {repair.way!r}"
    return (
        f"{way} gives a text like that before on {repair.n_fitting} of {repair.n_pages} suspect"
        f" pages ({repair.n_fitting_now} as it is now)"
    )
