"""Numbers of tensors that are compared with sizes: symbols of the graph, whose bounds the graph checks."""

from __future__ import annotations

import ast
from collections.abc import Iterator

from irscope.events.break_message import DATA_DEPENDENT_GUARD
from irscope.fixing.conditions import opposite, tensor_of
from irscope.fixing.model import Example, Proposal, Rule
from irscope.fixing.source import Source
from irscope.fixing.syntax import Function
from irscope.protocol import Finding
from irscope.usercode.bindings import last_word

_TITLE = "Let the number be a symbol of the graph, and check its bounds there"
_CAVEAT = "The setting is for all compiled functions of the process."
_CHECKS = " A failed check is a RuntimeError, without the values of the message."
_SETTING = "capture_scalar_outputs"
_CLAMPS: dict[type[ast.cmpop], str] = {ast.Gt: "min", ast.GtE: "min", ast.Lt: "max", ast.LtE: "max"}


def _propose(source: Source, finding: Finding) -> Iterator[Proposal]:
    """All decisions of the function on its numbers at once: each would be the next break."""
    torch, function = source.torch, source.function_at(finding.range)
    numbers = _numbers(source, function)
    changes: dict[ast.AST, str | None] = {}
    caveat = _CAVEAT
    decisions: list[ast.If | ast.Assert] = source.all((ast.If, ast.Assert), function.body)
    for decision in decisions:
        reads = {name.id for name in source.all(ast.Name, decision.test)}
        if getattr(decision, "orelse", ()) or source.function(decision) is not function or not reads & numbers:
            continue
        lines = _checks(source, decision, torch)
        caveat = _CAVEAT + _CHECKS if lines else caveat
        lines = lines or _clamped(source, decision)
        if not lines or source.is_elif(decision):
            return
        changes[decision] = "\n".join(lines)
    if changes:
        setting = source.setting(f"torch._dynamo.config.{_SETTING} = True", "torch._dynamo")
        yield Proposal(_TITLE, caveat, source.changed(changes, [] if _SETTING in source.text else [setting]))


def _numbers(source: Source, function: Function) -> set[str]:
    """Names that the function gives the number of a tensor: ``n = lengths.max().item()``, ``for n in lengths.tolist()``."""
    names = set()
    for node in source.all((ast.Assign, ast.For), function.body):
        match node:
            case (
                ast.Assign(targets=[ast.Name(id=name)], value=value) | ast.For(target=ast.Name(id=name), iter=value)
            ) if _is_number(source, value):
                names.add(name)
    return names


def _is_number(source: Source, node: ast.expr) -> bool:
    is_list = isinstance(node, ast.Call) and last_word(node.func) == "tolist"
    return is_list or tensor_of(source, node, "int") is not None


def _checks(source: Source, decision: ast.If | ast.Assert, torch: str) -> list[str]:
    """The checks that the graph makes in the place of an assertion or an exception: one for each operand of the ``and`` of
    ``assert n <= limit, "too long"``, or of the ``or`` of ``if n > limit: raise ValueError("too long")``."""
    match decision:
        case ast.Assert(test=test, msg=message):
            operands = _operands(test, ast.And)
            are_comparisons = all(isinstance(operand, ast.Compare) and len(operand.ops) == 1 for operand in operands)
            checks = [*map(source.code, operands)] if are_comparisons else [""]
        case ast.If(test=test, body=[ast.Raise(exc=ast.Call() | ast.Name() as error, cause=None)]):
            message = next(iter(getattr(error, "args", ())), None)
            checks = [opposite(source, operand) for operand in _operands(test, ast.Or)]
        case _:
            return []
    is_text = isinstance(message, ast.Constant) and isinstance(message.value, str)
    words = f", lambda: {source.code(message)}" if message is not None and is_text else ""
    return [f"{torch}._check({check}{words})" for check in checks] if all(checks) else []


def _operands(test: ast.expr, word: type[ast.boolop]) -> list[ast.expr]:
    """The operands of ``a or b or c``, where ``word`` is `ast.Or`."""
    if isinstance(test, ast.BoolOp) and isinstance(test.op, word):
        return [operand for value in test.values for operand in _operands(value, word)]
    return [test]


def _clamped(source: Source, decision: ast.If | ast.Assert) -> list[str]:
    """``if n > limit: n = limit`` as ``n = min(n, limit)``."""
    match decision:
        case ast.If(test=ast.Compare(left=ast.Name(id=name), ops=[sign], comparators=[limit]), body=[statement]):
            function = _CLAMPS.get(type(sign))
            if function is not None and ast.unparse(statement) == f"{name} = {ast.unparse(limit)}":
                return [f"{name} = {function}({name}, {source.code(limit)})"]
    return []


_SCRIPT = """
      import torch
    + import torch._dynamo
    +
    + torch._dynamo.config.capture_scalar_outputs = True


      @torch.compile(backend="eager")
      def f(x):
          n = x.sum().item()
    -     if n > 8:
    -         {}
    +     {}
          return x[:n] + 1

      f(torch.ones(4, dtype=torch.long))
"""
_EXAMPLES = (
    Example.script(_SCRIPT.format('raise ValueError("too many")', 'torch._check(n <= 8, lambda: "too many")')),
    Example.script(_SCRIPT.format("n = 8", "n = min(n, 8)")),
)
RULE = Rule("bounds", ("graph-break",), _propose, ("GB0124", "GB0033", DATA_DEPENDENT_GUARD), examples=_EXAMPLES)
