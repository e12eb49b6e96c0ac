"""Stored real pages to measure with: a folder of archives with an index, or of plain files.

The index is ``index.csv`` with the columns ``dataset, site, kind, date, lang, archive,
member``; archives are ``.tar.xz``. A folder without one is read as ``SITE/anything.html``.
Nothing found on a page is followed.
"""

from __future__ import annotations

import csv
import tarfile
from collections.abc import Collection, Iterator
from dataclasses import dataclass
from pathlib import Path

from models.errors import ConfigError

_SUFFIXES = (".html", ".htm", ".xhtml")


@dataclass(frozen=True, slots=True)
class StoredPage:
    """One page of the folder.

    Attributes
    ----------
    site
        Registered domain, or name of the folder.
    kind
        ``"article"`` or ``"index"``.
    date
        When it was taken, as the index says; ``""`` where unknown.
    dataset
        Collection it belongs to.
    language
        Of the page, as the index says; ``""`` where unknown.
    archive, member
        Where it is; no archive for a plain file.
    """

    site: str
    kind: str
    date: str
    dataset: str
    language: str
    archive: str
    member: str


def list_pages(folder: Path) -> list[StoredPage]:
    """Return the pages of a folder, in the order of its index.

    Raises
    ------
    ConfigError
        If the folder holds no pages.
    """
    index = folder / "index.csv"
    pages = _indexed(index) if index.is_file() else _plain(folder)
    if not pages:
        raise ConfigError(str(folder), "", None, "no HTML pages here, and no index.csv")
    return pages


def _indexed(index: Path) -> list[StoredPage]:
    with index.open(encoding="utf-8", newline="") as lines:
        return [
            StoredPage(
                site=row["site"],
                kind=row.get("kind") or "article",
                date=row.get("date") or "",
                dataset=row.get("dataset") or "",
                language=row.get("lang") or "",
                archive=row.get("archive") or "",
                member=row["member"],
            )
            for row in csv.DictReader(lines)
        ]


def _plain(folder: Path) -> list[StoredPage]:
    files = sorted(path for path in folder.rglob("*") if path.suffix.lower() in _SUFFIXES)
    return [
        StoredPage(path.parent.name, "article", "", "", "", "", str(path.relative_to(folder)))
        for path in files
    ]


def read_pages(folder: Path, wanted: Collection[StoredPage]) -> Iterator[tuple[StoredPage, bytes]]:
    """Yield the wanted pages with their bytes, archive by archive.

    Pages that an archive does not hold are left out.
    """
    by_archive: dict[str, dict[str, StoredPage]] = {}
    for page in wanted:
        by_archive.setdefault(page.archive, {})[page.member] = page
    for archive, members in sorted(by_archive.items()):
        if archive:
            yield from _from_archive(folder / archive, members)
        else:
            for member, page in members.items():
                yield page, (folder / member).read_bytes()


def _from_archive(
    archive: Path, members: dict[str, StoredPage]
) -> Iterator[tuple[StoredPage, bytes]]:
    with tarfile.open(archive, "r:xz") as stored:
        for entry in stored:
            page = members.get(entry.name)
            content = stored.extractfile(entry) if page is not None else None
            if page is not None and content is not None:
                yield page, content.read()
