"""What compiled code computes on the way: the value of each buffer that it writes.

Inductor's output code is Python that allocates buffers and calls kernels.  Its functions are compiled once more from their
own text, with a call to us after each statement that writes buffers; kernels, their order and their arguments are the
ones that run without us, so the numbers are, too.  (``config.generate_intermediate_hooks`` reports only the buffers of
library calls and Triton kernels, not those of C++ kernels.)

A buffer holds exactly the value of the graph node that Inductor calls its *origin node*; what was fused away is in none.
A Triton kernel may still get memory for a value whose store was dropped, since nothing outside reads it: such a buffer is
never written.
"""

from __future__ import annotations

import ast
import re
import sys
import types
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import field
from typing import Any

from irscope.vocabulary.records import dataclass

_SEEN = "irscope_seen__"  # two underscores in front would be mangled inside a class
_ALLOCATES = ("empty_strided", "alloc_from_pool", "reinterpret_tensor", "_empty_strided", "empty_like", "as_strided")
_CHECKS = ("assert_size_stride", "assert_alignment", "print", "args.clear", "start_graph", "end_graph", "synchronize")


@dataclass(frozen=True)
class Buffer:
    """A buffer of the output code.

    Args:
        node: The graph node whose value it holds; empty if Inductor names none.
    """

    name: str
    node: str
    dtype: str


@dataclass
class CompiledGraph:
    """A graph that Inductor compiled, with what is needed to follow it.

    Args:
        graph: The post-grad graph that was lowered (a `KeptGraph`); None if it was not seen.
        module: The Python module of its output code.
        config: Inductor's settings while it was compiled; ``settings``: those that are not the usual ones, as Python.
        calls: How often its code was called.
        written: The numbers of the inputs that it writes to; None if nobody has asked yet.
    """

    compile: str
    backward: bool
    graph: Any = None
    buffers: dict[str, Buffer] = field(default_factory=dict)
    module: types.ModuleType | None = None
    config: dict[str, Any] = field(default_factory=dict)
    settings: str = ""
    calls: int = 0
    written: frozenset[int] | None = None


class CannotFollow(Exception):
    """The output code is not of the form that can be followed; the message says why."""


Seen = Callable[[str, Any, str], None]
"""Gets a buffer's name, its tensor (alive, and written to later: copy it) and the kernel that wrote it."""


def followed(module: types.ModuleType, seen: Seen) -> Callable[[list[Any]], Any]:
    """The function ``call`` of output code, that reports each buffer when it has been written.

    Raises CannotFollow if the module holds no Python text, or no function ``call``.
    """
    path = getattr(module, "__file__", None) or ""
    try:
        with open(path, encoding="utf-8") as file:
            tree = ast.parse(file.read())
    except (OSError, SyntaxError, ValueError, RecursionError, MemoryError) as error:
        raise CannotFollow(f"its output code cannot be read as Python: {error}") from error
    parts: list[ast.stmt] = []
    marker = _Marker(_never_written(tree))
    for statement in tree.body:
        if isinstance(statement, (ast.FunctionDef, ast.ClassDef)) and statement.name not in _UNUSED:
            parts.append(marker.visit(statement))
        elif isinstance(statement, ast.Assign) and ast.unparse(statement.targets[0]) in ("runner", "call"):
            parts.append(statement)
    space = {**vars(module), _SEEN: seen}
    exec(compile(ast.fix_missing_locations(ast.Module(parts, [])), path, "exec"), space)  # Inductor's own text
    call: Callable[[list[Any]], Any] | None = space.get("call")
    if call is None or not any(isinstance(node, ast.Name) and node.id == _SEEN for p in parts for node in ast.walk(p)):
        raise CannotFollow("its output code has no function `call` in Python that writes buffers")
    return call


_UNUSED = frozenset({"benchmark_compiled_module", "get_args"})


_Arguments = Mapping[str, frozenset[int]]
"""Kernel → which of its arguments, by position."""


def _never_written(tree: ast.Module) -> _Arguments:
    """Arguments of Triton kernels that are given to write to, and are not written."""
    found: dict[str, frozenset[int]] = {}
    for node in ast.walk(tree):
        if isinstance(node, ast.Call) and _called(node) == "async_compile.triton" and len(node.args) > 1:
            name, text = (each.value if isinstance(each, ast.Constant) else None for each in node.args[:2])
            if isinstance(name, str) and isinstance(text, str):
                found[name] = frozenset(_without_store(name, text))
    return found


def _without_store(name: str, text: str) -> Iterator[int]:
    """The positions of the parameters of a kernel that it may write to, and does not."""
    head = re.search(rf"^def {re.escape(name)}\((.*?)\):$(.*)", text, re.MULTILINE | re.DOTALL)
    if head is None:
        return
    stores = [line for line in head[2].split("\n") if "store" in line or "atomic" in line]
    for number, parameter in enumerate(head[1].split(", ")):
        is_stored = any(re.search(rf"\b{parameter}\b", line) for line in stores)
        if parameter.startswith("in_out_ptr") and not is_stored:
            yield number


class _Marker(ast.NodeTransformer):
    """Puts the reports into functions."""

    def __init__(self, never_written: _Arguments) -> None:
        self._never_written = never_written

    def visit_FunctionDef(self, node: ast.FunctionDef) -> ast.AST:
        if node.name.startswith(("call", "partition", "subgraph")):
            node.body = _marked(node.body, set(), self._never_written)
        return node


def _marked(body: Sequence[ast.stmt], pending: set[str], never_written: _Arguments) -> list[ast.stmt]:
    """``pending``: buffers that have memory and were not written yet: their first use in a call writes them."""
    found: list[ast.stmt] = []
    for statement in body:
        reports: list[ast.stmt] = []
        if isinstance(statement, (ast.With, ast.If, ast.For, ast.Try)):
            statement.body = _marked(statement.body, pending, never_written)
        elif isinstance(statement, ast.Assign) and len(statement.targets) == 1:
            reports = _of_assignment(statement, pending, never_written)
        elif isinstance(statement, ast.Expr) and isinstance(statement.value, ast.Call):
            reports = _of_call(statement.value, pending, never_written)
        elif isinstance(statement, ast.Return) and statement.value is not None:
            rest = [name for name in _names(statement.value) if name in pending]
            found.extend(_report(name, "") for name in rest)
            pending.difference_update(rest)
        found.append(statement)
        found.extend(reports)
    return found


def _of_assignment(statement: ast.Assign, pending: set[str], never_written: _Arguments) -> list[ast.stmt]:
    target, value = statement.targets[0], statement.value
    if not isinstance(target, ast.Name):
        return []
    if isinstance(value, ast.Name):  # memory that is used again under another name, or another name of the same value
        pending.add(target.id)
        return []
    if isinstance(value, ast.Call):
        name = _called(value)
        if name.rpartition(".")[2].startswith(_ALLOCATES):
            pending.add(target.id)
            return []
        return [_report(target.id, name), *_of_call(value, pending, never_written)]
    return [_report(target.id, "")] if isinstance(value, ast.Subscript) and target.id.startswith("buf") else []


def _of_call(call: ast.Call, pending: set[str], never_written: _Arguments) -> list[ast.stmt]:
    kernel = _called(call)
    if kernel.startswith(_CHECKS):
        return []
    used = [name for name in dict.fromkeys(_names(call)) if name in pending]
    # What is written through a view, part by part, is complete only when something else takes it.
    in_parts = {
        name
        for keyword in call.keywords
        if keyword.arg == "out" and isinstance(keyword.value, ast.Call)
        for name in _names(keyword.value)
    }
    pending.difference_update(name for name in used if name not in in_parts)
    idle = never_written.get(kernel, frozenset())
    without = {name for number, each in enumerate(call.args) if number in idle for name in _names(each)}
    return [_report(name, kernel) for name in used if name not in without]


def _called(call: ast.Call) -> str:
    name = ast.unparse(call.func)
    return name.removesuffix(".run")


def _names(node: ast.AST) -> list[str]:
    return [each.id for each in ast.walk(node) if isinstance(each, ast.Name)]


def _report(name: str, kernel: str) -> ast.stmt:
    arguments: list[ast.expr] = [ast.Constant(name), ast.Name(name, ast.Load()), ast.Constant(kernel)]
    return ast.Expr(ast.Call(ast.Name(_SEEN, ast.Load()), arguments, []))


class Snapshots:
    """Copies of the buffers as they are written, up to a budget of bytes."""

    def __init__(self, compiled: CompiledGraph, budget: int) -> None:
        self._torch: Any = sys.modules["torch"]
        self._compiled, self._left = compiled, budget
        self.values: dict[str, Any] = {}
        """By graph node."""
        self.kernel: dict[str, str] = {}
        """Node → the kernel that wrote it."""
        self.order: list[str] = []
        self.left_out: list[str] = []

    def __call__(self, name: str, value: Any, kernel: str) -> None:
        """Keep a copy of what `kernel` wrote to the buffer `name`; over the budget, only note that it is left out."""
        buffer = self._compiled.buffers.get(name)
        if buffer is None or not buffer.node or not isinstance(value, self._torch.Tensor):
            return
        size = value.numel() * value.element_size()
        if size > self._left:
            self.left_out.append(buffer.node)
            return
        if buffer.node not in self.values:
            self.order.append(buffer.node)
        self._left -= size
        self.values[buffer.node] = value.detach().clone()
        self.kernel[buffer.node] = kernel or self.kernel.get(buffer.node, "")
