"""``assert`` on values of tensors: checked by the graph, when it runs."""

from __future__ import annotations

from collections.abc import Iterator

import libcst as cst
from irscope.protocol import Finding

from irscope_server.fixing.conditions import condition_of, is_tensor, tight
from irscope_server.fixing.model import Family, Proposal
from irscope_server.fixing.source import Source


def _propose(source: Source, finding: Finding) -> Iterator[Proposal]:
    node = source.at(finding.range)
    statement = source.first_around(node, cst.SimpleStatementLine) if node is not None else None
    torch = source.module_name("torch")
    if statement is None or torch is None or len(statement.body) != 1:
        return
    one = statement.body[0]
    if not isinstance(one, cst.Assert) or not is_tensor(source, one.test):
        return
    test = condition_of(source, one.test)
    if test is None:
        return
    whole = test if test.endswith((".all()", ".any()")) else f"{tight(test)}.all()"
    message = f", {source.code(one.msg)}" if isinstance(one.msg, (cst.SimpleString, cst.ConcatenatedString)) else ""
    text = f"{torch}._assert_async({whole}{message})"
    yield Proposal(
        "Check it in the graph", "A failed check is then a RuntimeError, and a GPU reports it later.",
        source.changed({one: cst.Expr(cst.parse_expression(text))}),
    )  # fmt: skip


FAMILY = Family("asserts", ("graph-break",), _propose)
