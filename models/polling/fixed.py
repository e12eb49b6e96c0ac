"""The ``fixed`` policy: one interval, whatever was found."""

from __future__ import annotations

from dataclasses import dataclass

from models.polling.moment import Moment, Wish


@dataclass(frozen=True, slots=True)
class FixedPolicy:
    """Poll every `interval_s` seconds.

    The rule of formulas (1) and (2) of Ovsyannikov and Smirnov (2022):
    ``T_N = T_{N-1} + t_fixed``. The time the load itself took is part of the
    interval, and moments already past are passed over, so that late polls
    collapse into one instead of being caught up in a burst.

    Parameters
    ----------
    interval_s
        Seconds between two due times, > 0.

    Examples
    --------
    Due at 100 and over at 107: the next is due at 200, not at 207.

    >>> from models.polling.moment import Moment
    >>> policy = FixedPolicy(interval_s=100.0)
    >>> policy.choose_next(Moment(source="a", now_s=107.0, due_s=100.0)).due_s
    200.0

    Over at 350 because the machine slept: one poll, on the old beat.

    >>> policy.choose_next(Moment(source="a", now_s=350.0, due_s=100.0)).due_s
    400.0

    Polled early, by hand, or due too far ahead because the clock was put back: the same beat.

    >>> policy.choose_next(Moment(source="a", now_s=130.0, due_s=1000.0)).due_s
    200.0
    """

    interval_s: float
    name: str = "fixed"

    def choose_next(self, moment: Moment) -> Wish:
        """Return the first moment after now on the beat of the last due time."""
        beats = (moment.now_s - moment.due_s) // self.interval_s + 1.0
        return Wish(
            due_s=moment.due_s + beats * self.interval_s,
            reason=f"every {spell_duration(self.interval_s)}",
        )


def spell_duration(seconds: float) -> str:
    """Return a span of time as people say it.

    Examples
    --------
    >>> spell_duration(45), spell_duration(600), spell_duration(5400), spell_duration(180_000)
    ('45 s', '10 min', '1.5 h', '2.1 days')
    """
    for unit, length in (("days", 86_400.0), ("h", 3600.0), ("min", 60.0)):
        if seconds >= 1.5 * length or (unit != "days" and seconds >= length):
            number = seconds / length
            return (
                f"{number:.0f} {unit}"
                if number >= 9.95
                else f"{number:.1f} {unit}".replace(".0 ", " ")
            )
    return f"{seconds:.0f} s"
