"""What a polling policy sees, and what it answers. Times are seconds since 1970."""

from __future__ import annotations

from dataclasses import asdict, dataclass
from typing import Any, Protocol

from models.records import Outcome


@dataclass(frozen=True, slots=True)
class Moment:
    """The state of a source right after a poll: all a decision is made from.

    Attributes
    ----------
    source
        Its name; with `cycle` the seed of the jitter.
    now_s, due_s
        The present, and when the poll that just ended had been due.
    cycle
        Number of the poll that just ended.
    outcome
        What it came to.
    entries_new
        New entries it found.
    consecutive_failures
        Failed polls in a row, this one included.
    retry_after_s
        Wait the server asked for, in seconds from now.
    hint_s
        The publisher's own hint (``ttl``), in seconds.
    waited_s
        Seconds from the poll before to this one; None at the first.
    weight
        The source's importance.
    entries_known
        Entries of the source seen so far, up to some hundreds.
    stagger_s
        Over so long the sources of one domain come back once it need not be left alone.
    is_gone
        Whether it answers that it is gone for good.
    """

    source: str
    now_s: float
    due_s: float
    cycle: int = 1
    outcome: Outcome = "empty"
    entries_new: int = 0
    consecutive_failures: int = 0
    retry_after_s: float | None = None
    hint_s: float | None = None
    waited_s: float | None = None
    weight: float = 1.0
    entries_known: int = 1000
    stagger_s: float = 0.0
    is_gone: bool = False

    def as_inputs(self) -> dict[str, Any]:
        """Return the fields as a JSON-ready dictionary; ``Moment(**inputs)`` reads it back."""
        return asdict(self)


@dataclass(frozen=True, slots=True)
class Wish:
    """When a policy would poll next, before floor, ceiling and manners.

    Attributes
    ----------
    due_s
        Seconds since 1970.
    reason
        A clause that completes "next in 4 min: …".
    """

    due_s: float
    reason: str


class Policy(Protocol):
    """Anything that turns a moment into a wish.

    ``FixedPolicy`` is the simplest; a forecast-based policy holds its forecast.
    """

    @property
    def name(self) -> str:
        """Name under which users choose it."""

    def choose_next(self, moment: Moment) -> Wish:
        """Return when to poll next, given how the last poll went."""
