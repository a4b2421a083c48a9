"""Skipped frame: a function under torch.compile that was not compiled at all, so all of it runs as plain Python.

Where a graph break is the cause, the break has its own finding, and this one leads to it.
"""

from __future__ import annotations

import dataclasses
import os
from collections.abc import Iterator

from irscope.findings.detector import Detector
from irscope.findings.kinds import graph_break
from irscope.findings.moment import Moment
from irscope.findings.places import at_expression, at_function
from irscope.internals.module_compile import skipped_modules
from irscope.protocol import Compile, CompileOutcome, Finding, Related, Severity
from irscope.usercode.user_files import is_user_file
from irscope.vocabulary.findings import FAST_AND_DEEP, FindingKind
from irscope.vocabulary.function_names import RESUME_PREFIX

KIND = FindingKind(
    id="skipped-frame",
    label="Skipped frame",
    short=("skipped frame", "skipped frames"),
    lanes=FAST_AND_DEEP,
    severity=Severity.HINT,
    explains_steps=("graph-break",),
    order=60,
)
BY_BREAK = "skipped-by-break"
"""The code of a function that a graph break made Dynamo give up; the break is its first related place."""


def detect(moment: Moment) -> Iterator[Finding]:
    """When a compile has ended without a graph: because of a graph break, or because nothing is there to compile."""
    compile = moment.compile
    if compile is None or compile.outcome is not CompileOutcome.SKIPPED or not _is_worth_saying(compile):
        return
    if (cause := graph_break.given_up_at(moment, compile.id)) is not None:
        found = None if _has_graph(moment, compile) else _by_break(moment, compile, *cause)
    elif any(compile.id in finding.compiles for finding in moment.known.findings):
        return
    else:
        found = _without_operations(moment, compile)
    if found is not None:
        yield found


def _is_worth_saying(compile: Compile) -> bool:
    """Not for what follows a break, nor for functions of libraries: the user cannot act on that."""
    return is_user_file(compile.file) and not compile.function.startswith(RESUME_PREFIX)


def _has_graph(moment: Moment, compile: Compile) -> bool:
    """Whether an earlier compile of the function gave a graph, which goes on to serve the calls that fit it."""
    return any(one.graph_ops > 0 for one in moment.known.compiles.of_function(compile.file, compile.line))


def _by_break(moment: Moment, compile: Compile, cause: Finding, function: str) -> Finding | None:
    line = cause.range.start.line
    place = f"line {line}" if cause.file == compile.file else f"{os.path.basename(cause.file)}:{line}"
    inside = f" in `{function}`" if function and function != compile.function_name else ""
    found = at_function(
        moment,
        kind=KIND.id,
        code=BY_BREAK,
        message=f"`{compile.function_name}` is not compiled: the graph break at {place}{inside} makes all of it run as plain Python.",
        explanation="Dynamo cannot cut the graph at this break and go on after it, so it gives up the whole function. Functions that it calls may still be compiled by themselves.",
        hints=("Remove the graph break; its own message says how.",),
        severity=KIND.severity,
    )
    where = Related(cause.file, cause.range, "this graph break is the cause")
    return None if found is None else dataclasses.replace(found, related=(where,), follows=where)


def _without_operations(moment: Moment, compile: Compile) -> Finding | None:
    return at_function(
        moment,
        kind=KIND.id,
        code="skipped-frame",
        message=f"`{compile.function_name}` was traced, but there was nothing to compile in it: it runs as plain Python.",
        explanation="Dynamo found no tensor operation in this function. Tracing and guards take time without any benefit.",
        hints=("Compile the function that does the tensor work instead of this one.",),
        severity=KIND.severity,
    )


def detect_module(moment: Moment, name: str) -> Iterator[Finding]:
    """When ``compile()`` is called on a module whose every ``forward`` is PyTorch's own."""
    found = at_expression(
        moment,
        kind=KIND.id,
        code="skipped-module",
        message=f"`compile()` has no effect on this `{name}`: it and the modules in it are PyTorch's own, so it runs as plain Python.",
        explanation="`Module.compile` compiles the code of PyTorch that calls a module. Dynamo skips that code, and each `forward` that is PyTorch's, too. It says nothing about it.",
        hints=(
            "Use what `torch.compile(module)` returns in place of the module. With FSDP2, do so before `fully_shard`.",
            "Or put it into a module of your own, and compile that one.",
        ),
        severity=KIND.severity,
    )
    if found is not None:
        yield found


DETECTORS = (
    Detector("compilation_metrics", detect),
    Detector("skipped-module", detect_module, hook=skipped_modules),
)
