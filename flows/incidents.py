"""Whose fault failing polls are: kept in step with every poll that ends."""

from __future__ import annotations

from collections import Counter, deque
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from functools import lru_cache

from models.incidents import LOOKED_BACK, Ending, find_host_incident, find_outage
from models.records import Incident, IncidentKind, Source
from tasks.lists import registered_domain

_MOST_ENDINGS = 5000

domain_of = lru_cache(maxsize=65_536)(registered_domain)
"""The registered domain of an address, remembered: it is asked for at every poll."""

Key = tuple[IncidentKind, str]


@dataclass(frozen=True, slots=True)
class Upshot:
    """What a poll's end changed.

    Attributes
    ----------
    blamed
        The incident that a failure is put down to; None where it is the source's own.
    """

    begun: tuple[Incident, ...] = ()
    ended: tuple[Key, ...] = ()
    blamed: Incident | None = None


@dataclass(slots=True)
class _Standing:
    incident: Incident
    n_holds: int = 0


@dataclass(slots=True)
class Incidents:
    """The incidents that stand, and the recent polls that new ones are concluded from.

    Parameters
    ----------
    sources
        The catalogue; looked at anew at every poll, as it changes.
    """

    sources: Mapping[str, Source]
    _standing: dict[Key, _Standing] = field(default_factory=dict)
    _endings: deque[Ending] = field(default_factory=lambda: deque(maxlen=_MOST_ENDINGS))

    def load(self, incidents: Iterable[Incident]) -> None:
        """Take up the incidents that stood when the last process ended."""
        self._standing = {one.key: _Standing(one) for one in incidents}

    def find(self, kind: IncidentKind, subject: str) -> Incident | None:
        """Return the incident that stands, None where there is none."""
        found = self._standing.get((kind, subject))
        return found.incident if found else None

    def domains(self) -> Counter[str]:
        """Return how many sources each registered domain has."""
        return Counter(domain_of(source.url) for source in self.sources.values())

    def n_neighbours(self, source: Source) -> int:
        """Return how many sources share the registered domain of one, itself included."""
        return self.domains()[domain_of(source.url)]

    def note(self, ending: Ending) -> Upshot:
        """Take in how a poll ended, and return what follows."""
        self._forget_old(ending.at)
        self._endings.append(ending)
        ended = self._end(ending)
        if ending.is_well:
            return Upshot(ended=ended)
        found = self._conclude(ending)
        begun = self.begin(found)
        blamed = self.find("host", ending.domain)
        if not ending.has_answered:
            blamed = self.find("outage", "") or blamed
        return Upshot(begun, ended, blamed)

    def begin(self, incidents: Iterable[Incident]) -> tuple[Incident, ...]:
        """Let incidents stand; return those that did not yet."""
        new = [one for one in incidents if one.key not in self._standing]
        self._standing |= {one.key: _Standing(one) for one in new}
        return tuple(new)

    def end(self, keys: Iterable[Key]) -> tuple[Key, ...]:
        """Let incidents be over; return those that stood."""
        return tuple(key for key in keys if self._standing.pop(key, None) is not None)

    def count_hold(self, incident: Incident) -> int:
        """Return how often a host was left alone for an incident, and count one more."""
        standing = self._standing[incident.key]
        standing.n_holds += 1
        return standing.n_holds - 1

    def _end(self, ending: Ending) -> tuple[Key, ...]:
        over: list[Key] = []
        if ending.has_answered:
            over.append(("outage", ""))
        if ending.is_well:
            over += [("host", ending.domain), ("held", ending.domain)]
        ended = self.end(over)
        if ("outage", "") in ended:
            # What our own line did says nothing of any host.
            kept = [one for one in self._endings if one.has_answered]
            self._endings = deque(kept, maxlen=_MOST_ENDINGS)
        return ended

    def _conclude(self, ending: Ending) -> Sequence[Incident]:
        endings = list(self._endings)
        if not ending.has_answered:
            outage = find_outage(endings, len(self.domains()))
            # Where nobody answers, no host is to blame for it.
            if outage is not None or self.find("outage", ""):
                return [outage] if outage else []
        incident = find_host_incident([one for one in endings if one.domain == ending.domain])
        return [incident] if incident else []

    def _forget_old(self, now: datetime) -> None:
        while self._endings and now - self._endings[0].at > LOOKED_BACK:
            self._endings.popleft()
