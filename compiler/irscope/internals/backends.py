"""PyTorch's registry of backends, the hook that has the fast lane use another one, and the one that watches them."""

from __future__ import annotations

import functools
import importlib
import sys
import threading
import types
from collections.abc import Callable
from typing import Any, ClassVar

from irscope.internals import lane_differences
from irscope.internals.hooks import Hook, Undo, replace_attribute

_REGISTRY = "torch._dynamo.backends.registry"
_INDUCTOR, _COMPILE = "inductor", "torch._inductor.compile_fx"
_AOT_EAGER = "aot_eager"


def registered_backends() -> list[str]:
    """The names of all backends, `inductor` first; empty if Dynamo is not imported."""
    registry: Any = sys.modules.get(_REGISTRY)
    names = registry.list_backends() if registry is not None else []
    return sorted(names, key=lambda name: (name != _INDUCTOR, name))


def stand_in(backend: str, for_any: bool, aot: bool = False) -> Hook:
    """Lets Dynamo hand its graphs to a backend in place of the one that the script asks for.

    Args:
        for_any: Whether also in place of a backend that is the user's own function.  If not, that runs as it is: its
            failures are findings too.
        aot: Whether AOTAutograd takes all graphs of a backend that calls it, not only those for which that is known to
            matter.
    """

    def apply(eval_frame: types.ModuleType) -> Undo:
        original = eval_frame.get_compiler_fn

        def get_compiler_fn(compiler_fn: Any) -> Any:
            real = original(compiler_fn)
            if for_any:
                return original(_StandIn(backend, compiler_fn, None, aot))
            if not _is_registered(compiler_fn):
                return real
            stand_in = _StandIn(backend, compiler_fn, real, aot)
            stand_in.wrapper = original(stand_in)
            stand_in.wrapper.__name__ = name_of(real)  # Dynamo names it in its errors
            return stand_in.wrapper

        return replace_attribute(eval_frame, "get_compiler_fn", get_compiler_fn)

    what = f"the fast lane: the script's own backend was used instead of {backend}"
    return Hook(what=what, module="torch._dynamo.eval_frame", versions="2.9 to 2.13", apply=apply)


class _StandIn:
    """A backend in place of another one.

    Dynamo compiles a function again for another backend, mode or ``dynamic``.  It compares backends with ``==``, so
    two of these are equal where those that the script asked for are.

    When the interpreter shuts down, functions at exit and threads can still compile, but no pool takes work any more and
    some modules cannot be imported.  Whether a compile fails for that, only the script's own backend knows: so that runs.
    But a stand-in has not imported what the real backend would have.  Inductor's modules, which ``torch.compile`` imports
    without irscope, are imported late; the other backends need no pool, so the stand-in goes on where one has compiled.

    Args:
        real: What Dynamo would call without the stand-in; None: it takes its place at exit, too.
    """

    _ran: ClassVar[set[str]] = set()
    """The names of the backends in whose place one of these has compiled while the interpreter was not shutting down."""

    def __init__(self, backend: str, asked: Any, real: Any, aot: bool) -> None:
        self._asked, self._used, self._real, self._aot = asked, _looked_up(backend), real, aot
        self.compiler_name = backend
        self.wrapper: Any = None
        """What Dynamo has put around it."""

    def __eq__(self, other: object) -> bool:
        return isinstance(other, _StandIn) and bool(self._asked == other._asked)

    __hash__ = None  # type: ignore[assignment]

    def __call__(self, graph: Any, inputs: Any) -> Any:
        if self._real is None:
            return self._used(graph, inputs)
        name = name_of(self._real)
        if threading.main_thread().is_alive():
            self._ran.add(name)
        elif name == _INDUCTOR or not self._ran:
            if name == _INDUCTOR:
                _import_late(_COMPILE)
            return self._real(graph, inputs)
        if name in _WITHOUT_AOT:
            return self._used(graph, inputs)
        if name == _INDUCTOR:
            settings = getattr(self._asked, "config", {})
            lane_differences.report_what_inductor_shows(graph, inputs, bool(settings.get("triton.cudagraphs")))
        if lane_differences.takes_aot(graph, inputs, self._aot):
            return _looked_up(_AOT_EAGER)(graph, inputs)
        return self._used(graph, inputs)


_WITHOUT_AOT = ("eager", "eager_noexcept", "eager_debug", "pre_dispatch_eager")
"""Backends that run Dynamo's graph as it is."""


def _looked_up(backend: str) -> Any:
    registry: Any = sys.modules[_REGISTRY]
    return registry.lookup_backend(backend)


def _import_late(name: str) -> None:
    """Imports a module while the interpreter shuts down as if it had been imported before.

    `concurrent.futures` registers what ends its pools when it is imported, which is refused now: it is called at once,
    as it would have been called already.
    """
    module: Any = threading
    undo = replace_attribute(module, "_register_atexit", lambda end, *args, **kwargs: end(*args, **kwargs))
    try:
        importlib.import_module(name)
    finally:
        undo()


def _is_registered(compiler_fn: Any) -> bool:
    """Whether a backend is one of PyTorch's registry.

    ``torch.compile`` wraps what it was given: Inductor in its own class, anything else in one that holds the
    function as ``compiler_fn``, the user's own function too.
    """
    registry: Any = sys.modules[_REGISTRY]
    if isinstance(compiler_fn, str):
        if compiler_fn not in registry._BACKENDS:
            registry._lazy_import()
        return compiler_fn in registry._BACKENDS  # an unknown name fails, as without irscope
    if not hasattr(compiler_fn, "compiler_name"):
        return False
    function = getattr(compiler_fn, "compiler_fn", None)
    return function is None or any(function is known for known in registry._COMPILER_FNS.values())


def watched(called: Callable[[Any, Any, Any], Any]) -> Hook:
    """Calls ``called(backend, graph, inputs)`` where Dynamo hands a graph to its backend.

    What it returns takes the place of the compiled function; what it raises is the backend's own error.
    """

    def apply(output_graph: types.ModuleType) -> Undo:
        cls: Any = output_graph.__dict__["OutputGraph"]
        original = cls._call_user_compiler

        def _call_user_compiler(self: Any, *args: Any, **kwargs: Any) -> Any:
            asked = self.compiler_fn

            @functools.wraps(asked)  # Dynamo names it in its errors
            def compiler_fn(graph: Any, inputs: Any) -> Any:
                return called(asked, graph, inputs)

            self.compiler_fn = compiler_fn
            try:
                return original(self, *args, **kwargs)
            finally:
                self.compiler_fn = asked

        return replace_attribute(cls, "_call_user_compiler", _call_user_compiler)

    what = "whether the backend ran, and what it returned"
    return Hook(what=what, module="torch._dynamo.output_graph", versions="2.13", apply=apply)


def innermost(backend: Any) -> Any:
    """The function below what Dynamo and ``torch.compile`` put around a backend."""
    for _ in range(_MOST_WRAPPERS):
        inner = getattr(backend, "_torchdynamo_orig_backend", None) or getattr(backend, "compiler_fn", None)
        if inner is None:
            break
        backend = inner
    return backend


_MOST_WRAPPERS = 8


def name_of(backend: Any) -> str:
    """The name of a backend as ``torch.compile`` got it; of a partial that of its function, of another object its class.

    ``torch.compile`` calls these by their ``repr``, which has an address and so differs in each run.
    """
    inner = innermost(backend)
    if not isinstance(getattr(inner, "__name__", None), str):
        for attribute in ("_compiler_name", "compiler_name"):
            name = getattr(backend, attribute, None)
            if isinstance(name, str) and name and name != str(inner):  # that of a registered one
                return name
        return name_of(inner.func) if isinstance(inner, functools.partial) else type(inner).__name__
    names = (
        getattr(one, each, None) for one in (backend, inner) for each in ("_compiler_name", "compiler_name", "__name__")
    )
    return next(name for name in names if isinstance(name, str) and name)


def is_for_debugging(backend: Any) -> bool:
    """Whether PyTorch lists a backend as one for debugging, such as ``eager``, which compiles nothing on purpose."""
    return "debug" in (getattr(innermost(backend), "_tags", None) or ())


def callable_of(compiled: Any) -> Any:
    """What Dynamo calls of what a backend returned: it writes the Python of a lazy graph module before."""
    module = getattr(compiled, "__self__", compiled)
    write: Any = getattr(type(module), "real_recompile", None)  # of torch.fx._lazy_graph_module
    if write is None:
        return compiled
    write(module)
    return module.forward if getattr(compiled, "__name__", "") == "_lazy_forward" else compiled
