"""Room on the disk: polls stop while there is little, rather than fill it to the last byte."""

from __future__ import annotations

import shutil

from tasks.settings import Settings

_MEBIBYTE = 2**20


def find_shortage(settings: Settings) -> str | None:
    """Return in a sentence that the warehouse's disk has too little room, None where it has enough.

    A database on a full disk can be read, but neither written nor put in order; with
    some room kept free it never comes to that.
    """
    least_mb = settings.warehouse.min_free_mb
    try:
        free_mb = shutil.disk_usage(settings.folder).free / _MEBIBYTE
    except OSError:
        return None
    if free_mb >= least_mb:
        return None
    return (
        f"only {free_mb:.0f} MiB are free at {settings.folder}, and {least_mb:.0f} are to stay free"
        " (warehouse.min_free_mb); free some space and it goes on by itself"
    )
