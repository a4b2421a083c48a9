"""Error in compiled code: an exception or a signal ended the script while compiled code was running.

It is found when the run has ended (`irscope.findings.endings`), since only then the stack is known that it ended with.
"""

from __future__ import annotations

import dataclasses

from irscope.protocol import Finding, Outcome, OutcomeKind, Range, Report, Severity
from irscope.vocabulary.findings import FAST_AND_DEEP, FindingKind

KIND = FindingKind(
    id="compiled-code-error",
    label="Error in compiled code",
    short=("error in compiled code", "errors in compiled code"),
    lanes=FAST_AND_DEEP,
    severity=Severity.ERROR,
    in_compile=False,
    order=115,
)
CHECK = (
    "Check whether it fails without compile, too: `irscope run --check-without-compile`, or the quick fix "
    "*Check Without Compile*. It runs the script again."
)
"""The first hint until it is checked."""
TYPE_CHECK = "type-check"
"""The code of a check of argument types that compiled code runs into."""


_COMPILE_ERROR = "compile-error"


def can_be_checked(found: Finding) -> bool:
    """Whether a check without compile says more of a finding, and none was made."""
    return found.kind in (KIND.id, _COMPILE_ERROR) and not verdict_of(found)


def to_check(report: Report) -> Finding | None:
    """The finding of what ended a script: the error in compiled code, or the newest compile error; None if there is none."""
    found = next((finding for finding in report.findings if finding.kind == KIND.id), None)
    if found is not None or report.outcome is None or report.outcome.kind is not OutcomeKind.SCRIPT_ERROR:
        return found
    return next((finding for finding in reversed(report.findings) if finding.kind == _COMPILE_ERROR), None)


def verdict_of(found: Finding) -> str:
    """What the check said; empty if it was not checked."""
    return found.message.partition(_VERDICT)[2]


INDUCTOR, OWN_BACKEND = "inductor", "own"
_LAYERS = {
    "eager": "It fails with backend='eager' already, which is Dynamo alone",
    "aot_eager": "It works with backend='eager' and fails with backend='aot_eager', which is AOTAutograd",
    INDUCTOR: "It works with backend='eager' and backend='aot_eager', so Inductor's code fails",
    OWN_BACKEND: "It works with backend='eager', so the script's own backend fails",
}
_NEXT = {
    "eager": "Compare the graph with your function (*Show FX Graph*, or `irscope show --stage dynamo-graph`).",
    "aot_eager": "Check custom operations in it with `torch.library.opcheck`, and compare the graphs before and after "
    "AOTAutograd.",
    INDUCTOR: "If it is a custom operation, check it with `torch.library.opcheck`: its fake implementation may be "
    "wrong. If not, report it to PyTorch.",
    OWN_BACKEND: "Call what the backend returns with the inputs of its graph (*Show FX Graph*), outside of compile.",
}


UNTIL = "Until it is fixed, put the operation into a function under `torch.compiler.disable`."
_LEAVE_OUT = (
    "Leave the function that raises out of the compiled code: compile the functions that it calls, or put it under "
    "`torch.compiler.disable`."
)


def words_of(found: Finding, without: Outcome, *, is_same: bool, layer: str) -> Finding:
    """The finding with what the check says.

    Args:
        without: How the script ended without compile.
        is_same: Whether it failed there in the same way.
        layer: The backend with which it begins to fail, or `OWN_BACKEND`, if it ended well; empty if that is not known.
    """
    hints: tuple[str, ...] = ()
    if without.kind is OutcomeKind.COMPLETED:
        fails = "compiled code" if found.kind == KIND.id else "the compiler"
        verdict = f"Without compile the script works: only {fails} fails.{f' {_LAYERS[layer]}.' if layer else ''}"
        more = (_NEXT[layer], UNTIL) if layer else (UNTIL,)
        kept = tuple(hint for hint in found.hints if hint != CHECK)
        hints = more if found.kind == KIND.id and found.code != TYPE_CHECK else kept or (UNTIL,)
    elif is_same:
        how = without.message if without.kind is OutcomeKind.SCRIPT_ERROR else "by the same signal"
        fault = "the fault is in the script" if found.kind == KIND.id else "compiling is not the cause"
        verdict = f"It fails without compile, too: {fault} ({how.rstrip('.')})."
    elif without.kind in (OutcomeKind.SCRIPT_ERROR, OutcomeKind.CRASHED):
        verdict = f"Without compile the script fails in another way: {without.message}"
    else:
        verdict = f"The check without compile did not end: {without.message}"
        hints = (CHECK,)
    base, _, _ = found.message.partition(_VERDICT)
    return dataclasses.replace(found, message=f"{base}{_VERDICT}{verdict}", hints=hints)


def of_script(outcome: Outcome, file: str, where: Range, layer: str) -> Finding:
    """The finding of an error of the script that compiling causes, though it was raised outside of compiled code.

    Args:
        outcome: How the script ended.
        where: The user's innermost expression on the way of the exception.
        layer: The backend with which it begins to fail; empty if that is not known.
    """
    found = Finding(
        kind=KIND.id,
        code=outcome.message.partition(":")[0],
        severity=KIND.severity,
        message=f"The script fails because of compiling, outside of compiled code: {outcome.message}",
        explanation="Python code that Dynamo traces, or leaves to Python, went another way than without compile.",
        hints=(),
        link=None,
        file=file,
        range=where,
        count=1,
        compiles=(),
        related=(),
    )
    checked = words_of(found, Outcome(OutcomeKind.COMPLETED, 0, "", 0.0), is_same=False, layer=layer)
    return dataclasses.replace(checked, hints=(_LEAVE_OUT,))


_VERDICT = "\nChecked: "
"""What is between the message and the verdict of the check, of which there is one."""
