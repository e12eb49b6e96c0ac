"""Measure when sources are polled: every figure of simulation, beside its target.

``python benchmarks/polling.py --part real --part events --json figures.json``. Without
``--part`` all parts run, some twenty minutes on two cores. The real cuts need the shared
collection of publication times beside the checkout; nothing of it is kept. All ratios of
a table come from one run: same trace, same page model, a timer averaged over phases.
"""

from __future__ import annotations

import importlib
import json
import os
import sys
from pathlib import Path

import click

sys.path.insert(0, str(Path(__file__).parent))

from polls.figures import Figure, render, say

from tasks.compilation import keep_compiled_code

PARTS = ("reference", "made_up", "real", "events", "starts", "traffic", "table2", "cost")


@click.command()
@click.option("--part", "parts", multiple=True, type=click.Choice(PARTS), help="All if none.")
@click.option("--workers", default=os.cpu_count() or 1, show_default=True, help="Threads.")
@click.option("--json", "file", type=click.Path(path_type=Path), help="Write the figures there.")
@click.option("--raise-floor", is_flag=True, help="Write the scores that tests hold us to.")
def main(parts: tuple[str, ...], workers: int, file: Path | None, raise_floor: bool) -> None:
    """Measure polling and print the figures as Markdown."""
    keep_compiled_code()
    if raise_floor:
        importlib.import_module("polls.floor").raise_floor()
        return
    found: dict[str, list[Figure]] = {}
    for part in parts or PARTS:
        say(f"== {part}")
        found[part] = importlib.import_module(f"polls.{part}").measure(workers)
        click.echo(f"\n## {part}\n\n{render(found[part])}\n")
    if file is not None:
        values = {part: [each.as_json() for each in figures] for part, figures in found.items()}
        file.write_text(json.dumps(values, indent=2), encoding="utf-8")
    missed = [figure.name for figures in found.values() for figure in figures if not figure.is_met]
    click.echo(f"{len(missed)} targets missed" + "".join(f"\n- {name}" for name in missed))


if __name__ == "__main__":
    main()
