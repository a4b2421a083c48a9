"""Keeps what a value run needs of each graph that Inductor compiles, and stands at the calls of the compiled code.

``_compile_fx_inner`` compiles one graph (forward, backward or inference); the object that it returns has the compiled
function in ``current_callable``, which is replaced by one that tells us before and after.
"""

from __future__ import annotations

import functools
import inspect
import sys
import threading
import types
from collections.abc import Callable
from typing import Any

from irscope.capture.hooks import Hook, Undo, replace_attribute
from irscope.values.compiled import Buffer, CompiledGraph
from irscope.values.interpreting import KeptGraph

WHAT = "values of nodes"
_VERSIONS = "2.11 and 2.13"
_TRACING = "compile_and_call_fx_graph"


class CallWatcher:
    """Follows compilations and calls.

    Parameters
    ----------
    begins
        Tells which compile a graph belongs to; nothing where it is of no interest.
    called
        Gets the compiled graph, the list of its inputs and a function that runs it; returns what that returned.
    guarded
        Keeps what goes wrong here away from PyTorch.
    """

    def __init__(
        self,
        begins: Callable[[], str | None],
        called: Callable[[CompiledGraph, list[Any], Callable[[list[Any]], Any]], Any],
        guarded: Callable[[Callable[..., None]], Callable[..., None]],
    ) -> None:
        self._begins, self._called, self._guarded = begins, called, guarded
        self._local = threading.local()
        self._active = True

    def hooks(self) -> list[Hook]:
        return [
            Hook(WHAT, "torch._inductor.compile_fx", _VERSIONS, self._wrap_compile),
            Hook("values of compiled code", "torch._inductor.graph", _VERSIONS, self._wrap_lowering),
        ]

    def _wrap_compile(self, compile_fx: types.ModuleType) -> Undo:
        original: Any = compile_fx._compile_fx_inner

        @functools.wraps(original)
        def _compile_fx_inner(gm: Any, *args: Any, **kwargs: Any) -> Any:
            outer, compiled = getattr(self._local, "compiled", None), None
            if (name := self._begins()) is not None:
                compiled = CompiledGraph(name, bool(kwargs.get("is_backward", False)))
            self._local.compiled = compiled
            try:
                result = original(gm, *args, **kwargs)
            finally:
                self._local.compiled = outer
            if compiled is not None:
                self._guarded(self._stand_at)(compiled, result)
            return result

        undo = replace_attribute(compile_fx, "_compile_fx_inner", _compile_fx_inner)

        def restore() -> None:
            self._active = False
            undo()

        return restore

    def _stand_at(self, compiled: CompiledGraph, result: Any) -> None:
        run = getattr(result, "current_callable", None)
        if run is None:
            return  # a graph without operations: PyTorch runs it as it is
        if compiled.graph is None:
            raise LookupError("the graph that was lowered was not seen")

        @functools.wraps(run)
        def current_callable(inputs: Any) -> Any:
            if not self._active:
                return run(inputs)
            return self._called(compiled, inputs, run)

        result.current_callable = current_callable

    def _wrap_lowering(self, graph: types.ModuleType) -> Undo:
        cls: Any = graph.GraphLowering
        codegen, to_module = cls.codegen, cls.compile_to_module

        @functools.wraps(codegen)
        def _codegen(this: Any) -> Any:
            result = codegen(this)
            if (compiled := getattr(self._local, "compiled", None)) is not None:
                self._guarded(_note_lowering)(compiled, this)
            return result

        @functools.wraps(to_module)
        def _compile_to_module(this: Any) -> Any:
            module = to_module(this)
            if (compiled := getattr(self._local, "compiled", None)) is not None:
                compiled.module = module
            return module

        undo = [
            replace_attribute(cls, "codegen", _codegen),
            replace_attribute(cls, "compile_to_module", _compile_to_module),
        ]

        def restore() -> None:
            for step in undo:
                step()

        return restore


def arguments_traced() -> tuple[str, ...]:
    """The arguments of the function whose graph Dynamo is about to compile, by name.

    Checked on torch 2.11 and 2.13.  Raises LookupError where the stack does not tell.
    """
    frame: types.FrameType | None = sys._getframe(1)
    while frame is not None:
        if frame.f_code.co_name == _TRACING:
            code = getattr(frame.f_locals.get("tx"), "f_code", None)
            if isinstance(code, types.CodeType):
                count = code.co_argcount + code.co_kwonlyargcount
                count += bool(code.co_flags & inspect.CO_VARARGS) + bool(code.co_flags & inspect.CO_VARKEYWORDS)
                return code.co_varnames[:count]
        frame = frame.f_back
    raise LookupError(f"{_TRACING} of torch._dynamo.output_graph has no tx.f_code (checked on torch {_VERSIONS})")


def _note_lowering(compiled: CompiledGraph, lowering: Any) -> None:
    compiled.graph = KeptGraph(lowering.module)
    config: Any = sys.modules["torch._inductor.config"]
    compiled.config, compiled.settings = config.get_config_copy(), config.codegen_config()
    names = {node.name for node in compiled.graph.graph.nodes}
    written_again = _mutated(lowering)
    for buffer in lowering.buffers:
        origin = buffer.get_origin_node()
        name = origin.name if origin is not None and origin.name in names else ""
        if buffer.get_name() in written_again:
            name = ""  # what it holds depends on when one looks
        try:
            dtype = str(buffer.get_dtype()).removeprefix("torch.")
        except (NotImplementedError, AttributeError):  # several outputs: its parts are buffers of their own
            name, dtype = "", ""
        compiled.buffers[buffer.get_name()] = Buffer(buffer.get_name(), name, dtype)


def _mutated(lowering: Any) -> set[str]:
    """The buffers that something writes to in place after they were made."""
    found: set[str] = set()
    for each in [*lowering.buffers, *getattr(lowering, "operations", ())]:
        names = getattr(each, "get_mutation_names", None)
        if names is not None:
            found.update(names())
    return found
