"""Which link of a list page leads to the entries before these.

A pager is told by what its links say of themselves (``rel=next``), by their words, or by
the number after the present page's; and by where they lead: to the same list, of which
only the number of the page differs.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import dataclass

import ada_url

from models.identity import url_key

_NEXT_WORDS = re.compile(
    r"(?:go to (?:the )?)?(?:(?:the )?next|older)(?: (?:page|posts?|entries|articles|stories))?"
    r"|(?:load|show|view|see) more(?: (?:posts|articles|stories|news))?|more"
    r"|(?:nächste|vorwärts|weiter|ältere)(?: (?:seite|beiträge|artikel))?"
    r"|(?:page )?suivante?|(?:articles )?précédents|siguiente|anteriores|seguinte|próxima"
    r"|successiva?|volgende|nästa|neste|næste|seuraava|następna|další|următoarea|следующая|следующие|вперед"
    r"|вперёд|дальше|далее|ещё|еще|наступна|sonraki|التالي|下一页|下一頁|次へ|次のページ|다음",
    re.IGNORECASE,
)
_NEXT_CLASS = re.compile(
    r"(?:^|\s)(?!\S*prev)(?:\S*[-_])?(?:next|older|pagenavnext)", re.IGNORECASE
)
_PAGE_PART = re.compile(
    r"(?:[?&;](?:\w*page\w*|\w*paged|p|pg|pn|pag|start|st|offset|from|skip|seite|o)=\d+)"
    r"|(?:/(?:page|seite|pagina|stranica|p)[-/_]?\d+)"
    r"|(?:[-_/.](?:page|index|p|list[-_]\d+)?[-_]?\d{1,4}(?=\.\w{3,5}$|/?$))",
    re.IGNORECASE,
)
_FILE = re.compile(r"/(?:index|default)\.\w+$|\.(?:s?html?|php|aspx?)$", re.IGNORECASE)
_NUMBER = re.compile(r"\d{1,4}")
_HOST = re.compile(r"\A[^/?]*")


@dataclass(frozen=True, slots=True)
class PagerLink:
    """A link that may lead on.

    Attributes
    ----------
    said
        Its words, or what stands for them (``aria-label``, ``title``).
    names
        Its own classes and id, and those of the elements close around it.
    is_next
        Whether its ``rel`` says so.
    in_pager
        Whether it stands in a block that is called a pager.
    """

    url: str
    said: str
    names: str = ""
    is_next: bool = False
    in_pager: bool = False


def choose_older(links: Iterable[PagerLink], url: str, current: int | None = None) -> str | None:
    """Return the address of the next page of the list at `url`, None where none is sure.

    Parameters
    ----------
    links
        All links of the page's own site, in its order.
    current
        Number of the present page, where its pager marks it.

    Examples
    --------
    >>> choose_older([PagerLink("https://a.example/news?page=2", "Older posts")],
    ...              "https://a.example/news")
    'https://a.example/news?page=2'
    >>> choose_older([PagerLink("https://a.example/next-storm", "Next storm")],
    ...              "https://a.example/news") is None
    True
    """
    own = url_key(url)
    stem = list_stem(url)
    number = current or _page_number(url) or 1
    best: tuple[int, str] | None = None
    for link in links:
        if url_key(link.url) == own:
            continue
        score = _score(link, list_stem(link.url) == stem, number)
        if score >= _ENOUGH and (best is None or score > best[0]):
            best = (score, link.url)
    return best[1] if best else None


def may_lead_on(said: str, names: str, is_next: bool) -> bool:
    """Tell whether a link may be one of a pager's: most of a page's are not, by little."""
    bare = _bare(said)
    return (
        is_next
        or not bare
        or bare.isdecimal()
        or _NEXT_WORDS.fullmatch(bare) is not None
        or _NEXT_CLASS.search(names) is not None
    )


def _bare(said: str) -> str:
    return " ".join(said.split()).strip(" \t>»›→❯▶⟩·|.-«‹←")


_ENOUGH = 4
"""Points: what ``rel`` says is enough by itself, words and names only where it is the same
list or a pager. A wrong page read costs a request or two, a pager not found nothing new."""


def _score(link: PagerLink, is_same_list: bool, number: int) -> int:
    said = " ".join(link.said.split())
    bare = _bare(said)
    score = 4 if link.is_next else 0
    score += 3 if bare and _NEXT_WORDS.fullmatch(bare) else 0
    score += 2 if not bare and said and _leads_on(said) else 0
    score += 2 if _NEXT_CLASS.search(link.names) else 0
    score += 1 if link.in_pager else 0
    if said.isdigit() and int(said) == number + 1 and (link.in_pager or is_same_list):
        score += 2
    return score + (2 if is_same_list else -2)


def _leads_on(said: str) -> bool:
    return any(mark in said for mark in ">»›→❯▶⟩")


def _page_number(url: str) -> int | None:
    found = list(_PAGE_PART.finditer(_tail(url)))
    digits = _NUMBER.findall(found[-1][0]) if found else []
    return int(digits[-1]) if digits and 0 < int(digits[-1]) < 5000 else None


def list_stem(url: str) -> str:
    """Return what all pages of one list have in common in their addresses.

    Examples
    --------
    >>> list_stem("https://a.example/news/page/3/"), list_stem("https://a.example/news?page=3")
    ('a.example/news', 'a.example/news')
    """
    try:
        host = ada_url.URL(url).host.removeprefix("www.")
    except ValueError:
        return url
    bare = _FILE.sub("", _PAGE_PART.sub("", _tail(url)))
    return host + bare.rstrip("/?&").replace("/?", "?")


def _tail(url: str) -> str:
    """Return what follows the host in the key of an address."""
    return _HOST.sub("", url_key(url), count=1)
