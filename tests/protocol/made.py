"""Made-up facts for tests, with as few words as a test needs."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from irscope.protocol import (
    Compile,
    CompileOutcome,
    Finding,
    Kernel,
    Lane,
    Origin,
    Outcome,
    OutcomeKind,
    Position,
    Range,
    Related,
    RelatedRole,
    Report,
    Severity,
    StageRef,
    to_json,
)
from irscope_server.base.texts import file_key, split_lines
from irscope_server.running.results import Ended

GRAPH = """\
class GraphModule(torch.nn.Module):
    def forward(self, L_x_: "f32[4, 8][8, 1]cpu"):
        l_x_ = L_x_

         # File: {script}:5 in f, code: y = torch.relu(x)
        y: "f32[4, 8][8, 1]cpu" = torch.relu(l_x_);  l_x_ = None

         # File: {script}:7 in f, code: return y.sin() + 1
        sin: "f32[4, 8][8, 1]cpu" = y.sin();  y = None
        add: "f32[4, 8][8, 1]cpu" = sin + 1;  sin = None
        return (add,)
"""

SCRIPT = """\
import torch

@torch.compile
def f(x):
    y = torch.relu(x)
    print("hi")
    return y.sin() + 1

f(torch.ones(4, 8))
"""


def finding(
    file: str, line: int, column: int = 0, end: int | None = None, *, kind: str = "graph-break", **changes: Any
) -> Finding:
    """A finding on one line (1-based)."""
    facts: dict[str, Any] = {
        "kind": kind,
        "code": "GB0059",
        "severity": Severity.WARNING,
        "message": "Graph break: it cannot be traced.",
        "explanation": "Dynamo does not know how to trace it.",
        "hints": ("Do not.",),
        "link": "https://example.org/gb0059.html",
        "file": file,
        "range": Range(Position(line, column), Position(line, column + 1 if end is None else end)),
        "count": 1,
        "compiles": ("0/0",),
        "related": (),
    }
    return Finding(**{**facts, **changes})


def related(file: str, line: int, column: int, end: int, message: str, role: RelatedRole | None = None) -> Related:
    return Related(file, Range(Position(line, column), Position(line, end)), message, role)


def compile_of(file: str, id: str = "0/0", function: str = "f", line: int = 3, **changes: Any) -> Compile:
    facts: dict[str, Any] = {
        "outcome": CompileOutcome.COMPILED,
        "restarts": 0,
        "graph_ops": 2,
        "seconds": 0.5,
        "stages": (),
    }
    return Compile(id, function, file, line, **{**facts, **changes})


def kernel(name: str, compile: str, *origins: tuple[str, int], language: str = "cpp", stage: str = "") -> Kernel:
    stage = stage or f"{compile}/kernel/{name}"
    return Kernel(name, language, compile, stage, tuple(Origin(file, line) for file, line in origins))


def stage(compile: str, name: str, language: str = "python") -> StageRef:
    return StageRef(f"{compile}/{name}", name, language, 0)


def ended(
    script: str,
    texts: Mapping[str, str],
    *,
    run: str = "20260101-000000-abc",
    lane: Lane = Lane.FAST,
    source: str = "",
    compiles: Sequence[Compile] = (),
    findings: Sequence[Finding] = (),
    kernels: Sequence[Kernel] = (),
    outcome: OutcomeKind = OutcomeKind.COMPLETED,
) -> Ended:
    report = Report(
        1, run, script, "2.13.0", Outcome(outcome, 0, "", 1.0), tuple(compiles), tuple(findings), tuple(kernels), ()
    )
    return Ended(script, lane, source, report, {file_key(path): split_lines(text) for path, text in texts.items()})


def act(script: Path, **more: Any) -> dict[str, Any]:
    """A run with one graph break, one compile and one kernel."""
    file = str(script)
    first = compile_of(file, "0/0", "f", 3)
    facts: dict[str, Any] = {
        "findings": [
            to_json(
                finding(file, 6, 4, 15, related=(related(file, 9, 0, 20, "called from <module>", RelatedRole.CALLER),))
            )
        ],
        "compiles": [
            [
                to_json(first),
                [
                    [to_json(stage("0/0", "dynamo-graph")), GRAPH.format(script=file)],
                    [to_json(stage("0/0", "output-code")), "import x\n\ndef call():\n    extern_kernels.mm(a, b)\n"],
                    [{"id": "0/0/kernel/k0", "name": "kernel", "language": "cpp", "bytes": 0}, "void k0() {}\n"],
                ],
            ]
        ],
        "kernels": [
            to_json(kernel("k0", "0/0", (file, 5))),
            to_json(kernel("extern_kernels.mm", "0/0", (file, 7), language="extern", stage="0/0/output-code")),
        ],
    }
    return {**facts, **more}


def act_at(script: Path, *lines: int, compiled: float = 0.5, **more: Any) -> dict[str, Any]:
    """A run with a break on each of some lines (1-based), whose code tells the line, and a compile of so many seconds."""
    file = str(script)
    return {
        "findings": [to_json(finding(file, line, 4, 15, code=f"GB{line:04d}")) for line in lines],
        "compiles": [[to_json(compile_of(file, seconds=compiled)), []]],
        **more,
    }
