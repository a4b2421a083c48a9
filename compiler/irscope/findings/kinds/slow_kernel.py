"""A predicted kernel that spills registers, or multiplies matrices without the instruction that its device has for it."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from irscope.findings import signals
from irscope.findings.detector import Detector
from irscope.findings.kinds.performance_hint import KIND
from irscope.findings.moment import Moment
from irscope.findings.places import at_function, at_origin
from irscope.protocol import Finding, Origin

_HINTS = {
    "register-spill": "Use smaller blocks or more warps; another configuration may spill nothing.",
    "slow-matrix-product": "Use blocks of at least 64 rows and 4 warps; another configuration may have it.",
}


def detect(
    moment: Moment, target: str, slow: tuple[str, str, str, tuple[int, int], tuple[Origin, ...]]
) -> Iterator[Finding]:
    """At the last of the kernel's lines, else at the function.

    Args:
        slow: A code, what is slow in words, the stage of the kernel, which of how many configurations it is, and its
            lines.
    """
    code, what, stage, (number, count), lines = slow
    facts: dict[str, Any] = {
        "kind": KIND.id, "code": code, "severity": KIND.severity, "hints": (_HINTS[code],),
        "message": f"{stage.rpartition('/')[2]} {what}.", "targets": (target,),
        "explanation": f"In configuration {number} of {count}. `irscope show --resources --target {target}` has all kernels.",
    }  # fmt: skip
    finding = at_origin(moment, lines[-1], **facts) if lines else at_function(moment, **facts)
    if finding is not None:
        yield finding


DETECTORS = (Detector(signals.KERNEL_IS_SLOW, detect),)
