"""Measures on paths as one tree: a path is a chain of modules or of call frames, outermost first."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import NamedTuple

from irscope.vocabulary.records import dataclass
from irscope.vocabulary.units import duration, percent, size


class PathPart(NamedTuple):
    """A module, with its path from the one around it and its class; or a call frame, with its function."""

    name: str
    kind: str = ""
    file: str = ""
    line: int = 0


Path = tuple[PathPart, ...]


@dataclass(frozen=True)
class Measure:
    """What is measured; `unit` is ``seconds``, ``bytes`` or ``count``."""

    name: str
    unit: str


@dataclass(frozen=True)
class TreeNode:
    """A part of a path; the first node, which has no parent, is the whole.

    Args:
        kind: The class of a module, the function of a frame; empty if it is not known.
        file, line: Of a frame.
        parent: Index of the node around it, which is before it; -1 for the whole.
        exclusive, inclusive: One number per measure of the tree: without and with the nodes inside.
    """

    name: str
    kind: str
    file: str
    line: int
    parent: int
    exclusive: tuple[float, ...]
    inclusive: tuple[float, ...]

    @property
    def part(self) -> PathPart:
        """What it is, without numbers."""
        return PathPart(self.name, self.kind, self.file, self.line)


@dataclass(frozen=True)
class PathTree:
    """Numbers on paths: what a node has is its own part and all that the nodes inside it have."""

    measures: tuple[Measure, ...] = ()
    nodes: tuple[TreeNode, ...] = ()

    @property
    def children(self) -> dict[int, list[int]]:
        """Indices of the nodes inside each node, those with most of the first measure first."""
        found: dict[int, list[int]] = {}
        for index in sorted(range(len(self.nodes)), key=lambda index: -abs(self.nodes[index].inclusive[0])):
            found.setdefault(self.nodes[index].parent, []).append(index)
        return found


NO_TREE = PathTree()


def tree_of(whole: str, measures: Sequence[Measure], values: Mapping[Path, Sequence[float]]) -> PathTree:
    """The tree of numbers on paths.

    Args:
        whole: The name of the first node, which has what is on the empty path.
        values: One number per measure for each path.
    """
    nothing = (0.0,) * len(measures)
    paths: dict[Path, int] = {(): 0}
    for path in values:
        for depth in range(1, len(path) + 1):
            paths.setdefault(path[:depth], len(paths))
    rows = [
        (path[-1] if path else PathPart(whole), paths[path[:-1]] if path else -1, values.get(path, nothing))
        for path in paths
    ]
    return PathTree(tuple(measures), _summed(rows))


def largest(tree: PathTree, most: int) -> PathTree:
    """The tree with so many nodes, those with most of the first measure; what is around a node is always there."""
    order = sorted(range(len(tree.nodes)), key=lambda index: (-abs(tree.nodes[index].inclusive[0]), index))
    kept = {index: number for number, index in enumerate(sorted(order[:most]))} | {-1: -1}
    return PathTree(
        tree.measures,
        tuple(
            TreeNode(*node.part, kept[node.parent], node.exclusive, node.inclusive)
            for index, node in enumerate(tree.nodes)
            if index in kept
        ),
    )


def text_columns(tree: PathTree, share: str = "") -> list[str]:
    """The titles of the numbers of `text_rows`; `share` is that of the share, if there is one."""
    first, *others = (measure.name for measure in tree.measures)
    return [first, *([share, "own"] if share else []), *others]


def text_rows(tree: PathTree, most: int, whole: float | None = None) -> Iterator[list[str]]:
    """The nodes with most of the first measure as rows of a table: the name with its indent, and the numbers.

    Args:
        whole: Of what the first measure is a share.  With it, the share and the part's own number come after that
            measure.
    """
    shown = largest(tree, most)
    children = shown.children
    first, *others = tree.measures
    todo = [(0, 0)]
    while todo:
        index, depth = todo.pop()
        node = shown.nodes[index]
        kind = f" {node.kind}" if node.kind and node.kind != node.name else ""
        inclusive, *more = node.inclusive
        numbers = [number_text(inclusive, first), *map(number_text, more, others)]
        if whole is not None:
            numbers[1:1] = percent(inclusive, whole), number_text(node.exclusive[0], first)
        yield ["\u00a0\u00a0" * depth + node.name + kind, *numbers]
        todo += [(child, depth + 1) for child in reversed(children.get(index, ()))]


def number_text(value: float, measure: Measure) -> str:
    """A number with its unit; nothing is left empty."""
    if not value:
        return ""
    text = {"seconds": duration, "bytes": size}.get(measure.unit, "{:.0f}".format)(abs(value))
    return f"−{text}" if value < 0 else text


def difference(before: PathTree, after: PathTree) -> PathTree:
    """What changed of the first measure from one run to another, by path; a line of a file may have moved.

    The measures are the change, and the numbers before and after.
    """
    values: dict[Path, list[float]] = {}
    parts: dict[Path, Path] = {}
    for column, tree in ((1, before), (2, after)):
        paths: list[Path] = []
        for node in tree.nodes:
            paths.append((*paths[node.parent], node.part) if node.parent >= 0 else ())
            row = values.setdefault(tuple(part._replace(line=0) for part in paths[-1]), [0.0, 0.0, 0.0])
            parts[tuple(part._replace(line=0) for part in paths[-1])] = paths[-1]
            row[column] += node.exclusive[0]
            row[0] = row[2] - row[1]
    measure, *_ = (*after.measures, *before.measures)
    measures = tuple(Measure(name, measure.unit) for name in (f"change of {measure.name}", "before", "after"))
    return tree_of("two runs", measures, {parts[path]: row for path, row in values.items()})


def chained(tree: PathTree) -> PathTree:
    """The tree with nodes that only lead to one other as one with it: ``train.py:9 … net.py:121``."""
    inside = Counter(node.parent for node in tree.nodes)
    new: list[int] = []
    rows: list[tuple[PathPart, int, Sequence[float]]] = []
    names: list[str] = []
    for node in tree.nodes:
        around = tree.nodes[node.parent] if node.parent > 0 else None
        if around is not None and inside[node.parent] == 1 and not any(around.exclusive):
            row = new[node.parent]
            part = node.part._replace(name=f"{names[row]} … {node.name}")
            rows[row] = part, rows[row][1], node.exclusive
        else:
            row = len(rows)
            rows.append((node.part, new[node.parent] if new else -1, node.exclusive))
            names.append(node.name)
        new.append(row)
    return PathTree(tree.measures, _summed(rows))


def folded(tree: PathTree) -> PathTree:
    """The tree with layers that repeat as one node: ``layers.0–31 ×32``."""
    # Here: a run's own process makes trees of phases, and does without what this imports.
    from irscope.provenance.kernel_groups import repeated_title, without_numbers

    numbers: dict[tuple[int, str, str, str, int], int] = {}
    new: list[int] = []
    names: list[set[str]] = []
    rows: list[tuple[PathPart, int, Sequence[float]]] = []
    for node in tree.nodes:
        parent = -1 if node.parent < 0 else new[node.parent]
        pattern = node.name if node.file else without_numbers(node.name)
        index = numbers.setdefault((parent, pattern, node.kind, node.file, node.line), len(rows))
        new.append(index)
        if index == len(rows):
            names.append(set())
            rows.append((node.part, parent, node.exclusive))
        else:
            part, parent, exclusive = rows[index]
            rows[index] = part, parent, _added(exclusive, node.exclusive)
        names[index].add(node.name)
    titled = [
        (part._replace(name=repeated_title(mine)) if len(mine) > 1 else part, parent, exclusive)
        for (part, parent, exclusive), mine in zip(rows, names, strict=True)
    ]
    return PathTree(tree.measures, _summed(titled))


def _summed(rows: Sequence[tuple[PathPart, int, Sequence[float]]]) -> tuple[TreeNode, ...]:
    """Nodes from their own numbers; each comes after the one around it."""
    inclusive = [tuple(exclusive) for _, _, exclusive in rows]
    for index in range(len(rows) - 1, 0, -1):
        parent = rows[index][1]
        inclusive[parent] = _added(inclusive[parent], inclusive[index])
    return tuple(
        TreeNode(*part, parent, tuple(exclusive), inclusive[index])
        for index, (part, parent, exclusive) in enumerate(rows)
    )


def _added(some: Iterable[float], more: Iterable[float]) -> tuple[float, ...]:
    return tuple(a + b for a, b in zip(some, more, strict=True))
