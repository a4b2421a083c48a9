"""Whether Inductor would use CUDA graphs for a program that it compiles for a device which is not here, and why not.

Inductor decides it without the device: at the end of a compile it has its reasons, and with graph partition it decides
for each node of the schedule.  What only a call shows is open, such as whether an input that is written is the output of
another CUDA graph.  PyTorch uses the same code, and the word CUDA, for AMD's GPUs.
"""

from __future__ import annotations

import importlib
import inspect
from typing import Any

from irscope.internals.target_cpu_tensors import CpuTensor
from irscope.vocabulary.records import dataclass


@dataclass(frozen=True)
class LeftOut:
    """A kernel that runs outside of the CUDA graphs of its program.

    Args:
        kernel: Its node in Inductor's schedule.
        why: The reason, in PyTorch's words.
        stack: The user's stack, as PyTorch prints it; may be empty.
    """

    kernel: str
    why: str
    stack: str = ""


@dataclass(frozen=True)
class CudaGraphs:
    """What Inductor decides about one graph.

    Args:
        backward: Whether it is the backward graph.
        reasons: Why the whole graph runs without CUDA graphs, in PyTorch's words, with the user's stacks; none: it does
            not.
        graphs: How many CUDA graphs are recorded.
        recorded: How many kernels are in them.
        left_out: The ones that are not.
        records_each_size: Whether one is recorded for each size of an input, since shapes are dynamic.
    """

    backward: bool
    reasons: tuple[str, ...]
    graphs: int
    recorded: int
    left_out: tuple[LeftOut, ...]
    records_each_size: bool


decided: list[CudaGraphs] = []
"""The decisions about graphs that this process has compiled with CUDA graphs asked for."""
on_cpu: list[CpuTensor] = []
"""What the script keeps on the CPU in the program that this process compiles."""


def note_partitions() -> None:
    """Makes this process keep partitions of graphs with their schedule."""
    scheduler: Any = importlib.import_module("torch._inductor.scheduler").Scheduler
    partition = scheduler.graph_partition

    def graph_partition(schedule: Any) -> Any:
        found = partition(schedule)
        schedule.irscope_partitions = found
        return found

    scheduler.graph_partition = graph_partition


def note_graph(initialize: Any, *args: Any, **kwargs: Any) -> None:
    """A graph's code is written.

    Args:
        initialize: ``CompiledFxGraph.__init__``.
        args, kwargs: Its arguments, without ``self``.

    Raises AttributeError, KeyError or TypeError where they are not as expected.
    """
    given = inspect.signature(initialize).bind(None, *args, **kwargs).arguments
    if not given["cudagraphs"]:
        return
    graph, module = given["graph"], given["gm"]
    reasons = _reasons(given, graph, module)
    kernels, left_out, graphs = _partitions(graph.scheduler)
    here = () if given["fx_kwargs"].get("is_backward") else tuple(on_cpu)
    if here and is_partitioned():
        kernels, left_out = (
            kernels + len(here),
            (*left_out, *(LeftOut(each.name, "cpu ops", each.stack) for each in here)),
        )
    elif here:
        stack = f". Found from : \n {here[0].stack}"
        reasons = reasons or (f"skipping cudagraphs due to cpu device ({here[0].name}){stack}",)
    is_dynamic = any(type(each).__name__ == "SymInt" for each in given["example_inputs"])
    decided.append(
        CudaGraphs(
            bool(given["fx_kwargs"].get("is_backward")),
            reasons,
            0 if reasons else graphs,
            0 if reasons else kernels - len(left_out),
            left_out,
            is_dynamic and not reasons,
        )
    )


def is_partitioned() -> bool:
    """Whether Inductor leaves single operations out of CUDA graphs, and not the whole graph."""
    config: Any = importlib.import_module("torch._inductor.config")
    return bool(config.graph_partition)


def _reasons(given: dict[str, Any], graph: Any, module: Any) -> tuple[str, ...]:
    utils: Any = importlib.import_module("torch._inductor.cudagraph_utils")
    if why := given["disabled_cudagraphs_reason"]:
        return (str(why),)
    fixed = set(given["static_input_idxs"] or ())
    found = utils.check_for_mutation_ignore_cuda_graph_managed_tensor(
        module, graph.mutated_inputs, graph.mutated_input_idxs, tuple(fixed)
    )
    if rebound := getattr(utils, "get_input_storage_mutation_info", None):  # since torch 2.13
        found = utils.get_input_storage_mutation_reason(rebound(module)) or found
    return (str(found),) if found else ()


def _partitions(schedule: Any) -> tuple[int, tuple[LeftOut, ...], int]:
    """How many kernels there are, those outside of CUDA graphs, and how many CUDA graphs."""
    nodes = [node for node in schedule.nodes if "Nop" not in type(node).__name__]
    partitions, signatures = getattr(schedule, "irscope_partitions", ((), ()))
    if not partitions:  # graph partition is off: one graph
        return len(nodes), (), 1
    left_out = [
        LeftOut(str(node.get_name()), schedule.should_partition(node) or "too few kernels beside it", _stack(node))
        for partition, signature in zip(partitions, signatures, strict=True)
        if signature.skip_cudagraph
        for node in partition
        if "Nop" not in type(node).__name__
    ]
    return len(nodes), tuple(left_out), sum(not signature.skip_cudagraph for signature in signatures)


def _stack(node: Any) -> str:
    for part in node.get_nodes():
        origins = getattr(part.node, "origins", None) or ()
        for origin in sorted(origins, key=lambda each: str(each.name)):
            if stack := origin.meta.get("stack_trace"):
                return str(stack)
    return ""
