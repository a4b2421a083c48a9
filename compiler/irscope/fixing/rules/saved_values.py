"""A number that a saved function reads from its machine or process: a tensor above it, which the loading process makes again."""

from __future__ import annotations

import ast
from collections.abc import Iterator

from irscope.fixing.edits import argument
from irscope.fixing.model import Example, Proposal, Rule
from irscope.fixing.source import Source, bound_names
from irscope.ir.artifacts.portability import NOT_PORTABLE
from irscope.protocol import Finding

_TITLE = "Read it into a tensor above the function"
_CAVEAT = "Where the function is loaded, a tensor of this name is among the `f_globals` of `load_compiled_function`."
_NUMBERS = ("id", "getpid", "get_rank", "get_world_size", "current_device", "device_count", "int", "float")
"""The last part of the names of functions that return a number."""


def _propose(source: Source, finding: Finding) -> Iterator[Proposal]:
    numbers = [node for node in source.around(source.at(finding.range)) if _called(node) in _NUMBERS]
    function = source.function_at(finding.range)
    if not numbers or any(name.id in bound_names(function) for name in source.all(ast.Name, numbers[-1])):
        return
    name = source.fresh("_VALUE")
    above = source.above(function, f"{name} = {source.torch}.tensor({source.code(numbers[-1])})")
    loads = [call for call in source.all(ast.Call) if _called(call) == "load_compiled_function"]
    given = [argument(source, call, "f_globals", "globals()") for call in loads if not _has_globals(call)]
    yield Proposal(_TITLE, _CAVEAT, source.changed({numbers[-1]: name}, [above, *given]))


def _called(node: ast.AST) -> str:
    """The last part of the name of what is called; empty if nothing is."""
    return ast.unparse(node.func).rpartition(".")[2] if isinstance(node, ast.Call) else ""


def _has_globals(call: ast.Call) -> bool:
    return any(keyword.arg in ("f_globals", None) for keyword in call.keywords)


_EXAMPLES = (
    Example.script("""
          import os
          import tempfile
          import torch

          os.environ.setdefault("SCALE", "2")

        + _VALUE = torch.tensor(float(os.environ["SCALE"]))
        +
        +
          def f(x):
        -     return x * float(os.environ["SCALE"])
        +     return x * _VALUE

          x = torch.ones(4)
          saved = torch.compile(f, fullgraph=True).aot_compile(((x,), {}))
          saved.save_compiled_function(os.path.join(tempfile.mkdtemp(), "saved"))
    """),
    Example.script("""
          import os
          import tempfile
          import torch

        + _VALUE = torch.tensor(id(torch))
        +
        +
          def f(x):
        -     return x + id(torch)
        +     return x + _VALUE

          x = torch.ones(4)
          path = os.path.join(tempfile.mkdtemp(), "saved")
          torch.compile(f, fullgraph=True).aot_compile(((x,), {})).save_compiled_function(path)
          with open(path, "rb") as file:
        -     loaded = torch.compiler.load_compiled_function(file)
        +     loaded = torch.compiler.load_compiled_function(file, f_globals=globals())
          loaded(x)
    """),
)
RULE = Rule("saved values", "specialization", _propose, codes=(NOT_PORTABLE,), examples=_EXAMPLES)
