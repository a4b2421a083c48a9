"""The stacks of a live TorchScript graph: its text names only the innermost line of each operation."""

from __future__ import annotations

import os
import re
from collections.abc import Iterator
from typing import Any

from irscope.pipeline_captures.torchscript.lines import Frames
from irscope.pipeline_captures.torchscript.naming import key_of
from irscope.pipeline_captures.torchscript.printing import Memory

_FRAME = re.compile(r"^(?P<file>.+)\((?P<line>\d+)\): (?P<function>.+)$", re.MULTILINE)
_OWN = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__)))) + os.sep


def nodes_of(graph: Any) -> Iterator[Any]:
    """The nodes of a graph, of its blocks, and of the graphs that its nodes have."""
    for node in graph.nodes():
        yield node
        for block in node.blocks():
            yield from nodes_of(block)
        if node.hasAttribute("Subgraph"):
            yield from nodes_of(node.g("Subgraph"))


def learn_frames(graph: Any, memory: Memory) -> None:
    """Remembers the stacks of a traced graph's nodes."""
    for node in nodes_of(graph):
        found = [(m["file"], int(m["line"]), m["function"]) for m in _FRAME.finditer(node.sourceRange())]
        if found:
            location = f"{found[0][0]}:{found[0][1]}:0"
            memory.frames.setdefault(key_of(node.kind(), location, node.scopeName()), program_frames(found))


def program_frames(frames: list[tuple[str, int, str]]) -> Frames:
    """The frames of the program alone: what is around it are irscope's own calls, and those of the script."""
    own = next((at for at, frame in enumerate(frames) if frame[0].startswith(_OWN)), len(frames))
    return tuple(frames[:own])
