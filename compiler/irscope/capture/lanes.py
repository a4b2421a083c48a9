"""What each lane changes in PyTorch."""

from __future__ import annotations

from irscope.internals.backends import stand_in
from irscope.internals.caches import deep_hooks
from irscope.internals.hooks import Hook
from irscope.protocol import Lane, RunRequest


def hooks_for(request: RunRequest) -> list[Hook]:
    """The hooks of a run's lane: the fast one replaces the backend, by the eager one unless another is asked for."""
    return [stand_in(request.fast_backend)] if request.lane is Lane.FAST else deep_hooks()
