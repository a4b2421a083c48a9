"""Which items of a stage came from which items of an earlier one.

What PyTorch says comes first: ``from_node`` of a graph's nodes, the origins of Inductor's scheduler nodes, a compiler's
line table.  Where it says nothing the link is derived: from names that a step keeps (a partition copies the nodes of
the joint graph), from the number of the forward operation that autograd gives the nodes of the backward, and last from
the user's line that both came from.
"""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Iterable, Mapping

from irscope.ir.nodes import Source
from irscope.pipelines.registry import stage_kind
from irscope.protocol import Kernel, Origin, StageRef
from irscope.provenance.chain import rank
from irscope.provenance.elements import Item, Items
from irscope.vocabulary.stages import Role

Links = dict[str, tuple[str, ...]]
"""Name in the later stage → names in the earlier one."""

_ATEN = 3
"""From the joint graph on, graphs are made of ATen operations; above it are the calls that the user wrote."""
_INPUT = re.compile(r"^(?:primals_(?P<one>\d+)|arg(?P<zero>\d+)_1)$")


def link(
    above: StageRef,
    parents: Items,
    below: StageRef,
    children: Items,
    kernels: Iterable[Kernel] = (),
) -> Links:
    """The links between two stages, `above` being the earlier one."""
    from_, to = stage_kind(above.name), stage_kind(below.name)
    if to.is_graph:
        if from_.role is Role.SOURCE:
            return {}  # by the user's lines: see `Provenance`
        return _graphs(above, parents, below, children)
    if to.role is Role.SCHEDULE:
        is_next = from_.role is Role.SCHEDULE and to.is_fused and not from_.is_fused
        return _named(parents, children) if is_next or from_.is_lowered else {}
    if to.role is Role.CODE:
        if from_.role is Role.SCHEDULE:
            return _shared(parents, children) if from_.is_fused else _named(parents, children)
        return _kernels_by_line(parents, children, kernels) if from_.is_lowered else {}
    if from_.role is Role.CODE:
        return _kernel_text(parents, below, children)
    if from_.role is Role.KERNEL or to.role in (Role.TEXT, Role.KERNEL):
        return _named(parents, children)
    return _shared(parents, children)


def _named(parents: Items, children: Items) -> Links:
    """By the names that a child tells."""
    found = {}
    for child in children.items:
        if names := tuple(name for name in child.ancestors if name in parents.by_name):
            found[child.element.name] = names
    return found


def _shared(parents: Items, children: Items) -> Links:
    """Links by what both came from."""
    made: dict[str, list[str]] = defaultdict(list)
    for parent in parents.items:
        for name in parent.ancestors:
            made[name].append(parent.element.name)
    return {
        child.element.name: tuple(dict.fromkeys(name for above in child.ancestors for name in made[above]))
        for child in children.items
        if any(above in made for above in child.ancestors)
    }


# --- graphs -----------------------------------------------------------------------------------------------------------


def _graphs(above: StageRef, parents: Items, below: StageRef, children: Items) -> Links:
    lowered = (rank(above) or 0) < _ATEN <= (rank(below) or 0)
    found: Links = {}
    for child in children.items:
        if names := _told(parents, child, lowered):
            found[child.element.name] = names
    if lowered:
        found.update(_inputs(parents, children))
        found.update(_by_sequence(children, found))
    else:
        _add_folded(parents, children, found)
    by_line = _ByLine(parents)
    for child in children.items:
        if child.element.name not in found and child.op == "call" and (alike := by_line.of(child)):
            found[child.element.name] = alike
    return found


def _told(parents: Items, child: Item, lowered: bool) -> tuple[str, ...]:
    """The nodes above that a node came from, by its name and by its sources."""
    if child.op == "output" and "output" in parents.by_name:
        return ("output",)
    names = dict.fromkeys([] if lowered else _same_name(parents, child))
    names.update(dict.fromkeys(nearest_sources(parents, child.facts.sources if child.facts else ())))
    if not names:  # of compiled autograd's graph, which AOTAutograd traces as code, nothing else tells
        names.update(dict.fromkeys(name for name in child.ancestors if name in parents.by_name))
    return tuple(names)


def guessed(parents: Items, children: Items, links: Mapping[str, tuple[str, ...]]) -> frozenset[str]:
    """The children in links between graphs whose origin only the user's line gives."""
    by_line = _ByLine(parents)
    return frozenset(
        child.element.name
        for child in children.items
        if child.op == "call"
        and links.get(child.element.name, ()) == by_line.of(child)
        and not nearest_sources(parents, child.facts.sources if child.facts else ())
        and child.element.name not in parents.by_name
    )


def _add_folded(parents: Items, children: Items, found: Links) -> None:
    """A batch norm that is gone, where the convolution that it followed is still there, is in the weights of this one,
    which does the work of both from then on."""
    kept = {name for names in found.values() for name in names}
    for parent in parents.items:
        if parent.op != "call" or "batch_norm" not in parent.target or parent.element.name in kept or not parent.inputs:
            continue
        before = parents.by_name.get(parent.inputs[0])
        now = children.by_name.get(parent.inputs[0])
        is_same = before is not None and now is not None and (before.op, before.target) == (now.op, now.target)
        if is_same and before is not None and _operation(before.target).startswith(("conv", "linear")):
            found[before.element.name] = (*found.get(before.element.name, ()), parent.element.name)


def nearest_sources(parents: Items, sources: Iterable[Source]) -> list[str]:
    """The nearest sources that are nodes of the graph above; a chain passes through the graphs between the two."""
    found = []
    for source in sources:
        if source.graph == parents.graph and source.name in parents.by_name:
            found.append(source.name)
        elif source.graph in parents.inner:
            found += parents.inner[source.graph]
        else:
            found += nearest_sources(parents, source.sources)
    return found


def _same_name(parents: Items, child: Item) -> list[str]:
    """Nodes that a step leaves alone keep their names; what is kept for the backward is an input of it."""
    same = parents.by_name.get(child.element.name)
    if same is None or not (child.op == "placeholder" or (same.op, same.target) == (child.op, child.target)):
        return []
    return [child.element.name]


def _inputs(parents: Items, children: Items) -> Links:
    """AOTAutograd numbers the inputs of Dynamo's graph, in their order, and the elements of one that is a list.  An
    exported program keeps their names."""
    inputs: list[str] = []
    for item in parents.items:
        if item.op == "placeholder":
            inputs += [item.element.name] * (
                len(item.facts.value.parts) if item.facts and item.facts.value.parts else 1
            )
    found: Links = {}
    for child in children.items:
        same = parents.by_name.get(child.element.name) if child.op == "placeholder" else None
        if same is not None and same.op == "placeholder":
            found[child.element.name] = (child.element.name,)
        match = _INPUT.match(child.element.name) if child.op == "placeholder" else None
        if match is not None:
            number = int(match["one"]) - 1 if match["one"] else int(match["zero"])
            if 0 <= number < len(inputs):
                found[child.element.name] = (inputs[number],)
    return found


def _by_sequence(children: Items, found: Mapping[str, tuple[str, ...]]) -> Links:
    """A node of the backward has the number of the forward operation whose derivative it computes."""
    numbers = {c.element.name: c.facts.seq_nr for c in children.items if c.op == "call" and c.facts is not None}
    forward: dict[int | None, dict[str, None]] = defaultdict(dict)
    for name, number in numbers.items():
        forward[number].update(dict.fromkeys(found.get(name, ())))
    return {
        name: tuple(forward[number])
        for name, number in numbers.items()
        if name not in found and number is not None and forward[number]
    }


class _ByLine:
    """Nodes that came from the same line of the user: of these the ones of the same module, and of these the ones of a
    like operation, if there are any.  A line that runs once for each layer has the nodes of all layers."""

    def __init__(self, parents: Items) -> None:
        self._at: dict[Origin, list[Item]] = defaultdict(list)
        self._in: dict[tuple[Origin, str], list[Item]] = defaultdict(list)
        self._found: dict[tuple[Origin, str, str], tuple[str, ...]] = {}
        for parent in parents.items:
            if parent.op == "call" and parent.frames:
                self._at[parent.frames[0]].append(parent)
                self._in[parent.frames[0], _module(parent)].append(parent)

    def of(self, child: Item) -> tuple[str, ...]:
        if not child.frames:
            return ()
        key = (child.frames[0], _module(child), _operation(child.target))
        if key not in self._found:
            found = self._in.get(key[:2]) or self._at.get(key[0], [])
            alike = [parent for parent in found if _operation(parent.target) == key[2]]
            self._found[key] = tuple(parent.element.name for parent in alike or found)
        return self._found[key]


def _module(item: Item) -> str:
    return item.facts.module[0] if item.facts is not None and item.facts.module is not None else ""


def _operation(target: str) -> str:
    """``torch.ops.aten.relu.default`` and ``torch.nn.functional.relu`` are ``relu``."""
    parts = target.split(".")
    if parts[:2] == ["torch", "ops"] and len(parts) > 3:
        return parts[3].rstrip("_")
    return parts[-1].rstrip("_")


# --- Inductor ---------------------------------------------------------------------------------------------------------


def _kernels_by_line(parents: Items, children: Items, kernels: Iterable[Kernel]) -> Links:
    """Without Inductor's own nodes: the nodes whose lines the kernel came from."""
    lines = {kernel.name: set(kernel.origins) for kernel in kernels}
    calls = [parent for parent in parents.items if parent.op == "call"]
    by_line: dict[Origin, list[int]] = {}
    for number, parent in enumerate(calls):
        for line in parent.frames:
            by_line.setdefault(line, []).append(number)
    found = {}
    for child in children.items:
        wanted = lines.get(child.target, set())
        if numbers := {number for line in wanted for number in by_line.get(line, ())}:
            found[child.element.name] = tuple(calls[number].element.name for number in sorted(numbers))
    return found


def _kernel_text(parents: Items, below: StageRef, children: Items) -> Links:
    """Every line of a kernel belongs to its definition and its calls in the output code."""
    name = below.id.rpartition("/")[2]
    names = tuple(parent.element.name for parent in parents.items if parent.target == name)
    return {child.element.name: names for child in children.items} if names else {}
