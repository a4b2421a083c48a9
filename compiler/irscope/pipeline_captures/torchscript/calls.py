"""The stacks of a scripted graph: its text names only the innermost line, which may be one of PyTorch's own modules.

Before inlining each call is an operation with its own line.  So the way from the program's graph over its calls to
an operation is the stack of that operation, and inlining keeps the order.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any

from irscope.internals.torchscript import function_graph, method_graph, submodule
from irscope.pipeline_captures.torchscript.frames import nodes_of
from irscope.pipeline_captures.torchscript.lines import Frames

_PLACE = re.compile(r'File "(?P<file>(?!code/)[^"]+)", line (?P<line>\d+)')
"""Below ``code/`` is what a file has that a module was saved to."""
_UNKNOWN = "a call"
"""The operations of a function that cannot be looked up: of a module that was loaded from a file."""
_DEEPEST = 60
"""Calls below each other; TorchScript has no recursion."""
_FAR = 200
"""Inlining drops few operations in a row."""


@dataclass(frozen=True)
class Leaf:
    """An operation that inlining keeps."""

    kind: str
    place: str
    frames: Frames


def leaves(graph: Any, module: Any, function: str) -> list[Leaf]:
    """The operations of a graph and of what it calls, in the order in which inlining puts them.

    Args:
        graph: The graph before inlining.
        module: The TorchScript module that its first input is; None for a function.
        function: The name of the function or method.
    """
    return list(_leaves(graph, module, function, (), _DEEPEST))


def _leaves(graph: Any, module: Any, function: str, above: Frames, deepest: int) -> Iterator[Leaf]:
    modules: dict[str, Any] = {}
    if module is not None:
        modules[next(iter(graph.inputs())).debugName()] = module
    for node in nodes_of(graph):
        kind, inputs = node.kind(), [value.debugName() for value in node.inputs()]
        place = _place(node)
        frames = _within(place, function, above)
        if kind == "prim::GetAttr" and inputs[0] in modules:
            modules |= _submodule(node, modules[inputs[0]])
        if deepest and kind == "prim::CallMethod" and inputs[0] in modules:
            name = node.s("name")
            below = method_graph(modules[inputs[0]], name)
            yield from _leaves(below, modules[inputs[0]], name, frames, deepest - 1)
        elif deepest and kind == "prim::CallFunction" and (found_function := function_graph(node)) is not None:
            yield from _leaves(found_function[1], None, found_function[0], frames, deepest - 1)
        elif kind == "prim::CallFunction":
            yield Leaf(_UNKNOWN, "", frames)
        elif kind != "prim::Constant":
            yield Leaf(kind, place, frames if place else ())


def _submodule(node: Any, module: Any) -> dict[str, Any]:
    """The module that an attribute of one is, by the name of its value; empty if it is not a module."""
    child = submodule(module, node.s("name"))
    return {} if child is None else {node.output().debugName(): child}


def _place(node: Any) -> str:
    """``File "model.py", line 7``; empty if it is not known."""
    found = _PLACE.search(str(node.sourceRange()))
    return found[0] if found else ""


def _within(place: str, function: str, call: Frames) -> Frames:
    found = _PLACE.search(place)
    return ((found["file"], int(found["line"]), function), *call) if found else call


def aligned(inlined: Iterable[Any], found: Sequence[Leaf]) -> Iterator[Frames]:
    """For each node of an inlined graph its stack; empty if it is not known."""
    at = 0
    for node in inlined:
        kind, place = node.kind(), _place(node)
        near = range(at, min(len(found), at + _FAR)) if kind != "prim::Constant" else ()
        match = next((one for one in near if (found[one].kind, found[one].place) == (kind, place)), None)
        if match is None:
            is_called = kind != "prim::Constant" and at < len(found) and found[at].kind == _UNKNOWN
            yield _within(place, "forward", found[at].frames) if is_called else ()
        else:
            at = match + 1
            yield found[match].frames
