"""A value of a kernel as a line, and as facts for expressions and for the debugger."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import Any

from irscope.values.facts import Block, Elements, Facts, Lazy
from irscope.values.run.text import number


def value_text(value: Mapping[str, Any]) -> str:
    """A value of a kernel in one line: ``fp32[16, 64] from -3.1 to 2.9, 12 NaN``."""
    if value["kind"] == "number":
        return str(value["value"])
    if value["kind"] == "pointer":
        return f"pointer to {value['to']}"
    if value["kind"] == "other":
        return str(value["type"])
    shape = f"[{', '.join(map(str, value['shape']))}]" if value["shape"] else ""
    told = f"{value['dtype']}{shape}"
    if value["min"] is not None:
        same = value["min"] == value["max"]
        told += f" {number(value['min'])}" if same else f" from {number(value['min'])} to {number(value['max'])}"
    told += "".join(f", {value[key]} {word}" for key, word in (("nan", "NaN"), ("inf", "infinite")) if value[key])
    return told + (f", {value['masked']} of {value['count']} masked out" if value["masked"] else "")


def block_facts(value: Mapping[str, Any]) -> Facts:
    """A value of a kernel: of a block its dtype, shape, statistics, and its elements row by row, masked ones in parentheses."""
    facts = {key: value[key] for key in ("dtype", "shape", "value", "to", "min", "max", "nan", "inf", "masked") if value.get(key) is not None}  # fmt: skip
    if value.get("elements"):
        facts["elements"] = _rows(value, 0, list(value["shape"]) or [1])
    found = Block("block", value_text(value), facts)
    if value.get("elements"):
        found.elements = Elements([float(each) if isinstance(each, str) else each for each in value["elements"]], value.get("live"))  # fmt: skip
    elif value["kind"] == "number":
        found.elements = Elements([value["value"]])
    return found


def _rows(value: Mapping[str, Any], start: int, shape: Sequence[int]) -> Lazy:
    """The elements of a block, or of a part of it that begins at ``start``; texts are made when they are looked at."""
    size = math.prod(shape[1:])

    def row(index: int) -> Any:
        at = start + index * size
        if len(shape) > 1:
            return _rows(value, at, shape[1:])
        live = value.get("live")
        return value["elements"][at] if live is None or live[at] else f"({value['elements'][at]})"

    return Lazy(shape[0], row, text=f"[{', '.join(map(str, shape))}]")
