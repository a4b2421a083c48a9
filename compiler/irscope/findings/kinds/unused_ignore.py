"""Unused ignore: a comment that ignores findings, on a line without any (`irscope.findings.control`)."""

from __future__ import annotations

from irscope.protocol import Severity
from irscope.vocabulary.findings import FAST_AND_DEEP, FindingKind

KIND = FindingKind(
    id="unused-ignore",
    label="Unused ignore",
    short=("unused ignore", "unused ignores"),
    lanes=FAST_AND_DEEP,
    severity=Severity.HINT,
    in_compile=False,
    order=160,
)
