"""A place for compiled loops to be kept between runs, one per state of their source code."""

from __future__ import annotations

import hashlib
import os
import platform
from importlib.resources import files
from importlib.resources.abc import Traversable
from pathlib import Path

import numba


def keep_compiled_code(folder: Path | None = None) -> Path:
    """Name the folder compiled code is kept in, and return it.

    Call it before anything of `models` that compiles is imported. The folder's name
    holds a digest of every source file of `models`: code compiled from another state of
    any of them is never found again.

    Parameters
    ----------
    folder
        Where to keep it; the user's cache folder where None.
    """
    base = folder or Path(os.environ.get("XDG_CACHE_HOME") or "~/.cache").expanduser()
    place = base / "newsbeat" / f"compiled-{_digest()}"
    numba.config.CACHE_DIR = str(place)  # type: ignore[attr-defined]
    return place


def _digest() -> str:
    digest = hashlib.sha256(f"{numba.__version__} {platform.python_version()}".encode())
    for source in sorted(_sources(files("models")), key=str):
        digest.update(source.read_bytes())
    return digest.hexdigest()[:12]


def _sources(folder: Traversable) -> list[Traversable]:
    found = []
    for item in folder.iterdir():
        if item.is_dir():
            found += _sources(item)
        elif item.name.endswith(".py"):
            found.append(item)
    return found
