"""What compiled code computes from constants alone: once, above the function."""

from __future__ import annotations

import ast
import builtins
import textwrap
from collections import Counter
from collections.abc import Collection, Iterator

from irscope.fixing.edits import dedented
from irscope.fixing.model import Example, Proposal, Rule
from irscope.fixing.source import Source, bound_names, tight, whole
from irscope.protocol import Finding, FixMethod
from irscope.usercode.bindings import bound

_CHANGING = (
    "time.", "datetime.", "random.", "secrets.", "uuid.", "os.", "sys.", "threading.", "platform.", "socket.",
    "numpy.random.", "torch.", "open", "input", "next", "iter", "id", "globals", "locals", "vars", "object",
)  # fmt: skip
"""What gives something else each time, or changes something: modules end with a dot."""
_CAVEAT = "It is then the same in every call."


def _propose(source: Source, finding: Finding) -> Iterator[Proposal]:
    node = source.at(finding.range)
    statement, function = source.statement(node), source.function(node)
    if statement is None or function is None or isinstance(statement, ast.Expr):
        return
    name, values = "value", [outer for outer in source.around(node) if isinstance(outer, ast.expr)]
    match statement:
        case ast.For(iter=value):  # what a loop runs over
            name, values = "items", [*values, value]
        case ast.Assign(targets=[ast.Name(id=name), *_], value=value):
            values.append(value)
    given = _given(source, function)
    for value in reversed(values):
        if not isinstance(value, (ast.Constant, ast.Name)) and _is_constant(source, value, given.keys()):
            constant = source.fresh(f"_{name.strip('_').upper()}")
            names = [part for part in source.all(ast.Name, value) if part.id in given]
            inside: dict[ast.AST, str | None] = {part: tight(source.code(given[part.id])) for part in names}
            code = dedented(source.code(value, inside), " " * source.position(source.span(statement)[0]).column)
            line = source.above(statement, f"{constant} = {whole(code)}")
            yield Proposal(FixMethod.COMPUTE_ONCE, _CAVEAT, source.changed({value: constant}, [line]))
            return


def _given(source: Source, function: ast.AST) -> dict[str, ast.expr]:
    """The local names that are bound once, to a constant, and of which no attribute or item is read: both may change it."""
    times = Counter(name for node in ast.walk(function) for name, _ in bound(node))
    opened = source.all((ast.Attribute, ast.Subscript), function)
    times.update(part.id for node in opened for part in ast.iter_child_nodes(node) if isinstance(part, ast.Name))
    return {
        name: value for node in source.all(ast.Assign, function) for name, value in bound(node)
        if isinstance(value, ast.expr) and times[name] == 1 and _is_constant(source, value)
    }  # fmt: skip


def _is_constant(source: Source, value: ast.expr, given: Collection[str] = ()) -> bool:
    """Whether an expression reads only modules, builtins, names of its own, constants of the file and given names, and nothing that changes."""
    calls = [source.full_name(call.func) for call in source.all(ast.Call, value)]
    if any(call == name or (name.endswith(".") and call.startswith(name)) for call in calls for name in _CHANGING):
        return False
    own = {name for loop in source.all(ast.comprehension, value) for name in bound_names(loop.target)}
    names = {name.id for name in source.all(ast.Name, value)}
    return names <= own | source.imports.keys() | source.constants.keys() | set(dir(builtins)) | set(given)


def _example(body: str, value: str, name: str, above: str = "") -> Example:
    """A function that computes a value, which becomes a constant above it, perhaps with what the function had before it."""
    script = (
        f"import json\nimport numpy as np\nimport torch\nABOVE\n\n@torch.compile(backend='eager')\ndef f(x):\n"
        f"{textwrap.indent(body, '    ')}\n\nf(torch.ones(4))"
    )
    after = script.replace("VALUE", name).replace("ABOVE", f"\n{name} = {above or value}\n")
    return Example(script.replace("ABOVE", "").replace("VALUE", value), after, is_script=True)


_EXAMPLES = (
    _example("scale = VALUE\nreturn x * scale\n", """json.loads('{"x": 2.0}')["x"]""", "_SCALE"),
    _example(
        "for rate in VALUE:\n    x = x * rate\nreturn x\n",
        "[float(number) for number in np.linspace(0, 0.1, 4)]",
        "_ITEMS",
    ),
    _example("names = np.array(['a', 'b'])\nreturn x * VALUE", "len(names)", "_VALUE", "len(np.array(['a', 'b']))"),
)
RULE = Rule("constants", ("graph-break",), _propose, examples=_EXAMPLES)
