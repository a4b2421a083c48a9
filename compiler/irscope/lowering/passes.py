"""A Triton kernel's module after each MLIR pass that changed it."""

from __future__ import annotations

import dataclasses
import json
import os

from irscope.ir.line_tables import mlir_lines
from irscope.ir.mlir import PassStep, normal, steps_of
from irscope.lowering.tools import LoweringError, in_interpreter, kernel_text
from irscope.pipelines.inductor.stages import BINARY, LLIR, TTIR_UNOPTIMIZED
from irscope.store.store import Store
from irscope.system.commands import temporary_folder


def passes_of(store: Store, run: str, kernel: str, python: str) -> tuple[str, list[PassStep]]:
    """Compiles the module that the run kept once more, in the interpreter's triton, and lets it print each step.

    Returns an overview of all passes, and those that changed the module, in order.  The overview says whether the
    result is the run's own.

    Raises LoweringError if the interpreter's triton cannot do that.
    """
    module = store.stage_text(run, f"{kernel}/{TTIR_UNOPTIMIZED.name}")
    kept = store.stage_data(run, f"{kernel}/{BINARY.name}")
    place = kernel_text(kept)
    metadata = store.stage_text(run, f"{kernel}/{BINARY.name}")
    with temporary_folder() as work:
        for name, text in (("kernel.ttir", module), ("metadata.json", metadata)):
            with open(os.path.join(work, name), "w", encoding="utf-8", errors="surrogateescape") as file:
                file.write(text)
        said = in_interpreter(python, "pipeline_captures/inductor/triton_passes.py", work)
        made = {stage: _read(work, f"{stage}.txt") for stage in said["stages"]}
        dumps = {stage: _read(work, f"{stage}.dump") for stage in said["stages"]}
    steps: list[PassStep] = []
    for stage, dump in dumps.items():
        end = made[stage] if stage != LLIR.name else ""  # it is then LLVM's IR, no module of MLIR
        steps += steps_of(dump, stage, end, len(steps) + 1)
    if not steps:
        raise LoweringError(f"The triton of {python} ({said['triton']}) printed no passes.")
    changed = [dataclasses.replace(step, lines=mlir_lines(step.text, place)) for step in steps if step.changed]
    same = {stage: _same(store, run, f"{kernel}/{stage}", made[stage]) for stage in made}
    return _overview(steps, same, said["triton"], _triton_of(metadata)), changed


def _read(folder: str, name: str) -> str:
    try:
        with open(os.path.join(folder, name), encoding="utf-8", errors="surrogateescape") as file:
            return file.read()
    except FileNotFoundError:
        return ""


def _same(store: Store, run: str, stage: str, made: str) -> bool | None:
    """Whether a stage came out as in the run; None if the run does not have it."""
    try:
        return normal(store.stage_text(run, stage)) == normal(made)
    except LookupError:
        return None


def _triton_of(metadata: str) -> str:
    try:
        return str(json.loads(metadata).get("triton_version", "?"))
    except ValueError:
        return "?"


def _overview(steps: list[PassStep], same: dict[str, bool | None], here: str, then: str) -> str:
    rows = [f"# {len(steps)} passes, of which {sum(step.changed for step in steps)} changed the module"]
    for stage, is_same in same.items():
        if is_same is not None:
            rows.append(f"# {stage}: {'as in the run' if is_same else 'NOT as in the run'}")
    if here != then:
        rows.append(f"# the run had triton {then}, these passes are of triton {here}")
    pipeline = ""
    for step in steps:
        if step.pipeline != pipeline:
            pipeline = step.pipeline
            rows += ["", f"to {pipeline}:"]
        size = f"{step.text.count(chr(10))} lines after it" if step.changed else "unchanged"
        rows.append(f"  {step.number:>3}  {step.argument:<50} {size}")
    if steps[-1].pipeline == LLIR.name:
        rows[-1] = rows[-1].replace("unchanged", "then LLVM's own IR: see llir")
    return "\n".join(rows) + "\n"
