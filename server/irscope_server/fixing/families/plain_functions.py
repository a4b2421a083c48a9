"""A function that a break makes run as plain Python: it stays so, without a trial to trace it, and what it calls is compiled."""

from __future__ import annotations

from collections.abc import Iterator

import libcst as cst
from irscope.fixing.repairs import FUNCTION_TO_PYTHON
from irscope.protocol import Finding

from irscope_server.fixing.model import Family, Proposal
from irscope_server.fixing.source import Source

_CAVEAT = (
    "The function runs as plain Python, as it does now: no graph grows. What is gone is the trial to trace it. "
    "Each function that it calls is compiled by itself."
)
_PLAIN = "the whole function runs as plain Python"
"""What the message of a graph break says then."""


def _propose(source: Source, finding: Finding) -> Iterator[Proposal]:
    node = source.at(finding.range)
    function = source.function(node) if node is not None else None
    torch = source.module_name("torch")
    if function is None or torch is None or function.decorators or _PLAIN not in finding.message:
        return
    decorator = cst.Decorator(cst.parse_expression(f"{torch}.compiler.disable(recursive=False)"))
    yield Proposal(
        FUNCTION_TO_PYTHON,
        _CAVEAT,
        source.changed({function: function.with_changes(decorators=[decorator])}),
        last=True,
    )


FAMILY = Family("plain functions", ("graph-break",), _propose)
