"""What happened, in words."""

from __future__ import annotations

from models.records import PollResult


def describe_poll(result: PollResult) -> str:
    """Return what came of a poll, in words.

    Examples: ``3 new of 30 listed, 3 articles stored``, ``nothing new (304)``,
    ``failed: name not found``.
    """
    poll = result.poll
    if poll.is_failure:
        return f"{poll.outcome}: {poll.reason}"
    parts = []
    if poll.entries_new:
        parts.append(f"{poll.entries_new} new of {poll.entries_listed} listed")
    elif poll.outcome == "not_modified":
        parts.append("nothing new (304)")
    else:
        parts.append(f"nothing listed: {poll.reason}" if poll.reason else "nothing new")
    if poll.articles_stored:
        parts.append(f"{spell_count(poll.articles_stored, 'article')} stored")
    if result.pending:
        parts.append(f"{spell_count(len(result.pending), 'article')} owed")
    if poll.possible_loss:
        parts.append("possible loss: no listed entry was known")
    return ", ".join(parts)


def spell_count(number: int, thing: str) -> str:
    """Return a number of things: ``1 poll``, ``2,300 polls``."""
    return f"{number:,} {thing}{'' if number == 1 else 's'}"
