"""Whose fault it is when polls fail: our own line's, a host's, or the source's alone.

=============  =====================================================================
outage         nobody answers: sources of several domains that answered before have
               fallen silent one after the other, and no answer came in between
host           several sources of one registered domain, well before, fail in a row,
               and none of it is well
held           a domain asked for quiet (429, ``Retry-After``), or answers nothing but
               "forbidden"; it is left alone
failing        one source has failed three times in a row by itself
gone           one source answered "gone" (410) twice in a row; it is asked once a day
moved          its address redirected elsewhere for days; it is polled there
validators     its ``ETag`` or ``Last-Modified`` lied; they are not used for a while
=============  =====================================================================

What is a host's or our line's fault is not held against the source.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from itertools import takewhile

from models.records import Incident

LOOKED_BACK = timedelta(hours=2)
"""Older endings say nothing of now."""

OUTAGE_DOMAINS = 4
"""So many domains, each well before, are not struck at once by chance: one poll in a hundred
fails so, and four in a row do once in a hundred million."""

HOST_SOURCES = 3
"""So many sources of one domain failing together are its fault, not theirs."""

FIRST_HOLD_S, LONGEST_HOLD_S = 300.0, 6 * 3600.0
"""A host that is down is asked by one source for all: first after so long, each time after
twice as long, and at last so often."""

_NAMED = 10


@dataclass(frozen=True, slots=True)
class Ending:
    """How a poll ended, as far as its host and our line are concerned.

    Attributes
    ----------
    has_answered
        An HTTP answer came, whatever it said.
    is_well
        The list came, or was as before.
    was_well
        So it was the poll before.
    """

    source: str
    domain: str
    at: datetime
    has_answered: bool
    is_well: bool
    was_well: bool
    reason: str = ""


def find_outage(endings: Sequence[Ending], n_domains: int) -> Incident | None:
    """Return the outage of our own line that the last polls show, if they show one.

    Parameters
    ----------
    endings
        Of the last polls, the newest last.
    n_domains
        Domains there are: of fewer than four, all must be silent, and one alone says nothing.
    """
    if not endings:
        return None
    silent = _struck(endings[-1].at, takewhile(lambda one: not one.has_answered, endings[::-1]))
    domains = sorted({one.domain for one in silent})
    if len(domains) < min(OUTAGE_DOMAINS, max(n_domains, 2)):
        return None
    reason = f"{len(domains)} domains fell silent at once: it is our own line"
    return Incident("outage", "", endings[-1].at, reason, _evidence(silent))


def find_host_incident(endings: Sequence[Ending]) -> Incident | None:
    """Return the incident of a domain that the last polls of its sources show, if any.

    Parameters
    ----------
    endings
        Of sources of one domain, the newest last.
    """
    if not endings:
        return None
    ailing = _struck(endings[-1].at, takewhile(lambda one: not one.is_well, endings[::-1]))
    sources = {one.source for one in ailing}
    if len(sources) < HOST_SOURCES:
        return None
    domain = endings[-1].domain
    reason = f"{len(sources)} sources of {domain} fail at once: {endings[-1].reason}"
    return Incident("host", domain, endings[-1].at, reason, _evidence(ailing))


def _struck(now: datetime, endings: Iterable[Ending]) -> list[Ending]:
    """Return the recent ones of sources that were well before: others were down already."""
    return [one for one in endings if one.was_well and now - one.at <= LOOKED_BACK]


def _evidence(endings: Sequence[Ending]) -> dict[str, object]:
    polls = [
        {"source": one.source, "at": one.at.isoformat(), "reason": one.reason}
        for one in endings[:_NAMED]
    ]
    return {"polls": polls}


def next_hold_s(n_before: int) -> float:
    """Return how long a host that is down is left alone.

    Parameters
    ----------
    n_before
        Holds of this incident so far.

    Examples
    --------
    >>> [next_hold_s(n) for n in (0, 1, 2, 30)]
    [300.0, 600.0, 1200.0, 21600.0]
    """
    return min(FIRST_HOLD_S * 2.0 ** min(n_before, 30), LONGEST_HOLD_S)
