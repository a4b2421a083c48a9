"""What each lane changes in PyTorch."""

from __future__ import annotations

from irscope.internals.backends import stand_in
from irscope.internals.caches import deep_hooks
from irscope.internals.dynamo_config import COMPILE_NOTHING
from irscope.internals.hooks import Hook
from irscope.internals.lane_differences import kept_backwards
from irscope.protocol import EAGER, Lane, RunRequest


def hooks_for(request: RunRequest) -> list[Hook]:
    """The hooks of a run's lane: the fast one replaces the backend, a registered one by the eager one unless another is
    asked for."""
    if request.lane is not Lane.FAST:
        return deep_hooks()
    backend = stand_in(request.only_backend or EAGER, for_any=request.only_backend is not None, aot=request.aot)
    return [backend, COMPILE_NOTHING] if request.without_compile else [backend, kept_backwards()]
