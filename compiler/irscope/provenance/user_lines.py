"""Which user's lines the elements of stages name, and in which stages a user's line is looked for."""

from __future__ import annotations

import functools
from collections import defaultdict

from irscope.pipelines.registry import names_with, role_of, stage_kind
from irscope.protocol import Origin
from irscope.provenance import chain
from irscope.provenance.elements import Element
from irscope.provenance.run_stages import RunStages
from irscope.usercode.user_files import is_package_file, is_user_file
from irscope.vocabulary.stages import Role


class UserLines:
    """The lines of one run."""

    def __init__(self, stages: RunStages) -> None:
        self._stages = stages
        self._by_line: dict[str, dict[Origin, list[Element]]] = {}

    def of(self, element: Element) -> list[Origin]:
        """The user's lines of a node or an instruction, innermost first (of packages if none is the user's)."""
        frames = self._frames(element)
        for belongs in (is_user_file, is_package_file):
            if lines := [frame for frame in frames if belongs(frame.file)]:
                return lines
        return frames[:1]

    def path(self, element: Element) -> list[Origin]:
        """All lines that led to a node or an instruction, innermost first, without torch's own: the user's, and those of
        libraries below them."""
        return [frame for frame in self._frames(element) if is_user_file(frame.file) or is_package_file(frame.file)]

    def _frames(self, element: Element) -> list[Origin]:
        item, compile = self._stages.item(element), self._stages.compile_of[element.stage]
        return list(dict.fromkeys(Origin(frame.file or compile.file, frame.line) for frame in item.frames))

    def first_stages(self, compile: str) -> list[str]:
        """The stages that are made from the user's text itself: the bytecode and the first graph, and kernels of his.

        If the graphs of a backward have the names of the first graph, and none is above both, its first kind is one too.
        """
        found: list[str] = []
        graphs = [stage for stage in self._stages.pipelines[compile] if stage_kind(stage.name).is_graph]
        own = [one.name for one in graphs if chain.is_backward(one) and not any(map(chain.is_shared, graphs))]
        is_named_alike = bool(own) and stage_kind(own[0]).names == stage_kind(graphs[0].name).names != ""
        kinds = {graphs[0].name, *(own[:1] if is_named_alike else ())} if graphs else set()
        backward = [one for one in graphs if one.name in kinds and chain.is_backward(one)]
        first = [*graphs[:1], *(one for one in backward if not chain.is_version(one))]
        for stage in self._stages.pipelines[compile]:
            if role_of(stage.name) is Role.SOURCE or stage in first or stage.id in self._own_kernels:
                found.append(stage.id)
        return found

    def runners(self, compile: str) -> tuple[str, frozenset[str]]:
        """Nodes of Dynamo's graph that run graphs of their own, and the graph that AOTAutograd traced, in which what
        came from these is beside the rest and knows its own lines; empty if there are none."""
        graphs = [stage for stage in self._stages.pipelines[compile] if stage_kind(stage.name).is_graph]
        first = stage_kind(graphs[0].name).names if graphs else ""
        traced = next(
            (one.id for one in graphs if stage_kind(one.name).names != first and not chain.is_version(one)), ""
        )
        inner = self._stages.items(graphs[0].id).inner if traced else {}
        runners = frozenset(name for names in inner.values() for name in names)
        return (traced, runners) if runners else ("", runners)

    @functools.cached_property
    def _own_kernels(self) -> frozenset[str]:
        """The stages of hand-written kernels: no other kernel's stage has data."""
        names = sorted(names_with(Role.KERNEL))
        return frozenset().union(
            *(self._stages.store.stages_with_data(self._stages.report.run, name) for name in names)
        )

    def own_kernels(self, compile: str) -> tuple[str, ...]:
        """The stages of the hand-written kernels of a compile."""
        return tuple(stage.id for stage in self._stages.compiles[compile].stages if stage.id in self._own_kernels)

    def in_own_kernels(self, compile: str, file: str, line: int) -> tuple[Element, ...]:
        """What a line became in these kernels, without what launches them."""
        return tuple(one for stage in self.own_kernels(compile) for one in self.at(stage, Origin(file, line)))

    def at(self, stage: str, line: Origin) -> list[Element]:
        """The elements of a stage that name a line, of the user's or of a library's."""
        if stage not in self._by_line:
            self._by_line[stage] = defaultdict(list)
            for element in (item.element for item in self._stages.items(stage).items):
                for origin in dict.fromkeys([*self.of(element), *self.path(element)]):
                    self._by_line[stage][origin].append(element)
        return self._by_line[stage].get(line, [])
