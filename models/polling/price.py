"""The ``price`` policy: poll when the waiting is worth a poll.

Let *A* be the expected waiting of the entries nobody has fetched yet, in
entry-seconds. Poll when *A* reaches one price, the same for all sources and all hours.
For Poisson entries of known rate this is the optimum: polls then come at a density
proportional to the square root of the intensity, which is what minimises the mean lag
at a given number of polls. Policies that poll when a *count* is expected are no better
than a timer, however good their forecast.

References
----------
Derived from K. C. Sia, J. Cho and H.-K. Cho, "Efficient Monitoring Algorithm for Fast
News Alerts", IEEE TKDE 19(7), 2007; the price form is the economic-order-quantity
balance of one poll's cost against the waiting it ends.
"""

from __future__ import annotations

import math

from models.compiled import compiled
from models.intensity.state import FloatArray
from models.polling.gap import entries_in, poll_price, waiting_in
from models.week import HOUR_S

FAIRNESS = 0.1
"""How far slow sources are favoured. At 0 the mean lag over all entries is the least there
is, and the slowest sources wait longest; a tenth costs half a per cent of the mean and
takes four of the 95th percentile."""

HALVINGS = 26
"""Of an hour: to a ten-thousandth of a second."""


@compiled
def fair_price(price: float, per_hour: float, fairness: float) -> float:
    """Return the price of a source's polls: lower than the common one where little comes out.

    Parameters
    ----------
    price
        The common price, entry-seconds, already divided by the source's weight.
    per_hour
        The source's rate over all hours.
    fairness
        `FAIRNESS`; 0 leaves the price as it is.

    Examples
    --------
    >>> fair_price(100.0, 1.0, 0.1), round(fair_price(100.0, 0.1, 0.1), 1)
    (100.0, 79.4)
    """
    return float(price * max(per_hour, 1e-6) ** fairness)


@compiled
def next_by_price(
    now_s: float,
    rates_per_s: FloatArray,
    first_hour_ends_s: float,
    excess_per_s: float,
    branching: float,
    decay_s: float,
    price: float,
    empty_share: float,
    most_entries: float,
    ceiling_s: float,
) -> tuple[float, float, float]:
    """Return when to poll next, and the entries and the waiting expected by then.

    Parameters
    ----------
    now_s
        The last poll, seconds since 1970.
    rates_per_s, first_hour_ends_s
        Expected rates hour by hour, and when the hour under way ends.
    excess_per_s, branching, decay_s
        The burst: excess intensity now, share bred, decay.
    price
        Entry-seconds a poll must save, already divided by the source's weight.
    empty_share
        Cost of an empty poll as a share of a full one.
    most_entries
        Expected entries at which the list may overflow: poll then, whatever the price.
    ceiling_s
        Longest wait.
    """
    decay = (1.0 - branching) / decay_s
    entries, waiting, excess = 0.0, 0.0, excess_per_s
    at, ends, hour = now_s, first_hour_ends_s, 0
    while True:
        rate = rates_per_s[min(hour, rates_per_s.shape[0] - 1)]
        burst = excess - branching * rate if branching > 0.0 else 0.0
        length = min(ends, now_s + ceiling_s) - at
        found = entries + entries_in(length, rate, burst, decay)
        waited = waiting + entries * length + waiting_in(length, rate, burst, decay)
        if found >= most_entries or waited >= poll_price(price, empty_share, found):
            low, high = 0.0, length
            for _ in range(HALVINGS):
                middle = 0.5 * (low + high)
                found = entries + entries_in(middle, rate, burst, decay)
                waited = waiting + entries * middle + waiting_in(middle, rate, burst, decay)
                if found >= most_entries or waited >= poll_price(price, empty_share, found):
                    high = middle
                else:
                    low = middle
            return at + high, found, waited
        entries, waiting, at = found, waited, at + length
        if at >= now_s + ceiling_s:
            return at, entries, waiting
        if branching > 0.0:
            excess = branching * rate + burst * math.exp(-decay * length)
        ends = at + HOUR_S
        hour += 1
