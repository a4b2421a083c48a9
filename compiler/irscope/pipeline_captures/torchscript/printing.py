"""Prints a TorchScript graph as FX prints its graphs, with the user's lines above the operations.

What is in blocks and in graphs below comes before the statement that has them, since a printed graph is a plain list:
``prim.If`` takes what both of its blocks result in.  Constants, lists and tuples of values are written where they are
used, and what the profiler puts around values is left out.
"""

from __future__ import annotations

import ast
import keyword
import math
import re
from collections.abc import Callable, Mapping
from dataclasses import field
from typing import Any

from irscope.capture.versions import WrittenGraph
from irscope.ir.torchscript import (
    Block,
    ScriptGraph,
    ScriptValue,
    Statement,
    TensorType,
    printed_type,
    tensor_type,
)
from irscope.pipeline_captures.torchscript.lines import Frames, lines_of_added
from irscope.pipeline_captures.torchscript.naming import PROFILES, Key, Named, identity, inherited, key_of
from irscope.vocabulary.records import dataclass

_BYTES = {"float64": 8, "int64": 8, "complex64": 8, "complex128": 16, "float32": 4, "int32": 4, "float16": 2}
_BYTES |= {"bfloat16": 2, "int16": 2, "int8": 1, "uint8": 1, "bool": 1}
_CHECKS = ("prim::RequiresGradCheck", "prim::TypeCheck")
"""They give their inputs again, and whether these are as they were when the graph was optimized."""
_HOLDER = "program"
"""The name of the script's program in the module that is traced (`irscope.pipeline_captures.torchscript.making`)."""


@dataclass
class Memory:
    """What the graphs of one compile share.

    Args:
        frames: The stack of operations by what they keep in each graph.
        is_user: Whether a file is the user's.
        line_of: The text of a line.
    """

    is_user: Callable[[str], bool]
    line_of: Callable[[str, int], str]
    stacks: dict[str, Frames] = field(default_factory=dict)
    """Node → its stack, where what the operation keeps does not tell it: in a script, and in a backward."""
    types: dict[str, str] = field(default_factory=dict)
    """Node → its type in an earlier graph: the executor takes types out again, but the values are the same."""
    frames: dict[Key, Frames] = field(default_factory=dict)
    names: dict[tuple[Key, int], str] = field(default_factory=dict)
    taken: set[str] = field(default_factory=set)

    def for_backward(self) -> Memory:
        """One for a backward: its nodes have other names, and the operations in it are not those of the forward."""
        return Memory(self.is_user, self.line_of, taken=self.taken)


@dataclass(frozen=True)
class PrintedGraph(WrittenGraph):
    """A graph with the inputs and the user's lines of each node."""

    inputs: Mapping[str, frozenset[str]]
    frames: Mapping[str, Frames]
    operations: tuple[Named, ...]

    @property
    def keys(self) -> dict[str, Key]:
        """What each operation keeps when a pass copies it."""
        return {one.names[0]: one.key for one in self.operations if one.names}


def printed(graph: ScriptGraph, memory: Memory, before: PrintedGraph | None = None) -> PrintedGraph:
    """A graph as text and data.  Nodes have the names that they have in earlier graphs of the same memory.

    Args:
        before: The graph before the pass that made this one.  An operation that a pass adds has no line of its own
            (`irscope.pipeline_captures.torchscript.lines`).
    """
    found = _Printer(graph, memory, before).print()
    added = {} if before is None else lines_of_added(before, found)
    return _Printer(graph, memory, before, added).print() if added else found


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
    def __init__(
        self,
        graph: ScriptGraph,
        memory: Memory,
        before: PrintedGraph | None,
        replaced: Mapping[str, Frames] | None = None,
    ) -> None:
        self._graph, self._memory = graph, memory
        self._replaced = replaced or {}
        self._kept = {} if before is None else inherited(graph, before.operations)
        self._names_of: dict[int, list[str]] = {}
        """By the ``id`` of a statement how it and its results are printed."""
        self._inputs: dict[str, frozenset[str]] = {}
        self._frames_of: dict[str, Frames] = {}
        self._written: dict[str, str] = {}  # value → what is written for it
        self._types: dict[str, str] = {}
        self._counts: dict[Key, int] = {}
        self._own: set[str] = set()
        self._weak: set[str] = set()
        self._rows: list[str] = []
        self._targets_of: dict[str, str] = {}
        """The paths of modules as they are written in the text."""
        self._origin: object = ""
        self._shapes: dict[str, str] = {}
        self._numbers: dict[str, int] = {}
        self._columns: dict[str, list[Any]] = {
            key: [] for key in ("name", "op", "target", "inputs", "value", "flops", "stack", "module", "aten", "seq", "from")
        }  # fmt: skip
        self._targets, self._values, self._frames = _Table(), _Table(), _Table()
        self._stacks, self._modules = _Table(), _Table()
        self._learn_types()

    def _learn_types(self) -> None:
        """The profiler knows the types of values that have been seen."""
        for statement in self._graph.statements():
            if statement.kind in PROFILES and statement.inputs:
                seen = re.search(r"profiled_type=(\w+\(.*\))(?:, seen_none|$)", statement.attributes)
                if seen:
                    self._types.setdefault(statement.inputs[0], seen[1])

    def print(self) -> PrintedGraph:
        arguments = []
        for number, parameter in enumerate(self._graph.main.parameters):
            if parameter.type.startswith("__torch__"):
                self._written[parameter.name] = "self"
                continue
            name = self._name(parameter.name, ("input", str(number), ""), "input")
            self._written[parameter.name] = name
            detail = self._detail(name, parameter)
            arguments.append(f'{name}: "{detail}"' if detail else name)
            self._note(name, "placeholder", name, [], parameter, (), "")
        self._block(self._graph.main)
        results = [self._written.get(name, name) for name in self._graph.main.results]
        given = ", ".join(results) if len(results) == 1 and results[0][0] in "([" else f"({', '.join(results)},)"
        self._note("output", "output", "output", results, None, (), "")
        head = ["class TorchScript(torch.nn.Module):", f"    def forward({', '.join(['self', *arguments])}):"]
        tail = f"        return {given}"
        data = {
            "graph": 0, "nodes": self._columns, "views": [], "backward": [], "targets": self._targets.entries,
            "values": self._values.entries, "frames": self._frames.entries, "stacks": self._stacks.entries,
            "modules": self._modules.entries, "sources": [], "symbols": {},
        }  # fmt: skip
        operations = tuple(
            Named(*identity(one), tuple(self._names_of.get(id(one), ())))
            for one in self._graph.statements()
            if one.kind not in PROFILES
        )
        text = "\n".join([*head, *self._rows, tail]) + "\n"
        return PrintedGraph(text, data, self._shapes, self._inputs, self._frames_of, operations)

    def _block(self, block: Block) -> None:
        for statement in block.body:
            self._statement(statement)

    def _statement(self, statement: Statement) -> None:
        kind, outputs = statement.kind, statement.outputs
        inputs = [self._written.get(name, name) for name in statement.inputs]
        if kind in PROFILES:
            for value, given in zip(outputs, inputs, strict=False):
                self._written[value.name] = given
        elif kind == "prim::Constant" and (written := literal(outputs[0].type, statement.attributes)) is not None:
            self._written[outputs[0].name] = written
        elif kind in ("prim::ListConstruct", "prim::TupleConstruct"):
            comma = "," if len(inputs) == 1 and kind == "prim::TupleConstruct" else ""
            left, right = "[]" if kind == "prim::ListConstruct" else "()"
            self._written[outputs[0].name] = f"{left}{', '.join(inputs)}{comma}{right}"
        elif kind == "prim::GetAttr":
            self._attribute(statement, inputs[0])
        else:
            self._call(statement, inputs)

    def _attribute(self, statement: Statement, of: str) -> None:
        attribute = statement.attributes.removeprefix('name="').removesuffix('"')
        # As FX prints it: the name of a module in a list is a number, which is not a name in Python.
        below = f"{of}.{attribute}" if attribute.isidentifier() else f'getattr({of}, "{attribute}")'
        path = of if of == "self" and attribute == _HOLDER else below
        target = f"{self._targets_of.get(of, '')}.{attribute}".removeprefix(".")
        [value] = statement.outputs
        if value.type.startswith("__torch__"):
            self._written[value.name] = path
            self._targets_of[path] = target if path != of else ""
            return
        name = self._name(value.name, key_of(statement.kind, path, ""), attribute, statement)
        self._written[value.name] = name
        self._row(name, value, path, ())
        self._note(name, "get_attr", target, [], value, (), target.rpartition(".")[0])

    def _call(self, statement: Statement, inputs: list[str]) -> None:
        blocks = list(statement.blocks)
        if (below := self._graph.below.get(statement.kind)) is not None:
            blocks.append(below)
        for block in blocks:
            self._give(block, inputs if block is below else inputs[1:], is_loop=statement.kind == "prim::Loop")
            self._block(block)
        results = ([self._written.get(name, name) for name in block.results] for block in blocks)
        given = [*inputs, *(f"[{', '.join(names)}]" for names in results)]
        space, _, operation = statement.kind.partition("::")
        operation = re.sub(r"_\d+$", "", operation) if below is not None else operation
        # What a pass adds has no location, but what it takes.
        key = key_of(f"{space}::{operation}", statement.location or f"of {', '.join(given)}", statement.scope)
        outputs = statement.outputs
        only = outputs[0] if len(outputs) == 1 else None
        name = self._name(only.name if only else "", key, operation, statement)
        frames = self._frames_for(name, key, statement)
        target = f"torch.ops.{space}.{operation}"
        self._row(name, only, f"{target}({', '.join(given)})", frames)
        module = _module_of(statement.scope)
        self._note(name, "call_function", f"{space}.{operation}", given, only, frames, module)
        if only:
            self._written[only.name] = name
        else:
            self._items(name, statement, inputs, key, operation, frames)

    def _give(self, block: Block, inputs: list[str], is_loop: bool) -> None:
        """What the parameters of a block stand for."""
        for number, parameter in enumerate(block.parameters):
            # The first parameter of a loop is the number of the turn, and inputs begin with count and condition.
            is_turn = is_loop and number == 0
            self._written[parameter.name] = "0" if is_turn or number >= len(inputs) else inputs[number]

    def _items(
        self, name: str, statement: Statement, inputs: list[str], key: Key, operation: str, frames: Frames
    ) -> None:
        """The results of an operation that has several, or none."""
        module = _module_of(statement.scope)
        for number, value in enumerate(statement.outputs):
            if statement.kind in _CHECKS and number < len(inputs):
                self._written[value.name] = inputs[number]
                continue
            item = self._name(value.name, (f"item {number}", *key[1:]), operation, statement)
            self._written[value.name] = item
            self._row(item, value, f"{name}[{number}]", frames)
            self._note(item, "call_function", "operator.getitem", [name], value, frames, module)

    def _frames_for(self, name: str, key: Key, statement: Statement) -> Frames:
        if known := self._memory.stacks.get(name) or self._memory.frames.get(key):
            return known
        here = _of_location(statement.location)
        if here and self._memory.is_user(here[0][0]):
            return self._memory.frames.setdefault(key, here)
        if replaced := self._replaced.get(name):
            self._memory.stacks[name] = replaced
            return replaced
        if here:  # a line of a library's, which may be called from anywhere
            self._weak.add(name)
        return here

    # --- a row --------------------------------------------------------------------------------------------------------

    def _row(self, name: str, value: ScriptValue | None, written: str, frames: Frames) -> None:
        origin = self._innermost(frames)
        if origin != self._origin:
            self._origin = origin
            if origin is None:
                self._rows += ["", "        # No stacktrace found for following nodes"]
            else:
                file, line, function = origin
                code = self._memory.line_of(file, line)
                self._rows += ["", f"        # File: {file}:{line} in {function}, code: {code}"]
        detail = self._detail(name, value) if value is not None else ""
        self._rows.append(f'        {name}: "{detail}" = {written}' if detail else f"        {name} = {written}")

    def _innermost(self, frames: Frames) -> tuple[str, int, str] | None:
        return next((frame for frame in frames if self._memory.is_user(frame[0])), frames[0] if frames else None)

    def _detail(self, name: str, value: ScriptValue) -> str:
        tensor = self._tensor(name, value)
        return printed_type(tensor) if tensor is not None else ""

    def _tensor(self, name: str, value: ScriptValue) -> TensorType | None:
        for type_ in (value.type, self._types.get(value.name, "")):
            if (tensor := tensor_type(type_)) is not None and tensor.sizes is not None:
                self._memory.types[name] = type_
                return tensor
        return tensor_type(self._memory.types.get(name, ""))

    def _name(self, value: str, key: Key, operation: str, statement: Statement | None = None) -> str:
        names = self._names_of.setdefault(id(statement), []) if statement is not None else []
        names.append(self._new_name(value, key, operation, self._kept.get(id(statement), ())[len(names) :]))
        return names[-1]

    def _new_name(self, value: str, key: Key, operation: str, kept: tuple[str, ...]) -> str:
        number = self._counts[key] = self._counts.get(key, -1) + 1
        for known in (*kept[:1], self._memory.names.get((key, number))):
            if known is not None and known not in self._own:
                self._own.add(known)
                return known
        stem = re.sub(r"\W", "_", value if value and not value[0].isdigit() else operation).strip("_") or "value"
        stem = f"{stem}_" if keyword.iskeyword(stem) or stem in ("self", "torch", "output") else stem
        name, count = stem, 1
        while name in self._memory.taken or name in self._own:
            name, count = f"{stem}_{count}", count + 1
        self._own.add(name)
        self._memory.taken.add(name)
        self._memory.names.setdefault((key, number), name)
        return name

    def _note(
        self, name: str, op: str, target: str, given: list[str], value: ScriptValue | None, frames: Frames, module: str
    ) -> None:
        used = dict.fromkeys(
            word for one in given for word in re.findall(r"[A-Za-z_]\w*", one) if word in self._numbers
        )
        columns = self._columns
        columns["name"].append(name)
        columns["op"].append(op)
        columns["target"].append(self._targets(target))
        columns["inputs"].append([self._numbers[word] for word in used])
        columns["value"].append(self._value(name, value) if value is not None else -1)
        stack = [self._frames(list(frame)) for frame in reversed(frames)]
        columns["stack"].append(self._stacks(stack) if stack else -1)
        columns["module"].append(self._modules([f"L['self'].{module}", ""]) if module else -1)
        for key, empty in (("flops", None), ("aten", -1), ("seq", None)):
            columns[key].append(empty)
        columns["from"].append([])
        self._numbers[name] = len(self._numbers)
        self._inputs[name], self._frames_of[name] = frozenset(used), () if name in self._weak else frames
        self._shapes[name] = f"{op} {target}({', '.join(given)})"

    def _value(self, name: str, value: ScriptValue) -> int:
        tensor = self._tensor(name, value)
        if tensor is None or tensor.sizes is None:
            return -1
        size = math.prod(tensor.sizes) * _BYTES.get(tensor.dtype, 0) or None
        strides = list(tensor.strides if tensor.strides is not None else ())
        return self._values(["tensor", tensor.dtype, list(tensor.sizes), strides, tensor.device, size])


def _module_of(scope: str) -> str:
    """``__module.program/__module.program.fc1`` → ``fc1``."""
    last = scope.rpartition("/")[2]
    return last.removeprefix("__module").removeprefix(f".{_HOLDER}").lstrip(".")


def _of_location(location: str) -> Frames:
    match = re.match(r"(?P<file>.+?):(?P<line>\d+)(?::\d+)?$", location)
    if match is None or match["file"].startswith("<"):
        return ()
    return ((match["file"], int(match["line"]), "forward"),)


def literal(type_: str, attributes: str) -> str | None:
    """What is written for a constant; None for a tensor that is more than a number."""
    if not attributes:
        return "None"
    written = attributes.partition("=")[2]
    if tensor_type(type_) is not None or type_ == "Tensor":
        number = re.fullmatch(r"\{(.*)\}", written)
        return number[1] if number and _is_literal(number[1]) else "torch.tensor(...)"
    if annotated := re.fullmatch(r"annotate\(.*?\], (\[.*\])\)", written):
        written = annotated[1]
    if attributes.startswith('name="'):  # a function
        written = attributes.removeprefix("name=").partition(",")[0]
    return written if _is_literal(written) else repr(written)


def _is_literal(text: str) -> bool:
    try:
        ast.literal_eval(text)
    except (ValueError, SyntaxError, MemoryError, RecursionError):
        return False
    return True
