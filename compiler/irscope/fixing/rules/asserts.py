"""``assert`` on values of tensors: checked by the graph, when it runs."""

from __future__ import annotations

import ast
from collections.abc import Iterator

from irscope.fixing.conditions import condition_of, is_tensor
from irscope.fixing.model import Example, Proposal, Rule
from irscope.fixing.source import Source, tight
from irscope.protocol import Finding


def _propose(source: Source, finding: Finding) -> Iterator[Proposal]:
    statement = source.statement(source.at(finding.range))
    test = condition_of(source, statement.test) if isinstance(statement, ast.Assert) else None
    if not isinstance(statement, ast.Assert) or test is None or not is_tensor(source, statement.test):
        return
    whole = test if test.endswith((".all()", ".any()")) else f"{tight(test)}.all()"
    message = f", {source.code(statement.msg)}" if isinstance(statement.msg, ast.Constant) else ""
    yield Proposal(
        "Check it in the graph", "A failed check is then a RuntimeError, and a GPU reports it later.",
        source.changed({statement: f"{source.torch}._assert_async({whole}{message})"}),
    )  # fmt: skip


_EXAMPLES = (
    Example(
        "assert x.max() < 9, f'too large: {x.max()}'\nreturn x",
        "torch._assert_async((x.max() < 9).all())\nreturn x",
    ),
    Example(
        "assert x.max().item() <= x.size(0), 'too large'\nreturn x",
        "torch._assert_async((x.max() <= x.size(0)).all(), 'too large')\nreturn x",
    ),
)
RULE = Rule("asserts", ("graph-break",), _propose, examples=_EXAMPLES)
