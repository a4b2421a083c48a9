"""The statements of a printed graph, each of which is a node.

Most statements of most graphs are plain calls, each on a separate line; these are read without parsing.
"""

from __future__ import annotations

import ast
import itertools
import re
import textwrap
from collections.abc import Container, Iterable, Sequence

from irscope.protocol import Origin
from irscope.vocabulary.records import dataclass

# Annotations, what checkpointing decided and, from torch 2.15 on, "Backward of forward node:" are before the file.
ORIGIN_HEAD = r"[ \t]*# (?:[^\n]*? )??File: (?P<file>[^\n]+?):(?P<line>\d+) in "
"""The beginning of the comment that names the user's line above nodes, as a regular expression for a whole line."""
ORIGIN = re.compile(ORIGIN_HEAD + r"(?P<function>.+?), code: (?P<code>.*)$")


@dataclass(frozen=True)
class GraphNode:
    """One node of a graph.

    Args:
        op: ``placeholder``, ``get_attr``, ``call`` or ``output``.
        target: What is called, as printed: ``torch.ops.aten.mm.default``, ``relu``, ``operator.add``.
        detail: Dtype, shape, strides and device as printed: ``f32[8, 32][32, 1]cpu``; empty if it is not a tensor.
        inputs: Names of the nodes it uses, in order, each once.
        line: 1-based line in the stage's text.
        origin: The user's line it came from, where the text tells.
        code: That line as printed.
    """

    name: str
    op: str
    target: str
    detail: str
    inputs: tuple[str, ...]
    line: int
    origin: Origin | None = None
    code: str = ""


_DECLARED = re.compile(r"^        ([A-Za-z_]\w*): ")
_STATEMENT = re.compile(r'^        (?P<name>[A-Za-z_]\w*)(?:: "(?P<detail>[^"\\]*)")? = (?P<value>[^"\'#]+)$')
_CALLED = re.compile(
    r'        ([A-Za-z_]\w*)(?:: "([^"\\]*)")? = (torch(?:\.[A-Za-z_]\w*)+)'
    r"\(([^()\"'#]*(?:\([^()\"'#]*\)[^()\"'#]*)*)\)(?:;  (?:[A-Za-z_]\w* = )+None)?$"
)
_FREED = re.compile(r";  (?:[A-Za-z_]\w* = )+None$")
_CALL = re.compile(r"(?P<target>torch(?:\.[A-Za-z_]\w*)+)\((?P<arguments>[^()]*(?:\([^()]*\)[^()]*)*)\)$")
_METHOD = re.compile(r"(?P<of>[A-Za-z_]\w*)\.(?P<target>[A-Za-z_]\w*)\((?P<arguments>[^()]*(?:\([^()]*\)[^()]*)*)\)$")
_ITEM = re.compile(r"(?P<of>[A-Za-z_]\w*)\[\d+\]$")
_USED = re.compile(r"(?<![\w.])[A-Za-z_]\w*(?!\w|\s*=(?!=))")


def output_name(taken: Container[str]) -> str:
    """The name of what a graph returns, as FX numbers it where a variable of the user's is called ``output``."""
    names = itertools.chain(("output",), (f"output_{number}" for number in itertools.count(1)))
    return next(name for name in names if name not in taken)


class StatementReader:
    """Reads statements one after the other, in the order of the graph."""

    def __init__(self, lines: Sequence[str], offset: int) -> None:
        self._offset = offset
        self._lines = lines
        self._comments: dict[str, tuple[Origin | None, str] | None] = {}  # each layer of a model has the same
        self._told: tuple[int, tuple[Origin | None, str]] = 0, (None, "")  # of the line that was asked for last
        self._nodes: dict[str, GraphNode] = {}
        self._known: dict[str, None] = {}  # names of nodes
        self._aliases: dict[str, str] = {}
        self._changed: tuple[str, ast.expr, ast.expr] | None = None  # by the statement before: how, what, by what

    def beside(self) -> StatementReader:
        """A reader of another graph in the same text."""
        return StatementReader(self._lines, self._offset)

    def read(self, forward: ast.FunctionDef) -> list[GraphNode]:
        """All nodes of a ``forward`` that was parsed as a whole."""
        declared = [
            s.target.id for s in forward.body if isinstance(s, ast.AnnAssign) and isinstance(s.target, ast.Name)
        ]
        self._arguments(forward, declared, 0)
        for statement in forward.body:
            self._statement(statement)
        return list(self._nodes.values())

    def nodes(self) -> tuple[GraphNode, ...]:
        """The nodes that were read so far."""
        return tuple(self._nodes.values())

    def read_arguments(self, forward: ast.FunctionDef, body: list[str], before: int) -> None:
        """The arguments of a ``forward`` that was parsed without its body; ``before``: lines that are before it."""
        declared = [match[1] for line in body if (match := _DECLARED.match(line))]
        self._arguments(forward, declared, before)

    def know(self, names: Iterable[str], renamed: Iterable[tuple[str, str]]) -> None:
        """The names that statements may use, though their own are not read, and other names of some of these."""
        self._known = dict.fromkeys(names)
        self._aliases = {name: of for name, of in renamed if of in self._known and name not in self._known}

    def add_input(self, name: str, detail: str, line: int) -> None:
        """An input of the graph, declared in a line."""
        self._add(name, "placeholder", name, detail, [], line)

    def read_line(self, line: str, before: int) -> None:
        """A line of the body; ``before``: lines that are before it.  Raises SyntaxError for a part of a statement."""
        if " = torch." in line and (match := _CALLED.match(line)):  # most statements of most graphs
            name, detail, target, arguments = match.groups()
            self.call(name, target, detail or "", _USED.findall(arguments), before + 1)
            return
        stripped = line.lstrip()
        if not stripped or stripped.startswith("#"):
            return
        match = _STATEMENT.match(line)
        if match is None or not self.read_plain(
            match["name"], _FREED.sub("", match["value"]), match["detail"] or "", before + 1
        ):
            self.read_one(line, before)

    def read_one(self, text: str, before: int) -> None:
        """One statement that was parsed on its own; ``before``: lines that are before it."""
        for statement in ast.parse(textwrap.dedent(text) if "\n" in text else text.lstrip()).body:
            statement.lineno += before
            self._statement(statement)

    def read_plain(self, name: str, value: str, detail: str, line: int) -> bool:
        """A statement that calls a function or a method, takes an item or renames; false if it does none of these."""
        if call := _CALL.match(value):
            self.call(name, call["target"], detail, _USED.findall(call["arguments"]), line)
        elif not detail and self._aliases.get(value, value) in self._known:
            return self._rename(name, value)
        elif (call := _METHOD.match(value)) and call["of"] not in _NAMESPACES:
            self.call(name, call["target"], detail, [call["of"], *_USED.findall(call["arguments"])], line)
        elif item := _ITEM.match(value):
            self.call(name, "operator.getitem", detail, [item["of"]], line)
        else:
            return False
        return True

    def _rename(self, name: str, value: str) -> bool:
        if value in self._known:
            self._aliases[name] = value
        return value in self._known

    def call(self, name: str, target: str, detail: str, words: list[str], line: int) -> None:
        """A statement that calls something; ``words`` are the names among its arguments."""
        if self._aliases:
            words = [self._aliases.get(word, word) for word in words]
        inputs = [word for word in dict.fromkeys(words) if word in self._known]
        self._add(name, "call", target, detail, inputs, line)

    def _arguments(self, forward: ast.FunctionDef, declared: list[str], before: int) -> None:
        for argument in forward.args.args[1:]:
            if argument.annotation is None and any(name.startswith(f"{argument.arg}_") for name in declared):
                continue  # `primals` and `tangents` of a joint graph, whose parts are declared in its body
            line = argument.lineno + before
            self._add(argument.arg, "placeholder", argument.arg, _text(argument.annotation), [], line)

    def _statement(self, statement: ast.stmt) -> None:
        if isinstance(statement, ast.Return):
            name = output_name(self._nodes)
            self._add(name, "output", "output", "", self._inputs(statement.value), statement.lineno)
            return
        if isinstance(statement, ast.AugAssign):
            self._changed = (f"operator.i{_OPERATORS.get(type(statement.op), '?')}", statement.target, statement.value)
        elif isinstance(statement, ast.Assign) and isinstance(statement.targets[0], ast.Subscript):
            self._changed = ("operator.setitem", statement.targets[0], statement.value)
        elif (named := _named(statement)) is not None:
            self._name(*named, statement.lineno)

    def _name(self, name: str, detail: str, value: ast.expr | None, line: int) -> None:
        """A value that a statement gives a name."""
        changed, self._changed = self._changed, None
        if changed is not None and isinstance(value, ast.Name) and value.id == _first_name(changed[1]):
            # `a += b;  c = a` is the node c, in two statements; so is `a[0] = b;  c = a`
            target, *parts = changed
            inputs = list(dict.fromkeys(name for part in parts for name in self._inputs(part)))
            self._add(name, "call", target, detail, inputs, line)
        elif value is None:  # `primals_1: "f32[…]"` declares an input of a joint graph
            self._add(name, "placeholder", name, detail, [], line)
        elif isinstance(value, ast.Constant) and value.value is None:
            return
        elif isinstance(value, ast.Name) and value.id in self._known:
            self._aliases[name] = value.id  # `l_x_ = L_x_` only renames
        elif (attribute := _attribute(value)) is not None and attribute[1:]:
            self._add(name, "get_attr", ".".join(attribute[1:]), detail, [], line)
        else:
            self._add(name, "call", _target(value), detail, self._inputs(value), line)

    def _inputs(self, value: ast.expr | None) -> list[str]:
        names = [node for node in ast.walk(value) if isinstance(node, ast.Name)] if value else []
        names.sort(key=lambda node: (node.lineno, node.col_offset))
        found = [self._aliases.get(node.id, node.id) for node in names]
        return list(dict.fromkeys(name for name in found if name in self._known))

    def _add(self, name: str, op: str, target: str, detail: str, inputs: list[str], line: int) -> None:
        origin, code = self._origin_of(line + self._offset) if op in ("call", "get_attr") else (None, "")
        self._known[name] = None
        self._nodes[name] = GraphNode(name, op, target, detail, tuple(inputs), line + self._offset, origin, code)

    def _origin_of(self, line: int) -> tuple[Origin | None, str]:
        """What the last comment above a line tells.  Lines are asked for in their order, and often only a few."""
        begin, origin = self._told if line >= self._told[0] else (0, (None, ""))
        for above in range(line - 1, begin - 1, -1):
            comment = self._lines[above]
            if comment.lstrip().startswith("#"):
                if comment not in self._comments:
                    self._comments[comment] = _origin_in(comment)
                if (found := self._comments[comment]) is not None:
                    origin = found
                    break
        self._told = line, origin
        return origin


def _origin_in(line: str) -> tuple[Origin | None, str] | None:
    """The origin in a comment, or that it has none; None if the line is not such a comment."""
    if match := ORIGIN.match(line):
        return Origin(match["file"], int(match["line"])), match["code"]
    return (None, "") if tells_no_origin(line) else None


def tells_no_origin(line: str) -> bool:
    """Whether a line is the comment above nodes that have no line of their own, as a pass makes them.  Before torch 2.13
    it is empty if a node has a stack trace without a frame."""
    comment = line.strip()
    return comment == "#" or (comment.startswith("#") and comment.endswith("No stacktrace found for following nodes"))


def _named(statement: ast.stmt) -> tuple[str, str, ast.expr | None] | None:
    """The name that a statement gives a value, the value's type, and the value.

    None for ``a = b = None``, which frees memory, and ``x, y, = tree_flatten_spec(…)``, which unpacks the inputs.
    """
    if isinstance(statement, ast.Expr):
        return f"_{statement.lineno}", "", statement.value
    if isinstance(statement, ast.AnnAssign) and isinstance(statement.target, ast.Name):
        return statement.target.id, _text(statement.annotation), statement.value
    if isinstance(statement, ast.Assign) and len(statement.targets) == 1 and isinstance(statement.targets[0], ast.Name):
        return statement.targets[0].id, "", statement.value
    return None


def _first_name(changed: ast.expr) -> str:
    """``a`` of ``a`` and of ``a[0]``."""
    inner = changed.value if isinstance(changed, ast.Subscript) else changed
    return inner.id if isinstance(inner, ast.Name) else ""


def _attribute(value: ast.expr) -> list[str] | None:
    """The parts of ``self.layers.0.weight``, which is printed as ``getattr(self.layers, '0').weight`` or
    ``self.layers[0].weight``; None for anything else."""
    if isinstance(value, ast.Name):
        return ["self"] if value.id == "self" else None
    if isinstance(value, ast.Attribute):
        of, part = value.value, value.attr
    elif isinstance(value, ast.Call) and ast.unparse(value.func) == "getattr" and len(value.args) == 2:
        name = value.args[1]
        if not isinstance(name, ast.Constant):
            return None
        of, part = value.args[0], str(name.value)
    elif isinstance(value, ast.Subscript) and isinstance(value.slice, ast.Constant):
        of, part = value.value, str(value.slice.value)
    else:
        return None
    above = _attribute(of)
    return None if above is None else [*above, part]


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
