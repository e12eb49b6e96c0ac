"""Live against simulated: a recorded day of real sources through the whole product.

``python benchmarks/agreement.py [--hours 24] [--speed 120] [--price 300]``

Twelve real sources live through a day of theirs, with their pages, at high clock speed:
Prefect's server, our worker, fetch, extraction, DuckDB. Every source begins unknown and
is polled by `price`, with the price held. The simulator then replays the same policy over
the same publication times, from what the first listing taught. The live mean lag must be
the simulator's within a tenth, plus the handling time: from when a poll was due to when
its listing was in, which the clock's speed stretches. Needs the shared collection.
"""

from __future__ import annotations

import sys
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import click
import numpy as np

sys.path.insert(0, str(Path(__file__).parent))

from tasks.compilation import keep_compiled_code

keep_compiled_code()

from parts.recorded import Scene, living  # noqa: E402
from rig import markdown_table, say  # noqa: E402

from flows.intensity import Intensities  # noqa: E402
from models.records import Entry, PollRules, Source  # noqa: E402
from models.simulator import Rule, replay_source  # noqa: E402
from tasks.duck.database import literal  # noqa: E402
from tasks.replay.history import RecordedSource  # noqa: E402
from tasks.replay.recording import read_recording  # noqa: E402

DATA = Path(__file__).parents[2] / "shared" / "data"
FLOOR_S, CEILING_S = 60.0, 86_400.0
TOLERANCE = 0.10

POLLS = """
    SELECT epoch(due_at), epoch(finished_at), entries_listed FROM polls
    WHERE source = {source} AND outcome IN ('new', 'empty', 'not_modified') ORDER BY due_at
"""
FOUND = """
    SELECT entries.url, epoch(entries.first_seen_at), epoch(polls.due_at)
    FROM entries JOIN polls USING (poll_id) WHERE entries.source = {source}
"""


@dataclass(frozen=True, slots=True)
class Lived:
    """What became of one source, live or simulated, after its second poll.

    Attributes
    ----------
    lags_s
        Of the entries that came out after the first poll.
    handling_s
        Of the same entries: from when their poll was due to when they were in. Empty where
        simulated.
    polls
        How many.
    """

    lags_s: np.ndarray
    handling_s: np.ndarray
    polls: int


@dataclass(frozen=True, slots=True)
class Beginning:
    """The first two polls of a source: when its listing first came in, and what came next."""

    first_s: float
    second_s: float
    n_listed: int


@click.command()
@click.option("--hours", default=24.0, show_default=True, help="Recorded hours to live through.")
@click.option("--speed", default=120.0, show_default=True, help="Recorded seconds per second.")
@click.option("--price", default=300.0, show_default=True, help="Entry-seconds a poll must save.")
def main(hours: float, speed: float, price: float) -> None:
    """Compare the live mean lag with the simulator's; exit 1 where they differ too much."""
    if not DATA.exists():
        raise SystemExit(f"needs the shared collection at {DATA}")
    web = read_recording(DATA, hours=hours + 0.5)
    rules = PollRules(policy="price", min_interval_s=FLOOR_S, max_interval_s=CEILING_S)
    end = web.start + timedelta(hours=hours)
    with living(web, rules, speed, f"\n[budget]\nprice = {price}\n") as scene:
        say(f"living through {hours:g} hours in {60 * hours / speed:.0f} min …")
        while (left_s := (end - scene.clock.now()).total_seconds()) > 0.0:
            scene.wait(min(left_s / speed, 60.0))
            say(f"{scene.clock.now():%d %H:%M}")
        begun = {each.source: read_beginning(scene, each) for each in web.history}
        live = {each.source: read_lived(scene, each, begun[each.source]) for each in web.history}
        ended = scene.clock.now()
    simulated = {
        each.source: simulate(each, begun[each.source], ended, price) for each in web.history
    }
    if not show(live, simulated, speed):
        raise SystemExit(1)


def read_beginning(scene: Scene, source: RecordedSource) -> Beginning:
    """Return the first two polls of a source."""
    rows = _rows(scene, POLLS, source.source)
    return Beginning(rows[0][1], rows[1][0], rows[0][2])


def read_lived(scene: Scene, source: RecordedSource, begun: Beginning) -> Lived:
    """Return the lags of a source's entries, by the recording's own times."""
    appeared = {source.url_of(entry): entry.published_at.timestamp() for entry in source.entries}
    found = np.array(
        [
            (seen_s - appeared[url], seen_s - due_s)
            for url, seen_s, due_s in _rows(scene, FOUND, source.source)
            if appeared[url] > begun.first_s
        ]
    ).reshape(-1, 2)
    n_polls = sum(due_s >= begun.second_s for due_s, *_ in _rows(scene, POLLS, source.source))
    return Lived(found[:, 0], found[:, 1], n_polls)


def simulate(source: RecordedSource, begun: Beginning, ended: datetime, price: float) -> Lived:
    """Return what the simulator makes of a source from its second poll on."""
    first = datetime.fromtimestamp(begun.first_s, UTC)
    listed = [source.entries[at] for at in source.window_at(first)]
    known = Source(source.source, source.title, source.index_url, timezone=source.timezone)
    intensities = Intensities({source.source: known}, first)
    intensities.learn(
        source.source,
        since=None,
        until=first,
        entries=[
            Entry(source.url_of(each), published_at=each.published_at, title=each.title)
            for each in listed
        ],
        n_listed=begun.n_listed,
    )
    done = replay_source(
        np.array([each.published_at.timestamp() for each in source.entries]),
        Rule("price", knob=price, floor_s=FLOOR_S, ceiling_s=CEILING_S),
        start_s=begun.first_s,
        end_s=ended.timestamp(),
        first_s=begun.second_s,
        timezone=source.timezone,
        window=source.window,
        state=intensities.habits(source.source).state,
    )
    return Lived(done.lags_s, np.empty(0), len(done.polls_s))


def show(live: dict[str, Lived], simulated: dict[str, Lived], speed: float) -> bool:
    """Print the comparison, and return whether the two agree."""
    whole, told = _joined(live), _joined(simulated)
    rows = [_row(name, lived, simulated[name]) for name, lived in live.items()]
    rows.append(_row("all", whole, told))
    columns = ["source", "entries", "polls", "simulated", "mean lag, s", "simulated", "handling, s"]
    click.echo(markdown_table(columns, rows))
    handling_s = float(whole.handling_s.mean())
    share = (float(whole.lags_s.mean()) - handling_s) / float(told.lags_s.mean())
    click.echo(
        f"\nLive without handling over simulated: **{share:.3f}** (1 within {TOLERANCE:g});"
        f" handling {handling_s:.0f} s of the clock, {handling_s / speed:.2f} s of ours."
    )
    return abs(share - 1.0) <= TOLERANCE


def _joined(parts: dict[str, Lived]) -> Lived:
    return Lived(
        np.concatenate([part.lags_s for part in parts.values()]),
        np.concatenate([part.handling_s for part in parts.values()]),
        sum(part.polls for part in parts.values()),
    )


def _row(name: str, live: Lived, told: Lived) -> list[str]:
    means = (live.lags_s, told.lags_s, live.handling_s)
    spelled = [f"{values.mean():.0f}" if len(values) else "" for values in means]
    return [name, str(len(live.lags_s)), str(live.polls), str(told.polls), *spelled]


def _rows(scene: Scene, query: str, source: str) -> list[tuple[Any, ...]]:
    return scene.query(query.format(source=literal(source)))


if __name__ == "__main__":
    main()
