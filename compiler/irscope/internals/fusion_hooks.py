"""Hooks into Inductor's scheduler: which pairs of nodes it fuses, and why it does not fuse others."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Protocol

from irscope.internals.frames import callers
from irscope.internals.hooks import Hook, Undo, replace_attribute, undo_all


class FusionEvents(Protocol):
    """What happens while one schedule's nodes are fused.  The methods run inside Inductor and must not raise."""

    def begins(self) -> None:
        """A schedule's fusion begins; it may lie inside another one's."""

    def refused(self, first: str, second: str, reason: str, args: tuple[Any, ...]) -> None:
        """Two nodes, by their names, are not fused; the reason is a format for its arguments."""

    def scored(self, first: Any, second: Any, score: Any) -> None:
        """How much would be won by fusing two nodes."""

    def fused(self, first: Any, second: Any, into: Any) -> None:
        """Two nodes became one."""

    def ends(self, nodes: Any) -> None:
        """The schedule's nodes after fusion; None if it failed."""


def fusion_hooks(events: FusionEvents) -> list[Hook]:
    """Reports each schedule's fusion as it happens."""
    module = "torch._inductor.scheduler"
    return [
        Hook("why kernels were not fused", module, "2.9 to 2.15", lambda scheduler: _watch(scheduler, events)),
        Hook("which kernels were fused", module, "2.9 to 2.15", lambda scheduler: _watch_pairs(scheduler, events)),
    ]


def _watch(scheduler: Any, events: FusionEvents) -> Undo:
    cls, refuse = scheduler.Scheduler, scheduler.WhyNoFuse.__call__
    fuse, score_key = cls.fuse_nodes, cls.score_fusion_key

    def refused(self: Any, reason: str, *args: Any) -> None:
        events.refused(self.name1, self.name2, reason, args)
        refuse(self, reason, *args)

    def score_fusion_key(self: Any, nodes: Any) -> Any:
        score = score_key(self, nodes)
        events.scored(nodes[0], nodes[1], score)
        return score

    def fuse_nodes(self: Any, nodes: Any) -> Any:
        events.begins()
        found = None
        try:
            found = fuse(self, nodes)
        finally:
            events.ends(found)
        return found

    return undo_all(
        [
            replace_attribute(scheduler.WhyNoFuse, "__call__", refused),
            replace_attribute(cls, "score_fusion_key", score_fusion_key),
            replace_attribute(cls, "fuse_nodes", fuse_nodes),
        ]
    )


def _watch_pairs(scheduler: Any, events: FusionEvents) -> Undo:
    cls = scheduler.Scheduler
    if not hasattr(cls, "fuse_two_nodes"):
        return _watch_backend(cls, events.fused)
    fuse_two = cls.fuse_two_nodes

    def fuse_two_nodes(self: Any, node1: Any, node2: Any, *args: Any, **kwargs: Any) -> Any:
        fused = fuse_two(self, node1, node2, *args, **kwargs)
        events.fused(node1, node2, fused)
        return fused

    return replace_attribute(cls, "fuse_two_nodes", fuse_two_nodes)


def _watch_backend(cls: Any, fused_pair: Callable[[Any, Any, Any], None]) -> Undo:
    """In torch 2.9 the function that fuses two nodes is a local one, which calls ``self.get_backend(device).fuse``."""
    get = cls.get_backend

    class Backend:
        """A backend as that function uses it."""

        def __init__(self, real: Any) -> None:
            self._real = real

        def __getattr__(self, name: str) -> Any:
            return getattr(self._real, name)

        def fuse(self, node1: Any, node2: Any) -> Any:
            fused = self._real.fuse(node1, node2)
            fused_pair(node1, node2, fused)
            return fused

    def get_backend(self: Any, device: Any) -> Any:
        backend = get(self, device)
        return Backend(backend) if next(callers()).f_code.co_name == "fuse_two_nodes" else backend

    return replace_attribute(cls, "get_backend", get_backend)
