"""Kernel check: what Triton's interpreter found in a kernel, at its statement and at the user's line.

Found only where a kernel is run (`irscope kernel`, and a debugger that steps into it); `irscope.values.kernel` tells how.
"""

from __future__ import annotations

from irscope.protocol import Finding, Position, Range, Severity
from irscope.protocol.facts import KernelCheckFacts
from irscope.usercode.source import line_text
from irscope.vocabulary.findings import VALUE_RUNS_ONLY, FindingKind

KIND = FindingKind(
    id="kernel-check",
    label="Kernel check",
    short=("kernel check", "kernel checks"),
    lanes=VALUE_RUNS_ONLY,
    severity=Severity.WARNING,
    facts=KernelCheckFacts,
    order=121,
)


def finding_of(facts: KernelCheckFacts, what: str, compile: str, file: str, line: int) -> Finding:
    """The finding of a check, at the user's line.

    Args:
        what: What the statement does: ``program (3) writes outside of out_ptr0: element 12``.
    """
    text = line_text(file, line)
    start = len(text) - len(text.lstrip())
    message = f"{facts.kernel}, line {facts.line}: {what}."
    nodes = f" It computes {', '.join(facts.nodes)}." if facts.nodes else ""
    return Finding(
        kind=KIND.id,
        code=f"kernel-{facts.check}",
        severity=KIND.severity,
        message=message,
        explanation=f"{message} The statement is `{facts.statement}`.{nodes}",
        hints=(_HINTS.get(facts.check, _BUG),),
        link=None,
        file=file,
        range=Range(Position(line, start), Position(line, max(len(text.rstrip()), start + 1))),
        count=1,
        compiles=(compile,) if compile else (),
        facts=facts,
    )


_BUG = "Step into the kernel in the debugger to see the values. If Inductor wrote the kernel, this is a bug of the compiler."
_HINTS = {
    "non-finite": "Keep the operand in the range of the operation: clamp it, add an epsilon, or compute it in float32.",
}
