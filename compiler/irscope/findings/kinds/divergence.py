"""Divergence: compiled code computes another number than the graph that it was compiled from.

Found only in a value run that compares (`irscope diverge`); `irscope.values` tells how.
"""

from __future__ import annotations

from typing import Any

from irscope.protocol import Finding, Position, Range, Severity
from irscope.usercode.source import line_text
from irscope.vocabulary.findings import VALUE_RUNS_ONLY, FindingKind

KIND = FindingKind(
    id="divergence",
    label="Divergence",
    short=("divergence", "divergences"),
    lanes=VALUE_RUNS_ONLY,
    severity=Severity.ERROR,
    stops_debugger=True,
    order=120,
)


def finding_of(compile: str, found: dict[str, Any]) -> Finding | None:
    """The finding of a divergence as it is in the data of its stage; None if no line is known."""
    if not found["file"]:
        return None
    line, text = int(found["line"]), line_text(found["file"], int(found["line"]))
    start = len(text) - len(text.lstrip())
    end = max(len(text.rstrip()), start + 1)
    return Finding(
        kind=KIND.id,
        code=f"divergence-{found['how']}",
        severity=KIND.severity,
        message=found["message"],
        explanation=_explanation(found),
        hints=_HINTS[found["how"]],
        link=None,
        file=found["file"],
        range=Range(Position(line, start), Position(line, end)),
        count=1,
        compiles=(compile,) if compile else (),
    )


def finding_of_dynamo(difference: str, file: str, line: int) -> Finding | None:
    """The finding of a program that Dynamo made wrong, at the function that was compiled; None if no line is known."""
    found = {"how": "dynamo", "message": by_dynamo(difference), "file": file, "line": line, "kernel": "", "local": None}
    return finding_of("", found)


def by_dynamo(difference: str) -> str:
    """The message of a program that Dynamo made wrong."""
    return f"Dynamo changed what the program computes: {difference}."


_HINTS = {
    "dynamo": (
        "Without compile the program computes something else than with `torch.compile(backend='eager')`, which runs "
        "Dynamo's graphs as they are.",
        "Until it is fixed, keep the function that is traced wrongly out of the compiled region "
        "(torch.compiler.disable on it), and report it.",
    ),
    "step": (
        "`irscope diverge SCRIPT --reproducer FILE` writes a standalone script that reproduces it, for a bug report.",
        "It is a decomposition, functionalization or the formula of a gradient. If the decomposition is yours "
        "(torch._inductor.decomposition.register_decomposition), compare it with the operation in eager mode.",
    ),
    "pass": (
        "`irscope diverge SCRIPT --reproducer FILE` writes a standalone script that reproduces it, for a bug report.",
        "If the pass is yours (for example post_grad_custom_post_pass), compare the graph before and after it: "
        "each is a version of the stage.",
    ),
    "lowering": (
        "`irscope diverge SCRIPT --reproducer FILE` writes a standalone script that reproduces it, for a bug report.",
        "Until it is fixed, keep the operation out of the compiled region (torch.compiler.disable on a function "
        "that calls it).",
    ),
    "fusion": (
        "`irscope diverge SCRIPT --reproducer FILE` writes a standalone script that reproduces it, for a bug report.",
        "Until it is fixed: torch._inductor.config.max_fusion_size = 1 (slower).",
    ),
    "code-generation": (
        "`irscope diverge SCRIPT --reproducer FILE` writes a standalone script that reproduces it, for a bug report.",
    ),
}


def _explanation(found: dict[str, Any]) -> str:
    parts = [found["message"]]
    if found["kernel"]:
        parts.append(f"The kernel is {found['kernel']}.")
    local = found["local"]
    if local is not None:
        compiled, eager, wide = local["numbers"]
        where = f"At index {local['index']}" if local["index"] else "There"
        parts.append(f"{where} compiled code has {compiled}, eager mode {eager}, float64 {wide}.")
    return " ".join(parts)
