"""Writes a graph of another system's operations as FX prints its graphs, with the user's lines above the operations.

The layout of the data is that of `irscope.ir.nodes`.
"""

from __future__ import annotations

import keyword
import math
import re
from collections.abc import Callable, Iterable, Sequence
from dataclasses import field
from typing import Any

from irscope.usercode.source import line_text
from irscope.usercode.user_files import is_user_file
from irscope.vocabulary.dtypes import SHORT
from irscope.vocabulary.records import dataclass

Frames = tuple[tuple[str, int, str], ...]
"""File, line and function; the outermost comes first."""


@dataclass(frozen=True)
class Tensor:
    """What is known about the result of an operation.

    Args:
        dtype: PyTorch's name: ``float32``.
        sizes: Numbers, or text where they are symbolic; None if they are unknown.
    """

    dtype: str
    sizes: tuple[int | str, ...] | None

    @property
    def printed(self) -> str:
        """As FX prints it: ``f32[2, 8]``."""
        sizes = "?" if self.sizes is None else ", ".join(map(str, self.sizes))
        return f"{SHORT.get(self.dtype, self.dtype)}[{sizes}]"

    @property
    def bytes(self) -> int | None:
        """The size of its elements; None if it is unknown."""
        bits = re.search(r"\d+$", self.dtype)
        width = 1 if self.dtype == "bool" else int(bits[0]) // 8 if bits else 0
        sizes = [size for size in self.sizes or () if isinstance(size, int)]
        known = self.sizes is not None and len(sizes) == len(self.sizes) and width > 0
        return width * math.prod(sizes) if known else None


@dataclass(frozen=True)
class Operation:
    """One node of a graph.

    Args:
        name: A name in Python, unique in the graph (`Names`).
        op: ``placeholder``, ``get_attr``, ``call_function`` or ``output``.
        target: What is called (``onnx.Gemm``), or the path of an attribute.
        inputs: The names of the nodes that it takes, in order.
        written: Its arguments as they are printed.
        frames: Where it came from.
        module: Path and class of its ``nn.Module``.
        sources: The names of the nodes that it came from in the graph above.
        note: A comment that is printed after it.
    """

    name: str
    op: str
    target: str
    inputs: tuple[str, ...] = ()
    written: tuple[str, ...] = ()
    value: Tensor | None = None
    frames: Frames = ()
    module: tuple[str, str] | None = None
    sources: tuple[str, ...] = ()
    note: str = ""


class Names:
    """Names in Python for the values of one compile's graphs; a value keeps its name in all of them.

    Args:
        taken: Names of other values.
    """

    def __init__(self, taken: Iterable[str] = ()) -> None:
        self._names: dict[str, str] = {}
        self._taken: set[str] = {"output", "self", "torch", *taken}

    def of(self, value: str, like: str = "") -> str:
        """The name of a value: its own, if Python allows it, or one like another text."""
        if value not in self._names:
            stem = re.sub(r"\W", "_", like or value, flags=re.ASCII) or "value"
            stem = f"_{stem}" if stem[0].isdigit() else stem
            stem = f"{stem}_" if keyword.iskeyword(stem) else stem
            name, count = stem, 1
            while name in self._taken:
                name, count = f"{stem}_{count}", count + 1
            self._taken.add(name)
            self._names[value] = name
        return self._names[value]


@dataclass
class _Table:
    entries: list[Any] = field(default_factory=list)
    index: dict[Any, int] = field(default_factory=dict)

    def __call__(self, key: Any, entry: Any = None) -> int:
        if key not in self.index:
            self.index[key] = len(self.entries)
            self.entries.append(key if entry is None else entry)
        return self.index[key]


def written_graph(
    title: str, number: int, operations: Sequence[Operation], above: int = -1, passed: str = ""
) -> tuple[str, dict[str, Any]]:
    """The text of a graph and its data.

    Args:
        title: The name of the class in the text.
        number: Number of the graph in its run (`NodeWriter.number`).
        operations: In the order of the graph, the output last.
        above: The number of the graph that the sources are in.
        passed: What made this graph of that one.
    """
    return _text_of(title, operations), _data_of(number, operations, above, passed)


def files_of(operations: Iterable[Operation]) -> list[str]:
    """The files that the nodes came from."""
    return list(dict.fromkeys(file for one in operations for file, _, _ in one.frames))


def _text_of(title: str, operations: Sequence[Operation]) -> str:
    inputs = [f'{one.name}: "{one.value.printed}"' if one.value else one.name for one in operations if _is_input(one)]
    rows = [f"class {title}(torch.nn.Module):", f"    def forward({', '.join(['self', *inputs])}):"]
    line_of = _line_reader()
    told: object = ""
    for one in operations:
        if _is_input(one):
            continue
        if one.op == "output":
            rows.append(f"        return ({', '.join(one.inputs)}{',' if len(one.inputs) == 1 else ''})")
            continue
        at = _innermost(one.frames)
        if one.op == "call_function" and at != told:
            told = at
            rows += ["", line_of(at)]
        left = f'{one.name}: "{one.value.printed}"' if one.value else one.name
        right = _right_side(one)
        rows.append(f"        {left} = {right}" + (f"  # {one.note}" if one.note else ""))
    return "\n".join(rows) + "\n"


def _right_side(one: Operation) -> str:
    if one.op == "get_attr":
        return _attribute(one.target)
    return (
        f"{one.inputs[0]}[{one.written[1]}]"
        if one.target == ITEM
        else f"torch.ops.{one.target}({', '.join(one.written)})"
    )


def _attribute(path: str) -> str:
    """``layers.0.weight`` → ``getattr(self.layers, '0').weight``, as FX prints it."""
    written = "self"
    for part in path.split("."):
        written = (
            f"{written}.{part}"
            if part.isidentifier() and not keyword.iskeyword(part)
            else f"getattr({written}, {part!r})"
        )
    return written


ITEM = "operator.getitem"
"""The target of an operation that takes one of several results."""


def _is_input(operation: Operation) -> bool:
    return operation.op == "placeholder"


def _innermost(frames: Frames) -> tuple[str, int, str] | None:
    mine = [frame for frame in frames if is_user_file(frame[0])]
    return mine[-1] if mine else frames[-1] if frames else None


def _line_reader() -> Callable[[tuple[str, int, str] | None], str]:
    def comment(at: tuple[str, int, str] | None) -> str:
        if at is None:
            return "        # No stacktrace found for following nodes"
        file, line, function = at
        return f"        # File: {file}:{line} in {function}, code: {line_text(file, line).strip()}"

    return comment


def _data_of(number: int, operations: Sequence[Operation], above: int, passed: str) -> dict[str, Any]:
    keys = ("name", "op", "target", "inputs", "value", "flops", "stack", "module", "aten", "seq", "from")
    columns: dict[str, list[Any]] = {key: [] for key in keys}
    targets, values, frames, stacks, modules, sources = (_Table() for _ in range(6))
    index = {one.name: at for at, one in enumerate(operations)}
    for one in operations:
        if one.frames and one.frames not in stacks.index:
            stacks(one.frames, [frames(frame, list(frame)) for frame in one.frames])
        made = [sources(name, [name, passed, "create", above, []]) for name in one.sources]
        row = (
            one.name, one.op, targets(one.target), [index[name] for name in dict.fromkeys(one.inputs)],
            _value(one.value, values), None, stacks.index.get(one.frames, -1),
            modules(one.module, list(one.module)) if one.module else -1, -1, None, made,
        )  # fmt: skip
        for key, cell in zip(keys, row, strict=True):
            columns[key].append(cell)
    return {
        "graph": number, "nodes": columns, "views": [], "backward": [], "targets": targets.entries,
        "values": values.entries, "frames": frames.entries, "stacks": stacks.entries, "modules": modules.entries,
        "sources": sources.entries, "symbols": {},
    }  # fmt: skip


def _value(value: Tensor | None, values: _Table) -> int:
    if value is None or value.sizes is None:
        return -1
    return values(value, ["tensor", value.dtype, list(value.sizes), [], "", value.bytes])
