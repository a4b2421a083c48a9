"""``with`` statements that Dynamo cannot enter."""

from __future__ import annotations

import ast
from collections.abc import Iterator

from irscope.fixing.edits import reindented
from irscope.fixing.model import Proposal, Rule
from irscope.fixing.source import Source
from irscope.fixing.splitting import code_with_comments, is_block
from irscope.protocol import Finding, FixMethod


def _propose(source: Source, finding: Finding) -> Iterator[Proposal]:
    node = source.at(finding.range)
    statement = source.first_around(node, ast.With) if node is not None else None
    torch = source.module_name("torch")
    if statement is None or torch is None or not is_block(source, statement.body):
        return
    if source.can_be_left_out(statement):
        inner = reindented(source.code(statement), "    ", source.indentation)
        yield Proposal(
            FixMethod.LEAVE_OUT, "Then it is not done in compiled runs.",
            source.changed({statement: f"if not {torch}.compiler.is_compiling():\n{inner}"}),
        )  # fmt: skip
    names = {
        source.full_name(item.context_expr.func) for item in statement.items if isinstance(item.context_expr, ast.Call)
    }
    kept = [inner for inner in statement.body if not _is_about_warnings(source, inner)]
    if names == {"warnings.catch_warnings"} and statement.items[0].optional_vars is None and kept:
        yield Proposal(
            "Leave the filter of warnings out", "Warnings are then shown; filter them around the call of the compiled code.",
            source.changed({statement: "\n".join(code_with_comments(source, inner) for inner in kept)}),
        )  # fmt: skip


def _is_about_warnings(source: Source, statement: ast.stmt) -> bool:
    return (
        isinstance(statement, ast.Expr)
        and isinstance(statement.value, ast.Call)
        and any(source.full_name(call.func).startswith("warnings.") for call in source.all(ast.Call, statement))
    )


RULE = Rule("contexts", ("graph-break",), _propose)
