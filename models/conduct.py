"""What a source's server may be believed: that nothing changed, that it moved, that it is gone.

All pure: what a poll saw and what is remembered (`models.records.Conduct`) go in, what to
remember from now on comes out.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from datetime import datetime, timedelta
from itertools import pairwise
from typing import Any

from models.answers import parse_http_date
from models.records import Conduct, Hop, Validators

PERMANENT = frozenset({301, 308})
"""Redirects that say "for good"."""

PROBE_STREAK = 3
PROBE_EXPECTED = 6.0
"""After so many "not modified" in a row, while so many entries should have come, the list is
asked for without conditions: that none came has a chance of one in four hundred."""

PROBE_AFTER = timedelta(days=7)
"""Nor is "not modified" believed for longer than this, whatever was expected."""

TRUST_AGAIN = timedelta(days=30)
"""Servers get mended: validators that lied are tried again after so long."""

AHEAD = timedelta(days=1)
"""A ``Last-Modified`` further ahead than any clock is wrong says nothing."""

MOVE_POLLS = 5
MOVE_SPAN = timedelta(days=3)
"""A move is adopted once so many polls in a row, over so long, were led to the same place and
found the entries we know there: a portal, a slip or a hijack lasts less, or shows others."""

LOST_POLLS = 3
"""After so many failures in a row at an adopted address, the catalogue's is asked again."""

GONE_POLLS = 2
"""A single "gone" may be a slip; twice in a row it is meant."""


def usable_validators(validators: Validators, now: datetime) -> Validators:
    """Return validators without a ``Last-Modified`` that lies ahead: it never comes to pass.

    Examples
    --------
    >>> from datetime import UTC
    >>> ahead = Validators('"a"', "Thu, 03 Jan 2041 00:00:00 GMT")
    >>> usable_validators(ahead, datetime(2026, 3, 1, tzinfo=UTC))
    Validators(etag='"a"', last_modified=None, url=None)
    """
    modified_at = parse_http_date(validators.last_modified)
    if modified_at is not None and modified_at > now + AHEAD:
        return replace(validators, last_modified=None)
    return validators


def validators_to_send(conduct: Conduct, validators: Validators, now: datetime) -> Validators:
    """Return what may be sent along: nothing while the source's validators are not believed."""
    since = conduct.distrusted_at
    return validators if since is None or now - since >= TRUST_AGAIN else Validators()


def note_not_modified(conduct: Conduct, n_expected: float) -> Conduct:
    """Return the conduct after one more "not modified".

    Parameters
    ----------
    n_expected
        Entries the source usually publishes in the time since the poll before.
    """
    return replace(
        conduct,
        n_not_modified=conduct.n_not_modified + 1,
        n_expected=conduct.n_expected + n_expected,
    )


def note_body(conduct: Conduct, now: datetime) -> Conduct:
    """Return the conduct after the list came whole."""
    return replace(conduct, body_at=now, n_not_modified=0, n_expected=0.0)


def why_probe(conduct: Conduct, now: datetime) -> str:
    """Return why "not modified" is not to be believed this time; empty where it is.

    Examples
    --------
    >>> from datetime import UTC
    >>> now = datetime(2026, 3, 1, tzinfo=UTC)
    >>> why_probe(Conduct(n_not_modified=9, n_expected=7.5), now)
    '9 times "not modified" in a row while about 8 entries should have come'
    >>> why_probe(Conduct(n_not_modified=9, n_expected=1.5), now)
    ''
    """
    n = conduct.n_not_modified
    if n >= PROBE_STREAK and conduct.n_expected >= PROBE_EXPECTED:
        entries = f"about {conduct.n_expected:.0f} entries should have come"
        return f'{n} times "not modified" in a row while {entries}'
    if n >= PROBE_STREAK and conduct.body_at and now - conduct.body_at >= PROBE_AFTER:
        return f'"not modified" for {(now - conduct.body_at).days} days'
    return ""


def find_constant(before: Validators, after: Validators) -> str:
    """Return which validator stayed as it was though the list has other entries; empty for none.

    Examples
    --------
    >>> find_constant(Validators('"a"', "then"), Validators('"a"', "later"))
    'its ETag stayed "a"'
    >>> find_constant(Validators('"a"'), Validators('"b"'))
    ''
    """
    if before.url != after.url:
        return ""
    if after.etag and after.etag == before.etag:
        return f"its ETag stayed {after.etag}"
    if not after.etag and after.last_modified and after.last_modified == before.last_modified:
        return f"its Last-Modified stayed {after.last_modified}"
    return ""


def permanent_target(hops: Sequence[Hop]) -> str | None:
    """Return where an address has moved for good: the end of its first, permanent redirects.

    Examples
    --------
    >>> permanent_target([Hop("http://a.example/", 301, "https://a.example/"),
    ...                   Hop("https://a.example/", 200)])
    'https://a.example/'
    >>> permanent_target([Hop("http://a.example/", 302, "/b"), Hop("http://a.example/b", 200)])
    """
    target = None
    for hop, following in pairwise(hops):
        if hop.status not in PERMANENT:
            break
        target = following.url
    return target


def note_place(
    conduct: Conduct, hops: Sequence[Hop], is_ours: bool | None, now: datetime
) -> Conduct:
    """Return the conduct after a poll that was answered, with what it says of a move.

    Parameters
    ----------
    hops
        The answers on the way.
    is_ours
        Whether what came is the source's list: as it was, or with entries we know; None
        where that cannot be told. A place that showed a list of strangers when we first came
        there is remembered, and not moved to, however often it is named.
    """
    target = permanent_target(hops)
    if target is None:
        is_foreign = conduct.moved_to is not None and conduct.moved_since is None
        return conduct if is_foreign else replace(conduct, **_NOWHERE)
    if is_ours is None or _is_downgrade(hops[0].url, target):
        return conduct
    if target != conduct.moved_to:
        return replace(
            conduct, moved_to=target, moved_since=now if is_ours else None, n_moved=int(is_ours)
        )
    if conduct.moved_since is None or not is_ours:
        return conduct
    return replace(conduct, n_moved=conduct.n_moved + 1)


_NOWHERE: dict[str, Any] = {"moved_to": None, "moved_since": None, "n_moved": 0}


def _is_downgrade(url: str, target: str) -> bool:
    return url.startswith("https:") and not target.startswith("https:")


def adopt_move(conduct: Conduct, listed: str, now: datetime) -> Conduct | None:
    """Return the conduct with a confirmed move adopted; None while it is not confirmed.

    Parameters
    ----------
    listed
        The address in the catalogue.
    """
    since = conduct.moved_since
    if since is None or conduct.n_moved < MOVE_POLLS or now - since < MOVE_SPAN:
        return None
    return replace(conduct, address=conduct.moved_to, address_of=listed, **_NOWHERE)


def forget_move(conduct: Conduct) -> Conduct:
    """Return the conduct without an adopted address, nor any on the way to be one."""
    return replace(conduct, address=None, address_of=None, **_NOWHERE)


def why_forget_move(conduct: Conduct, listed: str, n_failures: int) -> str:
    """Return why an adopted address no longer holds; empty where it does, or there is none."""
    if conduct.address is None:
        return ""
    if conduct.address_of != listed:
        return "the catalogue has another address now"
    if n_failures >= LOST_POLLS:
        return f"it failed {n_failures} times in a row"
    return ""
