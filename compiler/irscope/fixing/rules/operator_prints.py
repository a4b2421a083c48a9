"""What a statement prints: printed from the graph, by an operator."""

from __future__ import annotations

import ast
from collections.abc import Iterator

from irscope.fixing.model import Example, Proposal, Rule
from irscope.fixing.source import Source
from irscope.protocol import Finding

_TITLE = "Print from the graph"
_CAVEAT = "`torch._higher_order_ops.print` is not a public name. What requires grad is printed without `grad_fn`."


def _propose(source: Source, finding: Finding) -> Iterator[Proposal]:
    torch = source.module_name("torch")
    statement = next(iter(source.on_line(finding.range.start.line, ast.Expr)), None)
    if torch is None or statement is None or source.function(statement) is None:
        return
    if isinstance(statement.value, ast.Call) and source.can_be_left_out(statement):
        printed = _in_graph(source, statement.value, torch)
        if printed is not None:
            yield Proposal(_TITLE, _CAVEAT, source.changed({statement: printed}))


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
    "operator prints",
    ("graph-break",),
    _propose,
    examples=(
        Example(
            "print('mean', x.mean())\nreturn x + 1",
            'torch._higher_order_ops.print("mean {}", x.mean())\nreturn x + 1',
        ),
        Example(
            "print(f'{x.mean():.2f} of {{x}}')\nreturn x + 1",
            'torch._higher_order_ops.print("{:.2f} of {{x}}", x.mean())\nreturn x + 1',
        ),
    ),
)
