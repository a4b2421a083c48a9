"""A tree of measures as the panels get it: one shape for time, kernels and what else is counted on modules and frames."""

from __future__ import annotations

from dataclasses import dataclass

from irscope.measures.tree import Measure, PathTree, largest

from irscope_server.base.results import Place
from irscope_server.panels.answers import place_uri
from irscope_server.stages.tree import UriOf

_MOST_NODES = 4_000
"""Modules and call frames: those with most of the first measure."""


@dataclass(frozen=True)
class TreeRow:
    """A module or a call frame; a module's place has an empty URI."""

    name: str
    kind: str
    """The class of the module, the function of the frame."""
    place: Place
    parent: int
    """An index of the list, before it; -1 for the first, the whole."""
    own: tuple[float, ...]
    """One number for each measure, without what is inside."""
    whole: tuple[float, ...]
    """The same with what is inside."""


@dataclass(frozen=True)
class MeasureTree:
    """Numbers on modules or call frames, which add up at each level; without rows nothing is known."""

    measures: tuple[Measure, ...]
    rows: tuple[TreeRow, ...]
    left_out: int
    """How many rows it has not: those with least of the first measure."""
    is_change: bool
    """Whether it says how two runs differ: its first measure is the change, which may be negative."""


NO_TREE = MeasureTree((), (), 0, False)


def tree_answer(tree: PathTree, uri_of: UriOf, is_change: bool = False) -> MeasureTree:
    """A tree for the client, whose lines are 0-based."""
    rows = tuple(
        TreeRow(
            node.name,
            node.kind,
            Place(place_uri(uri_of, node.file), max(0, node.line - 1)),
            node.parent,
            node.exclusive,
            node.inclusive,
        )
        for node in largest(tree, _MOST_NODES).nodes
    )
    return MeasureTree(tree.measures, rows, max(0, len(tree.nodes) - _MOST_NODES), is_change)
