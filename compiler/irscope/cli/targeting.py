"""``irscope targets``."""

from __future__ import annotations

import argparse
import sys
from typing import Any

from irscope.cli.tables import table
from irscope.cli.text import Paint, print_json, to_stdout
from irscope.protocol import to_json
from irscope.system.streams import complain
from irscope.targets.catalogue import FIGURES, Catalogue, Target, TargetFigure, catalogue
from irscope.vocabulary.units import flops, significant, size

_COLUMNS = ("processors", "memory", "bandwidth")
_RATES = ("float32", "bfloat16", "float8_e4m3fn", "int8")


def list_targets(options: argparse.Namespace) -> int:
    """Prints the catalogue, or one target with the source of each figure.  Raises LookupError for an unknown one."""
    known = catalogue()
    chosen = list(known.targets.values()) if options.target is None else [known.named(options.target)]
    for problem in known.problems:
        complain(f"irscope: {problem}")
    if options.json:
        print_json([to_json(target) for target in chosen])
        return 0
    paint = Paint(sys.stdout)
    to_stdout(_one(chosen[0], paint) if options.target is not None else _all(known, paint))
    return 0


def _all(known: Catalogue, paint: Paint) -> list[str]:
    head = ["target", "device", "architecture", *_COLUMNS, *_RATES]
    rows = [
        [
            target.name,
            target.title,
            target.architecture,
            *(_shown(name, target.figures.get(name)) for name in _COLUMNS),
            *(_rate(target.rates.get(dtype)) for dtype in _RATES),
        ]
        for target in known.targets.values()
    ]
    return table(head, rows, paint, right=frozenset(range(3, len(head))), whole=frozenset({0}))


def _one(target: Target, paint: Paint) -> list[str]:
    lines = [f"{paint(target.name, 'bold')}  {target.title}  ({target.kind} {target.architecture})"]
    if target.file:
        lines.append(f"From {target.file}")
    rows = [[FIGURES[name].meaning, _shown(name, figure), figure.source] for name, figure in target.figures.items()] + [
        [f"rate of {dtype}", _rate(figure), figure.source] for dtype, figure in target.rates.items()
    ]
    return [*lines, *(table(["figure", "value", "source"], rows, paint, right=frozenset({1})) if rows else [])]


def _shown(name: str, figure: TargetFigure | None) -> str:
    if figure is None:
        return ""
    unit = FIGURES[name].unit
    if unit in ("B", "B/s"):
        return size(figure.value) + unit.removeprefix("B")
    if unit == "Hz":
        return f"{significant(figure.value / 1e9)} GHz"
    return f"{figure.value:.0f}{' ' if unit else ''}{unit}"


def _rate(figure: Any) -> str:
    return "" if figure is None else f"{flops(figure.value)}/s"
