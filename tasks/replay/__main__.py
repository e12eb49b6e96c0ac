"""Serve the recorded web by hand: ``python -m tasks.replay --port 8100 --speed 60``."""

from __future__ import annotations

import sys
from datetime import datetime
from pathlib import Path

import click

from models.errors import NewsbeatError
from tasks.clock import Clock
from tasks.replay.history import RecordedWeb, read_moment, write_catalogue
from tasks.replay.recording import read_recording
from tasks.replay.sample import SAMPLE_START, sample_web
from tasks.replay.server import serve


@click.command()
@click.option("--port", default=8100, show_default=True, help="Loopback port.")
@click.option(
    "--speed",
    default=60.0,
    type=click.FloatRange(min=0.0, min_open=True),
    show_default=True,
    help="Its seconds per second.",
)
@click.option("--start", default=SAMPLE_START.isoformat(), show_default=True, help="First moment.")
@click.option("--hours", default=24.0, show_default=True, help="How long its sites publish.")
@click.option("--sources", default=12, show_default=True, help="How many sites.")
@click.option("--seed", default=1, show_default=True, help="Of invented times and texts.")
@click.option(
    "--clock", "spelling", metavar="CLOCK", help="A running clock to join (speed:wall:at)."
)
@click.option("--data", type=click.Path(path_type=Path), help="Folder of recordings to play.")
@click.option("--catalogue", type=click.Path(path_type=Path), help="Folder to name its sources in.")
def main(
    port: int,
    speed: float,
    start: str,
    hours: float,
    sources: int,
    seed: int,
    spelling: str | None,
    data: Path | None,
    catalogue: Path | None,
) -> None:
    """Serve invented news sites, or recorded ones, on loopback until interrupted."""
    clock = _clock(spelling, start, speed)
    try:
        web = _web(data, clock.now(), hours, sources, seed)
        if catalogue is not None:
            click.echo(f"catalogue: {write_catalogue(web.sources(port), catalogue)}")
        click.echo(f"{len(web.history)} sites at http://127.0.0.1:{port}, clock {clock.spell()}")
        serve(web, clock, port)
    except NewsbeatError as error:
        click.echo(str(error), err=True)
        sys.exit(1)


def _clock(spelling: str | None, start: str, speed: float) -> Clock:
    try:
        if spelling is not None:
            return Clock.read_spelling(spelling)
        return Clock.starting_at(read_moment(start), speed)
    except ValueError as error:
        raise click.UsageError(
            f"--start wants an ISO time, --clock speed:wall:at ({error})"
        ) from error


def _web(data: Path | None, start: datetime, hours: float, sources: int, seed: int) -> RecordedWeb:
    if data is not None:
        return read_recording(data, start, n_sources=sources, hours=hours)
    return sample_web(start, hours=hours, seed=seed, n_sources=sources)


if __name__ == "__main__":
    main()
