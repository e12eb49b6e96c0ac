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

import protego
from protego._urlpattern import _URLPattern
from protego._utils import _quote_path

from models.answers import ROBOTS_BYTES

_TOKEN = re.compile(r"[A-Za-z0-9_-]+")
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
    unreadable
        Why the rules cannot be read for now; None where they could.
    status
        HTTP status of that answer, where one came.
    """

    def __init__(
        self,
        parsed: protego.Protego | None,
        unreadable: str | None = None,
        status: int | None = None,
    ) -> None:
        self._parsed = parsed
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
        if self._parsed is None:
            return _Group()
        sets = self._parsed._user_agents
        ours = [each for name, each in sets.items() if _product_token(name) == token]
        ours = ours or [each for name, each in sets.items() if name == "*"]
        rules = [_Rule(rule.field == "allow", rule.value) for each in ours for rule in each._rules]
        rules.sort(key=lambda rule: (-rule.pattern.priority, not rule.allows))
        delays = [each.crawl_delay for each in ours if each.crawl_delay is not None]
        return _Group(tuple(rules), max(delays, default=None))


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
        return RobotsRules(None, "no answer")
    if status == 429 or status >= 500:
        return RobotsRules(None, f"HTTP {status}", status)
    if body is None or not 200 <= status < 300:
        return RobotsRules(None)
    return RobotsRules(_parse(body[:ROBOTS_BYTES]))


def _parse(body: bytes) -> protego.Protego | None:
    text = body.decode("utf-8-sig", errors="replace").translate(_NO_LINE_ENDS)
    # A page in place of the file ("not found", with status 200) holds no rules, though its
    # prose may read like some.
    return None if text.lstrip().startswith("<") else protego.Protego.parse(text)


def _product_token(agent: str) -> str:
    """Return the name by which groups are chosen: ``newsbeat`` of ``newsbeat/0.1 (+…)``."""
    found = _TOKEN.match(agent.strip())
    return found.group().lower() if found else ""
