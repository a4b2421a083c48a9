"""An HLO module as a graph that is printed as FX prints its graphs.

What a fusion, a call or a loop computes comes before the instruction that has it, since a printed graph is a plain list.
A computation that a reduction applies to pairs of elements is not a part of the graph.
"""

from __future__ import annotations

import dataclasses
import keyword
import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import field

from irscope.capture.operation_graphs import Frames, Names, Operation, Tensor, written_graph
from irscope.capture.versions import WrittenGraph
from irscope.ir.hlo import Instruction, Module
from irscope.vocabulary.records import dataclass

_INLINED = ("fusion", "call", "while", "conditional")
_LOOPS = ("while", "conditional")
_TYPES = {
    "pred": "bool", "s8": "int8", "s16": "int16", "s32": "int32", "s64": "int64", "u8": "uint8", "u16": "uint16",
    "u32": "uint32", "u64": "uint64", "f16": "float16", "bf16": "bfloat16", "f32": "float32", "f64": "float64",
    "c64": "complex64", "c128": "complex128",
}  # fmt: skip
"""XLA's element types by PyTorch's names."""
_LONG = 120
"""Characters of an attribute that is shown; longer ones are in the text of HLO."""


@dataclass(frozen=True)
class Origin:
    """What is known about a node of the program that XLA was given: its stack, and path and class of its module."""

    frames: Frames = ()
    module: tuple[str, str] | None = None


@dataclass
class Memory:
    """What the graphs of one program share.

    Args:
        origins: The nodes of the program by name.
        node_of: The node that an instruction came from, by its ``op_name``; empty if none is known.
        number, program: The numbers of the graphs of HLO, which keep names, and of the program (`irscope.ir.nodes`).
    """

    origins: Mapping[str, Origin]
    node_of: Callable[[str], str]
    number: int
    program: int
    names: Names = field(default_factory=Names)
    first: dict[str, list[tuple[str, Instruction]]] = field(default_factory=dict)
    """Node of the program → those of the graph before optimizations that came from it."""
    alike: dict[tuple[str, str, str], list[str]] = field(default_factory=dict)
    """Node of the program, ``op_name`` and opcode → of its nodes in `first` those that are most like that."""
    above: dict[str, list[str]] = field(default_factory=dict)
    """``op_name`` → lines of StableHLO."""


@dataclass(frozen=True)
class PrintedHlo(WrittenGraph):
    """A graph with, by the name of an instruction, the node that it is."""

    nodes: Mapping[str, str]


def printed(module: Module, memory: Memory, is_first: bool = False, passed: str = "") -> PrintedHlo:
    """A module as text and data.

    Args:
        is_first: It is the module before optimizations, which comes from StableHLO; the others come from it.
        passed: The pass that made it.
    """
    reader = _Reader(module, memory, is_first)
    operations = reader.operations()
    above = memory.program if is_first else memory.number
    text, data = written_graph("HloModule", memory.number, operations, above, passed)
    data["ancestors"] = reader.ancestors
    shapes = {one.name: f"{one.op} {one.target}({', '.join(one.inputs)}) {one.value}" for one in operations}
    return PrintedHlo(text, data, shapes, reader.nodes)


class _Reader:
    """The operations of a module, and what they came from."""

    def __init__(self, module: Module, memory: Memory, is_first: bool) -> None:
        self._module, self._memory, self._is_first = module, memory, is_first
        self._counts: dict[str, int] = {}
        self._found: list[Operation] = []
        self.nodes: dict[str, str] = {}
        self.ancestors: dict[str, list[str]] = {}

    def operations(self) -> list[Operation]:
        """The operations of all computations, the output last."""
        entry = self._module.computations[self._module.entry]
        parameters = sorted((one for one in entry if one.opcode == "parameter"), key=_number)
        given = [self._put(one, "placeholder", "", (), ()) for one in parameters]
        root = self._computation(self._module.entry, given, "")
        return [*self._found, Operation("output", "output", "output", (root,), (root,))]

    def _computation(self, name: str, given: list[str], above: str) -> str:
        """Reads what a computation does, for these operands; gives the node of its result.

        Args:
            above: The ``op_name`` of the instruction that calls it: what is in it and has none comes from that.
        """
        written: dict[str, str] = {}
        root = ""
        for instruction in self._module.computations.get(name, ()):
            if instruction.opcode == "parameter":
                number = _number(instruction)
                written[instruction.name] = given[number] if number < len(given) else "None"
            else:
                told = instruction.op_name if self._memory.node_of(instruction.op_name) else above
                if told != instruction.op_name:
                    instruction = dataclasses.replace(instruction, op_name=told)
                written[instruction.name] = self._instruction(instruction, written)
            if instruction.is_root or not root:
                root = written[instruction.name]
        return root

    def _instruction(self, one: Instruction, written: Mapping[str, str]) -> str:
        operands = [written.get(name, "None") for name in one.operands]
        roots: list[str] = []
        if one.opcode in _INLINED:
            given = [_of_called(one, operands, at) for at in range(len(one.called))]
            roots = [self._computation(*called, one.op_name) for called in zip(one.called, given, strict=True)]
        inputs = roots if roots and one.opcode not in _LOOPS else [*operands, *roots]
        target = f"hlo.{one.opcode.replace('-', '_')}"
        return self._put(one, "call_function", target, inputs, [*inputs, *_written_attributes(one)])

    def _put(self, one: Instruction, op: str, target: str, inputs: Sequence[str], written: Sequence[str]) -> str:
        count = self._counts[one.name] = self._counts.get(one.name, -1) + 1
        name = self._memory.names.of(f"{one.name}.{count}" if count else one.name)
        self.nodes[one.name] = name
        node = self._memory.node_of(one.op_name)
        origin = self._memory.origins.get(node, Origin())
        known = tuple(one for one in dict.fromkeys(inputs) if one != "None")
        sources = self._sources(name, node, one)
        value = _tensor(one)
        self._found.append(
            Operation(
                name, op, target or name, known, tuple(written), value, origin.frames, origin.module, tuple(sources)
            )
        )
        return name

    def _sources(self, name: str, node: str, one: Instruction) -> list[str]:
        """The nodes that it came from: of the program for the graph before optimizations, else of that graph."""
        if not self._is_first:
            key = node, one.op_name, one.opcode  # the same in the graphs of most passes
            if key not in self._memory.alike:
                self._memory.alike[key] = _most_like(one, self._memory.first.get(node, ()) if node else ())
            return self._memory.alike[key]
        self._memory.first.setdefault(node, []).append((name, one))
        if lines := self._memory.above.get(one.op_name):
            self.ancestors[name] = lines
        return [node] if node else []


def _most_like(one: Instruction, among: Sequence[tuple[str, Instruction]]) -> list[str]:
    """The nodes of the same node of the program that compute the same step in the same way, or the same step, or in
    the same way; else all."""
    for is_like in (
        lambda old: (old.op_name, old.opcode) == (one.op_name, one.opcode),
        lambda old: old.op_name == one.op_name,
        lambda old: old.opcode == one.opcode,
    ):
        if found := [name for name, old in among if is_like(old)]:
            return found
    return [name for name, _ in among]


def _of_called(one: Instruction, operands: list[str], at: int) -> list[str]:
    """What a computation is given: each branch of a conditional has its operand, after what it chooses by."""
    return operands[at + 1 : at + 2] if one.opcode == "conditional" else operands


def _number(parameter: Instruction) -> int:
    return int(parameter.literal) if parameter.literal.isdigit() else 0


def _tensor(one: Instruction) -> Tensor | None:
    """The type of the result; None if it is several."""
    if one.shape.startswith("(") or not one.arrays:
        return None
    [array, *_] = one.arrays
    return Tensor(_TYPES.get(array.type, array.type), array.sizes)


def _written_attributes(one: Instruction) -> list[str]:
    words = [repr(one.literal)] if one.literal and len(one.literal) <= _LONG else []
    for name, value in one.attributes:
        if len(value) > _LONG or name in ("backend_config", "sharding", "operand_precision"):
            continue
        numbers = re.fullmatch(r"\{([\d,\s]*)\}", value)
        shown = f"[{', '.join(numbers[1].split(','))}]" if numbers else repr(value.strip('"'))
        words.append(f"{name}={shown}" if not keyword.iskeyword(name) else f"{name}_={shown}")
    return words
