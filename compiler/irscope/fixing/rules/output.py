"""What a statement or a ``with`` block writes, logs or warns is left out while compiling; so are filters of warnings, which
Dynamo cannot set."""

from __future__ import annotations

import ast
import textwrap
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
    node = source.at(finding.range)
    block = source.first_around(node, ast.With) if node is not None else None
    if block is not None and source.owns_lines(*block.body):
        yield from _without_filter(source, block)
        if source.can_be_left_out(block):
            yield _left_out(source, block, torch)  # Dynamo may not know the context
    statement = next(iter(source.on_line(finding.range.start.line, ast.Expr)), None)
    if statement is None or source.function(statement) is None or not isinstance(statement.value, ast.Call):
        return
    if source.can_be_left_out(statement):
        yield _left_out(source, statement, torch)


def _left_out(source: Source, statement: ast.stmt, torch: str) -> Proposal:
    code = reindented(source.code(statement), "    ", "    ")
    text = source.changed({statement: f"if not {torch}.compiler.is_compiling():\n{code}"})
    return Proposal(_LEFT_OUT, _CAVEAT, text)


def _without_filter(source: Source, block: ast.With) -> Iterator[Proposal]:
    """``with warnings.catch_warnings():`` and what it sets."""
    functions = [item.context_expr.func for item in block.items if isinstance(item.context_expr, ast.Call)]
    kept = [inner for inner in block.body if not _is_about_warnings(source, inner)]
    is_filter = {source.full_name(function) for function in functions} == {"warnings.catch_warnings"}
    if is_filter and block.items[0].optional_vars is None and kept:
        text = source.changed({block: "\n".join(source.code_with_comments(inner) for inner in kept)})
        caveat = "Warnings are then shown; filter them around the call of the compiled code."
        yield Proposal("Leave the filter of warnings out", caveat, text)


def _is_about_warnings(source: Source, statement: ast.stmt) -> bool:
    return (
        isinstance(statement, ast.Expr)
        and isinstance(statement.value, ast.Call)
        and any(source.full_name(call.func).startswith("warnings.") for call in source.all(ast.Call, statement))
    )


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


_WARNS = """\
with warnings.catch_warnings():
    warnings.simplefilter("always")
    # of each call
    warnings.warn(f"{x.shape[0]} rows")
"""
_FILTERS = """\
with warnings.catch_warnings():
    warnings.simplefilter("ignore")
    # halves
    {}
"""
_GUARD = "if not torch.compiler.is_compiling()"
RULE = Rule(
    "output",
    ("graph-break",),
    _propose,
    examples=(
        Example("print(x.mean())\nreturn x + 1", f"{_GUARD}:\n    print(x.mean())\nreturn x + 1"),
        Example(
            "if x.sum() > 9:\n    warnings.warn('large')\nreturn x + 1",
            f"{_GUARD} and x.sum() > 9:\n    warnings.warn('large')\nreturn x + 1",
            above="import warnings",
        ),
        Example(
            f"{_WARNS}return x + 1",
            f"{_GUARD}:\n{textwrap.indent(_WARNS, '    ')}return x + 1",
            above="import warnings",
        ),
        *(
            Example(f"{_FILTERS.format(inside)}{after}", f"# halves\n{inside}\n{after}", above="import warnings")
            for inside, after in (("y = x / 2", "return y"), ("return x / 2", ""))
        ),
    ),
)
