"""Where the time of each compile of a run went."""

from __future__ import annotations

from collections.abc import Iterable

from irscope.ir import phases
from irscope.pipelines.registry import role_of
from irscope.protocol import Compile, Report
from irscope.store.store import Store
from irscope.vocabulary.stages import Role


def phase_trees(store: Store, report: Report, compiles: Iterable[Compile]) -> dict[str, list[phases.Phase]]:
    """The phases of each compile, by its ID.

    The fast lane does not capture phases: such a compile is one phase, the whole of it.  Compiles without a known time
    are left out.
    """
    trees = {
        compile.id: _tree(store, report.run, compile) or phases.whole_compile(compile.seconds) for compile in compiles
    }
    return {id: tree for id, tree in trees.items() if tree}


def _tree(store: Store, run: str, compile: Compile) -> list[phases.Phase]:
    for stage in compile.stages:
        if role_of(stage.name) is Role.PHASES:
            try:
                return phases.from_data(store.stage_data(run, stage.id))
            except ValueError:  # of another version, or from elsewhere
                return []
    return []
