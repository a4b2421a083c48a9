"""The user's lines of a backward that TorchScript derives from a part of a graph.

The executor walks over the operations of the part from the last to the first and puts the gradient of each one that needs
one into a separate block, ``prim::GradOf[name="aten::relu"]``.  So the operation that a block belongs to follows from
the order, and what is between blocks adds the gradients of the block before it.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass

from irscope.ir.torchscript import Block, ScriptGraph, Statement, parse_script
from irscope.pipeline_captures.torchscript.executor import Logged
from irscope.pipeline_captures.torchscript.lines import Frames
from irscope.pipeline_captures.torchscript.naming import PROFILES, identity
from irscope.pipeline_captures.torchscript.printing import Memory, PrintedGraph, printed

_GRADIENT = "prim::GradOf"
_PART = "prim::DifferentiableGraph"


@dataclass(frozen=True)
class Derived:
    """A part of a graph that was differentiated.

    Args:
        backward, forward: Both halves of it, as logged.
        whole: The whole graph before, as logged.
        printed: The same, as printed.
    """

    backward: Logged
    forward: Logged
    whole: Logged
    printed: PrintedGraph


def learn_gradient(part: Derived, memory: Memory) -> PrintedGraph:
    """Prints the backward of a part, with the lines of the forward.

    Args:
        memory: It learns the stacks of the backward's nodes.
    """
    graph = parse_script(part.backward.text)
    forward = list(_forward(part))
    stacks: dict[int, Frames] = {}
    at = len(forward)
    frames: Frames = ()
    for statement in graph.main.body:
        if statement.kind == _GRADIENT:
            name = _name_of(statement)
            found = next((i for i in range(at - 1, -1, -1) if forward[i][0] == name), None)
            if found is not None:
                at = found
                frames = frames if name in PROFILES else forward[found][1]  # between its value and the next operation
        for one in _with_blocks(statement):
            stacks[id(one)] = frames
    first = printed(graph, memory)
    for statement, named in zip(_named(graph), first.operations, strict=True):
        if frames := stacks.get(id(statement), ()):
            memory.stacks.update(dict.fromkeys(named.names, frames))
    return printed(graph, memory)


def _named(graph: ScriptGraph) -> list[Statement]:
    """The statements that `PrintedGraph.operations` has, in its order."""
    return [one for one in graph.statements() if one.kind not in PROFILES]


def _with_blocks(statement: Statement) -> Iterator[Statement]:
    yield statement
    for block in statement.blocks:
        for below in block.body:
            yield from _with_blocks(below)


def _name_of(gradient: Statement) -> str:
    """The kind of the operation that it is the gradient of."""
    return gradient.attributes.partition("=")[2].strip('"')


def _forward(part: Derived) -> Iterator[tuple[str, Frames]]:
    """The operations of a part in their order: their kinds and stacks."""
    graph = parse_script(part.whole.text)
    names = {id(one): named.names for one, named in zip(_named(graph), part.printed.operations, strict=True)}
    after = {identity(one) for one in parse_script(part.forward.text).statements()}
    blocks = [block for name, block in graph.below.items() if name.startswith(_PART)]
    derived = Counter(_name_of(one) for one in parse_script(part.backward.text).main.body if one.kind == _GRADIENT)

    def likeness(block: Block) -> tuple[bool, int]:
        """Parts may have inputs of the same names.  Operations without a formula are the same before and after."""
        same = sum(statement.kind not in PROFILES and identity(statement) in after for statement in block.body)
        return derived <= Counter(statement.kind for statement in block.body), same

    alike = [block for block in blocks if part.forward.takes(tuple(value.name for value in block.parameters))]
    block = max(alike, key=likeness, default=None)
    for statement in block.body if block else ():
        printed_as = names.get(id(statement), ())
        yield statement.kind, part.printed.frames.get(printed_as[0], ()) if printed_as else ()
