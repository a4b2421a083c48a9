"""Hooks into Inductor's scheduler and code writers: nodes before and after fusion, and the nodes of each kernel."""

from __future__ import annotations

import functools
import sys
import types
import weakref
from collections.abc import Callable
from typing import Any

from irscope.internals.frames import report
from irscope.internals.hooks import Hook, Undo, replace_attribute, undo_all
from irscope.internals.names import PrivateName
from irscope.protocol import CaptureGap

_VERSIONS = "2.9 to 2.15"
_PROVENANCE = "set_kernel_post_grad_provenance_tracing"
_HOME = "torch._inductor.debug"
_STACKS = PrivateName(
    "the lines of a kernel before it has been compiled", _HOME, "_inductor_kernel_stack_trace", "2.13"
)
_LINES = "a kernel's lines without those of what reads it"
# Modules that import the function by its name, in one version of torch or another.
_USERS = tuple(f"torch._inductor.codegen.{name}" for name in ("wrapper", "simd", "cpp", "cpp_wrapper_cpu", "triton"))


def scheduler_hooks(
    before: Callable[[Any], None], after: Callable[[Any], None], call: Callable[[Any, str, bool, int | None], None]
) -> list[Hook]:
    """Hooks that report the scheduler's nodes of each graph before and after fusion, then each call of a kernel.

    The receivers must not raise.

    Args:
        before, after: Get the nodes.
        call: Gets what the kernel was made of (scheduler nodes, or an IR node of an extern kernel), its name, whether
            it is an extern kernel, and its handle.
    """
    told = 0

    def counted(*args: Any) -> None:
        nonlocal told
        told += 1
        call(*args)

    return [
        Hook(
            "Inductor's IR before and after fusion",
            _HOME,
            _VERSIONS,
            lambda debug: undo_all(
                [_wrap_log(debug, "log_ir_pre_fusion", before), _wrap_log(debug, "log_ir_post_fusion", after)]
            ),
        ),
        *(
            Hook(f"the nodes of kernels ({module})", module, _VERSIONS, functools.partial(_wrap_provenance, counted))
            for module in (_HOME, *_USERS)
        ),
        Hook(_LINES, "torch._inductor.ir", "2.11 to 2.15", _wrap_stacks),
        Hook(
            "the nodes of library calls that PyTorch has no handle for",
            "torch._inductor.scheduler",
            _VERSIONS,
            functools.partial(_wrap_externs, call, lambda: told),
        ),
    ]


def lowered_graph() -> Any:
    """The ``GraphLowering`` of the graph that is being lowered in this thread."""
    virtualized: Any = sys.modules["torch._inductor.virtualized"]
    return virtualized.V.graph


def kernel_stacks() -> dict[str, list[str]]:
    """The stacks of the kernels whose code has been generated, by ``name:call_number``, until their graph has been
    compiled: only then PyTorch's trace has them.  Empty if Inductor is not imported, as when a trace is opened."""
    return dict(_STACKS.find() or {}) if _HOME in sys.modules else {}


def is_backward() -> bool:
    """Whether the graph that is being lowered is a backward graph."""
    return bool(lowered_graph().is_backward)


def computed_by(node: Any) -> set[Any]:
    """The nodes of the post-grad graph that an IR node computes.

    Inductor's ``origins`` also has what a node reads, if that was not in memory yet when the node was made, and the
    launch that reads the node.  A call into a library and a template read memory only, so another kernel computes it.
    """
    origins = set(getattr(node, "origins", ()))
    ir: Any = sys.modules["torch._inductor.ir"]
    if isinstance(node, (ir.InputsKernel, ir.TemplateBuffer)):
        buffers = [lowered_graph().try_get_buffer(name) for name in _inputs_of(node)]
        read = {each for buffer in buffers for each in getattr(buffer, "origins", ())}
        if not isinstance(node, ir.UserDefinedTritonKernel):
            return origins - read or origins  # an output of a call that has several reads that call
        return origins - read or {each for each in origins if not any(each in one.all_input_nodes for one in origins)}
    if len(origins) < 2 or not isinstance(node, ir.ComputedBuffer):
        return origins
    # What a launch reads comes into memory while that is lowered, which then counts as its origin.
    return origins - {by for launch in _launches().get(node.get_name(), ()) for by in computed_by(launch)} or origins


_launches_of: weakref.WeakKeyDictionary[Any, tuple[int, dict[str, list[Any]]]] = weakref.WeakKeyDictionary()


def _launches() -> dict[str, list[Any]]:
    """By the name of a buffer the launches of the user's kernels that read it, in the graph that is being lowered."""
    graph, ir = lowered_graph(), sys.modules["torch._inductor.ir"]
    count, found = _launches_of.get(graph, (-1, {}))
    if count != len(graph.operations):
        found = {}
        for each in graph.operations:
            for name in _inputs_of(each) if isinstance(each, ir.UserDefinedTritonKernel) else ():
                found.setdefault(name, []).append(each)
        _launches_of[graph] = len(graph.operations), found
    return found


def _inputs_of(node: Any) -> list[str]:
    """The names of what a call into a library, a launch or a template reads."""
    return [each.get_name() for one in node.inputs for each in (one if isinstance(one, (list, tuple)) else (one,))]


def schedule_text(nodes: Any) -> str:
    """A schedule as PyTorch logs it."""
    formatter: Any = sys.modules[_HOME].DebugFormatter
    return str(formatter._write_ir(nodes))


def _wrap_log(debug: Any, name: str, receive: Callable[[Any], None]) -> Undo:
    original = getattr(debug, name)

    def log(nodes: Any) -> None:
        original(nodes)
        receive(nodes)

    return replace_attribute(debug, name, log)


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


def _wrap_stacks(ir: types.ModuleType) -> Undo:
    """PyTorch tells the stacks of all origins; those of what a node does not compute are left out."""
    original = ir.IRNode.get_stack_traces

    @functools.wraps(original)
    def get_stack_traces(self: Any) -> Any:
        origins, computed = self.origins, None
        try:
            computed = computed_by(self)
        except Exception as error:  # noqa: BLE001  then the lines are those that PyTorch tells
            report(CaptureGap(_LINES, f"{type(error).__name__}: {error}"))
        if computed is None or len(computed) == len(origins):
            return original(self)
        object.__setattr__(self, "origins", type(origins)(each for each in origins if each in computed))
        try:
            return original(self)
        finally:
            object.__setattr__(self, "origins", origins)

    return replace_attribute(ir.IRNode, "get_stack_traces", get_stack_traces)


def _wrap_externs(call: Callable[..., None], told: Callable[[], int], scheduler: types.ModuleType) -> Undo:
    """Calls that change memory in place (``aten.scatter_reduce_``, ``aten.index_put_``) get no handle; nor do, in torch
    2.9, Triton kernels of the user's."""
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
    """The name that a Triton kernel of the user's got, right after its launch was written."""
    if type(ir_node).__name__ != "UserDefinedTritonKernel":
        return ""
    written = reversed(lowered_graph().wrapper_code.lines)  # what frees buffers comes after it
    return next((str(line.kernel_name) for line in written if hasattr(line, "kernel_name")), "")
