"""Feed ``inspect`` with damaged and hostile files, and say what it cannot take.

``python benchmarks/fuzz.py [--kind K …] [--count N | --seconds S] [--seed N] [--coverage]``

What must hold for every file of every kind: an answer that is JSON, or an error of ours;
never another exception, more than 10 s of processor time, or more than 500 MB of memory.
Mutants are made by ``parts/mutation.py`` from the samples that ship, and from the shared
collection where it is present. With ``--coverage``, atheris chooses them by the code they
reach (``pip install --group fuzz``). Exit code 1 if anything was found.
"""

from __future__ import annotations

import faulthandler
import json
import os
import random
import subprocess
import sys
import tempfile
import time
import traceback
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import click

sys.path.insert(0, str(Path(__file__).parent))
sys.path.insert(0, str(Path(__file__).parents[1]))

from tasks.memory import peak_bytes

MAX_S = 10.0
"""Processor time that one file may take."""

MAX_MB = 500.0
"""Memory that the process may have needed at the end."""

_GIVE_UP_S = 60.0
_MEBIBYTE = 2**20
_SHARES = {"feed": 0.34, "sitemap": 0.2, "robots": 0.16, "list": 0.14, "article": 0.09}


@dataclass
class Report:
    """What a run came to."""

    n_files: int = 0
    n_read: int = 0
    slowest_s: float = 0.0
    slowest: str = ""
    findings: dict[str, str] = field(default_factory=dict)

    def note(self, what: str, where: str) -> None:
        """Keep a finding once, however many files show it."""
        self.findings.setdefault(what, where)


def try_file(body: bytes, kind: str, options: dict[str, Any], name: str, report: Report) -> None:
    """Look at one file, and note what must not be."""
    from parts.mutation import NOW

    from flows.inspection import inspect_bytes
    from models.errors import NewsbeatError
    from models.records import Source

    zone = options.get("zone", "UTC")
    source = Source("fuzzed", "", options["base_url"], timezone=zone)
    began = time.process_time()
    try:
        found = inspect_bytes(
            body,
            kind=kind,
            base_url=options["base_url"],
            content_type=options.get("content_type"),
            source=source,
            url=options["base_url"],
            now=NOW,
        )
        json.dumps(found, ensure_ascii=False).encode("utf-8")
        report.n_read += 1
    except NewsbeatError as error:
        if "the extractor broke" in str(error):
            report.note(_place_of(error.__cause__ or error), name)
    except Exception as error:  # noqa: BLE001 - whatever it is, it is what we look for
        report.note(_place_of(error), name)
    took = time.process_time() - began
    report.n_files += 1
    if took > report.slowest_s:
        report.slowest_s, report.slowest = took, name
    if took > MAX_S:
        report.note(f"{kind}: took {took:.0f} s", name)


def _place_of(error: BaseException) -> str:
    """Return an error by its kind and the last line of ours it came through."""
    frames = traceback.extract_tb(error.__traceback__)
    ours = [each for each in frames if "/site-packages/" not in each.filename]
    last, deepest = (ours or frames)[-1], frames[-1]
    inner = "" if deepest is last else f", in {Path(deepest.filename).name}:{deepest.lineno}"
    where = f"{Path(last.filename).name}:{last.lineno}{inner}"
    return f"{type(error).__name__} at {where}: {str(error)[:120]}"


def run_mutants(
    kinds: tuple[str, ...], count: int, seconds: float, seed: int, from_number: int
) -> Report:
    """Try mutants of each kind, until there were enough or time is up."""
    from parts.mutation import make_mutant

    report = Report()
    for kind in kinds:
        share = _SHARES.get(kind, 0.07) / sum(_SHARES.get(each, 0.07) for each in kinds)
        until = time.monotonic() + seconds * share if seconds else float("inf")
        number = from_number
        while number < from_number + round(count * share) and time.monotonic() < until:
            name = f"{kind} {number} (seed {seed})"
            mutant = make_mutant(kind, number, seed)
            faulthandler.dump_traceback_later(_GIVE_UP_S, exit=True)
            try_file(mutant.body, kind, mutant.options, name, report)
            faulthandler.cancel_dump_traceback_later()
            number += 1
    return report


# --- by coverage ---------------------------------------------------------------------


def run_coverage(kinds: tuple[str, ...], seconds: float, seed: int, folder: Path) -> Report:
    """Have atheris choose the files, a process a kind; one that dies is a finding."""
    from parts.mutation import seeds_of

    total = Report()
    for kind in kinds:
        corpus, found = folder / kind, folder / f"{kind}.json"
        corpus.mkdir(parents=True, exist_ok=True)
        for number, body in enumerate(seeds_of(kind)):
            (corpus / f"seed-{number}").write_bytes(b"\0\0" + body[:65_536])
        words = [
            sys.executable, __file__, "--atheris", kind, str(found), str(corpus),
            f"-max_total_time={seconds / len(kinds):.0f}", f"-seed={seed}", "-max_len=65536",
            "-timeout=30", f"-rss_limit_mb={MAX_MB:.0f}", "-verbosity=0", "-print_final_stats=0",
            f"-artifact_prefix={folder}/",
        ]  # fmt: skip
        done = subprocess.run(words, stderr=subprocess.PIPE, check=False, text=True)
        said = json.loads(found.read_text()) if found.exists() else {}
        total.n_files += said.get("n_files", 0)
        total.n_read += said.get("n_read", 0)
        if said.get("slowest_s", 0) > total.slowest_s:
            total.slowest_s, total.slowest = said["slowest_s"], said["slowest"]
        total.findings |= said.get("findings", {})
        if done.returncode:
            total.note(f"{kind}: atheris ended with {done.returncode}", done.stderr[-1500:])
    return total


def serve_atheris(kind: str, found: Path, arguments: list[str]) -> None:
    """Be the process that atheris drives: it ends by itself, and reports what it saw."""
    import atheris

    with atheris.instrument_imports(include=["models", "tasks", "flows.inspection"]):
        import flows.inspection  # noqa: F401

    from parts.mutation import ADDRESSES, CONTENT_TYPES, make_mutant

    report, folder = Report(), found.parent
    written = time.monotonic()

    def one_input(data: bytes) -> None:
        nonlocal written
        head, body = data[:2].ljust(2, b"\0"), data[2:]
        options = {
            "base_url": ADDRESSES[head[0] % len(ADDRESSES)],
            "content_type": CONTENT_TYPES[head[1] % len(CONTENT_TYPES)],
        }
        before = len(report.findings)
        try_file(body, kind, options, "", report)
        if len(report.findings) > before:
            name = f"{kind}-found-{len(report.findings)}"
            (folder / name).write_bytes(data)
            report.findings[list(report.findings)[-1]] = str(folder / name)
        if time.monotonic() - written > 1.0:
            written = time.monotonic()
            found.write_text(json.dumps(vars(report)))

    def mutate(data: bytes, most: int, seed: int) -> bytes:
        rng = random.Random(seed)
        if rng.random() < 0.5:
            return atheris.Mutate(data, most)
        from parts.mutation import MUTATIONS

        return (data[:2] + rng.choice(MUTATIONS)(data[2:], rng, kind))[:most]

    make_mutant(kind, 0)
    atheris.Setup([sys.argv[0], *arguments], one_input, custom_mutator=mutate)
    atheris.Fuzz()


@click.command()
@click.option("--kind", "kinds", multiple=True, help="Only this kind; may be repeated.")
@click.option("--count", default=10_000, show_default=True, help="Files in all.")
@click.option("--seconds", default=0.0, help="Stop after that many; with --coverage 60.")
@click.option("--seed", default=1, show_default=True, help="Of everything that is chosen.")
@click.option("--from-number", default=0, help="Begin with this mutant: to make one again.")
@click.option("--coverage", is_flag=True, help="Let atheris choose the files.")
@click.option("--keep", type=Path, help="Folder for what atheris finds.")
@click.option("--json", "as_json", is_flag=True, help="Answer as JSON.")
def main(
    kinds: tuple[str, ...],
    count: int,
    seconds: float,
    seed: int,
    from_number: int,
    coverage: bool,
    keep: Path | None,
    as_json: bool,
) -> None:
    """Fuzz `inspect` and print what it cannot take."""
    from flows.inspection import KINDS

    kinds = kinds or KINDS
    began, base_mb = time.monotonic(), peak_bytes() / 2**20
    if coverage:
        folder = keep or Path(tempfile.mkdtemp(prefix="newsbeat-fuzz-"))
        report = run_coverage(kinds, seconds or 60.0, seed, folder)
    else:
        report = run_mutants(kinds, count, seconds, seed, from_number)
    if peak_bytes() / 2**20 > MAX_MB:
        report.note(f"{peak_bytes() / 2**20:.0f} MB of memory", report.slowest)
    figures = {
        "kinds": kinds,
        "files": report.n_files,
        "answered": report.n_read,
        "seconds": round(time.monotonic() - began, 1),
        "slowest_s": round(report.slowest_s, 2),
        "slowest": report.slowest,
        "peak_mb": round(peak_bytes() / 2**20),
        "peak_mb_at_start": round(base_mb),
        "findings": report.findings,
    }
    if as_json:
        click.echo(json.dumps(figures))
    else:
        print_report(figures)
    sys.exit(1 if report.findings else 0)


def print_report(figures: dict[str, Any]) -> None:
    """Print the figures beside what they must stay under."""
    click.echo(
        f"{figures['files']} files of kind {', '.join(figures['kinds'])} in"
        f" {figures['seconds']:g} s, {figures['answered']} of them answered\n"
        f"slowest file  {figures['slowest_s']:6.2f} s   at most {MAX_S:g} s"
        f"   {figures['slowest']}\n"
        f"most memory   {figures['peak_mb']:6} MB  at most {MAX_MB:g} MB\n"
        f"other errors  {len(figures['findings']):6}     none allowed"
    )
    for what, where in figures["findings"].items():
        click.echo(f"\n{what}\n    {where}")


if __name__ == "__main__":
    if sys.argv[1:2] == ["--atheris"]:
        os.environ.setdefault("PYTHONWARNINGS", "ignore")
        serve_atheris(sys.argv[2], Path(sys.argv[3]), sys.argv[4:])
    else:
        main()
