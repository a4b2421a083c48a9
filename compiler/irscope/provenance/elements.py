"""What there is in a stage that can be followed: nodes, instructions, scheduler nodes, kernels, lines.

Everything is read from the stage's text and data, so a stored run is followed as a live one is, without torch.
"""

from __future__ import annotations

import functools
from collections.abc import Iterator
from dataclasses import field
from typing import Any, NamedTuple

from irscope.ir.cpp_wrapper import calls_in
from irscope.ir.graphs import Graph, GraphNode, parse_graph
from irscope.ir.kernels import kernels_in
from irscope.ir.nodes import NodeFacts, facts_of
from irscope.ir.own_kernels import places_of
from irscope.pipelines.registry import stage_kind
from irscope.protocol import Origin, StageRef
from irscope.vocabulary.patterns import pattern
from irscope.vocabulary.records import dataclass
from irscope.vocabulary.stages import Role

SOURCE = "source"
"""In place of a stage's id: the user's own text."""


class Element(NamedTuple):  # a tuple, as are items, because a large run has hundreds of thousands
    """Something in a stage that was made from something in an earlier one.

    Args:
        stage: Id of the stage, or `SOURCE`.
        name: Unique in the stage: of a node, a kernel, …; of a line its number.
        line, end_line: 1-based lines in the stage's text, both inclusive.
        file: File of a line of the user's text.
    """

    stage: str
    name: str
    line: int
    end_line: int
    file: str = ""


class Item(NamedTuple):
    """An element with what ties it to others.

    Args:
        frames: Places in Python files that it came from, the innermost first.
        facts: What is known about a node beside its text.
        ancestors: For a node: names that the generated code gave to what it was traced from, where a graph was run as
            Python code. For anything else: names in the stage above from which it came.
        op, inputs: As in `graphs.GraphNode`; empty if it is not a node.
        target: Likewise; of an instruction its name, of a scheduler node without a kernel its kind, of a kernel or its
            call the kernel.
        number: What an operation of arithmetic is given beside its one input, as printed.
    """

    element: Element
    frames: tuple[Origin, ...] = ()
    facts: NodeFacts | None = None
    ancestors: tuple[str, ...] = ()
    op: str = ""
    target: str = ""
    inputs: tuple[str, ...] = ()
    number: str = ""

    @property
    def writes_in_place(self) -> bool:
        """Whether it is a node that changes its first input: ``add_``, ``torch.ops.aten.copy_.default``, ``setitem``."""
        if self.op != "call":
            return False
        parts = self.target.split(".")
        name = parts[3] if parts[:2] == ["torch", "ops"] and len(parts) > 3 else parts[-1]
        return (name.endswith("_") and not name.endswith("__")) or name == "setitem"


@dataclass(frozen=True)
class Items:
    """All items of a stage, in the order of its text, and by name; ``graph`` is the number of its graph, ``inner`` has
    those of the graphs that nodes of it run (`torch.autograd.Function`, a checkpoint), with these nodes."""

    items: tuple[Item, ...] = ()
    by_name: dict[str, Item] = field(default_factory=dict)
    graph: int | None = None
    inner: dict[int, tuple[str, ...]] = field(default_factory=dict)

    @staticmethod
    def of(items: list[Item], graph: int | None = None, inner: dict[int, tuple[str, ...]] | None = None) -> Items:
        """The items with their index by name; of two with one name the last."""
        return Items(tuple(items), {item.element.name: item for item in items}, graph, inner or {})

    @functools.cached_property
    def needed(self) -> frozenset[str]:
        """The names of the nodes that what a graph returns, or writes into what it was given, depends on."""
        found: set[str] = set()
        todo = [item.element.name for item in self.items if item.op == "output" or item.writes_in_place]
        while todo:
            name = todo.pop()
            if name not in found and name in self.by_name:
                found.add(name)
                todo += self.by_name[name].inputs
        return frozenset(found)

    def at(self, line: int) -> Item | None:
        """The smallest item that holds a line."""
        holding = [item for item in self.items if item.element.line <= line <= item.element.end_line]
        return min(holding, key=lambda item: item.element.end_line - item.element.line, default=None)


def items_of(stage: StageRef, text: str, data: Any) -> Items:
    """The items of a stage; none for one that is not part of the way from source to machine code."""
    kind = stage_kind(stage.name)
    if kind.is_graph:
        return _nodes(stage.id, text, data)
    if kind.role is Role.SOURCE:
        return Items.of(list(_instructions(stage.id, text)))
    if kind.role is Role.SCHEDULE:
        return Items.of(list(_scheduler_nodes(stage, text, data)))
    if kind.role is Role.CODE:
        read = _cpp_calls if stage.language == "cpp" else _kernels
        return Items.of(list(read(stage.id, text, data)))
    if kind.role in (Role.KERNEL, Role.LOWERED, Role.TEXT):
        return _lines(stage.id, text, data)
    if kind.role is Role.TUNING:
        return Items.of(list(_tuned_operators(stage.id, text, data)))
    return Items()


def _tuned_operators(stage: str, text: str, data: Any) -> Iterator[Item]:
    """The operators of a stage of autotuning, each with all of its choices; between two is an empty line."""
    operators = data.get("operators") if isinstance(data, dict) else None
    line = 1
    for number, block in enumerate(text.rstrip("\n").split("\n\n")):
        last = line + block.count("\n")
        known = operators[number] if isinstance(operators, list) and number < len(operators) else None
        if isinstance(known, dict) and isinstance(known.get("line"), int) and known.get("file"):
            place = Origin(str(known["file"]), known["line"])
            yield Item(Element(stage, f"{known.get('operator')}:{number}", line, last), (place,))
        line = last + 2


def _lines(stage: str, text: str, data: Any) -> Items:
    """The lines of a kernel, or of a stage below it with the kernel's lines that each came from (ir/line_tables.py)."""
    above: dict[int, list[str]] = {}
    for line, source in (data.get("lines") if isinstance(data, dict) else None) or ():
        above.setdefault(line, []).append(str(source))
    numbers = range(1, len(text.rstrip("\n").split("\n")) + 1)
    places = _places(data, len(numbers))
    return Items.of(
        [
            Item(Element(stage, str(n), n, n), (places[n],) if n in places else (), ancestors=tuple(above.get(n, ())))
            for n in numbers
        ]
    )


def _places(data: Any, count: int) -> dict[int, Origin]:
    """The lines of the file that a hand-written kernel's text comes from."""
    if isinstance(data, dict) and "cache_hit" in data:  # and launched by himself
        return {i: Origin(str(data["file"]), int(data["first_line"]) + i - 1) for i in range(1, count + 1)}
    return places_of(data)


_ARITHMETIC = pattern(r"(?:^|\.)(?:add|sub|mul|div|pow)(?:\.|$)")
_NUMBER = pattern(r"\(\w+, (-?\d+(?:\.\d*)?(?:e[-+]?\d+)?)\)")


def _number(node: GraphNode, rows: list[str]) -> str:
    if node.op != "call" or len(node.inputs) != 1 or not _ARITHMETIC.search(node.target):
        return ""
    found = _NUMBER.search(rows[node.line - 1]) if node.line <= len(rows) else None
    return found[1] if found else ""


_GENERATED = pattern(r"File: (<eval_with_key>[\w.]*):(\d+) in \w+, code: (\w+) = ")


def _generated(text: str) -> dict[Origin, str]:
    """Line of generated code that nodes of a graph were traced from → what that line computes."""
    if "File: <eval_with_key>" not in text:
        return {}
    return {Origin(file, int(line)): name for file, line, name in _GENERATED.findall(text)}


@functools.lru_cache(1)
def _parsed(text: str) -> Graph:
    """Often no pass changes Dynamo's graph, and the next one has the same text."""
    return parse_graph(text)


def _nodes(stage: str, text: str, data: Any) -> Items:
    try:
        graph = _parsed(text)
    except ValueError:
        return Items()
    whole = data.get("new", data) if isinstance(data, dict) else {}
    known: dict[str, NodeFacts] = {}
    for facts in facts_of(whole):
        known[facts.name] = facts
        if facts.op == "placeholder":
            known.setdefault(facts.target, facts)  # printed by what it is called in the signature: `L_x_` for `l_x_`
    found = []
    generated, rows = _generated(text), text.split("\n")
    ancestors = whole.get("ancestors") or {}
    frames_of: dict[int, tuple[Origin, ...]] = {}  # many nodes share a stack
    for node in graph.nodes:
        mine = known.get(node.name)
        frames: tuple[Origin, ...] = ()
        if mine is not None and mine.stack:
            key = id(mine.stack)
            if key not in frames_of:
                frames_of[key] = tuple(Origin(frame.file, frame.line) for frame in reversed(mine.stack))
            frames = frames_of[key]
        found.append(
            Item(
                Element(stage, node.name, node.line, node.line),
                frames or ((node.origin,) if node.origin is not None else ()),
                mine,
                tuple(dict.fromkeys(generated[frame] for frame in frames if frame in generated))
                if generated
                else tuple(map(str, ancestors.get(node.name, ()))),
                node.op,
                node.target,
                node.inputs,
                _number(node, rows),
            )
        )
    return Items.of(found, whole.get("graph"), _inner(whole, found))


def _inner(whole: Any, items: list[Item]) -> dict[int, tuple[str, ...]]:
    found = {}
    for name, below in (whole.get("subgraphs") or {}).items():
        attributes = {
            one.element.name for one in items if one.op == "get_attr" and one.target.removeprefix("self.") == name
        }
        run_by = tuple(one.element.name for one in items if not attributes.isdisjoint(one.inputs))
        found.update(dict.fromkeys(_numbers(below), run_by))
    return found


def _numbers(graph: Any) -> Iterator[int]:
    yield graph["graph"]
    for below in (graph.get("subgraphs") or {}).values():
        yield from _numbers(below)


_INSTRUCTION = pattern(r"^\s*(?P<numbers>(?:\d+\s+){0,2}|--\s+(?:\d+\s+)?)(?P<name>[A-Z][A-Z_0-9]+)\b")
_MARKS = pattern(r"-->|>>|\bL\d+:")


def _instructions(stage: str, text: str) -> Iterator[Item]:
    """Instructions with the line that each belongs to; the file is not in the text.

    ``dis`` prints the line before the first instruction that belongs to it, and until Python 3.12 the offset of each.
    """
    found = []
    for number, printed in enumerate(text.split("\n"), 1):
        if match := _INSTRUCTION.match(_MARKS.sub("  ", printed)):
            found.append((number, [int(n) for n in match["numbers"].split() if n.isdigit()], match["name"]))
    offsets = any(len(numbers) == 2 for _, numbers, _ in found)
    line = 0
    for number, numbers, name in found:
        if len(numbers) == 2 or (numbers and not offsets):
            line = numbers[0]
        offset = str(numbers[-1]) if offsets and numbers else f"line {number}"
        yield Item(Element(stage, offset, number, number), (Origin("", line),) if line else (), target=name)


_CALL = pattern(r"\s+(?:\w+ = )?(?P<name>[\w.]+?)(?:\.run)?\(")
_SCHEDULER_NODE = pattern(r"^(?P<name>\w+): \w*(?:SchedulerNode|KernelNode)\b")


def _scheduler_nodes(stage: StageRef, text: str, data: Any) -> Iterator[Item]:
    """The blocks of the text; a fused node holds those that it was made from, which are not separate items."""
    rows = data.get("nodes") if isinstance(data, dict) else None
    facts = {str(row.get("name")): row for row in rows or () if isinstance(row, dict)}
    lines = text.rstrip("\n").split("\n")
    starts = list(_starts_of_nodes(lines))
    for i, (number, name) in enumerate(starts):
        end = starts[i + 1][0] - 1 if i + 1 < len(starts) else len(lines)
        while end > number and not lines[end - 1].strip():
            end -= 1
        fact = facts.get(name, {})
        above = fact.get("parts" if stage_kind(stage.name).is_fused else "origins") or ()
        yield Item(
            Element(stage.id, name, number, end), ancestors=tuple(map(str, above)), target=str(fact.get("kind") or "")
        )


def _starts_of_nodes(lines: list[str]) -> Iterator[tuple[int, str]]:
    """The first line of each block, and its name."""
    for number, printed in enumerate(lines, 1):
        match = _SCHEDULER_NODE.match(printed) if "Node" in printed else None
        if match is not None and (number == 1 or not lines[number - 2].rstrip().endswith("=")):
            yield number, match["name"]


def _kernels(stage: str, text: str, data: Any) -> Iterator[Item]:
    """Each kernel that the output code defines, and each call of one: ``name`` and ``name:1``, ``name:2``, …"""
    lines = text.split("\n")
    known = kernels_in(text)
    made = _nodes_of_calls(data)
    starts: dict[str, int] = {}
    for number, line in enumerate(lines, 1):
        if " = async_compile." in line:
            starts.setdefault(line.partition(" = ")[0], number)
    for kernel in known:
        start = starts.get(kernel.name)
        if kernel.text and start is not None:
            end = min(start + kernel.text.rstrip("\n").count("\n") + 2, len(lines))
            nodes = dict.fromkeys(node for call in made.get(kernel.name, ()) for node in call)
            yield Item(Element(stage, kernel.name, start, end), ancestors=tuple(nodes), target=kernel.name)
    calls = dict.fromkeys([*(kernel.name for kernel in known), *made], 0)
    for number, line in enumerate(lines, 1):
        match = _CALL.match(line) if "(" in line else None
        if match and (name := match["name"]) in calls:
            nodes_of_it = made.get(name, [])
            ancestors = nodes_of_it[calls[name]] if calls[name] < len(nodes_of_it) else ()
            calls[name] += 1
            yield Item(Element(stage, f"{name}:{calls[name]}", number, number), ancestors=ancestors, target=name)


def _cpp_calls(stage: str, text: str, data: Any) -> Iterator[Item]:
    """Each call of a kernel in a C++ wrapper, which has the kernels in another file: ``name:1``, ``name:2``, …"""
    made: dict[tuple[str, int | None], list[tuple[str, ...]]] = {}
    for told in (data.get("calls") if isinstance(data, dict) else None) or ():
        made.setdefault((str(told["kernel"]), told.get("handle")), []).append(tuple(map(str, told["nodes"])))
    count: dict[str, int] = {}
    for call in calls_in(text):
        number = count[call.name] = count.get(call.name, 0) + 1
        nodes = made.get((call.name, call.handle), [])
        above = nodes[0] if nodes else ()
        if call.handle is None:  # those without a handle are in the order of the code
            del nodes[:1]
        yield Item(Element(stage, f"{call.name}:{number}", call.line, call.line), ancestors=above, target=call.name)


def _nodes_of_calls(data: Any) -> dict[str, list[tuple[str, ...]]]:
    """Kernel → for each of its calls in their order the scheduler nodes that it computes."""
    found: dict[str, list[tuple[str, ...]]] = {}
    seen: set[tuple[str, int]] = set()
    for call in (data.get("calls") if isinstance(data, dict) else None) or ():
        kernel, handle = str(call["kernel"]), call.get("handle")
        if handle is not None and (kernel, handle) in seen:
            continue  # the loops of one kernel are reported separately
        seen.add((kernel, handle))
        found.setdefault(kernel, []).append(tuple(str(node) for node in call["nodes"]))
    return found
