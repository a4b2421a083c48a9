"""A function that a break makes run as plain Python: it stays so, without a trial to trace it, and what it calls is compiled."""

from __future__ import annotations

from collections.abc import Iterator

import libcst as cst
from irscope.protocol import BreakFacts, Finding, FixMethod

from irscope_server.fixing.model import Family, Proposal
from irscope_server.fixing.source import Source

_CAVEAT = (
    "The function runs as plain Python, as it does now: no graph grows. What is gone is the trial to trace it. "
    "Each function that it calls is compiled by itself."
)


def _propose(source: Source, finding: Finding) -> Iterator[Proposal]:
    node = source.at(finding.range)
    function = source.function(node) if node is not None else None
    torch = source.module_name("torch")
    is_plain = isinstance(finding.facts, BreakFacts) and finding.facts.leaves_function_to_python
    if function is None or torch is None or function.decorators or not is_plain:
        return
    decorator = cst.Decorator(cst.parse_expression(f"{torch}.compiler.disable(recursive=False)"))
    yield Proposal(
        FixMethod.FUNCTION_TO_PYTHON.title,
        _CAVEAT,
        source.changed({function: function.with_changes(decorators=[decorator])}),
        last=True,
        method=FixMethod.FUNCTION_TO_PYTHON,
    )


FAMILY = Family("plain functions", ("graph-break",), _propose)
