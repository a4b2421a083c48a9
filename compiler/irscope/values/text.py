"""Values as text: the stage's own, and the command line's."""

from __future__ import annotations

from typing import Any


def values_text(data: dict[str, Any]) -> str:
    """The text of a stage ``values``: one line for each node."""
    rows = [["node", "value", "min", "max", "mean", "std", "NaN", "inf"], *(row(each) for each in data["nodes"])]
    widths = [max(len(cells[i]) for cells in rows) for i in range(len(rows[0]))]
    lines = [f"# values of {data['stage']} at call {data['call']}"]
    for cells in rows:
        left = [cell.ljust(width) for cell, width in zip(cells[:2], widths, strict=False)]
        right = [cell.rjust(width) for cell, width in zip(cells[2:], widths[2:], strict=False)]
        lines.append("  ".join([*left, *right]).rstrip())
    lines += [f"# {note}" for note in data["notes"]]
    return "\n".join(lines) + "\n"


def row(node: dict[str, Any]) -> list[str]:
    """A node's cells: name, value, min, max, mean, std, NaN, infinities."""
    value = node["value"]
    if value["kind"] != "tensor":
        return [node["name"], summary(value), "", "", "", "", "", ""]
    numbers = [number(value[key]) for key in ("min", "max", "mean", "std")]
    counts = [value["nan"], value["posinf"] + value["neginf"]]
    return [node["name"], summary(value), *numbers, *(str(count) if count else "" for count in counts)]


def summary(value: dict[str, Any]) -> str:
    """A value in a few words: ``float32[4, 16]``."""
    kind = value["kind"]
    if kind == "tensor":
        return f"{value['dtype']}[{', '.join(map(str, value['shape']))}]"
    if kind == "number":
        return str(value["value"])
    if kind == "list":
        return f"[{', '.join(summary(item) for item in value['items'])}]"
    return f"failed: {value['why']}" if kind == "failed" else str(value.get("type", kind))


def number(value: Any) -> str:
    """A number in few digits; nothing for none."""
    if value is None:
        return ""
    if isinstance(value, bool | int | str):
        return str(value)
    return f"{value:.5g}"
