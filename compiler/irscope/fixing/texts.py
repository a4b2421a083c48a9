"""A text with edits applied, and the edits between two texts."""

from __future__ import annotations

from collections.abc import Sequence

from irscope.comparing.texts import lines_with_ends, opcodes
from irscope.protocol import Edit, Position, Range


def applied(text: str, edits: Sequence[Edit]) -> str:
    """A text with edits applied; those at one place in the order given.

    Raises ValueError for edits that overlap or are outside of the text.
    """
    starts = [0]
    for line in text.split("\n"):
        starts.append(starts[-1] + len(line) + 1)

    def offset(place: Position) -> int:
        if not 1 <= place.line < len(starts) + 1:
            raise ValueError("an edit is outside of the text")
        return min(starts[place.line - 1] + place.column, len(text))

    spans = [(offset(edit.range.start), offset(edit.range.end), n, edit.text) for n, edit in enumerate(edits)]
    parts, at = list[str](), 0
    for start, end, _, new in sorted(spans):
        if start < at or end < start:
            raise ValueError("edits overlap")
        parts += [text[at:start], new]
        at = end
    return "".join([*parts, text[at:]])


def joined_lines(edits: Sequence[Edit]) -> list[Edit]:
    """Edits of one text, with all lines that are added at one place in one edit.

    Each brings the blank lines before it, and the last one those after it; single lines of one kind follow each other.
    """
    made, places = list[Edit](), dict[Range, tuple[int, str]]()
    for edit in edits:
        if edit.range.start != edit.range.end or not edit.text.endswith("\n"):
            made.append(edit)
            continue
        is_line = edit.text.startswith("\n") and "\n" not in edit.text.strip("\n")
        kind = "" if not is_line else "import" if edit.text.split()[0] in ("import", "from") else "line"
        number, last = places.get(edit.range, (len(made), ""))
        places[edit.range] = number, kind
        if number == len(made):
            made.append(edit)
        else:
            text = edit.text.removeprefix("\n") if kind and kind == last else edit.text
            made[number] = Edit(edit.range, made[number].text.rstrip("\n") + "\n" + text)
    return made


def edits_between(old: str, new: str) -> tuple[Edit, ...]:
    """The lines that make one text the other."""
    before, after = lines_with_ends(old), lines_with_ends(new)
    lines = old.split("\n")
    end = Position(len(lines), len(lines[-1]))
    return tuple(
        Edit(Range(min(Position(i + 1, 0), end), min(Position(j + 1, 0), end)), "".join(after[k:m]))
        for tag, i, j, k, m in opcodes(before, after)
        if tag != "equal"
    )
