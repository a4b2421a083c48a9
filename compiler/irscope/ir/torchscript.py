"""TorchScript's IR, read from the text that PyTorch prints for a graph.

Each statement is a line: ``%h : Float(3, 8) = aten::relu(%x), scope: __module # model.py:7:0``.  A statement may have
blocks below it (``prim::If``), and graphs of its own after the main graph (``with prim::DifferentiableGraph_0 = graph(…``).
"""

from __future__ import annotations

import functools
import re
from collections.abc import Iterator
from dataclasses import field

from irscope.vocabulary.dtypes import OF_CPP, SHORT
from irscope.vocabulary.records import dataclass


@dataclass(frozen=True)
class ScriptValue:
    """A value with its type as printed: ``Float(3, 8, strides=[8, 1], requires_grad=0, device=cpu)``, ``int[]``."""

    name: str
    type: str


@dataclass
class Block:
    """Statements with the values that they are given and what they result in."""

    parameters: tuple[ScriptValue, ...]
    body: list[Statement] = field(default_factory=list)
    results: tuple[str, ...] = ()


@dataclass
class Statement:
    """One operation.

    Args:
        kind: ``aten::relu``; of a call of a graph after the main graph ``prim::DifferentiableGraph_0``.
        attributes: What is in square brackets, as printed: ``value=1``.
        scope: The modules that it is in, outermost first: ``__module.net/__module.net.fc1``.  Empty if unknown.
        location: ``file:line:column``, of the innermost frame alone; empty if unknown.
    """

    outputs: tuple[ScriptValue, ...]
    kind: str
    attributes: str
    inputs: tuple[str, ...]
    scope: str
    location: str
    blocks: list[Block] = field(default_factory=list)


@dataclass(frozen=True)
class ScriptGraph:
    """A printed graph; ``below`` are the graphs that its statements call, by their names."""

    main: Block
    below: dict[str, Block]

    def statements(self) -> Iterator[Statement]:
        """All statements, those of blocks and of graphs below too."""
        for block in (self.main, *self.below.values()):
            yield from _all(block)


def _all(block: Block) -> Iterator[Statement]:
    for statement in block.body:
        yield statement
        for below in statement.blocks:
            yield from _all(below)


_STATEMENT = re.compile(
    r"\s*(?P<outputs>%.*?)?\s*= (?P<kind>\w+::\w+)(?P<attributes>\[.*\])?\((?P<inputs>[^()]*)\)"
    r"(?:, scope: (?P<scope>\S+))?(?: # (?P<location>.*))?$"
)
_GRAPH = re.compile(r"(?:with (?P<name>[\w:]+) = )?graph\((?P<parameters>.*)\):$")
_BLOCK = re.compile(r"\s*block\d+\((?P<parameters>.*)\):$")
_RESULTS = re.compile(r"\s*(?:return|->) \((?P<values>.*)\)$")
_VALUE = re.compile(r"%([\w.]+)")


def parse_script(text: str) -> ScriptGraph:
    """Reads a printed graph.  Raises ValueError for any other text."""
    main: Block | None = None
    below: dict[str, Block] = {}
    open_: list[Block] = []
    for line in _joined(text):
        if (match := _STATEMENT.match(line)) and open_:
            open_[-1].body.append(_statement(match))
        elif match := _GRAPH.match(line):
            open_ = [Block(_values(match["parameters"]))]
            if match["name"]:
                below[match["name"]] = open_[0]
            else:
                main = main or open_[0]
        elif (match := _BLOCK.match(line)) and open_ and open_[-1].body:
            block = Block(_values(match["parameters"]))
            open_[-1].body[-1].blocks.append(block)
            open_.append(block)
        elif (match := _RESULTS.match(line)) and open_:
            open_.pop().results = tuple(_VALUE.findall(match["values"]))
        elif line.strip():
            raise ValueError(f"not a printed TorchScript graph: {line.strip()[:80]}")
    if main is None or open_:
        raise ValueError("not a printed TorchScript graph, or only a part of one")
    return ScriptGraph(main, below)


def _statement(match: re.Match[str]) -> Statement:
    return Statement(
        _values(match["outputs"] or ""),
        match["kind"],
        (match["attributes"] or "")[1:-1],
        tuple(_VALUE.findall(match["inputs"])),
        match["scope"] or "",
        match["location"] or "",
    )


def _joined(text: str) -> Iterator[str]:
    """The lines, with the parameters of a graph in one."""
    head = ""
    for line in text.split("\n"):
        if head:
            head += " " + line.strip()
        elif line.startswith(("graph(", "with ")):
            head = line
        else:
            yield line
            continue
        if head.endswith("):"):
            yield head
            head = ""
    if head:
        raise ValueError("not a printed TorchScript graph: its parameters do not end")


def _values(text: str) -> tuple[ScriptValue, ...]:
    found = []
    for part in re.split(r",\s*(?=%[\w.]+ : )", text.strip()):
        name, colon, type_ = part.strip().partition(" : ")
        if colon:
            found.append(ScriptValue(name.lstrip("%"), type_.strip()))
    return tuple(found)


@dataclass(frozen=True)
class TensorType:
    """What a type says about a tensor; sizes and strides are None if they are unknown."""

    dtype: str
    sizes: tuple[int, ...] | None
    strides: tuple[int, ...] | None
    device: str


_TENSOR = re.compile(r"(?P<dtype>[A-Z][A-Za-z0-9]*)\((?P<inside>.*)\)$")


@functools.lru_cache(maxsize=4096)  # a graph is printed after each pass, and its types are the same
def tensor_type(type_: str) -> TensorType | None:
    """Reads ``Float(3, 8, strides=[8, 1], requires_grad=0, device=cpu)``; None for any other type."""
    match = _TENSOR.match(type_)
    if match is None or match["dtype"] not in OF_CPP:
        return None
    inside = match["inside"]
    strides = re.search(r"strides=\[([^\]]*)\]", inside)
    device = re.search(r"device=([\w:]+)", inside)
    sizes = re.sub(r"\w+=(?:\[[^\]]*\]|[\w:]+)", "", inside)
    return TensorType(
        OF_CPP[match["dtype"]],
        _numbers(sizes),
        _numbers(strides[1]) if strides else None,
        device[1] if device else "",
    )


@functools.lru_cache(maxsize=4096)
def printed_type(tensor: TensorType) -> str:
    """As FX prints it: ``f32[3, 8][8, 1]cpu``."""
    if tensor.sizes is None:
        return f"{SHORT[tensor.dtype]}[?]{tensor.device}"
    strides = "" if tensor.strides is None else str(list(tensor.strides))
    return f"{SHORT[tensor.dtype]}{list(tensor.sizes)}{strides}{tensor.device}"


def _numbers(text: str) -> tuple[int, ...] | None:
    words = [word.strip() for word in text.split(",") if word.strip()]
    return tuple(map(int, words)) if all(word.isdecimal() for word in words) else None
