"""What a site's robots.txt lets us do: parsed, asked, explained.

What an answer to the question for robots.txt means is RFC 9309, section 2.3.1:

=========================  ==========================================================
2xx                        the rules hold (their first 500 KiB)
4xx, 401 and 403 too       there are no rules: everything is allowed
429                        not now: nothing is allowed until it can be read
5xx, no answer             not now: nothing is allowed until it can be read
=========================  ==========================================================

protego reads the rules. Which group is ours is decided here, as the standard has it
(protego takes ``User-agent: news`` for a rule about ``newsbeat``), and so is which
rule wins, because people want to be told which one it was.
"""

from __future__ import annotations

import functools
import re
from dataclasses import dataclass
from typing import Any

import protego
from protego._urlpattern import _URLPattern
from protego._utils import _quote_path

from models.answers import ROBOTS_BYTES

_TOKEN = re.compile(r"[A-Za-z0-9_-]+")
# What belongs to groups, and the slips of the pen that protego reads as such.
_RECORD = re.compile(
    r"[ \t]*(?:user-?[ ]?agent|dis{1,2}al{1,2}ow|diasllow|disallaw|allow)\b", re.IGNORECASE
)
_LINE_ENDS = re.compile(r"\r\n|\r|\n")
# protego ends lines at these too, robots.txt does not.
_NO_LINE_ENDS = str.maketrans(dict.fromkeys("\v\f\x1c\x1d\x1e\x85\u2028\u2029", " "))


@dataclass(frozen=True, slots=True)
class RobotsVerdict:
    """What robots.txt says of one address, and the line that says it.

    Attributes
    ----------
    rule
        Such as ``"Disallow: /private"``; None where no rule matches.
    crawl_delay
        Seconds between requests that the site asks for; None where it asks for none.
    """

    allowed: bool
    rule: str | None = None
    crawl_delay: float | None = None


@dataclass(frozen=True, slots=True)
class _Rule:
    allows: bool
    pattern: _URLPattern

    @property
    def text(self) -> str:
        return f"{'Allow' if self.allows else 'Disallow'}: {self.pattern._pattern}"


@dataclass(frozen=True, slots=True)
class _Group:
    """The rules for one agent, the one that wins first."""

    rules: tuple[_Rule, ...] = ()
    crawl_delay: float | None = None


class RobotsRules:
    """The rules of one site. Made by :func:`parse_robots`.

    Parameters
    ----------
    parsed
        What was read; None where there was nothing to read.
    delays
        The same read with the records that are none of the standard's, for ``Crawl-delay``.
    unreadable
        Why the rules cannot be read for now; None where they could.
    status
        HTTP status of that answer, where one came.
    """

    def __init__(
        self,
        parsed: protego.Protego | None,
        delays: protego.Protego | None = None,
        *,
        unreadable: str | None = None,
        status: int | None = None,
    ) -> None:
        self._parsed = parsed
        self._delays = delays
        self.unreadable = unreadable
        self.status = status
        self._group = functools.lru_cache(maxsize=4)(self._find_group)

    def allows(self, url: str, agent: str) -> bool:
        """Return whether `agent` may fetch `url`."""
        return self.explain(url, agent).allowed

    def explain(self, url: str, agent: str) -> RobotsVerdict:
        r"""Return whether `agent` may fetch `url`, and which rule says so.

        The longest rule that matches wins, and ``Allow`` wins over ``Disallow`` of the same
        length, wherever they stand.

        Parameters
        ----------
        url
            Absolute address.
        agent
            Name of the agent, or its whole ``User-Agent``, which begins with it.

        Examples
        --------
        >>> rules = parse_robots(b"User-agent: *\nDisallow: /private", 200)
        >>> rules.explain("http://a.example/private/x", "newsbeat/0.1")
        RobotsVerdict(allowed=False, rule='Disallow: /private', crawl_delay=None)
        """
        path = _quote_path(url)
        if path == "/robots.txt":
            return RobotsVerdict(True)
        if self.unreadable is not None:
            return RobotsVerdict(False, f"robots.txt cannot be read ({self.unreadable})")
        group = self._group(_product_token(agent))
        for rule in group.rules:
            if rule.pattern.match(path):
                return RobotsVerdict(rule.allows, rule.text, group.crawl_delay)
        return RobotsVerdict(True, None, group.crawl_delay)

    def crawl_delay(self, agent: str) -> float | None:
        """Return the seconds between requests that the site asks of `agent`, if it does."""
        return self._group(_product_token(agent)).crawl_delay

    def _find_group(self, token: str) -> _Group:
        """Return the rules of every group that names us, or else those for everyone."""
        rules = [
            _Rule(rule.field == "allow", rule.value)
            for each in _groups_of(self._parsed, token)
            for rule in each._rules
        ]
        rules.sort(key=lambda rule: (-rule.pattern.priority, not rule.allows))
        asked = [each.crawl_delay for each in _groups_of(self._delays, token)]
        delays = [delay for delay in asked if delay is not None]
        return _Group(tuple(rules), max(delays, default=None))


def _groups_of(parsed: protego.Protego | None, token: str) -> list[Any]:
    """Return the groups that name an agent, or else those for everyone."""
    if parsed is None:
        return []
    groups = parsed._user_agents
    ours = [each for name, each in groups.items() if _product_token(name) == token]
    return ours or [each for name, each in groups.items() if name == "*"]


def parse_robots(body: bytes | None, status: int | None) -> RobotsRules:
    """Return the rules that an answer to the question for robots.txt amounts to.

    Parameters
    ----------
    body
        What came, None where nothing did.
    status
        HTTP status, None where there was no answer at all.

    Examples
    --------
    >>> parse_robots(None, 403).allows("http://a.example/", "newsbeat")
    True
    >>> parse_robots(None, 503).allows("http://a.example/", "newsbeat")
    False
    """
    if status is None:
        return RobotsRules(None, unreadable="no answer")
    if status == 429 or status >= 500:
        return RobotsRules(None, unreadable=f"HTTP {status}", status=status)
    if body is None or not 200 <= status < 300:
        return RobotsRules(None)
    return _read_rules(body[:ROBOTS_BYTES])


def _read_rules(body: bytes) -> RobotsRules:
    text = body.decode("utf-8-sig", errors="replace").translate(_NO_LINE_ENDS)
    # A page in place of the file ("not found", with status 200) holds no rules, though its
    # prose may read like some.
    if text.lstrip().startswith("<"):
        return RobotsRules(None)
    # Other records, known or not, must not come between the lines of a group; protego lets them.
    bare = "\n".join(filter(_RECORD.match, _LINE_ENDS.split(text)))
    return RobotsRules(protego.Protego.parse(bare), protego.Protego.parse(text))


def _product_token(agent: str) -> str:
    """Return the name by which groups are chosen: ``newsbeat`` of ``newsbeat/0.1 (+…)``."""
    found = _TOKEN.match(agent.strip())
    return found.group().lower() if found else ""
