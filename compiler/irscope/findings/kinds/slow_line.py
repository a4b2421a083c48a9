"""Slow line: its measured time is far from what is possible, and irscope knows a reason.

It is found when a run was profiled (`irscope.findings.slow_lines`), since only then there is measured time.
"""

from __future__ import annotations

from irscope.protocol import Severity
from irscope.vocabulary.findings import DEEP_ONLY, FindingKind

KIND = FindingKind(
    id="slow-line",
    label="Slow line",
    short=("slow line", "slow lines"),
    lanes=DEEP_ONLY,
    severity=Severity.INFORMATION,
    in_compile=False,
    order=75,
)
