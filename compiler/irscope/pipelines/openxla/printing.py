"""Prints an HLO module as FX prints its graphs, with the user's lines above the operations.

What a fusion, a call or a loop computes comes before the instruction that has it, since a printed graph is a plain list.
A computation that a reduction applies to pairs of elements is not a part of the graph.
"""

from __future__ import annotations

import keyword
import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from irscope.ir.hlo import Array, Instruction, Module

_INLINED = ("fusion", "call", "while", "conditional")
_LOOPS = ("while", "conditional")
_TYPES = {
    "pred": ("b8", "bool", 1), "s8": ("i8", "int8", 1), "s16": ("i16", "int16", 2), "s32": ("i32", "int32", 4),
    "s64": ("i64", "int64", 8), "u8": ("u8", "uint8", 1), "u32": ("u32", "uint32", 4), "u64": ("u64", "uint64", 8),
    "f16": ("f16", "float16", 2), "bf16": ("bf16", "bfloat16", 2), "f32": ("f32", "float32", 4),
    "f64": ("f64", "float64", 8), "c64": ("c64", "complex64", 8), "c128": ("c128", "complex128", 16),
}  # fmt: skip
"""XLA's element type → as FX prints it, PyTorch's name, bytes."""
_LONG = 120
"""Characters of an attribute that is shown; longer ones are in the text of HLO."""
_COLUMNS = ("name", "op", "target", "inputs", "value", "flops", "stack", "module", "aten", "seq", "from")


@dataclass(frozen=True)
class Origin:
    """What is known about a node of the program that XLA was given.

    Parameters
    ----------
    frames
        File, line and function, outermost first.
    module
        Path and class of its innermost module; empty if it is in none.
    """

    frames: tuple[tuple[str, int, str], ...] = ()
    module: tuple[str, str] = ("", "")


@dataclass
class Memory:
    """What the graphs of one program share.

    Parameters
    ----------
    origins
        The nodes of the program by name.
    node_of
        The node that an instruction came from, by its ``op_name``; empty if none is known.
    number, program
        The numbers of the graphs of HLO, which keep names, and of the program (`irscope.ir.nodes`).
    """

    origins: Mapping[str, Origin]
    node_of: Callable[[str], str]
    number: int
    program: int
    is_user: Callable[[str], bool]
    line_of: Callable[[str, int], str]
    names: dict[tuple[str, int], str] = field(default_factory=dict)
    taken: set[str] = field(default_factory=set)
    first: dict[str, list[tuple[str, Instruction]]] = field(default_factory=dict)
    """Node of the program → those of the graph before optimizations that came from it."""
    above: dict[str, list[str]] = field(default_factory=dict)
    """``op_name`` → lines of StableHLO."""


@dataclass(frozen=True)
class PrintedHlo:
    """The text of a graph, its data (`irscope.ir.nodes`), what a pass can change about each node, and by the name of an
    instruction the node that it is."""

    text: str
    data: dict[str, Any]
    shapes: Mapping[str, str]
    nodes: Mapping[str, str]

    @property
    def count(self) -> int:
        """How many nodes it has."""
        return len(self.data["nodes"]["name"])


def printed(module: Module, memory: Memory, is_first: bool = False) -> PrintedHlo:
    """A module as text and data.

    Parameters
    ----------
    is_first
        It is the module before optimizations, which comes from StableHLO; the others come from it.
    """
    return _Printer(module, memory, is_first).print()


class _Table:
    def __init__(self) -> None:
        self.entries: list[Any] = []
        self._index: dict[str, int] = {}

    def __call__(self, entry: Any) -> int:
        key = repr(entry)
        if key not in self._index:
            self._index[key] = len(self.entries)
            self.entries.append(entry)
        return self._index[key]


class _Printer:
    def __init__(self, module: Module, memory: Memory, is_first: bool) -> None:
        self._module, self._memory, self._is_first = module, memory, is_first
        self._rows: list[str] = []
        self._arguments: list[str] = []
        self._place: object = ""
        self._counts: dict[str, int] = {}
        self._nodes: dict[str, str] = {}
        self._shapes: dict[str, str] = {}
        self._numbers: dict[str, int] = {}
        self._ancestors: dict[str, list[str]] = {}
        self._columns: dict[str, list[Any]] = {key: [] for key in _COLUMNS}
        self._targets, self._values, self._frames = _Table(), _Table(), _Table()
        self._stacks, self._modules, self._sources = _Table(), _Table(), _Table()

    def print(self) -> PrintedHlo:
        entry = self._module.computations[self._module.entry]
        parameters = sorted((one for one in entry if one.opcode == "parameter"), key=_number)
        given = [self._parameter(one) for one in parameters]
        root = self._computation(self._module.entry, given, "")
        self._note("output", "output", "output", [root], None)
        head = ["class HloModule(torch.nn.Module):", f"    def forward({', '.join(['self', *self._arguments])}):"]
        data = {
            "graph": self._memory.number, "nodes": self._columns, "views": [], "backward": [],
            "targets": self._targets.entries, "values": self._values.entries, "frames": self._frames.entries,
            "stacks": self._stacks.entries, "modules": self._modules.entries, "sources": self._sources.entries,
            "symbols": {}, "ancestors": self._ancestors,
        }  # fmt: skip
        text = "\n".join([*head, *self._rows, f"        return ({root},)"]) + "\n"
        return PrintedHlo(text, data, self._shapes, self._nodes)

    def _computation(self, name: str, given: list[str], above: str) -> str:
        """Prints what a computation does, for these operands; gives the node of its result.

        Parameters
        ----------
        above
            The ``op_name`` of the instruction that calls it: what is in it and has none comes from that.
        """
        written: dict[str, str] = {}
        root = ""
        for instruction in self._module.computations.get(name, ()):
            if instruction.opcode == "parameter":
                number = _number(instruction)
                written[instruction.name] = given[number] if number < len(given) else "None"
            else:
                told = instruction.op_name if self._memory.node_of(instruction.op_name) else above
                written[instruction.name] = self._instruction(replace(instruction, op_name=told), written)
            if instruction.is_root or not root:
                root = written[instruction.name]
        return root

    def _instruction(self, one: Instruction, written: Mapping[str, str]) -> str:
        operands = [written.get(name, "None") for name in one.operands]
        roots: list[str] = []
        if one.opcode in _INLINED:
            given = [self._of_called(one, operands, at) for at in range(len(one.called))]
            roots = [self._computation(*called, one.op_name) for called in zip(one.called, given, strict=True)]
        name = self._name(one.name)
        self._nodes[one.name] = name
        inputs = roots if roots and one.opcode not in _LOOPS else [*operands, *roots]
        target = f"hlo.{one.opcode.replace('-', '_')}"
        words = [*inputs, *_written_attributes(one)]
        self._row(name, one, f"torch.ops.{target}({', '.join(words)})")
        self._note(name, "call_function", target, inputs, one)
        return name

    def _parameter(self, one: Instruction) -> str:
        name = self._name(one.name)
        self._nodes[one.name] = name
        detail = _detail(one.arrays)
        self._arguments.append(f'{name}: "{detail}"' if detail else name)
        self._note(name, "placeholder", name, [], one)
        return name

    def _of_called(self, one: Instruction, operands: list[str], at: int) -> list[str]:
        """What a computation is given: each branch of a conditional has its operand, after what it chooses by."""
        return operands[at + 1 : at + 2] if one.opcode == "conditional" else operands

    def _row(self, name: str, one: Instruction, written: str) -> None:
        place = self._innermost(self._origin(one).frames)
        if place != self._place:
            self._place = place
            if place is None:
                self._rows += ["", "        # No stacktrace found for following nodes"]
            else:
                file, line, function = place
                code = self._memory.line_of(file, line)
                self._rows += ["", f"        # File: {file}:{line} in {function}, code: {code}"]
        detail = _detail(one.arrays)
        self._rows.append(f'        {name}: "{detail}" = {written}' if detail else f"        {name} = {written}")

    def _innermost(self, frames: tuple[tuple[str, int, str], ...]) -> tuple[str, int, str] | None:
        inner = tuple(reversed(frames))
        return next((frame for frame in inner if self._memory.is_user(frame[0])), inner[0] if inner else None)

    def _origin(self, one: Instruction | None) -> Origin:
        name = self._memory.node_of(one.op_name) if one is not None else ""
        return self._memory.origins.get(name, Origin())

    def _name(self, hlo: str) -> str:
        count = self._counts[hlo] = self._counts.get(hlo, -1) + 1
        key = (hlo, count)
        if key not in self._memory.names:
            stem = re.sub(r"\W", "_", hlo).strip("_") or "value"
            stem = f"_{stem}" if stem[0].isdigit() else stem
            stem = f"{stem}_" if keyword.iskeyword(stem) or stem in ("self", "torch", "output", "None") else stem
            name, number = stem, 1
            while name in self._memory.taken:
                name, number = f"{stem}_{number}", number + 1
            self._memory.taken.add(name)
            self._memory.names[key] = name
        return self._memory.names[key]

    def _note(self, name: str, op: str, target: str, inputs: Iterable[str], one: Instruction | None) -> None:
        used = [word for word in dict.fromkeys(inputs) if word in self._numbers]
        origin = self._origin(one)
        stack = [self._frames(list(frame)) for frame in origin.frames]
        columns = self._columns
        columns["name"].append(name)
        columns["op"].append(op)
        columns["target"].append(self._targets(target))
        columns["inputs"].append([self._numbers[word] for word in used])
        columns["value"].append(self._value(one) if one is not None else -1)
        columns["flops"].append(None)
        columns["stack"].append(self._stacks(stack) if stack else -1)
        columns["module"].append(self._modules(list(origin.module)) if origin.module[0] else -1)
        columns["aten"].append(-1)
        columns["seq"].append(None)
        columns["from"].append(self._came_from(name, one) if one is not None else [])
        self._numbers[name] = len(self._numbers)
        self._shapes[name] = f"{op} {target}({', '.join(used)}) {one.shape if one is not None else ''}"

    def _came_from(self, name: str, one: Instruction) -> list[int]:
        node = self._memory.node_of(one.op_name)
        program = self._sources([node, "", "", self._memory.program, []]) if node else -1
        if self._is_first:
            self._memory.first.setdefault(node, []).append((name, one))
            if lines := self._memory.above.get(one.op_name):
                self._ancestors[name] = lines
        elif first := _most_like(one, self._memory.first.get(node, ()) if node else ()):
            return [self._sources([old, "", "", self._memory.number, [program]]) for old in first]
        return [program] if node else []

    def _value(self, one: Instruction) -> int:
        entries = [self._values(_tensor(array)) for array in one.arrays if array.type in _TYPES]
        if one.shape.startswith("("):
            return self._values(["list", entries])
        return entries[0] if entries else -1


def _most_like(one: Instruction, among: Sequence[tuple[str, Instruction]]) -> list[str]:
    """Of the nodes that came from the same node of the program those that compute the same step in the same way, or
    the same step, or in the same way; else all."""
    for is_like in (
        lambda old: (old.op_name, old.opcode) == (one.op_name, one.opcode),
        lambda old: old.op_name == one.op_name,
        lambda old: old.opcode == one.opcode,
    ):
        if found := [name for name, old in among if is_like(old)]:
            return found
    return [name for name, _ in among]


def _number(parameter: Instruction) -> int:
    return int(parameter.literal) if parameter.literal.isdigit() else 0


def _tensor(array: Array) -> list[Any]:
    _, dtype, size = _TYPES[array.type]
    strides, step = [0] * len(array.sizes), 1
    for dimension in array.layout:
        strides[dimension] = step
        step *= array.sizes[dimension]
    return ["tensor", dtype, list(array.sizes), strides, "cpu", step * size]


def _detail(arrays: tuple[Array, ...]) -> str:
    return ", ".join(
        f"{_TYPES.get(one.type, (one.type, '', 0))[0]}[{', '.join(map(str, one.sizes))}]" for one in arrays
    )


def _written_attributes(one: Instruction) -> list[str]:
    words = [repr(one.literal)] if one.literal and len(one.literal) <= _LONG else []
    for name, value in one.attributes:
        if len(value) > _LONG or name in ("backend_config", "sharding", "operand_precision"):
            continue
        numbers = re.fullmatch(r"\{([\d,\s]*)\}", value)
        shown = f"[{', '.join(numbers[1].split(','))}]" if numbers else repr(value.strip('"'))
        words.append(f"{name}={shown}" if not keyword.iskeyword(name) else f"{name}_={shown}")
    return words
