"""Memory at the peak: what a line holds when a step takes most, where something can be done about it.

It is found when the memory of a step was measured (`irscope.findings.peak_memory`), or there was not enough
(`irscope.findings.out_of_memory`).
"""

from __future__ import annotations

from irscope.protocol import Severity
from irscope.vocabulary.findings import FAST_AND_DEEP, FindingKind

KIND = FindingKind(
    id="memory-at-peak",
    label="Memory at the peak",
    short=("memory at the peak", "memory at the peak"),
    lanes=FAST_AND_DEEP,
    severity=Severity.INFORMATION,
    in_compile=False,
    order=76,
)
