"""NumPy functions of plain numbers: Dynamo makes tensors of their results, and what is decided by these breaks the graph.
Python's own functions give Python numbers."""

from __future__ import annotations

import ast
from collections.abc import Iterator

from irscope.events.break_message import DATA_DEPENDENT_GUARD
from irscope.fixing.model import OF_VALUES, Example, Proposal, Rule
from irscope.fixing.source import Source, changed_names
from irscope.fixing.syntax import is_simple
from irscope.protocol import Finding

_TITLE = "Compute the number with Python instead of NumPy"
_CAVEAT = "It is for numbers and flat lists of numbers, not for arrays of several dimensions."
_PLAIN = {
    "sum": ("sum", 1), "prod": ("math.prod", 1), "max": ("max", 1), "min": ("min", 1), "lcm": ("math.lcm", 2),
    "gcd": ("math.gcd", 2), "sqrt": ("math.sqrt", 1), "log": ("math.log", 1), "log2": ("math.log2", 1),
    "exp": ("math.exp", 1), "maximum": ("max", 2), "minimum": ("min", 2),
}  # fmt: skip
"""What Python calls a function of NumPy, and how many arguments both take."""
_WHOLE = {"floor": "math.floor", "ceil": "math.ceil"}
"""Python's give an int: only where one is made of the result at once, ``int(np.ceil(x))``."""


def _propose(source: Source, finding: Finding) -> Iterator[Proposal]:
    node: ast.AST | None = source.at(finding.range)
    node = node.test if isinstance(node, ast.If) else node
    if node is None or source.function(node) is None:
        return
    statement = source.statement(node)
    whole = statement if statement is not None and is_simple(statement) else node
    for place in (node, whole, *_makers(source, whole)):
        changes = _changes(source, place)
        if changes:
            needs_math = any(code.startswith("math.") for code in changes.values())
            more = source.importing("import math") if needs_math else []
            yield Proposal(_TITLE, _CAVEAT, source.changed(changes, more))
            return


def _changes(source: Source, place: ast.AST) -> dict[ast.AST, str]:
    """The names of NumPy's functions that are called at a place, as Python's functions."""
    changes: dict[ast.AST, str] = {}
    for call in source.all(ast.Call, place):
        name = source.full_name(call.func)
        if not name.startswith("numpy.") or not isinstance(call.func, ast.Attribute) or call.keywords:
            continue
        plain, count = _PLAIN.get(name.removeprefix("numpy."), ("", 0))
        if not plain and _is_made_an_int(source, call):
            plain, count = _WHOLE.get(name.removeprefix("numpy."), ""), 1
        is_odd = len(call.args) != count or any(isinstance(argument, ast.Starred) for argument in call.args)
        is_inside = any(isinstance(outer, ast.Call) and outer.func in changes for outer in source.around(call))
        if plain and not is_odd and not is_inside and not _hides(source, plain):
            changes[call.func] = plain
    return changes


def _is_made_an_int(source: Source, call: ast.Call) -> bool:
    parent = source.parent(call)
    return isinstance(parent, ast.Call) and source.code(parent.func) == "int" and parent.args == [call]


def _hides(source: Source, plain: str) -> bool:
    """Whether the file has another thing of the name of Python's function."""
    head, dot, _ = plain.partition(".")
    if dot:
        return head in source.names and source.module_name(head) != head
    return head in changed_names(source.tree)


def _makers(source: Source, node: ast.AST) -> Iterator[ast.AST]:
    """Where the names that a place reads get their values: in the function, and in the functions that it calls for them."""
    function = source.function(node)
    read = {name.id for name in source.all(ast.Name, node)}
    for assign in source.all(ast.Assign, function) if function is not None else ():
        if len(assign.targets) > 1 or not isinstance(assign.targets[0], ast.Name) or assign.targets[0].id not in read:
            continue
        yield assign.value
        if isinstance(assign.value, ast.Call) and isinstance(assign.value.func, ast.Name):
            called = assign.value.func.id
            yield from (made for made in source.tree.body if isinstance(made, ast.FunctionDef) and made.name == called)


_EXAMPLES = (
    Example.body(
        """
        - if x.shape[0] > np.max([2, 3]):
        + if x.shape[0] > max([2, 3]):
              return x + 1
          return x
    """,
        above="import numpy as np",
    ),
    Example.script("""
          import torch
          import numpy as np
        + import math

          SIZES = [2, 2]

          @torch.compile(backend="eager")
          def f(x):
        -     rows = np.prod(SIZES)
        +     rows = math.prod(SIZES)
              if rows == x.numel():
                  return x + 1
              return x

          f(torch.ones(4))
    """),
)
RULE = Rule("plain numbers", ("graph-break",), _propose, (*OF_VALUES, DATA_DEPENDENT_GUARD), examples=_EXAMPLES)
