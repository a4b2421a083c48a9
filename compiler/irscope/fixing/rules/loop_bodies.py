"""A loop that is unrolled: its body is compiled, once for all rounds, and the loop is left to Python."""

from __future__ import annotations

import ast
from collections.abc import Iterator

from irscope.fixing.model import Example, Proposal, Rule
from irscope.fixing.source import Source, changed_names
from irscope.fixing.splitting import can_be_split, function_code, is_method, parameters, split, undecorated
from irscope.fixing.syntax import Definition, Function, is_simple
from irscope.protocol import Edit, Finding, Position, Range

_UNROLLED = "unrolled-loop"
_CODES = ("recompile-value", "recompile-condition", _UNROLLED)
_TITLE = "Compile the body of the loop, not the loop"
_CAVEAT = (
    "Each turn is a call of the graph, and nothing is fused across turns. What is outside of the loop is plain Python."
)
_LENGTHS = {"range", "len", "enumerate", "zip", "reversed"}
_ODD: tuple[type[ast.AST], ...] = (
    ast.Return, ast.Break, ast.Continue, ast.Delete, ast.Lambda, ast.Import, ast.ImportFrom, ast.NamedExpr, *Definition,
)  # fmt: skip
_WORK: tuple[type[ast.AST], ...] = (ast.BinOp, ast.UnaryOp, ast.Compare, ast.BoolOp, ast.AugAssign)


def _propose(source: Source, finding: Finding) -> Iterator[Proposal]:
    function = source.function_at(finding.range)
    loops = [statement for statement in function.body if isinstance(statement, ast.For) and not statement.orelse]
    if (
        len(loops) != 1
        or not can_be_split(source, function)
        or source.all(_ODD, loops[0].body)
        or not source.owns_lines(*loops[0].body)
    ):
        return
    is_alone = not is_method(source, function) and _is_only_work(source, function, loops[0])
    text = _with_body_apart(source, function, loops[0]) if is_alone or finding.kind == _UNROLLED else None
    if text is not None:
        yield Proposal(_TITLE, _CAVEAT, text)


def _is_only_work(source: Source, function: Function, loop: ast.For) -> bool:
    """Whether a function computes nothing outside of the body of its loop: it names things, and returns one."""
    others = [statement for statement in function.body if statement is not loop]
    called = {source.code(call.func) for call in source.all(ast.Call, [*others, loop.iter])}
    return called <= _LENGTHS and all(map(is_simple, others)) and not source.all(_WORK, others)


def _with_body_apart(source: Source, function: Function, loop: ast.For) -> str | None:
    """The text with the body as a separate function; None if it changes nothing that is read after it."""
    own = parameters(function)[: is_method(source, function)]
    elements = _elements(source, loop)
    codes = {name: source.code(node) for node, name in elements.items()}
    changed = sorted(changed_names(*loop.body))
    read = {name.id for name in source.all(ast.Name, loop.body) if source.parent(name) not in elements}
    given = sorted((read & changed_names(function) | set(changed)).difference(own))
    above = function.body[: function.body.index(loop)]
    targets = {name.id for name in source.all(ast.Name, loop.target)}
    if not changed or not (changed_names(*above, function.args) | targets).issuperset(given):
        return None
    name, result = source.fresh(f"{function.name}_turn"), ", ".join(changed)
    body = source.block_code(loop.body, {**elements})
    turn = function_code(source, name, [*own, *given, *codes], f"{body}\nreturn {result}")
    first, end = source.comments_above(loop.body[0]), source.range(*loop.body).end
    end = min(Position(end.line, len(source.lines[end.line - 1])), source.range(function).end)
    indent = source.lines[loop.body[0].lineno - 1][: source.range(loop.body[0]).start.column]
    code = f"{indent}{result} = {'.'.join([*own, name])}({', '.join([*given, *codes.values()])})"
    call = Edit(Range(Position(first, 0), end), code)
    return split(source, function, undecorated(source, function, call), turn)


def _elements(source: Source, loop: ast.For) -> dict[ast.AST, str]:
    """The elements ``rows[step]``, with the names that they get, if the number of the round is for nothing else: a number
    that is passed is compiled again."""
    step, changed = source.code(loop.target), changed_names(*loop.body)
    uses = [source.parent(name) for name in source.all(ast.Name, loop.body) if name.id == step]
    elements = [use for use in uses if isinstance(use, ast.Subscript) and isinstance(use.value, ast.Name)]
    are_all = len(elements) == len(uses) and all(source.code(use.slice) == step for use in elements)
    names = {use: source.code(use.value) for use in elements}
    return (
        {use: source.fresh(f"{name}_{step}") for use, name in names.items()}
        if are_all and not changed & {*names.values()}
        else {}
    )


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
          class Recurrent(torch.nn.Module):
        +     @torch.compiler.disable(recursive=False)
              def forward(self, rows, h):
                  for step in range(20):
        -             h = torch.tanh(rows[step] + h) * 2 - 1
        +             h = self.forward_turn(h, rows[step])
                  return h
        +
        +     def forward_turn(self, h, rows_step):
        +         h = torch.tanh(rows_step + h) * 2 - 1
        +         return h

          torch.compile(Recurrent(), backend="eager")(torch.ones(20, 4), torch.ones(4))
    """),
)
RULE = Rule("loop bodies", ("recompilation", _UNROLLED), _propose, _CODES, _EXAMPLES)
