"""Inductor's own IR before and after fusion, and which scheduler nodes each kernel was made of.

The data of ``ir-pre-fusion`` and ``ir-post-fusion`` is ``{"nodes": […]}``, one object for each node of the schedule, in
its order:

===============  =======================================================================================================
``name``         ``op3``; of a fused node the names of its parts, joined by ``_``
``kind``         the class: ``SchedulerNode``, ``FusedSchedulerNode``, ``ExternKernelSchedulerNode``, …
``parts``        names of the nodes of the schedule before fusion that it is made of; itself where it is one of them
``origins``      names of the nodes of the post-grad graph that it computes
``reads``        ``[buffer, bytes]`` each, the whole buffer at most; ``writes``: likewise
``device``       empty where it has none
``kernel``       the kernel that it ended in, with the handle of the call (``cpp_fused_relu_0:2``); empty: none (a
                 node that computes nothing, or names a part of what a library's call returned).  Only after fusion
===============  =======================================================================================================

The data of ``output-code`` is ``{"calls": […]}`` in the order of the calls: ``kernel``, ``handle`` (the number in the
comment ``[Provenance debug handles]`` above the call; null where there is none), ``nodes`` (names of nodes before
fusion), ``origins`` (of the post-grad graph), ``reads``, ``writes`` (bytes, each buffer once, what stays inside the
kernel not counted; null where it is unknown) and ``flops`` (null where no origin has a formula); and ``{"mappings"}``:
PyTorch's ``inductor_provenance_tracking_node_mappings`` (``preToPost``, ``postToPre``, ``cppCodeToPost``,
``postToCppCode``) where it gave them.
"""

from __future__ import annotations

import functools
import sys
import types
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import Any

from irscope.capture.hooks import Hook, Undo, replace_attribute
from irscope.capture.sympytext import remembered_text

_PROVENANCE = "set_kernel_post_grad_provenance_tracing"
_HOME = "torch._inductor.debug"
# Modules that import the function by its name, in one version of torch or another.
_USERS = tuple(f"torch._inductor.codegen.{name}" for name in ("wrapper", "simd", "cpp", "cpp_wrapper_cpu", "triton"))


@dataclass
class KernelCall:
    """A call of a kernel in output code."""

    kernel: str
    handle: int | None
    nodes: tuple[str, ...]
    origins: tuple[str, ...]


@dataclass
class Schedule:
    """A schedule at one moment: its text as PyTorch logs it, and its nodes."""

    text: str
    nodes: list[dict[str, Any]]


def hooks(before: Callable[[Any], None], after: Callable[[Any], None], call: Callable[..., None]) -> list[Hook]:
    """Hooks that report the scheduler's nodes of each graph before and after fusion, then each call of a kernel with
    the arguments of `call_of`.  The receivers must not raise."""
    versions = "2.9 to 2.15"
    told = 0

    def counted(*args: Any) -> None:
        nonlocal told
        told += 1
        call(*args)

    return [
        Hook(
            "Inductor's IR before and after fusion",
            "torch._inductor.debug",
            versions,
            lambda debug: _wrap_logs(debug, before, after),
        ),
        *(
            Hook(f"the nodes of kernels ({module})", module, versions, functools.partial(_wrap_provenance, counted))
            for module in (_HOME, *_USERS)
        ),
        Hook(
            "the nodes of library calls that PyTorch has no handle for",
            "torch._inductor.scheduler",
            versions,
            functools.partial(_wrap_externs, call, lambda: told),
        ),
    ]


def is_backward() -> bool:
    """Whether the graph that is being lowered is a backward graph."""
    virtualized: Any = sys.modules["torch._inductor.virtualized"]
    return bool(virtualized.V.graph.is_backward)


def _wrap_logs(debug: Any, before: Callable[[Any], None], after: Callable[[Any], None]) -> Undo:
    undo = []
    for name, receive in (("log_ir_pre_fusion", before), ("log_ir_post_fusion", after)):
        original = getattr(debug, name)

        def log(nodes: Any, original: Any = original, receive: Any = receive) -> None:
            original(nodes)
            receive(nodes)

        undo.append(replace_attribute(debug, name, log))

    def restore() -> None:
        for step in undo:
            step()

    return restore


def _wrap_provenance(call: Callable[..., None], module: types.ModuleType) -> Undo:
    if module.__name__ != _HOME and not hasattr(module, _PROVENANCE):
        return lambda: None
    # A module that was imported after the first one had been changed has got the changed function.
    original = getattr(getattr(module, _PROVENANCE), "_irscope_original", getattr(module, _PROVENANCE))

    @functools.wraps(original)
    def tracked(node_schedule: Any, kernel_name: str, is_extern: bool = False) -> Any:
        handle = original(node_schedule, kernel_name, is_extern)
        call(node_schedule, kernel_name, is_extern, handle)
        return handle

    tracked._irscope_original = original  # type: ignore[attr-defined]
    setattr(module, _PROVENANCE, tracked)
    return lambda: setattr(module, _PROVENANCE, original)


def _wrap_externs(call: Callable[..., None], told: Callable[[], int], scheduler: types.ModuleType) -> Undo:
    """Calls that change memory in place (``aten.scatter_reduce_``, ``aten.index_put_``) get no handle; nor do, in torch
    2.9, Triton kernels of one's own."""
    original = scheduler.Scheduler.codegen_extern_call

    @functools.wraps(original)
    def codegen(self: Any, node: Any) -> Any:
        before = told()
        result = original(self, node)
        ir_node = getattr(node, "node", None)
        kernel = getattr(ir_node, "python_kernel_name", None) or _launched(ir_node)
        if kernel and told() == before:
            call(ir_node, str(kernel), True, None)
        return result

    return replace_attribute(scheduler.Scheduler, "codegen_extern_call", codegen)


def _launched(ir_node: Any) -> str:
    """The name that a Triton kernel of one's own got, right after its launch was written."""
    if type(ir_node).__name__ != "UserDefinedTritonKernel":
        return ""
    virtualized: Any = sys.modules["torch._inductor.virtualized"]
    written = reversed(virtualized.V.graph.wrapper_code.lines)  # what frees buffers stands behind it
    return next((str(line.kernel_name) for line in written if hasattr(line, "kernel_name")), "")


def schedule_of(nodes: Any) -> Schedule:
    """The text and the nodes of a schedule.  Runs inside Inductor, while its graph is the current one."""
    formatter: Any = sys.modules["torch._inductor.debug"].DebugFormatter
    with remembered_text():
        text = formatter._write_ir(nodes)
    return Schedule(str(text), [_node(node) for node in nodes])


def call_of(schedule: Any, kernel: str, is_extern: bool, handle: int | None) -> KernelCall:
    """A call of a kernel from what Inductor says when it writes it: a list of scheduler nodes, or an extern IR node."""
    if is_extern:
        parts: list[Any] = [schedule]
        names = [schedule.get_operation_name()]
    else:
        found = [node for node in schedule if hasattr(node, "get_nodes")]
        parts = [part.node for node in found for part in node.get_nodes() if part.node is not None]
        names = [part.get_name() for node in found for part in node.get_nodes()]
    return KernelCall(kernel, handle, tuple(dict.fromkeys(names)), tuple(_origins(parts)))


def _node(node: Any) -> dict[str, Any]:
    parts = list(node.get_nodes())
    device = node.get_device()
    accesses = [
        node.get_read_write_buffer_accesses(include_reads=reads, include_writes=not reads) for reads in (True, False)
    ]
    return {
        "name": node.get_name(),
        "kind": type(node).__name__,
        "parts": [part.get_name() for part in parts],
        "origins": _origins(part.node for part in parts if part.node is not None),
        "reads": [[name, int(size)] for name, size in accesses[0].items()],
        "writes": [[name, int(size)] for name, size in accesses[1].items()],
        "device": "" if device is None else str(device),
    }


def _origins(ir_nodes: Iterable[Any]) -> list[str]:
    """The nodes of the post-grad graph, in its order, that IR nodes compute."""
    return [node.name for node in sorted({fx for ir in ir_nodes for fx in getattr(ir, "origins", ())})]
