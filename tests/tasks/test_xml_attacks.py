"""Attacks that XML is known for do nothing in any of our readers."""

from __future__ import annotations

import tarfile
import time
from collections.abc import Callable
from datetime import UTC, datetime
from functools import partial
from pathlib import Path
from typing import Any

import pytest

from models.errors import NewsbeatError
from models.subscriptions import read_wishes
from tasks.feeds import parse_feed
from tasks.sitemaps import parse_sitemap

NOW = datetime(2024, 5, 7, tzinfo=UTC)
ATTACKS = (
    Path(__file__).parents[3] / "shared" / "data" / "C_feeds" / "xml-attacks" / "defusedxml.tar.xz"
)
SECRET = "a secret that no document may show"

READERS: dict[str, Callable[[bytes], Any]] = {
    "feed": partial(parse_feed, url="https://a.example/", now=NOW),
    "sitemap": partial(parse_sitemap, url="https://a.example/", now=NOW),
    "opml": lambda body: read_wishes(body.decode(), "list.opml"),
}
SHAPES = {
    "feed": "<rss><channel><item><title>{0}</title><link>https://a.example/1</link></item></channel>"
    "</rss>",
    "sitemap": "<urlset xmlns:n='http://www.google.com/schemas/sitemap-news/0.9'><url>"
    "<loc>https://a.example/1</loc><n:news><n:title>{0}</n:title></n:news></url></urlset>",
    "opml": "<opml><body><outline text='{0}' xmlUrl='https://a.example/1'/></body></opml>",
}


def said(kind: str, document: str) -> str:
    """Return all that a reader makes of a document, or its refusal."""
    try:
        return repr(READERS[kind](document.encode()))
    except NewsbeatError as error:
        return str(error)


@pytest.mark.parametrize("kind", READERS)
@pytest.mark.parametrize(
    "subset",
    ["<!ENTITY x SYSTEM '{0}'>", "<!ENTITY % p SYSTEM '{0}'> %p;", "<!ENTITY x PUBLIC 'a' '{0}'>"],
)
def test_no_file_is_read_from_a_document(tmp_path: Path, kind: str, subset: str) -> None:
    secret = tmp_path / "secret"
    secret.write_text(SECRET)
    doctype = f"<!DOCTYPE d [{subset.format(secret.as_uri())}]>"
    assert SECRET not in said(kind, doctype + SHAPES[kind].format("&x;"))


@pytest.mark.parametrize("kind", READERS)
def test_entities_that_multiply_cost_neither_time_nor_room(kind: str) -> None:
    lines = "".join(f"<!ENTITY l{n} '{f'&l{n - 1};' * 10}'>" for n in range(1, 12))
    bomb = f"<!DOCTYPE d [<!ENTITY l0 'lol'>{lines}]>" + SHAPES[kind].format("&l11;")
    began = time.process_time()
    assert len(said(kind, bomb)) < 10_000
    assert time.process_time() - began < 5.0


@pytest.mark.parametrize("kind", READERS)
def test_an_xinclude_or_a_style_sheet_is_text(tmp_path: Path, kind: str) -> None:
    secret = tmp_path / "secret"
    secret.write_text(SECRET)
    style = f"<?xml-stylesheet href='{secret.as_uri()}'?>"
    include = f"<xi:include xmlns:xi='http://www.w3.org/2001/XInclude' href='{secret.as_uri()}'/>"
    document = style + SHAPES[kind].replace("{0}", "x").replace("</", f"{include}</", 1)
    assert SECRET not in said(kind, document)


@pytest.mark.real
@pytest.mark.parametrize("kind", READERS)
def test_known_attacks_are_inert(kind: str) -> None:
    if not ATTACKS.exists():
        pytest.skip("the collection of known attacks is not here")
    with tarfile.open(ATTACKS) as archive:
        for member in archive:
            file = archive.extractfile(member) if member.isfile() else None
            if file is None:
                continue
            began = time.process_time()
            assert len(said(kind, file.read().decode("utf-8", "replace"))) < 100_000
            assert time.process_time() - began < 5.0, member.name
