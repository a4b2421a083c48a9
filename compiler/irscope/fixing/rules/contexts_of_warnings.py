"""Filters of warnings, which Dynamo cannot set."""

from __future__ import annotations

import ast
from collections.abc import Iterator

from irscope.fixing.model import Example, Proposal, Rule
from irscope.fixing.source import Source
from irscope.protocol import Finding

_TITLE = "Leave the filter of warnings out"
_CAVEAT = "Warnings are then shown; filter them around the call of the compiled code."


def _propose(source: Source, finding: Finding) -> Iterator[Proposal]:
    node = source.at(finding.range)
    statement = source.first_around(node, ast.With) if node is not None else None
    if statement is None or not source.owns_lines(*statement.body) or source.module_name("torch") is None:
        return
    functions = [item.context_expr.func for item in statement.items if isinstance(item.context_expr, ast.Call)]
    names = {source.full_name(function) for function in functions}
    kept = [inner for inner in statement.body if not _is_about_warnings(source, inner)]
    if names == {"warnings.catch_warnings"} and statement.items[0].optional_vars is None and kept:
        text = source.changed({statement: "\n".join(source.code_with_comments(inner) for inner in kept)})
        yield Proposal(_TITLE, _CAVEAT, text)


def _is_about_warnings(source: Source, statement: ast.stmt) -> bool:
    return (
        isinstance(statement, ast.Expr)
        and isinstance(statement.value, ast.Call)
        and any(source.full_name(call.func).startswith("warnings.") for call in source.all(ast.Call, statement))
    )


_EXAMPLE = """\
with warnings.catch_warnings():
    warnings.simplefilter("ignore")
    # halves
    {}
"""
RULE = Rule(
    "contexts of warnings",
    ("graph-break",),
    _propose,
    examples=tuple(
        Example(f"{_EXAMPLE.format(inside)}{after}", f"# halves\n{inside}\n{after}", above="import warnings")
        for inside, after in (("y = x / 2", "return y"), ("return x / 2", ""))
    ),
)
