"""The trees of measures of a run, by name: the terminal and the panels show the same ones."""

from __future__ import annotations

from collections.abc import Callable

from irscope.measures.compile_time import compile_time_tree
from irscope.measures.compiled import compiled_tree
from irscope.measures.memory import memory_tree
from irscope.measures.tree import PathTree, folded
from irscope.profiling.changes import stored_profile
from irscope.protocol import Report
from irscope.provenance.phase_times import phase_trees
from irscope.store.store import Store


def _modules(store: Store, report: Report) -> PathTree:
    profile = stored_profile(store, report.run)
    return folded(compiled_tree(report, profile.by_module if profile is not None else None))


def _time(store: Store, report: Report) -> PathTree:
    return compile_time_tree(report.compiles, phase_trees(store, report, report.compiles))


def _memory(store: Store, report: Report) -> PathTree:
    return folded(memory_tree(store, report))


RUN_TREES: dict[str, Callable[[Store, Report], PathTree]] = {"modules": _modules, "time": _time, "memory": _memory}
"""What was compiled, compile time by phase, and planned memory, each by what was compiled."""
