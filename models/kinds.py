"""What a source of each kind is read at, and which kind an address speaks of.

People give the address they look at: a channel, a profile, a subreddit. What can be read
without an account lies beside it, under an address that follows from it by a rule of each
service. An address that is the public listing already is taken as it is, on any host.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import replace

import ada_url

from models.records import Kind, Source

POSTS: frozenset[Kind] = frozenset({"telegram", "mastodon", "bluesky", "reddit", "youtube"})
"""Kinds whose listing brings each post whole: there is no page behind it worth fetching."""

REDDIT_GAP_S = 10.0
"""Reddit answers 429 to whoever reads feeds without an account more often than this."""

_TELEGRAM_HOSTS = frozenset({"t.me", "www.t.me", "telegram.me", "telegram.dog"})
_TELEGRAM_NAME = re.compile(r"[A-Za-z]\w{3,31}", re.ASCII)
_NO_CHANNELS = frozenset(
    {"joinchat", "addstickers", "addemoji", "addlist", "share", "proxy", "socks", "boost", "login"}
)
_SORTED = frozenset({"new", "hot", "top", "rising", "controversial"})
_MASTODON_NAME = re.compile(r"@(?P<name>\w+)(?:@(?P<host>[\w.-]+\.\w+))?", re.ASCII)


def kind_of(source: Source) -> Kind:
    """Return the kind a source is read as: ``auto`` gives way to what its host says.

    Examples
    --------
    >>> kind_of(Source("harbour", "", "https://t.me/harbour"))
    'telegram'
    >>> kind_of(Source("harbour", "", "https://harbour.example/"))
    'auto'
    """
    if source.kind != "auto":
        return source.kind
    known = recognise(source.url)
    return known if known and public_address(known, source.url) else "auto"


def tells_whole(source: Source) -> bool:
    """Tell whether the listing of a source is all there is: no article page is fetched."""
    return source.extract.method == "listing" or kind_of(source) in POSTS


def as_polled(source: Source) -> Source:
    """Return `source` as it is polled: its kind known, its address the public listing.

    What its service asks of everybody holds where the source sets nothing itself.

    Examples
    --------
    >>> as_polled(Source("harbour", "", "https://t.me/harbour", "telegram")).url
    'https://t.me/s/harbour'
    """
    kind, http = kind_of(source), source.http
    if kind == "reddit" and http.min_gap_s is None:
        http = replace(http, min_gap_s=REDDIT_GAP_S)
    address = public_address(kind, source.url) or source.url
    return replace(source, kind=kind, url=address, http=http)


def recognise(url: str) -> Kind | None:
    """Return the kind whose service an address belongs to, None where the host says nothing.

    Mastodon runs on hosts of any name: it is found by looking (``newsbeat add``).

    Examples
    --------
    >>> recognise("https://www.reddit.com/r/harbours"), recognise("https://news.example/")
    ('reddit', None)
    """
    try:
        host = ada_url.URL(url).hostname
    except ValueError:
        return None
    if host in _TELEGRAM_HOSTS or host.endswith(".t.me"):
        return "telegram"
    for domain, kind in _SERVICES.items():
        if host == domain or host.endswith(f".{domain}"):
            return kind
    return None


_SERVICES: dict[str, Kind] = {
    "bsky.app": "bluesky",
    "reddit.com": "reddit",
    "youtube.com": "youtube",
}


def account_of(kind: Kind, url: str) -> str | None:
    """Return what a channel, profile or board is called by its own address.

    Examples
    --------
    >>> account_of("telegram", "https://t.me/s/harbour_news"), account_of("feed", "https://a.b/")
    ('harbour_news', None)
    """
    address = public_address(kind, url) if kind in POSTS else None
    if address is None:
        return None
    found = _ACCOUNT.search(address)
    return found[1] if found else None


_ACCOUNT = re.compile(
    r"(?:/s/|/@|/users/|/tags/|/profile/|/r/|/user/|channel_id=|playlist_id=)([\w.:-]+?)"
    r"(?:\.rss)?(?:[/?&#]|$)"
)


def public_address(kind: Kind, url: str) -> str | None:
    """Return the public listing behind the address of a channel, profile or board.

    Parameters
    ----------
    kind
        Kinds whose listing stands at the address itself give it back.
    url
        Absolute address, as people copy it.

    Returns
    -------
    str or None
        None where nothing public follows from the address: a private invitation, or a
        YouTube handle, whose channel has to be looked up first.

    Examples
    --------
    >>> public_address("mastodon", "https://social.example/@harbour")
    'https://social.example/@harbour.rss'
    >>> public_address("youtube", "https://www.youtube.com/@harbour") is None
    True
    """
    if kind not in _RULES:
        return url
    try:
        parsed = ada_url.URL(url.strip())
    except ValueError:
        return None
    return _RULES[kind](parsed, [part for part in parsed.pathname.split("/") if part])


def _at(parsed: ada_url.URL, path: str, host: str | None = None) -> str:
    return f"https://{host}{path}" if host else f"{parsed.protocol}//{parsed.host}{path}"


def _telegram(parsed: ada_url.URL, parts: list[str]) -> str | None:
    host = str(parsed.hostname)
    if host.endswith(".t.me") and host != "www.t.me":
        parts = [host.removesuffix(".t.me"), *parts]
    if parts and parts[0] == "s":
        parts = parts[1:]
    if not parts or parts[0] in _NO_CHANNELS or not _TELEGRAM_NAME.fullmatch(parts[0]):
        return None
    is_telegram = host in _TELEGRAM_HOSTS or host.endswith(".t.me")
    return _at(parsed, f"/s/{parts[0]}", "t.me" if is_telegram else None)


def _mastodon(parsed: ada_url.URL, parts: list[str]) -> str | None:
    if parsed.pathname.endswith(".rss"):
        return str(parsed.href)
    if parts and parts[0] in {"web", "deck"}:
        parts = parts[1:]
    if not parts:
        return None
    if found := _MASTODON_NAME.fullmatch(parts[0]):
        return _at(parsed, f"/@{found['name']}.rss", found["host"])
    if parts[0] in {"users", "tags"} and len(parts) > 1:
        return _at(parsed, f"/{parts[0]}/{parts[1]}.rss")
    return None


def _bluesky(parsed: ada_url.URL, parts: list[str]) -> str | None:
    if len(parts) < 2 or parts[0] != "profile":
        return None
    return _at(parsed, f"/profile/{parts[1]}/rss")


def _reddit(parsed: ada_url.URL, parts: list[str]) -> str | None:
    host = "www.reddit.com" if recognise(str(parsed.href)) == "reddit" else None
    if parsed.pathname.endswith(".rss"):
        return _at(parsed, f"{parsed.pathname}{parsed.search}", host)
    if len(parts) < 2:
        return None
    if parts[0] in {"u", "user"}:
        return _at(parsed, f"/user/{parts[1]}/.rss", host)
    if parts[0] != "r":
        return None
    # The front of a board is ordered by votes: what gets none would never be seen there.
    order = parts[2] if len(parts) > 2 and parts[2] in _SORTED else "new"
    return _at(parsed, f"/r/{parts[1]}/{order}/.rss", host)


def _youtube(parsed: ada_url.URL, parts: list[str]) -> str | None:
    host = "www.youtube.com" if recognise(str(parsed.href)) == "youtube" else None
    feed = "/feeds/videos.xml"
    if parsed.pathname == feed:
        return _at(parsed, f"{feed}{parsed.search}", host)
    if len(parts) > 1 and parts[0] == "channel":
        return _at(parsed, f"{feed}?channel_id={parts[1]}", host)
    found = re.search(r"[?&]list=([\w-]+)", parsed.search)
    if parts and parts[0] in {"playlist", "watch"} and found:
        return _at(parsed, f"{feed}?playlist_id={found[1]}", host)
    return None


_RULES: dict[Kind, Callable[[ada_url.URL, list[str]], str | None]] = {
    "telegram": _telegram,
    "mastodon": _mastodon,
    "bluesky": _bluesky,
    "reddit": _reddit,
    "youtube": _youtube,
}
