"""The texts of stages, as ``irscope show --stage`` and ``--kernel`` print them, and the facts beside them."""

from __future__ import annotations

import argparse
import sys
from typing import Any

from irscope.cli.text import Paint, print_json
from irscope.ir.launches import head_of
from irscope.lowering.loops import COMMENTS, innermost_loops
from irscope.pipelines.inductor.stages import ASSEMBLY, BINARY
from irscope.pipelines.registry import role_of
from irscope.protocol import Report, StageRef, to_json
from irscope.store.store import Store
from irscope.targets.catalogue import catalogue
from irscope.vocabulary.stages import Role
from irscope.vocabulary.visible import printable


def print_stages(store: Store, report: Report, stages: list[StageRef], options: argparse.Namespace) -> int:
    """Prints each text once."""
    found = [(stage, text := store.stage_text(report.run, stage.id), _facts(store, report.run, stage, text)) for stage in stages]  # fmt: skip
    if options.json:
        print_json([{**to_json(stage), "text": text, **to_json(facts)} for stage, text, facts in found])
        return 0
    distinct: dict[str, list[str]] = {}
    for stage, text, facts in found:
        distinct.setdefault(_told(text, stage.name, facts), []).append(stage.id)
    paint = Paint(sys.stdout)
    for text, ids in distinct.items():
        if len(distinct) > 1:
            print(paint(f"=== {', '.join(ids)}", "bold"))
        # As it is into a file or a pipe; on a terminal nothing that a script wrote may steer it.
        sys.stdout.write("\n".join(map(printable, text.split("\n"))) if sys.stdout.isatty() else text)
    return 0


def _facts(store: Store, run: str, stage: StageRef, text: str) -> dict[str, Any]:
    """What is told beside a text: of a kernel what Triton knows of its sizes, of machine code its innermost loops."""
    kernel = stage.id.rpartition("/")[0]
    try:
        if role_of(stage.name) is Role.KERNEL:
            return head_of(text, stage.id.rpartition("/")[2]).size_facts
        if stage.name not in COMMENTS:
            return {}
        data = store.stage_data(run, stage.id if stage.name == ASSEMBLY.name else f"{kernel}/{BINARY.name}")
        target = catalogue().targets.get(stage.target)
        source = store.stage_text(run, kernel)
    except LookupError:
        return {}
    return {"loops": innermost_loops(text, stage.name, data, source, target.architecture if target else "")}


def _told(text: str, kind: str, facts: dict[str, Any]) -> str:
    """The text with its facts as comments: no line gets another number."""
    rows = text.removesuffix("\n").split("\n")
    for loop in facts.get("loops", ()):
        rows[loop.first - 1] += f"  {COMMENTS[kind]} {loop.words}"
    for key, words in _SIZES.items():
        told = facts.get(key) or ["none"]
        pairs = [f"{name} {size}" for name, size in told.items()] if isinstance(told, dict) else told
        rows += [f"# {words}: {', '.join(pairs)}"] * (key in facts)
    return "\n".join(rows) + "\n" if facts else text


_SIZES = {"size_hints": "size hints", "divisible_by_16": "divisible by 16", "others": "not known to be"}
