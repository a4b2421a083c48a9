"""What one launch of a kernel gets: its arguments, with the values that are known or made, in memory of its own."""

from __future__ import annotations

import contextlib
import math
import sys
from collections.abc import Mapping, Sequence
from typing import Any

from irscope.ir.launches import DTYPES, KernelHead, accesses_of, head_of
from irscope.values.kernel.eager import EagerGraph
from irscope.values.kernel.interpreter import Interpreter
from irscope.values.kernel.memory import Region
from irscope.values.kernel.native import NativeKernel

_LANES = 1024
"""Elements of a block that the run's configuration does not tell."""
_MOST_BYTES = 1 << 30
"""All tensors of one launch together, at most."""


class Given:
    """One launch of a kernel, with what it gets."""

    def __init__(self, request: dict[str, Any], given: Mapping[str, Region] | None = None) -> None:
        self._given = dict(given or {})
        self._torch: Any = sys.modules["torch"]
        self._np: Any = sys.modules["numpy"]
        self._torch.set_num_threads(1)
        self._request = request
        self._head = head_of(request["text"], request["kernel"])
        self._nodes: Mapping[str, str] = request["nodes"]
        self._known = {each["name"]: self._stored(each) for each in request["known"]}
        forward = EagerGraph(request["forward"], self._known) if request.get("forward") else None
        self._graph = EagerGraph(request["graph"], self._known, forward=forward)
        self._blocks = {**blocks_of(self._head), **request.get("blocks", {})}
        given, self._grid_arguments = self._head.named(request["arguments"], self._blocks)
        self._tensors = {
            name: each for name, each in given.items() if isinstance(each, dict) and self._is_pointer(name)
        }
        self._numbers = {name: self._number(each) for name, each in given.items() if name not in self._tensors}
        self._constants = self._compile_time(self._numbers)
        self._inputs: list[dict[str, Any]] = []
        self._values: dict[str, Any] = {}
        self._starts = {name: self._start(name, tensor) for name, tensor in self._tensors.items()}
        self._grid = self._grid_of()
        self._interpreter: Interpreter | NativeKernel = (
            NativeKernel(request["library"], self._head.parameters)
            if self._head.heuristic == "cpp"
            else Interpreter(request["text"], self._head.name, self._constants)
        )

    def _is_pointer(self, name: str) -> bool:
        return str(self._head.signature.get(name, "*")).startswith("*")

    def _stored(self, each: dict[str, Any]) -> Any:
        if "number" in each:
            return each["number"]
        dtype = getattr(self._torch, each["dtype"])
        if not each["bytes"]:
            return self._torch.empty(each["shape"], dtype=dtype)
        with open(each["path"], "rb") as file:
            file.seek(each["offset"])
            data = bytearray(file.read(each["bytes"]))
        return self._torch.frombuffer(data, dtype=dtype).reshape(each["shape"])

    def _number(self, given: Any) -> Any:
        if isinstance(given, dict):  # the graph's input that is a size
            return int(self._graph.value(given["memory"]))
        if not isinstance(given, str):
            return given
        with contextlib.suppress(ValueError):
            return float(given)
        return (
            {"True": True, "False": False, "None": None}.get(given)
            if given in ("True", "False", "None")
            else self._graph.symbol(given)
        )

    def _compile_time(self, numbers: Mapping[str, Any]) -> dict[str, Any]:
        found = dict(self._blocks)
        for name, value in self._head.constants.items():
            if name in self._head.parameters:
                found.setdefault(name, value)
        found.update({name: each for name, each in numbers.items() if name in self._head.constexprs})
        missing = [name for name in self._head.parameters if name in self._head.constexprs and name not in found]
        if missing:
            raise LookupError(f"The run does not tell the compile-time constants {', '.join(missing)}.")
        return found

    def _start(self, name: str, tensor: dict[str, Any]) -> Any:
        """The value of a tensor when the kernel starts; None if its memory holds nothing."""
        pointer = str(self._head.signature.get(name, "")).lstrip("*").partition(",")[0]
        dtype = tensor["dtype"] = tensor["dtype"] or DTYPES.get(pointer, "float32")
        holds = tensor["holds"]
        node = self._nodes.get(holds, holds if holds in self._graph.names else "")
        value, how = None, "empty"
        access = accesses_of(self._request["text"])
        if tensor["memory"] in self._given and tensor["shape"] is not None and (not node or name in access.added_to):
            self._complete(name, tensor, None)
            self._tell_input(name, tensor, node, "by kernels")
            return None
        if holds == "0":
            how = "zeros"
        elif holds:
            value, how = self._value(node)
        self._complete(name, tensor, value)
        if how not in ("empty", "zeros") and (value is None or value.numel() != math.prod(tensor["shape"])):
            value, how = self._graph.made_tensor(node or holds, tensor["shape"], None, dtype), "made"
        if value is not None:
            value = self._in_form(value.to(getattr(self._torch, dtype)), tensor)
            if node:
                self._values[node] = self._graph.values.get(node, value)
        self._tell_input(name, tensor, node, how)
        return value

    def _tell_input(self, name: str, tensor: Mapping[str, Any], node: str, how: str) -> None:
        buffer = tensor["name"] or tensor["memory"]
        form = {"shape": tensor["shape"], "dtype": tensor["dtype"]}
        self._inputs.append({"parameter": name, "buffer": buffer, "node": node, "value": how, **form})

    def _in_form(self, value: Any, tensor: dict[str, Any]) -> Any:
        """A buffer's value in the shape in which the launch sees its memory, which may have another order of dimensions."""
        if not tensor.get("held"):
            return value.reshape(tensor["shape"])
        shape, strides = ([each if isinstance(each, int) else self._graph.symbol(each) for each in part] for part in tensor["held"][:2])  # fmt: skip
        ends = [sum((n - 1) * s for n, s in zip(*form, strict=True)) + 1 for form in ((shape, strides), (tensor["shape"], tensor["strides"]))]  # fmt: skip
        if (
            value.numel() != math.prod(shape)
            or tensor["offset"] != self._number(tensor["held"][2])
            or not value.numel()
        ):
            return value.reshape(tensor["shape"])
        memory = self._torch.zeros(max(ends), dtype=value.dtype)
        memory.as_strided(shape, strides).copy_(value.reshape(shape))
        return memory.as_strided(tensor["shape"], tensor["strides"])

    def _complete(self, name: str, tensor: dict[str, Any], value: Any) -> None:
        """Gives a tensor the sizes that the output code has as expressions, or not at all."""
        if tensor["shape"] is None:
            if value is None:
                raise LookupError(f"The shape of {tensor['name'] or name} is not in the output code.")
            tensor["shape"], tensor["strides"] = list(value.shape), list(value.stride())
        for key in ("shape", "strides"):
            tensor[key] = [each if isinstance(each, int) else self._graph.symbol(each) for each in tensor[key]]
        tensor["offset"] = self._number(tensor["offset"])

    def _value(self, node: str) -> tuple[Any, str]:
        if not node:
            return None, "made"
        before = set(self._graph.made)
        try:
            value = self._graph.value(node)
        except LookupError:
            return None, "made"
        if not isinstance(value, self._torch.Tensor):
            return None, "made"
        made = set(self._graph.made) - before
        if node in self._known and node not in self._graph.made:
            return value, "recorded"
        if node in self._graph.made:
            return value, "made"
        self._made_above |= bool(made)
        return value, "computed"

    _values_above: Mapping[str, Any] = {}
    """Values of nodes that kernels before read."""
    _outputs: Sequence[dict[str, Any]] = ()
    """What `run_whole` compared."""
    _made_above = False
    """Whether anything that the inputs were computed from was made."""

    def _memory(self) -> tuple[dict[str, Any], list[Region]]:
        """Fresh tensors by parameter, and their regions."""
        torch, np = self._torch, self._np
        sizes: dict[str, int] = {}
        for tensor in self._tensors.values():
            end = tensor["offset"] + 1 + sum((size - 1) * stride for size, stride in zip(tensor["shape"], tensor["strides"], strict=True))  # fmt: skip
            width = getattr(torch, tensor["dtype"]).itemsize
            sizes[tensor["memory"]] = max(
                sizes.get(tensor["memory"], 0), (end if math.prod(tensor["shape"]) else 0) * width
            )
        if sum(sizes.values()) > _MOST_BYTES:
            raise LookupError(f"The tensors of this launch have {sum(sizes.values()):,} bytes, more than the {_MOST_BYTES:,} that are run here.")  # fmt: skip
        regions: dict[str, Region] = {}
        arguments: dict[str, Any] = {}
        for name, tensor in self._tensors.items():
            memory, dtype = tensor["memory"], getattr(torch, tensor["dtype"])
            if memory not in regions:
                storage = torch.full((max(sizes[memory], 1),), 255, dtype=torch.uint8)[: sizes[memory]]
                count = sizes[memory] // dtype.itemsize
                regions[memory] = Region(
                    name, storage, dtype.itemsize, np.zeros(count, bool), np.full(count, -1, np.int32), np.full(count, -1, np.int32),
                    np.zeros(count, bool),
                )  # fmt: skip
                self._take_over(memory, regions[memory])
            region = regions[memory]
            whole = (
                region.storage.view(dtype)
                if region.storage.numel() % dtype.itemsize == 0
                else region.storage[:0].view(dtype)
            )
            view = (
                whole.as_strided(tensor["shape"], tensor["strides"], tensor["offset"])
                if math.prod(tensor["shape"])
                else whole[:0]
            )
            if (start := self._starts[name]) is not None:
                view.copy_(start)
                self._touched(region.written, tensor)[...] = True
            elif tensor["holds"] == "0":
                region.storage.zero_()
                region.written[:] = True
            arguments[name] = view
        return arguments, list(regions.values())

    def _take_over(self, memory: str, region: Region) -> None:
        """Gives a memory what the kernels before left in it."""
        if (before := self._given.get(memory)) is None:
            return
        count = min(before.storage.numel(), region.storage.numel())
        region.storage[:count] = before.storage[:count]
        known = self._np.repeat(before.written, before.size)[:count][:: region.size]
        region.written[: len(known)] |= known[: len(region.written)]

    def _by_memory(self, regions: Sequence[Region]) -> dict[str, Region]:
        return dict(zip(dict.fromkeys(each["memory"] for each in self._tensors.values()), regions, strict=False))

    def _touched(self, flags: Any, tensor: dict[str, Any]) -> Any:
        """The flags of the elements of a tensor, in its shape."""
        strides = [each * flags.itemsize for each in tensor["strides"]]
        return self._np.lib.stride_tricks.as_strided(flags[tensor["offset"] :], tensor["shape"], strides)

    def _grid_of(self) -> tuple[int, int, int]:
        if self._head.heuristic == "cpp":
            return 1, 1, 1
        if self._request.get("grid"):
            return three_of(1, self._request["grid"])
        if self._grid_arguments:
            return three_of(1, [self._number(each) for each in self._grid_arguments])
        from torch._inductor.runtime import triton_heuristics

        if "grid_type" not in self._head.meta:
            raise LookupError("The run does not tell the kernel's grid: give it with --grid.")
        grid = triton_heuristics.GridExpr.from_meta(dict(self._head.meta), dict(self._blocks))
        numbers = {name: each for name, each in {**self._constants, **self._numbers}.items() if isinstance(each, int)}
        return three_of(1, grid.eval_slow(numbers))


def three_of(otherwise: int, numbers: Sequence[int]) -> tuple[int, int, int]:
    """The sizes of a grid, or the indices of a program, with those that are left out."""
    x, y, z = (*numbers, otherwise, otherwise)[:3]
    return int(x), int(y), int(z)


def blocks_of(head: KernelHead) -> dict[str, Any]:
    """The sizes of a kernel's blocks: what its decorators tell, else the powers of 2 that hold about 1,024 elements."""
    if head.configs:
        return dict(head.configs[0])
    hints = {name.rstrip("_").upper(): size for name, size in head.size_hints.items() if isinstance(size, int)}
    found: dict[str, Any] = {}
    left = _LANES
    if head.heuristic == "persistent_reduction":
        left = max(1, left // max([size for name, size in hints.items() if name.startswith("R")], default=1))
    for name in sorted(head.blocks, key=lambda each: (not each.startswith("R"), each)):
        if name in head.meta:
            found[name] = head.meta[name]
        elif "BLOCK" not in name:
            found[name] = 1
        else:
            dim = name.removesuffix("BLOCK").rstrip("_") or "R"
            others = len([each for each in head.blocks if each[0] in "YZ"]) if dim[0] in "XYZ" else 0
            most = left if not others else 32
            found[name] = max(1, min(hints.get(dim, hints.get(dim.lower(), most)), most))
            left = max(1, left // found[name]) if dim[0] == "R" else left
    return found
