"""Facts of a made-up run, each field with a value of its own."""

from __future__ import annotations

from typing import Any

from irscope.protocol import (
    BreakFacts,
    CaptureGap,
    Compile,
    CompileOutcome,
    Cost,
    Finding,
    Kernel,
    Origin,
    Outcome,
    OutcomeKind,
    Position,
    Range,
    Related,
    RelatedRole,
    Severity,
    StageRef,
)


def a_range(line: int = 6, column: int = 4, end_line: int = 6, end_column: int = 15) -> Range:
    return Range(Position(line, column), Position(end_line, end_column))


def a_finding(**changes: Any) -> Finding:
    facts: dict[str, Any] = {
        "kind": "graph-break",
        "code": "GB0059",
        "severity": Severity.WARNING,
        "message": "Graph break: it cannot be traced.",
        "explanation": "Dynamo does not know it.",
        "hints": ("Do not.", "Or do."),
        "link": "https://example.org/gb0059.html",
        "file": "/home/me/model.py",
        "range": a_range(),
        "count": 2,
        "compiles": ("0/0", "1/0"),
        "related": (Related("/home/me/main.py", a_range(9, 0, 9, 7), "called from main", RelatedRole.CALLER),),
        "cost": Cost(0.75, 1),
        "facts": BreakFacts(leaves_function_to_python=True),
    }
    return Finding(**{**facts, **changes})


def a_compile(**changes: Any) -> Compile:
    facts: dict[str, Any] = {
        "id": "0/0",
        "function": "forward",
        "file": "/home/me/model.py",
        "line": 4,
        "outcome": CompileOutcome.GRAPH_BREAK,
        "restarts": 1,
        "graph_ops": 7,
        "seconds": 1.25,
        "stages": (),
        "reasons": ("0/0: x == 3",),
    }
    return Compile(**{**facts, **changes})


def a_stage(name: str = "dynamo-graph", compile: str = "0/0", language: str = "python") -> StageRef:
    return StageRef(f"{compile}/{name}", name, language, 0)


def a_kernel(**changes: Any) -> Kernel:
    facts: dict[str, Any] = {
        "name": "cpp_fused_relu_0",
        "language": "cpp",
        "compile": "0/0",
        "stage": "0/0/kernel/cpp_fused_relu_0",
        "origins": (Origin("/home/me/model.py", 5),),
    }
    return Kernel(**{**facts, **changes})


def an_outcome(**changes: Any) -> Outcome:
    facts: dict[str, Any] = {
        "kind": OutcomeKind.SCRIPT_ERROR,
        "exit_code": 3,
        "message": "the script ended with sys.exit(3)",
        "seconds": 2.5,
    }
    return Outcome(**{**facts, **changes})


def a_gap() -> CaptureGap:
    return CaptureGap("the columns", "torch is too new")
