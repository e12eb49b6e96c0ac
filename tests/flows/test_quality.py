"""Great Expectations over sets of pages: it never raises, and nothing unjudged passes."""

from __future__ import annotations

import math
from collections.abc import AsyncIterator, Awaitable, Callable
from dataclasses import replace

import numpy as np
import pytest

from flows.drift_work import SetToCheck, check_set, judge, make_batch
from models.batches import Batch, BatchResult, ClassCriterion, KlCriterion, WindowCriterion
from models.drift.deferred import check_window
from models.drift.features import PageFeatures, describe_page
from models.drift.reference import build_reference
from tasks.background import Background

SENTENCES = "It rained on the harbour all night and the ferries stayed in port until morning came."

Judge = Callable[[Batch], Awaitable[BatchResult]]
Value = float | None


def make_page(number: int, n_paragraphs: int = 6) -> PageFeatures:
    rng = np.random.default_rng(number)
    lines = [
        " ".join([SENTENCES] * int(rng.integers(1, 4))) + f" Story {number}, part {at}."
        for at in range(n_paragraphs + int(rng.integers(0, 4)))
    ]
    body = "".join(f"<p>{line}</p>" for line in lines)
    title = f"<h1>Rain on the harbour, story {number}</h1>"
    page = f"<main>{title}<div class='body'>{body}</div></main>"
    return describe_page(page, "\n".join(lines))


def kl_criterion(column: str = "x") -> KlCriterion:
    return KlCriterion(f"F_{column}", column, (0.0, 1.0, 2.0), (0.4, 0.5), (0.05, 0.05), 0.8)


def window_criterion(column: str = "x") -> WindowCriterion:
    values = tuple(np.random.default_rng(1).normal(1.0, 0.3, 60).tolist())
    return WindowCriterion(f"window: {column}", column, values, 1e-4)


def make_batch_of(*values: Value, **changes: object) -> Batch:
    batch = Batch(
        "harbour",
        {"x": values},
        n_reference=60,
        kl=(kl_criterion(),),
        windows=(window_criterion(),),
    )
    return replace(batch, **changes)


@pytest.fixture(scope="module")
async def judged() -> AsyncIterator[Judge]:
    """Judges batches in a process of its own, as the worker does."""
    async with Background() as helper:

        async def ask(batch: Batch) -> BatchResult:
            return await helper.call(judge, batch)

        yield ask


USUAL = tuple(np.random.default_rng(2).normal(1.0, 0.3, 40).tolist())


@pytest.mark.report("fivetran/great_expectations#7432")
@pytest.mark.report("fivetran/great_expectations#11579")
@pytest.mark.parametrize(
    ("values", "outcome"),
    [
        pytest.param(USUAL, "passed", id="usual"),
        pytest.param(tuple(value + 1.5 for value in USUAL), "drifted", id="shifted"),
        pytest.param((None,) * 12, "not evaluated", id="all null"),
        pytest.param((1.0,) * 12, "passed", id="one value"),
        pytest.param((1.0,), "passed", id="one page"),
        pytest.param((-9.0, 40.0, 1e12), "drifted", id="outside the bins"),
        pytest.param((None, None, None, 1.0), "not evaluated", id="most are null"),
        pytest.param((), "not evaluated", id="no page"),
    ],
)
async def test_every_batch_has_an_outcome(
    judged: Judge, values: tuple[Value, ...], outcome: str
) -> None:
    result = await judged(make_batch_of(*values, fires_at=1))
    assert result.outcome == outcome, result
    for finding in result.findings:
        assert finding.statistic is None or math.isfinite(finding.statistic)
    if outcome == "not evaluated":
        assert result.reason


@pytest.mark.report("fivetran/great_expectations#11579")
async def test_what_raises_does_not_pass(judged: Judge) -> None:
    broken = KlCriterion("F_x", "x", (0.0, 1.0), (0.4, 0.5), (0.05, 0.05), 0.8)
    result = await judged(make_batch_of(*USUAL, kl=(broken,)))
    assert result.outcome == "not evaluated"
    assert result.reason


async def test_too_few_pages_cannot_be_judged(judged: Judge) -> None:
    result = await judged(make_batch_of(*USUAL, least_rows=50))
    assert result.outcome == "not evaluated"


async def test_its_divergences_are_ours(judged: Judge) -> None:
    reference = build_reference([make_page(number) for number in range(40)])
    for pages in (
        [make_page(number) for number in range(100, 140)],
        [make_page(number, 2) for number in range(100, 107)],
        [make_page(7)],
    ):
        asked = SetToCheck(
            "harbour", reference.to_bytes(), tuple(page.to_bytes() for page in pages)
        )
        result = await judged(make_batch(asked))
        ours = check_window(reference.window, pages)
        theirs = {item.criterion: item for item in result.findings}
        for criterion in ours.criteria:
            found = theirs[f"F_{criterion.name}"]
            assert found.statistic == pytest.approx(criterion.statistic, abs=1e-9)
            assert found.fired == criterion.fired
        for column, p in zip(ours.columns, ours.p_values, strict=True):
            found = theirs[f"window: {column}"]
            assert found.statistic == pytest.approx(p, abs=1e-9)
            assert found.fired == (p * len(ours.columns) < ours.level)


async def test_tags_by_class_are_compared_too(judged: Judge) -> None:
    shares = {"links": 0.3, "blocks": 0.6, "others": 0.1}
    usual = ClassCriterion("F_T", {"links": 30, "blocks": 60, "others": 10}, shares, 0.05)
    other = ClassCriterion("F_T", {"links": 90, "blocks": 10, "others": 0}, shares, 0.05)
    none = ClassCriterion("F_T", {"links": 0, "blocks": 0, "others": 0}, shares, 0.05)
    for criterion, outcome in ((usual, "passed"), (other, "drifted"), (none, "not evaluated")):
        batch = make_batch_of(*USUAL, classes=(criterion,), fires_at=1)
        assert (await judged(batch)).outcome == outcome


async def test_its_document_needs_nothing_from_elsewhere(judged: Judge) -> None:
    result = await judged(make_batch_of(*USUAL))
    assert "harbour: check of 40 pages" in result.document
    assert "https://" not in result.document.replace("https://greatexpectations.io", "")
    assert "<script" not in result.document
    assert "exception" not in result.document.lower()


@pytest.mark.report("fivetran/great_expectations#7432")
def test_an_empty_set_is_no_pass() -> None:
    reference = build_reference([make_page(number) for number in range(12)])
    result = check_set(SetToCheck("harbour", reference.to_bytes(), ()))
    assert (result.outcome, result.findings) == ("not evaluated", ())
