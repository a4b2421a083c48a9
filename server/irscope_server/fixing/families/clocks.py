"""Clocks that compiled code reads: plain runs go on reading them."""

from __future__ import annotations

from collections.abc import Iterator

import libcst as cst
import libcst.matchers as m
from irscope.protocol import Finding

from irscope_server.fixing.model import Family, Proposal
from irscope_server.fixing.source import Change, Source

CLOCKS = frozenset({
    "time.time", "time.perf_counter", "time.monotonic", "time.process_time", "time.time_ns", "time.perf_counter_ns",
    "time.monotonic_ns",
})  # fmt: skip


def _propose(source: Source, finding: Finding) -> Iterator[Proposal]:
    node = source.at(finding.range)
    function = source.function(node) if node is not None else None
    torch = source.module_name("torch")
    if function is None or torch is None:
        return
    calls = [
        one
        for one in m.findall(function, m.Call(args=[]))
        if isinstance(one, cst.Call) and source.full_name(one.func) in CLOCKS
    ]
    if not any(source.line(one) == finding.range.start.line for one in calls):
        return
    changes: dict[cst.CSTNode, Change] = {}
    for one in calls:
        zero = "0" if source.code(one.func).endswith("_ns") else "0.0"
        text = f"{zero} if {torch}.compiler.is_compiling() else {source.code(one)}"
        changes[one] = cst.parse_expression(text if isinstance(source.parent(one), cst.Assign) else f"({text})")
    yield Proposal(
        "Read the clock in plain runs only", "Compiled runs then measure nothing: each reading is 0.", source.changed(changes)
    )  # fmt: skip


FAMILY = Family("clocks", ("graph-break",), _propose)
