"""Has this process believe that there is a GPU, so that Inductor generates code for one that is not here.

For a forked child alone, which compiles one graph and ends: what is changed here is never set back.  Nothing is ever
executed on the GPU: tensors are fake, and the generated code is not loaded.
"""

from __future__ import annotations

import contextlib
import ctypes
import importlib
import operator
import os
import sys
import types
from collections.abc import Callable
from typing import Any

from irscope.internals.hooks import Hook, Undo, replace_attribute

_CUDA, _META = 1, 14
"""Numbers of ``c10::DeviceType``."""
_GUARDS = "_ZN3c104impl26device_guard_impl_registryE"


class NotRetargetedError(Exception):
    """A graph cannot be compiled for another device; the message says why."""


class _CodeIsWritten(BaseException):
    """Ends the compile of a graph after its code is written; no ``except Exception`` may hold it up."""


def each_graph_hook(compiled: Callable[[Callable[..., Any], Any, tuple[Any, ...], dict[str, Any]], Any]) -> Hook:
    """``compiled(original, graph, args, kwargs)`` is called in place of Inductor's compile of each graph."""

    def apply(compile_fx: types.ModuleType) -> Undo:
        original: Any = compile_fx._compile_fx_inner

        def _compile_fx_inner(gm: Any, *args: Any, **kwargs: Any) -> Any:
            return compiled(original, gm, args, kwargs)

        return replace_attribute(compile_fx, "_compile_fx_inner", _compile_fx_inner)

    return Hook("kernels for other devices", "torch._inductor.compile_fx", "2.11 and 2.13", apply)


def become(properties: Any) -> None:
    """From here on this process takes ``cuda:0`` for a GPU with these properties.

    Parameters
    ----------
    properties
        An object with the attributes of ``torch.cuda.get_device_properties``.

    Raises AttributeError or OSError if torch is not as expected.
    """
    torch: Any = sys.modules["torch"]
    torch.set_num_threads(1)  # threads of the parent do not exist here
    capability = (properties.major, properties.minor)
    _set_guard(torch)
    _set_interface(properties)
    for name, answer in (
        ("get_device_properties", properties),
        ("get_device_capability", capability),
        ("get_device_name", properties.name),
        ("current_device", 0),
        ("device_count", 1),
    ):
        setattr(torch.cuda, name, _answering(answer))
    _forget_answers()


def _forget_answers() -> None:
    """What this process, as a copy of one without a GPU, remembers about triton and the device."""
    for name in ("torch.utils._triton", "torch._inductor.utils", "torch._inductor.runtime.hints"):
        module = sys.modules.get(name)
        for holder in (module, getattr(module, "DeviceProperties", None)):
            for function in list(vars(holder).values()) if holder is not None else ():
                clear = getattr(getattr(function, "__func__", function), "cache_clear", None)
                if clear is not None:
                    clear()


def _answering(answer: Any) -> Callable[..., Any]:
    return lambda *_, **__: answer


def _set_guard(torch: Any) -> None:
    """Operators on fake tensors change to the tensors' device first, which needs a guard of its kind; a build for CUDA
    has one for machines without a GPU, and in one for the CPU that of the device *meta* takes its place."""
    if torch.version.cuda:
        torch._C._ensureCUDADeviceGuardSet()
        return
    library = ctypes.CDLL(os.path.join(os.path.dirname(torch.__file__), "lib", "libc10.so"))
    guards = (ctypes.c_void_p * (_META + 1)).in_dll(library, _GUARDS)
    if not guards[_CUDA]:
        guards[_CUDA] = guards[_META]


def _set_interface(properties: Any) -> None:
    interfaces: Any = importlib.import_module("torch._dynamo.device_interface")
    interfaces.init_device_reg()
    zero, nothing, yes = _answering(0), _answering(None), _answering(True)
    worker = {"set_device": nothing, "current_device": zero, "get_device_properties": _answering(properties)}
    answers = {
        "is_available": yes,
        "current_device": zero,
        "device_count": _answering(1),
        "get_device_properties": _answering(properties),
        "get_compute_capability": _answering(10 * properties.major + properties.minor),
        "get_raw_stream": zero,
        "is_triton_capable": yes,
        "raise_if_triton_unavailable": nothing,
        "is_bf16_supported": yes,
        "synchronize": nothing,
        "set_device": nothing,
        "exchange_device": zero,
        "maybe_exchange_device": zero,
    }
    members: dict[str, Any] = {name: staticmethod(answer) for name, answer in answers.items()}
    members["Worker"] = type("Worker", (), {name: staticmethod(answer) for name, answer in worker.items()})
    for name in ("cuda", "cuda:0"):
        interfaces.register_interface_for_device(name, type("Interface", (interfaces.CudaInterface,), members))


# --- one graph --------------------------------------------------------------------------------------------------------


def compile_for(compile: Callable[..., Any], graph: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> None:
    """Compiles a graph of fake CPU tensors as one of ``cuda:0``, down to its code, which is not loaded.

    Raises NotRetargetedError for what cannot be put on another device, and what Inductor raises.
    """
    codecache: Any = importlib.import_module("torch._inductor.codecache")
    compile_fx: Any = importlib.import_module("torch._inductor.compile_fx")

    def load_by_key_path(key: str, path: str, *_: Any, **__: Any) -> Any:
        return types.SimpleNamespace(__file__=path, call=None)

    def written(*_: Any, **__: Any) -> Any:
        raise _CodeIsWritten

    codecache.PyCodeCache.load_by_key_path = load_by_key_path
    compile_fx.CompiledFxGraph = written
    inputs, *rest = args
    moved = _retarget(graph, inputs)
    with contextlib.suppress(_CodeIsWritten):
        compile(graph, moved, *rest, **kwargs)


def _retarget(graph: Any, inputs: Any) -> list[Any]:
    """Moves a graph to ``cuda:0`` in place; returns its example inputs there."""
    torch: Any = sys.modules["torch"]
    fake_tensor: Any = sys.modules["torch._subclasses"].FakeTensor
    pytree: Any = sys.modules["torch.utils._pytree"]
    there = torch.device("cuda:0")

    def moved(value: Any) -> Any:
        if isinstance(value, fake_tensor) and value.device.type == "cpu":
            with value.fake_mode:
                return torch.empty_strided(value.size(), value.stride(), dtype=value.dtype, device=there)
        return value

    def device_of(argument: Any) -> Any:
        return there if isinstance(argument, torch.device) and argument.type == "cpu" else argument

    inner = [each for each in graph.modules() if isinstance(each, torch.fx.GraphModule) and each is not graph]
    for module in (graph, *inner):
        _choose_attention(module.graph, torch)
        for node in module.graph.nodes:
            node.args = torch.fx.node.map_aggregate(node.args, device_of)
            node.kwargs = torch.fx.node.map_aggregate(node.kwargs, device_of)
            if node.op == "placeholder" and "val" in node.meta:
                node.meta["val"] = pytree.tree_map(moved, node.meta["val"])
        module.recompile()
    return [moved(value) for value in inputs]


_FLASH_ON_CPU = "_scaled_dot_product_flash_attention_for_cpu"


def _choose_attention(graph: Any, torch: Any) -> None:
    """Attention is chosen by device before the graph is made.  A graph without its backward gets the operator that
    PyTorch chooses on the GPU: cuDNN's from Hopper on, else flash attention; the memory-efficient one for float32."""
    for node in list(graph.nodes):
        name = str(getattr(node.target, "_opname", ""))
        if name == f"{_FLASH_ON_CPU}_backward":
            raise NotRetargetedError(
                "the attention of a backward is the CPU's, which is chosen before the graph is made"
            )
        if name != _FLASH_ON_CPU:
            continue
        if any(user.target is not operator.getitem or user.args[1] != 0 for user in node.users):
            raise NotRetargetedError(
                "the attention of a training step is the CPU's, which is chosen before the graph is made"
            )
        query, key, value = node.args[:3]
        dropout = node.args[3] if len(node.args) > 3 else 0.0
        causal = node.args[4] if len(node.args) > 4 else False
        mask, scale = node.kwargs.get("attn_mask"), node.kwargs.get("scale")
        half = query.meta["val"].dtype in (torch.float16, torch.bfloat16)
        aten, is_new = torch.ops.aten, torch.cuda.get_device_capability()[0] >= 9
        if half and is_new:
            node.target = aten._scaled_dot_product_cudnn_attention.default
            node.args = (query, key, value, mask, False, dropout, causal, False)
        elif half and mask is None:
            node.target = aten._scaled_dot_product_flash_attention.default
            node.args = (query, key, value, dropout, causal, False)
        else:
            node.target = aten._scaled_dot_product_efficient_attention.default
            node.args = (query, key, value, mask, False, dropout, causal)
        node.kwargs = {"scale": scale}
