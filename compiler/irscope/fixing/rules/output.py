"""What a statement writes, logs or warns: printed from the graph, or left out while compiling."""

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
    printed = _in_graph(source, statement.value, torch)
    if printed is not None:
        yield Proposal(
            "Print from the graph",
            "`torch._higher_order_ops.print` is not a public name. What requires grad is printed without `grad_fn`.",
            source.changed({statement: printed}),
        )
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


def _in_graph(source: Source, call: ast.Call, torch: str) -> str | None:
    """``print("mean", m)`` as the operator that prints from the graph; None if that takes another form of print."""
    if source.full_name(call.func) != "print" or call.keywords:
        return None
    words, values = list[str](), list[str]()
    for argument in call.args:
        if isinstance(argument, ast.Starred) or not _add_text(source, argument, words, values):
            return None
    text = " ".join(words)
    return f"{torch}._higher_order_ops.print({', '.join([_quoted(text), *values])})" if values else None


def _add_text(source: Source, node: ast.expr, words: list[str], values: list[str]) -> bool:
    """Adds what an argument of print is in a format string, and its values; False if that cannot be said."""
    if isinstance(node, ast.Constant) and isinstance(node.value, str):
        words.append(_escaped(node.value))
        return True
    if not isinstance(node, ast.JoinedStr):
        words.append("{}")
        values.append(source.code(node))
        return True
    text = ""
    for part in node.values:
        if isinstance(part, ast.Constant):
            text += _escaped(str(part.value))
        elif isinstance(part, ast.FormattedValue):
            spec = part.format_spec.values if isinstance(part.format_spec, ast.JoinedStr) else []
            if part.conversion != -1 or not all(isinstance(piece, ast.Constant) for piece in spec):
                return False
            text += f"{{:{''.join(piece.value for piece in spec)}}}" if spec else "{}"  # type: ignore[attr-defined]
            values.append(ast.unparse(part.value))  # before Python 3.12, its place is not always known
    words.append(text)
    return True


def _escaped(text: str) -> str:
    return text.replace("{", "{{").replace("}", "}}")


def _quoted(text: str) -> str:
    """A string as code, with double quotes where they fit."""
    return f'"{text}"' if text.isprintable() and not set(text) & {'"', "\\"} else repr(text)


RULE = Rule(
    "output",
    ("graph-break",),
    _propose,
    leaves_out=True,
    examples=(
        Example(
            "print('mean', x.mean())\nreturn x + 1",
            'torch._higher_order_ops.print("mean {}", x.mean())\nreturn x + 1',
        ),
        Example(
            "if x.sum() > 9:\n    warnings.warn('large')\nreturn x + 1",
            "if not torch.compiler.is_compiling() and x.sum() > 9:\n    warnings.warn('large')\nreturn x + 1",
            above="import warnings",
        ),
    ),
)
