"""The documents of checks: a page per source, the last one and the last that found drift."""

from __future__ import annotations

from pathlib import Path

from models.errors import WarehouseError
from tasks.settings import Settings

FOLDER = "checks"


def write_document(settings: Settings, source: str, page: str, *, drifted: bool) -> str:
    """Write the page of a check, in place of the one before it; return its file.

    Returns
    -------
    str
        Relative to the warehouse's folder.

    Raises
    ------
    WarehouseError
        If it cannot be written.
    """
    name = f"{FOLDER}/{source}{'-drifted' if drifted else ''}.html"
    path = settings.folder / name
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        draft = path.with_suffix(".tmp")
        draft.write_text(page, encoding="utf-8")
        draft.replace(path)
    except OSError as error:
        raise WarehouseError(
            str(path), f"it cannot be written: {error.strerror}", "Free some space"
        ) from error
    return name


def document_address(settings: Settings, name: str) -> str:
    """Return where people open a document: on the status page or, without one, on the disk."""
    if settings.page.url:
        return f"{settings.page.url.rstrip('/')}/{name}"
    return str(Path(settings.folder / name).resolve())


def list_documents(settings: Settings, source: str) -> list[str]:
    """Return the documents of a source: the last check's, and the last that found drift."""
    names = (f"{FOLDER}/{source}.html", f"{FOLDER}/{source}-drifted.html")
    return [name for name in names if (settings.folder / name).is_file()]
