"""What each lane changes in PyTorch."""

from __future__ import annotations

from irscope.internals.backends import EAGER
from irscope.internals.caches import deep_hooks
from irscope.internals.hooks import Hook
from irscope.protocol import Lane


def hooks_for(lane: Lane) -> list[Hook]:
    """The hooks of a lane: the fast one uses the eager backend."""
    return [EAGER] if lane is Lane.FAST else deep_hooks()
