"""Trees of measures in the terminal: what was compiled, compile time and memory, of one run or of two."""

from __future__ import annotations

import json
import sys
from collections.abc import Callable

from irscope.cli.tables import table
from irscope.cli.text import Paint, to_stdout
from irscope.ir import phases
from irscope.measures.compile_time import compile_time_tree
from irscope.measures.compiled import compiled_tree
from irscope.measures.memory import memory_tree
from irscope.measures.tree import PathTree, difference, folded, text_columns, text_rows
from irscope.profiling.changes import stored_profile
from irscope.protocol import Report, to_json
from irscope.provenance.phase_times import phase_trees
from irscope.store.store import Store
from irscope.vocabulary.units import count
from irscope.vocabulary.visible import printable

_MOST_ROWS = 40


def _modules(store: Store, report: Report) -> PathTree:
    profile = stored_profile(store, report.run)
    return folded(compiled_tree(report, profile.by_module if profile is not None else None))


def _time(store: Store, report: Report) -> PathTree:
    return compile_time_tree(report.compiles, phase_trees(store, report, report.compiles))


def _memory(store: Store, report: Report) -> PathTree:
    return folded(memory_tree(store, report))


TREES: dict[str, tuple[Callable[[Store, Report], PathTree], str]] = {
    "modules": (_modules, "compiled"),
    "time": (_time, "phase"),
    "memory": (_memory, "module"),
}
"""By option of `irscope show`: the tree, and what its rows are."""


def show_tree(store: Store, report: Report, option: str, than: Report | None, show_all: bool, as_json: bool) -> int:
    """Prints a tree of `TREES`; with ``than``, what changed since that run."""
    make, what = TREES[option]
    tree = make(store, report)
    if than is not None:
        tree = difference(make(store, than), tree)
    if as_json:
        beside = _phases(store, report) if option == "time" else {}
        print(json.dumps({"run": report.run, **beside, "tree": to_json(tree)}, indent=1))
    elif len(tree.nodes) < 2:
        print("This run has nothing of it. A full run does (`irscope run`), where something is compiled.")
    else:
        whole = None if than is not None or option == "modules" else tree.nodes[0].inclusive[0]
        most = sys.maxsize if show_all else _MOST_ROWS
        to_stdout(tree_lines(tree, what, Paint(sys.stdout), most, "of all", whole)[1:])
    return 0


def _phases(store: Store, report: Report) -> dict[str, object]:
    """The phases of all compiles added up, and those of each."""
    trees = phase_trees(store, report, report.compiles)
    return {
        "seconds": round(sum(map(phases.whole, trees.values())), 6),
        "phases": to_json(phases.totals(trees.values(), longest_first=True)),
        "compiles": [{"id": id, "seconds": phases.whole(tree), "phases": to_json(tree)} for id, tree in trees.items()],
    }


def tree_lines(
    tree: PathTree, what: str, paint: Paint, most: int, share: str = "", whole: float | None = None
) -> list[str]:
    """A tree as a table, of which the nodes with most of the first measure are shown; what is around each is there.

    Parameters
    ----------
    share, whole
        The title of the share of the first measure, and of what it is one; without the whole there is none.
    """
    if len(tree.nodes) < 2:
        return []
    columns = text_columns(tree, share if whole is not None else "")
    rows = [[printable(name), *numbers] for name, *numbers in text_rows(tree, most, whole)]
    lines = ["", *table([what, *columns], rows, paint, right=frozenset(range(1, len(columns) + 1)))]
    hidden = len(tree.nodes) - most
    return lines + ([f"  … and {count(hidden, what)} more (--all)"] if hidden > 0 else [])
