"""The steps of quantization after training (PT2E): export, observers, calibration, quantize and dequantize."""

from __future__ import annotations

import copy
import importlib
import sys
import warnings
from collections.abc import Callable
from typing import Any

from irscope.internals.exporting import silence
from irscope.pipeline_captures.export.programs import export

_PT2E = "torchao.quantization.pt2e"
_Q_DQ = "quantized_decomposed"

Put = Callable[[str, Any], None]
"""Takes the name of a step and the graph module after it."""


def quantized(program: Any, args: tuple[Any, ...], kwargs: dict[str, Any], put: Put) -> Any:
    """The graph module with quantize and dequantize operations; calibrated with the arguments of one call.

    The quantizer is that of x86 CPUs with its default configuration, whose operations Inductor fuses into those of
    oneDNN.  The program itself is not changed.
    """
    torch: Any = sys.modules["torch"]
    with silence(), warnings.catch_warnings(), torch.no_grad():
        warnings.simplefilter("ignore")
        steps: Any = importlib.import_module(f"{_PT2E}.quantize_pt2e")
        x86: Any = x86_module()
        graph = copy.deepcopy(export(program, args, kwargs).program.module())
        put("exported", graph)
        quantizer = x86.X86InductorQuantizer()
        quantizer.set_global(x86.get_default_x86_inductor_quantization_config())
        graph = steps.prepare_pt2e(graph, quantizer)
        put("observed", graph)
        graph(*args, **kwargs)
        graph = steps.convert_pt2e(graph)
        with_traces(graph)
        put("converted", graph)
    return graph


def x86_module() -> Any:
    """The module of the quantizer for x86 CPUs."""
    return importlib.import_module(f"{_PT2E}.quantizer.x86_inductor_quantizer")


def is_quantized_tensor(tensor: Any) -> bool:
    """Whether a tensor is of one of torchao's classes."""
    return type(tensor).__module__.partition(".")[0] == "torchao" or _is_wrapped(tensor)


def _is_wrapped(tensor: Any) -> bool:
    data = getattr(tensor, "data", None)  # a parameter may hold it
    return type(data).__module__.partition(".")[0] == "torchao"


def is_q_dq(node: Any) -> bool:
    """Whether a node quantizes or dequantizes."""
    return getattr(node.target, "namespace", "") == _Q_DQ


def is_dequantize(node: Any) -> bool:
    """Whether a node turns integers into floating-point numbers."""
    return is_q_dq(node) and "dequantize" in node.target.__name__


def with_traces(graph: Any) -> None:
    """Gives the nodes that were put in the stack trace of the operation that they serve."""
    for node in reversed(graph.graph.nodes):
        if node.op == "output" or node.meta.get("stack_trace"):
            continue
        near = [*node.users, *node.all_input_nodes]
        trace = next((one.meta["stack_trace"] for one in near if one.meta.get("stack_trace")), None)
        if trace is not None:
            node.meta["stack_trace"] = trace
