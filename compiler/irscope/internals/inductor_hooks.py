"""Hooks into Inductor: its loggers, its memory plan, and the graphs that it compiles and calls."""

from __future__ import annotations

import functools
import types
from collections.abc import Callable
from typing import Any, Protocol

from irscope.internals.hooks import Hook, Undo, replace_attribute, undo_all


def hints_hook(attach: Callable[[], Undo]) -> Hook:
    """Attaches to the logger of performance hints once torch has configured it.

    PyTorch resets the levels of its loggers while it is imported, so it would be too early before.
    """
    return Hook("Inductor's performance hints", "torch._inductor.graph", "2.9 to 2.13", lambda _: attach())


def memory_plan_hook(receive: Callable[[Any], None]) -> Hook:
    """Reports the wrapper of each graph when it has planned its memory.  The receiver must not raise."""

    def apply(wrapper: Any) -> Undo:
        cls = wrapper.PythonWrapperCodegen
        plan = cls.run_wrapper_ir_passes

        def run_wrapper_ir_passes(self: Any, *args: Any, **kwargs: Any) -> Any:
            result = plan(self, *args, **kwargs)
            receive(self)
            return result

        return replace_attribute(cls, "run_wrapper_ir_passes", run_wrapper_ir_passes)

    return Hook("the memory plan", "torch._inductor.codegen.wrapper", "2.9 to 2.15", apply)


class CompileEvents(Protocol):
    """What happens while Inductor compiles one graph (forward, backward or inference).  Must not raise."""

    def begins(self, backward: bool) -> Any:
        """A graph's compilation begins, maybe inside another one's; what is returned goes to `ends`."""

    def ends(self, token: Any, result: Any) -> None:
        """It has ended; ``result``: the compiled graph, None if it failed."""

    def lowered(self, lowering: Any) -> None:
        """The code of a graph was generated."""

    def loaded(self, module: Any) -> None:
        """The generated code was loaded as a module."""


def compile_hooks(events: CompileEvents, applied: Callable[[], Undo]) -> list[Hook]:
    """Reports each graph that Inductor compiles.  ``applied`` is called with the first hook, its result at the end."""

    def wrap_compile(compile_fx: types.ModuleType) -> Undo:
        original: Any = compile_fx._compile_fx_inner

        @functools.wraps(original)
        def _compile_fx_inner(gm: Any, *args: Any, **kwargs: Any) -> Any:
            token, result = events.begins(bool(kwargs.get("is_backward", False))), None
            try:
                result = original(gm, *args, **kwargs)
            finally:
                events.ends(token, result)
            return result

        return undo_all([applied(), replace_attribute(compile_fx, "_compile_fx_inner", _compile_fx_inner)])

    def wrap_lowering(graph: types.ModuleType) -> Undo:
        cls: Any = graph.GraphLowering
        codegen, to_module = cls.codegen, cls.compile_to_module

        @functools.wraps(codegen)
        def _codegen(this: Any) -> Any:
            result = codegen(this)
            events.lowered(this)
            return result

        @functools.wraps(to_module)
        def _compile_to_module(this: Any) -> Any:
            module = to_module(this)
            events.loaded(module)
            return module

        return undo_all(
            [
                replace_attribute(cls, "codegen", _codegen),
                replace_attribute(cls, "compile_to_module", _compile_to_module),
            ]
        )

    versions = "2.11 and 2.13"
    return [
        Hook("values of nodes", "torch._inductor.compile_fx", versions, wrap_compile),
        Hook("values of compiled code", "torch._inductor.graph", versions, wrap_lowering),
    ]


def replace_call(compiled: Any, called: Callable[[Any, Callable[[Any], Any]], Any]) -> bool:
    """Has ``called(inputs, run)`` called in place of a compiled graph's code, where ``run(inputs)`` runs that.

    Returns whether there is any: a graph without operations is run as it is.
    """
    run = getattr(compiled, "current_callable", None)
    if run is None:
        return False

    @functools.wraps(run)
    def current_callable(inputs: Any) -> Any:
        return called(inputs, run)

    compiled.current_callable = current_callable
    return True
