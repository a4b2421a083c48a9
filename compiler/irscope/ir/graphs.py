"""The nodes of a graph stage, read from the text that PyTorch prints for it.

A printed FX graph is Python code: one statement a node, its shape in the annotation, and above it a comment that
names the user's line (``# File: model.py:12 in forward, code: …``).  So the same function reads the graphs of a live
run, of a stored one and of a trace that came from elsewhere, without any private hook.
"""

from __future__ import annotations

import ast
import dataclasses
import re
from collections.abc import Iterable, Iterator, Mapping

from irscope.ir.graph_statements import GraphNode as GraphNode
from irscope.ir.graph_statements import StatementReader
from irscope.vocabulary.records import dataclass

# PyTorch prints the name of the module's class, which for an inference graph is `<lambda>`: no name in Python.
_CLASS = re.compile(r"^(?P<head> *class )(?P<name>[^(:\n]+)", re.MULTILINE)


@dataclass(frozen=True)
class Graph:
    """A graph as its text shows it; the nodes are in the order of the text."""

    nodes: tuple[GraphNode, ...]


def edges_of(graph: Graph) -> list[tuple[int, int]]:
    """Pairs of numbers of nodes, what is used first; an input that is not a node is left out."""
    numbers = {node.name: number for number, node in enumerate(graph.nodes)}
    return [
        (numbers[name], number) for number, node in enumerate(graph.nodes) for name in node.inputs if name in numbers
    ]


def operation_name(node: GraphNode) -> str:
    """``torch.ops.aten.mm.default`` → ``aten.mm``; the kind of what makes no call."""
    return short_target(node.target) or node.name if node.op == "call" else node.op


def short_target(target: str) -> str:
    """``torch.ops.aten.mm.default`` → ``aten.mm``."""
    return target.removeprefix("torch.ops.").removesuffix(".default")


def parse_graph(text: str) -> Graph:
    """Reads a printed graph; of a text with submodules the outermost ``forward``.

    Raises ValueError for a text that is not a printed FX graph.
    """
    if (nodes := _read_by_lines(text)) is not None:
        return Graph(nodes)
    tree, offset = _tree_of(text)
    forward = next((found for cls in _classes_in(tree) if (found := _forward_of(cls)) is not None), None)
    if forward is None:
        raise ValueError("not a printed FX graph: no class with a forward method in it")
    return Graph(tuple(StatementReader(text.split("\n"), offset).read(forward)))


def inner_nodes(text: str) -> tuple[GraphNode, ...]:
    """The nodes of the graphs below the outermost, which its higher-order operators run: ``true_graph_0.sin``.

    Raises ValueError as `parse_graph` does.
    """
    if not _INNER.search(text):
        return ()
    tree, offset = _tree_of(text)
    reader = StatementReader(text.split("\n"), offset)
    return tuple(node for cls in _classes_in(tree) for below in _classes_in(cls) for node in _inner(below, "", reader))


def _inner(cls: ast.ClassDef, around: str, whole: StatementReader) -> Iterator[GraphNode]:
    path = f"{around}{cls.name}."
    if (forward := _forward_of(cls)) is not None:
        for node in whole.beside().read(forward):
            yield dataclasses.replace(node, name=path + node.name)
    for below in _classes_in(cls):
        yield from _inner(below, path, whole)


_INNER = re.compile(r"^    class ", re.MULTILINE)


def _tree_of(text: str) -> tuple[ast.Module, int]:
    """The syntax tree of a printed graph, and how many empty lines are before it.  Raises ValueError if it is not one."""
    try:
        tree = ast.parse(_CLASS.sub(_class_head, text.lstrip("\n")))
    except (SyntaxError, ValueError, RecursionError) as error:
        raise ValueError(f"not a printed FX graph: {error}") from error
    return tree, len(text) - len(text.lstrip("\n"))


def _class_head(match: re.Match[str]) -> str:
    return match[0] if match["name"].isidentifier() else match["head"] + "_"


def _classes_in(tree: ast.Module | ast.ClassDef) -> list[ast.ClassDef]:
    return [item for item in tree.body if isinstance(item, ast.ClassDef)]


def _forward_of(cls: ast.ClassDef) -> ast.FunctionDef | None:
    methods = (item for item in cls.body if isinstance(item, ast.FunctionDef) and item.name == "forward")
    return next(methods, None)


def read_nodes(
    text: str, wanted: Mapping[str, int], known: Iterable[str], most: int | None = None
) -> tuple[GraphNode, ...]:
    """Some nodes of a printed graph, in its order, without reading the others where that can be.

    Args:
        wanted: Name → 1-based line of each.  Names that the graph does not have are passed over.
        known: The names of all its nodes.
        most: At most this many of them, operations rather than inputs.
    """
    lines = text.split("\n")
    if most is not None and len(wanted) > most:
        inputs = {name for name, number in wanted.items() if _is_input(lines, number)}
        wanted = dict(sorted(wanted.items(), key=lambda one: (one[0] in inputs, one[1]))[:most])
    if (nodes := _read_some(lines, wanted, known)) is not None:
        return nodes
    try:
        return tuple(node for node in parse_graph(text).nodes if node.name in wanted)
    except ValueError:
        return ()


def _is_input(lines: list[str], number: int) -> bool:
    line = lines[number - 1] if 0 < number <= len(lines) else ""
    return line.startswith("    def forward(") or _INPUT.match(line) is not None


def _read_some(lines: list[str], wanted: Mapping[str, int], known: Iterable[str]) -> tuple[GraphNode, ...] | None:
    """None if one of them is not in its line alone."""
    reader = StatementReader(lines, 0)
    arguments: dict[str, str] = {}
    reader.know(known, _renamed_in(lines))
    try:
        for name, number in sorted(wanted.items(), key=lambda one: one[1]):
            line = lines[number - 1]
            if (declared := _INPUT.match(line)) and declared[1] == name:
                reader.add_input(name, declared[2], number)
            elif line.startswith("    def forward("):
                arguments = arguments or {found[1]: found[2] or "" for found in _ARGUMENT.finditer(line)}
                reader.add_input(name, arguments[name], number)
            else:
                reader.read_line(line, number - 1)
    except (SyntaxError, ValueError, RecursionError, LookupError, AttributeError):
        return None
    nodes = reader.nodes()
    return nodes if {node.name for node in nodes} == wanted.keys() else None


_ARGUMENT = re.compile(r'([A-Za-z_]\w*)(?:: "([^"]*)")?\s*[,)]')
_INPUT = re.compile(r'\s+([A-Za-z_]\w*): "([^"\\]*)"[,;]?\s*(?:#.*)?$')
_RENAMED = re.compile(r"        ([A-Za-z_]\w*) = ([A-Za-z_]\w*)(?:;|$)")


def _renamed_in(lines: list[str]) -> list[tuple[str, str]]:
    """``l_x_ = L_x_``: each name with what it stands for.  Dynamo's graphs have them before the first operation."""
    found = []
    at = next((number for number, line in enumerate(lines) if line.startswith("    def forward(")), len(lines))
    while at < len(lines) and not lines[at].rstrip().endswith("):"):
        at += 1
    for line in lines[at + 1 :]:
        if match := _RENAMED.match(line):
            found.append((match[1], match[2]))
        elif line.strip() and not line.lstrip().startswith("#"):
            break
    return found


def _read_by_lines(text: str) -> tuple[GraphNode, ...] | None:
    """What `parse_graph` reads, for a text whose statements each are in a line, several times as fast.

    Returns None for any other text.  A line that is not a plain call is parsed on its own.
    """
    lines = text.split("\n")
    begin = next((number for number, line in enumerate(lines) if line.startswith("    def forward(")), None)
    if begin is None or not lines[0] or _count_of_definitions(lines) != 2:
        return None
    reader = StatementReader(lines, 0)
    number = begin
    try:
        while not lines[number].rstrip().endswith("):"):
            number += 1
        head = ast.parse("class _:\n" + "\n".join([*lines[begin : number + 1], "        pass"])).body[0]
        reader.read_arguments(head.body[0], lines[number + 1 :], begin - 1)  # type: ignore[attr-defined]
        for at in range(number + 1, len(lines)):
            if lines[at].lstrip().startswith("return"):
                reader.read_one("\n".join(lines[at:]), at)
                break
            reader.read_line(lines[at], at)
    except (SyntaxError, ValueError, RecursionError, IndexError, AttributeError):
        return None
    return reader.nodes()


def _count_of_definitions(lines: list[str]) -> int:
    some = [line for line in lines if "class " in line or "def " in line]
    return sum(line.lstrip().startswith(("class ", "def ")) for line in some)
