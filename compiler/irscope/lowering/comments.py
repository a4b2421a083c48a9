"""What is told beside the text of a kernel or of its machine code, in the terminal and in the editor, as comments in it."""

from __future__ import annotations

from typing import Any

from irscope.ir.launches import head_of
from irscope.lowering.loops import COMMENTS, innermost_loops
from irscope.pipelines.inductor.stages import ASSEMBLY, BINARY
from irscope.pipelines.registry import role_of
from irscope.protocol import StageRef
from irscope.store.store import Store
from irscope.targets.catalogue import catalogue
from irscope.vocabulary.stages import Role


def facts_beside(store: Store, run: str, stage: StageRef, text: str) -> dict[str, Any]:
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


def with_comments(text: str, kind: str, facts: dict[str, Any]) -> str:
    """The text with its facts as comments: no line gets another number."""
    was = text.removesuffix("\n").split("\n")
    rows = [*was]
    for loop in facts.get("loops", ()):
        rows[loop.first - 1] += f"  {COMMENTS[kind]} {loop.words}"
    for key, words in _SIZES.items():
        told = facts.get(key) or ["none"]
        pairs = [f"{name} {size}" for name, size in told.items()] if isinstance(told, dict) else told
        rows += [f"# {words}: {', '.join(pairs)}"] * (key in facts)
    return text if rows == was else "\n".join(rows) + "\n"


_SIZES = {"size_hints": "size hints", "divisible_by_16": "divisible by 16", "others": "not known to be"}
