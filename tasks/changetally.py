"""What became of a source that was rebuilt, counted: the figures of a demo."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import UTC, datetime

from tasks.warehouse_reader import WarehouseReader


@dataclass(frozen=True, slots=True)
class ChangeTally:
    """How a source fares since it was rebuilt.

    Attributes
    ----------
    found_at
        When its text was found to be wrong; None where it was not.
    n_pages
        Article pages fetched since the rebuilding.
    n_to_find, n_before
        How many of them it took to find it, with all that the last poll brought; and how
        many without, which were too few.
    n_held, n_held_before, n_missed
        Articles held back whose pages are from after the rebuilding; from before; and
        those from after that are not held back, but for pages that were under way.
    n_restored
        Articles with a text extracted anew.
    way
        How the text is got since it was mended; empty before.
    is_open
        Whether its notice still stands.
    """

    found_at: datetime | None
    n_pages: int
    n_to_find: int
    n_before: int
    n_held: int
    n_held_before: int
    n_missed: int
    n_restored: int
    way: str
    is_open: bool


def tally_change(reader: WarehouseReader, source: str, since: datetime) -> ChangeTally:
    """Return how a source fares since it was rebuilt at a moment."""
    moment = f"TIMESTAMPTZ '{since.astimezone(UTC).isoformat()}'"
    (row,) = reader.query(_CHANGE.replace("@source", f"'{source}'").replace("@since", moment)).rows
    return ChangeTally(*row)


_CHANGE = """
WITH told AS (
    SELECT min(raised_at) AS found_at, coalesce(bool_or(closed_at IS NULL), false) AS is_open
    FROM notices WHERE kind = 'drift' AND source = @source AND subject LIKE '%text is wrong%'
),
judged AS (
    SELECT
        count(*) AS n_pages,
        count(*) FILTER (judged_at <= found_at) AS n_to_find,
        count(*) FILTER (judged_at < found_at) AS n_before
    FROM page_verdicts JOIN pages USING (page_id), told
    WHERE page_verdicts.source = @source AND pages.source = @source AND fetched_at >= @since
        AND gate IS NULL
),
held AS (
    SELECT
        count(*) FILTER (quarantined AND fetched_at >= @since) AS n_held,
        count(*) FILTER (quarantined AND fetched_at < @since) AS n_held_before,
        count(*) FILTER (NOT quarantined AND fetched_at >= @since + INTERVAL 3 MINUTE) AS n_missed
    FROM articles JOIN pages USING (page_id)
    WHERE articles.source = @source AND pages.source = @source AND articles.kind = 'article'
),
mended AS (
    SELECT count(DISTINCT article_id) AS n_restored FROM article_versions
    WHERE source = @source AND poll_id = @source || '#reextract'
),
ways AS (
    SELECT coalesce(max(coalesce(selector, way)), '') AS way FROM repairs
    WHERE source = @source AND state = 'adopted'
)
SELECT
    found_at, n_pages, n_to_find, n_before,
    n_held, n_held_before, n_missed, n_restored, way, is_open
FROM told, judged, held, mended, ways
"""
