"""``irscope show --costs``: what kernels and nodes read, write and compute, and the bound on a target."""

from __future__ import annotations

import argparse
import sys

from irscope.cli.diffing import find_stage
from irscope.cli.tables import table
from irscope.cli.text import Paint, print_json, to_stdout
from irscope.ir.roofline import TARGETS, Peaks, Work, kernel_costs, node_costs, peaks_of
from irscope.protocol import Report, to_json
from irscope.store.store import Store
from irscope.vocabulary.units import duration, flops, significant, size
from irscope.vocabulary.visible import printable


def show_costs(store: Store, report: Report, options: argparse.Namespace) -> int:
    """Prints the costs of a stage's nodes, or of all kernels.  Raises LookupError if they are not known."""
    peaks = TARGETS.get(options.target) if options.target else peaks_of(store.device_of(report.run))
    costs = _costs(store, report, options, peaks)
    if not costs:
        raise LookupError(f"No kernel costs in run {report.run}: rerun with `--lane deep` and the Inductor backend.")
    if options.json:
        data = [
            {**to_json(cost), "intensity": cost.intensity, "seconds": cost.seconds, "bound": cost.bound}
            for cost in costs
        ]
        print_json(data)
        return 0
    paint = Paint(sys.stdout)
    if peaks is not None:
        print(paint(f"Lower bound on {peaks.name}, from its data sheet", "bold"))
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
    rows = [
        [*_row(cost), *(["" if cost.seconds is None else duration(cost.seconds), cost.bound] if peaks else [])]
        for cost in costs
    ]
    to_stdout(
        table(
            [*head, *(["lower bound", "bound by"] if peaks else [])],
            rows,
            paint,
            right=frozenset({2, 4, 5, 6, 7, 8}),
            whole=frozenset({0}),
        )
    )
    return 0


def _costs(store: Store, report: Report, options: argparse.Namespace, peaks: Peaks | None) -> list[Work]:
    """Those of the nodes of a stage, or of the kernels, without C++ kernels where the bound is a GPU's."""
    if options.stage is not None:
        return list(node_costs(store, report, find_stage(report, options.stage, options.compile), peaks))
    wanted = None if options.compile is None else options.compile + "/"
    here = set() if peaks is None else {one.name for one in report.kernels if one.language == "cpp"}
    return [
        cost
        for cost in kernel_costs(store, report, peaks)
        if (wanted is None or cost.stage.startswith(wanted)) and cost.name not in here
    ]


def _row(cost: Work) -> list[str]:
    return [
        printable(cost.name),
        printable(cost.stage),
        str(cost.calls),
        cost.dtype,
        "" if cost.read is None else size(cost.read),
        "" if cost.written is None else size(cost.written),
        "" if cost.flops is None else flops(cost.flops),
        "" if cost.intensity is None else significant(cost.intensity),
    ]
