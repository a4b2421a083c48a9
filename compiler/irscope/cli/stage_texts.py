"""The texts of stages, as ``irscope show --stage`` and ``--kernel`` print them, and what a kernel is told of its sizes."""

from __future__ import annotations

import argparse
import sys
from typing import Any

from irscope.cli.text import Paint, print_json
from irscope.ir.launches import head_of
from irscope.pipelines.registry import role_of
from irscope.protocol import Report, StageRef, to_json
from irscope.store.store import Store
from irscope.vocabulary.stages import Role
from irscope.vocabulary.visible import printable


def print_stages(store: Store, report: Report, stages: list[StageRef], options: argparse.Namespace) -> int:
    """Prints each text once."""
    texts = [store.stage_text(report.run, stage.id) for stage in stages]
    if options.json:
        print_json(
            [{**to_json(stage), "text": text, **_sizes(stage, text)} for stage, text in zip(stages, texts, strict=True)]
        )
        return 0
    distinct: dict[str, list[str]] = {}
    for stage, text in zip(stages, texts, strict=True):
        distinct.setdefault(text, []).append(stage.id)
    by_id = {stage.id: stage for stage in stages}
    paint = Paint(sys.stdout)
    for text, ids in distinct.items():
        if len(distinct) > 1:
            print(paint(f"=== {', '.join(ids)}", "bold"))
        # As it is into a file or a pipe; on a terminal nothing that a script wrote may steer it.
        text = (
            text.removesuffix("\n") + "\n" + _words(_sizes(by_id[ids[0]], text))
        )  # at its end: the numbers of lines stay
        sys.stdout.write("\n".join(map(printable, text.split("\n"))) if sys.stdout.isatty() else text)
    return 0


def _sizes(stage: StageRef, text: str) -> dict[str, Any]:
    """What Inductor tells Triton of the sizes of a kernel; empty for other stages."""
    if role_of(stage.name) is not Role.KERNEL:
        return {}
    try:
        return head_of(text, stage.id.rpartition("/")[2]).size_facts
    except LookupError:
        return {}


def _words(facts: dict[str, Any]) -> str:
    if not facts:
        return ""
    hints = ", ".join(f"{name} {size}" for name, size in facts["size_hints"].items())
    lists = [", ".join(facts[key]) or "none" for key in ("divisible_by_16", "others")]
    told = [f"size hints: {hints}"] * bool(hints) + [f"divisible by 16: {lists[0]}", f"not known to be: {lists[1]}"]
    return "".join(f"# {line}\n" for line in told)
