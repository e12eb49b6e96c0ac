"""Stored pages are listed and read from plain folders and from archives with an index."""

import io
import tarfile

import pytest

from models.drift.calibration import N_SCORES
from models.errors import ConfigError
from tasks.calibration import read_calibration
from tasks.corpus import list_pages, read_pages


def test_a_folder_of_sites_is_read(tmp_path):
    for name in ("tide/b.html", "tide/a.htm", "hill/c.html", "hill/notes.txt"):
        path = tmp_path / name
        path.parent.mkdir(exist_ok=True)
        path.write_text(name)
    pages = list_pages(tmp_path)
    assert [(page.site, page.member) for page in pages] == [
        ("hill", "hill/c.html"),
        ("tide", "tide/a.htm"),
        ("tide", "tide/b.html"),
    ]
    assert {body for _, body in read_pages(tmp_path, pages[:1])} == {b"hill/c.html"}


def test_archives_are_read_by_their_index(tmp_path):
    with tarfile.open(tmp_path / "tide.tar.xz", "w:xz") as archive:
        for name in ("a.html", "b.html"):
            entry = tarfile.TarInfo(name)
            entry.size = 6
            archive.addfile(entry, io.BytesIO(name.encode()))
    (tmp_path / "index.csv").write_text(
        "dataset,site,kind,date,lang,archive,member\n"
        "made,tide.example,article,2024-01-05,en,tide.tar.xz,b.html\n"
        "made,tide.example,index,,,tide.tar.xz,gone.html\n"
    )
    pages = list_pages(tmp_path)
    assert [page.date for page in pages] == ["2024-01-05", ""]
    assert [(page.site, body) for page, body in read_pages(tmp_path, pages)] == [
        ("tide.example", b"b.html")
    ]


def test_a_folder_without_pages_is_named(tmp_path):
    with pytest.raises(ConfigError, match=str(tmp_path)):
        list_pages(tmp_path)


def test_the_shipped_calibration_fits_this_version():
    tails = read_calibration().for_size(9)
    assert tails.floors.shape == (N_SCORES,)
    assert (tails.floors > 0).all()
