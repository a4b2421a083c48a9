"""Clocks that compiled code reads: plain runs go on reading them."""

from __future__ import annotations

import ast
from collections.abc import Iterator

from irscope.fixing.model import Example, Proposal, Rule
from irscope.fixing.source import Source
from irscope.protocol import Finding

CLOCKS = frozenset({
    "time.time", "time.perf_counter", "time.monotonic", "time.process_time", "time.time_ns", "time.perf_counter_ns",
    "time.monotonic_ns",
})  # fmt: skip
_TITLE = "Read the clock in plain runs only"
_CAVEAT = "Compiled runs then measure nothing: each reading is 0."


def is_clock(source: Source, node: ast.AST) -> bool:
    """Whether an expression reads a clock."""
    return isinstance(node, ast.Call) and source.full_name(node.func) in CLOCKS


def _propose(source: Source, finding: Finding) -> Iterator[Proposal]:
    function = source.function_at(finding.range)
    calls = [call for call in source.all(ast.Call, function) if is_clock(source, call)]
    if not any(source.line(call) == finding.range.start.line for call in calls):
        return
    changes: dict[ast.AST, str | None] = {}
    for call in calls:
        zero = "0" if source.code(call.func).endswith("_ns") else "0.0"
        choice = f"{zero} if {source.torch}.compiler.is_compiling() else {source.code(call)}"
        changes[call] = choice if isinstance(source.parent(call), ast.Assign) else f"({choice})"
    yield Proposal(_TITLE, _CAVEAT, source.changed(changes))


_NOW = "time.perf_counter()"
_CHOICE = f"0.0 if torch.compiler.is_compiling() else {_NOW}"
_EXAMPLES = (
    Example(
        f"start = {_NOW}\ny = x * 2\nreturn y, {_NOW} - start",
        f"start = {_CHOICE}\ny = x * 2\nreturn y, ({_CHOICE}) - start",
        above="import time",
    ),
    Example(
        "log.append(time.time_ns())\nreturn x + 1",
        "log.append((0 if torch.compiler.is_compiling() else time.time_ns()))\nreturn x + 1",
        above="import time\n\nlog = []",
    ),
)
RULE = Rule("clocks", ("graph-break",), _propose, examples=_EXAMPLES)
