"""A loop that runs another number of times in each call: its body is compiled, once for all numbers of times.

Compiled code has a loop unrolled, so each number is one more compile.  The function keeps its name and its loop, which is
plain Python then; no operation on a tensor leaves the graph, since all of them are in the body.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator

from irscope.fixing.model import Example, Proposal, Rule
from irscope.fixing.source import Source, changed_names
from irscope.fixing.splitting import can_be_split, function_code, is_method, split, undecorated
from irscope.fixing.syntax import Definition, Function, is_simple
from irscope.protocol import Edit, Finding, Position, Range

_TITLE = "Compile the body of the loop, not the loop"
_CAVEAT = "Each turn is a call of the graph, and nothing is fused across turns. Many short turns can be slower."
_LENGTHS = ("range", "len", "enumerate", "zip", "reversed")
_Nodes = tuple[type[ast.AST], ...]
_ODD: _Nodes = (
    ast.Return, ast.Break, ast.Continue, ast.Delete, ast.Lambda, ast.Import, ast.ImportFrom, ast.NamedExpr, *Definition,
)  # fmt: skip
_WORK: _Nodes = (ast.BinOp, ast.UnaryOp, ast.Compare, ast.BoolOp, ast.AugAssign)


def _propose(source: Source, finding: Finding) -> Iterator[Proposal]:
    function = source.function_at(finding.range)
    if is_method(source, function) or not can_be_split(source, function):
        return
    loops = [statement for statement in function.body if isinstance(statement, ast.For)]
    if len(loops) == 1 and _is_only_work(source, function, loops[0]):
        text = _with_body_apart(source, function, loops[0])
        if text is not None:
            yield Proposal(_TITLE, _CAVEAT, text)


def _is_only_work(source: Source, function: Function, loop: ast.For) -> bool:
    """Whether a function computes nothing outside of the body of its loop: it names things, and returns one."""
    if (
        loop.orelse
        or not source.owns_lines(*loop.body)
        or any(isinstance(node, _ODD) for part in loop.body for node in ast.walk(part))
    ):
        return False
    others = [statement for statement in function.body if statement is not loop]
    calls = source.all(ast.Call, [*others, loop.iter])
    asks_lengths = all(source.code(call.func) in _LENGTHS for call in calls)
    return asks_lengths and all(map(is_simple, others)) and not source.all(_WORK, others)


def _with_body_apart(source: Source, function: Function, loop: ast.For) -> str | None:
    """The text with the body as a separate function; None if it changes nothing that is read after it."""
    changed = sorted(changed_names(*loop.body))
    read = {name.id for name in source.all(ast.Name, loop.body)}
    given = sorted(read & changed_names(function) | set(changed))
    above = function.body[: function.body.index(loop)]
    targets = {name.id for name in source.all(ast.Name, loop.target)}
    if not changed or not (changed_names(*above, function.args) | targets).issuperset(given):
        return None
    name, result = source.fresh(f"{function.name}_turn"), ", ".join(changed)
    turn = function_code(source, name, given, f"{source.block_code(loop.body)}\nreturn {result}")
    first, end = source.comments_above(loop.body[0]), source.range(*loop.body).end
    end = min(Position(end.line, len(source.lines[end.line - 1])), source.range(function).end)
    indent = source.lines[loop.body[0].lineno - 1][: source.range(loop.body[0]).start.column]
    call = Edit(Range(Position(first, 0), end), f"{indent}{result} = {name}({', '.join(given)})")
    return split(source, function, undecorated(source, function, call), turn)


_EXAMPLES = (
    Example.script("""
          @torch.compile(backend="eager")
        + def f_turn(x):
        +     x = x.sin()
        +     return x
        +
        +
        + @torch.compiler.disable(recursive=False)
          def f(x, n):
              for _ in range(n):
        -         x = x.sin()
        +         x = f_turn(x)
              return x

          for n in (2, 3):
              f(torch.ones(4), n)
    """),
    Example.script("""
        + @torch.compile(backend="eager")
        + def f_turn(row, total):
        +     total = total + row  # all
        +     return total
        +
        +
        + @torch.compiler.disable(recursive=False)
          def f(rows):
              total = rows[0]
              for row in rows[1:]:
        -         total = total + row  # all
        +         total = f_turn(row, total)
              return total

        - g = torch.compile(f, backend="eager")
        + g = f
          for n in (2, 3):
              g([torch.ones(4)] * n)
    """),
)
RULE = Rule("loop bodies", "recompilation", _propose, ("recompile-value", "recompile-condition"), examples=_EXAMPLES)
