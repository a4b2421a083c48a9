"""TorchScript's private side: inlining, the log of its executor, and the trees of Python values."""

from __future__ import annotations

import contextlib
import functools
import os
import sys
import tempfile
import types
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

from irscope.internals.frames import callers
from irscope.internals.hooks import Hook, Undo, replace_attribute, undo_all
from irscope.internals.names import PrivateName

_VERSIONS = "2.9 to 2.13"
_INLINE = PrivateName("TorchScript's inlined graph", "torch._C", "_jit_pass_inline", _VERSIONS)
_GET_LOG = PrivateName("the passes of TorchScript's executor", "torch._C", "_jit_get_logging_option", _VERSIONS)
_SET_LOG = PrivateName("the passes of TorchScript's executor", "torch._C", "_jit_set_logging_option", _VERSIONS)
_TREE = PrivateName("the inputs of a traced program", "torch.utils._pytree", "", _VERSIONS)
_VALUE = PrivateName("what a trace depends on", "torch._C", "_get_value_trace", _VERSIONS)
_FUNCTIONS = PrivateName("the lines of calls in a script", "torch.jit._state", "_python_cu", _VERSIONS)
_EXECUTOR = ">>>profiling_graph_executor_impl"
"""Logs every graph of the executor."""


def inline(graph: Any) -> None:
    """Puts what a graph calls in the place of the calls, in the graph itself."""
    _INLINE.get()(graph)


def flatten(value: Any) -> tuple[list[Any], Any]:
    """The leaves of nested Python containers, and what `unflatten` needs beside them."""
    leaves, shape = _TREE.get().tree_flatten(value)
    return list(leaves), shape


def unflatten(leaves: list[Any], shape: Any) -> Any:
    """The inverse of `flatten`."""
    return _TREE.get().tree_unflatten(leaves, shape)


def has_hooks(tensor: Any) -> bool:
    """Whether functions of the script are called when a tensor's gradient is computed."""
    return bool(tensor._backward_hooks or getattr(tensor, "_post_accumulate_grad_hooks", None))


_CONVERSIONS = ("__bool__", "__int__", "__float__", "__index__", "item", "tolist")
_OF_SHAPES = ("aten::size", "aten::dim", "aten::numel", "prim::Constant")
_INPUTS = ("prim::Param", "prim::GetAttr")


@contextlib.contextmanager
def conversions_seen(on_conversion: Callable[[bool], None]) -> Iterator[None]:
    """While a program is traced: tells before each conversion of a tensor to a Python value whether it follows from the
    shapes of the inputs alone."""
    tensor: Any = sys.modules["torch"].Tensor
    before = {name: getattr(tensor, name) for name in _CONVERSIONS}

    def seen(original: Any) -> Any:
        def convert(self: Any, *args: Any) -> Any:
            on_conversion(_is_of_shapes(self))
            return original(self, *args)

        return convert

    own = {name: name in vars(tensor) for name in _CONVERSIONS}
    try:
        for name, original in before.items():
            setattr(tensor, name, seen(original))
        yield
    finally:
        for name, original in before.items():
            setattr(tensor, name, original) if own[name] else delattr(tensor, name)


def _is_of_shapes(tensor: Any) -> bool:
    try:
        todo = [_VALUE.get()(tensor).node()]
    except RuntimeError:  # it is not traced: a constant
        return True
    known: set[str] = set()
    while todo:
        node = todo.pop()
        if node.kind() in _INPUTS:
            return False
        if node.kind() in _OF_SHAPES:
            continue
        for value in node.inputs():
            if value.debugName() not in known:
                known.add(value.debugName())
                todo.append(value.node())
    return True


@contextlib.contextmanager
def executor_log(receive: Callable[[str], None]) -> Iterator[None]:
    """Hands over what the executor logs meanwhile.

    It logs to the process's standard error and nowhere else, so this is a file for that time.  What else is printed there
    is printed at the end.  Raises OSError if the process has no standard error.
    """
    get, set_ = _GET_LOG.get(), _SET_LOG.get()
    if sys.stderr is not None:
        sys.stderr.flush()
    with tempfile.TemporaryFile() as file:
        kept, before = os.dup(2), get()
        try:
            os.dup2(file.fileno(), 2)
            set_(_EXECUTOR)
            yield
        finally:
            set_(before)
            if sys.stderr is not None:
                sys.stderr.flush()
            os.dup2(kept, 2)
            file.seek(0)
            log, other = list[str](), list[str]()
            for line in file.read().decode("utf-8", "replace").splitlines(keepends=True):
                (log if line.startswith(_LOGGED) else other).append(line)
            if other:
                os.write(kept, "".join(other).encode())
            os.close(kept)
            receive("".join(log))


_LOGGED = ("[DUMP profiling_graph_executor_impl", "[DEBUG profiling_graph_executor_impl")


# --- what a script makes with torch.jit itself ------------------------------------------------------------------------

_MAKERS = ("script", "trace", "trace_module", "freeze", "optimize_for_inference", "load")


def made_hook(see: Callable[[str, tuple[Any, ...], Any, types.FrameType], None]) -> Hook:
    """Calls ``see(name, arguments, made, caller)`` after each call of ``torch.jit.script`` and similar functions.

    What other functions of PyTorch make is not seen: they do not call it by its name in ``torch.jit``.
    """

    def apply(torch: types.ModuleType) -> Undo:
        jit: Any = torch.jit

        def watched(name: str) -> Undo:
            before: Callable[..., Any] = vars(jit)[name]

            @functools.wraps(before)
            def make(*args: Any, **kwargs: Any) -> Any:
                if name == "script" and len(args) < 3:  # it looks up names in the frame of its caller
                    kwargs["_frames_up"] = kwargs.get("_frames_up", 0) + 1
                made = before(*args, **kwargs)
                given = args or tuple(kwargs.get(one) for one in ("obj", "func", "mod", "f") if one in kwargs)
                see(name, given, made, next(callers()))
                return made

            return replace_attribute(jit, name, make)

        return undo_all([watched(name) for name in _MAKERS])

    return Hook("the programs that the script makes with torch.jit", "torch", _VERSIONS, apply)


def called_hook(see: Callable[[Any, tuple[Any, ...], dict[str, Any]], None]) -> Hook:
    """Calls ``see(program, args, kwargs)`` before each call from Python of a TorchScript function or method."""

    def apply(torch: types.ModuleType) -> Undo:
        core: Any = torch._C

        def watched(kind: Any) -> Undo:
            before: Callable[..., Any] = kind.__call__

            @functools.wraps(before)
            def call(self: Any, *args: Any, **kwargs: Any) -> Any:
                see(self, args, kwargs)
                return before(self, *args, **kwargs)

            return replace_attribute(kind, "__call__", call)

        return undo_all([watched(core.ScriptFunction), watched(core.ScriptMethod)])

    return Hook("the calls of what the script makes with torch.jit", "torch", _VERSIONS, apply)


def methods_of(module: Any) -> dict[str, Any]:
    """The compiled methods of a TorchScript module; each is the object that the script calls, too."""
    return {name: getattr(module, name) for name in module._c._method_names()}


def submodule(module: Any, name: str) -> Any:
    """What a TorchScript module has below a name; None if that is not a module."""
    found = getattr(module, name, None)
    return found if isinstance(found, sys.modules["torch"].jit.ScriptModule) else None


def method_graph(module: Any, name: str) -> Any:
    """The graph of a method, before inlining."""
    return module._c._get_method(name).graph


def function_graph(call: Any) -> tuple[str, Any] | None:
    """The name of a scripted function and its graph before inlining, from a node that calls it; None if it has none."""
    name = str(next(iter(call.inputs())).type())
    units = _FUNCTIONS.find()
    found = None if units is None else units.find_function(name)
    return None if found is None else (name.rpartition(".")[2], found.graph)


def is_traced_now() -> bool:
    """Whether a call is a part of what the script traces."""
    return bool(sys.modules["torch"].jit.is_tracing())


def forget_runs(program: Any) -> None:
    """Makes the executor of a TorchScript function or method profile the next run, and optimize again."""
    program._debug_flush_compilation_cache()


# --- the tensor-expression fuser --------------------------------------------------------------------------------------

_FUSER = "TorchScript's tensor-expression fuser (NNC)"
_IS_ON = PrivateName(_FUSER, "torch._C", "_jit_texpr_fuser_enabled", _VERSIONS)
_ON_CPU = PrivateName(_FUSER, "torch._C", "_jit_can_fuse_on_cpu", _VERSIONS)
_ON_GPU = PrivateName(_FUSER, "torch._C", "_jit_can_fuse_on_gpu", _VERSIONS)
_LLVM = PrivateName(_FUSER, "torch._C", "_llvm_enabled", _VERSIONS)
_PARSE = PrivateName(_FUSER, "torch._C", "parse_ir", _VERSIONS)
_KERNEL = PrivateName(_FUSER, "torch._C", "_te.TensorExprKernel", _VERSIONS)


@dataclass(frozen=True)
class Fuser:
    """What the fuser may do in this process."""

    is_on: bool
    on_cpu: bool
    on_gpu: bool
    has_llvm: bool


def fuser() -> Fuser:
    """What the fuser may do now."""
    return Fuser(*(bool(one.get()()) for one in (_IS_ON, _ON_CPU, _ON_GPU, _LLVM)))


def fuser_loops(graph: str) -> str:
    """The loops that the fuser makes of a graph.  Raises RuntimeError if it cannot compile it."""
    return str(_KERNEL.get()(_PARSE.get()(graph)).get_codegen_stmt())
