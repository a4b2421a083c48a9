"""The headings below which lists show the stages of a compile."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from irscope.pipelines.registry import group_of, group_position
from irscope.protocol import StageRef
from irscope.provenance import chain
from irscope.vocabulary.stages import KERNEL_GROUP, StageGroup


class Headings:
    """The headings of one compile: ``Dynamo``, ``Inductor, forward``."""

    def __init__(self, stages: Iterable[StageRef]) -> None:
        backward = (group_of(stage.name) for stage in stages if chain.is_backward(stage))
        self._both_sides = frozenset(group for group in backward if group.has_sides)

    def of(self, stage: StageRef) -> str:
        """The heading of a stage."""
        group, backward = self._key(stage)
        side = "" if group not in self._both_sides else ", backward" if backward else ", forward"
        return group.title + side

    def in_order(self, stages: Iterable[StageRef]) -> list[StageRef]:
        """The stages heading by heading; those of one heading keep their order."""
        return sorted(stages, key=self._order)

    def titles(self, stages: Sequence[StageRef], has_kernels: bool) -> tuple[str, ...]:
        """All headings in order; kernels have one even if none of them has its own stage."""
        order = {self.of(stage): self._order(stage) for stage in stages}
        if has_kernels:
            order.setdefault(KERNEL_GROUP.title, (group_position(KERNEL_GROUP), False))
        return tuple(sorted(order, key=lambda title: order[title]))

    def _key(self, stage: StageRef) -> tuple[StageGroup, bool]:
        group = group_of(stage.name)
        return group, group.has_sides and chain.is_backward(stage)

    def _order(self, stage: StageRef) -> tuple[int, bool]:
        group, backward = self._key(stage)
        return group_position(group), backward
