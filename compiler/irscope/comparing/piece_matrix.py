"""The pieces in which a model was compiled, as a matrix: a row for each piece, alike ones in one, a column for each size."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from irscope.protocol import Piece
from irscope.vocabulary.units import duration

_NO_END = float("inf")


@dataclass(frozen=True)
class PieceRow:
    """A piece, or several with the same graph; a cell for each size, empty if nothing was compiled for it."""

    title: str
    cells: tuple[str, ...]


@dataclass(frozen=True)
class PieceMatrix:
    """Pieces by size; empty if nothing was compiled in pieces."""

    sizes: tuple[str, ...] = ()
    rows: tuple[PieceRow, ...] = ()
    note: str = ""
    """What the words in the cells mean."""
    hidden_rows: int = 0
    hidden_sizes: int = 0


def piece_matrix(pieces: Sequence[Piece], most_rows: int, most_sizes: int) -> PieceMatrix:
    """The matrix, the smallest size first.  The seconds of alike pieces are added up.

    Args:
        most_rows, most_sizes: How many of them it has at most; it counts the others.
    """
    if not pieces:
        return PieceMatrix()
    bounds = {one.size: (one.smallest, _NO_END if one.largest is None else one.largest) for one in pieces}
    sizes = sorted(bounds, key=lambda size: (*bounds[size], size))
    rows: dict[str, dict[str, list[Piece]]] = {}
    for one in pieces:
        rows.setdefault(one.like or one.name, {}).setdefault(one.size, []).append(one)
    shown = tuple(sizes[:most_sizes])
    unknown = all(one.cuda_graph is None for one in pieces)
    graphs = "which CUDA graphs are captured is not in the trace" if unknown else "CG: a CUDA graph is captured"
    return PieceMatrix(
        shown,
        tuple(
            PieceRow(_title(name, row), tuple(_cell(row.get(size, [])) for size in shown))
            for name, row in list(rows.items())[:most_rows]
        ),
        f"hit, miss, bypass: of the FX graph cache; {graphs}",
        max(0, len(rows) - most_rows),
        max(0, len(sizes) - most_sizes),
    )


def _title(name: str, row: dict[str, list[Piece]]) -> str:
    names = {one.name for found in row.values() for one in found}
    return name if len(names) == 1 else f"{name} and {len(names) - 1} alike"


def _cell(found: Sequence[Piece]) -> str:
    if not found:
        return ""
    told = "/".join(dict.fromkeys(one.cache for one in found if one.cache))
    state = told or ("compiled" if any(one.compiled for one in found) else "not compiled")
    graph = " CG" if any(one.cuda_graph for one in found) else ""
    return f"{state}{graph} {duration(sum(one.seconds for one in found))}"
