"""A bound on the memory of this process, so that one query cannot take the machine with it.

DuckDB keeps its own limit for tables and sorts, but not for a single huge list or text:
``SELECT list_sum(range(3_000_000_000))`` asks for 24 GB at once, and the system ends
whoever it likes. Under a bound such a query fails, and everything else goes on.
"""

from __future__ import annotations

import contextlib
import re
import resource
import sys
from pathlib import Path

import psutil

from tasks.settings import Settings

HEADROOM_LIMITS = 3.0
"""Room for growth, as a multiple of DuckDB's own limit: queries, polls and the rest."""

LARGEST_SHARE = 0.6
"""Of the memory that is free now, no more than this."""

LEAST_HEADROOM_BYTES = 2**30
_UNITS = {"": 1, "K": 10**3, "M": 10**6, "G": 10**9, "T": 10**12}
_PEAK = re.compile(r"^VmHWM:\s*(\d+) kB$", re.MULTILINE)
_SIZE = re.compile(r"\s*([\d.]+)\s*([KMGT]?)i?B?\s*", re.IGNORECASE)


def limit_memory(settings: Settings) -> int | None:
    """Bound the memory of this process, counted from what it has now; return the bound.

    Returns
    -------
    int or None
        Bytes. None where the system keeps no such bound.
    """
    if sys.platform != "linux":
        return None
    headroom = min(
        HEADROOM_LIMITS * read_size(settings.warehouse.memory_limit),
        LARGEST_SHARE * psutil.virtual_memory().available,
    )
    bound = _data_bytes() + int(max(headroom, LEAST_HEADROOM_BYTES))
    _, hard = resource.getrlimit(resource.RLIMIT_DATA)
    with contextlib.suppress(ValueError, OSError):
        # Only the soft one: processes of ours set a lower one of their own.
        resource.setrlimit(resource.RLIMIT_DATA, (bound, hard))
        return bound
    return None


def read_size(text: str) -> int:
    """Return the bytes that DuckDB's ``memory_limit`` stands for; 1 GB where it is a share.

    Examples
    --------
    >>> read_size("512MB"), read_size("2 GiB"), read_size("80%")
    (512000000, 2000000000, 1000000000)
    """
    match = _SIZE.fullmatch(text)
    return int(float(match[1]) * _UNITS[match[2].upper()]) if match else 10**9


def peak_bytes() -> int:
    """Return the most memory this process has had.

    ``getrusage`` would count what its parent had when it was started, too.
    """
    with contextlib.suppress(OSError):
        status = Path("/proc/self/status").read_text(encoding="ascii", errors="replace")
        if (found := _PEAK.search(status)) is not None:
            return int(found[1]) * 1024
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024


def _data_bytes() -> int:
    text = Path("/proc/self/status").read_text(encoding="ascii", errors="replace")
    match = re.search(r"VmData:\s+(\d+) kB", text)
    return int(match[1]) * 1024 if match else 0
