"""A function that a break makes run as plain Python: it stays so, without a trial to trace it, and what it calls is compiled."""

from __future__ import annotations

from collections.abc import Iterator

from irscope.fixing.model import Example, Proposal, Rule
from irscope.fixing.source import Source
from irscope.protocol import BreakFacts, Finding, FixMethod

_CAVEAT = (
    "The function runs as plain Python, as it does now: no graph grows. What is gone is the trial to trace it. "
    "Each function that it calls is compiled by itself."
)


def _propose(source: Source, finding: Finding) -> Iterator[Proposal]:
    node = source.at(finding.range)
    function = source.function(node) if node is not None else None
    torch = source.module_name("torch")
    is_plain = isinstance(finding.facts, BreakFacts) and finding.facts.leaves_function_to_python
    if function is None or torch is None or function.decorator_list or not is_plain:
        return
    decorator = source.before(function, f"@{torch}.compiler.disable(recursive=False)")
    yield Proposal(FixMethod.FUNCTION_TO_PYTHON, _CAVEAT, source.changed({}, [decorator]), last=True)


_FUNCTION = """
import torch

def f(x):
    for _ in range(2):
        torch._dynamo.graph_break()
        x = x + 1
    return x

torch.compile(f, backend="eager")(torch.ones(4))
"""
_METHOD = """
import torch

class Net(torch.nn.Module):
    def forward(self, x):
        for _ in range(2):
            torch._dynamo.graph_break()
            x = x + 1
        return x

torch.compile(Net(), backend="eager")(torch.ones(4))
"""
RULE = Rule(
    "plain functions",
    ("graph-break",),
    _propose,
    leaves_out=True,
    examples=tuple(
        Example(
            text,
            text.replace(f"{head}def", f"{head}@torch.compiler.disable(recursive=False)\n{head}def"),
            is_script=True,
        )
        for text, head in ((_FUNCTION, ""), (_METHOD, "    "))
    ),
)
