"""How many bytes a node of Inductor's schedule reads and writes."""

from __future__ import annotations

import math
import sys
from collections.abc import Mapping
from typing import Any

from irscope.internals.scheduler_hooks import lowered_graph


def bytes_accessed(node: Any, reads: bool) -> dict[str, int]:
    """Bytes of each buffer that a node reads, or else writes: what its loops address, the whole buffer at most.

    ``get_read_write_buffer_accesses`` of torch 2.9 to 2.15 counts a buffer of a fused node as a whole.  A kernel that
    takes rows of a table, or a slice, touches less.  Which rows it takes depends on values; each counts as another
    one.
    """
    found: dict[str, int] = {}
    for name, size in {**_by_inductor(node, reads), **(_constants(node) if reads else {})}.items():
        elements = _addressed(node, name, reads)
        if reads and _is_read_by_template(node, name):
            whole = _hint(lowered_graph().get_numel(name)) * _item_size(name)
            size, elements = size if whole == math.inf else whole, math.inf
        found[name] = int(size if elements == math.inf else min(size, elements * _item_size(name)))
    return found


def _by_inductor(node: Any, reads: bool) -> Mapping[str, Any]:
    """None of a node that takes a process group or a mesh."""
    try:
        found: Mapping[str, Any] = node.get_read_write_buffer_accesses(include_reads=reads, include_writes=not reads)
        return found
    except AttributeError:  # torch 2.13 asks these for their layout
        return {}


def _constants(node: Any) -> dict[str, int]:
    """Bytes of each constant of the graph that a node reads, as a whole.

    ``get_read_write_buffer_accesses`` of torch 2.9 to 2.15 leaves constants out: weights, if they are frozen or the
    code is compiled ahead of time.
    """
    constants = lowered_graph().constants
    names = {str(read.name) for read in node.read_writes.reads if read.name in constants}
    return {name: int(constants[name].element_size() * constants[name].numel()) for name in sorted(names)}


def _addressed(node: Any, name: str, reads: bool) -> float:
    """Elements of a buffer that the loops of a node address, at most; infinite where the whole buffer is handed over."""
    found: dict[object, float] = {}
    for part in node.get_nodes():
        for dep in part.read_writes.reads if reads else part.read_writes.writes:
            if str(dep.name) != name or type(dep).__name__ == "WeakDep":  # that one is about order only
                continue
            if type(dep).__name__ != "MemoryDep":
                return math.inf
            # Loops that read the same rows, as the passes of a softmax do, need them from memory once.
            is_indirect = dep.is_indirect()
            indexed_by = _integers_read(part) if is_indirect else frozenset()
            found[dep.index, tuple(dep.size), indexed_by] = _runs(part) if is_indirect else _hint(dep.get_numel())
    return sum(found.values()) if found else math.inf


def _is_read_by_template(node: Any, name: str) -> bool:
    """Whether a template reads a buffer: to its own dependencies it reads all operands in the order of its result."""
    templates: Any = sys.modules["torch._inductor.ir"].TemplateBuffer
    return any(
        isinstance(part.node, templates) and any(str(dep.name) == name for dep in part.read_writes.reads)
        for part in node.get_nodes()
    )


def _runs(part: Any) -> float:
    """How often the body of a part's loops is run."""
    return math.prod(_hint(size) for group in part.get_ranges() for size in group)


def _integers_read(part: Any) -> frozenset[object]:
    """What indices can come from: the integers that a part reads."""
    torch: Any = sys.modules["torch"]
    graph = lowered_graph()
    reads = [dep for dep in part.read_writes.reads if type(dep).__name__ == "MemoryDep"]
    return frozenset(
        (str(dep.name), dep.index) for dep in reads if graph.get_dtype(dep.name) in (torch.int64, torch.int32)
    )


def _hint(size: Any) -> float:
    """A size with hints in place of symbols; infinite where one has none."""
    sizes = lowered_graph().sizevars
    hint = getattr(sizes, "optimization_hint", None) or sizes.size_hint  # its name in torch 2.9
    return int(hint(size, fallback=0)) or math.inf


def _item_size(name: str) -> int:
    """0 of what has several results, as a Helion kernel: each is a separate buffer."""
    try:
        return int(lowered_graph().get_dtype(name).itemsize)
    except NotImplementedError:
        return 0
