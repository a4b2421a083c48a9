"""MLIR's dump of a module before each pass (``MLIR_ENABLE_DUMP``), read into the passes that changed it.

The dump says how the module looked *before* each pass; what a pass made of it is how it looks before the next one, or
the stage at which the pipeline ended.
"""

from __future__ import annotations

import re

from irscope.ir.line_tables import Lines
from irscope.vocabulary.records import dataclass

_HEAD = re.compile(
    r"^// -----// IR Dump (?P<when>Before|After) (?P<name>[^\s:]+)"
    r"(?: \((?P<argument>[^)]*)\)|: (?P<pipeline>[^\s{]+)(?:\{.*\})?)"  # the second one, with options, from triton 3.9 on
    r"(?: \('(?P<operation>[^']*)' operation(?:: (?P<symbol>[^)]*))?\))? ?//----- //$"
)
_MODULE = "builtin.module"


@dataclass(frozen=True)
class PassStep:
    """One pass of a pipeline.

    Args:
        number: Counts all passes of the kernel, those too that changed nothing; from 1.
        pipeline: The stage that the pipeline works towards: ``ttir``, ``ttgir``, ``llir``.
        argument: The pass as the command line of MLIR's tools names it: ``triton-licm``.
        changed: Whether it changes the module, names and locations aside.
        text: The module after it; empty if the dump does not show it.
    """

    number: int
    pipeline: str
    name: str
    argument: str
    changed: bool
    text: str
    lines: Lines


@dataclass(frozen=True)
class Snapshot:
    """The module before a pass."""

    name: str
    argument: str
    operation: str
    text: str


def snapshots_in(dump: str) -> list[Snapshot]:
    """The snapshots of a dump in order.

    Passes that run inside another one (the inliner simplifies function by function) belong to it: their snapshots are
    left out, and what they change is the outer pass's work.
    """
    found: list[tuple[re.Match[str], list[str]]] = []
    rows: list[str] = []
    for row in dump.split("\n"):
        if row.startswith("// -----// "):  # of a pass, or of something within one (the pipeliner prints, too)
            match = _HEAD.match(row)
            rows = []
            if match:
                found.append((match, rows))
        else:
            rows.append(row)
    snapshots: list[Snapshot] = []
    for match, rows in found:
        operation = match["operation"] or _MODULE
        if match["when"] != "Before":
            continue
        if operation != _MODULE and snapshots and snapshots[-1].argument == "inline":
            continue
        snapshots.append(
            Snapshot(
                match["name"],
                match["argument"] or match["pipeline"] or "",
                operation,
                "\n".join(rows).strip("\n") + "\n",
            )
        )
    return snapshots


def steps_of(dump: str, pipeline: str, end: str, first: int) -> list[PassStep]:
    """The passes of one pipeline.

    Args:
        end: The module when the pipeline had ended; empty if it is not known.
        first: The number of its first pass.
    """
    snapshots = snapshots_in(dump)
    steps = []
    for at, snapshot in enumerate(snapshots):
        after = snapshots[at + 1].text if at + 1 < len(snapshots) else end
        changed = bool(after) and normal(after) != normal(snapshot.text)
        text = after if changed else ""
        steps.append(PassStep(first + at, pipeline, snapshot.name, snapshot.argument, changed, text, []))
    return steps


_PLACE_LINE = re.compile(r"^#loc\d* = .*\n?", re.MULTILINE)
_PLACE_USE = re.compile(r" loc\((?:[^()]|\((?:[^()]|\([^()]*\))*\))*\)")
_VALUE = re.compile(r"%\w+")


def normal(text: str) -> str:
    """A module without its locations, which are numbered again each time it is printed, and with its values
    numbered as they come: their names are made of locations, of which some are lost when a module is read."""
    names: dict[str, str] = {}
    bare = _PLACE_USE.sub("", _PLACE_LINE.sub("", text)).strip()
    return _VALUE.sub(lambda match: names.setdefault(match[0], f"%{len(names)}"), bare)
