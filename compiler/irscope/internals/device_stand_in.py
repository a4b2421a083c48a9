"""Has this process believe that there is a GPU, so that Inductor generates code for one that is not here.

For a forked child alone, which compiles one graph and ends: what is changed here is never set back.  Nothing is ever
executed on the GPU: tensors are fake, and the generated code is not loaded.
"""

from __future__ import annotations

import contextlib
import ctypes
import importlib
import os
import sys
import threading
import types
from collections.abc import Callable, Iterator, Sequence
from typing import Any

from irscope.internals import target_attention, target_cuda_graphs, target_decisions
from irscope.internals.hooks import Hook, Hooks, Undo, replace_attribute
from irscope.internals.target_cpu_tensors import cpu_tensors
from irscope.internals.tuning_hooks import Replay, choose_again

_CUDA, _META = 1, 14
"""Numbers of ``c10::DeviceType``."""
_GUARDS = "_ZN3c104impl26device_guard_impl_registryE"
_HIP = "7.0.51831"
"""The version of HIP that PyTorch is then built for; nothing but whether there is one is of interest."""

Compile = Callable[..., Any]


class _CodeIsWritten(BaseException):
    """Ends the compile of a graph after its code is written; no ``except Exception`` may hold it up.

    Attributes:
        output_strides: Strides of each output, as Inductor has laid it out; a backward reads what the forward has saved
            in that layout.
    """

    def __init__(self, output_strides: Any) -> None:
        super().__init__()
        self.output_strides = output_strides


def autograd_hook() -> Hook:
    """Lets a copy of the process run a backward: autograd begins before it sees a device.

    In its first backward autograd starts a thread for each device that it sees, and then refuses to run in a copy.  A
    fake mode in a build for CUDA shows it a device that is not there.
    """

    def apply(torch: Any) -> Undo:
        torch.ones((), requires_grad=True).backward()
        return lambda: None

    return Hook("autograd in a copy of the process", "torch", "2.11 to 2.14", apply)


def each_program_hook(compiled: Callable[[Compile, Any, tuple[Any, ...], dict[str, Any]], Any]) -> Hook:
    """``compiled(original, graph, args, kwargs)`` is called in place of Inductor's compile of each of Dynamo's graphs."""
    inside = threading.local()

    def apply(compile_fx: types.ModuleType) -> Undo:
        original: Any = compile_fx.compile_fx

        def seen(model_: Any, *args: Any, **kwargs: Any) -> Any:
            if getattr(inside, "yes", False):  # it calls itself where options of the compile are given
                return original(model_, *args, **kwargs)
            inside.yes = True
            try:
                return compiled(original, model_, args, kwargs)
            finally:
                inside.yes = False

        return replace_attribute(compile_fx, "compile_fx", seen)

    return Hook("kernels for other devices", "torch._inductor.compile_fx", "2.11 and 2.13", apply)


def become(properties: Any) -> None:
    """Makes this process take ``cuda:0`` for a GPU with these properties.

    Args:
        properties: An object with the attributes of ``torch.cuda.get_device_properties``; with a ``gcnArchName`` it is
            one of AMD's.

    Raises AttributeError or OSError if torch is not as expected.
    """
    torch: Any = sys.modules["torch"]
    torch.set_num_threads(1)  # threads of the parent do not exist here
    capability = (properties.major, properties.minor)
    _set_guard(torch)
    # It would make a real tensor where there is a GPU.
    replace_attribute(importlib.import_module("torch._subclasses.fake_tensor"), "init_gpu_context", _answering(None))
    if properties.gcnArchName:
        torch.version.hip, torch.version.cuda = _HIP, None
    _set_interface(properties)
    for name, answer in (
        ("get_device_properties", properties),
        ("get_device_capability", capability),
        ("get_device_name", properties.name),
        ("current_device", 0),
        ("device_count", 1),
        # Where there is a GPU, too: what asks for one wants to use it.
        ("is_available", False),
        ("is_initialized", False),
        ("_lazy_init", None),
    ):
        setattr(torch.cuda, name, _answering(answer))
    # What a checkpoint computes again with random numbers, such as attention, keeps a state of the device's generator.
    torch.cuda.default_generators = (_generator_there(torch),)
    _forget_answers()


def prepare_for_next(modules: Sequence[str]) -> None:
    """In the run's process: does once what each child would do again.

    Args:
        modules: What a child has imported for its compile, which this process imports now.

    Triton's hash of itself, which is in each kernel, reads hundreds of megabytes.
    """
    for name in modules:
        if name not in sys.modules:
            with contextlib.suppress(Exception):  # the child imports it again
                importlib.import_module(name)
    key = getattr(sys.modules.get("triton.runtime.cache"), "triton_key", None)
    if modules and key is not None:
        with contextlib.suppress(Exception):
            key()


def _forget_answers() -> None:
    """What this process, as a copy of one without a GPU, remembers about triton and the device."""
    for name in ("torch.utils._triton", "torch._inductor.utils", "torch._inductor.runtime.hints"):
        module = sys.modules.get(name)
        for holder in (module, getattr(module, "DeviceProperties", None)):
            for function in list(vars(holder).values()) if holder is not None else ():
                clear = getattr(getattr(function, "__func__", function), "cache_clear", None)
                if clear is not None:
                    clear()


def _generator_there(torch: Any) -> Any:
    """A generator of the CPU's that says it is the device's; nothing is drawn from it."""

    class Generator(torch.Generator):  # type: ignore[misc]
        device = _there()

        def clone_state(self) -> Any:
            return type(self)()

    return Generator()


def _answering(answer: Any) -> Callable[..., Any]:
    return lambda *_, **__: answer


def _set_guard(torch: Any) -> None:
    """Operators on fake tensors change to the tensors' device first, which needs a guard of its kind.  That of the device
    *meta* takes its place, which does nothing: a build for the CPU has none for CUDA, and that of a build for CUDA would
    talk to a GPU where there is one."""
    library = ctypes.CDLL(os.path.join(os.path.dirname(torch.__file__), "lib", "libc10.so"))
    guards = (ctypes.c_void_p * (_META + 1)).in_dll(library, _GUARDS)
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
        "get_compute_capability": _answering(
            properties.gcnArchName.partition(":")[0] or 10 * properties.major + properties.minor
        ),
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


# --- one program ------------------------------------------------------------------------------------------------------


def compile_for(
    compile: Compile, program: Any, args: tuple[Any, ...], kwargs: dict[str, Any], replay: Replay, is_gpu: bool = True
) -> None:
    """Compiles Dynamo's graph of CPU tensors as one of ``cuda:0``, down to its code, which is not loaded.

    Args:
        replay: What the real device has chosen by timing.
        is_gpu: Whether it is for a GPU; else the graph stays on the CPU.

    Forward and backward are traced with CPU tensors, since autograd's engine needs a real device, but for attention,
    whose operator is the device's.  The graph that comes of it is moved before the first pass that asks for the device.

    Raises what Inductor raises.
    """
    compile_fx: Any = importlib.import_module("torch._inductor.compile_fx")
    functorch: Any = importlib.import_module("torch._functorch.config")
    functorch.enable_autograd_cache = False
    functorch.force_non_lazy_backward_lowering = True
    config: Any = importlib.import_module("torch._inductor.config")
    # No key of a cache that is not asked, and no processes that would compile what is not loaded.
    config.fx_graph_cache, config.compile_threads = False, 1
    _do_not_tune(replay)
    inner, joint_passes = compile_fx._compile_fx_inner, compile_fx._recursive_joint_graph_passes
    nothing = _code_that_does_nothing()
    utils: Any = importlib.import_module("torch._inductor.utils")

    def _compile_fx_inner(gm: Any, example_inputs: Any, *rest: Any, **facts: Any) -> Any:
        if is_gpu:
            _move_graph(gm)
        try:
            inner(gm, [_moved(value) for value in example_inputs] if is_gpu else example_inputs, *rest, **facts)
        except _CodeIsWritten as written:
            utils.set_tracing_context_output_strides(example_inputs, written)
            return nothing()
        raise RuntimeError("Inductor did not generate code for this graph")

    def _recursive_joint_graph_passes(gm: Any, *rest: Any, **facts: Any) -> Any:
        # Patterns are made of real tensors, so of the CPU's, and constants are computed.
        _move_graph(gm, creates=False)
        return joint_passes(gm, *rest, **facts)

    compile_fx._compile_fx_inner = _compile_fx_inner
    if is_gpu:
        compile_fx._recursive_joint_graph_passes = _recursive_joint_graph_passes
        target_cuda_graphs.on_cpu[:] = cpu_tensors(program, args[0] if args else ())
        target_attention.use_that_of_the_device(program)
        target_decisions.decide_as_on(_there())
    with Hooks(target_attention.attention_hooks() if is_gpu else []), _written_only(compile_fx):
        compile(program, *args, **kwargs)


@contextlib.contextmanager
def _written_only(compile_fx: Any) -> Iterator[None]:
    codecache: Any = importlib.import_module("torch._inductor.codecache")

    def load_by_key_path(key: str, path: str, *_: Any, **__: Any) -> Any:
        return types.SimpleNamespace(__file__=path, key=key, call=None)

    initialize = compile_fx.CompiledFxGraph.__init__

    class CompiledFxGraph:
        def __init__(self, code: Any, graph: Any, program: Any, output_strides: Any, *rest: Any, **facts: Any) -> None:
            target_cuda_graphs.note_graph(initialize, code, graph, program, output_strides, *rest, **facts)
            raise _CodeIsWritten(output_strides)

    compile_fx.CompiledFxGraph = CompiledFxGraph
    target_cuda_graphs.note_partitions()
    load_again = replace_attribute(codecache.PyCodeCache, "load_by_key_path", load_by_key_path)
    try:
        yield
    finally:
        load_again()


def _code_that_does_nothing() -> type[Any]:
    output_code: Any = importlib.import_module("torch._inductor.output_code")

    class Nothing(output_code.OutputCode):  # type: ignore[misc]
        _boxed_call = True

        def post_compile(self, *_: Any, **__: Any) -> None:
            """There is nothing to load."""

    return Nothing


open_choices: list[str] = []
"""What PyTorch would have chosen by timing in this process, in words for the user."""


def _do_not_tune(replay: Replay) -> None:
    """Where Inductor would time something, it takes what ``replay`` knows, or always the same."""
    select: Any = importlib.import_module("torch._inductor.select_algorithm")
    for name in ("scheduler", "fx_passes.pad_mm"):
        importlib.import_module(f"torch._inductor.{name}")
    choose_again(replay, lambda choice: isinstance(choice, select.TritonTemplateCaller), open_choices)


# --- moving -----------------------------------------------------------------------------------------------------------


def _there() -> Any:
    return sys.modules["torch"].device("cuda:0")


def _moved(value: Any) -> Any:
    """A fake tensor there that shares the storage with the one here: what aliases what decides what may be merged."""
    fakes: Any = sys.modules["torch._subclasses.fake_tensor"]
    if not isinstance(value, fakes.FakeTensor) or value.device.type != "cpu":
        return value
    with fakes.in_kernel_invocation_manager(value.fake_mode):
        meta = sys.modules["torch"].ops.aten.detach.default(value)
    return fakes.FakeTensor(value.fake_mode, meta, _there())


def _move_graph(graph: Any, creates: bool = True) -> None:
    """Moves a graph to ``cuda:0`` in place, with the graphs in it; one that is there stays as it is.

    Args:
        creates: Whether the operations, too, that create tensors create them there.
    """
    torch: Any = sys.modules["torch"]
    pytree: Any = sys.modules["torch.utils._pytree"]

    def device_of(argument: Any) -> Any:
        return _there() if isinstance(argument, torch.device) and argument.type == "cpu" else argument

    for module in [each for each in graph.modules() if isinstance(each, torch.fx.GraphModule)]:
        for node in module.graph.nodes:
            if creates:
                node.args = torch.fx.node.map_aggregate(node.args, device_of)
                node.kwargs = torch.fx.node.map_aggregate(node.kwargs, device_of)
            if "val" in node.meta:
                node.meta["val"] = pytree.tree_map(_moved, node.meta["val"])
        module.recompile()
