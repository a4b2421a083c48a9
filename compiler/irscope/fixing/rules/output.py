"""What a statement or a ``with`` block writes, logs or warns: printed from the graph, by an operator, or left out while
compiling.  Filters of warnings, which Dynamo cannot set, are left out, too."""

from __future__ import annotations

import ast
import contextlib
import textwrap
from collections.abc import Iterator, Sequence

from irscope.fixing.edits import reindented
from irscope.fixing.model import Example, Proposal, Rule
from irscope.fixing.source import Source
from irscope.protocol import Finding, FixMethod

_CAVEAT = "Then it is not done in compiled runs."
_OPERATOR_CAVEAT = "`torch._higher_order_ops.print` is not public. What requires grad is printed without `grad_fn`."
_LOOSE = (ast.IfExp, ast.NamedExpr, ast.Lambda)
"""What binds less than ``and`` does."""


def _propose(source: Source, finding: Finding) -> Iterator[Proposal]:
    node = source.at(finding.range)
    statements = [line for line in source.on_line(finding.range.start.line, ast.Expr) if source.function(line)]
    calls = [statement for statement in statements[:1] if isinstance(statement.value, ast.Call)]
    outputs = [statement for statement in calls if source.can_be_left_out(statement)]
    for statement in outputs:
        yield from _printed(source, statement)
    yield from _decision(source, finding)
    block = source.first_around(node, ast.With)
    if block is not None and source.owns_lines(*block.body):
        yield from _without_filter(source, block)
        if source.can_be_left_out(block):
            yield _left_out(source, block)  # Dynamo may not know the context
    for statement in outputs:
        yield _left_out(source, statement)


def _printed(source: Source, statement: ast.Expr) -> Iterator[Proposal]:
    match statement.value:
        case ast.Call(keywords=[], args=args, func=func) if source.full_name(func) == "print":
            with contextlib.suppress(ValueError):
                words, values = _format(source, args)
                code = f"{source.torch}._higher_order_ops.print({', '.join([_quoted(words), *values])})"
                if values:
                    yield Proposal("Print from the graph", _OPERATOR_CAVEAT, source.changed({statement: code}))


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


def _left_out(source: Source, statement: ast.stmt) -> Proposal:
    code = reindented(source.code(statement), "    ", "    ")
    text = source.changed({statement: f"if not {source.torch}.compiler.is_compiling():\n{code}"})
    return Proposal(FixMethod.LEAVE_OUT, _CAVEAT, text)


def _without_filter(source: Source, block: ast.With) -> Iterator[Proposal]:
    """``with warnings.catch_warnings():`` and what it sets."""
    kept = [inner for inner in block.body if not _is_about_warnings(source, inner)]
    match block.items:
        case [ast.withitem(context_expr=ast.Call(func=function), optional_vars=None)] if kept:
            if source.full_name(function) == "warnings.catch_warnings":
                text = source.changed({block: source.block_code(kept)})
                caveat = "Warnings are then shown; filter them around the call of the compiled code."
                yield Proposal("Leave the filter of warnings out", caveat, text)


def _is_about_warnings(source: Source, statement: ast.stmt) -> bool:
    names = [source.full_name(call.func) for call in source.all(ast.Call, statement)]
    is_call = isinstance(statement, ast.Expr) and isinstance(statement.value, ast.Call)
    return is_call and any(name.startswith("warnings.") for name in names)


def _decision(source: Source, finding: Finding) -> Iterator[Proposal]:
    """``if x.isnan().any(): warnings.warn(…)``: without the output there is nothing to decide."""
    decision = source.first_around(source.at(finding.range), ast.If)
    if decision is None or source.function(decision) is None or source.is_elif(decision):
        return
    if decision.orelse or source.line(decision) != finding.range.start.line or not source.can_be_left_out(decision):
        return
    test = source.code(decision.test)
    is_or = isinstance(decision.test, ast.BoolOp) and isinstance(decision.test.op, ast.Or)
    if is_or or isinstance(decision.test, _LOOSE):
        test = f"({test})"
    made = f"not {source.torch}.compiler.is_compiling() and {test}"
    yield Proposal(FixMethod.LEAVE_OUT, _CAVEAT, source.changed({decision.test: made}))


_WARNS = """\
with warnings.catch_warnings():
    warnings.simplefilter("always")
    # of each call
    warnings.warn(f"{x.shape[0]} rows")
"""
_FILTER = """\
with warnings.catch_warnings():
    warnings.simplefilter("ignore")
    # halves
    return x / 2
"""
_GUARD = "if not torch.compiler.is_compiling()"
_EXAMPLES = (
    Example(
        "print('mean', f'{x.mean():.2f} of {{x}}')\nreturn x + 1",
        'torch._higher_order_ops.print("mean {:.2f} of {{x}}", x.mean())\nreturn x + 1',
    ),
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
    Example(_FILTER, "# halves\nreturn x / 2", above="import warnings"),
)
RULE = Rule("output", ("graph-break",), _propose, examples=_EXAMPLES)
