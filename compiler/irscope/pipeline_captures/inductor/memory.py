"""The memory plan of a graph: which buffers its code allocates, when they are freed, and which take over another's memory.

The data of the stage ``memory-plan``:

=============  =========================================================================================================
``steps``      the calls of the code, in order: ``kernel``, ``live`` (bytes that the graph's own buffers hold meanwhile)
``buffers``    ``name``, ``bytes`` (of the storage; with hints in place of symbols), ``dtype``, ``device``, ``how``
               (``allocated``; ``reuse``: takes the memory of ``of``; ``extern``: allocated by the library call that
               makes it; ``view``: of ``of``), ``of``, ``first`` and ``last`` (indices of steps: from its allocation to
               its release; the last step for what is returned), ``output``
``inputs``     ``[name, bytes]`` each; the caller's: not counted, nor is a buffer that takes over the memory of one
``freed``      of inputs that the code lets go of, or whose memory a buffer takes over: the last step that has the memory
``outputs``    names of what the graph returns, in order; of a forward first what its caller gets, then what is kept
               for the backward, in the order of the partition's ``saved`` (not in plans of the first version)
``peak``       ``{"bytes", "step", "holds": [names, largest first]}``
=============  =========================================================================================================
"""

from __future__ import annotations

from itertools import accumulate
from typing import Any

from irscope.internals.scheduler_hooks import lowered_graph
from irscope.vocabulary import units

_NO_SUCH_SIZE = (AttributeError, NotImplementedError)
"""How Inductor's nodes say that they have no layout, or no size: they have no such method, or one that only raises."""


def plan_of(wrapper: Any) -> dict[str, Any]:
    """The data of a wrapper's plan.  Runs inside Inductor, after the plan was made."""
    return _Plan(wrapper).read()


class _Plan:
    def __init__(self, wrapper: Any) -> None:
        self._wrapper = wrapper
        self._graph: Any = lowered_graph()
        self._steps: list[dict[str, Any]] = []
        self._buffers: dict[str, dict[str, Any]] = {}
        self._outputs = set(self._graph.get_output_names())
        self._freed: dict[str, int] = {}

    def read(self) -> dict[str, Any]:
        for line in self._wrapper.lines:
            self._read_line(line, type(line).__name__)
        last = max(0, len(self._steps) - 1)
        for buffer in self._buffers.values():
            buffer["first"] = min(buffer["first"], last)
            if buffer["last"] is None or buffer["output"]:
                buffer["last"] = last
            buffer["last"] = max(buffer["last"], buffer["first"])
        return {
            "steps": self._steps,
            "buffers": list(self._buffers.values()),
            "outputs": [str(name) for name in self._graph.get_output_names()],
            "inputs": [[name, self._bytes(value)] for name, value in self._graph.graph_inputs.items()],
            "freed": self._freed_inputs(),
            "peak": self._peak(),
        }

    def _freed_inputs(self) -> dict[str, int]:
        """The last step of each input that is let go of; what takes over its memory has it longer."""
        found = dict(self._freed)
        root: dict[str, str] = {}
        for name, buffer in self._buffers.items():  # a buffer comes after the one whose memory it takes
            if buffer["how"] == "reuse" and (home := root.get(buffer["of"], buffer["of"])) in found:
                root[name] = home
                found[home] = max(found[home], buffer["last"])
        return found

    def _read_line(self, line: Any, kind: str) -> None:
        if kind == "AllocateLine":
            self._add(line.node, "allocated")
        elif kind == "ReuseLine":
            self._free(line.node.get_name(), len(self._steps) - 1)
            self._add(line.reused_as, "reuse", line.node.get_name())
        elif kind == "ReinterpretLine":
            self._add(line.reused_as, "view", line.node.get_name())
        elif kind in ("FreeIfNotReusedLine", "FreeLine"):
            if not getattr(line, "is_reused", False):
                self._free(line.node.get_name(), len(self._steps) - 1)
        elif kind == "KernelCallLine":
            self._steps.append({"kernel": line.kernel_name, "live": 0})
        elif kind.startswith("ExternKernel"):
            name = line.node.get_name()
            if name not in self._buffers and name in self._graph.name_to_buffer and _is_tensor(line.node):
                self._add(line.node, "extern")
            self._steps.append({"kernel": str(line.node.get_kernel_name()), "live": 0})
        elif kind == "MultiOutputLine" and (buffer := self._graph.name_to_buffer.get(line.result_name)):
            if type(buffer).__name__ == "OpaqueMultiOutput":  # a process group, which has no bytes
                return
            self._add(buffer, "extern")["first"] = max(0, len(self._steps) - 1)

    def _add(self, node: Any, how: str, of: str = "") -> dict[str, Any]:
        name = node.get_name()
        self._buffers[name] = {
            "name": name,
            "bytes": self._bytes(node),
            "dtype": str(node.get_dtype()).removeprefix("torch."),
            "device": str(node.get_device()),
            "how": how,
            "of": of,
            "first": len(self._steps),
            "last": None,
            "output": name in self._outputs,
        }
        return self._buffers[name]

    def _free(self, name: str, step: int) -> None:
        if name in self._buffers:
            self._buffers[name]["last"] = max(0, step)
        elif name in self._graph.graph_inputs:
            self._freed[name] = max(0, step)

    def _bytes(self, node: Any) -> int:
        """The bytes of a buffer's storage; 0 if it is not a tensor.  Any other error leaves a gap in place of the
        plan."""
        try:
            size = self._graph.get_allocation_storage_size(node)
        except _NO_SUCH_SIZE:  # inputs and views have a size only
            try:
                size = 1
                for length in node.get_size():
                    size = size * length
            except _NO_SUCH_SIZE:  # a symbol, a script object
                return 0
        sizes = self._graph.sizevars
        hint = getattr(sizes, "optimization_hint", None) or sizes.size_hint  # its name in torch 2.9
        return int(hint(size, fallback=0)) * int(node.get_dtype().itemsize)

    def _peak(self) -> dict[str, Any]:
        """Fills in what each step holds; memory that is reused counts once, as the buffer that has it at the time."""
        own = self._own()
        change = [0] * (len(self._steps) + 1)
        for buffer in own:
            change[buffer["first"]] += buffer["bytes"]
            change[min(buffer["last"], len(self._steps) - 1) + 1] -= buffer["bytes"]
        live = list(accumulate(change))
        for step, count in zip(self._steps, live, strict=False):
            step["live"] = count
        at = max(range(len(self._steps)), key=live.__getitem__, default=0)
        holds = [buffer for buffer in own if buffer["first"] <= at <= buffer["last"]]
        holds.sort(key=lambda buffer: -int(buffer["bytes"]))
        return {"bytes": live[at], "step": at, "holds": [buffer["name"] for buffer in holds]}

    def _own(self) -> list[dict[str, Any]]:
        """The buffers that hold memory of the graph's own: no views, and not the memory of an input that was given up."""
        found: dict[str, dict[str, Any]] = {}
        for name, buffer in self._buffers.items():  # a buffer comes after the one whose memory it takes
            if buffer["how"] in ("allocated", "extern") or (buffer["how"] == "reuse" and buffer["of"] in found):
                found[name] = buffer
        return list(found.values())


def _is_tensor(node: Any) -> bool:
    return hasattr(node, "layout") and type(node.layout).__name__ not in ("NoneLayout", "MultiOutputLayout")


def stage_text(plan: dict[str, Any]) -> str:
    """The stage ``memory-plan`` for people."""
    peak, steps = plan["peak"], plan["steps"]
    inputs = sum(size for _, size in plan["inputs"])
    lines = [f"# peak {units.size(peak['bytes'])} of the graph's own buffers, inputs {units.size(inputs)}"]
    if steps:
        lines.append(f"# reached at step {peak['step']}, {steps[peak['step']]['kernel']}: {', '.join(peak['holds'])}")
    lines += ["", "# buffer  bytes  steps  from"]
    for buffer in plan["buffers"]:
        source = {"reuse": f"the memory of {buffer['of']}", "view": f"a view of {buffer['of']}"}.get(
            buffer["how"], buffer["how"]
        )
        output = ", returned" if buffer["output"] else ""
        lines.append(
            f"{buffer['name']:10}{buffer['bytes']:>14,}  {buffer['first']:>5}-{buffer['last']:<5} {source}{output}  {buffer['dtype']} {buffer['device']}"
        )
    lines += ["", "# step  live bytes  call"]
    lines += [f"{number:6}{step['live']:>12,}  {step['kernel']}" for number, step in enumerate(steps)]
    return "\n".join(lines) + "\n"
