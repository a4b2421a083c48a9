"""From a kernel whose result is wrong to the node that made it wrong.

Only what a kernel writes to memory can be compared, and several nodes are fused into it.  So the part of the graph between
what the kernel read and the wrong result is compiled once more by itself, with every node in it as an output, and compared
in the same way; then the node at which that begins to differ alone; then, if nothing differs that way, without fusion.
"""

from __future__ import annotations

import sys
from collections.abc import Mapping, Sequence
from typing import Any

from irscope.values.check.comparing import MISSING, Compared, Comparison, CompiledValues, Draw
from irscope.values.check.measuring import Measure
from irscope.values.run.copies import clones
from irscope.values.run.interpreting import KeptGraph, Values, mutates
from irscope.values.run.running import CallMoment
from irscope.values.run.statistics import first_line
from irscope.values.run.subgraph_compile import Region, compiled_outputs, region_of
from irscope.vocabulary.records import dataclass
from irscope.vocabulary.units import count

_MOST_NODES = 400
LOWERING, FUSION, CODE = "lowering", "fusion", "code-generation"


@dataclass
class Location:
    """Where compiled code goes wrong.

    Args:
        node: Name of the node; where ``how`` is not a lowering the node whose value is the kernel's first wrong result.
        how: ``lowering``: the node's own lowering gives a wrong number; ``fusion``: its kernel is right when its nodes
            are not fused; ``code-generation``: its kernel is wrong as it is, each of its nodes is right.
        alone: It differs also when it is compiled alone.
        region: The smallest part of the graph that was seen to differ when it is compiled by itself; None if none was.
        measure: There.
        tried: Sentences: what was compiled to find that out, and what came of it.
        tensors: What compiled code, eager mode and float64 have at the node.
    """

    node: str
    how: str
    alone: bool
    region: Region | None
    measure: Measure | None
    tried: list[str]
    tensors: tuple[Any, Any, Any] | None = None


def locate(moment: CallMoment, kept: KeptGraph, found: CompiledValues, wrong: Compared, draw: Draw) -> Location:
    """Looks into the kernel that wrote the first wrong result."""
    tried: list[str] = []
    values = _anchored_values(moment, kept, found, wrong, draw)
    nodes = _between(wrong.node, found, values)
    whole = Location(wrong.node.name, CODE, False, None, wrong.local, tried, wrong.tensors)
    if any(mutates(node) for node in nodes):
        tried.append("A node there writes to its input in place, so it was not compiled by itself.")
        return whole
    if len(nodes) > _MOST_NODES:
        tried.append(f"{len(nodes)} nodes lie between what the kernel read and what is wrong: too many to look into.")
        return whole
    parts = _Parts(values, moment.compiled.config, draw, tried)
    if (lowering := _wrong_lowering(parts, nodes, wrong)) is not None:
        return lowering
    fused = parts.look(nodes, [wrong.node.name], f"{count(len(nodes), 'node')}, fused")
    if fused is None or fused[1] is None:
        return whole
    apart = parts.look(nodes, [wrong.node.name], f"{count(len(nodes), 'node')}, not fused", max_fusion_size=1)
    how = FUSION if apart is not None and apart[1] is None else CODE
    return Location(wrong.node.name, how, False, fused[0], fused[1].local, tried, fused[1].tensors)


@dataclass
class _Parts:
    """Compiles parts of a graph by themselves, and keeps what came of it."""

    values: Mapping[Any, Any]
    config: Mapping[str, Any]
    draw: Draw
    tried: list[str]

    def look(
        self, nodes: Sequence[Any], outputs: Sequence[str], what: str, **patches: Any
    ) -> tuple[Region, Compared | None] | None:
        """The part, and where it differs, if it does; None if it could not be compiled."""
        region = region_of(nodes, self.values.__getitem__, outputs)
        try:
            compared = differing(region, self.config, self.draw, **patches)
        except Exception as error:  # noqa: BLE001  Inductor may refuse a part that it takes as a whole
            self.tried.append(f"{what}: could not be compiled ({type(error).__name__}: {first_line(error)}).")
            return None
        self.tried.append(f"{what}: {'differs at ' + compared.node.name if compared else 'right'}.")
        return region, compared


def _wrong_lowering(parts: _Parts, nodes: Sequence[Any], wrong: Compared) -> Location | None:
    """The first node that is wrong where each one is written to memory, so that its own lowering is."""
    every = None
    suspect = nodes[0]
    if len(nodes) > 1:
        every = parts.look(nodes, _tensors(nodes), f"{count(len(nodes), 'node')}, each written to memory")
        if every is None or every[1] is None:
            return None
        name = every[1].node.name
        suspect = next(node for node in nodes if node.name == name)
    alone = parts.look([suspect], [suspect.name], f"{suspect.name} alone")
    if alone is not None and alone[1] is not None:
        return Location(suspect.name, LOWERING, True, alone[0], alone[1].local, parts.tried, alone[1].tensors)
    if every is None:
        return None
    smaller = _ancestors(suspect, nodes)
    fewer = parts.look(smaller, _tensors(smaller), f"{suspect.name} with its inputs ({count(len(smaller), 'node')})")
    region, compared = fewer if fewer is not None and fewer[1] is not None else every
    compared = compared or wrong
    return Location(suspect.name, LOWERING, False, region, compared.local, parts.tried, compared.tensors)


def differing(region: Region, config: Mapping[str, Any], draw: Draw | None, **patches: Any) -> Compared | None:
    """The first node of a region at which its compiled form differs, with the region compiled by itself."""
    outputs = compiled_outputs(region, config, **patches)
    found = CompiledValues(dict(zip(region.outputs, outputs, strict=True)))
    compared = Comparison(KeptGraph(region.module), found, draw, whole=False).run(
        lambda: clones(region.inputs), differs
    )
    return compared[-1] if compared and differs(compared[-1]) else None


def differs(compared: Compared) -> bool:
    """Whether compiled code is off at a node, given the same inputs; False if that was not measured."""
    return compared.local is not None and compared.local.differs


def _anchored_values(
    moment: CallMoment, kept: KeptGraph, found: CompiledValues, wrong: Compared, draw: Draw
) -> dict[Any, Any]:
    """The values that the kernel saw, as far as the wrong node: compiled where they are known, else eager from those."""
    values: dict[Any, Any] = {}
    runner, feed = Values(kept, None, draw), iter(moment.inputs())
    needed = set(_ancestors(wrong.node, list(kept.graph.nodes)))
    for node in kept.graph.nodes:
        if node.op == "placeholder":
            values[node] = next(feed)
        elif node is wrong.node:
            break
        elif node in needed:
            # A value that compiled code wrote stands for all that is above it.
            own = runner.node(node, values)
            compiled = found.values.get(node.name)
            fits = compiled is not None and getattr(own, "shape", None) == compiled.shape
            values[node] = compiled if fits else own
    return values


def _between(node: Any, found: CompiledValues, values: Mapping[Any, Any]) -> list[Any]:
    """The node and those above it up to what compiled code wrote or was given, in graph order."""
    chosen, open_ = {node}, [node]
    while open_:
        for used in open_.pop().all_input_nodes:
            stops = used.op in ("placeholder", "get_attr") or used.name in found.values or values.get(used) is MISSING
            if not stops and used not in chosen:
                chosen.add(used)
                open_.append(used)
    return [above for above in node.graph.nodes if above in chosen]


def _ancestors(node: Any, nodes: Sequence[Any]) -> list[Any]:
    inside, chosen, open_ = set(nodes), {node}, [node]
    while open_:
        for used in open_.pop().all_input_nodes:
            if used in inside and used not in chosen:
                chosen.add(used)
                open_.append(used)
    return [above for above in nodes if above in chosen]


def _tensors(nodes: Sequence[Any]) -> list[str]:
    """The names of those that give one tensor, which alone can be outputs of a compiled graph."""
    torch: Any = sys.modules["torch"]
    return [node.name for node in nodes if isinstance(node.meta.get("val"), torch.Tensor)]
