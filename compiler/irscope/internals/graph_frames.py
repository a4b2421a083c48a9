"""The graph that a record of PyTorch's trace shows, in the function that is sending the record."""

from __future__ import annotations

import sys
import types
from typing import Any

from irscope.internals.frames import FrameLook, callers, is_in


def _is_graph_module(value: object) -> bool:
    fx: Any = sys.modules.get("torch.fx")
    return fx is not None and isinstance(value, fx.GraphModule)


def _graph(graph: str, function: str, file: str, local: str) -> FrameLook:
    return FrameLook(f"facts about the nodes of the {graph}", function, file, local, _is_graph_module, "2.13")


_AOT = "torch/_functorch/_aot_autograd/"
_INDUCTOR = "torch/_inductor/"
GRAPHS = {
    "dynamo_output_graph": _graph(
        "graph that Dynamo traced", "compile_and_call_fx_graph", "torch/_dynamo/output_graph.py", "gm"
    ),
    "after_pre_grad_graph": _graph("graph before its first passes", "run_pre_grad_passes", _INDUCTOR, "model_"),
    "aot_joint_graph": _graph("joint graph", "", _AOT, "fx_g"),
    "aot_forward_graph": _graph("forward graph", "", _AOT, "fw_module"),
    "aot_backward_graph": _graph("backward graph", "", _AOT, "bw_module"),
    "aot_inference_graph": _graph("inference graph", "", _AOT, "fw_module"),
    "inductor_post_grad_graph": _graph("graph that Inductor lowers", "codegen_and_compile", _INDUCTOR, "gm"),
    "after_post_grad_graph": _graph("graph that Inductor lowers", "codegen_and_compile", _INDUCTOR, "gm"),
    "compiled_autograd_graph": _graph("graph of compiled autograd", "", "torch/_dynamo/compiled_autograd.py", "graph"),
}
"""By the event of the record."""

# Where the caches write the text of a graph that they kept: files of torch 2.9 and of later versions.
_AOT_CACHE = ("aot_autograd_result.py", "autograd_cache.py"), ("_log_cached_graphs", "wrap_post_compile")
_FX_CACHE = "torch/_inductor/codecache.py"


def graph_of(event: str) -> Any:
    """The graph module that a record of an event shows; None if it cannot be found, which leaves a gap.

    Raises LookupError if a cache of PyTorch's answered, which keeps only the text.
    """
    look = GRAPHS[event]
    for frame in callers():
        if look.is_at(frame):
            return look.read(frame)
        if _is_in_cache(frame.f_code):
            raise LookupError("the graph came from a cache, which keeps only its text")
    return look.find()


def _is_in_cache(code: types.CodeType) -> bool:
    files, functions = _AOT_CACHE
    return (code.co_name in functions and code.co_filename.endswith(files)) or is_in(code, _FX_CACHE)
