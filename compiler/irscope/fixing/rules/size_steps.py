"""What a function does first to arguments of some sizes, such as padding odd ones: done by a plain function around it.

Compiled code is made for each answer to a question about sizes, ``if x.shape[-1] % 2:``; the rest is then compiled for the
sizes after that step alone.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator

from irscope.fixing.model import Example, Proposal, Rule
from irscope.fixing.source import Source
from irscope.fixing.splitting import can_be_split, given_parameters, with_before
from irscope.fixing.syntax import Function, is_docstring
from irscope.protocol import Finding

_TITLE = "Do what depends on sizes before the compiled code"
_CAVEAT = "What is done there is no longer in the graph."


def _propose(source: Source, finding: Finding) -> Iterator[Proposal]:
    function = source.function_at(finding.range)
    if not can_be_split(source, function):
        return
    steps = _steps(source, function)
    if steps:
        text = with_before(source, function, [source.block_code(steps)], {}, dict.fromkeys(steps))
        yield Proposal(_TITLE, _CAVEAT, text, last=True)


def _steps(source: Source, function: Function) -> list[ast.stmt]:
    """The statements at the beginning that change an argument if its sizes are so: ``if x.shape[-1] % 2: x = pad(x)``."""
    own = set(given_parameters(source, function) or ())
    steps: list[ast.stmt] = []
    for statement in function.body:
        if is_docstring(statement):
            continue
        if not isinstance(statement, ast.If) or statement.orelse or not _asks_sizes(source, statement.test, own):
            break
        if not all(_changes_argument(source, inner, own) for inner in statement.body):
            break
        steps.append(statement)
    return steps


def _asks_sizes(source: Source, test: ast.expr, own: set[str]) -> bool:
    """Whether a condition reads nothing but sizes of arguments."""
    sizes = [node for node in source.all(ast.Attribute, test) if node.attr in ("shape", "size", "dim")]
    inside = set(source.all(ast.Name, sizes))
    read = [name.id for name in source.all(ast.Name, test) if name not in inside]
    heads = {source.code(size.value) for size in sizes}
    return bool(sizes) and heads <= own and source.constants.keys() >= set(read)


def _changes_argument(source: Source, node: ast.stmt, own: set[str]) -> bool:
    """``x = pad(x, (0, 1))``: of arguments and functions of modules alone."""
    match node:
        case ast.Assign(targets=[ast.Name(id=name)], value=ast.Call() as call) if name in own:
            read = {inner.id for inner in source.all(ast.Name, call)}
            return read <= own | set(source.imports) | source.constants.keys()
    return False


_EXAMPLES = (
    Example.script("""
          @torch.compile(backend="eager")
        + def f_after(x):
        +     return x * 2
        +
        +
        + @torch.compiler.disable(recursive=False)
          def f(x):
              if x.shape[-1] % 2:
                  x = torch.nn.functional.pad(x, (0, 1))
        -     return x * 2
        +     return f_after(x)

          for size in (4, 6, 5):
              f(torch.ones(2, size))
    """),
    Example.script("""
        + @torch.compile(backend="eager", dynamic=True)
        + def f_after(x):
        +     return x * 2
        +
        +
        + @torch.compiler.disable(recursive=False)
          def f(x):
              # short ones
              if x.size(0) < 8:
                  x = torch.cat([x, x])
        -     return x * 2
        +     return f_after(x)

        - g = torch.compile(f, backend="eager", dynamic=True)
        + g = f
          for size in (4, 9):
              g(torch.ones(size))
    """),
)
RULE = Rule("size steps", ("recompilation",), _propose, ("recompile-condition",), examples=_EXAMPLES)
