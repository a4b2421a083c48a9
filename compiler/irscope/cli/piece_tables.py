"""The pieces in which a model was compiled, as a matrix: a row for each piece, those that are alike in one, a column for each size."""

from __future__ import annotations

from collections.abc import Sequence

from irscope.cli.tables import table
from irscope.cli.text import Paint
from irscope.protocol import Piece
from irscope.vocabulary.units import duration
from irscope.vocabulary.visible import printable

_MOST_ROWS, _MOST_COLUMNS = 40, 8
_NO_END = float("inf")


def piece_lines(pieces: Sequence[Piece], paint: Paint) -> list[str]:
    """The matrix, and an empty line after it.  Of alike pieces seconds are added up."""
    sizes = sorted(
        {one.size: (one.smallest, _NO_END if one.largest is None else one.largest) for one in pieces}.items(),
        key=_by_number,
    )
    rows: dict[str, dict[str, list[Piece]]] = {}
    for one in pieces:
        rows.setdefault(one.like or one.name, {}).setdefault(one.size, []).append(one)
    shown = [size for size, _ in sizes[:_MOST_COLUMNS]]
    cells = [
        [_title(name, row), *(_cell(row.get(size, [])) for size in shown)]
        for name, row in list(rows.items())[:_MOST_ROWS]
    ]
    unknown = all(one.cuda_graph is None for one in pieces)
    graphs = "which CUDA graphs are captured is not in the trace" if unknown else "CG: a CUDA graph is captured"
    lines = [paint(f"Pieces by size (hit, miss, bypass: of the FX graph cache; {graphs}):", "dim")]
    lines += table(["piece", *map(printable, shown)], cells, paint, whole=frozenset({0}))
    hidden = max(0, len(rows) - _MOST_ROWS), max(0, len(sizes) - _MOST_COLUMNS)
    if any(hidden):
        lines.append(paint(f"and {hidden[0]} more pieces, {hidden[1]} more sizes (--json has all)", "dim"))
    return [*lines, ""]


def _by_number(size: tuple[str, tuple[int, float]]) -> tuple[int, float, str]:
    return *size[1], size[0]


def _title(name: str, row: dict[str, list[Piece]]) -> str:
    names = {one.name for found in row.values() for one in found}
    return printable(name if len(names) == 1 else f"{name} and {len(names) - 1} alike")


def _cell(found: Sequence[Piece]) -> str:
    if not found:
        return "–"
    caches = [one.cache for one in found]
    told = "/".join(dict.fromkeys(one for one in caches if one))
    state = told or ("compiled" if any(one.compiled for one in found) else "not compiled")
    graph = " CG" if any(one.cuda_graph for one in found) else ""
    return f"{state}{graph} {duration(sum(one.seconds for one in found))}"
