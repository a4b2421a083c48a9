"""Inductor's own IR before and after fusion, and the scheduler nodes of each kernel.

The data of ``ir-pre-fusion`` and ``ir-post-fusion`` is ``{"nodes": […]}``, one object for each node of the schedule, in
its order:

===============  =======================================================================================================
``name``         ``op3``; of a fused node the names of its parts, joined by ``_``
``kind``         the class: ``SchedulerNode``, ``FusedSchedulerNode``, ``ExternKernelSchedulerNode``, …
``parts``        names of its nodes in the schedule before fusion; itself if it is one of them
``origins``      names of the nodes of the post-grad graph that it computes
``reads``        ``[buffer, bytes]`` each: what its loops address, the whole buffer at most; ``writes``: likewise
``device``       empty if it has none
``kernel``       the kernel that it ended in, with the handle of the call (``cpp_fused_relu_0:2``); empty: none (a
                 node that computes nothing, or names a part of what a library's call returned).  Only after fusion
===============  =======================================================================================================

The data of ``output-code`` is ``{"calls": […]}`` in the order of the calls: ``kernel``, ``handle`` (the number in the
comment ``[Provenance debug handles]`` above the call; null if there is none), ``nodes`` (names of nodes before
fusion), ``origins`` (of the post-grad graph), ``reads``, ``writes`` (bytes, each buffer once, what stays inside the
kernel not counted; null if it is unknown), ``flops`` (null if no origin has a formula), and ``operator`` (of a
call into a library that C++ names in another way: ``torch.ops.aten.sort.stable``); and ``{"mappings"}``:
PyTorch's ``inductor_provenance_tracking_node_mappings`` (``preToPost``, ``postToPre``, ``cppCodeToPost``,
``postToCppCode``) where it gave them.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from irscope.internals.scheduler_hooks import computed_by, schedule_text
from irscope.internals.scheduler_traffic import bytes_accessed
from irscope.internals.sympy_text import remembered_text
from irscope.vocabulary.records import dataclass


@dataclass
class KernelCall:
    """A call of a kernel in output code."""

    kernel: str
    handle: int | None
    nodes: tuple[str, ...]
    origins: tuple[str, ...]
    operator: str = ""
    """What a call into a library computes, as Python names it: ``torch.ops.aten.sort.stable``."""


@dataclass
class Schedule:
    """A schedule at one moment: its text as PyTorch logs it, and its nodes."""

    text: str
    nodes: list[dict[str, Any]]


def schedule_of(nodes: Any) -> Schedule:
    """The text and the nodes of a schedule.  Runs inside Inductor, while its graph is the current one."""
    with remembered_text():
        text = schedule_text(nodes)
    return Schedule(text, [_node(node) for node in nodes])


def call_of(schedule: Any, kernel: str, is_extern: bool, handle: int | None) -> KernelCall:
    """A call of a kernel from what Inductor says when it writes it: a list of scheduler nodes, or an extern IR node."""
    if is_extern:
        parts: list[Any] = [schedule]
        names = [schedule.get_operation_name()]
    else:
        found = [node for node in schedule if hasattr(node, "get_nodes")]
        parts = [part.node for node in found for part in node.get_nodes() if part.node is not None]
        names = [part.get_name() for node in found for part in node.get_nodes()]
    operator = str(getattr(schedule, "python_kernel_name", None) or "") if is_extern else ""
    return KernelCall(kernel, handle, tuple(dict.fromkeys(names)), tuple(_origins(parts)), operator)


def _node(node: Any) -> dict[str, Any]:
    parts = list(node.get_nodes())
    device = node.get_device()
    reads, writes = (bytes_accessed(node, is_read) for is_read in (True, False))
    return {
        "name": node.get_name(),
        "kind": type(node).__name__,
        "parts": [part.get_name() for part in parts],
        "origins": _origins(part.node for part in parts if part.node is not None),
        "reads": [[name, size] for name, size in reads.items()],
        "writes": [[name, size] for name, size in writes.items()],
        "device": "" if device is None else str(device),
    }


def _origins(ir_nodes: Iterable[Any]) -> list[str]:
    """The nodes of the post-grad graph, in its order, that IR nodes compute."""
    return [node.name for node in sorted({fx for ir in ir_nodes for fx in computed_by(ir)})]
