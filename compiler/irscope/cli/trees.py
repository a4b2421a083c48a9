"""Trees of measures in the terminal: what was compiled, compile time and memory, of one run or of two."""

from __future__ import annotations

import json
import sys

from irscope.cli.tables import table
from irscope.cli.text import Paint, to_stdout
from irscope.ir import phases
from irscope.measures.tree import PathTree, difference, text_columns, text_rows
from irscope.profiling.run_trees import RUN_TREES
from irscope.protocol import Report, to_json
from irscope.provenance.phase_times import phase_trees
from irscope.store.store import Store
from irscope.vocabulary.units import count
from irscope.vocabulary.visible import printable

_MOST_ROWS = 40


_ROWS = {"modules": "module", "time": "phase", "memory": "module"}
"""What the rows of `RUN_TREES` are."""


def show_tree(store: Store, report: Report, option: str, than: Report | None, show_all: bool, as_json: bool) -> int:
    """Prints a tree of `RUN_TREES`; with ``than``, what changed since that run."""
    make = RUN_TREES[option]
    tree = make(store, report)
    if than is not None:
        tree = difference(make(store, than), tree)
    if as_json:
        beside = _phases(store, report) if option == "time" else {}
        print(json.dumps({"run": report.run, **beside, "tree": to_json(tree)}, indent=1))
    elif len(tree.nodes) < 2:
        print("This run did not keep that. A full run does (`irscope run`), where something is compiled.")
    else:
        whole = None if than is not None or option == "modules" else tree.nodes[0].inclusive[0]
        most = sys.maxsize if show_all else _MOST_ROWS
        to_stdout(tree_lines(tree, _ROWS[option], Paint(sys.stdout), most, "of all", whole)[1:])
    return 0


def _phases(store: Store, report: Report) -> dict[str, object]:
    """The seconds of all compiles, and the phases of each."""
    trees = phase_trees(store, report, report.compiles)
    return {
        "seconds": round(sum(map(phases.whole, trees.values())), 6),
        "compiles": [{"id": id, "seconds": phases.whole(tree), "phases": to_json(tree)} for id, tree in trees.items()],
    }


def tree_lines(
    tree: PathTree, what: str, paint: Paint, most: int, share: str = "", whole: float | None = None
) -> list[str]:
    """A tree as a table, of which the nodes with most of the first measure are shown; what is around each is there.

    Args:
        share, whole: The title of the share of the first measure, and of what it is one; without the whole there is
            none.
    """
    if len(tree.nodes) < 2:
        return []
    columns = text_columns(tree, share if whole is not None else "")
    rows = [[printable(name), *numbers] for name, *numbers in text_rows(tree, most, whole)]
    lines = ["", *table([what, *columns], rows, paint, right=frozenset(range(1, len(columns) + 1)))]
    hidden = len(tree.nodes) - most
    return lines + ([f"  … and {count(hidden, what)} more (--all)"] if hidden > 0 else [])
