"""What a statement prints: printed from the graph, by an operator."""

from __future__ import annotations

import ast
from collections.abc import Iterator, Sequence

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
    match statement.value:
        case ast.Call(keywords=[], args=args, func=func) if source.full_name(func) == "print":
            if source.can_be_left_out(statement):
                words, values = _format(source, args)
                printed = ", ".join([_quoted(words), *values])
                if values:
                    text = source.changed({statement: f"{torch}._higher_order_ops.print({printed})"})
                    yield Proposal(_TITLE, _CAVEAT, text)


def _format(source: Source, arguments: Sequence[ast.expr]) -> tuple[str, list[str]]:
    """The format string that says what arguments of ``print`` say, and its values.  Raises ValueError if there is none."""
    words, values = list[str](), list[str]()
    for argument in arguments:
        text = ""
        for part in argument.values if isinstance(argument, ast.JoinedStr) else [argument]:
            match part:
                case ast.Constant(value=str(plain)):
                    text += plain.replace("{", "{{").replace("}", "}}")
                case ast.FormattedValue(value=value, conversion=-1, format_spec=None | ast.JoinedStr() as spec):
                    pieces = spec.values if spec is not None else []
                    said = [piece.value for piece in pieces if isinstance(piece, ast.Constant)]
                    if len(said) < len(pieces):
                        raise ValueError("the format of a value is not constant")
                    text += f"{{:{''.join(map(str, said))}}}" if said else "{}"
                    values.append(ast.unparse(value))  # before Python 3.12, its place is not always known
                case ast.FormattedValue() | ast.Starred():
                    raise ValueError("it has no form in a format string")
                case _:
                    text += "{}"
                    values.append(source.code(part))
        words.append(text)
    return " ".join(words), values


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
