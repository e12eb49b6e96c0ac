"""Every public bug report about input has a test that says it holds against it."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from pathlib import Path

import pytest

TESTS = Path(__file__).parent
LOG = TESTS.parents[1] / "shared" / "notes" / "bugs.md"

NOT_INPUT = {"Prefect", "DuckDB"}
"""Areas of the log about the machinery beneath: what of it can be shown is shown too."""


def rows() -> Iterator[tuple[str, str]]:
    """Yield area and thread of each report in the log."""
    for line in LOG.read_text(encoding="utf-8").splitlines():
        cells = [cell.strip() for cell in line.split("|")]
        if len(cells) > 4 and cells[1].isdigit():
            yield cells[2], cells[3].removesuffix(" (PR)")


def named(tree: ast.AST) -> Iterator[str]:
    """Yield the threads that tests of a module name."""
    for node in ast.walk(tree):
        if isinstance(node, ast.Call) and ast.unparse(node.func) == "pytest.mark.report":
            yield from (str(ast.literal_eval(argument)) for argument in node.args)


@pytest.mark.real
@pytest.mark.skipif(not LOG.is_file(), reason="the log of bug reports is not here")
def test_each_report_about_input_is_named_by_a_test() -> None:
    reports = {thread: area for area, thread in rows()}
    assert len(reports) > 100
    tests = TESTS.rglob("test_*.py")
    shown = {thread for test in tests for thread in named(ast.parse(test.read_bytes()))}
    assert shown <= reports.keys()
    assert {
        thread: area
        for thread, area in reports.items()
        if area not in NOT_INPUT and thread not in shown
    } == {}
