"""``irscope show --time``: where the compile time of a run went."""

from __future__ import annotations

import json
import sys
from collections.abc import Sequence

from irscope.cli.tables import middle_cut
from irscope.cli.text import Paint, short_path, to_stdout, width_of
from irscope.ir import phases
from irscope.protocol import Compile, Report, to_json
from irscope.provenance.phase_times import phase_trees
from irscope.store.store import Store
from irscope.vocabulary.units import count
from irscope.vocabulary.visible import printable

_NUMBERS = 19
"""Columns of the seconds and the per cent before the name of a phase."""
_SHORTEST_NAME = 24


def show_times(store: Store, report: Report, compiles: Sequence[Compile], as_json: bool) -> int:
    """Prints the phases of these compiles added up, or as data with those of each compile beside."""
    trees = phase_trees(store, report, compiles)
    sums = phases.totals(trees.values(), longest_first=True)
    if as_json:
        print(
            json.dumps(
                {
                    "run": report.run,
                    "seconds": round(sum(map(phases.whole, trees.values())), 6),
                    "phases": to_json(sums),
                    "compiles": [
                        {"id": id, "seconds": phases.whole(tree), "phases": to_json(tree)} for id, tree in trees.items()
                    ],
                },
                indent=1,
            )
        )
        return 0
    if not trees:
        print("This run has no compile times: nothing was compiled.")
        return 0
    paint = Paint(sys.stdout)
    by_id = {compile.id: compile for compile in compiles}
    for id in sorted(trees, key=lambda id: -phases.whole(trees[id])) if len(trees) > 1 else ():
        compile = by_id[id]
        where = f"{short_path(compile.file)}:{compile.line}"
        line = f"{phases.whole(trees[id]):>9.4f} s  {id}  {printable(compile.title)}  {printable(where)}"
        print(line if paint.columns is None else middle_cut(line, paint.columns, paint.shown("…")))
    total = sum(map(phases.whole, trees.values()))
    print(paint(f"{total:>9.4f} s in {count(len(trees), 'compile')}", "bold"))
    to_stdout([_fitted(printable(line), paint) for line in phases.text_of(sums).splitlines()])
    return 0


def _fitted(line: str, paint: Paint) -> str:
    """A line of the tree; on a narrow terminal the middle of its name is cut, and its indent where that is too deep."""
    if paint.columns is None or width_of(line) <= paint.columns:
        return line
    numbers, rest = line[:_NUMBERS], line[_NUMBERS:]
    name = rest.lstrip()
    room = paint.columns - _NUMBERS
    indent = max(min(len(rest) - len(name), room - _SHORTEST_NAME), 0)
    return numbers + " " * indent + middle_cut(name, room - indent, paint.shown("…"))
