"""The nodes of a graph stage, read from the text that PyTorch prints for it.

A printed FX graph is Python code: one statement a node, its shape in the annotation, and above it a comment that
names the user's line (``# File: model.py:12 in forward, code: …``).  So the same function reads the graphs of a live
run, of a stored one and of a trace that came from elsewhere, without any private hook.
"""

from __future__ import annotations

import ast
import re
from dataclasses import dataclass

from irscope.capture.stages import GRAPH_STAGES as GRAPH_STAGES
from irscope.protocol import Origin

# PyTorch prints the name of the module's class, which for an inference graph is `<lambda>`: no name in Python.
_CLASS = re.compile(r"^( *class )[^(:\n]+", re.MULTILINE)
_ORIGIN = re.compile(r"^\s*# File: (?P<file>.+?):(?P<line>\d+) in (?P<function>.+?), code: (?P<code>.*)$")


@dataclass(frozen=True)
class GraphNode:
    """One node of a graph.

    Parameters
    ----------
    op
        ``placeholder``, ``get_attr``, ``call`` or ``output``.
    target
        What is called, as printed: ``torch.ops.aten.mm.default``, ``relu``, ``operator.add``.
    detail
        Dtype, shape, strides and device as printed: ``f32[8, 32][32, 1]cpu``; empty where it is no tensor.
    inputs
        Names of the nodes it uses, in order, each once.
    line
        1-based line in the stage's text.
    origin
        The user's line it came from, where the text tells.
    code
        That line as printed.
    """

    name: str
    op: str
    target: str
    detail: str
    inputs: tuple[str, ...]
    line: int
    origin: Origin | None = None
    code: str = ""


@dataclass(frozen=True)
class Graph:
    nodes: tuple[GraphNode, ...]


def parse_graph(text: str) -> Graph:
    """Reads a printed graph; of a text with submodules the outermost ``forward``.

    Raises ValueError for a text that is no printed FX graph.
    """
    try:
        tree = ast.parse(_CLASS.sub(r"\1_", text.lstrip("\n")))
    except (SyntaxError, ValueError, RecursionError) as error:
        raise ValueError(f"not a printed FX graph: {error}") from error
    offset = len(text) - len(text.lstrip("\n"))
    forward = next(
        (
            item
            for cls in tree.body
            if isinstance(cls, ast.ClassDef)
            for item in cls.body
            if isinstance(item, ast.FunctionDef) and item.name == "forward"
        ),
        None,
    )
    if forward is None:
        raise ValueError("not a printed FX graph: no class with a forward method in it")
    return Graph(tuple(_Reader(text, offset).read(forward)))


class _Reader:
    def __init__(self, text: str, offset: int) -> None:
        self._offset = offset
        self._origins: list[tuple[int, Origin, str]] = []
        for number, line in enumerate(text.split("\n"), 1):
            if match := _ORIGIN.match(line):
                self._origins.append((number, Origin(match["file"], int(match["line"])), match["code"]))
        self._nodes: dict[str, GraphNode] = {}
        self._aliases: dict[str, str] = {}

    def read(self, forward: ast.FunctionDef) -> list[GraphNode]:
        declared = {
            s.target.id for s in forward.body if isinstance(s, ast.AnnAssign) and isinstance(s.target, ast.Name)
        }
        for argument in forward.args.args[1:]:
            if argument.annotation is None and any(name.startswith(f"{argument.arg}_") for name in declared):
                continue  # `primals` and `tangents` of a joint graph, whose parts are declared in its body
            self._add(argument.arg, "placeholder", argument.arg, _text(argument.annotation), [], argument.lineno)
        for statement in forward.body:
            self._statement(statement)
        return list(self._nodes.values())

    def _statement(self, statement: ast.stmt) -> None:
        if isinstance(statement, ast.Return):
            self._add("output", "output", "output", "", self._inputs(statement.value), statement.lineno)
            return
        if isinstance(statement, ast.AnnAssign) and isinstance(statement.target, ast.Name):
            name, detail, value = statement.target.id, _text(statement.annotation), statement.value
        elif (
            isinstance(statement, ast.Assign)
            and len(statement.targets) == 1
            and isinstance(statement.targets[0], ast.Name)
        ):
            name, detail, value = statement.targets[0].id, "", statement.value
        elif isinstance(statement, ast.Expr):
            name, detail, value = f"_{statement.lineno}", "", statement.value
        else:
            return  # `a = b = None` frees memory; `x, y, = tree_flatten_spec(…)` unpacks the inputs
        if value is None:  # `primals_1: "f32[…]"` declares an input of a joint graph
            self._add(name, "placeholder", name, detail, [], statement.lineno)
        elif isinstance(value, ast.Constant) and value.value is None:
            return
        elif isinstance(value, ast.Name) and value.id in self._nodes:
            self._aliases[name] = value.id  # `l_x_ = L_x_` only renames
        elif isinstance(value, ast.Attribute) and ast.unparse(value).startswith("self."):
            self._add(name, "get_attr", ast.unparse(value)[5:], detail, [], statement.lineno)
        else:
            self._add(name, "call", _target(value), detail, self._inputs(value), statement.lineno)

    def _inputs(self, value: ast.expr | None) -> list[str]:
        names = [node for node in ast.walk(value) if isinstance(node, ast.Name)] if value else []
        names.sort(key=lambda node: (node.lineno, node.col_offset))
        found = [self._aliases.get(node.id, node.id) for node in names]
        return list(dict.fromkeys(name for name in found if name in self._nodes))

    def _add(self, name: str, op: str, target: str, detail: str, inputs: list[str], line: int) -> None:
        origin, code = None, ""
        if op in ("call", "get_attr"):
            for number, candidate, text in self._origins:
                if number > line + self._offset:
                    break
                origin, code = candidate, text
        self._nodes[name] = GraphNode(name, op, target, detail, tuple(inputs), line + self._offset, origin, code)


def _text(annotation: ast.expr | None) -> str:
    if annotation is None:
        return ""
    return str(annotation.value) if isinstance(annotation, ast.Constant) else ast.unparse(annotation)


_NAMESPACES = frozenset({"torch", "operator", "self", "math", "einops"})
_OPERATORS: dict[type[ast.AST], str] = {
    ast.Add: "add", ast.Sub: "sub", ast.Mult: "mul", ast.Div: "truediv", ast.FloorDiv: "floordiv", ast.Mod: "mod",
    ast.Pow: "pow", ast.MatMult: "matmul", ast.BitAnd: "and", ast.BitOr: "or", ast.BitXor: "xor", ast.LShift: "lshift",
    ast.RShift: "rshift", ast.USub: "neg", ast.UAdd: "pos", ast.Invert: "invert", ast.Not: "not", ast.Eq: "eq",
    ast.NotEq: "ne", ast.Lt: "lt", ast.LtE: "le", ast.Gt: "gt", ast.GtE: "ge", ast.Is: "is", ast.IsNot: "is_not",
    ast.In: "contains", ast.NotIn: "contains",
}  # fmt: skip


def _target(value: ast.expr) -> str:
    """What an expression calls: the function's printed name, or the operator that its symbol stands for."""
    if isinstance(value, ast.Call):
        function = value.func
        if isinstance(function, ast.Attribute) and isinstance(function.value, ast.Name):
            if function.value.id not in _NAMESPACES:
                return function.attr  # a method of a tensor: `h.sum()`
        return ast.unparse(function)
    if isinstance(value, ast.BinOp):
        return f"operator.{_OPERATORS.get(type(value.op), '?')}"
    if isinstance(value, ast.UnaryOp):
        return f"operator.{_OPERATORS.get(type(value.op), '?')}"
    if isinstance(value, ast.Compare):
        return f"operator.{_OPERATORS.get(type(value.ops[0]), '?')}"
    if isinstance(value, ast.Subscript):
        return "operator.getitem"
    return ast.unparse(value)
