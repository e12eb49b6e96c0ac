"""How long a domain is left alone after it said, or showed, that it wants quiet."""

from __future__ import annotations

from dataclasses import dataclass

DEFAULT_HOLD_S = 60.0
"""For a host that says "too many requests" and not for how long; each time in a row twice."""

STORM = 5
STORM_HOLD_S = 300.0
"""So many "forbidden" in a row, with nothing else in between, mean us and not the pages."""

LONGEST_HOLD_S = 86_400.0


@dataclass(slots=True)
class Mood:
    """How a domain has answered of late.

    Attributes
    ----------
    n_forbidden
        403 in a row.
    n_holds
        Holds in a row, with nothing well in between.
    gives_pages
        Whether it has given an article page since we began to watch.
    """

    n_forbidden: int = 0
    n_holds: int = 0
    gives_pages: bool = False

    def note_well(self, is_page: bool) -> None:
        """Note an answer that was one."""
        self.n_forbidden = self.n_holds = 0
        self.gives_pages = self.gives_pages or is_page

    def note_error(self, status: int | None, retry_after_s: float | None) -> float | None:
        """Note an error's answer, and return for how many seconds to leave the domain alone.

        Examples
        --------
        >>> Mood().note_error(429, 300.0), Mood().note_error(429, None)
        (300.0, 60.0)
        >>> mood = Mood()
        >>> [mood.note_error(403, None) for _ in range(6)]
        [None, None, None, None, 300.0, 600.0]
        """
        hold_s = self._hold_s(status, retry_after_s)
        if hold_s is not None:
            self.n_holds += 1
        return hold_s

    def _hold_s(self, status: int | None, retry_after_s: float | None) -> float | None:
        doubled = 2.0 ** min(self.n_holds, 30)
        if status == 429:
            if retry_after_s is None:
                return min(DEFAULT_HOLD_S * doubled, LONGEST_HOLD_S)
            return retry_after_s
        if status == 503 and retry_after_s:
            return retry_after_s
        if status == 403:
            self.n_forbidden += 1
            if self.n_forbidden >= STORM:
                return min(STORM_HOLD_S * doubled, LONGEST_HOLD_S)
        return None
