"""How long after its stamp an entry shows up in the list.

A poll aimed at the full minute is wasted where entries appear two minutes after their
stamp. An entry that is new although its stamp is older than the poll before proves a
lag; one seen sooner than the estimate proves that it is too long. Where many entries are
later still, stamps are no moments (some publishers cut them to the hour), and habits
within the hour that they suggest are none.
"""

from __future__ import annotations

from models.compiled import compiled
from models.intensity.state import FloatArray, State

LAG_LIMIT_S = 1800.0
"""An entry older than this at the poll before was back-dated: it proves no lag."""

UP, DOWN = 0.2, 0.1
"""Part of the difference the estimate moves by, per proof."""

SLACK_S = 60.0
"""An entry this much later than the lag says was not where its stamp says."""

LATE_MEMORY = 0.02
"""Weight of one entry in the share of late ones."""


@compiled
def observe_lag(state: State, since_s: float, until_s: float, stamps: FloatArray) -> None:
    """Learn from the declared stamps of a poll's new entries, before they are cleaned.

    Parameters
    ----------
    since_s, until_s
        The poll before, and this one.
    """
    for stamp in stamps:
        late = 1.0 if stamp + state.lag_s + SLACK_S < since_s else 0.0
        state.late_share += LATE_MEMORY * (late - state.late_share)
        proven_s = since_s - stamp
        if 0.0 < proven_s <= LAG_LIMIT_S:
            if proven_s > state.lag_s:
                state.lag_s += UP * (proven_s - state.lag_s)
        elif since_s <= stamp <= until_s and until_s - stamp < state.lag_s:
            state.lag_s -= DOWN * (state.lag_s - (until_s - stamp))
