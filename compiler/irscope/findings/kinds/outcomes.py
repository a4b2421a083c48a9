"""How a run ended, where that is a finding in the editor; `irscope_server.running.outcomes` makes it."""

from __future__ import annotations

from irscope.protocol import OutcomeKind, Severity
from irscope.vocabulary.findings import FAST_AND_DEEP, FindingKind

SCRIPT_ERROR = FindingKind(
    id=OutcomeKind.SCRIPT_ERROR.value,
    label="Script error",
    short=("script error", "script errors"),
    lanes=FAST_AND_DEEP,
    severity=Severity.ERROR,
    in_compile=False,
    order=170,
)
CRASHED = FindingKind(
    id=OutcomeKind.CRASHED.value,
    label="Crashed",
    short=("crash", "crashes"),
    lanes=FAST_AND_DEEP,
    severity=Severity.ERROR,
    in_compile=False,
    order=180,
)
ENVIRONMENT_ERROR = FindingKind(
    id=OutcomeKind.ENVIRONMENT_ERROR.value,
    label="Environment error",
    short=("environment error", "environment errors"),
    lanes=FAST_AND_DEEP,
    severity=Severity.WARNING,
    in_compile=False,
    order=190,
)
