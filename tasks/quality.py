"""Batches of pages judged by Great Expectations, for `tasks.background` to call.

Importing this module takes eight processor seconds and 250 MB: only the process that
judges does. It asks nobody outside this machine anything, keeps nothing between two
batches, and takes no answer for a bad one.
"""

from __future__ import annotations

import html
import os
import re
import time
from typing import Any, ClassVar

# Read when the library is imported: it would report its use to its makers.
os.environ["GX_ANALYTICS_ENABLED"] = "false"

import great_expectations as gx
import pandas as pd
from great_expectations.core import ExpectationValidationResult
from great_expectations.core.metric_domain_types import MetricDomainTypes
from great_expectations.data_context import EphemeralDataContext
from great_expectations.expectations.core import (
    ExpectColumnKLDivergenceToBeLessThan,
    ExpectColumnMaxToBeBetween,
)
from great_expectations.expectations.expectation import ColumnAggregateExpectation
from great_expectations.expectations.metadata_types import FailureSeverity
from great_expectations.render import (
    LegacyRendererType,
    RenderedStringTemplateContent,
    RenderedTableContent,
)
from great_expectations.render.renderer import ValidationResultsPageRenderer
from great_expectations.render.renderer.renderer import renderer
from great_expectations.render.view import DefaultJinjaPageView
from great_expectations.validator.metric_configuration import MetricConfiguration
from great_expectations.validator.validator import ValidationDependencies
from scipy import stats

from models.batches import Batch, BatchResult, Finding, conclude

CLASS_COLUMN = "tag class"
NONNULL = "column_values.nonnull.count"


class ExpectColumnToFollowReference(ExpectColumnKLDivergenceToBeLessThan):  # type: ignore[misc]
    """The library's divergence, which answers where the library's own breaks.

    A column without a single value is a failed expectation, not a division by zero; the
    document shows tables, as its charts need scripts from elsewhere.
    """

    def _validate(
        self,
        metrics: dict[str, Any],
        runtime_configuration: dict[str, Any] | None = None,
        execution_engine: Any = None,
    ) -> dict[str, Any]:
        if not metrics[NONNULL]:
            return {"success": False, "result": {"observed_value": None}}
        return _with_plain_value(
            super()._validate(metrics, runtime_configuration, execution_engine)
        )

    @classmethod
    def _get_kl_divergence_chart(
        cls,
        partition_object: dict[str, Any],
        header: Any = None,  # noqa: ARG003 - the library's signature
    ) -> RenderedTableContent:
        return RenderedTableContent(
            content_block_type="table",
            header_row=["from", "to", "share"],
            table=_shares(partition_object),
            styling={"body": {"classes": ["shares"]}},
        )


class ExpectColumnToStayBelow(ExpectColumnMaxToBeBetween):  # type: ignore[misc]
    """The library's largest value, as a number its own document can show."""

    def _validate(
        self,
        metrics: dict[str, Any],
        runtime_configuration: dict[str, Any] | None = None,
        execution_engine: Any = None,
    ) -> dict[str, Any]:
        return _with_plain_value(
            super()._validate(metrics, runtime_configuration, execution_engine)
        )


def _with_plain_value(found: dict[str, Any]) -> dict[str, Any]:
    """Make what was observed a number of Python's own, None where there is none."""
    value = found["result"]["observed_value"]
    found["result"]["observed_value"] = None if value is None else float(value)
    return found


class ExpectColumnToLookLikeReference(ColumnAggregateExpectation):  # type: ignore[misc]
    """Expect a column to look drawn from the reference, by a Kolmogorov-Smirnov test."""

    reference: list[float]
    least_p: float
    success_keys: ClassVar[tuple[str, ...]] = ("reference", "least_p")
    args_keys: ClassVar[tuple[str, ...]] = ("column", "reference", "least_p")

    def get_validation_dependencies(
        self, execution_engine: Any = None, runtime_configuration: dict[str, Any] | None = None
    ) -> ValidationDependencies:
        """Return what the library must compute before: how many values there are."""
        needed = super().get_validation_dependencies(execution_engine, runtime_configuration)
        domain = self.configuration.get_domain_kwargs()
        needed.set_metric_configuration(NONNULL, MetricConfiguration(NONNULL, domain))
        return needed

    def _validate(
        self,
        metrics: dict[str, Any],
        runtime_configuration: dict[str, Any] | None = None,  # noqa: ARG002 - as above
        execution_engine: Any = None,
    ) -> dict[str, Any]:
        n_values = int(metrics[NONNULL])
        p = None
        if n_values:
            domain = self.configuration.get_domain_kwargs()
            frame, _, place = execution_engine.get_compute_domain(domain, MetricDomainTypes.COLUMN)
            p = ks_p_value(self.reference, frame[place["column"]].dropna())
        result = {"observed_value": p, "details": {"n": n_values}}
        return {"success": p is not None and p >= self.least_p, "result": result}

    @classmethod
    @renderer(renderer_type=LegacyRendererType.PRESCRIPTIVE)  # type: ignore[untyped-decorator]
    def _prescriptive_renderer(
        cls, configuration: Any = None, result: Any = None, **_others: Any
    ) -> list[RenderedStringTemplateContent]:
        wanted = configuration or result.expectation_config
        words = {
            "n": str(len(wanted.kwargs["reference"])),
            "p": f"{wanted.kwargs['least_p']:.2g}",
        }
        template = "must look like the $n values of the reference: p-value at least $p"
        content = {"template": template, "params": words}
        return [
            RenderedStringTemplateContent(
                content_block_type="string_template", string_template=content
            )
        ]


def ks_p_value(reference: Any, test: Any) -> float:
    """Return how likely two samples as far apart are, were both drawn from one law."""
    return float(stats.ks_2samp(reference, test, method="asymp").pvalue)


def judge_batch(batch: Batch) -> BatchResult:
    """Return what every criterion says of a batch, and the document of it.

    Whatever goes wrong is in the result: what cannot be judged does not pass.
    """
    began = time.process_time()
    try:
        outcome, findings, reason, document = _judge(batch)
    except Exception as error:  # noqa: BLE001 - said in the result, which fails the check
        outcome, findings, document = "not evaluated", (), ""
        reason = f"{type(error).__name__}: {error}"
    return BatchResult(outcome, findings, reason, document, time.process_time() - began)


def _judge(batch: Batch) -> tuple[Any, tuple[Finding, ...], str, str]:
    if batch.n_test == 0:
        return "not evaluated", (), "there is not one page to judge", ""
    context = gx.get_context(mode="ephemeral")
    context.variables.progress_bars = {"globally": False, "metric_calculations": False}
    results = _run_checkpoint(context, batch)
    findings = tuple(_finding(result) for validation in results for result in validation.results)
    n_expected = sum(len(expected) for _, _, expected in _suites(batch))
    outcome = conclude(findings, batch.fires_at, n_expected)
    reason = next((finding.detail for finding in findings if not finding.is_evaluated), "")
    return outcome, findings, reason, _document(batch, results)


def _run_checkpoint(context: EphemeralDataContext, batch: Batch) -> list[Any]:
    """Run one checkpoint over the frames of a batch: pages, and tags by class."""
    pandas = context.data_sources.add_pandas("pages")
    results = []
    for name, frame, expectations in _suites(batch):
        asset = pandas.add_dataframe_asset(name)
        whole = asset.add_batch_definition_whole_dataframe("all")
        suite = context.suites.add(gx.ExpectationSuite(name=name, expectations=expectations))
        definition = context.validation_definitions.add(
            gx.ValidationDefinition(name=name, data=whole, suite=suite)
        )
        checkpoint = context.checkpoints.add(
            gx.Checkpoint(
                name=f"{batch.source} {name}",
                validation_definitions=[definition],
                result_format="COMPLETE",
            )
        )
        run = checkpoint.run(batch_parameters={"dataframe": frame})
        results += list(run.run_results.values())
    return results


def _suites(batch: Batch) -> list[tuple[str, pd.DataFrame, list[Any]]]:
    n = batch.n_test
    frame = pd.DataFrame(
        {
            name: pd.Series([*values, *[None] * (n - len(values))], dtype="float64")
            for name, values in batch.columns.items()
        }
    )
    # The reference is what pages are like that carry a value: one without is another thing.
    used = dict.fromkeys(
        [*(item.column for item in batch.kl), *(item.column for item in batch.windows)]
    )
    expected: list[Any] = [
        gx.expectations.ExpectTableRowCountToBeBetween(
            min_value=batch.least_rows, meta={"criterion": "rows"}
        )
    ]
    expected += [
        gx.expectations.ExpectColumnValuesToNotBeNull(
            column=column, mostly=LEAST_FILLED, meta={"criterion": f"filled: {column}"}
        )
        for column in used
    ]
    expected += [_kl_expectation(item) for item in batch.kl]
    expected += [
        ExpectColumnToLookLikeReference(
            column=item.column,
            reference=list(item.reference),
            least_p=item.least_p,
            severity=FailureSeverity.CRITICAL,
            meta={"criterion": item.name},
        )
        for item in batch.windows
    ]
    expected += [
        ExpectColumnToStayBelow(column=name, max_value=limit, meta={"criterion": name})
        for name, limit in batch.most.items()
        if any(value is not None for value in batch.columns.get(name, ()))
    ]
    suites = [("pages", frame, expected)]
    for item in batch.classes:
        observed = [name for name, total in item.observed.items() for _ in range(total)]
        tags = pd.DataFrame({CLASS_COLUMN: pd.Series(observed, dtype="object")})
        partition = {"values": list(item.weights), "weights": list(item.weights.values())}
        wanted = ExpectColumnToFollowReference(
            column=CLASS_COLUMN,
            partition_object=partition,
            threshold=item.threshold,
            meta={"criterion": item.name},
        )
        suites.append((item.name, tags, [wanted]))
    return suites


LEAST_FILLED = 0.5
"""Of the pages so many must have a value: a measure most pages lack is judged by nobody."""


def _kl_expectation(item: Any) -> ExpectColumnToFollowReference:
    return ExpectColumnToFollowReference(
        column=item.column,
        partition_object={
            "bins": list(item.bins),
            "weights": list(item.weights),
            "tail_weights": list(item.tail_weights),
        },
        threshold=item.threshold,
        meta={"criterion": item.name},
    )


def _finding(result: ExpectationValidationResult) -> Finding:
    wanted = result.expectation_config
    assert wanted is not None
    name = str((wanted.meta or {}).get("criterion", wanted.type))
    raised = _exception_of(result)
    value = result.result.get("observed_value") if result.result else None
    if name.startswith("filled"):
        share = result.result.get("unexpected_percent")
        value = None if share is None else 1.0 - share / 100.0
    statistic = float(value) if isinstance(value, int | float) else None
    is_evaluated = not raised and statistic is not None
    threshold = _threshold_of(wanted.kwargs)
    is_condition = name == "rows" or name.startswith("filled")
    detail = raised or ("" if result.success else _words(name, statistic, threshold))
    return Finding(
        criterion=name,
        statistic=statistic,
        threshold=threshold,
        # Too few pages or values say nothing of drift; they leave it unjudged.
        fired=is_evaluated and not result.success and not is_condition,
        is_evaluated=is_evaluated and (bool(result.success) or not is_condition),
        detail=detail,
    )


def _threshold_of(kwargs: dict[str, Any]) -> float | None:
    for key in ("threshold", "least_p", "min_value", "max_value", "mostly"):
        if kwargs.get(key) is not None:
            return float(kwargs[key])
    return None


def _words(name: str, statistic: float | None, threshold: float | None) -> str:
    if statistic is None:
        return f"{name}: not one value to judge"
    return f"{name}: {statistic:.3g} against {threshold:.3g}"


def _exception_of(result: ExpectationValidationResult) -> str:
    """Return what an expectation raised, ``""`` where nothing."""
    info = result.exception_info or {}
    parts = [info] if "raised_exception" in info else list(info.values())
    for part in parts:
        if isinstance(part, dict) and part.get("raised_exception"):
            return str(part.get("exception_message") or "it raised an exception")
    return ""


# --- the document --------------------------------------------------------------------


def _document(batch: Batch, results: list[Any]) -> str:
    """Return the library's own page of the results, with nothing in it from elsewhere."""
    bodies = []
    for validation in results:
        page = DefaultJinjaPageView().render(ValidationResultsPageRenderer().render(validation))
        bodies.append(_body_of(page))
    title = html.escape(f"{batch.source}: check of {batch.n_test} pages")
    return (
        f'<!doctype html><html lang="en"><head><meta charset="utf-8"><title>{title}</title>'
        f"<style>{_STYLE}</style></head><body><h1>{title}</h1>{''.join(bodies)}</body></html>"
    )


_ELSEWHERE = re.compile(
    r"<script\b.*?</script>|<link\b[^>]*>|<style\b.*?</style>|<img\b[^>]*>|<footer\b.*?</footer>"
    r"|<!--.*?-->|<nav\b.*?</nav>|<p>\s*Stay current.*?</p>",
    re.DOTALL | re.IGNORECASE,
)


def _body_of(page: str) -> str:
    found = re.search(r"<body[^>]*>(.*)</body>", page, re.DOTALL | re.IGNORECASE)
    body = _ELSEWHERE.sub("", found[1] if found else page)
    return re.sub(r'\s(?:src|href)="https?://[^"]*"', "", body)


_STYLE = """
body{font:15px/1.5 system-ui,sans-serif;margin:2rem auto;max-width:70rem;padding:0 1rem;color:#222}
h1{font-size:1.4rem}table{border-collapse:collapse;margin:.5rem 0;width:100%}
td,th{border:1px solid #ddd;padding:.3rem .6rem;text-align:left;vertical-align:top}
table.shares,.shares table{width:auto;font-size:12px}
.badge{background:#eee;border-radius:3px;padding:0 .3em}
.text-danger,.fa-times{color:#b00}.text-success,.fa-check-circle{color:#080}
.fa-check-circle::before{content:"passed"}.fa-times::before{content:"failed"}
ul{padding-left:1.2rem}.popover,.modal{display:none}
"""


def _shares(partition: dict[str, Any]) -> list[list[str]]:
    if "values" in partition:
        pairs = zip(partition["values"], partition["weights"], strict=True)
        return [[str(value), "", f"{weight:.3f}"] for value, weight in pairs]
    bins, weights = partition["bins"], partition["weights"]
    rows = [
        [f"{low:.4g}", f"{high:.4g}", f"{weight:.3f}"]
        for low, high, weight in zip(bins, bins[1:], weights, strict=False)
    ]
    if tails := partition.get("tail_weights"):
        rows = [
            ["", f"{bins[0]:.4g}", f"{tails[0]:.3f}"],
            *rows,
            [f"{bins[-1]:.4g}", "", f"{tails[1]:.3f}"],
        ]
    return rows
