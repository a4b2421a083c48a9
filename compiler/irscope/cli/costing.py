"""``irscope show --costs``: what kernels and nodes read, write and compute, and the bound on a target."""

from __future__ import annotations

import argparse
import sys

from irscope.cli.diffing import find_stage
from irscope.cli.text import Paint, print_json, printable, size, table, to_stdout
from irscope.protocol import Report, to_json
from irscope.roofline import TARGETS, Work, kernel_costs, node_costs
from irscope.store import Store

_UNITS = ((1e12, "T"), (1e9, "G"), (1e6, "M"), (1e3, "k"))


def show_costs(store: Store, report: Report, options: argparse.Namespace) -> int:
    """Prints the costs of a stage's nodes, or of all kernels.  Raises LookupError where nothing is known of them."""
    peaks = TARGETS[options.target] if options.target else None
    if options.stage is not None:
        costs = node_costs(store, report, find_stage(report, options.stage, options.compile), peaks)
    else:
        wanted = None if options.compile is None else options.compile + "/"
        costs = [cost for cost in kernel_costs(store, report, peaks) if wanted is None or cost.stage.startswith(wanted)]
    if not costs:
        raise LookupError(
            f"Nothing is known of what kernels cost in run {report.run}: it needs the deep lane and Inductor."
        )
    if options.json:
        data = [
            {**to_json(cost), "intensity": cost.intensity, "seconds": cost.seconds, "bound": cost.bound}
            for cost in costs
        ]
        print_json(data)
        return 0
    paint = Paint(sys.stdout)
    if peaks is not None:
        print(paint(f"At best on {peaks.name}, by its data sheet", "bold"))
    head = [
        "kernel" if options.stage is None else "node",
        "in",
        "calls",
        "dtype",
        "read",
        "written",
        "flop",
        "flop/byte",
    ]
    rows = [[*_row(cost), *([_time(cost.seconds), cost.bound] if peaks else [])] for cost in costs]
    to_stdout(
        table([*head, *(["at best", "bound by"] if peaks else [])], rows, paint, right=frozenset({2, 4, 5, 6, 7, 8}))
    )
    return 0


def _row(cost: Work) -> list[str]:
    return [
        printable(cost.name),
        printable(cost.stage),
        str(cost.calls),
        cost.dtype,
        "" if cost.read is None else size(cost.read),
        "" if cost.written is None else size(cost.written),
        "" if cost.flops is None else _number(cost.flops),
        "" if cost.intensity is None else f"{cost.intensity:.2f}",
    ]


def _number(value: float) -> str:
    for unit, letter in _UNITS:
        if value >= unit:
            return f"{value / unit:.1f} {letter}"
    return f"{value:.0f}"


def _time(seconds: float | None) -> str:
    if seconds is None:
        return ""
    return f"{seconds * 1e3:.3f} ms" if seconds >= 1e-3 else f"{seconds * 1e6:.3f} µs"
