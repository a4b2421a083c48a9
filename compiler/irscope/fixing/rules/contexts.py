"""``with`` statements that Dynamo cannot enter, and that do nothing but output: left out."""

from __future__ import annotations

import ast
from collections.abc import Iterator

from irscope.fixing.edits import reindented
from irscope.fixing.model import Example, Proposal, Rule
from irscope.fixing.source import Source
from irscope.protocol import Finding, FixMethod

_CAVEAT = "Then it is not done in compiled runs."


def _propose(source: Source, finding: Finding) -> Iterator[Proposal]:
    node = source.at(finding.range)
    statement = source.first_around(node, ast.With) if node is not None else None
    torch = source.module_name("torch")
    if statement is None or torch is None or not source.owns_lines(*statement.body):
        return
    if source.can_be_left_out(statement):
        inner = reindented(source.code(statement), "    ", source.indentation)
        text = source.changed({statement: f"if not {torch}.compiler.is_compiling():\n{inner}"})
        yield Proposal(FixMethod.LEAVE_OUT, _CAVEAT, text)


RULE = Rule(
    "contexts",
    ("graph-break",),
    _propose,
    leaves_out=True,
    examples=(
        Example(
            """
            with warnings.catch_warnings():
                warnings.warn("called")
            return x + 1
            """,
            """
            if not torch.compiler.is_compiling():
                with warnings.catch_warnings():
                    warnings.warn("called")
            return x + 1
            """,
            above="import warnings",
        ),
        Example(
            """
            with warnings.catch_warnings():
                warnings.simplefilter("always")
                # of each call
                warnings.warn(f"{x.shape[0]} rows")
            return x + 1
            """,
            """
            if not torch.compiler.is_compiling():
                with warnings.catch_warnings():
                    warnings.simplefilter("always")
                    # of each call
                    warnings.warn(f"{x.shape[0]} rows")
            return x + 1
            """,
            above="import warnings",
        ),
    ),
)
