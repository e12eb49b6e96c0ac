"""One query cannot take the machine with it."""

import subprocess
import sys

import pytest

from tasks.memory import peak_bytes, read_size

HOG = """
import resource
from pathlib import Path
from tasks.memory import limit_memory
from tasks.settings import Settings, WarehouseSettings
import duckdb
settings = Settings(Path('.'), warehouse=WarehouseSettings(memory_limit='200MB'))
bound = limit_memory(settings)
assert bound == resource.getrlimit(resource.RLIMIT_DATA)[0]
connection = duckdb.connect(config={'memory_limit': '200MB', 'threads': 1})
try:
    connection.execute('SELECT list_sum(range(3000000000))').fetchall()
except duckdb.OutOfMemoryException:
    print('refused', connection.execute('SELECT 7').fetchall())
"""


@pytest.mark.skipif(sys.platform != "linux", reason="only Linux keeps such a bound")
def test_a_query_that_asks_for_24_gigabytes_fails_and_the_next_one_is_answered():
    done = subprocess.run(
        [sys.executable, "-c", HOG], capture_output=True, text=True, timeout=60, check=True
    )
    assert done.stdout == "refused [(7,)]\n"


@pytest.mark.parametrize(
    ("text", "size"),
    [("1GB", 10**9), ("1.5 GiB", 1_500_000_000), ("800mb", 8 * 10**8), ("70%", 10**9)],
)
def test_sizes_are_read_as_duckdb_spells_them(text, size):
    assert read_size(text) == size


PARENT = """
import subprocess, sys
grown = bytearray(b'x') * 400_000_000
child = 'from tasks.memory import peak_bytes; print(peak_bytes())'
subprocess.run([sys.executable, '-c', child], check=True)
"""


@pytest.mark.skipif(sys.platform != "linux", reason="only Linux says it of one process alone")
def test_what_a_process_had_at_most_does_not_count_what_its_parent_had() -> None:
    done = subprocess.run(
        [sys.executable, "-c", PARENT], capture_output=True, text=True, timeout=60, check=True
    )
    assert 2**20 < int(done.stdout) < 300 * 2**20
    assert peak_bytes() > 2**20
