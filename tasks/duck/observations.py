"""What polls covered and found: the history that habits are learnt from."""

from __future__ import annotations

from collections import defaultdict
from datetime import datetime

import duckdb

from models.records import Observed

READ_WELL = "('new', 'empty', 'not_modified')"
"""Outcomes of polls that saw the list, or were told that it is as it was."""


def read_observed(connection: duckdb.DuckDBPyConnection, since: datetime) -> list[Observed]:
    """Return per source what was covered and found since its newest fit, and since `since`.

    An entry counts at its declared time where that can be true, else at the moment it was
    first seen. Of what was listed at the first look, only the last two weeks count.
    """
    stamps: dict[str, list[float]] = defaultdict(list)
    for source, stamp in connection.execute(_STAMPS, [since]).fetchall():
        stamps[source].append(stamp)
    observed = []
    for source, first, last, window in connection.execute(_COVERED, [since]).fetchall():
        found = stamps[source]
        begun = min([first, *found])
        observed.append(Observed(source, begun, last, tuple(found), window))
    return observed


def read_spending(
    connection: duckdb.DuckDBPyConnection, since: datetime
) -> tuple[int, float, datetime | None]:
    """Return polls and megabytes of index pages since a moment, and the first poll after it."""
    row = connection.execute(
        "SELECT count(*), coalesce(sum(index_bytes), 0) / 1e6, min(started_at)"
        " FROM polls WHERE started_at > $1",
        [since],
    ).fetchone()
    assert row is not None
    return int(row[0]), float(row[1]), row[2]


_BEGUN = """
WITH fits AS (SELECT source, max(fitted_at) AS fitted_at FROM intensity_models GROUP BY source),
begun AS (
    SELECT source, greatest(coalesce(fitted_at, $1), $1) AS begun_at
    FROM sources LEFT JOIN fits USING (source)
)
"""

_COVERED = f"""{_BEGUN}
SELECT source, epoch(min(started_at)), epoch(max(started_at)), max(entries_listed)
FROM polls JOIN begun USING (source)
WHERE outcome IN {READ_WELL} AND started_at > begun_at
GROUP BY source
"""  # noqa: S608 - our own constants

_STAMPS = f"""{_BEGUN}
SELECT source, epoch(CASE
    WHEN published_precision IS DISTINCT FROM 'day' AND published_at <= first_seen_at
        AND (is_backlog OR published_at > first_seen_at - INTERVAL 1 HOUR) THEN published_at
    ELSE first_seen_at END) AS stamp
FROM entries JOIN begun USING (source)
WHERE first_seen_at > begun_at
    AND (NOT is_backlog OR published_at > first_seen_at - INTERVAL 14 DAY)
ORDER BY stamp
"""  # noqa: S608 - our own constants
