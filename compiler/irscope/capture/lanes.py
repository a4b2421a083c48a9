"""What each lane changes in PyTorch."""

from __future__ import annotations

import inspect
import sys
import types
from collections.abc import Callable
from typing import Any

from irscope.capture.hooks import Hook, Undo, replace_attribute
from irscope.protocol import Lane


def hooks_for(lane: Lane) -> list[Hook]:
    return [_EAGER_BACKEND] if lane is Lane.FAST else [_PROVENANCE, _MISS_FX_GRAPH_CACHE, _MISS_AUTOGRAD_CACHE]


def _use_eager_backend(eval_frame: types.ModuleType) -> Undo:
    """Lets Dynamo hand its graphs to the eager back end where the script asks for a registered compiler.

    A back end that is the user's own function runs as it is: its failures are findings too.
    """
    original = eval_frame.get_compiler_fn

    def get_compiler_fn(compiler_fn: Any) -> Any:
        return original("eager" if _is_registered(compiler_fn) else compiler_fn)

    return replace_attribute(eval_frame, "get_compiler_fn", get_compiler_fn)


def _is_registered(compiler_fn: Any) -> bool:
    """Whether a back end is one of PyTorch's registry.

    ``torch.compile`` wraps what it was given: Inductor in a class of its own, anything else in one that holds the
    function as ``compiler_fn``, the user's own function too.
    """
    if isinstance(compiler_fn, str):
        return True
    if not hasattr(compiler_fn, "compiler_name"):
        return False
    function = getattr(compiler_fn, "compiler_fn", None)
    registry: Any = sys.modules["torch._dynamo.backends.registry"]
    return function is None or any(function is known for known in registry._COMPILER_FNS.values())


_EAGER_BACKEND = Hook(
    what="the fast lane: the script's own back end was used instead of the eager one",
    module="torch._dynamo.eval_frame",
    versions="2.9 to 2.13",
    apply=_use_eager_backend,
)


def _track_provenance(config: types.ModuleType) -> Undo:
    """As INDUCTOR_PROVENANCE=1 does: Inductor then says which graph nodes and user lines each kernel came from."""
    trace: Any = config.trace
    before = int(trace.provenance_tracking_level)
    if before >= 1:
        return lambda: None
    return replace_attribute(trace, "provenance_tracking_level", 1)


_PROVENANCE = Hook(
    what="which user lines a kernel came from",
    module="torch._inductor.config",
    versions="2.9 to 2.13",
    apply=_track_provenance,
)

# A hit in one of these two caches skips the stages behind it, so a capture that wants to see the stages must miss.
# Keys are computed and entries are written as ever, so the caches' own events (a bypass with its reason) still come,
# and the next run without irscope hits.  The cache of compiled kernels (the C++ and Triton binaries) stays in use.
_MISS_FX_GRAPH_CACHE = Hook(
    what="stages behind a hit in the FX graph cache",
    module="torch._inductor.codecache",
    versions="2.9 to 2.13",
    apply=lambda codecache: _replace_static(codecache.FxGraphCache, "_lookup_graph", lambda *_, **__: (None, {})),
)
_MISS_AUTOGRAD_CACHE = Hook(
    what="stages behind a hit in the AOTAutograd cache",
    module="torch._functorch._aot_autograd.autograd_cache",
    versions="2.9 to 2.13",
    apply=lambda cache: _replace_static(cache.AOTAutogradCache, "_lookup", lambda *_, **__: None),
)


def _replace_static(cls: type, name: str, function: Callable[..., Any]) -> Undo:
    """Replaces a static method.  Raises TypeError where it is none."""
    before = inspect.getattr_static(cls, name)
    if not isinstance(before, staticmethod):
        raise TypeError(f"{cls.__name__}.{name} is no static method")
    setattr(cls, name, staticmethod(function))
    return lambda: setattr(cls, name, before)
