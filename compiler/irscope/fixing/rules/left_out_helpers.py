"""A helper that cannot be traced: left out of the graph, which costs most."""

from __future__ import annotations

from collections.abc import Iterator

from irscope.fixing.model import Example, Proposal, Rule
from irscope.fixing.rules.helpers import HALVED, helper_at
from irscope.fixing.source import Source
from irscope.protocol import Finding, FixMethod

_CAVEAT = "The graph is cut at each call of it: two graphs more, and the helper runs as plain Python."


def _propose(source: Source, finding: Finding) -> Iterator[Proposal]:
    function, torch = helper_at(source, finding.range), source.module_name("torch")
    if function is not None and torch is not None:
        decorator = source.before(function, f"@{torch}.compiler.disable")
        yield Proposal(FixMethod.HELPER_TO_PYTHON, _CAVEAT, source.changed({}, [decorator]), last=True)


_WRITES = """
import torch


def report(x):
    if x.sum() > 0:
        print(x)


@torch.compile(backend="eager")
def f(x):
    report(x)
    return x + 1


f(torch.ones(4))
"""
RULE = Rule(
    "left out helpers",
    ("graph-break",),
    _propose,
    leaves_out=True,
    examples=tuple(
        Example(text, text.replace("def ", "@torch.compiler.disable\ndef ", 1), is_script=True)
        for text in (HALVED, _WRITES)
    ),
)
