"""Keyword rules over the articles of a poll, before it is stored."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

from models.harmless import one_line
from models.records import RuleHit, Source, StoredArticle
from models.triage.hits import RuleMatch
from models.triage.matcher import Matcher, Passage
from models.triage.scope import Burst, Origin, raise_levels
from tasks.rulebook import Rulebook, read_rulebook, rulebook_stamp
from tasks.settings import Settings

logger = logging.getLogger("newsbeat.triage")

LARGE_CHARS = 200_000
"""More text than this is matched beside the loop: it takes a tenth of a second."""

Matches = dict[str, list[RuleMatch]]
"""By article."""


@dataclass(frozen=True, slots=True)
class _Ready:
    """Rules as last read."""

    book: Rulebook
    matcher: Matcher


class Triage:
    """The rules of this process; read anew when somebody has changed them.

    Parameters
    ----------
    settings
        Name the rules, and what raises their hits.
    """

    def __init__(self, settings: Settings) -> None:
        self.settings = settings
        self._ready: _Ready | None = None
        self._stamp: object = ()

    async def load(self) -> None:
        """Read the rules; broken ones are told and left out."""
        self._stamp = rulebook_stamp(self.settings)
        self._ready = await asyncio.to_thread(self._read)

    async def reload(self) -> None:
        """Read the rules anew where their files have changed."""
        stamp = await asyncio.to_thread(rulebook_stamp, self.settings)
        if stamp != self._stamp:
            await self.load()

    def _read(self) -> _Ready:
        book = read_rulebook(self.settings)
        for problem in book.problems:
            logger.warning("rule left out: %s", one_line(problem))
        logger.info("%d keyword rules", len(book.rules))
        return _Ready(book, book.matcher())

    async def match(self, source: Source, articles: Sequence[StoredArticle]) -> Matches:
        """Return which rules match each article; nothing of an article they fail on."""
        if self._ready is None or not self._ready.book.rules or not articles:
            return {}
        size = sum(len(item.article.text or "") for item in articles)
        if size > LARGE_CHARS:
            return await asyncio.to_thread(_match_all, self._ready.matcher, source, articles)
        return _match_all(self._ready.matcher, source, articles)

    def judge(
        self, source: Source, matches: Matches, bursts: Mapping[str, Burst]
    ) -> tuple[RuleHit, ...]:
        """Return the hits of a poll, their levels raised where that is due.

        Parameters
        ----------
        bursts
            Earlier hits of the rules that matched.
        """
        raising = self.settings.alerts.raising
        now_hit = {
            rule: replace(burst, last_hour=burst.last_hour + count_of(matches, rule))
            for rule, burst in bursts.items()
        }
        return tuple(
            _hit(article_id, match)
            for article_id, found in matches.items()
            for match in raise_levels(found, source.weight, now_hit, raising)
        )


def rules_of(matches: Matches) -> list[str]:
    """Return the rules that matched anything."""
    return sorted({match.rule.rule for found in matches.values() for match in found})


def count_of(matches: Matches, rule: str) -> int:
    """Return in how many articles a rule matched."""
    return sum(any(match.rule.rule == rule for match in found) for found in matches.values())


def _match_all(matcher: Matcher, source: Source, articles: Sequence[StoredArticle]) -> Matches:
    found: Matches = {}
    for item in articles:
        article = item.article
        origin = Origin(
            source=source.source,
            tags=source.tags,
            language=article.language or source.language,
            country=source.country,
            reach=source.reach,
            weight=source.weight,
        )
        try:
            matches = matcher.match(Passage.of(article.title, article.text), origin)
        except Exception:
            # A defect of ours met on one text must not cost the poll.
            logger.exception("rules over %s", item.url)
            continue
        if matches:
            found[item.article_id] = matches
    return found


def _hit(article_id: str, match: RuleMatch) -> RuleHit:
    place = match.first
    return RuleHit(
        article_id=article_id,
        rule=match.rule.rule,
        level=match.level,
        rule_level=match.rule.level,
        group=match.rule.group,
        term=place.term,
        mode=place.mode,
        matched=place.matched,
        start=place.start,
        end=place.end,
        n_places=len(match.places),
        sentence=match.sentence,
        explanation=f"{place.why}; {match.why}" if match.why else place.why,
    )
