"""Cuts of the real collection of publication times.

FB16, NA20, NA22 and RSS25 by origin, as the yardstick defines them. Taken are sources
whose stamps are the publishers' own (tier 1) and that published in at least 80 % of the
whole weeks; merged streams of many outlets are left out. Nothing in the data tells a
public figure's page from a newsroom's, so FB16 keeps both.
"""

from __future__ import annotations

from pathlib import Path

import duckdb
import numpy as np

from models.traces import Stream, Trace

DATA = Path(__file__).parents[2].parent / "shared" / "data" / "A_timestamps"

CUTS = {
    "FB16": "origin = 'fb-pages-2016'",
    "RSS25": (
        "origin IN ('al-rss-2025', 'cl-rss-2024', 'id-rss-2025', 'readhub-2023', 'vn-rss-2025')"
        " AND published_at >= '2025-10-06' AND published_at < '2026-06-02'"
    ),
    "NA20": "origin = 'newsapi-2020' AND source NOT LIKE 'agg:%'",
    "NA22": "origin = 'newsapi-2022' AND source NOT LIKE 'agg:%'",
}
WEEK_S = 604_800.0
LEAST_WEEKS = 0.8


def read_cut(name: str, window: int = 30) -> Trace:
    """Return a cut; its first half trains."""
    with duckdb.connect() as connection:
        connection.execute("SET TimeZone = 'UTC'")
        rows = connection.execute(
            f"""
            SELECT events.source, any_value(tz), list(epoch(published_at) ORDER BY published_at)
            FROM read_parquet('{DATA / "events.parquet"}') events
            JOIN read_csv('{DATA / "sources.csv"}') sources USING (source)
            WHERE tier = 1 AND {CUTS[name].replace("origin", "events.origin")}
            GROUP BY events.source ORDER BY events.source
            """
        ).fetchall()
    stamps = {source: np.array(times, dtype=np.float64) for source, _, times in rows}
    start_s = min(times[0] for times in stamps.values())
    end_s = max(times[-1] for times in stamps.values())
    n_weeks = int((end_s - start_s) // WEEK_S)
    kept = []
    for source, zone, _ in rows:
        weeks = np.unique((stamps[source] - start_s) // WEEK_S)
        if (weeks < n_weeks).sum() >= LEAST_WEEKS * n_weeks:
            kept.append(Stream(source, stamps[source], zone or "UTC"))
    return Trace(tuple(kept), start_s, 0.5 * (start_s + end_s), end_s, window)
