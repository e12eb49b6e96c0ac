"""Publication times of some sources, cut into a part that trains and one that tests."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace

import numpy as np
import numpy.typing as npt

FloatArray = npt.NDArray[np.float64]

DAY_S = 86_400.0

STRAY_SHARE = 0.001
"""Part of a trace's stamps, at either end, that may be plainly wrong (1970, 2041)."""


@dataclass(frozen=True, slots=True)
class Stream:
    """One source of a trace.

    Attributes
    ----------
    source
        Its name.
    stamps_s
        Declared publication times in order of appearance, seconds since 1970.
    timezone
        IANA name.
    appear_s
        When each entry shows in the list, rising; at its stamp where None.
    known_per_s
        True rates of the part that tests, hour by hour, where the truth is known.
    known_burst
        True branching and decay.
    """

    source: str
    stamps_s: FloatArray = field(repr=False)
    timezone: str = "UTC"
    appear_s: FloatArray | None = field(default=None, repr=False)
    known_per_s: FloatArray | None = field(default=None, repr=False)
    known_burst: tuple[float, float] = (0.0, 1800.0)


@dataclass(frozen=True, slots=True)
class Trace:
    """Publications of some sources; those before `split_s` train, those after it test.

    Attributes
    ----------
    window
        Entries that a list holds.
    """

    streams: tuple[Stream, ...] = field(repr=False)
    start_s: float
    split_s: float
    end_s: float
    window: int = 30

    @property
    def n_entries(self) -> int:
        """Entries of all sources."""
        return sum(len(stream.stamps_s) for stream in self.streams)

    @property
    def n_tested(self) -> int:
        """Entries of the part that tests."""
        return sum(len(self.tested(stream)) for stream in self.streams)

    @property
    def n_never_listed(self) -> int:
        """Entries of the part that tests that no poll could see: what a batch has over a list."""
        batches = (np.unique(self.tested(stream), return_counts=True)[1] for stream in self.streams)
        return sum(int(np.maximum(sizes - self.window, 0).sum()) for sizes in batches)

    @property
    def tested_s(self) -> float:
        """Length of the part that tests, seconds."""
        return self.end_s - self.split_s

    def tested(self, stream: Stream) -> FloatArray:
        """Return when the entries of a source appeared in the part that tests."""
        appear_s = stream.stamps_s if stream.appear_s is None else stream.appear_s
        begin, end = np.searchsorted(appear_s, [self.split_s, self.end_s])
        return appear_s[begin:end]


def make_trace(streams: Sequence[Stream], *, train_share: float = 0.5, window: int = 30) -> Trace:
    """Return a trace of all the time its sources span, without stray stamps.

    A single entry dated 1970 would stretch a trace by half a century. Stamps that lie
    apart from nearly all others by more than their span are left out.

    Parameters
    ----------
    streams
        At least one entry among them.
    train_share
        Part of the time that trains, between 0 and 1.

    Examples
    --------
    >>> stream = Stream("a", np.arange(0.0, 864_000.0, 600.0) + 1_000_000_800.0)
    >>> stray = replace(stream, stamps_s=np.insert(stream.stamps_s, 0, 0.0))
    >>> trace = make_trace([stray])
    >>> trace.n_entries, (trace.end_s - trace.start_s) / 86_400.0
    (1440, 10.0)
    """
    together = np.concatenate([stream.stamps_s for stream in streams])
    low, high = np.quantile(together, [STRAY_SHARE, 1.0 - STRAY_SHARE])
    slack = high - low + DAY_S
    kept = tuple(
        replace(
            stream,
            stamps_s=stream.stamps_s[
                (stream.stamps_s >= low - slack) & (stream.stamps_s <= high + slack)
            ],
        )
        for stream in streams
    )
    together = np.concatenate([stream.stamps_s for stream in kept])
    start_s = float(np.floor(together.min() / 3600.0) * 3600.0)
    end_s = float(np.ceil((together.max() + 1.0) / 3600.0) * 3600.0)
    split_s = start_s + train_share * (end_s - start_s)
    return Trace(kept, start_s, split_s, end_s, window)
