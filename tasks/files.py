"""Files for people: written whole or not at all, and read where they were written."""

from __future__ import annotations

import contextlib
import os
from pathlib import Path

from models.errors import NewsbeatError


def write_text(path: Path, text: str) -> None:
    """Write a file, and the folders it lies in; whoever reads it meanwhile sees the old one.

    Raises
    ------
    NewsbeatError
        If it cannot be written.
    """
    draft = path.with_name(f".{path.name}.{os.getpid()}")
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        # Half a surrogate pair is no text that a file could hold.
        draft.write_text(text, encoding="utf-8", errors="replace", newline="\n")
        draft.replace(path)
    except OSError as error:
        with contextlib.suppress(OSError):
            draft.unlink()
        raise NewsbeatError(f"{path}: cannot be written ({error.strerror})") from error


def read_bytes(path: Path) -> bytes | None:
    """Return what a file holds, None where there is none to be read."""
    try:
        return path.read_bytes()
    except OSError:
        return None


def list_folders(path: Path) -> dict[str, list[str]]:
    """Return the names of the folders in a folder, and of the files in each; both sorted."""
    try:
        folders = sorted(each for each in path.iterdir() if each.is_dir())
        return {
            each.name: sorted(file.name for file in each.iterdir() if file.is_file())
            for each in folders
        }
    except OSError:
        return {}
