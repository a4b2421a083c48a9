"""Reads a live FX graph and writes what is known about its nodes; the layout is that of `irscope.ir.nodes`.

Nothing is executed: shapes are those of the fake tensors that the compiler keeps with each node, symbols stand for
their hints where a number is needed, and FLOPs come from the formulas of ``torch.utils.flop_counter``.
"""

from __future__ import annotations

import re
import sys
from collections.abc import Collection
from typing import Any

from irscope.internals.operators import operator_class

_FRAME = re.compile(r'^\s*File "(?P<file>[^"]+)", line (?P<line>\d+), in (?P<function>.*)$', re.MULTILINE)
# PyTorch has formulas for the attention of GPUs; that of the CPU takes and gives the same.
_LIKE = {
    "_scaled_dot_product_flash_attention_for_cpu": "_scaled_dot_product_flash_attention",
    "_scaled_dot_product_flash_attention_for_cpu_backward": "_scaled_dot_product_flash_attention_backward",
}


class NodeWriter:
    """Writes graphs of one run; graphs keep their numbers, and traces that were read once are not read again."""

    def __init__(self) -> None:
        self._graphs: dict[int, int] = {}
        self._frames: dict[str, tuple[tuple[str, int, str], ...]] = {}
        self._classes: dict[type, str] = {}
        self.flops: dict[tuple[Any, str], int | None] = {}
        """Keyed by what is called and the shapes of its arguments: the layers of a model are alike."""

    def number(self, graph_id: int) -> int:
        """The number of a graph by its ``id()``.  An address that is used again keeps its number."""
        return self._graphs.setdefault(graph_id, len(self._graphs))

    def new_number(self) -> int:
        """The number of a graph that is not one of PyTorch's."""
        return self.number(-1 - len(self._graphs))  # no ``id()`` is negative

    def describe(self, module: Any, only: Collection[str] | None = None) -> dict[str, Any]:
        """The data of a graph module, of those nodes alone that are named where some are."""
        data = _Description(self, only).read(module.graph)
        modules = sys.modules["torch.fx"].GraphModule
        below = {name: child for name, child in module.named_children() if isinstance(child, modules)}
        if below and only is None:
            data["subgraphs"] = {name: self.describe(child) for name, child in below.items()}
        return data

    def frames(self, trace: str) -> tuple[tuple[str, int, str], ...]:
        """File, line and function of each frame of a stack trace, outermost first."""
        found = self._frames.get(trace)
        if found is None:
            found = tuple((m["file"], int(m["line"]), m["function"]) for m in _FRAME.finditer(trace))
            self._frames[trace] = found
        return found

    def class_name(self, cls: Any) -> str:
        """The name of a class, which PyTorch gives as the class, or as text with the module of Python."""
        return cls.rpartition(".")[2] if isinstance(cls, str) else str(getattr(cls, "__qualname__", cls))


class _Table:
    """Distinct entries in the order in which they came."""

    def __init__(self) -> None:
        self.entries: list[Any] = []
        self._index: dict[Any, int] = {}

    def __call__(self, key: Any, entry: Any = None) -> int:
        index = self._index.get(key)
        if index is None:
            index = self._index[key] = len(self.entries)
            self.entries.append(key if entry is None else entry)
        return index

    def known(self, key: Any) -> int | None:
        return self._index.get(key)


class _Description:
    def __init__(self, writer: NodeWriter, only: Collection[str] | None) -> None:
        self._writer, self._only = writer, only
        self._targets, self._values, self._frames, self._stacks = _Table(), _Table(), _Table(), _Table()
        self._modules, self._sources = _Table(), _Table()
        self._module_parents: list[int] = []
        self._symbols: dict[str, int | float | None] = {}
        self._target_of: dict[Any, int] = {}
        self._hints: dict[str, int | float | None] = {}
        self._texts: dict[Any, str] = {}  # of sympy expressions, which take long to print
        torch: Any = sys.modules["torch"]
        self._tensor, self._symbolic = torch.Tensor, (torch.SymInt, torch.SymFloat, torch.SymBool)
        self._overload = operator_class()
        self._formulas = dict(getattr(sys.modules.get("torch.utils.flop_counter"), "flop_registry", {}))
        aten = torch.ops.aten
        for name, like in _LIKE.items():
            formula = self._formulas.get(getattr(aten, like, None))
            if formula is not None and hasattr(aten, name):
                self._formulas.setdefault(getattr(aten, name), formula)

    def read(self, graph: Any) -> dict[str, Any]:
        columns: dict[str, list[Any]] = {
            key: []
            for key in ("name", "op", "target", "inputs", "value", "flops", "stack", "module", "aten", "seq", "from")
        }
        views, backward = [], []
        nodes = [node for node in graph.nodes if self._only is None or node.name in self._only]
        index = {node: number for number, node in enumerate(nodes)}
        for number, node in enumerate(nodes):
            meta, target = node.meta, node.target
            value = meta.get("val", meta.get("example_value"))
            trace = meta.get("stack_trace")
            columns["name"].append(node.name)
            columns["op"].append(node.op)
            columns["target"].append(self._target(target))
            columns["inputs"].append([index[used] for used in node.all_input_nodes if used in index])
            columns["value"].append(self._value(value))
            columns["flops"].append(self._flops(node, value))
            columns["stack"].append(self._stack(trace) if trace else -1)
            columns["module"].append(self._module(meta.get("nn_module_stack") or meta.get("fwd_nn_module_stack")))
            columns["aten"].append(self._target(meta["original_aten"]) if meta.get("original_aten") else -1)
            columns["seq"].append(meta.get("seq_nr"))
            columns["from"].append([self._source(source) for source in meta.get("from_node") or ()])
            if isinstance(target, self._overload) and target.is_view:
                views.append(number)
            if meta.get("partitioner_tag") == "is_backward":
                backward.append(number)
        return {
            "graph": self._writer.number(id(graph)),
            "nodes": columns,
            "views": views,
            "backward": backward,
            "targets": self._targets.entries,
            "values": self._values.entries,
            "frames": self._frames.entries,
            "stacks": self._stacks.entries,
            "modules": self._modules.entries,
            "module_parents": self._module_parents,
            "sources": self._sources.entries,
            "symbols": self._symbols,
        }

    def _target(self, target: Any) -> int:
        known = self._target_of.get(target)
        if known is None:
            known = self._target_of[target] = self._targets(target_name(target))
        return known

    def _value(self, value: Any) -> int:
        if isinstance(value, self._tensor):
            return self._tensor_value(value)
        if isinstance(value, self._symbolic):
            text, hint = self._symbol(value)
            return self._values(("symbol", text, hint))
        if isinstance(value, (list, tuple)):
            return self._values(("list", tuple(self._value(part) for part in value)))
        return -1 if value is None else self._values(("other", type(value).__name__))

    def _tensor_value(self, value: Any) -> int:
        if value.layout is not sys.modules["torch"].strided:
            return self._values(("other", f"{str(value.layout).removeprefix('torch.')} tensor"))
        sizes = tuple(self._size(size) for size in value.shape)
        strides = tuple(self._size(stride) for stride in value.stride())
        key = ("tensor", value.dtype, sizes, strides, value.device)
        known = self._values.known(key)
        if known is not None:
            return known
        size: float | None = value.dtype.itemsize
        for length in sizes:
            hint = length if isinstance(length, int) else self._hints.get(length)
            size = None if size is None or hint is None else size * hint
        dtype = str(value.dtype).removeprefix("torch.")
        count = None if size is None else int(size)
        return self._values(key, ["tensor", dtype, list(sizes), list(strides), str(value.device), count])

    def _size(self, size: Any) -> int | str:
        return size if type(size) is int else self._symbol(size)[0]

    def _symbol(self, value: Any) -> tuple[str, Any]:
        """A symbolic number as text, with its hint where it has one; makes no guard."""
        node = getattr(value, "node", None)
        if node is None:
            return str(value), value
        key = getattr(node, "_expr", None)
        text = self._texts.get(key) if key is not None else None
        if text is None:
            expression = node.expr
            text = self._texts[key] = str(expression)
            hint = node.hint if node.has_hint() else None
            self._hints[text] = hint if isinstance(hint, (int, float, bool)) else None
            if getattr(expression, "is_Symbol", False):
                self._symbols[text] = self._hints[text]
        return text, self._hints[text]

    def _flops(self, node: Any, value: Any) -> int | None:
        target = node.target
        formula = self._formulas.get(target.overloadpacket) if isinstance(target, self._overload) else None
        if formula is None:
            return None
        try:
            arguments = [self._shape(argument) for argument in node.args]
            named = {name: self._shape(argument) for name, argument in node.kwargs.items()}
            result = self._sizes(value)
        except Exception:  # noqa: BLE001  a size without a hint: unknown
            return None
        known, key = self._writer.flops, (target, repr((arguments, named, result)))
        if key not in known:
            try:
                known[key] = int(formula(*arguments, **named, out_val=result))
            except Exception:  # noqa: BLE001  a formula that wants more than shapes: unknown
                known[key] = None
        return known[key]

    def _shape(self, argument: Any) -> Any:
        """An argument with tensors as their shapes, which is all that the formulas look at."""
        meta = getattr(argument, "meta", None)
        if meta is not None and hasattr(argument, "op"):
            return self._sizes(meta.get("val"))
        if isinstance(argument, (list, tuple)):
            return [self._shape(part) for part in argument]
        return argument

    def _sizes(self, value: Any) -> Any:
        if isinstance(value, self._tensor):
            return tuple(self._hint(size) for size in value.shape)
        if isinstance(value, (list, tuple)):
            return [self._sizes(part) for part in value]
        return self._hint(value) if isinstance(value, self._symbolic) else value

    def _hint(self, size: Any) -> int:
        return size if type(size) is int else int(self._symbol(size)[1])

    def _stack(self, trace: str) -> int:
        known = self._stacks.known(trace)
        if known is not None:
            return known
        return self._stacks(trace, [self._frames(frame, list(frame)) for frame in self._writer.frames(trace)])

    def _module(self, stack: Any) -> int:
        if not stack:
            return -1
        number = -1
        for path, cls in stack.values():
            parent, number = number, self._modules((path, self._writer.class_name(cls)))
            if number == len(self._module_parents):
                self._module_parents.append(parent)
        return number

    def _source(self, source: Any) -> int:
        parents = tuple(self._source(parent) for parent in source.from_node)
        action = "+".join(action.name.lower() for action in source.action)
        number = self._writer.number(source.graph_id) if source.node_info is not None else -1
        return self._sources((source.name, source.pass_name, action, number, parents))


def target_name(target: Any) -> str:
    """What a node calls, in few words: ``aten.mm.default``, ``torch.relu``, ``operator.add``, ``sum``, ``L_x_``."""
    if isinstance(target, str):
        return target
    if isinstance(target, operator_class()):
        return str(target)
    name = getattr(target, "__qualname__", None) or getattr(target, "__name__", None)
    if name is None:
        return str(target)
    home = getattr(target, "__module__", None) or ""
    if home in ("_operator", "operator"):
        return f"operator.{name}"
    if home == "torch._C._nn" or home == "torch.nn.functional":
        return f"torch.nn.functional.{name}"
    return f"torch.{name.rpartition('.')[2]}" if home.startswith("torch") or "_VariableFunctions" in name else str(name)
