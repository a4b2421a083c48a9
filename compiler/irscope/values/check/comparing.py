"""Compiled code against its graph, node by node: in eager mode and in float64."""

from __future__ import annotations

import sys
from collections.abc import Callable, Mapping, Sequence
from dataclasses import field
from typing import Any

from irscope.values.check.measuring import Measure, farthest, measure
from irscope.values.run.compiled import CannotFollow, Snapshots, followed
from irscope.values.run.interpreting import KeptGraph, NodeFailed, Values, copies_to_input, last_uses
from irscope.values.run.running import CallMoment
from irscope.vocabulary.records import dataclass

MISSING = object()
"""The value of a node that could not be run."""


@dataclass
class CompiledValues:
    """What compiled code computed at one call.

    Args:
        values, kernel: By node of the post-grad graph: its value, and the kernel that wrote it.
        outputs, inputs: What it returned, and what its inputs held after it (of a graph that writes in place), in
            order.
        notes: Sentences: what could not be followed.
    """

    values: dict[str, Any] = field(default_factory=dict)
    kernel: dict[str, str] = field(default_factory=dict)
    outputs: Sequence[Any] = ()
    inputs: Sequence[Any] = ()
    notes: list[str] = field(default_factory=list)

    def of(self, functional: KeptGraph) -> CompiledValues:
        """The same for the graph before its operations were made to write in place: a value that both have has one name,
        and it says what its outputs are, and what is copied into its inputs at its end."""
        names = {node.name for node in functional.graph.nodes}
        values = {name: value for name, value in self.values.items() if name in names}
        held = dict(zip(functional.placeholders, self.inputs, strict=False))
        values |= {
            n.name: held[n.args[0].name]
            for n in functional.graph.nodes
            if copies_to_input(n) and n.args[0].name in held
        }
        torch: Any = sys.modules["torch"]
        for name, value in zip(output_names(functional), self.outputs, strict=False):
            if name and isinstance(value, torch.Tensor):
                values[name] = value
        return CompiledValues(values, self.kernel, self.outputs, self.inputs, self.notes)


COPIES = 2 * 1024**3
"""Bytes of the copies of buffers, at most."""
NOT_DETERMINISTIC = (
    "The compiled code is not deterministic: irscope ran it again on the same inputs, and the results were not those "
    "of the script's own call. A divergence of this graph may come from that."
)


def compiled_values(moment: CallMoment, outputs: Any, budget: int = COPIES) -> CompiledValues:
    """Runs the compiled code of a call once more, on copies of its inputs, and keeps what its buffers held.

    Args:
        outputs: What the script's own call returned; must come out again.
        budget: Bytes of the copies, at most.
    """
    torch: Any = sys.modules["torch"]
    compiled, found = moment.compiled, CompiledValues()
    snapshots = Snapshots(compiled, budget)
    again: Sequence[Any] | None = None
    call = getattr(compiled.module, "call", None) if compiled.graph.writes_in_place else None
    try:
        if compiled.module is None:
            raise CannotFollow("its output code was not seen")
        call = followed(compiled.module, snapshots)
    except CannotFollow as error:
        found.notes.append(f"Only the results of the compiled code are compared: {error}.")
    if call is not None:
        inputs = moment.inputs()
        again = call(list(inputs))
        found.inputs = inputs if compiled.graph.writes_in_place else ()
    found.values, found.kernel = snapshots.values, snapshots.kernel
    if snapshots.left_out:
        found.notes.append(f"{len(snapshots.left_out)} buffers were not copied: the limit for copies was reached.")
    given = list(outputs) if isinstance(outputs, (list, tuple)) and not moment.given else []
    if again is not None and given and not all(map(_same, given, again)):
        found.notes.append(NOT_DETERMINISTIC)
    found.outputs = again if again is not None else given
    for name, value in zip(output_names(compiled.graph), found.outputs, strict=False):
        if name and isinstance(value, torch.Tensor) and name not in found.values:
            found.values[name] = value.detach().clone()
    return found


def _same(one: Any, other: Any) -> bool:
    torch: Any = sys.modules["torch"]
    if not isinstance(one, torch.Tensor) or not isinstance(other, torch.Tensor):
        return bool(one == other) if not isinstance(other, torch.Tensor) else False
    if one.shape != other.shape or one.dtype != other.dtype:
        return False
    return bool(torch.equal(one, other)) or bool(torch.allclose(one, other, rtol=0, atol=0, equal_nan=True))


def output_names(kept: KeptGraph) -> list[str]:
    """The names of the nodes that a graph returns; empty for a number."""
    node = next(node for node in kept.graph.nodes if node.op == "output")
    found = node.args[0] if isinstance(node.args[0], (list, tuple)) else [node.args[0]]
    return [getattr(each, "name", "") for each in found]


@dataclass
class Compared:
    """One node at which compiled code could be compared.

    Args:
        local: On the inputs that the compiled kernel read; None if it could not be measured.
        to_eager, to_float64, eager_to_float64: Largest differences along the whole graph from its inputs: compiled and
            eager, compiled and float64, eager and float64; None if it could not be run.
        tensors: What compiled code, eager mode and float64 have, if they differ.
    """

    node: Any
    kernel: str
    local: Measure | None
    to_eager: float | None
    to_float64: float | None
    eager_to_float64: float | None
    tensors: tuple[Any, Any, Any] | None = None


Draw = Callable[[Any, Sequence[Any], Mapping[str, Any]], Any]
_LANES = ("eager", "wide", "noisy", "whole", "whole_wide")


class Comparison:
    """Runs a graph five times side by side, node by node.

    *eager*, *wide* (float64) and *noisy* (float64, disturbed) go on from what compiled code computed at each node where
    that is known; *whole* and *whole_wide* from the inputs of the graph alone.

    Args:
        whole: Whether these two run.
        to_eager: Measure the distance to eager mode, not to float64.
    """

    def __init__(
        self, kept: KeptGraph, found: CompiledValues, draw: Draw | None, whole: bool = True, to_eager: bool = False
    ) -> None:
        self._to_eager = to_eager
        self._torch: Any = sys.modules["torch"]
        self._kept, self._found = kept, found
        self._draw, self._drawn = draw, dict[str, Any]()
        self._generator: Any = None
        self._in_place, self._has_first = kept.writes_in_place, False
        once = self._draw_once if draw is not None else None
        self._lanes = {name: Values(kept, None, once, wide="wide" in name or name == "noisy") for name in _LANES}
        self._names = _LANES if whole else _LANES[:3]
        self.notes: list[str] = []

    def run(
        self, inputs: Callable[[], Sequence[Any]], until: Callable[[Compared], bool] | None = None
    ) -> list[Compared]:
        """Compares every node whose compiled value is known, in graph order; ``until`` says when it is enough.

        ``inputs`` gives fresh copies of the graph's inputs.
        """
        feeds = {name: iter(inputs()) for name in self._names}
        envs: dict[str, dict[Any, Any]] = {name: {} for name in self._names}
        uses, exact = last_uses(self._kept.graph), dict[Any, bool]()
        found: list[Compared] = []
        for node in self._kept.graph.nodes:
            if node.op == "output":
                break
            for name in self._names:
                envs[name][node] = self._value(name, node, envs[name], feeds[name])
            own = envs["eager"][node]
            exact[node] = not self._is_floating(own) and all(exact[used] for used in node.all_input_nodes)
            if node.op not in ("placeholder", "get_attr") and node.name in self._found.values:
                compared = self._compare(node, envs, exact[node])
                found.append(compared)
                self._anchor(node, envs)
                exact[node] = not self._is_floating(own)
                if until is not None and until(compared):
                    break
            for used in uses.get(node, ()):
                for env in envs.values():
                    env.pop(used, None)
        return found

    def _value(self, name: str, node: Any, env: Mapping[Any, Any], feed: Any) -> Any:
        lane = self._lanes[name]
        if node.op == "placeholder":
            value = next(feed)
            return self._noisy(node, lane.widened(value)) if name == "noisy" else (
                lane.widened(value) if name in ("wide", "whole_wide") else value)  # fmt: skip
        if any(env.get(used) is MISSING for used in node.all_input_nodes):
            return MISSING
        try:
            value = lane.node(node, env)
        except NodeFailed as failure:
            if name == "eager":
                self.notes.append(f"A node could not be run by itself: {failure}")
            return MISSING
        return self._noisy(node, value) if name == "noisy" else value

    def _draw_once(self, node: Any, args: Sequence[Any], kwargs: Mapping[str, Any]) -> Any:
        """All runs see the same random numbers: those of the compiled code."""
        if node.name not in self._drawn:
            value = self._found.values.get(node.name)
            assert self._draw is not None
            self._drawn[node.name] = value if value is not None else self._draw(node, args, kwargs)
        return self._drawn[node.name]

    def _compare(self, node: Any, envs: Mapping[str, Mapping[Any, Any]], exact: bool) -> Compared:
        compiled = self._found.values[node.name]
        eager, wide, noisy = (envs[name][node] for name in _LANES[:3])
        local = None
        if all(isinstance(each, self._torch.Tensor) for each in (eager, wide, noisy)):
            local = measure(
                compiled, eager, self._lanes["wide"].widened(eager) if self._to_eager else wide, noisy, exact
            )
        whole, whole_wide = (envs[name][node] if name in envs else MISSING for name in _LANES[3:])
        return Compared(
            node, self._found.kernel.get(node.name, ""), local,
            farthest(compiled, whole), farthest(compiled, whole_wide), farthest(whole, whole_wide),
            self._first(compiled, eager, wide) if local is not None and local.differs else None,
        )  # fmt: skip

    def _first(self, *tensors: Any) -> tuple[Any, Any, Any] | None:
        """The first that differ: one picture is enough, and they may be large."""
        if self._has_first:
            return None
        self._has_first = True
        one, two, three = (each.detach().clone() for each in tensors)
        return one, two, three

    def _anchor(self, node: Any, envs: Mapping[str, dict[Any, Any]]) -> None:
        """The local runs now have what compiled code has."""
        compiled, own = self._found.values[node.name], envs["eager"][node]
        if isinstance(own, self._torch.Tensor):
            if compiled.numel() != own.numel():
                return
            compiled = compiled.reshape(own.shape) if compiled.shape != own.shape else compiled
            if own.layout is self._torch.strided and compiled.stride() != own.stride():
                like = self._torch.empty_strided(own.shape, own.stride(), dtype=compiled.dtype, device=compiled.device)
                compiled = like.copy_(compiled) if not _overlaps(own) else compiled
        envs["eager"][node] = compiled.clone() if self._in_place and isinstance(own, self._torch.Tensor) else compiled
        envs["wide"][node] = self._lanes["wide"].widened(compiled)
        envs["noisy"][node] = self._noisy(node, self._lanes["noisy"].widened(compiled))

    def _noisy(self, node: Any, value: Any) -> Any:
        """A float64 value disturbed by one rounding of the dtype that the node has in the graph."""
        torch = self._torch
        if isinstance(value, (list, tuple)):
            return type(value)(self._noisy(node, item) for item in value) if type(value) in (list, tuple) else value
        if not isinstance(value, torch.Tensor) or value.dtype is not torch.float64 or node.op == "get_attr":
            return value
        wanted = node.meta.get("val")
        dtype = wanted.dtype if isinstance(wanted, torch.Tensor) and wanted.is_floating_point() else torch.float32
        if self._generator is None or self._generator.device != value.device:
            self._generator = torch.Generator(value.device).manual_seed(0)
        noise = torch.rand(value.shape, dtype=torch.float64, device=value.device, generator=self._generator)
        return value * (1 + (noise * 2 - 1) * torch.finfo(dtype).eps)

    def _is_floating(self, value: Any) -> bool:
        return not isinstance(value, self._torch.Tensor) or value.is_floating_point() or value.is_complex()


def _overlaps(tensor: Any) -> bool:
    return any(stride == 0 and size > 1 for size, stride in zip(tensor.shape, tensor.stride(), strict=True))
