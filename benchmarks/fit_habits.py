"""Print the habits of the shipped sample sources, fitted on real publication times.

``python benchmarks/fit_habits.py ../shared/data > data/sample/habits.toml`` makes the
file anew. Only figures leave the real data: the sample's names, addresses and texts are
invented.

Each hour of the week is estimated from its own count, drawn towards the same hour of
the other working days (or weekend days) with the weight of `SHRINK_WEEKS` weeks, so that
a short or sparse source does not become a jagged one.
"""

from __future__ import annotations

import sys
from datetime import UTC, datetime
from pathlib import Path

import duckdb
import numpy as np
from numpy.typing import NDArray

from models.publication import FloatArray, PublicationHabits, fit_burstiness, local_minutes

Minutes = NDArray[np.int64]

SHRINK_WEEKS = 3.0
SHRINK_PER_MINUTE = 5.0
MAX_EVENTS = 20_000
HEADER = """\
# When the sample's sources publish: figures fitted on real publishers by
# benchmarks/fit_habits.py. Weights have a mean of 100; weeks begin on Monday at 00:00
# of the source's own zone. The meaning of each key: models/publication.py.
"""

# sample source -> the real one its figures are fitted on. German has no real trace of its
# own in the collection, Chinese one: others with alike hours stand in.
FITTED_ON = {
    "severny-telegraf": "tg:rian_ru@2025",
    "vesti-zarechya": "web:lenta.ru@2020",
    "delovoy-kurs": "web:rbc.ru@2020",
    "stadion-segodnya": "web:sports.ru@2020",
    "harbour-courier": "web:bbc-news@2020",
    "inland-gazette": "fb:theguardian@2016",
    "lantern-daily": "web:ndtv.com@2022",
    "paddock-notes": "web:motorsport.com",
    "jiangwan-ribao": "agg:readhub.cn",
    "yunhai-kuaixun": "web:detik.com",
    "moorland-bote": "web:telegrafi.com",
    "hafenblatt": "web:lequipe.fr@2020",
}


def main(folder: Path) -> None:
    """Fit every sample source and print its table."""
    print(HEADER)
    for name, real in FITTED_ON.items():
        print(f"[{name}]\n{spell_habits(fit_habits(folder, real))}")


def fit_habits(folder: Path, real: str) -> PublicationHabits:
    """Return the habits of one real source."""
    zone, resolution = _read_source(folder, real)
    times = _read_times(folder, real)
    opening = datetime.fromtimestamp(float(times[0]) // 3600 * 3600, UTC)
    span = int((times[-1] - opening.timestamp()) / 60) + 1
    of_week = local_minutes(opening, span, zone)
    minutes = (times - opening.timestamp()) / 60.0
    local = of_week[minutes.astype(int)]
    hour_of_week = _hour_of_week(local, of_week)
    minute_of_hour = np.bincount(local % 60, minlength=60).astype(np.float64) + SHRINK_PER_MINUTE
    plain = PublicationHabits(
        entries_per_day=round(len(times) / span * 1440, 1),
        hour_of_week=_per_mille(hour_of_week),
        minute_of_hour=_per_mille(minute_of_hour),
        timezone=zone,
        resolution_s=resolution,
    )
    ratio, decay = _burstiness(plain, minutes, of_week)
    return PublicationHabits(
        plain.entries_per_day, plain.hour_of_week, plain.minute_of_hour, ratio, decay, zone,
        resolution,
    )  # fmt: skip


def spell_habits(habits: PublicationHabits) -> str:
    """Return the habits as the lines of a TOML table."""
    week = np.array(habits.hour_of_week, dtype=int).reshape(7, 24)
    rows = "".join(f"    {_row(day)},\n" for day in week)
    return (
        f"entries_per_day = {habits.entries_per_day}\n"
        f"branching_ratio = {habits.branching_ratio}\n"
        f"decay_minutes = {habits.decay_minutes}\n"
        f"resolution_s = {habits.resolution_s}\n"
        f"hour_of_week = [\n{rows}]\n"
        f"minute_of_hour = [\n"
        + "".join(
            f"    {_row(np.array(habits.minute_of_hour[at : at + 20], dtype=int))[1:-1]},\n"
            for at in (0, 20, 40)
        )
        + "]\n"
    )


def _row(values: FloatArray) -> str:
    return "[" + ", ".join(str(int(value)) for value in values) + "]"


def _hour_of_week(local: Minutes, of_week: Minutes) -> FloatArray:
    """Return entries per hour in each hour of the week, shrunk towards like days."""
    counts = np.bincount(local // 60, minlength=168).reshape(7, 24).astype(float)
    weeks = np.bincount(of_week // 60, minlength=168).reshape(7, 24) / 60.0
    like = np.empty((7, 24))
    for days in (slice(0, 5), slice(5, 7)):
        like[days] = counts[days].sum(axis=0) / weeks[days].sum(axis=0)
    return ((counts + SHRINK_WEEKS * like) / (weeks + SHRINK_WEEKS)).ravel()


def _burstiness(
    habits: PublicationHabits, minutes: FloatArray, of_week: Minutes
) -> tuple[float, float]:
    rng = np.random.default_rng(1)
    spread = np.sort(minutes + rng.random(len(minutes)) * habits.resolution_s / 60.0)
    return fit_burstiness(spread, habits.expected_per_minute()[of_week])


def _per_mille(weights: FloatArray) -> tuple[float, ...]:
    """Return weights scaled to a mean of 100, whole numbers."""
    return tuple(np.round(weights / weights.mean() * 100.0).tolist())


def _read_source(folder: Path, real: str) -> tuple[str, int]:
    query = "SELECT tz, resolution FROM read_csv(?) WHERE source = ?"
    path = str(folder / "A_timestamps" / "sources.csv")
    zone, resolution = duckdb.execute(query, [path, real]).fetchall()[0]
    return zone, {"s": 1, "min": 60}[resolution]


def _read_times(folder: Path, real: str) -> FloatArray:
    """Return the last `MAX_EVENTS` times, seconds since 1970, in order."""
    query = "SELECT epoch_ms(published_at) FROM read_parquet(?) WHERE source = ? ORDER BY 1"
    path = str(folder / "A_timestamps" / "events.parquet")
    rows = duckdb.execute(query, [path, real]).fetchnumpy()
    return np.asarray(next(iter(rows.values())), dtype=float)[-MAX_EVENTS:] / 1000.0


if __name__ == "__main__":
    main(Path(sys.argv[1]))
