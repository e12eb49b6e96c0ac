"""Hard gates: pages that are plainly no article, told before anything is compared."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from models.records import Article

GateKind = Literal["status", "type", "wall", "empty"]

_HTML_TYPES = ("text/html", "application/xhtml", "text/plain", "application/xml", "text/xml")


@dataclass(frozen=True, slots=True)
class Gate:
    """A gate that a page did not pass."""

    kind: GateKind
    reason: str


def find_gate(status: int, content_type: str | None, article: Article | None) -> Gate | None:
    """Return the hard gate that stops a page, None where it may be compared.

    A list of articles is compared: a site that was rebuilt may look like one.

    Parameters
    ----------
    status
        HTTP status it came with.
    content_type
        Its header; None where it had none.
    article
        As extracted; None where the page could not be read.

    Examples
    --------
    >>> find_gate(200, "text/html", Article("Harbour reopens", "It reopened on Monday.")) is None
    True
    >>> find_gate(200, "text/html", Article(None, None, kind="empty", reason="no text"))
    Gate(kind='empty', reason='no text')
    """
    if not 200 <= status < 300:
        return Gate("status", f"the page came with status {status}")
    if content_type and not content_type.lower().lstrip().startswith(_HTML_TYPES):
        kind = content_type.partition(";")[0].strip()[:60]
        return Gate("type", f"the page calls itself {kind}, which is no article page")
    if article is None:
        return Gate("empty", "the page could not be read")
    if article.kind in ("wall", "empty"):
        return Gate(article.kind, article.reason)
    return None
