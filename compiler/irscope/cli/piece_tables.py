"""The pieces in which a model was compiled, by size, in the terminal."""

from __future__ import annotations

from collections.abc import Sequence

from irscope.cli.tables import table
from irscope.cli.text import Paint
from irscope.comparing.piece_matrix import piece_matrix
from irscope.protocol import Piece
from irscope.vocabulary.visible import printable

_MOST_ROWS, _MOST_COLUMNS = 40, 8


def piece_lines(pieces: Sequence[Piece], paint: Paint) -> list[str]:
    """The matrix, and an empty line after it."""
    found = piece_matrix(pieces, _MOST_ROWS, _MOST_COLUMNS)
    cells = [[printable(row.title), *(printable(cell) or "–" for cell in row.cells)] for row in found.rows]
    lines = [paint(f"Pieces by size ({found.note}):", "dim")]
    lines += table(["piece", *map(printable, found.sizes)], cells, paint, whole=frozenset({0}))
    if found.hidden_rows or found.hidden_sizes:
        lines.append(
            paint(f"and {found.hidden_rows} more pieces, {found.hidden_sizes} more sizes (--json has all)", "dim")
        )
    return [*lines, ""]
