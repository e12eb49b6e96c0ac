"""What other processes ask of the one that writes: small files in the warehouse's folder.

The warehouse has one writer. `newsbeat ack` in another process leaves its wish here, and
the writer takes it in within a second; where none runs, the next one does.
"""

from __future__ import annotations

import json
import os
import tempfile
from dataclasses import dataclass
from pathlib import Path

REQUESTS = "acknowledged"
MOST_BYTES = 10_000


@dataclass(frozen=True, slots=True)
class Request:
    """Somebody wants a notice acknowledged.

    Attributes
    ----------
    notice
        First digits of its name.
    by
        Who.
    """

    notice: str
    by: str
    path: Path

    def done(self) -> None:
        """Take it away: it was heeded."""
        self.path.unlink(missing_ok=True)


def leave_request(folder: Path, notice: str, by: str) -> Path:
    """Leave the wish that a notice be acknowledged; return its file."""
    place = folder / REQUESTS
    place.mkdir(parents=True, exist_ok=True)
    handle, name = tempfile.mkstemp(dir=place, suffix=".new")
    with os.fdopen(handle, "w", encoding="utf-8") as file:
        json.dump({"notice": notice, "by": by}, file)
    path = Path(name).with_suffix(".json")
    Path(name).rename(path)
    return path


def read_requests(folder: Path) -> list[Request]:
    """Return the wishes that lie there; what is none is taken away."""
    found = []
    for path in sorted((folder / REQUESTS).glob("*.json")):
        try:
            asked = json.loads(path.read_bytes()[:MOST_BYTES])
            found.append(Request(str(asked["notice"]), str(asked["by"]), path))
        except (OSError, ValueError, KeyError, TypeError):
            path.unlink(missing_ok=True)
    return found
