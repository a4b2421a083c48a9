"""The request that runs a document through several pipelines."""

from __future__ import annotations

import dataclasses

from irscope.pipelines.registry import pipeline_named
from irscope.protocol import Lane

from irscope_server.app.deep_run import NOT_TRUSTED, no_entry
from irscope_server.app.requests import NOT_A_FILE
from irscope_server.app.server import IrscopeServer
from irscope_server.base.params import CompareParams
from irscope_server.base.results import CompareResult


async def compare(server: IrscopeServer, params: CompareParams) -> CompareResult:
    """Run a document's script through several pipelines, and wait for the figures to be in the store."""
    from irscope.driver.comparison import ComparisonCancelled, compared

    document = server.document(params.uri)
    if document is None or not server.trusted:
        return CompareResult(None, NOT_A_FILE if document is None else NOT_TRUSTED)
    names = tuple(dict.fromkeys(pipeline_named(name).name for name in params.pipelines))
    if not names:
        raise ValueError("Choose at least one pipeline to compare.")
    plan = await server.activity.plan(document)
    if plan is None:
        return CompareResult(None, no_entry(document.path))
    specs = [
        dataclasses.replace(server.activity.spec_of(plan, Lane.DEEP, name), symbolic_trace=False) for name in names
    ]
    try:
        comparison = await server.measurements.measure(
            params.uri,
            plan.entry.key,
            f"irscope: comparing pipelines of {plan.entry.name}",
            lambda say, stop: compared(specs, server.archive.path, on_step=say, cancel=stop),
            lambda comparison: [pipeline.run for pipeline in comparison.pipelines if pipeline.run],
        )
    except ComparisonCancelled:
        return CompareResult(None, "The comparison was cancelled.")
    problems = [f"{pipeline.pipeline}: {pipeline.problem}" for pipeline in comparison.pipelines if pipeline.problem]
    newest = next((pipeline.run for pipeline in reversed(comparison.pipelines) if pipeline.run), None)
    return CompareResult(newest, " ".join(problems))
