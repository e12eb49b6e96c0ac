"""Servers that mean harm: whatever they do ends in a named outcome, and soon."""

from __future__ import annotations

import importlib.util
import re
import ssl
import sys
import time
import tracemalloc
from collections.abc import AsyncIterator, Iterator
from pathlib import Path
from types import ModuleType
from urllib.parse import quote

import pytest

from models.errors import (
    FetchError,
    PermanentFetchError,
    RefusedFetchError,
    TransientFetchError,
)
from models.records import Fetched, HttpRules
from tasks.fetch import Fetcher
from tasks.settings import AgentSettings, FetchSettings, Settings

ATTACKS = Path(__file__).parents[2] / "benchmarks" / "parts" / "attacks.py"
HERE = HttpRules(allow_private=True)
CAPS = FetchSettings(total_timeout_s=3.0, read_timeout_s=1.0, max_bytes=2**20)
SETTINGS = Settings(
    home=Path("/nowhere"), fetch=CAPS, agent=AgentSettings(contact="desk@example.org")
)
MAX_S = 20.0
"""Wall seconds for one fetch here: six times its cap, for machines that are busy."""

MAX_PEAK_BYTES = 16 * 2**20
"""The cap on a body is 1 MiB; a step of zstd gives up to four, and lists are joined."""


def load(path: Path) -> ModuleType:
    spec = importlib.util.spec_from_file_location(path.stem, path)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    sys.modules[path.stem] = module
    spec.loader.exec_module(module)
    return module


attacks = load(ATTACKS)
certificates = load(ATTACKS.with_name("certificates.py"))


@pytest.fixture(scope="module")
def port() -> Iterator[int]:
    """A hostile server in a process of its own."""
    with attacks.run_server() as found:
        yield found


@pytest.fixture(scope="module")
def certificate(
    tmp_path_factory: pytest.TempPathFactory,
) -> tuple[Path, Path]:
    folder = tmp_path_factory.mktemp("tls")
    _, pem = certificates.make_certificate(folder)
    return pem, folder / "key.pem"


@pytest.fixture(scope="module")
def h2_port(certificate: tuple[Path, Path]) -> Iterator[int]:
    """One that speaks HTTP/2."""
    with attacks.run_server("--tls", *map(str, certificate)) as found:
        yield found


@pytest.fixture
async def fetcher() -> AsyncIterator[Fetcher]:
    async with Fetcher(SETTINGS) as running:
        yield running


async def outcome_of(fetcher: Fetcher, url: str) -> tuple[str, str]:
    """Return how a fetch ended, as the attacks have it, and the reason given."""
    names = {
        TransientFetchError: "transient",
        PermanentFetchError: "permanent",
        RefusedFetchError: "refused",
    }
    try:
        answer = await fetcher.fetch(url, rules=HERE, accept="page")
    except FetchError as error:
        return names[type(error)], error.reason if error.url == url else f"of {error.url!r}"
    assert isinstance(answer, Fetched)
    assert len(answer.body) <= CAPS.max_bytes
    return "page", ""


@pytest.mark.parametrize("name", attacks.ATTACKS)
async def test_attack_ends_in_a_named_outcome_within_its_caps(
    port: int, fetcher: Fetcher, name: str
) -> None:
    attack = attacks.ATTACKS[name]
    began = time.monotonic()
    tracemalloc.start()
    try:
        outcome, reason = await outcome_of(fetcher, f"http://127.0.0.1:{port}/{quote(name)}")
        _, peak_bytes = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert re.fullmatch(attack.outcome, outcome), reason
    assert re.search(attack.words, reason)
    assert outcome == "page" or reason
    assert time.monotonic() - began < MAX_S
    assert peak_bytes < MAX_PEAK_BYTES
    assert await outcome_of(fetcher, f"http://127.0.0.1:{port}/honest") == ("page", "")


@pytest.mark.parametrize("name", attacks.H2_ATTACKS)
async def test_http2_attack_ends_in_a_named_outcome_and_leaves_no_clogged_connection(
    h2_port: int, certificate: tuple[Path, Path], name: str
) -> None:
    trust = ssl.create_default_context(cafile=str(certificate[0]))
    began = time.monotonic()
    async with Fetcher(SETTINGS, tls=trust) as fetcher:
        outcome, reason = await outcome_of(fetcher, f"https://localhost:{h2_port}/{quote(name)}")
        assert outcome in ("transient", "permanent")
        assert reason
        assert re.search(attacks.H2_ATTACKS[name].words, reason)
        assert time.monotonic() - began < MAX_S
        assert await outcome_of(fetcher, f"https://localhost:{h2_port}/honest") == ("page", "")
