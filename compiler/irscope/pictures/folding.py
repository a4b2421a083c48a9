"""A graph folded by module into so many boxes as a picture can show.

A module is drawn as a frame around what is in it, or as one box. As in the graph panel, a chain of modules with nothing
else in them is one frame, and a single operation has no frame.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from dataclasses import field, replace

from irscope.ir.modules import Path
from irscope.pictures.graph import PictureGraph
from irscope.vocabulary.graph_looks import MANY_INPUTS, MOST_NODES
from irscope.vocabulary.records import dataclass

_INPUTS = "inputs"


@dataclass(frozen=True)
class Box:
    """What is drawn as one: an operation or an input (``nodes`` has one number), or a folded module."""

    nodes: tuple[int, ...]
    name: str = ""
    type: str = ""

    @property
    def is_folded(self) -> bool:
        """Whether it is a module, and not a node."""
        return self.name != ""


@dataclass
class Frame:
    """A module with what is in it, in graph order; the outermost one has no name."""

    name: str = ""
    type: str = ""
    parts: list[Frame | Box] = field(default_factory=list)

    def boxes(self) -> Iterator[Box]:
        """All that is drawn in it."""
        for part in self.parts:
            if isinstance(part, Box):
                yield part
            else:
                yield from part.boxes()


@dataclass(frozen=True)
class Picture:
    """A graph as it is drawn.

    Args:
        wires: By numbers of boxes in the order of `Frame.boxes`, with how many edges of the graph each represents.
        depth: How many modules deep the frames are; what is deeper is folded.
        left_out: Nodes that are not drawn; the picture has one box for all of them, the last number of ``wires``.
    """

    root: Frame
    wires: dict[tuple[int, int], int]
    depth: int
    nodes: int
    left_out: int


@dataclass
class _Module:
    """A module with its nodes."""

    name: str
    path: Path
    modules: dict[str, _Module] = field(default_factory=dict)
    nodes: list[int] = field(default_factory=list)

    def every_node(self) -> Iterator[int]:
        yield from self.nodes
        for module in self.modules.values():
            yield from module.every_node()


def fold(graph: PictureGraph, depth: int | None = None, most: int = MOST_NODES) -> Picture:
    """Folds a graph.

    Args:
        depth: This many modules are frames around each other.  None: as many as give no more than ``most`` boxes.
        most: Boxes that are drawn; if there are more, those that come first.
    """
    tree = _tree(graph)
    ranks = _ranks(graph)
    if depth is None:
        depth = 0
        root = _frame(graph, tree, 0, ranks)
        while True:  # one more as long as it changes something, and is not too much
            deeper = _frame(graph, tree, depth + 1, ranks)
            if sum(1 for _ in deeper.boxes()) > most or _same(deeper, root):
                break
            depth, root = depth + 1, deeper
    else:
        root = _frame(graph, tree, depth, ranks)
    boxes = sorted(root.boxes(), key=lambda box: _rank(box, ranks))
    kept = {box.nodes for box in boxes[:most]}
    root = _kept(root, kept)
    shown = list(root.boxes())
    left_out = len(graph.nodes) - sum(len(box.nodes) for box in shown)
    return Picture(root, _wires(graph, shown), depth, len(graph.nodes), left_out)


def _same(one: Frame, other: Frame) -> bool:
    return [box.nodes for box in one.boxes()] == [box.nodes for box in other.boxes()]


def _tree(graph: PictureGraph) -> _Module:
    root = _Module("", ())
    at_root = [node for node in graph.nodes if node.is_input and not node.home]
    for number, node in enumerate(graph.nodes):
        home = node.home
        if node.is_input and not home and len(at_root) > MANY_INPUTS:
            home = (_INPUTS,)
        at = root
        for depth, name in enumerate(home):
            at = at.modules.setdefault(name, _Module(name, home[: depth + 1]))
        at.nodes.append(number)
    return root


def _frame(graph: PictureGraph, module: _Module, depth: int, ranks: list[float]) -> Frame:
    parts: list[Frame | Box] = [Box((number,)) for number in module.nodes]
    for child in module.modules.values():
        inner = _unwrapped(child)
        name = inner.name
        type = graph.types.get(inner.path, "")
        if not inner.modules and len(inner.nodes) == 1:
            parts.append(Box(tuple(inner.nodes)))  # a frame around one node says nothing that the node does not
        elif depth == 0:
            parts.append(Box(tuple(inner.every_node()), name, type))
        else:
            parts.append(replace(_frame(graph, inner, depth - 1, ranks), name=name, type=type))
    return Frame(parts=sorted(parts, key=lambda part: _rank(part, ranks)))


def _unwrapped(module: _Module) -> _Module:
    """A chain of modules with nothing else in them as one: ``encoder.layer``."""
    while not module.nodes and len(module.modules) == 1:
        (only,) = module.modules.values()
        module = replace(only, name=f"{module.name}.{only.name}")
    return module


def _ranks(graph: PictureGraph) -> list[float]:
    """The place of each node in the order: an input is just before what uses it first."""
    ranks = [float(number) for number in range(len(graph.nodes))]
    users: dict[int, int] = {}
    for source, user in graph.edges:
        users[source] = min(user, users.get(source, user))
    for number, node in enumerate(graph.nodes):
        if node.is_input:
            ranks[number] = users.get(number, len(graph.nodes)) - 0.5
    return ranks


def _rank(part: Frame | Box, ranks: list[float]) -> float:
    nodes = part.nodes if isinstance(part, Box) else (number for box in part.boxes() for number in box.nodes)
    return min(ranks[number] for number in nodes)


def _kept(frame: Frame, kept: set[tuple[int, ...]]) -> Frame:
    parts: list[Frame | Box] = []
    for part in frame.parts:
        if isinstance(part, Box):
            parts += [part] if part.nodes in kept else []
        elif (inner := _kept(part, kept)).parts:
            parts.append(inner)
    return replace(frame, parts=parts)


def _wires(graph: PictureGraph, shown: list[Box]) -> dict[tuple[int, int], int]:
    elsewhere = len(shown)
    box_of = {number: at for at, box in enumerate(shown) for number in box.nodes}
    counts = Counter((box_of.get(source, elsewhere), box_of.get(user, elsewhere)) for source, user in graph.edges)
    return {wire: count for wire, count in sorted(counts.items()) if wire[0] != wire[1]}
