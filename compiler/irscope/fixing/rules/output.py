"""What a statement writes, logs or warns: left out while compiling."""

from __future__ import annotations

import ast
from collections.abc import Iterator

from irscope.fixing.edits import reindented
from irscope.fixing.model import Example, Proposal, Rule
from irscope.fixing.source import Source
from irscope.protocol import Finding, FixMethod

_LEFT_OUT = FixMethod.LEAVE_OUT
_CAVEAT = "Then it is not done in compiled runs."
_LOOSE = (ast.IfExp, ast.NamedExpr, ast.Lambda)
"""What binds less than ``and`` does."""


def _propose(source: Source, finding: Finding) -> Iterator[Proposal]:
    torch = source.module_name("torch")
    if torch is None:
        return
    yield from _decision(source, finding, torch)
    statement = next(iter(source.on_line(finding.range.start.line, ast.Expr)), None)
    if statement is None or source.function(statement) is None or not isinstance(statement.value, ast.Call):
        return
    if not source.can_be_left_out(statement):
        return
    code = reindented(source.code(statement), "    ", "    ")
    text = source.changed({statement: f"if not {torch}.compiler.is_compiling():\n{code}"})
    yield Proposal(_LEFT_OUT, _CAVEAT, text)


def _decision(source: Source, finding: Finding, torch: str) -> Iterator[Proposal]:
    """``if x.isnan().any(): warnings.warn(…)``: without the output there is nothing to decide."""
    node = source.at(finding.range)
    decision = source.first_around(node, ast.If) if node is not None else None
    if decision is None or source.function(decision) is None or source.is_elif(decision):
        return
    if decision.orelse or source.line(decision) != finding.range.start.line or not source.can_be_left_out(decision):
        return
    test = source.code(decision.test)
    is_or = isinstance(decision.test, ast.BoolOp) and isinstance(decision.test.op, ast.Or)
    if is_or or isinstance(decision.test, _LOOSE):
        test = f"({test})"
    made = f"not {torch}.compiler.is_compiling() and {test}"
    yield Proposal(_LEFT_OUT, _CAVEAT, source.changed({decision.test: made}))


RULE = Rule(
    "output",
    ("graph-break",),
    _propose,
    leaves_out=True,
    examples=(
        Example(
            "print(x.mean())\nreturn x + 1",
            "if not torch.compiler.is_compiling():\n    print(x.mean())\nreturn x + 1",
        ),
        Example(
            "if x.sum() > 9:\n    warnings.warn('large')\nreturn x + 1",
            "if not torch.compiler.is_compiling() and x.sum() > 9:\n    warnings.warn('large')\nreturn x + 1",
            above="import warnings",
        ),
    ),
)
