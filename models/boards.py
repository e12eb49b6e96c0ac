"""What in the address of a board's thread is the thread, and what only comes with it.

Boards write a visitor's session into every link, and a thread's headline, which its
author may change, into its address. What stays put is a number.
"""

from __future__ import annotations

import re

_SESSION = re.compile(r"(?:sid|s|phpsessid|jsessionid|oscsid|zenid)=[0-9a-f]{26,64}", re.IGNORECASE)
_SESSION_IN_PATH = re.compile(r";jsessionid=[^/?#;]*", re.IGNORECASE)
_THREAD_IN_PATH = (
    re.compile(r"(?P<before>.*/threads/)[^/]+\.(?P<number>\d+)(?P<after>(?:/.*)?)"),  # XenForo
    re.compile(r"(?P<before>.*/t/)[^/]+/(?P<number>\d+)(?P<after>(?:/\d+)?)"),  # Discourse
)
_THREAD_PAGES = ("/viewtopic.php", "/showthread.php")
_LEADING_NUMBER = re.compile(r"(\d+)-")
_CHOOSING = re.compile(r"(?:p|t|post|start|page)=\d+", re.IGNORECASE)


BOARD_FEEDS: dict[str, tuple[str, ...]] = {
    "phpBB": ("feed.php",),
    "vBulletin": ("external.php?type=RSS2", "external?type=rss2"),
    "XenForo": ("forums/-/index.rss",),
    "Discourse": ("latest.rss",),
}
"""Where boards of each software list what is new, from the address of the board."""


def is_session(part: str) -> bool:
    """Tell whether a parameter of a query is a visitor's session.

    Examples
    --------
    >>> is_session("sid=0123456789abcdef0123456789abcdef"), is_session("s=pier")
    (True, False)
    """
    return _SESSION.fullmatch(part) is not None


def settled_path(path: str) -> str:
    """Return a path without what may change in it: sessions, headlines of threads.

    Examples
    --------
    >>> settled_path("/threads/the-pier-is-closed.512/")
    '/threads/.512/'
    >>> settled_path("/t/the-pier/512/3"), settled_path("/2026/the-pier")
    ('/t//512/3', '/2026/the-pier')
    """
    path = _SESSION_IN_PATH.sub("", path)
    for pattern in _THREAD_IN_PATH:
        if found := pattern.fullmatch(path):
            dot = "." if "threads/" in found["before"] else "/"
            return f"{found['before']}{dot}{found['number']}{found['after']}"
    return path


def settled_query(path: str, parts: list[str]) -> list[str]:
    """Return the parameters of a query that choose the page, where it is one of a board's.

    A post's own number says all; else it is the thread's, and which of its pages. Boards
    of vBulletin put the headline after the number.

    Examples
    --------
    >>> settled_query("/forum/viewtopic.php", ["f=2", "t=5", "p=9"])
    ['p=9']
    >>> settled_query("/showthread.php", ["5-The-pier-is-closed"])
    ['5']
    """
    if not path.endswith(_THREAD_PAGES):
        return parts
    if parts and (found := _LEADING_NUMBER.match(parts[0])):
        parts = [found[1], *parts[1:]]
    choosing = [part for part in parts if _CHOOSING.fullmatch(part)]
    post = [part for part in choosing if part.startswith("p=")]
    return post or choosing or parts
