"""What compiled code computes from constants alone: once, above the function."""

from __future__ import annotations

import ast
import builtins
import textwrap
from collections.abc import Iterator

from irscope.fixing.edits import dedented
from irscope.fixing.model import Example, Proposal, Rule
from irscope.fixing.source import Source, bound_names, whole
from irscope.protocol import Finding, FixMethod

_CHANGING = (
    "time.", "datetime.", "random.", "secrets.", "uuid.", "os.", "sys.", "threading.", "platform.", "socket.",
    "numpy.random.", "torch.", "open", "input", "next", "iter", "id", "globals", "locals", "vars", "object",
)  # fmt: skip
"""What gives something else each time, or changes something: modules end with a dot."""
_CAVEAT = "It is then the same in every call."


def _propose(source: Source, finding: Finding) -> Iterator[Proposal]:
    statement = source.statement(source.at(finding.range))
    if statement is None or source.function(statement) is None:
        return
    match statement:
        case ast.For(iter=value):  # what a loop runs over
            name = "items"
        case ast.Assign(targets=[ast.Name(id=name), *_], value=value):
            pass
        case _:
            return
    if not isinstance(value, (ast.Constant, ast.Name)) and _is_constant(source, value):
        constant = source.fresh(f"_{name.strip('_').upper()}")
        code = dedented(source.code(value), " " * source.position(source.span(statement)[0]).column)
        line = source.above(statement, f"{constant} = {whole(code)}")
        yield Proposal(FixMethod.COMPUTE_ONCE, _CAVEAT, source.changed({value: constant}, [line]))


def _is_constant(source: Source, value: ast.expr) -> bool:
    """Whether an expression reads only modules, builtins, names of its own and constants of the file, and nothing that changes."""
    calls = [source.full_name(call.func) for call in source.all(ast.Call, value)]
    if any(call == name or (name.endswith(".") and call.startswith(name)) for call in calls for name in _CHANGING):
        return False
    own = {name for loop in source.all(ast.comprehension, value) for name in bound_names(loop.target)}
    names = {name.id for name in source.all(ast.Name, value)}
    return names <= own | source.imports.keys() | source.constants.keys() | set(dir(builtins))


def _example(imports: str, body: str, value: str, name: str) -> Example:
    """A function that computes a value, which becomes a constant above it."""
    script = (
        f"{imports}\nimport torch\nABOVE\n\n@torch.compile(backend='eager')\ndef f(x):\n"
        f"{textwrap.indent(body, '    ')}\n\nf(torch.ones(4))"
    )
    after = script.replace("ABOVE", f"\n{name} = {value}\n").replace("VALUE", name)
    return Example(script.replace("ABOVE", "").replace("VALUE", value), after, is_script=True)


_EXAMPLES = (
    _example("import json", "scale = VALUE\nreturn x * scale\n", """json.loads('{"x": 2.0}')["x"]""", "_SCALE"),
    _example(
        "import numpy as np",
        "for rate in VALUE:\n    x = x * rate\nreturn x\n",
        "[float(number) for number in np.linspace(0, 0.1, 4)]",
        "_ITEMS",
    ),
)
RULE = Rule("constants", "graph-break", _propose, examples=_EXAMPLES)
