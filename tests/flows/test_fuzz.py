"""Whatever a file holds, ``inspect`` answers or says what is wrong: never anything else."""

from __future__ import annotations

import importlib.util
import json
import subprocess
import sys
from pathlib import Path
from types import ModuleType

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from flows.inspection import KINDS, inspect_bytes
from models.errors import NewsbeatError
from models.records import Source

BENCHMARKS = Path(__file__).parents[2] / "benchmarks"
N_FILES = {
    "feed": 3000,
    "sitemap": 2900,
    "robots": 2000,
    "list": 1200,
    "article": 300,
    "telegram": 600,
}
"""Ten thousand in all; article pages take longest."""


def load(path: Path) -> ModuleType:
    spec = importlib.util.spec_from_file_location(path.stem, path)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    sys.modules[path.stem] = module
    spec.loader.exec_module(module)
    return module


mutation = load(BENCHMARKS / "parts" / "mutation.py")


def look(body: bytes, kind: str, base_url: str, content_type: str | None, zone: str) -> None:
    """Inspect a file; what comes must be JSON that a file or a terminal takes."""
    said = ""
    try:
        found = inspect_bytes(
            body,
            kind=kind,
            base_url=base_url,
            content_type=content_type,
            source=Source("fuzzed", "", base_url, timezone=zone),
            url=base_url,
            now=mutation.NOW,
        )
    except NewsbeatError as error:
        said = str(error)
    else:
        json.dumps(found, ensure_ascii=False).encode("utf-8")
    assert "the extractor broke" not in said


ENOUGH = settings(
    max_examples=60, deadline=None, derandomize=True, suppress_health_check=list(HealthCheck)
)
BESIDE = {
    "base_url": st.sampled_from(mutation.ADDRESSES),
    "content_type": st.sampled_from(mutation.CONTENT_TYPES),
    "zone": st.sampled_from(mutation.ZONES),
}


@pytest.mark.parametrize("kind", KINDS)
@ENOUGH
@given(body=st.binary(max_size=2000), **BESIDE)
def test_any_bytes_are_answered_or_refused(
    kind: str, body: bytes, base_url: str, content_type: str | None, zone: str
) -> None:
    look(body, kind, base_url, content_type, zone)


@pytest.mark.parametrize("kind", KINDS)
@ENOUGH
@given(
    pieces=st.lists(st.sampled_from(mutation.TOKENS) | st.binary(max_size=20), max_size=40),
    is_first=st.booleans(),
    **BESIDE,
)
def test_any_words_of_parsers_are_answered_or_refused(
    kind: str,
    pieces: list[bytes],
    is_first: bool,
    base_url: str,
    content_type: str | None,
    zone: str,
) -> None:
    words, sample = b"".join(pieces), mutation.seeds_of(kind)[0]
    body = words + sample if is_first else sample + words
    look(body, kind, base_url, content_type, zone)


@pytest.mark.parametrize("kind", KINDS)
@ENOUGH
@given(number=st.integers(0, 10**6))
def test_any_damaged_sample_is_answered_or_refused(kind: str, number: int) -> None:
    mutant = mutation.make_mutant(kind, number, seed=2)
    look(mutant.body, kind, **mutant.options)


def test_ten_thousand_files_are_tried_and_every_kind_is() -> None:
    assert set(N_FILES) == set(KINDS)
    assert sum(N_FILES.values()) == 10_000


@pytest.mark.slow
@pytest.mark.parametrize("kind", KINDS)
def test_thousands_of_damaged_samples_take_little_time_and_memory(kind: str) -> None:
    words = ["--kind", kind, "--count", str(N_FILES[kind]), "--seed", "1", "--json"]
    done = subprocess.run(
        [sys.executable, str(BENCHMARKS / "fuzz.py"), *words],
        capture_output=True,
        text=True,
        timeout=280,
    )
    assert done.stdout, done.stderr[-3000:]
    figures = json.loads(done.stdout)
    assert figures["findings"] == {}
    assert figures["files"] == N_FILES[kind]
    assert figures["slowest_s"] < 10.0
    assert figures["peak_mb"] < 500
    assert figures["answered"] > 0
