"""What a gap between two polls is expected to bring: entries, and waiting.

The intensity ahead is a step function by hours, plus a burst that dies away towards
what the base breeds: within one step ``lambda(u) = r + y exp(-k u)``. Both integrals
then have closed forms.
"""

from __future__ import annotations

import math

from models.compiled import compiled


@compiled
def entries_in(length_s: float, rate: float, burst: float, decay: float) -> float:
    """Return the expected entries of a stretch: the integral of the intensity.

    Parameters
    ----------
    length_s
        Length of the stretch, seconds.
    rate
        Steady part of the intensity, entries per second.
    burst, decay
        Part that dies away, entries per second at the start, and its rate per second.
    """
    if burst == 0.0:
        return rate * length_s
    return rate * length_s + burst * (1.0 - math.exp(-decay * length_s)) / decay


@compiled
def waiting_in(length_s: float, rate: float, burst: float, decay: float) -> float:
    """Return the expected waiting until the end of a stretch, in entry-seconds."""
    waited = 0.5 * rate * length_s * length_s
    if burst != 0.0:
        k = decay * length_s
        waited += burst * (k - 1.0 + math.exp(-k)) / (decay * decay)
    return waited


@compiled
def poll_price(price: float, empty_share: float, entries: float) -> float:
    """Return what a poll may cost in waiting, given the entries it is expected to find.

    A server that answers 304 makes an empty poll cheap. A full answer is then charged
    only for the merging it forgoes: for the chance of two entries or more.

    Parameters
    ----------
    price
        Entry-seconds that a full poll must save.
    empty_share
        Cost of an empty poll as a share of a full one; 1 where there are no 304s.
    entries
        Expected entries since the poll before.
    """
    merged = 1.0 - (1.0 + entries) * math.exp(-entries)
    return price * (empty_share + (1.0 - empty_share) * merged)
