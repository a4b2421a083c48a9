"""PyTorch's registry of backends, the hook that has the fast lane use another one, and the one that watches them."""

from __future__ import annotations

import functools
import sys
import types
from collections.abc import Callable
from typing import Any

from irscope.internals.hooks import Hook, Undo, replace_attribute

_REGISTRY = "torch._dynamo.backends.registry"


def registered_backends() -> list[str]:
    """The names of all backends, `inductor` first; empty if Dynamo is not imported."""
    registry: Any = sys.modules.get(_REGISTRY)
    names = registry.list_backends() if registry is not None else []
    return sorted(names, key=lambda name: (name != "inductor", name))


def stand_in(backend: str, for_any: bool) -> Hook:
    """Lets Dynamo hand its graphs to a backend in place of the one that the script asks for.

    Parameters
    ----------
    for_any
        Whether also in place of a backend that is the user's own function.  If not, that runs as it is: its failures
        are findings too.
    """

    def apply(eval_frame: types.ModuleType) -> Undo:
        original = eval_frame.get_compiler_fn

        def get_compiler_fn(compiler_fn: Any) -> Any:
            replaced = for_any or _is_registered(compiler_fn)
            return original(_StandIn(backend, compiler_fn) if replaced else compiler_fn)

        return replace_attribute(eval_frame, "get_compiler_fn", get_compiler_fn)

    what = f"the fast lane: the script's own backend was used instead of {backend}"
    return Hook(what=what, module="torch._dynamo.eval_frame", versions="2.9 to 2.13", apply=apply)


class _StandIn:
    """A backend in place of another one.

    Dynamo compiles a function again for another backend, mode or ``dynamic``.  It compares backends with ``==``, so
    two of these are equal where those that the script asked for are.
    """

    def __init__(self, backend: str, asked: Any) -> None:
        registry: Any = sys.modules[_REGISTRY]
        self._asked, self._used = asked, registry.lookup_backend(backend)
        self.compiler_name = backend

    def __eq__(self, other: object) -> bool:
        return isinstance(other, _StandIn) and bool(self._asked == other._asked)

    __hash__ = None  # type: ignore[assignment]

    def __call__(self, graph: Any, inputs: Any) -> Any:
        return self._used(graph, inputs)


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

    ``torch.compile`` calls these by their ``repr``, which has an address, so that it is another one in each run.
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
