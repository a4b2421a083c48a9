"""``irscope show --resources``: what each compiled Triton kernel uses of the GPU."""

from __future__ import annotations

import argparse
import sys

from irscope.cli.tables import table
from irscope.cli.text import Paint, print_json, to_stdout
from irscope.lowering.resources import Resources, resources_of
from irscope.pipelines.inductor.stages import AMDGCN, BINARY, PTX
from irscope.protocol import Report, to_json
from irscope.store.store import Store
from irscope.targets.catalogue import Target, catalogue
from irscope.vocabulary.units import percent, size
from irscope.vocabulary.visible import printable

_HEAD = [
    "kernel",
    "in",
    "configuration",
    "registers",
    "spilled",
    "stack",
    "shared",
    "occupancy",
    "limited by",
    "matrix",
]


def show_resources(store: Store, report: Report, options: argparse.Namespace) -> int:
    """Prints them.  Raises LookupError if no kernel was compiled for a GPU."""
    known = catalogue().targets
    rows, data = [], []
    for compile in report.with_predictions:
        for stage in compile.stages:
            if stage.name != BINARY.name or options.compile not in (None, compile.id):
                continue
            kernel = stage.id.rpartition("/")[0]
            binary = store.stage_data(report.run, stage.id) or {}
            try:
                found = resources_of(binary, store.stage_text(report.run, stage.id), _assembly(store, report, kernel))
            except (LookupError, ValueError):
                continue  # damaged, or of an older version
            config = str(binary.get("config", ""))
            target = known.get(stage.target) or next(
                (each for each in known.values() if store.device_of(report.run) in each.reported), None
            )
            rows.append(_row(kernel, compile.id, config, found, target))
            occupied = to_json(found.occupancy_on(target)) if target else None
            data.append({"kernel": kernel, "config": config, **to_json(found), "occupancy": occupied})
    if not rows:
        raise LookupError(
            f"No kernel of run {report.run} was compiled for a GPU (irscope run --target, docs/targets.md)."
        )
    if options.json:
        print_json(data)
    else:
        to_stdout(table(_HEAD, rows, Paint(sys.stdout), right=frozenset({3, 4, 5, 6, 7}), whole=frozenset({0})))
    return 0


def _assembly(store: Store, report: Report, kernel: str) -> str:
    """PTX, else AMDGCN.  Raises LookupError."""
    try:
        return store.stage_text(report.run, f"{kernel}/{PTX.name}")
    except LookupError:
        return store.stage_text(report.run, f"{kernel}/{AMDGCN.name}")


def _row(kernel: str, compile: str, config: str, found: Resources, target: Target | None) -> list[str]:
    occupied = found.occupancy_on(target) if target else None
    return [
        printable(kernel.rpartition("/")[2]), compile, printable(config), str(found.registers),
        "?" if found.spilled is None else size(found.spilled), size(found.stack), size(found.shared),
        "" if occupied is None else percent(occupied.warps, occupied.most), "" if occupied is None else occupied.limit,
        found.matrix or "none",
    ]  # fmt: skip
