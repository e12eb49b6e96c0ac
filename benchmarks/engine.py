"""Measure the engine: against Prefect's stock worker, at rising rates, whole polls, a soak.

``python benchmarks/engine.py --part stock --json figures.json``. Without ``--part`` all parts
run, about half an hour. What the figures mean is in ``docs/engine.md``. Processor times grow
by half where cores are contended, so the load average is printed with them.
"""

from __future__ import annotations

import json
import os
import platform
import subprocess
import sys
import tempfile
from datetime import UTC, datetime
from importlib.metadata import version
from pathlib import Path
from typing import Any

import click

sys.path.insert(0, str(Path(__file__).parent))

from parts import dispatch, poll, soak, stock
from rig import say

PARTS: dict[str, Any] = {"stock": stock, "dispatch": dispatch, "poll": poll, "soak": soak}


@click.command()
@click.option("--part", "parts", multiple=True, type=click.Choice(list(PARTS)), help="All if none.")
@click.option("--minutes", default=15.0, show_default=True, help="How long the soak lasts.")
@click.option("--sources", default=450, show_default=True, help="Sources of the soak.")
@click.option("--policy", default="fixed", show_default=True, help="Of the part poll.")
@click.option("--json", "file", type=click.Path(path_type=Path), help="Write the figures there.")
def main(
    parts: tuple[str, ...], minutes: float, sources: int, policy: str, file: Path | None
) -> None:
    """Measure the engine and print the figures as Markdown."""
    arguments: dict[str, dict[str, Any]] = {
        "soak": {"minutes": minutes, "n_sources": sources},
        "poll": {"policy": policy},
    }
    result: dict[str, Any] = {"machine": _machine()}
    if len(parts) == 1:
        result[parts[0]] = _measure(parts[0], arguments.get(parts[0], {}))
    else:
        for part in parts or PARTS:
            result |= _measure_apart(
                part, ["--minutes", minutes, "--sources", sources, "--policy", policy]
            )
    if file is not None:
        file.write_text(json.dumps(result, indent=2), encoding="utf-8")
    click.echo(_render(result))


def _measure(part: str, arguments: dict[str, Any]) -> dict[str, Any]:
    say(f"== {part}")
    before = os.getloadavg()[0]
    figures: dict[str, Any] = PARTS[part].measure(**arguments)
    return figures | {"load_average": {"before": before, "after": os.getloadavg()[0]}}


def _measure_apart(part: str, options: list[Any]) -> dict[str, Any]:
    """Measure a part in a process of its own: Prefect reads its settings once per process."""
    with tempfile.NamedTemporaryFile(suffix=".json") as file:
        command = [sys.executable, __file__, "--part", part, "--json", file.name]
        command += [str(option) for option in options]
        subprocess.run(command, check=True, stdout=subprocess.DEVNULL)
        measured: dict[str, Any] = json.loads(Path(file.name).read_text(encoding="utf-8"))
    return {part: measured[part]}


def _machine() -> dict[str, Any]:
    return {
        "date": datetime.now(UTC).date().isoformat(),
        "cores": os.cpu_count(),
        "python": platform.python_version(),
        "prefect": version("prefect"),
        "duckdb": version("duckdb"),
    }


def _render(result: dict[str, Any]) -> str:
    machine = result["machine"]
    versions = ", ".join(f"{name} {machine[name]}" for name in ("python", "prefect", "duckdb"))
    texts = [f"# Engine, {machine['date']}", f"{machine['cores']} cores, {versions}."]
    for part, renderer in PARTS.items():
        if part in result:
            load = result[part]["load_average"]
            texts += [
                f"## {part}",
                renderer.render(result[part]),
                f"Load average {load['before']:.1f} before, {load['after']:.1f} at the end.",
            ]
    return "\n\n".join(texts)


if __name__ == "__main__":
    main()
