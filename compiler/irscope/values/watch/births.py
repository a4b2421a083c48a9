"""Where in a graph the first NaN or infinity comes from, on the inputs of one call, node by node in eager mode."""

from __future__ import annotations

import math
import sys
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from irscope.values.run.interpreting import KeptGraph, Values, draws
from irscope.values.run.running import CallMoment
from irscope.values.run.subgraph_compile import Drawing
from irscope.vocabulary.records import dataclass


@dataclass(frozen=True)
class Extent:
    """What a value holds: whether NaN, and its least and greatest number (0 and 0 if it has none)."""

    has_nan: bool = False
    least: float = 0.0
    greatest: float = 0.0

    @property
    def is_infinite(self) -> bool:
        """Whether it has an infinity."""
        return math.isinf(self.least) or math.isinf(self.greatest)

    @property
    def magnitude(self) -> float:
        """The largest absolute value of its numbers."""
        return max(abs(self.least), abs(self.greatest))


@dataclass(frozen=True)
class Birth:
    """The node that made the first NaN or infinity from numbers.

    Args:
        node: A placeholder: the input had it already.
        became: What it made: ``NaN`` or ``infinity``.
        operand, extent: What it made that of: the operand that explains it best; None if it has none.
    """

    node: Any
    became: str
    operand: Any = None
    extent: Extent = Extent()


def birth_of(moment: CallMoment, compiled: Mapping[str, Any], graph: KeptGraph | None = None) -> Birth | None:
    """The birth of the first NaN or infinity in the outputs of the graph; None if eager mode makes finite numbers.

    Args:
        compiled: What compiled code computed, by node, of which random numbers are taken.
        graph: In place of the graph that was lowered, one with the same inputs.

    Raises:
        NodeFailed: A node cannot be run by itself.
    """
    kept: KeptGraph = graph or moment.compiled.graph
    extents: dict[Any, Extent] = {}

    def seen(node: Any, value: Any) -> None:
        extents[node] = _extent(value)

    given = {node.name: compiled[node.name] for node in kept.graph.nodes if node.name in compiled and draws(node)}
    Values(kept, given, Drawing(moment.compiled.config)).run(moment.inputs(), seen)
    results = next(node for node in kept.graph.nodes if node.op == "output").all_input_nodes
    # What is written into an input leaves the graph, too.
    results = [*results, *(node for node in kept.graph.nodes if str(node.target) == "aten.copy_.default")]
    if nan := [node for node in results if extents[node].has_nan]:
        return _first_nan(_above(nan), extents)
    if infinite := [node for node in results if extents[node].is_infinite]:
        return _first_infinite(_above(infinite), extents)
    return None


def _first_nan(nodes: Sequence[Any], extents: Mapping[Any, Extent]) -> Birth:
    born = next(n for n in nodes if extents[n].has_nan and not any(extents[each].has_nan for each in n.all_input_nodes))
    if (infinite := _first_infinite([n for n in _above([born]) if n is not born], extents)) is not None:
        return infinite
    return _birth(born, "NaN", extents)


def _first_infinite(nodes: Sequence[Any], extents: Mapping[Any, Extent]) -> Birth | None:
    """None if all infinities are written so in the program, as in a mask."""
    for node in nodes:
        if extents[node].is_infinite and not any(extents[each].is_infinite for each in node.all_input_nodes):
            if node.op in ("placeholder", "call_function") and not _names_infinity((node.args, node.kwargs)):
                return _birth(node, "infinity", extents)
    return None


def _birth(node: Any, became: str, extents: Mapping[Any, Extent]) -> Birth:
    operands = [each for each in node.all_input_nodes if each.op != "get_attr" or extents[each].magnitude]
    if not operands:
        return Birth(node, became)
    name = str(node.target)
    domain = list(_where_undefined(name, operands, extents))
    operand = domain[0] if domain else max(operands, key=lambda each: extents[each].magnitude)
    return Birth(node, became, operand, extents[operand])


def _where_undefined(name: str, operands: Sequence[Any], extents: Mapping[Any, Extent]) -> Iterable[Any]:
    """The operand that is outside of where the operation has a finite result, if that can be said of one alone."""
    if "div" in name and len(operands) > 1:
        yield from (each for each in operands[1:] if extents[each].least <= 0 <= extents[each].greatest)
    elif any(part in name for part in ("log", "sqrt", "reciprocal", "pow")):
        yield from (each for each in operands[:1] if extents[each].least <= 0)


def _above(results: Iterable[Any]) -> list[Any]:
    """The nodes that results come from, with these, in the order of the graph."""
    found: set[Any] = set()
    open_ = list(results)
    while open_:
        node = open_.pop()
        if node not in found:
            found.add(node)
            open_ += node.all_input_nodes
    return [node for node in next(iter(found)).graph.nodes if node in found]


def _names_infinity(argument: Any) -> bool:
    if isinstance(argument, Mapping):
        argument = list(argument.values())
    if isinstance(argument, list | tuple):
        return any(map(_names_infinity, argument))
    return isinstance(argument, float) and math.isinf(argument)


def _extent(value: Any) -> Extent:
    torch: Any = sys.modules["torch"]
    if isinstance(value, list | tuple):
        parts = [*map(_extent, value), Extent()]
        has_nan = any(part.has_nan for part in parts)
        return Extent(has_nan, min(part.least for part in parts), max(part.greatest for part in parts))
    if isinstance(value, float | int):
        return Extent(True) if math.isnan(value) else Extent(False, float(value), float(value))
    if not isinstance(value, torch.Tensor) or not value.numel() or value.dtype is torch.bool:
        return Extent()
    return _extent_of_tensor(torch, value.detach())


def _extent_of_tensor(torch: Any, tensor: Any) -> Extent:
    numbers = tensor.abs() if tensor.is_complex() else tensor
    if not numbers.is_floating_point() or numbers.element_size() == 1:
        numbers = numbers.to(torch.float64)
    nan = numbers.isnan()
    if nan.all():
        return Extent(True)
    least, greatest = numbers[~nan].aminmax()
    return Extent(bool(nan.any()), float(least), float(greatest))
