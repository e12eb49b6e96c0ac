"""The writer's lease: a file lock that at most one process holds.

The lock is the kernel's (``flock``), so it ends with the process however that ends; the
text in the file only says who holds it.
"""

from __future__ import annotations

import fcntl
import json
import os
import socket
import time
import weakref
from contextlib import suppress
from dataclasses import asdict, dataclass
from datetime import UTC, datetime
from pathlib import Path

from models.errors import WarehouseError

LEASE_FILE = "writer.lock"

# A reader asks whether the lock is held by taking it for an instant; a writer that
# starts just then must not give up.
TRIES, PAUSE_S = 10, 0.05


@dataclass(frozen=True, slots=True)
class Holder:
    """Who holds the lease.

    Attributes
    ----------
    holder
        What it is, such as ``"newsbeat worker"``.
    since
        Wall time it took the lease, ISO 8601.
    """

    holder: str
    pid: int
    host: str
    since: str

    def __str__(self) -> str:
        return f"{self.holder} (pid {self.pid} on {self.host}, since {self.since})"


class Lease:
    """The lease, held until :meth:`release` or the end of the process.

    Parameters
    ----------
    folder
        The warehouse's folder.
    holder
        What takes the lease, for messages.
    file
        Name of the lock file; other things than the writer may be only one in a folder.

    Raises
    ------
    WarehouseError
        If another process holds it; names that process.
    """

    def __init__(self, folder: Path, holder: str, file: str = LEASE_FILE) -> None:
        self.path = folder / file
        self._descriptor: int | None = os.open(self.path, os.O_RDWR | os.O_CREAT, 0o644)
        if not _lock(self._descriptor, TRIES):
            os.close(self._descriptor)
            self._descriptor = None
            raise _held_error(self.path)
        since = datetime.now(UTC).isoformat(timespec="seconds")
        about = Holder(holder, os.getpid(), socket.gethostname(), since)
        os.ftruncate(self._descriptor, 0)
        os.pwrite(self._descriptor, json.dumps(asdict(about)).encode(), 0)
        _forget_in_children(self)

    def release(self) -> None:
        """Hand the lease back; a second call does nothing."""
        if self._descriptor is not None:
            os.ftruncate(self._descriptor, 0)
            os.close(self._descriptor)
            self._descriptor = None

    def forget(self) -> None:
        """Close a forked child's copy of the lock, which would outlive the holder."""
        if self._descriptor is not None:
            os.close(self._descriptor)
            self._descriptor = None


def read_holder(folder: Path, file: str = LEASE_FILE) -> Holder | None:
    """Return who holds the lease of the warehouse in `folder`, None when nobody does."""
    path = folder / file
    try:
        descriptor = os.open(path, os.O_RDONLY)
    except FileNotFoundError:
        return None
    except OSError:
        return _read_text(path)
    try:
        if _lock(descriptor, 1, fcntl.LOCK_SH):
            return None
        return _read_text(path)
    finally:
        os.close(descriptor)


def _lock(descriptor: int, tries: int, kind: int = fcntl.LOCK_EX) -> bool:
    for left in range(tries, 0, -1):
        try:
            fcntl.flock(descriptor, kind | fcntl.LOCK_NB)
        except BlockingIOError:
            if left > 1:
                time.sleep(PAUSE_S)
        else:
            return True
    return False


def _read_text(path: Path) -> Holder:
    try:
        return Holder(**json.loads(path.read_text(encoding="utf-8")))
    except (OSError, ValueError, TypeError):
        # Between taking the lock and writing the text, or a file that is not ours.
        return Holder("another process", 0, "this machine", "just now")


def _held_error(path: Path) -> WarehouseError:
    holder = _read_text(path)
    return WarehouseError(
        str(path.parent),
        f"the warehouse has one writer at a time, and {holder} is it",
        f"Stop it first (kill {holder.pid}), or let it do the work: `newsbeat status` and "
        "`newsbeat sql` read beside it",
    )


_held: weakref.WeakSet[Lease] = weakref.WeakSet()


def _forget_in_children(lease: Lease) -> None:
    _held.add(lease)


def _forget_all() -> None:
    for lease in list(_held):
        with suppress(OSError):
            lease.forget()


os.register_at_fork(after_in_child=_forget_all)
