"""Values as text: the stage's own, and the command line's."""

from __future__ import annotations

from typing import Any

from irscope.vocabulary import units


def values_text(data: dict[str, Any]) -> str:
    """The text of a stage ``values``: one line for each node."""
    rows = [["node", "value", "min", "max", "mean", "std", "NaN", "inf"], *(row(each) for each in data["nodes"])]
    lines = [f"# values of {data['stage']} at call {data['call']}", *_aligned(rows, 2)]
    lines += [f"# {note}" for note in data["notes"]]
    return "\n".join(lines) + "\n"


def _aligned(rows: list[list[str]], left: int) -> list[str]:
    """Rows as text; so many columns are aligned to the left, the others to the right."""
    widths = [max(len(cells[i]) for cells in rows) for i in range(len(rows[0]))]
    texts = [[cell.ljust(width) if i < left else cell.rjust(width) for i, (cell, width) in enumerate(zip(cells, widths, strict=True))] for cells in rows]  # fmt: skip
    return ["  ".join(cells).rstrip() for cells in texts]


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
    """A number in few digits; empty for None."""
    if value is None:
        return ""
    if isinstance(value, bool | int | str):
        return str(value)
    return f"{value:.5g}"


def divergence_text(data: dict[str, Any]) -> str:
    """The text of a stage ``divergence``: what was found, then one line for each node."""
    lines = [f"# compiled code against {data['stage']} at call {data['call']}"]
    found = data["found"]
    if found is None:
        lines.append(f"# no divergence at {len(data['nodes'])} nodes")
    else:
        lines.append(f"# divergence: {found['message']}")
        if found["file"]:
            lines.append(f"# from {found['file']}:{found['line']}")
        lines += [f"#   {sentence}" for sentence in found["tried"]]
    lines += [f"# {note}" for note in data["notes"]]
    lines += _aligned([DIVERGENCE_HEAD, *(divergence_row(node) for node in data["nodes"])], 3)
    return "\n".join(lines) + "\n"


DIVERGENCE_HEAD = [
    "node",
    "kernel",
    "dtype",
    "of allowed",
    "compiled",
    "eager",
    "to eager",
    "to float64",
    "eager to float64",
]
"""Local: the error as a share of what is allowed, of compiled code and of eager mode; then along the whole graph."""


def divergence_row(node: dict[str, Any]) -> list[str]:
    """The cells of a node's row in the table of differences."""
    local = node["local"]
    measured = [share(local["ratio"]), number(local["compiled"]), number(local["eager"])] if local else ["", "", ""]
    along = [number(node[key]) for key in ("to_eager", "to_float64", "eager_to_float64")]
    return [node["name"], node["kernel"], node["dtype"], *measured, *along]


def share(ratio: Any) -> str:
    """A ratio to what is allowed: ``2 %``, ``×340``."""
    if isinstance(ratio, str):
        return f"×{ratio}"
    return units.percent(ratio) if ratio <= 1 else units.ratio(ratio)


_SHADES = " ░▒▓█"


def picture_lines(picture: Any, most: int = 32) -> list[str]:
    """A picture as text: darker is larger, ``?`` is not a finite number; two rows of more than ``most`` are one."""
    if not isinstance(picture, list) or not picture or not all(isinstance(line, list) and line for line in picture):
        return []
    finite = [cell for line in picture for cell in line if isinstance(cell, (int, float))]
    low, high = (min(finite), max(finite)) if finite else (0.0, 0.0)
    span = (high - low) or 1.0
    step = -(-len(picture) // most)
    return [
        "".join(
            _SHADES[min(4, int((cell - low) / span * 5))] if isinstance(cell, (int, float)) else "?" for cell in line
        )
        for line in picture[::step]
    ]
