"""Hard gates: pages that are plainly no article, told before anything is compared."""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Literal

GateKind = Literal["status", "type", "wall", "empty"]

WALL_CHARS, WALL_CHARS_TWICE = 700, 3_000
"""A wall is short: one phrase of theirs tells up to so many characters, two of them further.
A long text that speaks of cookies is an article about them."""

_HTML_TYPES = ("text/html", "application/xhtml", "text/plain", "application/xml", "text/xml")

_WALLS = tuple(
    re.compile(pattern, re.IGNORECASE)
    for pattern in (
        r"\b(enable|turn on|activate) (javascript|cookies)\b",
        r"\bjavascript (is|appears to be) (disabled|required)\b",
        r"\b(verify|confirm|checking) (that )?(you are|if you are|you're)?\s*(a )?human\b",
        r"\bchecking your browser\b|\bjust a moment\b.{0,40}\bbrowser\b",
        r"\b(unusual traffic|automated (access|requests|queries))\b",
        r"\baccess (to this page )?(has been |is )?denied\b|\byou have been blocked\b",
        r"\b(complete|solve) the (captcha|puzzle|challenge)\b|\bi('m| am) not a robot\b",
        r"\bwe (and our (\d+ )?partners )?(use|store|value)\b.{0,60}\b(cookies|your privacy)\b",
        r"\b(accept|reject|manage) (all )?(cookies|preferences)\b.{0,200}\bpartners\b",
        r"\bcookies?\b.{0,120}\b(zustimmen|akzeptieren|einwilligung)\b",
        r"\b(akzeptieren und weiter|mit werbung weiterlesen)\b",
        r"\bjavascript (aktivieren|ist deaktiviert)\b",
        r"(включите|разрешите) (javascript|cookies|куки)",
        r"(подтвердите, что вы (не робот|человек)|я не робот|введите (символы|текст) с картинки)",
        r"доступ (к (сайту|странице) )?(ограничен|заблокирован|запрещ[её]н)",
        r"(мы используем|сайт использует) (файлы )?cookie",
        r"(请(启用|开启)\s*javascript|请完成(安全)?验证|人机验证|访问(过于频繁|被拒绝))",
        r"\b(activez|activer) (javascript|les cookies)\b|\bnous utilisons des cookies\b",
        r"\b(habilite|active|activa) (javascript|las cookies)\b",
    )
)


@dataclass(frozen=True, slots=True)
class Gate:
    """A gate that a page did not pass."""

    kind: GateKind
    reason: str


def find_gate(
    status: int, content_type: str | None, title: str | None, text: str | None
) -> Gate | None:
    """Return the hard gate that stops a page, None where it may be compared.

    Parameters
    ----------
    status
        HTTP status it came with.
    content_type
        Its header; None where it had none.
    title, text
        As extracted; no text where the page gave none.

    Examples
    --------
    >>> find_gate(200, "text/html", "Harbour reopens", "It reopened on Monday. " * 20) is None
    True
    >>> find_gate(200, "text/html", "Just a moment", "Checking your browser before you go on")
    Gate(kind='wall', reason='a wall stands before the article: "Checking your browser"')
    """
    if not 200 <= status < 300:
        return Gate("status", f"the page came with status {status}")
    if content_type and not content_type.lower().lstrip().startswith(_HTML_TYPES):
        kind = content_type.partition(";")[0].strip()[:60]
        return Gate("type", f"the page calls itself {kind}, which is no article page")
    if not (text or "").strip():
        return Gate("empty", "the page holds no article text")
    return _find_wall(title or "", text or "")


def _find_wall(title: str, text: str) -> Gate | None:
    if len(text) > WALL_CHARS_TWICE:
        return None
    said = [found[0] for wall in _WALLS if (found := wall.search(text) or wall.search(title))]
    if len(said) < (1 if len(text) <= WALL_CHARS else 2):
        return None
    return Gate("wall", f'a wall stands before the article: "{" ".join(said[0].split())[:80]}"')
