"""The stages of one run: their order, and what is in each, read on request."""

from __future__ import annotations

import functools
from typing import Any

from irscope.ir.nodes import NodeFacts
from irscope.protocol import Compile, Report, StageRef
from irscope.provenance import chain
from irscope.provenance.elements import Element, Item, Items, items_of
from irscope.provenance.replaced import new_facts
from irscope.store.store import Store


class RunStages:
    """The stages of one run.

    Args:
        versions, ends: Like those of `irscope.provenance.Provenance`.
    """

    def __init__(self, store: Store, report: Report, versions: bool, ends: bool) -> None:
        self.store, self.report = store, report
        self.compiles = {compile.id: compile for compile in report.compiles}
        self.by_id: dict[str, StageRef] = {}
        self.compile_of: dict[str, Compile] = {}
        self.pipelines: dict[str, tuple[StageRef, ...]] = {}
        self.tracks: dict[str, tuple[tuple[chain.Level, ...], ...]] = {}
        for compile in report.compiles:
            self.pipelines[compile.id] = chain.pipeline(compile, versions, ends)
            self.tracks[compile.id] = chain.tracks(self.pipelines[compile.id])
            for stage in compile.stages:
                self.by_id[stage.id] = stage
                self.compile_of[stage.id] = compile
        self._items: dict[str, Items] = {}
        self._versions: dict[tuple[str, bool], list[tuple[StageRef, dict[str, Any]]]] = {}
        self._new_facts: dict[str, tuple[NodeFacts, ...]] = {}

    @functools.cached_property
    def codes(self) -> dict[str, StageRef]:
        """The stages that `chain.codes_by_folder` gives, for all stages of the run."""
        return chain.codes_by_folder(self.by_id.values())

    def item(self, element: Element) -> Item:
        """An element of a stage with what ties it to others."""
        return self.items(element.stage).by_name[element.name]

    def items(self, stage: str) -> Items:
        """A stage's elements with what ties them to others.  Raises LookupError for an unknown stage."""
        if stage not in self._items:
            if stage not in self.by_id:
                raise LookupError(f"Run {self.report.run} has no stage {stage}.")
            run = self.report.run
            text, data = self.store.stage_text(run, stage), self.store.stage_data(run, stage)
            try:
                self._items[stage] = items_of(self.by_id[stage], text, data)
            except (LookupError, TypeError, ValueError, AttributeError, RecursionError):
                self._items[stage] = Items()  # written by another version: without links
        return self._items[stage]

    def passes_over(self, compile: Compile, stage: StageRef) -> list[tuple[StageRef, dict[str, Any]]]:
        """The versions of the graphs that a stage's nodes went through, with their data."""
        side = chain.is_backward(stage)
        if (compile.id, side) not in self._versions:
            mine = [
                (version, self.store.stage_data(self.report.run, version.id))
                for version in compile.stages
                if chain.is_version(version) and (chain.is_shared(version) or chain.is_backward(version) == side)
            ]
            self._versions[compile.id, side] = [(version, _with_sets(data)) for version, data in mine]
        return self._versions[compile.id, side]

    def new_facts(self, version: StageRef, data: dict[str, Any]) -> tuple[NodeFacts, ...]:
        """What is known about the nodes that a pass added or changed, of one that `passes_over` gives."""
        if version.id not in self._new_facts:
            self._new_facts[version.id] = new_facts(data)
        return self._new_facts[version.id]


def _with_sets(data: Any) -> dict[str, Any]:
    """What is kept of a version, with the names of its nodes as sets: they are many, and asked for one by one."""
    whole = data if isinstance(data, dict) else {}
    sets = {key: whole.get(key) for key in ("added", "removed", "changed")}
    return {
        **whole,
        **{key: frozenset(map(str, names if isinstance(names, list) else ())) for key, names in sets.items()},
    }
